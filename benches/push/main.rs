//! The bench of the push: what thousands of open pages cost. Each figure of taskbell stands beside that of a bare server
//! (`bare`), taken in the same run by the same clients; each server is a process of its own.
//!
//! `cargo bench --bench push` takes about three minutes; `-- --quick` takes a tenth of everything, to see that it works.
//! What the figures mean is in docs/performance.md. It must never be read as a promise: no test asserts a figure.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails where it stands")]

mod bare;
mod child;
mod figures;
mod served;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, unused_imports, unused_macros, reason = "the tests use it too, and each a part of it")]
mod support;
mod swarm;

use child::Kind;
use clap::Parser;
use figures::Table;
use std::time::Instant;

#[derive(Clone, Debug, Parser)]
struct Scale {
    /// A tenth of everything, and one round.
    #[arg(long)]
    quick: bool,
    /// Only the figures whose name contains this.
    #[arg(long, default_value = "")]
    only: String,
    /// How often each figure is taken; medians are told.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Idle sockets.
    #[arg(long, default_value_t = 10_000)]
    idle: usize,
    /// Sockets that come back at once.
    #[arg(long, default_value_t = 5_000)]
    reconnects: usize,
    /// Sockets to which news are delivered.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 5_000])]
    sockets: Vec<usize>,
    /// What a child is.
    #[arg(long, hide = true)]
    serve: Option<Kind>,
    #[arg(long, hide = true, default_value_t = 0)]
    rooms: usize,
    #[arg(long, hide = true, default_value_t = 0)]
    users: usize,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

impl Scale {
    fn wants(&self, name: &str) -> bool {
        name.contains(&self.only)
    }
}

#[tokio::main]
async fn main() {
    let mut scale = Scale::parse();
    let _ = rlimit::increase_nofile_limit(u64::MAX);
    match scale.serve {
        Some(Kind::Bare) => return bare::serve(scale.rooms, child::orders()).await,
        Some(kind) => return served::serve(kind, scale.rooms, scale.users, child::orders()).await,
        None => {}
    }
    if scale.quick {
        scale.rounds = 1;
        for count in [&mut scale.idle, &mut scale.reconnects].into_iter().chain(&mut scale.sockets) {
            *count = (*count / 10).max(100);
        }
    }
    let (began, mut table) = (Instant::now(), Table::default());
    for _ in 0..scale.rounds {
        for kind in [Kind::Bare, Kind::Taskbell] {
            if scale.wants("memory of an idle socket") {
                figures::idle(&mut table, kind, scale.idle).await;
            }
            if scale.wants("first change after a quiet moment") {
                figures::quiet(&mut table, kind).await;
            }
            for sockets in &scale.sockets {
                if scale.wants("from a report to its receipt") {
                    figures::reports(&mut table, kind, *sockets).await;
                }
            }
            if scale.wants("all come back at once") {
                figures::reconnects(&mut table, kind, scale.reconnects).await;
            }
        }
        for kind in [Kind::Bare, Kind::Unpaced] {
            for sockets in &scale.sockets {
                if scale.wants("deliveries") {
                    figures::flat_out(&mut table, kind, *sockets).await;
                }
            }
        }
    }
    table.print(began.elapsed());
}
