//! How good the estimate of the time left is, beside four other rules on the same traces. Prints the table of docs/eta.md.
//!
//! `cargo bench --bench eta --profile dev` needs no release build and takes seconds. `-- --record` runs the demo's actions on a
//! real server instead and writes what happened into benches/eta/recorded/, a few minutes long.

#![allow(clippy::unwrap_used, reason = "a bench that cannot go on fails where it stands")]

mod record;
mod set;
#[path = "../../tests/it/support/mod.rs"]
#[allow(dead_code, reason = "the tests use it too, and each a part of it")]
mod support;

use clap::Parser;
use set::Score;

/// What is wanted. The default is what docs/eta.md shows.
#[derive(Debug, Parser)]
struct Wanted {
    /// Traces of each made kind.
    #[arg(long, default_value_t = 300)]
    seeds: u64,
    /// Record the demo's actions anew instead.
    #[arg(long)]
    record: bool,
    /// What `cargo bench` adds.
    #[arg(long, hide = true)]
    bench: bool,
}

#[tokio::main]
async fn main() {
    let wanted = Wanted::parse();
    if wanted.record {
        record::all().await;
        return;
    }
    let scores: Vec<Score> =
        set::kinds().into_iter().map(|kind| set::measure(kind, &set::traces(kind, wanted.seeds))).collect();
    let all = Score::of_all(&scores);
    print(&set::table(&scores));
    print(&format!(
        "\nAt {} of {} marks there was an estimate; the others are in no column.\n",
        all.answered(),
        all.asked
    ));
}

#[allow(clippy::print_stdout, reason = "the table is what this is for")]
fn print(text: &str) {
    print!("{text}");
}
