//! The pages as a person sees them: headless Chromium against a real server process, through a proxy that can be cut.
//!
//! One browser serves the whole run, one test after the other, each with a server and data of its own. The harness is our
//! own (`harness = false`), since the browser has to be ended at the end of the run. What the browser showed and what the
//! server said is kept in `target/browser/` when a test fails.
//!
//! `cargo test --test browser -- WORD…` runs the tests whose names hold one of the words.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails where it stands")]
#![allow(clippy::print_stdout, reason = "the harness reports there")]

#[allow(dead_code, reason = "the integration tests use it too, and each binary a part of it")]
#[path = "../it/support/ground.rs"]
mod ground;
#[allow(dead_code, reason = "the integration tests use it too, and each binary a part of it")]
#[path = "../it/support/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "the integration tests use it too, and each binary a part of it")]
#[path = "../it/support/proxy.rs"]
mod proxy;
#[path = "../it/support/script.rs"]
mod script;
#[allow(dead_code, reason = "the integration tests use it too, and each binary a part of it")]
#[path = "../it/support/server.rs"]
mod server;
#[path = "../it/support/waiting.rs"]
mod waiting;

mod accessible;
mod acts;
mod bell;
mod center;
mod children;
mod clock;
mod connection;
mod course;
mod embed;
mod filters;
mod forms;
mod host;
mod inert;
mod liveness;
mod log;
mod login;
mod looks;
mod plain;
mod record;
mod rig;
mod settings;
mod still;
mod tabs;
mod toasts;
mod truth;
mod words;

use rig::runner::{Test, run};
pub(crate) use waiting::eventually;

fn main() -> std::process::ExitCode {
    let tests = [
        bell::tests(),
        accessible::tests(),
        center::tests(),
        children::tests(),
        forms::tests(),
        truth::tests(),
        words::tests(),
        still::tests(),
        filters::tests(),
        acts::tests(),
        clock::tests(),
        inert::tests(),
        log::tests(),
        course::tests(),
        record::tests(),
        login::tests(),
        plain::tests(),
        looks::tests(),
        connection::tests(),
        liveness::tests(),
        tabs::tests(),
        settings::tests(),
        toasts::tests(),
        embed::tests(),
    ];
    let tests: Vec<Test> = tests.into_iter().flatten().collect();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    tokio::task::LocalSet::new().block_on(&runtime, run(tests))
}
