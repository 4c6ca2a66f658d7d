//! Reading one table of settings: types, ranges and choices come from the row that describes the key, faults are collected.
//!
//! A [`Section`] hands out its keys one by one; what was never asked for when it is finished does not exist, and is told
//! with the nearest key that does. Defaults come from [`rows`] alone, so the documentation cannot drift.

mod values;

use super::fault::{Faults, nearest};
use super::rows::{self, Row};
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

    /// The paths, from this table, of the tables of a list that was given; what is no table is passed over.
    pub(super) fn sections_given(&self, key: &str) -> Vec<String> {
        let Some(Value::Array(items)) = self.table.get(key) else { return Vec::new() };
        let tables = items.iter().enumerate().filter(|(_, item)| item.is_table());
        tables.map(|(i, _)| format!("{key}[{i}]")).collect()
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
