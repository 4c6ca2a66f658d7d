//! Power cuts, replayed: a node works on a SQLite file while everything that is written to it is recorded, with its syncs
//! (`recorder.c`). Then the file is made as a cut at any place may leave it: what a sync that had ended covered is there, and
//! of the rest any sectors in any mixture. Whatever was answered before the cut is in it, and it is sound.

use crate::invariants::{all_tasks, assert_invariants};
use crate::rig::nodes::{Nodes, Work};
use crate::rig::{dice, long, test};
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use rand::RngExt as _;
use rand::rngs::StdRng;
use sqlx::Connection as _;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use taskbell::store::migrate::Mode;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};

pub fn tests() -> Vec<Trial> {
    vec![
        test("a_power_cut_at_any_place_loses_nothing_that_was_answered", || {
            a_power_cut_at_any_place_loses_nothing_that_was_answered()
        }),
        test("a_cut_is_noticed_where_commits_do_not_wait_for_the_disk", || {
            a_cut_is_noticed_where_commits_do_not_wait_for_the_disk()
        }),
    ]
}

/// What a disk writes whole or not at all, bytes.
const SECTOR: usize = 512;
const CLICKERS: usize = 4;
const WORK: Work = Work { chunks: 3, items: 2, pause: Duration::from_millis(20) };
const HEAD: usize = 24;

/// A step of a recording; it happened when all before it had.
enum Step {
    /// Bytes of the recording went to a place in a file.
    Written {
        at: usize,
        bytes: Range<usize>,
    },
    Truncated {
        length: usize,
    },
    SyncBegins {
        number: u64,
    },
    SyncEnded {
        number: u64,
    },
    Removed,
}

/// What a node did to the files of its database, and what it answered meanwhile.
struct Recording {
    /// The files before it, by what their names have after that of the database; all of it is on the disk.
    base: BTreeMap<String, Vec<u8>>,
    bytes: Vec<u8>,
    /// Each with the file, and where its record ends.
    steps: Vec<(usize, String, Step)>,
    /// Tasks that were promised, with the length that the recording had then.
    answered: Vec<(usize, String)>,
}

impl Recording {
    /// Lets a node work for a while.
    async fn of(synchronous: &str, time: Duration) -> Self {
        let ground = Arc::new(Ground::sqlite().await);
        let nodes = Nodes::start(Arc::clone(&ground), 1, &[("DATABASE__SYNCHRONOUS", synchronous)]).await;
        let (database, into) = (ground.path().join("data/taskbell.db"), ground.path().join("recording"));
        let recorder = compile(ground.path(), &database, &into);
        nodes.end().await;
        let base = files(&database);
        nodes.start_again_with("LD_PRELOAD", &recorder).await;
        let (answered, until) = (Mutex::new(Vec::new()), Instant::now() + time);
        let clicking = (0..CLICKERS).map(|clicker| {
            let (nodes, answered, into) = (&nodes, &answered, &into);
            async move {
                for n in 0.. {
                    if Instant::now() > until {
                        return;
                    }
                    let id = nodes.click(&format!("{clicker} {n}"), WORK, false).await;
                    let length = fs::metadata(into).unwrap().len() as usize;
                    answered.lock().unwrap().push((length, id));
                }
            }
        });
        futures_util::future::join_all(clicking).await;
        nodes.servers[0].lock().await.kill().await;
        let bytes = fs::read(&into).unwrap();
        let steps = steps(&bytes);
        Self { base, bytes, steps, answered: answered.into_inner().unwrap() }
    }

    /// The files as a cut after so many steps may leave them.
    fn cut(&self, count: usize, dice: &mut StdRng) -> BTreeMap<String, Vec<u8>> {
        let mut begun = BTreeMap::new();
        // Of each file, how many of the steps are on the disk for certain.
        let mut certain = BTreeMap::new();
        for (n, (_, name, step)) in self.steps[..count].iter().enumerate() {
            match step {
                Step::SyncBegins { number } => drop(begun.insert(*number, n)),
                Step::SyncEnded { number } => {
                    let until = certain.entry(name).or_insert(0);
                    *until = begun[number].max(*until);
                }
                _ => {}
            }
        }
        // From nothing to all of what is not certain.
        let kept = dice.random_range(0.0..=1.0);
        let mut files = self.base.clone();
        for (n, (_, name, step)) in self.steps[..count].iter().enumerate() {
            let certain = certain.get(name).is_some_and(|until| n < *until);
            let file = files.entry(name.clone()).or_default();
            match step {
                Step::Written { at, bytes } => {
                    let (mut at, mut bytes) = (*at, &self.bytes[bytes.clone()]);
                    while !bytes.is_empty() {
                        let (sector, rest) = bytes.split_at(bytes.len().min(SECTOR - at % SECTOR));
                        if certain || dice.random_bool(kept) {
                            file.resize(file.len().max(at + sector.len()), 0);
                            file[at..at + sector.len()].copy_from_slice(sector);
                        }
                        (at, bytes) = (at + sector.len(), rest);
                    }
                }
                Step::Truncated { length } if certain || dice.random_bool(kept) => file.resize(*length, 0),
                Step::Removed => drop(files.remove(name)),
                _ => {}
            }
        }
        files
    }

    /// Those that were answered before a step ended.
    fn answered_by(&self, count: usize) -> impl Iterator<Item = &String> {
        let position = self.steps[count - 1].0;
        self.answered.iter().filter(move |(length, _)| *length <= position).map(|(_, id)| id)
    }

    /// A place for a cut, after something was answered.
    fn place(&self, dice: &mut StdRng) -> usize {
        let first = self.answered.iter().map(|(length, _)| *length).min().expect("something was answered");
        let from = self.steps.partition_point(|(end, ..)| *end < first);
        dice.random_range(from..self.steps.len()) + 1
    }
}

/// The recorder for the files of a database; answers where it is.
fn compile(folder: &Path, database: &Path, into: &Path) -> String {
    let (source, library) =
        (concat!(env!("CARGO_MANIFEST_DIR"), "/tests/faults/recorder.c"), folder.join("recorder.so"));
    let mut command = Command::new("cc");
    command.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(source).arg("-ldl");
    command.args([format!("-DFILES={database:?}"), format!("-DINTO={into:?}")]);
    let made = command.output().unwrap_or_else(|e| panic!("this test needs a C compiler, cc: {e}"));
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    library.display().to_string()
}

/// The files of a database that are on the disk, but for the one that is shared memory.
fn files(database: &Path) -> BTreeMap<String, Vec<u8>> {
    let named = |rest: &str| database.with_file_name(format!("taskbell.db{rest}"));
    ["", "-wal", "-journal"]
        .into_iter()
        .filter_map(|rest| Some((rest.to_owned(), fs::read(named(rest)).ok()?)))
        .collect()
}

/// The steps of a recording; the last one may have been cut off.
fn steps(bytes: &[u8]) -> Vec<(usize, String, Step)> {
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let short = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut steps, mut from) = (Vec::new(), 0);
    while from + HEAD <= bytes.len() {
        let (kind, at) = (short(from), number(from + 8));
        let name = from + HEAD..from + HEAD + short(from + 4) as usize;
        let data = name.end..name.end + number(from + 16) as usize;
        if data.end > bytes.len() {
            break;
        }
        from = data.end;
        let name = String::from_utf8(bytes[name].to_vec()).unwrap();
        let step = match kind {
            1 => Step::Written { at: at as usize, bytes: data },
            2 => Step::Truncated { length: at as usize },
            3 => Step::SyncBegins { number: at },
            4 => Step::SyncEnded { number: at },
            5 => Step::Removed,
            other => panic!("no such record: {other}"),
        };
        // Shared memory is made anew by whoever opens the file first.
        if name != "-shm" {
            steps.push((from, name, step));
        }
    }
    steps
}

/// What is wrong with a database after a cut; nothing, if it is sound and has every task that was answered.
async fn lost_by_cut(files: &BTreeMap<String, Vec<u8>>, answered: impl Iterator<Item = &String>) -> usize {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("taskbell.db");
    for (rest, bytes) in files {
        fs::write(folder.path().join(format!("taskbell.db{rest}")), bytes).unwrap();
    }
    let store = SqliteStore::open(SqliteOptions::new(database.clone()), Mode::Check, &mut |_, _, _| {}).await.unwrap();
    let tasks = all_tasks(&store).await;
    assert_invariants(&store).await;
    let mut file = SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(database)).await.unwrap();
    let whole: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut file).await.unwrap();
    assert_eq!(whole, "ok");
    // The effects of a chunk are there with its commit, and never without it.
    let effects = "SELECT task, COUNT(*), COUNT(DISTINCT item) FROM ledger GROUP BY task";
    let effects: Vec<(String, i64, i64)> = sqlx::query_as(effects).fetch_all(&mut file).await.unwrap();
    let effects: BTreeMap<_, _> = effects.into_iter().map(|(task, all, each)| (task, (all, each))).collect();
    for task in &tasks {
        let written = task.chunks * WORK.items as i64;
        let there = effects.get(&task.id.to_string()).copied().unwrap_or_default();
        assert_eq!(there, (written, written), "{task:?}");
    }
    file.close().await.unwrap();
    answered.filter(|id| tasks.iter().all(|task| task.id.to_string() != **id)).count()
}

/// Lets a node work, and cuts; answers how many cuts lost something.
async fn losing_cuts(synchronous: &str, cuts: usize, time: Duration) -> usize {
    let recording = Recording::of(synchronous, time).await;
    let (mut dice, mut losing) = (dice("power cuts"), 0);
    for _ in 0..cuts {
        let place = recording.place(&mut dice);
        let files = recording.cut(place, &mut dice);
        let lost = lost_by_cut(&files, recording.answered_by(place)).await;
        losing += usize::from(lost > 0);
    }
    let syncs = recording.steps.iter().filter(|(.., step)| matches!(step, Step::SyncEnded { .. })).count();
    println!(
        "synchronous = {synchronous}: {losing} of {cuts} cuts lost an answer; {} answered, {} steps, {syncs} syncs, {} MiB",
        recording.answered.len(),
        recording.steps.len(),
        recording.bytes.len() >> 20
    );
    losing
}

/// Proves: G1.
async fn a_power_cut_at_any_place_loses_nothing_that_was_answered() {
    let (cuts, time) = if long() { (200, Duration::from_secs(6)) } else { (20, Duration::from_secs(5)) };
    assert_eq!(losing_cuts("full", cuts, time).await, 0);
}

/// Else the test above could not fail. What is left is sound all the same.
async fn a_cut_is_noticed_where_commits_do_not_wait_for_the_disk() {
    assert!(losing_cuts("normal", if long() { 50 } else { 8 }, Duration::from_secs(3)).await > 0);
}
