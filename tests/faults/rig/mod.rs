//! What fault tests stand on: nodes that die and come back, a ledger of effects, a receiver that counts, seeds.

pub mod base;
pub mod ledger;
pub mod nodes;
pub mod receiver;
pub mod watcher;

use crate::support::ground::Ground;
use libtest_mimic::Trial;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

/// How long what must come may take on a machine that is busy: it is no measure of anything.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Whether the full figures are asked for.
pub fn long() -> bool {
    std::env::var_os("TASKBELL_TEST_LONG").is_some()
}

/// One test.
pub fn test<F: Future<Output = ()>>(name: &str, body: impl FnOnce() -> F + Send + 'static) -> Trial {
    Trial::test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(4).enable_all().build().unwrap();
        runtime.block_on(body());
        Ok(())
    })
}

/// The same test on a SQLite file and on PostgreSQL.
pub fn on_each_database<F>(name: &str, body: fn(Arc<Ground>) -> F) -> Vec<Trial>
where
    F: Future<Output = ()> + 'static,
{
    vec![
        test(&format!("on_sqlite::{name}"), move || async move { body(Arc::new(Ground::sqlite().await)).await }),
        test(&format!("on_postgres::{name}"), move || async move { body(Arc::new(Ground::postgres().await)).await }),
    ]
}

/// The dice of a test; the seed is printed.
pub fn dice(test: &str) -> StdRng {
    let seed = std::env::var("TASKBELL_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(rand::random);
    println!("{test}: TASKBELL_SEED={seed}");
    StdRng::seed_from_u64(seed)
}
