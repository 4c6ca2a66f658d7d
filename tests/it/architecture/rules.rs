//! The rules, each with the sentence that a fault is told with. To change what a layer may import: one row of [`LAYERS`].

use super::code::code_of;
use regex::Regex;
use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

/// A layer, and the layers it may import beside itself.
pub(super) const LAYERS: &[(&str, &[&str])] = &[
    ("core", &[]),
    ("config", &["core"]),
    ("store", &["core"]),
    ("bus", &["core"]),
    ("outbound", &["core"]),
    ("handler", &["core", "outbound"]),
    ("engine", &["core", "store", "bus", "outbound", "handler"]),
    ("push", &["core", "store", "bus"]),
    ("web", &["core", "store", "push", "engine"]),
    ("telemetry", &["core", "config"]),
    ("demo", &["core", "store", "handler"]),
    ("app", &["core", "config", "store", "bus", "outbound", "handler", "engine", "push", "web", "telemetry", "demo"]),
    ("cli", &["core", "config", "telemetry", "outbound", "handler", "app"]),
    ("failpoint", &[]),
    ("main", &["core", "config", "telemetry", "handler", "app", "cli"]),
];

/// Libraries that a layer must not name.
const FOREIGN: &[(&str, &[&str])] = &[
    ("core", &["tokio", "sqlx", "axum", "redis"]),
    ("config", &["sqlx", "axum"]),
    ("bus", &["sqlx", "axum"]),
    ("outbound", &["sqlx", "axum"]),
    ("handler", &["sqlx", "axum"]),
    ("engine", &["sqlx", "axum"]),
    ("store", &["axum"]),
    ("push", &["sqlx"]),
    ("web", &["sqlx"]),
    ("cli", &["sqlx", "axum"]),
];

/// The files that may read the clock of the machine, and why.
const CLOCKS: &[(&str, &str)] = &[
    ("src/core/ids.rs", "an id carries the instant it was made at"),
    ("src/store/files.rs", "an id carries the instant it was made at"),
    ("src/app/clock.rs", "the clock that everybody is given"),
    ("src/clock.rs", "the clock that everybody is given"),
    ("src/store/memory/", "the reference model has no database whose clock it could read"),
    (
        "src/store/sqlite/clock.rs",
        "the clock of a SQLite file is the machine's, and a statement that asks it costs time",
    ),
    ("src/store/beside.rs", "the age of what it keeps in memory"),
    ("src/store/postgres/clock.rs", "the server's time is reckoned on for a moment after it was told"),
    ("src/store/postgres/outdated.rs", "the pool tells the age of a connection by the machine's clock"),
    ("src/engine/measure.rs", "how long something took, for the metrics alone"),
    ("src/web/measure.rs", "how long something took, for the metrics alone"),
    ("src/cli/", "a client draws by its own clock"),
    ("src/handler/script/", "a script is stopped by real time, in a process of its own"),
];

const MOST_LINES: usize = 500;

/// What is wrong with a file, one sentence each, with its path from the root of the checkout.
pub(super) fn faults(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut tell = |sentence: String| faults.push(format!("{path}: {sentence}"));
    if let Some(mark) = find(r"\b(T[O]DO|FIXM[E]|XX[X])\b", text) {
        tell(format!("`{mark}` marks unfinished work"));
    }
    match path.rsplit_once('.').map(|(_, ending)| ending) {
        Some("rs") => {
            form(path, text, &mut tell);
            let code = code_of(text);
            unfinished(&code, &mut tell);
            if path.starts_with("src/") {
                layers(path, &code, &mut tell);
                clocks(path, &code, &mut tell);
                queues(&code, &mut tell);
            }
        }
        Some("js" | "html" | "css" | "svg") => pages(path, text, &mut tell),
        // A dump among the tests is what a database says of itself.
        Some("sql") if !path.starts_with("tests/") => statements(text, &mut tell),
        _ => {}
    }
    faults
}

fn form(path: &str, text: &str, tell: &mut impl FnMut(String)) {
    if !text.starts_with("//!") {
        tell("every file opens with `//!`: what it is for and what it must never do".into());
    }
    let lines = text.lines().count();
    if lines > MOST_LINES {
        tell(format!("{lines} lines; a file has at most {MOST_LINES}, so split it by what it is about"));
    }
    if let Some(name) = find(r"(?:^|[/_])(utils?|common|helpers?|managers?|misc)(?:[/_.]|$)", path) {
        tell(format!("`{name}` names no idea; name the file after what it is about"));
    }
}

fn unfinished(code: &str, tell: &mut impl FnMut(String)) {
    if find(r"\b(unsafe)\b", code).is_some() {
        tell("unsafe code is not written in this crate".into());
    }
    if let Some(name) = find(r"\b(todo!|unimplemented!)", code) {
        tell(format!("`{name}` is unfinished work"));
    }
    if find(r"#\[(ignore)\b", code).is_some() {
        tell("a test that is left out proves nothing".into());
    }
}

fn layers(path: &str, code: &str, tell: &mut impl FnMut(String)) {
    let inside = path.trim_start_matches("src/").trim_end_matches(".rs");
    let mut parts: Vec<&str> = inside.split('/').collect();
    if parts.last() == Some(&"mod") {
        parts.pop();
    }
    let layer = parts[0];
    if layer == "lib" {
        return;
    }
    let Some((_, allowed)) = LAYERS.iter().find(|(name, _)| *name == layer) else {
        tell(format!(
            "`{layer}` is no layer; a new one needs a row in tests/it/architecture/rules.rs and in src/lib.rs"
        ));
        return;
    };
    for (name, next) in imports(code) {
        if name == layer || !LAYERS.iter().any(|(known, _)| *known == name) {
            continue;
        }
        if !allowed.contains(&name.as_str()) {
            tell(format!("{layer} must not import {name}; it may import {}", list(allowed)));
        } else if layer == "web" && name == "engine" && !["commands", "Commands"].contains(&next.as_str()) {
            tell(format!("web may use only the engine's command handle, not engine::{next}"));
        }
    }
    for name in FOREIGN.iter().filter(|(of, _)| *of == layer).flat_map(|(_, names)| *names) {
        if find(&format!(r"(?:^|[^:\w.])({name})\s*(?:::|;)"), code).is_some() {
            tell(format!("{layer} must not name {name}"));
        }
    }
    for (line, steps) in climbs(code) {
        if steps >= parts.len() {
            tell(format!("line {line} leaves its layer by `super`; a path to another layer begins with `crate`"));
        }
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "nothing".into() } else { names.join(", ") }
}

/// The first two segments after `crate` (in the binary: after the crate's name), groups opened.
fn imports(code: &str) -> Vec<(String, String)> {
    static ROOT: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?:^|[^:\w])(?:crate|taskbell)\s*::\s*").expect("is a regular expression"));
    ROOT.find_iter(code)
        .flat_map(|root| tails(&code[root.end()..]))
        .map(|path| (segment(&path, 0), segment(&path, 1)))
        .collect()
}

fn segment(path: &str, index: usize) -> String {
    path.split("::").nth(index).unwrap_or_default().trim_matches(|c: char| !c.is_alphanumeric() && c != '_').to_owned()
}

/// The paths that begin here, one level of a `{…}` group after the other.
fn tails(code: &str) -> Vec<String> {
    let end = code.find(|c: char| !(c.is_alphanumeric() || "_: \n".contains(c))).unwrap_or(code.len());
    let head = code[..end].trim();
    if !code[end..].starts_with('{') || !(head.is_empty() || head.ends_with("::")) {
        return vec![head.to_owned()];
    }
    let (mut depth, mut start, mut found) = (0, end + 1, Vec::new());
    for (at, c) in code[end..].char_indices().map(|(at, c)| (end + at, c)) {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if (c == ',' && depth == 1) || depth == 0 {
            let part = code[start..at].trim();
            found.extend(tails(part).into_iter().filter(|tail| !tail.is_empty()).map(|tail| format!("{head}{tail}")));
            start = at + 1;
        }
        if depth == 0 {
            break;
        }
    }
    found
}

/// Chains of `super::` with their line, and the steps that lead out of the file: those inside its own modules are taken off.
fn climbs(code: &str) -> Vec<(usize, usize)> {
    static WORDS: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"\bmod\s+\w+\s*\{|(?:\bsuper\s*::\s*)+|[{}\n]").expect("is a regular expression"));
    let (mut line, mut blocks, mut found) = (1, Vec::new(), Vec::new());
    for word in WORDS.find_iter(code) {
        match word.as_str() {
            "\n" => line += 1,
            "{" => blocks.push(false),
            "}" => drop(blocks.pop()),
            text if text.starts_with("mod") => blocks.push(true),
            text => {
                let modules = blocks.iter().filter(|is_module| **is_module).count();
                found.push((line, text.matches("super").count().saturating_sub(modules)));
            }
        }
    }
    found
}

fn clocks(path: &str, code: &str, tell: &mut impl FnMut(String)) {
    let allowed = CLOCKS.iter().any(|(place, _)| path.starts_with(place));
    if let Some(name) = find(r"\b(SystemTime|Instant|UNIX_EPOCH|(?:Timestamp|Zoned|Utc|Local)::now|now_v7)\b", code)
        && !allowed
    {
        tell(format!("time comes from the clock that is passed in (core::time::Clock), not from {name}"));
    }
}

fn queues(code: &str, tell: &mut impl FnMut(String)) {
    let pattern = r"\b(unbounded(?:_channel)?|Unbounded\w*|mpsc::channel(?:::<[^;]*>)?\(\))";
    if let Some(name) = find(pattern, code) {
        tell(format!("`{name}`: a queue has a bound, and whoever finds it full is told or counted"));
    }
}

fn pages(path: &str, text: &str, tell: &mut impl FnMut(String)) {
    let markup =
        r"\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|srcdoc)\b|(\|\s*safe\b)";
    if let Some(name) = find(markup, text) {
        tell(format!("`{name}`: what comes from a task is shown by text nodes and escaped text alone"));
    }
    if let Some(name) = find(r"(\beval\s*\(|new Function\s*\(|javascript:)", text) {
        tell(format!("`{name}` makes code out of text"));
    }
    let inline = r#"(?i)<[a-z][^>]*\s(on[a-z]+)\s*=|(<script(?:\s+(?:type|nonce|defer|async)(?:="[^"]*")?)*\s*>)"#;
    if path.ends_with(".html")
        && let Some(name) = find(inline, text)
    {
        tell(format!("`{name}` is inline script, which the content security policy refuses"));
    }
}

fn statements(text: &str, tell: &mut impl FnMut(String)) {
    if !text.starts_with("--") {
        tell("a statement opens with `--`: what it is for, what it locks, which index it takes".into());
    }
    if find(r"(::)", text).is_some() {
        tell("`::` is one database's own; write CAST()".into());
    }
}

/// What the first match of a pattern names. A pattern is compiled once: there are few, and many files.
fn find(pattern: &str, text: &str) -> Option<String> {
    static KNOWN: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let regex = KNOWN
        .lock()
        .expect("a pattern that is none ends the test at once")
        .entry(pattern.to_owned())
        .or_insert_with(|| Regex::new(pattern).expect("is a regular expression"))
        .clone();
    let found = regex.captures(text)?;
    found.iter().skip(1).flatten().next().map(|part| part.as_str().to_owned())
}
