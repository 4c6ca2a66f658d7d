//! The fields of one JSON object, taken one by one. A field that is not known is refused by its name, since it would be a
//! misspelt one that is silently lost; `null` counts as absent. All faults are told at once.

use super::error::ApiError;
use crate::core::params_check::FieldFault;
use crate::core::time::Millis;
use serde_json::{Map, Value};

/// The fields of one JSON object.
#[derive(Debug, Default)]
pub struct Fields {
    map: Map<String, Value>,
    at: String,
    faults: Vec<FieldFault>,
}

impl Fields {
    /// The fields of an object.
    #[must_use]
    pub fn new(map: Map<String, Value>) -> Self {
        Self { map, ..Self::default() }
    }

    /// The fields of an object that stands at a place of the body.
    #[must_use]
    pub fn inside(map: Map<String, Value>, at: String) -> Self {
        Self { map, at, faults: Vec::new() }
    }

    /// Notes a fault.
    pub fn fault(&mut self, name: &str, message: impl Into<String>) {
        let path = if name.is_empty() { self.at.clone() } else { format!("{}{}{name}", self.at, self.dot()) };
        self.faults.push(FieldFault::new(path, message));
    }

    fn dot(&self) -> &'static str {
        if self.at.is_empty() { "" } else { "." }
    }

    /// A field of any type; `null` counts as absent.
    pub fn value(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name).filter(|v| !v.is_null())
    }

    /// A field of any type as it was given, `null` too.
    pub fn given(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }

    /// Whether a field is there. A `null` is taken: it is absent, and not a field that nobody knows.
    pub fn has(&mut self, name: &str) -> bool {
        let null = self.map.get(name).is_some_and(Value::is_null);
        if null {
            self.map.remove(name);
        }
        self.map.contains_key(name)
    }

    /// A text.
    pub fn text(&mut self, name: &str) -> Option<String> {
        match self.value(name)? {
            Value::String(text) => Some(text),
            _ => self.wrong(name, "must be a text"),
        }
    }

    /// A text that must be there.
    pub fn required_text(&mut self, name: &str) -> Option<String> {
        if self.has(name) { self.text(name) } else { self.wrong(name, "is missing") }
    }

    /// A yes or no; absent = no.
    pub fn flag(&mut self, name: &str) -> bool {
        match self.value(name) {
            None => false,
            Some(Value::Bool(yes)) => yes,
            Some(_) => self.wrong::<bool>(name, "must be true or false").unwrap_or_default(),
        }
    }

    /// A whole number, however it is written: 1, 1.0 and 0.1e1 are one.
    pub fn whole(&mut self, name: &str) -> Option<i64> {
        // Up to here a double tells each whole number from its neighbours.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        let value = self.value(name)?;
        let fraction = || value.as_f64().filter(|f| f.fract() == 0.0 && f.abs() <= EXACT).map(|f| f as i64);
        match value.as_i64().or_else(fraction) {
            Some(n) => Some(n),
            None => self.wrong(name, "must be a whole number"),
        }
    }

    /// An instant.
    pub fn instant(&mut self, name: &str) -> Option<Millis> {
        let text = self.text(name)?;
        match Millis::parse(&text) {
            Ok(at) => Some(at),
            Err(message) => self.wrong(name, message),
        }
    }

    /// An object.
    pub fn object(&mut self, name: &str) -> Option<Self> {
        match self.value(name)? {
            Value::Object(map) => {
                Some(Self { map, at: format!("{}{}{name}", self.at, self.dot()), faults: Vec::new() })
            }
            _ => self.wrong(name, "must be an object"),
        }
    }

    /// A list of anything.
    pub fn list(&mut self, name: &str, most: usize) -> Option<Vec<Value>> {
        match self.value(name)? {
            Value::Array(items) if items.len() <= most => Some(items),
            Value::Array(_) => self.wrong(name, format!("may have at most {most} items")),
            _ => self.wrong(name, "must be a list"),
        }
    }

    /// A list that must be there.
    pub fn required_list(&mut self, name: &str, most: usize) -> Option<Vec<Value>> {
        if self.has(name) { self.list(name, most) } else { self.wrong(name, "is missing") }
    }

    /// A list of texts.
    pub fn texts(&mut self, name: &str, most: usize) -> Option<Vec<String>> {
        let items = self.list(name, most)?;
        let texts: Option<Vec<String>> = items.into_iter().map(|i| i.as_str().map(str::to_owned)).collect();
        if texts.is_some() { texts } else { self.wrong(name, "must be a list of texts") }
    }

    /// One text or a list of them; absent = none.
    pub fn text_or_texts(&mut self, name: &str, most: usize) -> Vec<String> {
        match self.map.get(name) {
            Some(Value::Array(_)) => self.texts(name, most).unwrap_or_default(),
            _ => self.text(name).into_iter().collect(),
        }
    }

    fn wrong<T>(&mut self, name: &str, message: impl Into<String>) -> Option<T> {
        self.fault(name, message);
        None
    }

    /// Takes over what is wrong with an inner object, its unknown fields included.
    pub fn absorb(&mut self, inner: Self) {
        let mut inner = inner;
        inner.name_unknown();
        self.faults.append(&mut inner.faults);
    }

    fn name_unknown(&mut self) {
        for name in std::mem::take(&mut self.map).into_iter().map(|(name, _)| name) {
            let shown: String = name.chars().take(100).collect();
            self.fault(&shown, "is not known here");
        }
    }

    /// Nothing is wrong, and no field is left over.
    ///
    /// # Errors
    /// 422 with all faults.
    pub fn finish(mut self) -> Result<(), ApiError> {
        self.name_unknown();
        if self.faults.is_empty() { Ok(()) } else { Err(ApiError::invalid(self.faults)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        let Value::Object(map) = value else { panic!("an object") };
        Fields::new(map)
    }

    #[test]
    fn every_wrong_field_is_named_and_null_is_absent() {
        let mut f = fields(json!({"a": 1, "b": "x", "c": null, "r": {"id": 7, "x": 0}, "odd": 1}));
        assert_eq!(f.text("a"), None);
        assert!(!f.flag("b"));
        assert_eq!(f.text("c"), None);
        let mut r = f.object("r").unwrap();
        assert_eq!(r.required_text("id"), None);
        assert_eq!(r.required_text("type"), None);
        f.absorb(r);
        let faults: Vec<String> = f.finish().unwrap_err().errors.iter().map(|e| e.path.clone()).collect();
        assert_eq!(faults, ["a", "b", "r.id", "r.type", "r.x", "odd"]);
    }

    #[test]
    fn what_is_right_passes() {
        let mut f = fields(json!({"at": "2026-11-29T12:00:00Z", "n": -3, "t": ["a"], "yes": true}));
        assert!(f.instant("at").is_some() && f.whole("n") == Some(-3) && f.flag("yes"));
        let mut numbers = fields(json!({"a": 1.0, "b": -0.0, "c": 1e3}));
        assert_eq!(["a", "b", "c"].map(|name| numbers.whole(name)), [Some(1), Some(0), Some(1000)]);
        assert!(fields(json!({"n": 1.5})).whole("n").is_none() && fields(json!({"n": 1e300})).whole("n").is_none());
        assert_eq!(f.texts("t", 1), Some(vec!["a".to_owned()]));
        assert!(f.finish().is_ok());
    }
}
