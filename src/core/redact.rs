//! Taking secrets out of text before it is logged, stored or shown: by value, by the name beside it, by its form.
//!
//! By value: what the configuration holds, as written, percent-encoded and as it looks inside quotes. By name:
//! `password = …`, `"token": "…"`. By form: passwords in addresses, bearer tokens, API keys, signing keys, JWTs. Works on
//! text alone and in linear time; must never let a secret through because it is written in another of these ways, and would
//! rather mask a word too many.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::Regex;
use std::borrow::Cow;
use std::sync::LazyLock;

/// What stands in place of a secret.
pub const MASK: &str = "***";

/// The least length of a value of plain letters and digits that is masked wherever it occurs; a shorter one would mask
/// ordinary words, and is left to the other ways.
const LEAST_PLAIN_CHARS: usize = 4;

/// Form of a secret → what is left of it.
static FORMS: LazyLock<Vec<(Regex, String)>> = LazyLock::new(|| {
    let forms = [
        // Of a database address up to the last @, since a password that was not encoded may hold one itself.
        (r#"(?i)\b((?:postgres|postgresql|mysql|mariadb|rediss?|amqps?)://[^\s:/@"']*):[^\s"']*@"#, "$1:***@"),
        (r#"(?i)\b([a-z][a-z0-9+.-]*://[^\s:/@?#"']*):[^\s/@"']*@"#, "$1:***@"),
        (r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{8,}", "$1 ***"),
        // Whole headers: a scheme may stand before what is secret, and a cookie is a list.
        (
            r#"(?i)\b(authorization["']?\s*[=:]\s*["']?(?:(?:basic|bearer|digest|token|apikey|hmac)\s+)?)[^\s"'\\,;]+"#,
            "$1***",
        ),
        (r#"(?i)\b((?:set-)?cookie\s*:\s*)[^\r\n"'\\]+"#, "$1***"),
        (r"\btb_[A-Za-z0-9_-]{12,}", "tb_***"),
        (r"\bwhsec_[A-Za-z0-9+/=]{8,}", "whsec_***"),
        (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*", "***"),
    ];
    // A named value keeps its quotes, so that a JSON text stays one.
    let named = [
        (r#""\s*:\s*"(?:[^"\\]|\\.)*"#, "\":\"***"),
        (r#"\\"\s*:\s*\\"(?:[^"\\]|\\\\(?:\\")?)*"#, "\\\":\\\"***"),
        (r#""\s*:\s*[^\s"\\,{}\[\]]+"#, "\":\"***\""),
        (r#"\s*[=:]\s*"(?:[^"\\]|\\.)*"#, "=\"***"),
        (r"\s*[=:]\s*'[^']*", "='***"),
        (r#"\s*[=:]\s*[^\s"'\\,;&(){}\[\]]+"#, "=***"),
    ];
    let regex = |form: &str| Regex::new(form).expect("the forms are regular expressions");
    let named = named.map(|(value, left)| (regex(&format!("{NAMES}{value}")), format!("$1{left}")));
    forms.map(|(form, left)| (regex(form), left.to_owned())).into_iter().chain(named).collect()
});

/// Names beside which a value is secret. A token of another kind, such as a fencing token, is none.
const NAMES: &str = r"(?i)\b([a-z0-9_-]*(?:password|passwd|passphrase|secret|(?:api|private|secret|access|signing)[_-]?key)|pass|pwd|(?:(?:access|refresh|auth|csrf|id|session|bearer|api)[_-]?)?token|cookie|set-cookie)";

/// What each form and each name has a part of: a text without any of these is passed through at once.
static HINT: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?i)pass|pwd|secret|key|token|cookie|authorization|bearer|basic|tb_|whsec_|eyJ|://")
        .expect("the hint is a regular expression")
});

/// Masks the secrets it knows of.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Texts to mask wherever they occur, longest first.
    values: Vec<String>,
}

impl Redactor {
    /// A redactor for the values of configured secrets, beside the names and forms that every redactor knows.
    pub fn new<'s>(secrets: impl IntoIterator<Item = &'s str>) -> Self {
        let mut values: Vec<String> = secrets
            .into_iter()
            .filter(|secret| {
                let plain = secret.bytes().all(|b| b.is_ascii_alphanumeric() || b.is_ascii_whitespace());
                !secret.is_empty() && (!plain || secret.len() >= LEAST_PLAIN_CHARS)
            })
            .flat_map(|secret| {
                let quoted = format!("{secret:?}");
                let json = serde_json::Value::from(secret).to_string();
                [
                    secret.to_owned(),
                    utf8_percent_encode(secret, NON_ALPHANUMERIC).to_string(),
                    quoted[1..quoted.len() - 1].to_owned(),
                    json[1..json.len() - 1].to_owned(),
                ]
            })
            .collect();
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self { values }
    }

    /// `text` without secrets; the same text when there are none.
    #[must_use]
    pub fn clean<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for value in &self.values {
            if text.contains(value) {
                text = Cow::Owned(text.replace(value, MASK));
            }
        }
        if !HINT.is_match(&text) {
            return text;
        }
        for (form, left) in FORMS.iter() {
            if let Cow::Owned(cleaned) = form.replace_all(&text, left) {
                text = Cow::Owned(cleaned);
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn passwords_in_addresses_are_masked_however_they_are_written() {
        let redactor = Redactor::default();
        for (text, clean) in [
            ("postgres://bell:p%40ss@db/x failed", "postgres://bell:***@db/x failed"),
            ("postgres://bell:p@ss@db/x failed", "postgres://bell:***@db/x failed"),
            ("mysql://bell:p#x@db/x", "mysql://bell:***@db/x"),
            ("url=\"redis://:ü@127.0.0.1:6379\"", "url=\"redis://:***@127.0.0.1:6379\""),
            ("see https://erp.example:8443/a@b", "see https://erp.example:8443/a@b"),
            ("https://u:secret@erp.example/x", "https://u:***@erp.example/x"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
    }

    #[test]
    fn secrets_are_known_by_their_form_and_by_the_name_beside_them() {
        let redactor = Redactor::default();
        for (text, clean) in [
            ("authorization: Bearer abcdefgh12345", "authorization: Bearer ***"),
            ("key tb_0123456789abcdef made", "key tb_*** made"),
            ("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_***"),
            ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln!", "got ***!"),
            ("password=hunter2 user=alice", "password=*** user=alice"),
            (r#"{"token": "abc \" def", "n": 1}"#, r#"{"token":"***", "n": 1}"#),
            (r#"{"msg":"{\"apiKey\":\"k\\\"1\"}"}"#, r#"{"msg":"{\"apiKey\":\"***\"}"}"#),
            (r#"{"pwd":12,"secret":{"a":1}}"#, r#"{"pwd":"***","secret":{"a":1}}"#),
            (r#"secret: 'a b', token="c\"d""#, r#"secret='***', token="***""#),
            ("db_password=x&smtpPassword: y MY_API_KEY=z", "db_password=***&smtpPassword=*** MY_API_KEY=***"),
            ("accessToken=abc refresh_token: def", "accessToken=*** refresh_token=***"),
            ("Authorization: Digest abc", "Authorization: Digest ***"),
            ("authorization=s3cr3t done", "authorization=*** done"),
            (r#"{"Authorization":"Basic YWxhZGRpbjpvcGVu"}"#, r#"{"Authorization":"Basic ***"}"#),
            ("Cookie: sid=abc; theme=dark\nnext", "Cookie=***\nnext"),
            ("fencing_token=3 task=4", "fencing_token=3 task=4"),
            ("the token of the lease is stale", "the token of the lease is stale"),
        ] {
            assert_eq!(redactor.clean(text), clean);
        }
    }

    #[test]
    fn short_values_are_masked_only_where_they_are_no_ordinary_word() {
        let redactor = Redactor::new(["ü", "a", "p#x", ""]);
        assert_eq!(redactor.clean("a cat, ü and p#x"), "a cat, *** and ***");
    }

    proptest! {
        /// Whatever the secret, it does not come through: bare, encoded, in JSON or in a debug text.
        #[test]
        fn a_configured_value_never_comes_through(secret in "[^*]{4,20}", before in "[a-z ]{0,9}", after in "[a-z ]{0,9}") {
            let redactor = Redactor::new([secret.as_str()]);
            prop_assume!(!secret.trim().is_empty());
            let encoded = utf8_percent_encode(&secret, NON_ALPHANUMERIC).to_string();
            for text in [secret.clone(), encoded, format!("{secret:?}"), serde_json::Value::from(secret.as_str()).to_string()] {
                let cleaned = redactor.clean(&format!("{before}{text}{after}")).into_owned();
                prop_assert!(!cleaned.contains(&secret), "{cleaned}");
            }
        }
    }
}
