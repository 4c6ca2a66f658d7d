//! `taskbell migrate`: brings the database up to date and tells how far it is.

use super::EXIT_FAULT;
use crate::app;
use crate::app::clock::SystemClock;
use crate::config::{Settings, environment};
use crate::core::time::Clock as _;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
#[must_use]
pub fn run(config: Option<&Path>) -> ExitCode {
    let loaded = match Settings::load(config, environment(), false) {
        Ok(loaded) => loaded,
        Err(faults) => return fault(&faults),
    };
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(e) => return fault(&e),
    };
    let clock = SystemClock::default();
    // Tasks come first, then their logs, each with steps of its own; whoever reads wants to hear of one row of them.
    let (mut before, mut steps, mut out) = (0, 0, std::io::stdout());
    let migrated = runtime.block_on(app::migrate(&loaded.settings, &mut |i, n, name| {
        if i == 1 {
            before = steps;
        }
        steps = before + n;
        let (i, n) = (before + i, steps);
        // Remaining by the mean of the steps done; steps differ, so it is a rough word.
        let elapsed = clock.mono().0;
        let remaining = if i > 1 { (elapsed / (i as u64 - 1)) * (n - i + 1) as u64 } else { 0 };
        let percent = (i - 1) * 100 / n;
        let rest = if i > 1 { format!(", about {:.1} s left", remaining as f64 / 1000.0) } else { String::new() };
        let _ = writeln!(out, "{percent:3} %  step {i}/{n}: {name}  ({:.1} s{rest})", elapsed as f64 / 1000.0);
    }));
    match migrated {
        Ok(()) if steps == 0 => {
            let _ = writeln!(out, "{} is up to date.", loaded.settings.database.url);
            ExitCode::SUCCESS
        }
        Ok(()) => {
            let seconds = clock.mono().0 as f64 / 1000.0;
            let _ = writeln!(
                out,
                "100 %  {steps} step(s) in {seconds:.1} s: {} is up to date.",
                loaded.settings.database.url
            );
            ExitCode::SUCCESS
        }
        Err(e) => fault(&e),
    }
}

fn fault(what: &dyn std::fmt::Display) -> ExitCode {
    eprintln!("taskbell: {what}");
    ExitCode::from(EXIT_FAULT)
}
