//! `pack.toml`, read as the configuration is: whole, checked whole, every fault told with its file, line and key.
//!
//! Relative paths count from the pack's folder, secrets are given as in the configuration. All scripts of the folder are read
//! with it, so that what was read is one state of the pack and a later change of a file is another one.
//!
//! Must never run or parse a script, open a database, or follow a link out of the folder.

#[cfg(test)]
mod tests;

use super::action::{Action, HandlerRef};
use super::action_read;
use super::database::{self, DatabaseUrl};
use super::outside::plain_identifier;
use super::pack_place::{PackFaults, line_at, line_of};
use super::reader::{Choice, Context, Section};
use super::secret::Secret;
use super::sections::is_host;
use super::source::Source;
use crate::core::pack::{Column, ColumnKind, Pack, PackFault, Permission, Script, Table};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path};
use toml::Value;
use walkdir::WalkDir;

/// The name of a manifest.
pub const MANIFEST: &str = "pack.toml";
/// Scripts of one pack, at most.
const MOST_SCRIPTS: usize = 500;
/// Bytes of all scripts of one pack together, at most.
const MOST_BYTES: u64 = 16 << 20;

/// A pack as its folder says it: what everybody may know of it, its buttons, and where its tables are.
#[derive(Clone, Debug)]
pub struct Manifest {
    /// Name, rights, tables, scripts.
    pub pack: Pack,
    /// Its buttons; each handler is one of its scripts, with its absolute path.
    pub actions: Vec<Action>,
    /// The lines of their keys, in the same order.
    lines: Vec<Option<usize>>,
    /// The database of its tables: SQLite or PostgreSQL. None: a file of its own in the data folder.
    pub database: Option<DatabaseUrl>,
    /// Every secret value that was read, for masking.
    pub secrets: Vec<Secret>,
}

impl Manifest {
    /// Reads the pack in a folder, with the environment for `{ env = "NAME" }`.
    ///
    /// # Errors
    /// All faults at once; a manifest that is no TOML hides the rest.
    pub fn read(folder: &Path, env: &BTreeMap<String, String>) -> Result<Self, PackFaults> {
        let name = folder.file_name().unwrap_or(folder.as_os_str()).to_string_lossy().into_owned();
        let file = format!("{name}/{MANIFEST}");
        let whole = |fault: PackFault| PackFaults(vec![fault]);
        let text = std::fs::read_to_string(folder.join(MANIFEST))
            .map_err(|error| whole(PackFault::of_file(&file, format!("cannot be read: {error}"))))?;
        let table = text.parse().map_err(|error: toml::de::Error| {
            let line = Some(error.span().map_or(1, |span| line_at(&text, span.start)));
            whole(PackFault { file: file.clone(), line, reason: format!("is not valid TOML: {}", error.message()) })
        })?;
        let scripts = scripts(folder, &name).map_err(whole)?;
        let base = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let source = Source { table, overrides: BTreeMap::new(), env: env.clone(), base: base.clone() };
        let (cx, table) = Context::new(source);
        let read = manifest(Section::root(&cx, table), &name, &base, scripts);
        let faults = cx.faults.into_inner();
        match read {
            Some((pack, actions, database)) if faults.is_empty() => {
                let lines = (0..actions.len()).map(|i| line_of(&text, &format!("actions[{i}].key"))).collect();
                Ok(Self { pack, actions, lines, database, secrets: cx.secrets.into_inner() })
            }
            _ => Err(PackFaults(faults.0.iter().map(|fault| PackFault::of_key(&file, &text, fault)).collect())),
        }
    }

    /// A fault of the key of an action, by its place among them.
    #[must_use]
    pub fn fault_of_action(&self, index: usize, reason: &str) -> PackFault {
        let file = format!("{}/{MANIFEST}", self.pack.name);
        let line = self.lines.get(index).copied().flatten();
        PackFault { file, line, reason: format!("actions[{index}].key: {reason}") }
    }

    /// The key of the script that runs an action of this pack.
    #[must_use]
    pub fn script_of(&self, action: &Action, folder: &Path) -> Option<&str> {
        let HandlerRef::Script(path) = &action.handler else { return None };
        let base = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
        let key = key_in(path, &base)?;
        self.pack.scripts.get_key_value(&key).map(|(key, _)| key.as_str())
    }
}

type Read = (Pack, Vec<Action>, Option<DatabaseUrl>);

fn manifest(mut root: Section<'_>, folder: &str, base: &Path, scripts: BTreeMap<String, Script>) -> Option<Read> {
    let name = root.required_text("name");
    if let Some(name) = &name {
        if !is_pack_name(name) {
            root.fault("name", "must be [a-z0-9][a-z0-9._-]{0,63}: lower case, digits, dots, underscores, dashes");
        } else if name != folder {
            root.fault("name", format!("must be the name of the folder, which is `{folder}`"));
        }
    }
    let version = root.required_text("version");
    if version.as_ref().is_some_and(|version| version.chars().count() > 64) {
        root.fault("version", "must have at most 64 characters");
    }
    let permissions = root.choices("permissions");
    let hosts = root.texts("hosts");
    for host in hosts.iter().filter(|host| !is_host(host)) {
        root.fault("hosts", format!("`{host}` is no host or host:port, such as erp.example.com or 127.0.0.1:9000"));
    }
    let serial = root.flag("serial");
    let database = root.optional_section("database").and_then(own_database);
    let tables = tables(&mut root);
    let places: Vec<String> = root.sections_given("actions");
    let actions = action_read::actions(&mut root);
    // One that could not be read is told already, and the places of the others are not known then.
    for (action, place) in actions.iter().zip(&places).filter(|_| actions.len() == places.len()) {
        let fault = match &action.handler {
            HandlerRef::Script(path) if key_in(path, base).is_some_and(|key| scripts.contains_key(&key)) => continue,
            HandlerRef::Script(_) => "must name a file of the pack that ends in .js",
            _ => "must be a script of the pack: { script = \"file.js\" }",
        };
        root.fault(&format!("{place}.handler"), fault);
    }
    root.finish();
    let pack = Pack { name: name?, version: version?, permissions, hosts, serial, tables, scripts };
    Some((pack, actions, database))
}

/// Whether a pack, and so its folder, may be called so.
#[must_use]
pub(crate) fn is_pack_name(name: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    (1..=64).contains(&bytes.len()) && plain(bytes[0]) && bytes.iter().all(|&b| plain(b) || b"._-".contains(&b))
}

fn own_database(mut section: Section<'_>) -> Option<DatabaseUrl> {
    if !section.given("url") {
        section.fault("url", "is missing: name a sqlite: or postgres: address, or leave `database` out");
        return None;
    }
    let url = database::read(&mut section, "url");
    if let Some(DatabaseUrl::MySql(_)) = url {
        section.fault("url", "must start with sqlite: or postgres:");
    }
    section.finish();
    url
}

fn tables(root: &mut Section<'_>) -> Vec<Table> {
    let mut tables: Vec<Table> = Vec::new();
    for section in root.sections("tables") {
        let (cx, path) = (section.cx, section.path_of("name"));
        let Some(table) = table(section) else { continue };
        if tables.iter().any(|other| other.name.eq_ignore_ascii_case(&table.name)) {
            cx.faults.borrow_mut().push(path, format!("`{}` is declared twice", table.name));
        }
        tables.push(table);
    }
    tables
}

fn table(mut section: Section<'_>) -> Option<Table> {
    let name = plain_identifier(&mut section, "name", true);
    let key = plain_identifier(&mut section, "key", false);
    let columns = columns(&mut section);
    let unique = unique(&mut section);
    for column in unique.iter().flatten().filter(|name| !columns.iter().any(|c| c.name == **name)) {
        section.fault("unique", format!("`{column}` is no column of the table"));
    }
    if let Some(key) = key.as_ref().filter(|key| !columns.iter().any(|c| c.name == **key)) {
        section.fault("key", format!("`{key}` is no column of the table"));
    }
    section.finish();
    Some(Table { name: name?, key: key?, columns, unique })
}

fn columns(section: &mut Section<'_>) -> Vec<Column> {
    let Some(Value::Table(given)) = section.raw("columns") else {
        section.fault("columns", "must be a table of column = text, integer, number or boolean");
        return Vec::new();
    };
    let mut columns: Vec<Column> = Vec::new();
    for (name, kind) in given {
        let kind = kind.as_str().and_then(|word| ColumnKind::WORDS.iter().find(|(known, _)| *known == word));
        let Some((_, kind)) = kind else {
            section.fault(&format!("columns.{name}"), "must be text, integer, number or boolean");
            continue;
        };
        if !super::outside::is_identifier(&name) {
            section.fault(&format!("columns.{name}"), "must be a plain identifier: letters, digits and underscores");
        } else if columns.iter().any(|other| other.name.eq_ignore_ascii_case(&name)) {
            section.fault(&format!("columns.{name}"), "differs from another column in the size of its letters only");
        }
        columns.push(Column { name, kind: *kind });
    }
    columns
}

/// `["Code", ["Region", "Number"]]`: each entry is one column or several together.
fn unique(section: &mut Section<'_>) -> Vec<Vec<String>> {
    const SHAPE: &str = "must be a list of columns, or of lists of columns that are unique together";
    let items = match section.raw("unique") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items,
        Some(_) => {
            section.fault("unique", SHAPE);
            return Vec::new();
        }
    };
    let mut keys = Vec::new();
    for item in items {
        let columns: Option<Vec<String>> = match item {
            Value::String(name) => Some(vec![name]),
            Value::Array(names) => names.iter().map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => None,
        };
        match columns.filter(|names| !names.is_empty()) {
            Some(names) if names.iter().collect::<BTreeSet<_>>().len() == names.len() => keys.push(names),
            _ => section.fault("unique", SHAPE),
        }
    }
    keys
}

/// Every `.js` file under the folder. Links are not followed, and names that begin with a dot are passed over.
fn scripts(folder: &Path, name: &str) -> Result<BTreeMap<String, Script>, PackFault> {
    let hidden = |entry: &walkdir::DirEntry| entry.depth() > 0 && entry.file_name().to_string_lossy().starts_with('.');
    let (mut scripts, mut bytes) = (BTreeMap::new(), 0);
    for entry in WalkDir::new(folder).sort_by_file_name().into_iter().filter_entry(|entry| !hidden(entry)) {
        let entry = entry.map_err(|error| PackFault::of_file(name, format!("cannot be read: {error}")))?;
        if !entry.file_type().is_file() || entry.path().extension().is_none_or(|ending| ending != "js") {
            continue;
        }
        let Some(file) = relative(entry.path(), folder) else { continue };
        let named = format!("{name}/{file}");
        let source = std::fs::read_to_string(entry.path())
            .map_err(|error| PackFault::of_file(&named, format!("cannot be read: {error}")))?;
        bytes += source.len() as u64;
        if bytes > MOST_BYTES || scripts.len() == MOST_SCRIPTS {
            let most = format!("a pack has at most {MOST_SCRIPTS} scripts and {} MiB of them", MOST_BYTES >> 20);
            return Err(PackFault::of_file(name, most));
        }
        scripts.insert(Pack::key_of(&file).to_owned(), Script { file, source });
    }
    Ok(scripts)
}

/// The path of a file from the folder, with `/` between its parts; none for one that lies outside.
fn relative(path: &Path, folder: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.strip_prefix(folder).ok()?.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

fn key_in(path: &Path, base: &Path) -> Option<String> {
    relative(path, base)?.strip_suffix(".js").map(str::to_owned)
}

impl Choice for Permission {
    const WORDS: &'static [(&'static str, Self)] = &[("tasks:submit", Self::SubmitTasks)];
}

impl Choice for ColumnKind {
    const WORDS: &'static [(&'static str, Self)] =
        &[("text", Self::Text), ("integer", Self::Integer), ("number", Self::Number), ("boolean", Self::Boolean)];
}
