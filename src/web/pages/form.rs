//! Forms from a JSON Schema without a script: the fields to draw, and the params from what an urlencoded form sends.
//!
//! Knows strings (also `enum`, `format: date`, `format: file`), numbers, integers and booleans; a property of another type
//! is a text field that takes JSON. Whether the params are valid is the submit's to say: this only gives each field its
//! type. Must never take a field that the schema does not name.

use serde_json::{Map, Number, Value};
use std::collections::HashMap;

/// How a field is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// One line of text.
    Text,
    /// Several lines; also for JSON.
    Long,
    /// A number.
    Number,
    /// A day.
    Date,
    /// Yes or no.
    Check,
    /// One of some values.
    Choice,
    /// The id of an upload; the script makes a drop zone of it.
    File,
}

/// One field.
#[derive(Clone, Debug)]
pub struct Field {
    /// The property.
    pub name: String,
    /// What it is called.
    pub label: String,
    /// What it is for.
    pub help: String,
    /// How it is drawn.
    pub input: Input,
    /// Whether it has to be filled in.
    pub required: bool,
    /// What stands in it.
    pub value: String,
    /// The values of a choice, as JSON, with their labels.
    pub options: Vec<(String, String)>,
    /// What is wrong with it.
    pub error: Option<String>,
}

/// The fields of a schema in their order, with their defaults. The schema's texts are in the viewer's language already.
#[must_use]
pub fn fields(schema: &Value) -> Vec<Field> {
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object();
    properties.into_iter().flatten().map(|(name, property)| field(name, property, &required)).collect()
}

fn field(name: &str, property: &Value, required: &[&str]) -> Field {
    let title = as_label(property, "title");
    let input = input(property);
    Field {
        name: name.to_owned(),
        label: if title.is_empty() { name.to_owned() } else { title },
        help: as_label(property, "description"),
        input,
        required: required.contains(&name) && input != Input::Check,
        value: property.get("default").map(as_text).unwrap_or_default(),
        options: options(property),
        error: None,
    }
}

fn input(property: &Value) -> Input {
    if property["enum"].is_array() {
        return Input::Choice;
    }
    let format = property["format"].as_str().unwrap_or_default();
    match (kind(property), format) {
        ("string", "file") => Input::File,
        ("string", "date") => Input::Date,
        ("string", _) if property["maxLength"].as_u64().is_some_and(|n| n > 200) => Input::Long,
        ("string", _) => Input::Text,
        ("number" | "integer", _) => Input::Number,
        ("boolean", _) => Input::Check,
        _ => Input::Long,
    }
}

fn kind(property: &Value) -> &str {
    let first = |kinds: &'_ Value| kinds.as_array().and_then(|k| k.iter().find(|k| *k != "null")).cloned();
    match &property["type"] {
        Value::String(kind) => kind,
        kinds if first(kinds) == Some(Value::from("string")) => "string",
        kinds if first(kinds) == Some(Value::from("integer")) => "integer",
        kinds if first(kinds) == Some(Value::from("number")) => "number",
        kinds if first(kinds) == Some(Value::from("boolean")) => "boolean",
        _ => "",
    }
}

fn options(property: &Value) -> Vec<(String, String)> {
    let values = property["enum"].as_array();
    values.into_iter().flatten().map(|value| (value.to_string(), as_text(value))).collect()
}

fn as_label(property: &Value, keyword: &str) -> String {
    property[keyword].as_str().unwrap_or_default().to_owned()
}

fn as_text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The params that a form sent: each value in the type of its property; empty fields are left out.
#[must_use]
pub fn params(schema: &Value, sent: &HashMap<String, String>) -> Value {
    let mut params = Map::new();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let text = sent.get(name).map(String::as_str).unwrap_or_default();
        if input(property) == Input::Check {
            params.insert(name.clone(), Value::Bool(!text.is_empty()));
        } else if !text.trim().is_empty() {
            params.insert(name.clone(), typed(property, text));
        }
    }
    Value::Object(params)
}

/// A text that is no number stays a text, so that the schema's own words tell the fault.
fn typed(property: &Value, text: &str) -> Value {
    if property["enum"].is_array() {
        return serde_json::from_str(text).unwrap_or_else(|_| text.into());
    }
    match kind(property) {
        "string" => text.into(),
        "integer" => text.trim().parse::<i64>().map_or_else(|_| text.into(), Value::from),
        "number" => {
            text.trim().parse::<f64>().ok().and_then(Number::from_f64).map_or_else(|| text.into(), Value::Number)
        }
        _ => serde_json::from_str(text).unwrap_or_else(|_| text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({"type": "object", "required": ["file", "limit"], "properties": {
            "file": {"type": "string", "format": "file", "title": "CSV file"},
            "limit": {"type": "integer", "default": 10},
            "share": {"type": ["number", "null"]},
            "mode": {"enum": ["fast", 2]},
            "dry": {"type": "boolean"},
            "day": {"type": "string", "format": "date"},
            "map": {"type": "object"},
        }})
    }

    #[test]
    fn fields_are_drawn_by_their_type_and_named_by_their_title() {
        let fields = fields(&schema());
        let by_name: HashMap<_, _> = fields.iter().map(|f| (f.name.as_str(), f)).collect();
        assert_eq!(by_name["file"].label, "CSV file");
        assert_eq!(by_name["file"].input, Input::File);
        assert!(by_name["file"].required);
        assert_eq!(by_name["limit"].value, "10");
        assert_eq!(by_name["share"].input, Input::Number);
        assert_eq!(
            by_name["mode"].options,
            [("\"fast\"".to_owned(), "fast".to_owned()), ("2".to_owned(), "2".to_owned())]
        );
        assert_eq!(by_name["dry"].input, Input::Check);
        assert_eq!(by_name["map"].input, Input::Long);
    }

    #[test]
    fn what_a_form_sends_gets_the_type_of_its_property_and_nothing_else_passes() {
        let sent = [
            ("limit", "7"),
            ("share", "1.5"),
            ("mode", "2"),
            ("dry", "on"),
            ("day", " "),
            ("map", "{\"a\":1}"),
            ("evil", "x"),
        ];
        let sent = sent.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        assert_eq!(
            params(&schema(), &sent),
            json!({"limit": 7, "share": 1.5, "mode": 2, "dry": true, "map": {"a": 1}})
        );
    }

    #[test]
    fn a_text_in_a_number_field_stays_a_text_for_the_schema_to_refuse() {
        let sent = HashMap::from([("limit".to_owned(), "many".to_owned()), ("share".to_owned(), "NaN".to_owned())]);
        assert_eq!(params(&schema(), &sent), json!({"limit": "many", "share": "NaN", "dry": false}));
    }
}
