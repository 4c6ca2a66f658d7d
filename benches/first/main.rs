//! The first bench: what taskbell adds to a commit. Prints each figure as it is and beside plain INSERT commits on the same
//! kind of database, measured just before it: one row a commit by one client (P1), and on a server also by 32 clients (P32)
//! and 500 rows a commit (P500).
//!
//! `cargo bench --bench first` takes them on a SQLite file (through sqlx, WAL, synchronous = FULL) and then on the server that
//! TASKBELL_TEST_POSTGRES names, alone and beside 100,000 tasks that wait, 100,000 behind one key and 1,000,000 that have
//! ended, which takes several minutes. `-- --help` tells how to ask for a part. What the figures mean and what bounds them
//! is in docs/performance.md. It must never be read as a promise: no test asserts a figure.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails where it stands")]

mod across;
mod claims;
mod client;
mod crowd;
mod figures;
mod plain;
mod server;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests use it too, and each a part of it")]
mod support;
mod work;

use clap::{Parser, ValueEnum};
use crowd::Crowd;
use figures::{Figures, Unit};
use plain::Plain;
use std::time::Instant;
use support::ground::Ground;
use work::Drain;

/// How much of everything. The defaults are those of docs/performance.md.
#[derive(Clone, Debug, Parser)]
struct Scale {
    /// Only the figures whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// What it runs on, one after the other. PostgreSQL is left out where no server is named.
    #[arg(long, value_enum, default_values = ["sqlite", "postgres"])]
    database: Vec<Kind>,
    /// How often the rates are taken; their medians are told.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Submits of one round, by 32 clients at once.
    #[arg(long, default_value_t = 6_400)]
    submits: usize,
    /// Tasks that wait when the node that drains them starts.
    #[arg(long, default_value_t = 20_000)]
    waiting: usize,
    /// Chunks at once of that node.
    #[arg(long, default_value_t = 16)]
    places: usize,
    /// Tasks that are clicked one by one on an idle queue.
    #[arg(long, default_value_t = 300)]
    clicks: usize,
    /// Tasks that wait, or are blocked, beside those that a claim takes.
    #[arg(long, default_value_t = 100_000)]
    others: usize,
    /// Tasks that have ended before the rates beside them are taken.
    #[arg(long, default_value_t = 1_000_000)]
    ended: usize,
    /// Idle sockets.
    #[arg(long, default_value_t = 1_000)]
    sockets: usize,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Chunks at once of a node that is there for short ones.
const MANY_PLACES: usize = 512;

/// A kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    Sqlite,
    Postgres,
}

impl Kind {
    /// A fresh database.
    async fn ground(self) -> Ground {
        match self {
            Self::Sqlite => Ground::sqlite().await,
            Self::Postgres => Ground::postgres().await,
        }
    }
}

impl Scale {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

#[tokio::main]
async fn main() {
    let scale = Scale::parse();
    for kind in &scale.database {
        if *kind == Kind::Postgres && std::env::var_os("TASKBELL_TEST_POSTGRES").is_none() {
            eprintln!("PostgreSQL is left out: TASKBELL_TEST_POSTGRES names no server");
            continue;
        }
        measure(&scale, *kind).await;
    }
}

/// All figures on one kind of database.
async fn measure(scale: &Scale, kind: Kind) {
    let began = Instant::now();
    let mut figures = Figures::new(Plain::open(kind).await);
    for _ in 0..scale.rounds {
        rates(&mut figures, scale, kind, Crowd::Nobody).await;
        if scale.wants("progress reports stored") {
            figures.take("progress reports stored", Unit::PerSecond, || work::reports_stored(kind)).await;
        }
        if scale.wants("chunk commits") {
            figures
                .take("chunk commits with checkpoint and progress", Unit::PerSecond, || work::chunk_commits(kind))
                .await;
        }
        if kind == Kind::Postgres && scale.wants("tasks drained on three nodes") {
            let drain = Drain { count: scale.waiting, places: scale.places, nodes: 3, crowd: Crowd::Nobody };
            figures.take("tasks drained on three nodes", Unit::PerSecond, || work::drained(kind, drain)).await;
        }
        let name = format!("tasks drained, {MANY_PLACES} places");
        if scale.wants(&name) {
            let drain = Drain { count: scale.waiting, places: MANY_PLACES, nodes: 1, crowd: Crowd::Nobody };
            figures.take(&name, Unit::PerSecond, || work::drained(kind, drain)).await;
        }
    }
    for crowd in [Crowd::Waiting(scale.others), Crowd::Blocked(scale.others), Crowd::Ended(scale.ended)] {
        rates(&mut figures, scale, kind, crowd).await;
    }
    if scale.wants("progress reports taken") {
        figures.take("progress reports taken", Unit::PerSecond, || work::reports_taken(kind)).await;
    }
    if scale.wants("pick-up latency") {
        figures.before_each().await;
        let latencies = work::pick_ups(kind, scale.clicks).await;
        figures.tell("pick-up latency, p50", Unit::Ms, figures::quantile(&latencies, 0.5));
        figures.tell("pick-up latency, p99", Unit::Ms, figures::quantile(&latencies, 0.99));
    }
    if scale.wants("a claim of 16") {
        claims::measure(&mut figures, kind, scale.others).await;
    }
    if ["submits over HTTP", "memory of an idle socket", "pick-up across two nodes"]
        .iter()
        .any(|name| scale.wants(name))
    {
        server::measure(&mut figures, scale, kind).await;
    }
    figures.print(&format!("{kind:?}"), began.elapsed());
}

/// What must not depend on who else is there.
async fn rates(figures: &mut Figures, scale: &Scale, kind: Kind, crowd: Crowd) {
    let name = format!("submits in process, 32 at once{}", crowd.told());
    if scale.wants(&name) {
        figures.take(&name, Unit::PerSecond, || work::submits(kind, scale.submits, crowd)).await;
    }
    let name = format!("tasks drained{}", crowd.told());
    if scale.wants(&name) {
        let drain = Drain { count: scale.waiting, places: scale.places, nodes: 1, crowd };
        figures.take(&name, Unit::PerSecond, || work::drained(kind, drain)).await;
    }
}
