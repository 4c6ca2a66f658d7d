//! The form of the tree, held by tests: who may import whom, what must never be named where, what each file owes its reader.
//!
//! Works on the text of the sources with comments and strings taken out, so a path in a doc comment is no import. Every rule
//! has a made-up source that breaks it, so that a rule which no longer sees anything is a failure too.

mod code;
mod rules;

use rules::faults;
use std::fs;
use std::path::{Path, PathBuf};

/// Every file under these folders of the checkout, with its path from there.
pub fn files(folders: &[&str]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut open: Vec<PathBuf> = folders.iter().map(|folder| root.join(folder)).filter(|path| path.exists()).collect();
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if let Ok(text) = fs::read_to_string(&path) {
                found.push((path.strip_prefix(root).unwrap().to_str().unwrap().to_owned(), text));
            }
        }
    }
    found.sort();
    found
}

#[test]
fn the_tree_keeps_the_rules_of_the_architecture() {
    let files = files(&["src", "tests", "benches", "examples", "static", "embed", "templates"]);
    assert!(files.iter().any(|(path, _)| path == "src/lib.rs"), "the sources are where the test looks for them");
    let faults: Vec<String> = files.iter().flat_map(|(path, text)| faults(path, text)).collect();
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn every_layer_is_told_in_the_map_of_the_crate() {
    let map = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).unwrap();
    for (layer, _) in rules::LAYERS {
        if map.contains(&format!("pub mod {layer};")) {
            assert!(
                map.contains(&format!("| [`{layer}`]")),
                "src/lib.rs has no row for the layer `{layer}` in its table"
            );
        }
    }
}

/// A made-up file that breaks one rule, and a part of the text the rule must answer with.
const BROKEN: &[(&str, &str, &str)] = &[
    ("src/core/a.rs", "//! x\nuse crate::store::Store;", "core must not import store"),
    ("src/core/a.rs", "//! x\nuse crate::{core::ids, engine};", "core must not import engine"),
    ("src/handler/a.rs", "//! x\nfn f() { crate::store::open(); }", "handler must not import store"),
    ("src/push/hub.rs", "//! x\nuse super::super::web::router;", "leaves its layer by `super`"),
    ("src/web/a.rs", "//! x\nuse crate::engine::claim::Loop;", "only the engine's command handle"),
    ("src/web/a.rs", "//! x\nuse sqlx::Row;", "web must not name sqlx"),
    ("src/push/a.rs", "//! x\nfn f(p: &sqlx::SqlitePool) {}", "push must not name sqlx"),
    ("src/engine/a.rs", "//! x\nuse axum::Router;", "engine must not name axum"),
    ("src/core/a.rs", "//! x\nasync fn f() { tokio::task::yield_now().await }", "core must not name tokio"),
    ("src/strange/a.rs", "//! x\n", "no layer"),
    ("src/core/a.rs", "use std::fmt;", "opens with `//!`"),
    ("src/core/time_util.rs", "//! x\n", "names no idea"),
    ("src/web/helpers/mod.rs", "//! x\n", "names no idea"),
    ("src/engine/a.rs", "//! x\nfn f() { let t = std::time::SystemTime::now(); }", "comes from the clock"),
    ("src/engine/a.rs", "//! x\nuse std::time::Instant;", "comes from the clock"),
    ("src/core/a.rs", "//! x\nfn f() { jiff::Timestamp::now(); }", "comes from the clock"),
    ("src/engine/a.rs", "//! x\nfn f() { let (a, b) = mpsc::unbounded_channel(); }", "a queue has a bound"),
    ("src/engine/a.rs", "//! x\nstruct S(mpsc::UnboundedSender<u8>);", "a queue has a bound"),
    ("src/engine/a.rs", "//! x\nfn f() { let (a, b) = mpsc::channel(); }", "a queue has a bound"),
    ("src/web/a.rs", "//! x\nfn f() { unsafe { g() } }", "unsafe"),
    ("tests/it/a.rs", "//! x\n#[i\u{67}nore]\n#[test]\nfn f() {}", "left out"),
    ("src/web/a.rs", "//! x\nfn f() { t\u{6f}do!() }", "unfinished"),
    ("static/a.js", concat!("// TO", "DO later"), "unfinished"),
    ("static/a.js", "row.innerHTML = text;", "text nodes"),
    ("templates/a.html", "<p>{{ message|safe }}</p>", "text nodes"),
    ("templates/a.html", "<p onclick=\"go()\">", "inline"),
    ("templates/a.html", "<script>go()</script>", "inline"),
    ("src/store/sql/logs/a.sql", "-- Reads.\nSELECT id::TEXT FROM taskbell_log", "CAST"),
    ("src/store/sql/logs/a.sql", "SELECT 1", "opens with `--`"),
];

#[test]
fn each_rule_sees_what_breaks_it() {
    for (path, text, answer) in BROKEN {
        let faults = faults(path, text);
        assert!(faults.iter().any(|fault| fault.contains(answer)), "{path} {text:?} gave {faults:?}, not {answer:?}");
    }
    let long = format!("//! x\n{}", "// y\n".repeat(500));
    assert!(faults("src/core/a.rs", &long).iter().any(|fault| fault.contains("501 lines")));
}

#[test]
fn what_only_looks_like_a_fault_is_none() {
    for (path, text) in [
        ("src/core/a.rs", "//! See [`crate::store`].\n// use crate::store::Store;\n/* crate::store */"),
        ("src/core/a.rs", "//! x\nconst TEXT: &str = \"use crate::store; unsafe { tokio::spawn }\";"),
        (
            "src/core/a.rs",
            "//! x\nconst RAW: &str = r#\"a \" unsafe\"#; const Q: char = '\"';\nfn f<'a>(x: &'a str) {}",
        ),
        ("src/store/logs/sqlite.rs", "//! x\nuse super::super::Result;\nuse super::LogStore;"),
        ("src/bus/mod.rs", "//! x\nmod tests {\n    use super::*;\n}"),
        ("src/web/a.rs", "//! x\nuse crate::engine::commands::Commands;"),
        ("templates/a.html", "<script type=\"module\" src=\"/static/bell.js\"></script>"),
    ] {
        assert_eq!(faults(path, text), Vec::<String>::new(), "{path}");
    }
}
