//! Concurrency keys whose limit was raised while somebody waited: a sweep gives the new slots on, however many keys there are.

use super::fixture::*;
use super::words::*;
use std::collections::BTreeSet;
use taskbell::core::principal::Role;
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::store::Reach;

database_suite! {
    a_raised_limit_is_found_among_more_keys_than_a_sweep_looks_at
}

/// More than two sweeps look at.
const KEYS: usize = 2_100;
const BATCH: usize = 300;

async fn a_raised_limit_is_found_among_more_keys_than_a_sweep_looks_at(f: &Fixture) {
    let tenants = ["acme", "beta", "coma"].map(|t| principal(t, "u", Role::User));
    let under = |n: usize| Submit { slot: under(&format!("k{n:04}"), 1).slot, ..by(&tenants[n % 3]) };
    let mut tasks = BTreeSet::new();
    for first in (0..KEYS).step_by(BATCH) {
        let submitted = f.submit((first..first + BATCH).flat_map(|n| [under(n), under(n)]).collect()).await;
        tasks.extend(submitted.iter().map(|s| s.task().unwrap().id));
    }
    // The first and the last key of a tenant, and one between.
    f.execute("UPDATE taskbell_tasks SET concurrency_limit = 2 WHERE concurrency_key IN ('k0000', 'k1001', 'k2099')")
        .await;
    f.forget(&tasks);
    for _ in 0..4 {
        f.sweep().await;
    }
    let freed = f.store.counts(&Reach::default(), false).await.unwrap().by_state[&State::Queued];
    assert_eq!(freed, KEYS as i64 + 3);
}
