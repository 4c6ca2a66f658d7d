//! The README's table of guarantees, written from the tests that prove them.
//!
//! A test says in a line of its comment what it proves (`Proves: G1, G5.`). The table names exactly the tests that say
//! so, and no guarantee is without one. `TASKBELL_BLESS=1 cargo test --test it guarantees::` writes it anew.

use crate::architecture::files;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

const PAGE: &str = "README.md";
const BEGIN: &str = "<!-- guarantees: begin -->\n";
const END: &str = "<!-- guarantees: end -->";
const MARKER: &str = "/// Proves: ";

/// What is promised. A number stays with its sentence.
const GUARANTEES: &[(&str, &str)] = &[
    (
        "G1",
        "An accepted submit survives `kill -9` of the server at any point; with `synchronous = \"full\"`, the \
         default, its commit is on the disk before the answer.",
    ),
    (
        "G2",
        "At most one writer of a task is heard: a write with an old fencing token changes nothing, and the writer \
         is told.",
    ),
    (
        "G3",
        "An effect that a handler writes through taskbell happens exactly once for each chunk, whatever is \
         killed; that of a failed chunk never happens.",
    ),
    (
        "G4",
        "A task whose chunk was lost is taken up again, or fails with a reason; one whose node died within a \
         lease and a sweep.",
    ),
    ("G5", "One task for one idempotency key, whatever the race; another request under the same key is refused."),
    (
        "G7",
        "What goes between nodes only speeds them up: Redis killed, restarted, refusing or deaf, notifications \
         that are lost, or neither of both cost no page its connection, no task anything, and no page its truth \
         for longer than seconds. A log that cannot be written never fails or blocks a task; what is lost is \
         counted.",
    ),
    (
        "G8",
        "A page equals the database again after its connection was cut or the server killed, and an idle page \
         asks for no list.",
    ),
    ("G10", "SIGTERM ends the process within its grace, without using an attempt of any task."),
    ("G11", "Never more tasks hold a concurrency key than its limit, and no end leaves a slot behind."),
    (
        "G12",
        "Progress is true: for one total `current` never falls, 100 % is shown after success only, an unknown \
         total has no percentage, and what failed or was cancelled stays at its value.",
    ),
    (
        "G13",
        "The time left is foretold as a range that holds the truth 8 times in 10 on the set of the bench, and its \
         middle is nearer than that of four other rules ([docs/eta.md](docs/eta.md)).",
    ),
    (
        "G14",
        "While a PostgreSQL server is away, restarts, only reads or ends connections, callers are told to come \
         again, no task fails for it, and work goes on by itself; many nodes at once never show a deadlock to a \
         caller.",
    ),
    (
        "G15",
        "States change along the declared arrows only; success is never taken back, and asking again changes \
         nothing.",
    ),
    (
        "G16",
        "A faulty handler harms its own task only: one that never ends, eats memory, throws or answers nonsense \
         ends as the right kind of error, and the node goes on.",
    ),
    (
        "G17",
        "A chunk that goes to an application or a worker outside counts once, whatever is killed or lost on the \
         way, and a late answer changes nothing; a token of a chunk is dead when the chunk is over.",
    ),
    (
        "G18",
        "Children that a chunk submits are written with it, each once, or none is; the last one's end wakes their \
         parent, and a cancel reaches all of them.",
    ),
    (
        "G19",
        "Handlers and scripts reach listed hosts only, at the address that was checked; no redirect leads \
         elsewhere.",
    ),
    (
        "G20",
        "A pack that is switched off starts no chunk on any node from the moment of the answer, over restarts \
         too, and switched on lets exactly its own tasks go on; a serial pack never has two chunks at once.",
    ),
    ("G21", "Nothing of another tenant, or of another user below operator, can be told from what does not exist."),
    (
        "G22",
        "Outside of the demo nothing is served to a stranger, and a session ends on every node with its user's \
         password, role or row.",
    ),
    (
        "G23",
        "A WebSocket opens for our own and listed pages only, no secret proves anyone in an address or comes into \
         the log, and what clients may cost is bounded by user, address and node: floods, broken frames, slow and \
         vanished peers end themselves and cost others little.",
    ),
    (
        "G24",
        "A business record, and for operators their tenant, can be watched live: nothing outside the caller's \
         reach is told, and what the bus loses or another node commits comes all the same.",
    ),
    ("G25", "Text from anywhere is inert on every page."),
];

/// Promises to come: schedules that fire once, two versions side by side. Tests may prove parts of them already.
const NOT_YET: &[&str] = &["G6", "G9"];

/// Names of tests by the guarantee that they prove, in the order of their files.
type Proofs = BTreeMap<String, Vec<String>>;

/// The name of a function whose head is on this line.
fn function(line: &str) -> Option<&str> {
    let head = line.trim_start().trim_start_matches("pub(crate) ").trim_start_matches("pub ");
    head.trim_start_matches("async ").strip_prefix("fn ")?.split(['(', '<']).next()
}

/// Whether a function of this text is run as a test: by its attribute, or because a list of tests names it.
fn is_run(text: &str, attributes: &[&str], name: &str) -> bool {
    let is_word = |part: &str| part.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == name);
    attributes.iter().any(|attribute| attribute.contains("test]") || attribute.contains("test("))
        || text.lines().filter(|line| function(line) != Some(name)).any(is_word)
}

/// Adds what a file says; a marker that stands on no test is a fault.
fn proofs_of(path: &str, text: &str, proofs: &mut Proofs) -> Result<(), String> {
    let (mut claimed, mut attributes) = (Vec::new(), Vec::new());
    for (n, line) in text.lines().enumerate() {
        let line = line.trim_start();
        if let Some(ids) = line.strip_prefix(MARKER) {
            claimed.extend(ids.trim_end_matches('.').split(", ").map(str::to_owned));
        } else if line.starts_with("#[") {
            attributes.push(line);
        } else if let Some(name) = function(line) {
            if !claimed.is_empty() && !is_run(text, &attributes, name) {
                return Err(format!("{path}:{}: {name} is no test", n + 1));
            }
            for id in std::mem::take(&mut claimed) {
                let names = proofs.entry(id).or_default();
                if !names.iter().any(|known| known == name) {
                    names.push(name.to_owned());
                }
            }
            attributes.clear();
        } else if !line.starts_with("//") {
            attributes.clear();
            if !claimed.is_empty() {
                return Err(format!("{path}:{}: the marker before it stands on no function", n + 1));
            }
        }
    }
    Ok(())
}

fn proofs() -> Proofs {
    let mut proofs = Proofs::new();
    for (path, text) in files(&["src", "tests"]).iter().filter(|(path, _)| path.ends_with(".rs")) {
        proofs_of(path, text, &mut proofs).unwrap();
    }
    proofs
}

fn table(proofs: &Proofs) -> String {
    let mut table = "| | guarantee | proven by |\n|---|---|---|\n".to_owned();
    for (id, promise) in GUARANTEES {
        let names: Vec<String> = proofs[*id].iter().map(|name| format!("`{name}`")).collect();
        writeln!(table, "| {id} | {promise} | {} |", names.join(", ")).unwrap();
    }
    table
}

#[test]
fn the_table_of_guarantees_is_made_from_the_tests_that_prove_them() {
    let proofs = proofs();
    for id in proofs.keys() {
        let known = GUARANTEES.iter().map(|(known, _)| known).chain(NOT_YET).any(|known| known == id);
        assert!(known, "{:?} prove {id}, which nobody promises", proofs[id]);
    }
    for (id, promise) in GUARANTEES {
        assert!(proofs.contains_key(*id), "no test proves {id}: {promise}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (head, rest) = page.split_once(BEGIN).unwrap();
    let (shown, tail) = rest.split_once(END).unwrap();
    let table = table(&proofs);
    if std::env::var_os("TASKBELL_BLESS").is_some() {
        fs::write(&path, format!("{head}{BEGIN}{table}{END}{tail}")).unwrap();
    } else {
        assert!(
            shown == table,
            "{PAGE} shows another table than the tests make: TASKBELL_BLESS=1 cargo test --test it guarantees::"
        );
    }
}

#[test]
fn a_marker_counts_on_a_test_only() {
    let read = |text: &str| {
        let mut proofs = Proofs::new();
        proofs_of("f", text, &mut proofs).map(|()| proofs)
    };
    let by_attribute = format!("    {MARKER}G1, G5.\n    #[test]\n    fn a() {{\n");
    let by_list = format!("each! {{\n    b\n}}\n\n/// What it is.\n{MARKER}G1.\nasync fn b(f: &Fixture) {{\n");
    assert_eq!(read(&by_attribute).unwrap(), [("G1".into(), vec!["a".into()]), ("G5".into(), vec!["a".into()])].into());
    assert_eq!(read(&by_list).unwrap(), [("G1".into(), vec!["b".into()])].into());
    assert!(read(&format!("{MARKER}G1.\nfn c() {{\n")).is_err(), "nothing runs c");
    assert!(read(&format!("{MARKER}G1.\nstruct D;\n")).is_err(), "a type proves nothing");
}
