//! Where settings come from: one TOML file and the environment, merged into one table before anything is read.
//!
//! `TASKBELL__DATABASE__URL` is `database.url`; `TASKBELL__ACTIONS__0__ROLES` is `actions[0].roles`. The environment wins. A
//! value is taken as TOML where it parses (numbers, booleans, arrays, inline tables), else as text; the text as given is
//! kept too, so that a password made of digits stays a text. Values never enter a message from here.

use super::fault::Faults;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use toml::{Table, Value};

/// The prefix of every setting in the environment.
pub const ENV_PREFIX: &str = "TASKBELL__";

/// This process's environment, without what is no Unicode text.
pub fn environment() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

/// The merged settings, not read yet.
pub(super) struct Source {
    /// All settings as one tree.
    pub table: Table,
    /// Settings given by the environment: path as in a fault → text as given.
    pub overrides: BTreeMap<String, String>,
    /// The whole environment, for `{ env = "NAME" }`.
    pub env: BTreeMap<String, String>,
    /// The folder that relative paths count from.
    pub base: PathBuf,
}

impl Source {
    /// Reads the file, if there is one, else the `built_in` text, and lays the environment over it.
    pub fn gather(
        file: Option<&Path>,
        built_in: &str,
        env: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, Faults> {
        let mut faults = Faults::default();
        let mut table = match file {
            Some(path) => read_file(path).unwrap_or_else(|message| {
                faults.push(path.display().to_string(), message);
                Table::new()
            }),
            None => built_in.parse().expect("a built-in configuration is TOML"),
        };
        let env: BTreeMap<String, String> = env.collect();
        let mut overrides = BTreeMap::new();
        let mut given: Vec<(Vec<String>, &String, &String)> = env
            .iter()
            .filter_map(|(name, text)| {
                let path = name.strip_prefix(ENV_PREFIX)?;
                Some((path.split("__").map(str::to_lowercase).collect(), name, text))
            })
            .collect();
        // Indices in the order of numbers, so that entry 10 comes after entry 9.
        given.sort_by_cached_key(|(segments, ..)| segments.iter().map(|s| format!("{s:0>8}")).collect::<Vec<_>>());
        for (segments, name, text) in given {
            if segments.iter().any(String::is_empty) {
                faults.push(name, "names no setting: write TASKBELL__SECTION__KEY");
                continue;
            }
            match place(&mut table, &segments, parse_value(text)) {
                Ok(()) => {
                    overrides.insert(path_of(&segments), text.clone());
                }
                Err(message) => faults.push(name, message),
            }
        }
        if !faults.is_empty() {
            return Err(faults);
        }
        let base = file.and_then(Path::parent).filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let base = std::path::absolute(base).unwrap_or_else(|_| base.to_path_buf());
        Ok(Self { table, overrides, env, base })
    }
}

fn read_file(path: &Path) -> Result<Table, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("cannot be read: {error}"))?;
    text.parse::<Table>().map_err(|error| {
        // The error's own Display quotes the line, which may hold a secret: only its place and its reason are told.
        let before = |at: usize| text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        let line = error.span().map_or(1, |span| 1 + before(span.start));
        format!("line {line} is not valid TOML: {}", error.message())
    })
}

fn parse_value(text: &str) -> Value {
    text.parse::<Value>().unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn path_of(segments: &[String]) -> String {
    let mut path = String::new();
    for segment in segments {
        if segment.bytes().all(|b| b.is_ascii_digit()) {
            path.push_str(&format!("[{segment}]"));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(segment);
        }
    }
    path
}

/// Puts `value` at the place that `segments` name; a number is an index, at most one past the end of its list.
fn place(table: &mut Table, segments: &[String], value: Value) -> Result<(), String> {
    let (key, rest) = segments.split_first().ok_or("names no setting")?;
    if rest.is_empty() {
        table.insert(key.clone(), value);
        return Ok(());
    }
    let inner_is_list = rest[0].bytes().all(|b| b.is_ascii_digit());
    let slot = table
        .entry(key.clone())
        .or_insert_with(|| if inner_is_list { Value::Array(Vec::new()) } else { Value::Table(Table::new()) });
    match slot {
        Value::Table(inner) => place(inner, rest, value),
        Value::Array(items) => {
            let index: usize = rest[0].parse().map_err(|_| format!("`{key}` is a list: write its index"))?;
            if index > items.len() {
                return Err(format!("index {index} is past the end of `{key}`, which has {} entries", items.len()));
            }
            if rest.len() == 1 {
                if index == items.len() {
                    items.push(value);
                } else {
                    items[index] = value;
                }
                return Ok(());
            }
            if index == items.len() {
                items.push(Value::Table(Table::new()));
            }
            match &mut items[index] {
                Value::Table(inner) => place(inner, &rest[1..], value),
                _ => Err(format!("`{key}[{index}]` is no table")),
            }
        }
        _ => Err(format!("`{key}` is a single value, not a table")),
    }
}
