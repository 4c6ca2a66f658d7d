//! The params of an action, held against the JSON Schema that it declares.
//!
//! Faults name the field and the rule, never the value: they go into answers and logs. Patterns are matched in linear time,
//! so no schema can make a submit slow. Nothing is fetched: a schema that points elsewhere does not compile.

use super::json::{Path, Step};
use jsonschema::error::ValidationErrorKind;
use jsonschema::paths::LocationSegment;
use jsonschema::{PatternOptions, ValidationError, Validator};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// The most faults that one answer tells.
pub const MAX_FAULTS_COUNT: usize = 50;
/// Longer messages are cut.
const MESSAGE_CHARS: usize = 300;

/// What is wrong with one field of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldFault {
    /// Which field, such as `params.rows[2].name`.
    pub path: String,
    /// The rule it breaks, to be read behind the path.
    pub message: String,
}

impl FieldFault {
    /// A fault of a field.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into() }
    }
}

/// A compiled schema.
#[derive(Debug)]
pub struct ParamsCheck(Validator);

impl ParamsCheck {
    /// Compiles a schema.
    ///
    /// # Errors
    /// Why it cannot be used, in words.
    pub fn new(schema: &Value) -> Result<Self, String> {
        jsonschema::options()
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map(Self)
            .map_err(|e| e.to_string())
    }

    /// All that is wrong with these params, at most [`MAX_FAULTS_COUNT`].
    #[must_use]
    pub fn faults(&self, params: &Value) -> Vec<FieldFault> {
        self.0.iter_errors(params).flat_map(|e| told(&e)).take(MAX_FAULTS_COUNT).collect()
    }
}

fn told(error: &ValidationError<'_>) -> Vec<FieldFault> {
    let below = |name: &str, message: &str| {
        let mut path = place(error);
        path.steps.push(Step::Key(name.to_owned()));
        FieldFault::new(path.to_string(), message)
    };
    match error.kind() {
        ValidationErrorKind::Required { property } => vec![below(property.as_str().unwrap_or_default(), "is missing")],
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            unexpected.iter().map(|name| below(name, "is not known here")).collect()
        }
        ValidationErrorKind::FalseSchema => vec![FieldFault::new(place(error).to_string(), "is not allowed here")],
        _ => {
            let text = error.masked_with("the value").to_string();
            vec![FieldFault::new(place(error).to_string(), text.chars().take(MESSAGE_CHARS).collect::<String>())]
        }
    }
}

fn place(error: &ValidationError<'_>) -> Path {
    let mut path = Path::new("params");
    path.steps.extend(error.instance_path().iter().map(|segment| match segment {
        LocationSegment::Property(name) => Step::Key(name.into_owned()),
        LocationSegment::Index(i) => Step::Index(i),
    }));
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Map, json};

    fn faults(schema: &Value, params: &Value) -> Vec<(String, String)> {
        ParamsCheck::new(schema).unwrap().faults(params).into_iter().map(|f| (f.path, f.message)).collect()
    }

    #[test]
    fn each_fault_names_its_field_and_never_the_value() {
        let schema = json!({"type": "object", "required": ["file", "x y"], "additionalProperties": false, "properties": {
            "file": {"type": "string"}, "x y": {}, "n": {"type": "integer", "minimum": 1},
            "rows": {"type": "array", "items": {"enum": ["a", "b"]}}, "code": {"pattern": "^[0-9]+$"}}});
        let params = json!({"n": -77, "rows": ["a", "secret-1"], "code": "secret-2", "other": "secret-3"});
        let found = faults(&schema, &params);
        let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
        for path in ["params.file", "params[\"x y\"]", "params.n", "params.rows[1]", "params.code", "params.other"] {
            assert!(paths.contains(&path), "{path} in {paths:?}");
        }
        assert_eq!(found.len(), 6, "{found:?}");
        assert!(found.iter().all(|(_, m)| !m.contains("secret") && !m.contains("77")), "{found:?}");
        assert!(faults(&schema, &json!({"file": "f", "x y": 1, "n": 1})).is_empty());
    }

    #[test]
    fn a_schema_that_points_elsewhere_or_backtracks_is_refused() {
        assert!(ParamsCheck::new(&json!({"$ref": "https://elsewhere.example/s.json"})).is_err());
        assert!(ParamsCheck::new(&json!({"properties": {"a": {"pattern": "(?=a)b"}}})).is_err());
        assert!(ParamsCheck::new(&json!({})).is_ok());
    }

    #[test]
    fn many_faults_are_bounded() {
        let params: Value = (0..1000).map(|i| (format!("k{i}"), json!(1))).collect::<Map<_, _>>().into();
        assert_eq!(
            faults(&json!({"additionalProperties": false, "properties": {"a": {}}}), &params).len(),
            MAX_FAULTS_COUNT
        );
    }
}
