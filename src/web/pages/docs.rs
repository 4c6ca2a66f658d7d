//! `/api/docs`: the description of the API for reading, written by the server from the same document that `/api/openapi.json`
//! sends. Open to everybody, as the document is. The frame speaks the reader's language, the texts are English.
//!
//! Read off the document once: it does not change while the process lives.

use super::html;
use super::shell::Shell;
use super::visitor::Anybody;
use crate::web::openapi::document;
use askama::Template;
use axum::response::Response;
use serde_json::Value;
use std::sync::LazyLock;

/// The page.
#[derive(Template)]
#[template(path = "pages/docs.html")]
struct DocsPage<'a> {
    page: &'a Shell,
    groups: &'a [Group],
    shapes: &'a [Shape],
}

/// The operations of a noun.
struct Group {
    name: String,
    text: Text,
    operations: Vec<Operation>,
}

/// One method of one path.
struct Operation {
    id: String,
    method: String,
    path: String,
    summary: Text,
    description: Text,
    /// Needs no caller.
    open: bool,
    params: Vec<Field>,
    body: Vec<Kind>,
    answers: Vec<Answer>,
}

impl Operation {
    /// The summary as plain text.
    fn title(&self) -> String {
        self.summary.iter().map(|(_, words)| words.as_str()).collect()
    }
}

/// What may come back under a status.
struct Answer {
    status: String,
    lines: Vec<Text>,
    /// None without a body.
    kinds: Vec<Kind>,
}

/// A parameter or a member.
struct Field {
    name: String,
    /// Where a parameter stands.
    place: Option<String>,
    kind: Kind,
    required: bool,
    text: Text,
}

/// The type of a value, in words, with the shape that it leads to.
struct Kind {
    words: String,
    shape: Option<String>,
}

/// A named schema.
struct Shape {
    name: String,
    text: Text,
    /// Shapes whose members it has too.
    holds: Vec<Kind>,
    fields: Vec<Field>,
    /// The words of an enumeration.
    words: Vec<String>,
}

/// A text in pieces: whether it is code, and its words.
type Text = Vec<(bool, String)>;

static GROUPS: LazyLock<Vec<Group>> = LazyLock::new(groups);
static SHAPES: LazyLock<Vec<Shape>> = LazyLock::new(shapes);

/// `GET /api/docs`
pub async fn show(Anybody(shell): Anybody) -> Response {
    html(&DocsPage { page: &shell, groups: &GROUPS, shapes: &SHAPES })
}

fn groups() -> Vec<Group> {
    let tags = document()["tags"].as_array().expect("the document has tags");
    let group = |tag: &Value| {
        let name = string(&tag["name"]);
        let operations = operations(&name);
        Group { text: text(&tag["description"]), operations, name }
    };
    tags.iter().map(group).collect()
}

fn operations(tag: &str) -> Vec<Operation> {
    let paths = document()["paths"].as_object().expect("the document has paths");
    let mut found = Vec::new();
    for (path, item) in paths {
        for (method, told) in item.as_object().into_iter().flatten().filter(|(_, told)| told["tags"][0] == tag) {
            found.push(Operation {
                id: string(&told["operationId"]),
                method: method.to_uppercase(),
                path: path.clone(),
                summary: text(&told["summary"]),
                description: text(&told["description"]),
                open: told.get("security").is_some(),
                params: items(&told["parameters"]).map(|param| field(string(&param["name"]), param)).collect(),
                body: contents(&told["requestBody"]),
                answers: told["responses"].as_object().into_iter().flatten().map(answer).collect(),
            });
        }
    }
    found
}

fn answer((status, told): (&String, &Value)) -> Answer {
    let lines = told["description"].as_str().unwrap_or_default().lines().map(pieces).collect();
    // Problems are told by their codes; their shape is told once.
    let kinds = if told["content"]["application/problem+json"].is_null() { contents(told) } else { Vec::new() };
    Answer { status: status.clone(), lines, kinds }
}

fn contents(told: &Value) -> Vec<Kind> {
    let of = |(media, content): (&String, &Value)| match media.as_str() {
        "application/json" => kind(&content["schema"]),
        media => Kind { words: media.to_owned(), shape: None },
    };
    told["content"].as_object().into_iter().flatten().map(of).collect()
}

fn shapes() -> Vec<Shape> {
    let schemas = document()["components"]["schemas"].as_object().expect("the document has schemas");
    let shape = |(name, schema): (&String, &Value)| {
        let parts: Vec<&Value> = std::iter::once(schema).chain(items(&schema["allOf"])).collect();
        Shape {
            name: name.clone(),
            text: text(&schema["description"]),
            holds: parts.iter().filter(|part| part["$ref"].is_string()).map(|part| kind(part)).collect(),
            fields: parts.iter().flat_map(|part| members(part)).collect(),
            words: items(&schema["enum"])
                .chain(items(&schema["oneOf"]).flat_map(|one| items(&one["enum"])))
                .map(string)
                .collect(),
        }
    };
    schemas.iter().map(shape).collect()
}

fn members(schema: &Value) -> Vec<Field> {
    let required: Vec<&Value> = items(&schema["required"]).collect();
    let one = |(name, inner): (&String, &Value)| {
        let mut field = field(name.clone(), inner);
        field.required = required.iter().any(|needed| *needed == name);
        field
    };
    schema["properties"].as_object().into_iter().flatten().map(one).collect()
}

/// A parameter, or a member: there the schema is the value itself.
fn field(name: String, told: &Value) -> Field {
    let schema = told.get("schema").unwrap_or(told);
    // Beside a reference, a text about the place stands in the branch that refers.
    let own = [told, schema].into_iter().chain(items(&schema["oneOf"]));
    let description = own.map(|part| &part["description"]).find(|text| text.is_string()).unwrap_or(&Value::Null);
    Field {
        name,
        place: told["in"].as_str().map(str::to_owned),
        kind: kind(schema),
        required: told["required"] == true,
        text: text(description),
    }
}

fn kind(schema: &Value) -> Kind {
    if let Some(name) = schema["$ref"].as_str().and_then(|place| place.rsplit('/').next()) {
        return Kind { words: name.to_owned(), shape: Some(name.to_owned()) };
    }
    let branches = || ["oneOf", "anyOf", "allOf"].into_iter().flat_map(|word| items(&schema[word]));
    if let Some(branch) = branches().find(|branch| branch["type"] != "null") {
        let or_null = if branches().any(|branch| branch["type"] == "null") { " or null" } else { "" };
        let Kind { words, shape } = kind(branch);
        return Kind { words: words + or_null, shape };
    }
    let types = match &schema["type"] {
        Value::Array(types) => types.iter().map(string).collect::<Vec<_>>().join(" or "),
        Value::String(one) => one.clone(),
        _ => "any value".to_owned(),
    };
    if !schema["items"].is_null() {
        let Kind { words, shape } = kind(&schema["items"]);
        return Kind { words: types.replace("array", &format!("list of {words}")), shape };
    }
    let format = match schema["format"].as_str() {
        Some(format @ ("date-time" | "uuid")) => format!(", {format}"),
        _ => String::new(),
    };
    Kind { words: types + &format, shape: None }
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn text(value: &Value) -> Text {
    pieces(value.as_str().unwrap_or_default())
}

/// What stands between backticks is code.
fn pieces(text: &str) -> Text {
    text.split('`')
        .enumerate()
        .map(|(i, words)| (i % 2 == 1, words.to_owned()))
        .filter(|(_, w)| !w.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_are_told_in_words_with_the_shape_that_they_lead_to() {
        for (schema, words, shape) in [
            (json!({"type": ["string", "null"], "format": "date-time"}), "string or null, date-time", None),
            (json!({"$ref": "#/components/schemas/State"}), "State", Some("State")),
            (json!({"oneOf": [{"type": "null"}, {"$ref": "#/components/schemas/Eta"}]}), "Eta or null", Some("Eta")),
            (json!({"type": "array", "items": {"$ref": "#/c/s/Log"}}), "list of Log", Some("Log")),
            (json!({}), "any value", None),
        ] {
            let kind = kind(&schema);
            assert_eq!((kind.words.as_str(), kind.shape.as_deref()), (words, shape), "{schema}");
        }
    }

    #[test]
    fn every_operation_and_every_shape_stands_on_the_page_once() {
        let operations: usize = GROUPS.iter().map(|group| group.operations.len()).sum();
        let paths = document()["paths"].as_object().unwrap();
        assert_eq!(operations, paths.values().map(|item| item.as_object().unwrap().len()).sum::<usize>());
        assert!(GROUPS.iter().all(|group| !group.operations.is_empty()));
        assert_eq!(SHAPES.len(), document()["components"]["schemas"].as_object().unwrap().len());
        let task = SHAPES.iter().find(|shape| shape.name == "TaskSummary").unwrap();
        assert!(task.fields.len() > 30 && task.fields.iter().any(|field| field.name == "createdAt" && field.required));
    }
}
