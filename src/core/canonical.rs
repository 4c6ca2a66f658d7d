//! Canonical JSON: when two requests are the same request.
//!
//! A submit under a used idempotency key is a replay when its fingerprint equals the stored one. Two values are equal
//! here when they are equal as JSON data: the order of keys does not matter and numbers compare by value
//! (`1` = `1.0` = `1e0`, `-0` = `0`). Text compares character by character, without Unicode normalisation.
//!
//! Paths name keys and positions, never values: they go into answers and logs.

use crate::core::json::{Path, Step};
use serde_json::{Number, Value};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;

/// The most paths that [`differing_paths`] tells.
pub const MAX_PATHS_COUNT: usize = 20;

/// The one text of a JSON value: compact, keys in byte order, each number in its shortest form.
#[must_use]
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Value::Number(number) => out.push_str(&canonical_number(number)),
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                out.push(if i == 0 { '[' } else { ',' });
                write_canonical(item, out);
            }
            out.push_str(if items.is_empty() { "[]" } else { "]" });
        }
        Value::Object(map) => {
            // Sorted here and not by the map, whose order depends on a feature that any dependency may switch on.
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_unstable_by_key(|(key, _)| *key);
            for (i, (key, item)) in entries.iter().enumerate() {
                out.push(if i == 0 { '{' } else { ',' });
                out.push_str(&quoted(key));
                out.push(':');
                write_canonical(item, out);
            }
            out.push_str(if entries.is_empty() { "{}" } else { "}" });
        }
    }
}

/// Whole numbers that an integer type can hold lose their point and exponent; others keep the shortest text that reads
/// back as the same double.
fn canonical_number(number: &Number) -> String {
    /// 2^64: below it a whole double and an integer token can mean the same number.
    const INTEGERS_END: f64 = 18_446_744_073_709_551_616.0;
    match number.as_f64() {
        Some(f) if number.is_f64() && f.fract() == 0.0 && f.abs() < INTEGERS_END => {
            format!("{:.0}", f + 0.0)
        }
        _ => number.to_string(),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// SHA-256, in lower-case hex, of the canonical parameters and the record (type, id): what a replay is compared by.
#[must_use]
pub fn fingerprint(params: &Value, record: Option<(&str, &str)>) -> String {
    let record = record.map(|(kind, id)| vec![kind, id]);
    hex::encode(Sha256::digest(canonical(&serde_json::json!([params, record]))))
}

/// Where `a` and `b` differ, as paths under `root` such as `params.a[2].b`: at most [`MAX_PATHS_COUNT`], in order of
/// keys, each the deepest that still holds the whole difference. Empty exactly when the canonical texts are equal.
#[must_use]
pub fn differing_paths(root: &str, a: &Value, b: &Value) -> Vec<String> {
    let mut found = Vec::new();
    walk_differences(&mut Path::new(root), a, b, &mut found);
    found
}

fn walk_differences(path: &mut Path, a: &Value, b: &Value, found: &mut Vec<String>) {
    if found.len() == MAX_PATHS_COUNT {
        return;
    }
    match (a, b) {
        (Value::Object(x), Value::Object(y)) => {
            for key in x.keys().chain(y.keys()).collect::<BTreeSet<_>>() {
                path.steps.push(Step::Key(key.clone()));
                walk_pair(path, x.get(key), y.get(key), found);
                path.steps.pop();
            }
        }
        (Value::Array(x), Value::Array(y)) => {
            for i in 0..x.len().max(y.len()) {
                path.steps.push(Step::Index(i));
                walk_pair(path, x.get(i), y.get(i), found);
                path.steps.pop();
            }
        }
        (Value::Number(x), Value::Number(y)) if canonical_number(x) == canonical_number(y) => {}
        _ if a == b => {}
        _ => found.push(path.to_string()),
    }
}

fn walk_pair(path: &mut Path, a: Option<&Value>, b: Option<&Value>, found: &mut Vec<String>) {
    match (a, b) {
        (Some(a), Some(b)) => walk_differences(path, a, b, found),
        _ if found.len() < MAX_PATHS_COUNT => found.push(path.to_string()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::json::tests::any_json;
    use crate::core::json::{MAX_PATH_CHARS, check};
    use proptest::prelude::*;
    use serde_json::json;
    use std::collections::HashSet;

    fn parse(text: &str) -> Value {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn the_same_number_has_one_text() {
        let zero = ["0", "-0", "0.0", "-0.0", "0e9", "-0e-3"];
        let one = ["1", "1.0", "1e0", "10e-1", "0.1e1"];
        let big = ["18446744073709551615", "18446744073709551615"];
        let round = ["10000000000000000000", "1e19", "10000000000000000000.0"];
        for family in [&zero[..], &one[..], &big[..], &round[..], &["1e300", "10e299"], &["-2.50", "-25e-1"]] {
            for text in family {
                assert_eq!(canonical(&parse(text)), canonical(&parse(family[0])), "{text}");
            }
        }
        assert_eq!(canonical(&parse("[1.0,-0.0,2.5,-3e0,1e-7]")), "[1,0,2.5,-3,1e-7]");
    }

    #[test]
    fn neighbours_that_a_double_cannot_tell_apart_stay_two_numbers() {
        assert_ne!(canonical(&parse("9007199254740993")), canonical(&parse("9007199254740992")));
        assert_ne!(canonical(&parse("1")), canonical(&json!("1")));
        assert_ne!(canonical(&parse("-10")), canonical(&parse("10")));
    }

    #[test]
    fn key_order_and_spaces_do_not_make_another_request() {
        let a = parse(r#"{ "b": {"y":[1, 2], "x":null}, "a": 1 }"#);
        let b = parse(r#"{"a":1.0,"b":{"x":null,"y":[1,2.0]}}"#);
        assert_eq!(canonical(&a), r#"{"a":1,"b":{"x":null,"y":[1,2]}}"#);
        assert_eq!(fingerprint(&a, None), fingerprint(&b, None));
        assert!(differing_paths("params", &a, &b).is_empty());
        assert_eq!(canonical(&json!([[], {}, "é\n\""])), "[[],{},\"é\\n\\\"\"]");
    }

    #[test]
    fn the_record_is_part_of_the_fingerprint_without_ambiguity() {
        let p = json!({"n": 1});
        let prints = [
            fingerprint(&p, None),
            fingerprint(&p, Some(("import", "1"))),
            fingerprint(&p, Some(("import", "2"))),
            fingerprint(&p, Some(("import\",\"", "1"))),
            fingerprint(&p, Some(("", ""))),
            fingerprint(&json!({"n": 2}), None),
        ];
        assert!(prints.iter().all(|p| p.len() == 64));
        assert_eq!(prints.iter().collect::<HashSet<_>>().len(), prints.len());
    }

    #[test]
    fn differences_are_told_by_path_and_never_by_value() {
        let a = json!({"n": 1, "a": [{"b": "secret-1"}, 2, 3], "only": true, "x y": 1, "same": [1, {"k": 2}]});
        let b = json!({"n": 2, "a": [{"b": "secret-2"}, 2.0], "x y": [], "same": [1.0, {"k": 2}]});
        let paths = differing_paths("params", &a, &b);
        assert_eq!(paths, ["params.a[0].b", "params.a[2]", "params.n", "params.only", "params[\"x y\"]"]);
        assert_eq!(differing_paths("params", &json!(1), &json!("1")), ["params"]);
        assert_eq!(differing_paths("", &json!(1), &json!(2)), ["the value"]);
    }

    #[test]
    fn no_more_than_twenty_short_paths_are_told() {
        let many = |v: i64| Value::Object((0..500).map(|i| (format!("k{i:03}"), json!([v]))).collect());
        let paths = differing_paths("params", &many(1), &many(2));
        assert_eq!(paths.len(), MAX_PATHS_COUNT);
        assert_eq!(paths[0], "params.k000[0]");
        let long = differing_paths("p", &json!({"é".repeat(5000): 1}), &json!({}));
        assert!(long[0].chars().count() == MAX_PATH_CHARS + 1 && long[0].ends_with('…'));
    }

    proptest! {
        #[test]
        fn canonical_text_is_json_and_a_fixed_point(value in any_json()) {
            let text = canonical(&value);
            prop_assert_eq!(check(text.as_bytes(), "", 64), Ok(()));
            prop_assert_eq!(canonical(&parse(&text)), text);
        }

        #[test]
        fn equal_canonical_text_means_no_differing_path(a in any_json(), b in any_json()) {
            prop_assert_eq!(canonical(&a) == canonical(&b), differing_paths("p", &a, &b).is_empty());
            prop_assert!(differing_paths("p", &a, &a).is_empty());
        }

    }
}
