//! Reading one table of settings: types, ranges and choices come from the row that describes the key, faults are collected.
//!
//! A [`Section`] hands out its keys one by one; what was never asked for when it is finished does not exist, and is told
//! with the nearest key that does. Defaults come from [`rows`](super::rows) alone, so the documentation cannot drift.

use super::fault::{Faults, nearest};
use super::quantity;
use super::rows::{self, Allowed, Row};
use super::secret::Secret;
use super::source::Source;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};
use url::Url;

/// A closed list of words for a setting, with what each stands for.
pub(super) trait Choice: Sized + Copy + 'static {
    /// Word in the configuration → meaning; the same words, in the same order, as in the row of the key.
    const WORDS: &'static [(&'static str, Self)];
}

/// What all sections of one configuration share.
pub(super) struct Context {
    pub(super) faults: RefCell<Faults>,
    pub(super) secrets: RefCell<Vec<Secret>>,
    overrides: BTreeMap<String, String>,
    env: BTreeMap<String, String>,
    base: PathBuf,
}

impl Context {
    /// Splits a source into its table and what is needed to read it.
    pub(super) fn new(source: Source) -> (Self, Table) {
        let Source { table, overrides, env, base } = source;
        (Self { faults: RefCell::default(), secrets: RefCell::default(), overrides, env, base }, table)
    }

    /// An absolute path; a relative one counts from the configuration file.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.base.join(Path::new(path))
    }

    /// Keeps the password of an address among the values to mask, as written and as it reads.
    pub(super) fn keep_password(&self, address: &str) {
        let Some(password) = Url::parse(address).ok().and_then(|url| url.password().map(str::to_owned)) else {
            return;
        };
        let plain = percent_encoding::percent_decode_str(&password).decode_utf8_lossy().into_owned();
        let mut secrets = self.secrets.borrow_mut();
        secrets.extend([Secret::new(plain), Secret::new(password)]);
    }
}

/// One table, while it is read.
pub(super) struct Section<'c> {
    pub(super) cx: &'c Context,
    path: String,
    shape: String,
    table: Table,
    asked: Vec<&'static str>,
}

impl<'c> Section<'c> {
    /// The outermost table.
    pub(super) fn root(cx: &'c Context, table: Table) -> Self {
        Self { cx, path: String::new(), shape: String::new(), table, asked: Vec::new() }
    }

    /// Records a fault of `key` in this table.
    pub(super) fn fault(&self, key: &str, message: impl Into<String>) {
        self.cx.faults.borrow_mut().push(join(&self.path, key), message);
    }

    /// The full path of `key`, as it is named in faults and notes.
    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.path, key)
    }

    /// Whether the key was given at all.
    pub(super) fn given(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Tells every key that nothing asked for.
    pub(super) fn finish(self) {
        for key in self.table.keys() {
            let known = self.asked.iter().copied();
            match nearest(key, known) {
                Some(near) => self.fault(key, format!("does not exist; did you mean `{near}`?")),
                None => self.fault(key, "does not exist"),
            }
        }
    }

    fn take(&mut self, key: &'static str) -> Option<Value> {
        self.asked.push(key);
        self.table.remove(key)
    }

    fn row(&self, key: &str) -> &'static Row {
        let shape = join(&self.shape, key);
        rows::find(&shape).unwrap_or_else(|| panic!("every setting that is read has its row: {shape} has none"))
    }

    /// The value as given, or the default of its row.
    fn value(&mut self, key: &'static str) -> Option<Value> {
        let row = self.row(key);
        self.take(key).or_else(|| row.default_value())
    }

    /// A table below this one; empty when absent.
    pub(super) fn section(&mut self, key: &'static str) -> Section<'c> {
        let table = match self.take(key) {
            None => Table::new(),
            Some(Value::Table(table)) => table,
            Some(_) => {
                self.fault(key, "must be a table");
                Table::new()
            }
        };
        Section { cx: self.cx, path: join(&self.path, key), shape: join(&self.shape, key), table, asked: Vec::new() }
    }

    /// A table below this one, when given.
    pub(super) fn optional_section(&mut self, key: &'static str) -> Option<Section<'c>> {
        if self.given(key) {
            return Some(self.section(key));
        }
        self.asked.push(key);
        None
    }

    /// A list of tables; empty when absent.
    pub(super) fn sections(&mut self, key: &'static str) -> Vec<Section<'c>> {
        let items = match self.take(key) {
            None => Vec::new(),
            Some(Value::Array(items)) => items,
            Some(_) => {
                self.fault(key, format!("must be a list of tables: write [[{}]] for each", self.path_of(key)));
                Vec::new()
            }
        };
        let mut sections = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            let path = format!("{}[{i}]", join(&self.path, key));
            match item {
                Value::Table(table) => sections.push(Section {
                    cx: self.cx,
                    path,
                    shape: format!("{}[]", join(&self.shape, key)),
                    table,
                    asked: Vec::new(),
                }),
                _ => self.cx.faults.borrow_mut().push(path, "must be a table"),
            }
        }
        sections
    }

    /// A value of any shape, with no default: for keys that take more than one shape.
    pub(super) fn raw(&mut self, key: &'static str) -> Option<Value> {
        self.row(key);
        self.take(key)
    }

    /// A text; the empty text counts as absent. Digits given by the environment stay the text they were.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let path = self.path_of(key);
        let text = match self.value(key)? {
            Value::String(text) => text,
            other => match self.cx.overrides.get(&path) {
                Some(text) => text.clone(),
                None => {
                    self.fault(key, format!("must be a text, not {}", kind(&other)));
                    return None;
                }
            },
        };
        if text.contains('\0') {
            self.fault(key, "must not hold a NUL character");
            return None;
        }
        (!text.is_empty()).then_some(text)
    }

    /// A text that has to be there.
    pub(super) fn required_text(&mut self, key: &'static str) -> Option<String> {
        match self.table.get(key) {
            None if self.row(key).default.is_empty() => self.fault(key, "is missing"),
            Some(Value::String(text)) if text.is_empty() => self.fault(key, "must not be empty"),
            _ => {}
        }
        self.text(key)
    }

    /// A whole number within the range of its row; the row's default where it is absent or at fault.
    pub(super) fn int(&mut self, key: &'static str) -> i64 {
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
    pub(super) fn flag(&mut self, key: &'static str) -> bool {
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
    pub(super) fn choice<T: Choice>(&mut self, key: &'static str) -> T {
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
    pub(super) fn choices<T: Choice>(&mut self, key: &'static str) -> Vec<T> {
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
    pub(super) fn texts(&mut self, key: &'static str) -> Vec<String> {
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
    pub(super) fn duration_ms(&mut self, key: &'static str) -> Option<i64> {
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
    pub(super) fn size_bytes(&mut self, key: &'static str) -> u64 {
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
    pub(super) fn secret(&mut self, key: &'static str) -> Option<Secret> {
        let path = self.path_of(key);
        let read = match self.value(key)? {
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

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a fraction",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::Table(_) => "a table",
    }
}
