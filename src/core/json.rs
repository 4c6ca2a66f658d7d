//! Which JSON texts are taken at all, before anything else reads them.
//!
//! [`check`] reads raw text once, without building a value, and refuses what a later reader would silently lose (the
//! first of two equal keys), could not store on every database (U+0000), could not hold (`1e400`) or could overflow on
//! (nesting). Faults and paths name keys and positions, never values: they go into answers and logs.
//!
//! Depth counts containers: `{}` is 1, `{"a":1}` is 1, `{"a":[]}` is 2, a scalar is 0.

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use std::collections::HashSet;
use std::fmt;
use thiserror::Error;

/// Longer paths are cut, and marked with `…`.
pub(crate) const MAX_PATH_CHARS: usize = 200;

/// How many containers are nested in each other at the deepest place.
#[must_use]
pub fn depth(value: &Value) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        match value {
            Value::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Value::Object(map) => open.extend(map.values().map(|item| (item, level + 1))),
            _ => continue,
        }
        deepest = deepest.max(level);
    }
    deepest
}

/// Why a JSON text is not taken. `path` counts from the root that the caller of [`check`] named.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum JsonFault {
    /// Not JSON (or not UTF-8, or half a surrogate pair), or something after its end.
    #[error("is not valid JSON at line {line}, column {column}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1, in bytes; 0 before the first byte of a line.
        column: usize,
    },
    /// More containers in each other than allowed.
    #[error("{path} is nested deeper than {max} levels")]
    TooDeep {
        /// The first container that is too deep.
        path: String,
        /// The deepest level that is taken.
        max: usize,
    },
    /// The same key twice in one object: readers disagree about which one counts.
    #[error("{path} occurs twice")]
    DuplicateKey {
        /// The key.
        path: String,
    },
    /// The character U+0000 in a key or a text: PostgreSQL stores neither.
    #[error("{path} contains the character U+0000")]
    Nul {
        /// The value, or the object with the key.
        path: String,
    },
    /// A number beyond the range of a double, such as `1e400`.
    #[error("{path} is a number out of range")]
    NumberRange {
        /// The number.
        path: String,
    },
}

/// Reads one JSON text to its end and refuses it for the first fault found. `root` begins all paths (may be empty);
/// `max_depth` is in containers, at most 126 (the parser's own limit comes after that).
pub fn check(text: &[u8], root: &str, max_depth: usize) -> Result<(), JsonFault> {
    let mut walk = Walk { path: Path::new(root), level: 0, max_depth, fault: None };
    let mut json = serde_json::Deserializer::from_slice(text);
    let read = Node(&mut walk).deserialize(&mut json).and_then(|()| json.end());
    let Err(error) = read else { return Ok(()) };
    Err(walk.fault.unwrap_or_else(|| {
        // The parser keeps its kinds to itself; the unit tests hold this text.
        if error.to_string().starts_with("number out of range") {
            let path = walk.path.to_string();
            return JsonFault::NumberRange { path };
        }
        JsonFault::Syntax { line: error.line(), column: error.column() }
    }))
}

struct Walk {
    path: Path,
    level: usize,
    max_depth: usize,
    fault: Option<JsonFault>,
}

impl Walk {
    /// Notes what is wrong here and stops the parser.
    fn refuse<E: serde::de::Error>(&mut self, fault: fn(String) -> JsonFault) -> E {
        self.fault = Some(fault(self.path.to_string()));
        E::custom("refused")
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.level += 1;
        if self.level <= self.max_depth {
            return Ok(());
        }
        let (path, max) = (self.path.to_string(), self.max_depth);
        self.fault = Some(JsonFault::TooDeep { path, max });
        Err(E::custom("refused"))
    }
}

/// Reads one value and keeps nothing of it. A path is popped only after success, so that a fault finds it in place.
struct Node<'w>(&'w mut Walk);

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        if text.contains('\0') {
            return Err(self.0.refuse(|path| JsonFault::Nul { path }));
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.enter()?;
        for i in 0.. {
            self.0.path.steps.push(Step::Index(i));
            let more = items.next_element_seed(Node(self.0))?;
            self.0.path.steps.pop();
            if more.is_none() {
                break;
            }
        }
        self.0.level -= 1;
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        self.0.enter()?;
        let mut seen = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            if key.contains('\0') {
                return Err(self.0.refuse(|path| JsonFault::Nul { path }));
            }
            self.0.path.steps.push(Step::Key(key.clone()));
            if !seen.insert(key) {
                return Err(self.0.refuse(|path| JsonFault::DuplicateKey { path }));
            }
            map.next_value_seed(Node(self.0))?;
            self.0.path.steps.pop();
        }
        self.0.level -= 1;
        Ok(())
    }
}

pub(crate) enum Step {
    Key(String),
    Index(usize),
}

/// A place in a JSON value, written only when a fault or a difference is found there.
pub(crate) struct Path {
    root: String,
    pub(crate) steps: Vec<Step>,
}

impl Path {
    pub(crate) fn new(root: &str) -> Self {
        let root = root.to_owned();
        Self { root, steps: Vec::new() }
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = self.root.clone();
        for step in &self.steps {
            match step {
                Step::Index(i) => out.push_str(&format!("[{i}]")),
                Step::Key(key) if is_plain(key) => {
                    out.push_str(if out.is_empty() { "" } else { "." });
                    out.push_str(key);
                }
                Step::Key(key) => out.push_str(&format!("[{}]", Value::from(key.as_str()))),
            }
        }
        match out.char_indices().nth(MAX_PATH_CHARS) {
            Some((end, _)) => write!(f, "{}…", &out[..end]),
            None if out.is_empty() => f.write_str("the value"),
            None => f.write_str(&out),
        }
    }
}

/// Whether a key can stand behind a dot without quotes.
fn is_plain(key: &str) -> bool {
    let mut chars = key.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    fn nested(levels: usize) -> String {
        format!("{}{}", "[".repeat(levels), "]".repeat(levels))
    }

    #[test]
    fn depth_counts_containers_and_the_value_itself_is_one() {
        for (text, levels) in [("1", 0), ("{}", 1), (r#"{"a":1}"#, 1), (r#"{"a":[]}"#, 2), ("[[1],[[2]]]", 3)] {
            assert_eq!(depth(&parse(text)), levels, "{text}");
        }
    }

    #[test]
    fn nesting_is_taken_at_the_cap_and_refused_above_it() {
        assert_eq!(check(nested(64).as_bytes(), "params", 64), Ok(()));
        let fault = check(nested(65).as_bytes(), "params", 64).unwrap_err();
        let path = format!("params{}", "[0]".repeat(64));
        assert_eq!(fault, JsonFault::TooDeep { path, max: 64 });
        // Far beyond the stack of a recursive reader.
        assert!(matches!(check(nested(100_000).as_bytes(), "", 64), Err(JsonFault::TooDeep { .. })));
        assert!(matches!(check("[".repeat(10_000).as_bytes(), "", 64), Err(JsonFault::TooDeep { .. })));
        let side_by_side = format!("[{}]", vec![nested(3); 100].join(","));
        assert_eq!(check(side_by_side.as_bytes(), "", 4), Ok(()));
    }

    #[test]
    fn each_fault_is_told_apart_and_with_its_path() {
        let fault = |text: &str| check(text.as_bytes(), "params", 64).unwrap_err();
        let at = |path: &str| path.to_owned();
        assert_eq!(fault(r#"{"a":{"b":1,"c":2,"b":3}}"#), JsonFault::DuplicateKey { path: at("params.a.b") });
        assert_eq!(fault(r#"{"\u0061":1,"a":2}"#), JsonFault::DuplicateKey { path: at("params.a") });
        assert_eq!(fault(r#"{"a":[0,"x\u0000y"]}"#), JsonFault::Nul { path: at("params.a[1]") });
        assert_eq!(fault(r#"{"a":{"k\u0000":1}}"#), JsonFault::Nul { path: at("params.a") });
        assert_eq!(fault(r#"{"a":[1,1e400]}"#), JsonFault::NumberRange { path: at("params.a[1]") });
        assert_eq!(fault("-1e999"), JsonFault::NumberRange { path: at("params") });
        assert_eq!(fault("{\"a\":\n nope}"), JsonFault::Syntax { line: 2, column: 3 });
        for text in ["", " ", "{", "[1,]", "1 2", "NaN", r#""\ud800""#, "{\"a\":1,}", "\u{feff}{}"] {
            assert!(matches!(fault(text), JsonFault::Syntax { .. }), "{text}");
        }
        assert!(matches!(check(b"\"\xff\"", "", 64), Err(JsonFault::Syntax { .. })));
    }

    #[test]
    fn what_json_allows_is_taken() {
        for text in ["null", "-0", "1e308", "1e-400", "123456789012345678901234567890", r#"["\u0001","\ud83d\ude00"]"#]
        {
            assert_eq!(check(text.as_bytes(), "", 64), Ok(()), "{text}");
        }
    }

    /// Any JSON value up to five containers deep, without U+0000.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            proptest::num::f64::NORMAL.prop_map(Value::from),
            "[^\0]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(5, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map("[^\0]{0,4}", inner, 0..6)
                    .prop_map(|m| Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_text_check_measures_the_same_depth(value in any_json()) {
            let levels = depth(&value);
            prop_assert_eq!(check(value.to_string().as_bytes(), "", levels), Ok(()));
            if levels > 0 {
                let refused = matches!(check(value.to_string().as_bytes(), "", levels - 1), Err(JsonFault::TooDeep { .. }));
                prop_assert!(refused);
            }
        }

        #[test]
        fn no_text_makes_the_check_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = check(&bytes, "", 64);
        }
    }
}
