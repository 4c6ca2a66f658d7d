//! The typed values of a section: numbers, words of closed lists, durations, sizes, secrets.
//!
//! Each takes its range or its words from the row of the key, and falls back to the row's default after a fault, so that
//! reading goes on and the next fault is found too.

use super::super::fault::nearest;
use super::super::quantity;
use super::super::rows::Allowed;
use super::super::secret::Secret;
use super::{Choice, Section, kind};
use toml::{Table, Value};

impl Section<'_> {
    /// A whole number within the range of its row; the row's default where it is absent or at fault.
    pub(in crate::config) fn int(&mut self, key: &'static str) -> i64 {
        let row = self.row(key);
        let fallback = row.default_value().and_then(|v| v.as_integer()).unwrap_or_default();
        let Some(value) = self.value(key) else {
            return fallback;
        };
        let Allowed::Range(least, most) = row.allowed else {
            unreachable!("a number has a range in its row: {}", row.key)
        };
        match value.as_integer() {
            Some(n) if (least..=most).contains(&n) => return n,
            Some(n) => self.fault(key, format!("must be {least} to {most} {}, not {n}", row.unit).replace("  ", " ")),
            None => self.fault(key, format!("must be a whole number, not {}", kind(&value))),
        }
        fallback
    }

    /// `true` or `false`.
    pub(in crate::config) fn flag(&mut self, key: &'static str) -> bool {
        match self.value(key) {
            Some(Value::Boolean(on)) => on,
            Some(other) => {
                self.fault(key, format!("must be true or false, not {}", kind(&other)));
                false
            }
            None => false,
        }
    }

    /// One of a closed list of words; the row's default where it is absent or at fault.
    pub(in crate::config) fn choice<T: Choice>(&mut self, key: &'static str) -> T {
        let row = self.row(key);
        debug_assert!(
            matches!(row.allowed, Allowed::OneOf(words) if words.iter().eq(T::WORDS.iter().map(|(word, _)| word))),
            "the words of {} in its row and in its type agree",
            row.key
        );
        let fallback = row.default_value().and_then(|v| find_word(v.as_str()?)).unwrap_or(T::WORDS[0].1);
        let Some(text) = self.text(key) else {
            return fallback;
        };
        find_word(&text).unwrap_or_else(|| {
            self.fault(key, words_fault::<T>(&text));
            fallback
        })
    }

    /// A list of words, each from a closed list.
    pub(in crate::config) fn choices<T: Choice>(&mut self, key: &'static str) -> Vec<T> {
        let mut chosen = Vec::new();
        for text in self.texts(key) {
            match find_word(&text) {
                Some(one) => chosen.push(one),
                None => self.fault(key, words_fault::<T>(&text)),
            }
        }
        chosen
    }

    /// A list of texts.
    pub(in crate::config) fn texts(&mut self, key: &'static str) -> Vec<String> {
        let Some(value) = self.value(key) else {
            return Vec::new();
        };
        let items = match value {
            Value::Array(items) => items,
            // In the environment a list may be written with commas.
            Value::String(text) if self.cx.overrides.contains_key(&self.path_of(key)) => {
                text.split(',').map(|item| Value::String(item.trim().to_owned())).collect()
            }
            other => {
                self.fault(key, format!("must be a list of texts, not {}", kind(&other)));
                return Vec::new();
            }
        };
        let count = items.len();
        let texts: Vec<String> = items.into_iter().filter_map(|item| item.as_str().map(str::to_owned)).collect();
        if texts.len() < count || texts.iter().any(String::is_empty) {
            self.fault(key, "must hold texts only, and no empty one");
        }
        texts
    }

    /// A duration such as `"30s"` within the range of its row, in ms; none where it is absent and has no default.
    pub(in crate::config) fn duration_ms(&mut self, key: &'static str) -> Option<i64> {
        let row = self.row(key);
        let text = self.text(key)?;
        let Allowed::Duration(least, most) = row.allowed else {
            unreachable!("a duration has a range in its row: {}", row.key)
        };
        let ms = |text: &str| quantity::duration_ms(text).expect("the texts of a row are durations");
        match quantity::duration_ms(&text) {
            Ok(length) if (ms(least)..=ms(most)).contains(&length) => return Some(length),
            Ok(_) => self.fault(key, format!("must be {least} to {most}, not {text}")),
            Err(message) => self.fault(key, message),
        }
        row.default_value().and_then(|v| v.as_str().map(ms))
    }

    /// A size such as `"64MiB"`, in bytes, within the range of its row.
    pub(in crate::config) fn size_bytes(&mut self, key: &'static str) -> u64 {
        let row = self.row(key);
        let Allowed::Size(least, most) = row.allowed else {
            unreachable!("a size has a range in its row: {}", row.key)
        };
        let bytes = |text: &str| quantity::size_bytes(text).expect("the texts of a row are sizes");
        let fallback = row.default_value().and_then(|v| v.as_str().map(bytes)).unwrap_or_default();
        let Some(text) = self.text(key) else {
            return fallback;
        };
        match quantity::size_bytes(&text) {
            Ok(n) if (bytes(least)..=bytes(most)).contains(&n) => return n,
            Ok(_) => self.fault(key, format!("must be {least} to {most}, not {text}")),
            Err(message) => self.fault(key, message),
        }
        fallback
    }

    /// A secret: a text, `{ env = "NAME" }` or `{ file = "PATH" }`. Kept in the list of values to mask.
    pub(in crate::config) fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let value = self.value(key)?;
        self.one_secret(key, value)
    }

    /// A secret, or a list of them; none where one of them is at fault.
    pub(in crate::config) fn secrets(&mut self, key: &'static str) -> Option<Vec<Secret>> {
        match self.value(key)? {
            Value::Array(items) => {
                let read: Vec<_> = items.into_iter().map(|item| self.one_secret(key, item)).collect();
                read.into_iter().collect()
            }
            one => self.one_secret(key, one).map(|secret| vec![secret]),
        }
    }

    fn one_secret(&self, key: &'static str, value: Value) -> Option<Secret> {
        let path = self.path_of(key);
        let read = match value {
            Value::String(text) => Ok(text),
            Value::Table(from) => self.referred(&from),
            _ => match self.cx.overrides.get(&path) {
                Some(text) => Ok(text.clone()),
                None => Err("must be a text, { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
            },
        };
        match read {
            Ok(text) if text.is_empty() => None,
            Ok(text) => {
                let secret = Secret::new(text);
                self.cx.secrets.borrow_mut().push(secret.clone());
                Some(secret)
            }
            Err(message) => {
                self.fault(key, message);
                None
            }
        }
    }

    fn referred(&self, from: &Table) -> Result<String, String> {
        let text = match (from.get("env"), from.get("file"), from.len()) {
            (Some(Value::String(name)), None, 1) => {
                self.cx.env.get(name).cloned().ok_or_else(|| format!("the environment variable {name} is not set"))
            }
            (None, Some(Value::String(path)), 1) => {
                let path = self.cx.resolve(path);
                std::fs::read_to_string(&path)
                    .map(|text| text.trim_end_matches(['\r', '\n']).to_owned())
                    .map_err(|error| format!("the file {} cannot be read: {error}", path.display()))
            }
            _ => Err("must be a text, { env = \"NAME\" } or { file = \"PATH\" }".to_owned()),
        }?;
        if text.is_empty() { Err("the secret it names is empty".to_owned()) } else { Ok(text) }
    }
}

fn find_word<T: Choice>(text: &str) -> Option<T> {
    T::WORDS.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning)
}

fn words_fault<T: Choice>(text: &str) -> String {
    let words: Vec<&str> = T::WORDS.iter().map(|(word, _)| *word).collect();
    let guess = nearest(text, words.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
    format!("must be one of {}, not `{text}`{}", words.join(", "), guess.unwrap_or_default())
}
