//! The first bench: what taskbell adds to a commit. Prints each figure as it is and beside plain INSERT commits on the same
//! kind of database, measured just before it: one row a commit by one client (P1), and on a server also by 32 clients (P32)
//! and 500 rows a commit (P500).
//!
//! `cargo bench --bench first` takes about a minute on a SQLite file (through sqlx, WAL, synchronous = FULL), with
//! `-- --database postgres` on the server that TASKBELL_TEST_POSTGRES names. `-- --help` tells how to ask for more. What
//! the figures mean and what bounds them is in docs/performance.md. It must never be read as a promise: no test asserts a
//! figure.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails where it stands")]

mod claims;
mod figures;
mod plain;
mod server;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests use it too, and each a part of it")]
mod support;
mod work;

use clap::{Parser, ValueEnum};
use figures::{Figures, Unit};
use plain::Plain;
use std::time::Instant;
use support::ground::Ground;

/// How much of everything. The defaults are those of docs/performance.md.
#[derive(Clone, Debug, Parser)]
struct Scale {
    /// Only the figures whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// What it runs on.
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Kind,
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
    /// Idle sockets.
    #[arg(long, default_value_t = 1_000)]
    sockets: usize,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

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
    let (began, kind) = (Instant::now(), scale.database);
    let mut figures = Figures::new(Plain::open(kind).await);
    for _ in 0..scale.rounds {
        if scale.wants("submits in process, 32 at once") {
            figures
                .take("submits in process, 32 at once", Unit::PerSecond, || work::submits(kind, scale.submits))
                .await;
        }
        if scale.wants("progress reports stored") {
            figures.take("progress reports stored", Unit::PerSecond, || work::reports_stored(kind)).await;
        }
        if scale.wants("tasks drained") {
            figures.take("tasks drained", Unit::PerSecond, || work::drained(kind, scale.waiting, scale.places)).await;
        }
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
    if scale.wants("submits over HTTP") || scale.wants("memory of an idle socket") {
        server::measure(&mut figures, &scale).await;
    }
    figures.print(began.elapsed());
}
