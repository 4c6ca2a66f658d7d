//! Faults that others shipped are inputs for us. docs/testing.md lists those of submitting, keys, cancelling, wake-ups,
//! retries and versions side by side by the id of their row, each with the tests that try it; here that list is held to the tests.
//!
//! A test claims a row by its name, which begins with the row's id (`c2_…`), or by a line of its comment (`Row: C2, C3.`).
//! The list names no test that does not claim the row, and says of which rows there is none yet. It is written anew by
//! `TASKBELL_BLESS=1 cargo test --test it rows::`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const PAGE: &str = "docs/testing.md";
const BEGIN: &str = "<!-- rows: begin -->\n";
const END: &str = "<!-- rows: end -->";

/// Each row, and what must hold.
const ROWS: &[(&str, &str)] = &[
    (
        "C2",
        "clicks of one key at one instant, on any node, are one task, and all others are told that they are replays",
    ),
    ("C3", "a key after its task's success: replayed, and said so, for the time it is kept; a new task after it"),
    (
        "C4",
        "one key with another request is refused by the paths that differ; order of fields and `1` or `1.0` do not matter",
    ),
    ("C8", "a key of a wrong type is refused by one rule, in single requests and in batches"),
    ("D1", "the node of a key's holder is killed: the next one starts within lease and sweep"),
    ("D4", "leases of all holders are lost again and again: as many slots are there as before"),
    ("D5", "what was switched off stays off through other changes, new versions and restarts"),
    (
        "E1",
        "a node that cannot reach the database drops its chunks when their leases end, and nothing that it still has to say is heard",
    ),
    ("E3", "clocks of nodes that are wrong, jump or drift steal no lease, hold nothing up and make no time negative"),
    ("E8", "a slow line to the database loses no lease"),
    ("E9", "nodes that were cut off across a due time run due work once when they come back"),
    ("F1", "a cancel while nobody lives ends with the lease, and the list says what it waits for"),
    ("F3", "whatever the old worker of a cancelled task tells, it stays cancelled, and the worker is told so"),
    ("F5", "what may be asked of a task in a state is the same in the API, the list and the page"),
    ("G1", "many tasks of one commit wake every node that has a place"),
    ("G3", "a tenant whose tasks are many or blocked does not hold up another's"),
    ("G5", "a signal that is sent before the commit loses no task and costs no poll"),
    ("G7", "the polls of nodes do not fall into step"),
    ("H1", "the wait before another try never wraps, whatever the number of the try"),
    ("H3", "a task that ends its node again and again fails with that reason"),
    ("H6", "a text that a database cannot take is cleaned and does not stop the failure from being kept"),
    (
        "M20",
        "what a newer version wrote in words that this one does not know is left alone, listed as unknown, and stops nothing else",
    ),
];

/// Rows that no test tries yet; for these alone the list may say so.
const NOT_YET: &[&str] = &[];
/// How it says so.
const SAID: &str = "not yet";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Tests by the row that they claim, as (name, file).
type Claims = BTreeMap<String, BTreeSet<(String, String)>>;

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}

/// The name of a function whose head is on this line.
fn function(line: &str) -> Option<&str> {
    let head = line.trim_start().trim_start_matches("pub ").trim_start_matches("async ");
    head.strip_prefix("fn ")?.split(['(', '<']).next()
}

/// The row that a name begins with.
fn row_of(name: &str) -> Option<String> {
    let (row, rest) = name.split_once('_')?;
    let letter = row.chars().next().filter(char::is_ascii_lowercase)?;
    let digits = !rest.is_empty() && row.len() > 1 && row[1..].bytes().all(|b| b.is_ascii_digit());
    digits.then(|| format!("{}{}", letter.to_ascii_uppercase(), &row[1..]))
}

fn claims_of(text: &str, file: &str, claims: &mut Claims) {
    let mut rows: Vec<String> = Vec::new();
    for line in text.lines() {
        if let Some(named) = line.trim_start().strip_prefix("/// Row: ") {
            rows.extend(named.trim_end_matches('.').split(", ").map(str::to_owned));
        } else if let Some(name) = function(line) {
            rows.extend(row_of(name));
            for row in std::mem::take(&mut rows) {
                claims.entry(row).or_default().insert((name.to_owned(), file.to_owned()));
            }
        }
    }
}

fn claims() -> Claims {
    let (mut files, mut claims) = (Vec::new(), Claims::new());
    for folder in ["src", "tests"] {
        sources(&root().join(folder), &mut files);
    }
    for path in files {
        let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
        claims_of(&fs::read_to_string(&path).unwrap(), file, &mut claims);
    }
    claims
}

fn table(claims: &Claims) -> String {
    let mut table = "| row | what must hold | tried by |\n|---|---|---|\n".to_owned();
    for (row, promise) in ROWS {
        let tests = claims.get(*row).into_iter().flatten();
        let tests: Vec<String> = tests.map(|(name, file)| format!("`{name}` in {file}")).collect();
        let tests = if tests.is_empty() { SAID.to_owned() } else { tests.join("; ") };
        writeln!(table, "| {row} | {promise} | {tests} |").unwrap();
    }
    table
}

#[test]
fn every_row_of_the_list_is_tried_by_the_tests_that_it_names() {
    let page = fs::read_to_string(root().join(PAGE)).unwrap();
    let claims = claims();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (listed, tail) = rest.split_once(END).unwrap();
    if std::env::var_os("TASKBELL_BLESS").is_some() {
        fs::write(root().join(PAGE), format!("{head}{BEGIN}{}{END}{tail}", table(&claims))).unwrap();
        return;
    }
    let lines: Vec<&str> = listed.lines().skip(2).collect();
    assert_eq!(lines.len(), ROWS.len(), "as many lines as rows");
    for ((row, promise), line) in ROWS.iter().zip(lines) {
        let tests = line.strip_prefix(&format!("| {row} | {promise} | ")).unwrap_or_else(|| panic!("{row}: {line}"));
        if tests == format!("{SAID} |") {
            assert!(NOT_YET.contains(row), "{row} was tried before");
            continue;
        }
        let names: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!names.is_empty(), "{row} is tried by no test");
        for name in names {
            let claimed = claims.get(*row).is_some_and(|tests| tests.iter().any(|(known, _)| known == name));
            assert!(claimed, "{row} is said to be tried by {name}, which does not claim it");
        }
    }
}

#[test]
fn a_test_claims_a_row_by_its_name_or_by_its_comment() {
    let text = "/// Row: D1, D4.\n#[test]\nfn leases() {}\nasync fn c2_one() {}\n    fn plain() {}\nfn c2() {}\n";
    let mut claims = Claims::new();
    claims_of(text, "f", &mut claims);
    let of = |row: &str| claims[row].iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>();
    assert_eq!((of("D1"), of("D4"), of("C2"), claims.len()), (vec!["leases"], vec!["leases"], vec!["c2_one"], 3));
}
