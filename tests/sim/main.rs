//! The simulator: nodes, people and their pages on one thread, over the memory store, under chance and virtual time, with
//! every promise checked all along. It finds faults of order before users do, and repeats each from one number.
//!
//! A *seed* is a whole run: 3–5 nodes claim, run, commit, renew, sweep and drain; people click, cancel, pause, resume and
//! delete; pages watch over a bus that drops, doubles and reorders. The database is slow, aborts, or loses the answer of a
//! commit that happened; nodes crash between any two steps of a transaction, stand still, are cut off, and have clocks that
//! drift and jump. Then the faults stop, everything has to end, and every page has to show the rows. See docs/testing.md.
//!
//! # The invariants, and where they are checked
//! | | invariant | checked by |
//! |---|---|---|
//! | 1 | every accepted id exists, exactly once | `model`, at each answer and over the whole table |
//! | 2 | no (task, item) twice; of a success every item once | `model::ledger`, at each commit |
//! | 3 | tokens grow; an accepted write carried the newest | `model::rows`, `model::ledger`, `store` |
//! | 4 | states move along the arrows | `model::rows`, at each commit |
//! | 5 | no orphan | `model::rows` at each commit, `model::whole` over the whole table |
//! | 6 | holders of a key within its limit | `model::whole`, at each commit |
//! | 7 | progress never falls for one total; 100 % after success only | `model::rows`, at each commit |
//! | 8 | attempts, failures and lost leases within their budgets | `model::rows`, at each commit |
//! | 9 | a chunk goes on from an acknowledged checkpoint | `store::tx` at each claim, `model::ledger` at each commit |
//! | 10 | pushed revisions rise; the last push is the row | `watcher::page`, at each frame and at the end |
//! | 11 | outbox: every end has its event in the same commit | there is no outbox yet: the timeline stands in for it, `model::rows` |
//! | 12 | connections, sockets, memory back at base | there is one connection and no socket: at the end no place, lease, slot or transaction is held, `run` |
//!
//! Beside them: one task for one idempotency key (`model::keys`), no chunk of a pack that is switched off starts and a serial
//! one has one at a time (`model::packs`), parents wait for open children, count each once and take them along when they are
//! stopped (`model::families`), and every task ends within ten leases after the faults
//! (`run`).
//!
//! # Settings
//! `SIM_SEED=N SIM_STEPS=N` replays one run and tells its last events if it fails; `SIM_SEEDS=N` runs so many;
//! `TASKBELL_TEST_LONG=1` runs ten times as many, from a base that is drawn and printed.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]

mod actions;
mod bus;
mod dice;
mod model;
mod node;
mod people;
mod plant;
mod planted;
mod run;
mod scheduler;
mod seen;
mod store;
mod violation;
mod watcher;
mod weather;
mod world;

use run::{Figures, run};
use seen::Seen;
use std::sync::Mutex;
use std::thread;

/// Steps of one run before the faults stop, and runs in CI.
const STEPS: usize = 2_000;
const SEEDS: u64 = 2_000;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name} is a number, not {text:?}")))
}

fn steps() -> usize {
    number("SIM_STEPS").map_or(STEPS, |steps| steps as usize)
}

/// Runs seeds on all cores until all are done or one fails.
fn run_all(seeds: impl Iterator<Item = u64> + Send, steps: usize, seen: &Seen) -> Figures {
    let (seeds, failed) = (Mutex::new(seeds), Mutex::new(None));
    let work = || {
        let mut sum = Figures::default();
        while failed.lock().unwrap().is_none() {
            let Some(seed) = seeds.lock().unwrap().next() else { break };
            match run(seed, steps, None, seen) {
                Ok(figures) => sum += figures,
                Err(failure) => *failed.lock().unwrap() = Some(failure),
            }
        }
        sum
    };
    let mut sum = Figures::default();
    thread::scope(|scope| {
        let cores = thread::available_parallelism().map_or(1, Into::into);
        let threads: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        threads.into_iter().for_each(|thread| sum += thread.join().unwrap());
    });
    match failed.into_inner().unwrap() {
        Some(failure) => panic!("{failure}"),
        None => sum,
    }
}

/// Proves: G2, G4, G5, G8, G11, G15, G18.
#[test]
fn every_seed_keeps_every_promise() {
    let long = std::env::var_os("TASKBELL_TEST_LONG").is_some();
    let (base, count) = match number("SIM_SEED") {
        Some(seed) => (seed, 1),
        None => (if long { rand::random::<u32>().into() } else { 0 }, if long { 10 * SEEDS } else { SEEDS }),
    };
    let count = number("SIM_SEEDS").unwrap_or(count);
    println!("seeds {base} to {} with {} steps each", base + count - 1, steps());
    let begun = std::time::Instant::now();
    let seen = Seen::default();
    let sum = run_all(base..base + count, steps(), &seen);
    println!("{sum} in {:.1} s", begun.elapsed().as_secs_f64());
    if count >= SEEDS && steps() >= STEPS {
        assert_eq!(seen.missing(), [""; 0], "the runs did not meet what they are to prove");
    }
}

#[test]
fn the_seeds_that_once_failed_keep_every_promise() {
    let corpus = include_str!("corpus.txt").lines().filter(|line| !line.starts_with('#'));
    for line in corpus {
        let mut numbers = line.split_whitespace().map_while(|word| word.parse::<u64>().ok());
        let (seed, steps) = (numbers.next().unwrap(), numbers.next().unwrap());
        if let Err(failure) = run(seed, steps as usize, None, &Seen::default()) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_is_always_the_same_run() {
    for seed in 0..20 {
        let once = || run(seed, STEPS, None, &Seen::default()).ok();
        assert_eq!(once(), once(), "seed {seed}");
    }
}
