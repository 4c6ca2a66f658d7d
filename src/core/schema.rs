//! The texts of a params schema in the viewer's language.
//!
//! A JSON Schema has one `title` and one `description` a place. Other languages stand beside them in the annotation
//! `x-i18n`, which validators pass over: `{"title": "Rows", "x-i18n": {"zh-CN": {"title": "行数"}}}`. The form is made from
//! what [`localise_schema`] answers; submits are checked against the schema as declared.
//!
//! Data inside a schema (`const`, `default`, `enum`, `examples`) is never touched.

use super::action::Localized;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The annotation that holds the texts of other languages.
pub const OTHER_LANGUAGES: &str = "x-i18n";

/// Keywords whose value is data and no schema.
const DATA: [&str; 4] = ["const", "default", "enum", "examples"];

/// Keywords whose value names schemas freely, so that no name in it is a keyword.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// The schema with every text in a language: that language, else the same base language, else the text as declared. The
/// annotation itself is left out.
#[must_use]
pub fn localise_schema(schema: &Value, lang: &str) -> Value {
    match schema {
        Value::Array(items) => items.iter().map(|item| localise_schema(item, lang)).collect(),
        Value::Object(fields) => {
            let mut out = Map::new();
            for (key, value) in fields.iter().filter(|(key, _)| *key != OTHER_LANGUAGES) {
                let value = match (key.as_str(), value) {
                    (key, value) if DATA.contains(&key) => value.clone(),
                    (key, Value::Object(named)) if NAMED.contains(&key) => {
                        named.iter().map(|(name, schema)| (name.clone(), localise_schema(schema, lang))).collect()
                    }
                    (_, value) => localise_schema(value, lang),
                };
                out.insert(key.clone(), value);
            }
            let texts = fields.get(OTHER_LANGUAGES).and_then(Value::as_object);
            if let Some(texts) = texts.and_then(|texts| of_language(texts, lang)).and_then(Value::as_object) {
                let texts = texts.iter().filter(|(_, text)| text.is_string());
                out.extend(texts.map(|(key, text)| (key.clone(), text.clone())));
            }
            Value::Object(out)
        }
        other => other.clone(),
    }
}

/// One text of a schema (`title`, `description`) in all languages that it is given in; empty when it is in none.
#[must_use]
pub fn schema_text(schema: &Value, keyword: &str) -> Localized {
    let mut texts = BTreeMap::new();
    if let Some(text) = schema.get(keyword).and_then(Value::as_str) {
        texts.insert("en".to_owned(), text.to_owned());
    }
    for (lang, fields) in schema.get(OTHER_LANGUAGES).and_then(Value::as_object).into_iter().flatten() {
        if let Some(text) = fields.get(keyword).and_then(Value::as_str) {
            texts.insert(lang.clone(), text.to_owned());
        }
    }
    Localized(texts)
}

fn of_language<'a>(texts: &'a Map<String, Value>, lang: &str) -> Option<&'a Value> {
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    texts
        .iter()
        .find(|(tag, _)| tag.eq_ignore_ascii_case(lang))
        .or_else(|| texts.iter().find(|(tag, _)| base(tag) == base(lang)))
        .map(|(_, fields)| fields)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object",
            "description": "Imports.",
            "x-i18n": {"zh-CN": {"description": "导入。", "type": 3}},
            "properties": {
                "rows": {"type": "integer", "title": "Rows", "default": 5, "x-i18n": {"zh-CN": {"title": "行数"}}},
                "x-i18n": {"type": "object", "default": {"x-i18n": {"zh-CN": {"title": "data"}}}},
                "tags": {"type": "array", "items": {"title": "Tag", "x-i18n": {"zh-CN": {"title": "标签"}}}}
            }
        })
    }

    #[test]
    fn texts_come_in_the_language_or_its_base_and_else_as_declared() {
        for (lang, description, rows, tag) in [
            ("en", "Imports.", "Rows", "Tag"),
            ("fr", "Imports.", "Rows", "Tag"),
            ("zh-CN", "导入。", "行数", "标签"),
            ("zh", "导入。", "行数", "标签"),
            ("zh-cn", "导入。", "行数", "标签"),
        ] {
            let said = localise_schema(&schema(), lang);
            assert_eq!(said["description"], description, "{lang}");
            assert_eq!(said["type"], "object", "only texts are replaced");
            assert_eq!(said["properties"]["rows"], json!({"type": "integer", "title": rows, "default": 5}), "{lang}");
            assert_eq!(said["properties"]["tags"]["items"], json!({"title": tag}), "{lang}");
        }
    }

    #[test]
    fn data_and_a_field_that_is_named_like_the_annotation_are_left_alone() {
        let said = localise_schema(&schema(), "zh-CN");
        assert_eq!(said["properties"]["x-i18n"], schema()["properties"]["x-i18n"]);
    }

    #[test]
    fn one_text_is_read_in_all_its_languages() {
        let text = schema_text(&schema(), "description");
        assert_eq!((text.get("en"), text.get("zh-CN")), ("Imports.", "导入。"));
        assert_eq!(schema_text(&schema(), "title"), Localized::default());
    }
}
