//! The sections about the world outside: receivers of events, business records.
//!
//! All of it is read and checked in full, also what this version does not act on yet, so that a configuration that is valid
//! now stays valid. Names of tables and columns come from here only and are plain identifiers.

use super::reader::{Choice, Section};
use super::secret::Secret;
use super::sections::http_url;
use crate::core::signing::SigningKeys;
use crate::core::task::State;
use std::collections::BTreeMap;
use toml::Value;
use url::Url;

/// One entry of `[[webhooks]]`.
#[derive(Clone, Debug)]
pub struct Webhook {
    /// Where events go.
    pub url: Url,
    /// What signs them.
    pub keys: SigningKeys,
    /// Which events: `task.*` or full names.
    pub events: Vec<String>,
}

/// Who of a tenant sees that a record has a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The owner of the task.
    Owner,
    /// Everyone of the tenant: state, numbers, starter and times.
    Tenant,
}

/// Columns of a business table that show the state of tasks.
#[derive(Clone, Debug)]
pub struct WriteBack {
    /// The table.
    pub table: String,
    /// Its key column.
    pub key: String,
    /// What is written → its column.
    pub columns: BTreeMap<&'static str, String>,
    /// State → the word written for it.
    pub words: BTreeMap<String, String>,
}

/// One entry of `[[records]]`.
#[derive(Clone, Debug)]
pub struct RecordType {
    /// The type of record.
    pub name: String,
    /// The way back from a task to its record, with `{id}`.
    pub url: Option<String>,
    /// Who of the tenant sees its tasks.
    pub visibility: Visibility,
    /// The business table to keep up to date.
    pub write_back: Option<WriteBack>,
}

impl Choice for Visibility {
    const WORDS: &'static [(&'static str, Self)] = &[("owner", Self::Owner), ("tenant", Self::Tenant)];
}

const EVENTS: &[&str] =
    &["created", "started", "progressed", "succeeded", "failed", "cancelled", "paused", "resumed", "retried"];

pub(super) fn webhooks(root: &mut Section<'_>) -> Vec<Webhook> {
    root.sections("webhooks").into_iter().filter_map(webhook).collect()
}

fn webhook(mut section: Section<'_>) -> Option<Webhook> {
    if !section.given("url") {
        section.fault("url", "is missing");
    }
    let url = http_url(&mut section, "url");
    let keys = signing_keys(&mut section);
    let events = section.texts("events");
    for event in &events {
        let known = event.strip_prefix("task.").is_some_and(|name| name == "*" || EVENTS.contains(&name));
        if !known {
            section.fault(
                "events",
                format!("`{event}` is no event: write task.* or task. and one of {}", EVENTS.join(", ")),
            );
        }
    }
    section.finish();
    Some(Webhook { url: url?, keys: keys?, events })
}

/// The keys of Standard Webhooks signatures: a secret of `whsec_` and at least 24 bytes in base64, or two of them while it
/// is changed, the new one first.
pub(super) fn signing_keys(section: &mut Section<'_>) -> Option<SigningKeys> {
    if !section.given("secret") {
        section.fault("secret", "is missing: calls are signed");
    }
    let secrets = section.secrets("secret")?;
    if secrets.len() > 2 {
        section.fault("secret", "must be one secret, or two while it is changed");
    }
    let keys = SigningKeys::parse(secrets.iter().map(Secret::expose));
    if keys.is_none() {
        section.fault("secret", "must be whsec_ followed by 24 bytes or more in base64");
    }
    keys
}

pub(super) fn records(root: &mut Section<'_>) -> Vec<RecordType> {
    let mut records: Vec<RecordType> = Vec::new();
    for section in root.sections("records") {
        let key = section.path_of("type");
        let cx = section.cx;
        if let Some(record) = record(section) {
            if records.iter().any(|other| other.name == record.name) {
                cx.faults.borrow_mut().push(key, format!("`{}` is declared twice", record.name));
            }
            records.push(record);
        }
    }
    records
}

fn record(mut section: Section<'_>) -> Option<RecordType> {
    let name = section.required_text("type");
    if name.as_ref().is_some_and(|name| !is_record_type(name)) {
        section.fault("type", RECORD_TYPE);
    }
    let url = section.text("url");
    if let Some(url) = &url {
        let filled = url.replace("{id}", "1");
        let own_path = filled.starts_with('/') && !filled.starts_with("//");
        let outside = Url::parse(&filled).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        if !url.contains("{id}") || !(own_path || outside) {
            section.fault("url", "must be an http or https address, or a path that starts with /, and hold {id}");
        }
    }
    let visibility = section.choice("visibility");
    let write_back = section.optional_section("write_back").and_then(write_back);
    section.finish();
    Some(RecordType { name: name?, url, visibility, write_back })
}

/// What a type of record may be called: it stands before a colon in `record=type:id`.
pub(super) const RECORD_TYPE: &str = "must be 1 to 100 characters without colons, slashes and spaces";

pub(super) fn is_record_type(name: &str) -> bool {
    name.chars().count() <= 100
        && !name.contains([':', '/'])
        && !name.contains(|c: char| c.is_whitespace() || c.is_control())
}

fn write_back(mut section: Section<'_>) -> Option<WriteBack> {
    let table = identifier(&mut section, "table", true);
    let key = identifier(&mut section, "key", true);
    let mut columns = BTreeMap::new();
    for what in ["status", "task", "progress", "eta"] {
        if let Some(column) = identifier(&mut section, what, false) {
            columns.insert(what, column);
        }
    }
    if columns.is_empty() {
        section.fault("status", "is missing: name at least one of status, task, progress and eta");
    }
    let words = words(&mut section);
    section.finish();
    Some(WriteBack { table: table?, key: key?, columns, words })
}

/// A plain identifier of a schema: a table, perhaps with its schema before a dot, or a column.
fn identifier(section: &mut Section<'_>, key: &'static str, required: bool) -> Option<String> {
    named(section, key, required, |name| name.split('.').all(is_identifier))
}

/// The same without a dot.
pub(super) fn plain_identifier(section: &mut Section<'_>, key: &'static str, required: bool) -> Option<String> {
    named(section, key, required, is_identifier)
}

fn named(section: &mut Section<'_>, key: &'static str, required: bool, good: fn(&str) -> bool) -> Option<String> {
    let name = if required { section.required_text(key) } else { section.text(key) }?;
    if !good(&name) {
        section.fault(key, "must be a plain identifier: letters, digits and underscores");
        return None;
    }
    Some(name)
}

/// Letters, digits and underscores, at most 63, no digit first.
pub(super) fn is_identifier(name: &str) -> bool {
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts && name.len() <= 63 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

fn words(section: &mut Section<'_>) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    match section.raw("words") {
        None => {}
        Some(Value::Table(table)) => {
            for (state, word) in table {
                match word {
                    Value::String(word) if State::parse(&state).is_some() => {
                        words.insert(state, word);
                    }
                    Value::String(_) => {
                        let states = State::ALL.map(State::as_str).join(", ");
                        section.fault("words", format!("`{state}` is no state: {states}"));
                    }
                    _ => section.fault("words", format!("the word for `{state}` must be a text")),
                }
            }
        }
        Some(_) => section.fault("words", "must be a table of state = text"),
    }
    words
}
