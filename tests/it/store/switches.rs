//! Packs: what a switch stops and lets go on, from which moment, and that a serial pack has one chunk at a time.

use super::fixture::*;
use super::words::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::Ask;
use taskbell::core::submit::Submit;
use taskbell::core::task::{State, WaitReason};
use taskbell::store::{Asked, ListParams, PackLoaded, PackRow, PackSwitch, Store};
use tokio::task::JoinSet;

store_suite! {
    a_pack_is_on_when_it_is_first_loaded_and_stays_as_it_was_switched
    tasks_of_a_pack_that_nobody_loaded_are_not_claimed
    a_pack_that_is_off_starts_no_chunk_and_others_go_on
    a_switch_stops_exactly_its_tasks_and_lets_exactly_those_go_on
    what_a_person_paused_stays_paused_also_while_the_pack_is_off
    a_chunk_under_way_ends_and_no_further_one_follows
    a_task_that_comes_to_a_pack_that_is_off_waits_for_it
    a_task_held_by_its_pack_gives_its_slot_to_others
    a_sweep_finishes_what_a_switch_began
    a_serial_pack_has_one_chunk_at_a_time_on_all_nodes
    a_serial_pack_goes_on_only_when_a_lost_lease_is_taken
    many_claimers_of_a_serial_pack_never_hold_two_chunks
    a_list_of_a_pack_holds_its_tasks_only
}

fn of(pack: &str) -> Submit {
    Submit { pack: Some(pack.into()), ..click() }
}

async fn load(f: &Fixture, name: &str, serial: bool) {
    let loaded = PackLoaded { name: name.into(), version: "1".into(), serial };
    f.store.register_packs(vec![loaded]).await.unwrap();
}

/// Switches a pack and brings all of its tasks to it, as the command does.
async fn switch(f: &Fixture, name: &str, paused: bool) {
    flip(f.store.as_ref(), name, paused).await;
    while f.heard(f.store.settle_packs(2).await.unwrap()) > 0 {}
}

async fn flip(store: &dyn Store, name: &str, paused: bool) {
    let params = PackSwitch { name: name.into(), paused, by: "ada".into() };
    assert_eq!(store.switch_pack(params).await.unwrap(), Some(true));
}

async fn why(f: &Fixture, id: TaskId) -> (State, Option<WaitReason>) {
    let task = f.get(id).await;
    (task.state, task.wait)
}

const HELD: (State, Option<WaitReason>) = (State::Paused, Some(WaitReason::PackDisabled));

/// Row: D5.
async fn a_pack_is_on_when_it_is_first_loaded_and_stays_as_it_was_switched(f: &Fixture) {
    let unknown = PackSwitch { name: "stock".into(), paused: true, by: "ada".into() };
    assert_eq!(f.store.switch_pack(unknown.clone()).await.unwrap(), None);
    load(f, "stock", false).await;
    assert!(!f.store.packs(None).await.unwrap()[0].row.paused);
    assert_eq!(f.store.switch_pack(unknown.clone()).await.unwrap(), Some(true));
    assert_eq!(f.store.switch_pack(unknown).await.unwrap(), Some(false), "it is off already");
    let newer = PackLoaded { name: "stock".into(), version: "2".into(), serial: true };
    f.store.register_packs(vec![newer]).await.unwrap();
    f.new_task(of("stock")).await;
    let standing = f.store.packs(None).await.unwrap();
    let (changed_at, changed_by) = (Some(f.now()), Some("ada".to_owned()));
    let row = PackRow { name: "stock".into(), version: "2".into(), serial: true, paused: true, changed_at, changed_by };
    assert_eq!((standing.len(), &standing[0].row, standing[0].waiting), (1, &row, 1));
}

async fn tasks_of_a_pack_that_nobody_loaded_are_not_claimed(f: &Fixture) {
    f.new_task(of("stock")).await;
    assert!(f.claim(10).await.is_empty());
    load(f, "stock", false).await;
    assert_eq!(f.claim(10).await.len(), 1);
}

async fn a_pack_that_is_off_starts_no_chunk_and_others_go_on(f: &Fixture) {
    load(f, "stock", false).await;
    load(f, "till", false).await;
    // More than one claim looks at, so that they hold nobody up.
    f.submit((0..300).map(|_| of("stock")).collect()).await;
    let (till, plain) = (f.new_task(of("till")).await, f.new_task(click()).await);
    // Only the switch: the tasks are as they were.
    flip(f.store.as_ref(), "stock", true).await;
    let claimed: BTreeSet<TaskId> = f.claim(10).await.iter().map(|c| c.task.id).collect();
    assert_eq!(claimed, BTreeSet::from([till, plain]));
    assert!(f.claim(10).await.is_empty());
    flip(f.store.as_ref(), "stock", false).await;
    assert_eq!(f.claim(500).await.len(), 300);
}

/// Proves: G20.
async fn a_switch_stops_exactly_its_tasks_and_lets_exactly_those_go_on(f: &Fixture) {
    load(f, "stock", false).await;
    load(f, "till", false).await;
    let queued = f.new_task(of("stock")).await;
    let later = f.new_task(Submit { run_at: Some(f.now().plus(60_000)), ..of("stock") }).await;
    let between = f.new_task(Submit { priority: 9, ..of("stock") }).await;
    f.end(&f.claim_task(between).await, more_after(5_000)).await;
    let retried = f.new_task(Submit { priority: 9, ..of("stock") }).await;
    f.end(&f.claim_task(retried).await, throws()).await;
    let ended = f.new_task(Submit { priority: 9, ..of("stock") }).await;
    f.end(&f.claim_task(ended).await, done()).await;
    let other = f.new_task(of("till")).await;
    switch(f, "stock", true).await;
    for id in [queued, later, between, retried] {
        assert_eq!(why(f, id).await, HELD);
        assert!(matches!(f.ask(id, Ask::Resume).await, Asked::Refused(_)), "a person cannot resume it");
    }
    assert_eq!((f.state(ended).await, f.state(other).await), (State::Succeeded, State::Queued));
    assert_eq!(f.reasons(queued).await, ["submitted", "pack"]);
    switch(f, "stock", false).await;
    for (id, wait) in [
        (queued, WaitReason::Capacity),
        (later, WaitReason::Scheduled),
        (between, WaitReason::Delay),
        (retried, WaitReason::Retry),
    ] {
        assert_eq!(why(f, id).await, (State::Queued, Some(wait)));
    }
    assert_eq!(f.get(retried).await.attempts, 1, "a switch forgives nothing and costs nothing");
    assert_eq!(f.claim(10).await.len(), 2, "what is due later is due as before");
}

async fn what_a_person_paused_stays_paused_also_while_the_pack_is_off(f: &Fixture) {
    load(f, "stock", false).await;
    let (before, within) = (f.new_task(of("stock")).await, f.new_task(of("stock")).await);
    f.must(before, Ask::Pause).await;
    switch(f, "stock", true).await;
    f.must(within, Ask::Pause).await;
    switch(f, "stock", false).await;
    for id in [before, within] {
        assert_eq!(why(f, id).await, (State::Paused, Some(WaitReason::Paused)));
        f.must(id, Ask::Resume).await;
    }
    assert_eq!(f.claim(10).await.len(), 2);
}

async fn a_chunk_under_way_ends_and_no_further_one_follows(f: &Fixture) {
    load(f, "stock", false).await;
    let id = f.new_task(of("stock")).await;
    let claimed = f.claim_one().await;
    switch(f, "stock", true).await;
    assert_eq!(f.state(id).await, State::Pausing);
    let goes_on = taskbell::store::ChunkCommit { continue_for_ms: Some(LEASE_MS), ..ended(&claimed, more(1)) };
    let committed = f.commit(goes_on).await;
    assert_eq!(committed.ended, taskbell::core::lifecycle::Ended::Applied { continues: false });
    assert_eq!((why(f, id).await, f.get(id).await.chunks), (HELD, 1), "its work counts");
    switch(f, "stock", false).await;
    let claimed = f.claim_one().await;
    assert_eq!((claimed.task.id, claimed.documents.checkpoint), (id, Some(serde_json::json!({"n": 1}))));
}

async fn a_task_that_comes_to_a_pack_that_is_off_waits_for_it(f: &Fixture) {
    load(f, "stock", false).await;
    switch(f, "stock", true).await;
    let id = f.new_task(Submit { slot: under("k", 1).slot, ..of("stock") }).await;
    assert_eq!(why(f, id).await, HELD);
    assert_eq!(f.reasons(id).await, ["submitted", "pack"]);
    switch(f, "stock", false).await;
    assert_eq!(f.claim_one().await.task.id, id);
}

async fn a_task_held_by_its_pack_gives_its_slot_to_others(f: &Fixture) {
    load(f, "stock", false).await;
    let first = f.new_task(Submit { slot: under("k", 1).slot, ..of("stock") }).await;
    let second = f.new_task(under("k", 1)).await;
    assert_eq!(f.state(second).await, State::Blocked);
    switch(f, "stock", true).await;
    assert_eq!((why(f, first).await, f.state(second).await), (HELD, State::Queued));
    let claimed = f.claim_one().await;
    switch(f, "stock", false).await;
    assert_eq!(f.state(first).await, State::Blocked, "the key is full now");
    f.end(&claimed, done()).await;
    assert_eq!(f.claim_one().await.task.id, first);
}

async fn a_sweep_finishes_what_a_switch_began(f: &Fixture) {
    load(f, "stock", false).await;
    let id = f.new_task(of("stock")).await;
    flip(f.store.as_ref(), "stock", true).await;
    f.sweep().await;
    assert_eq!(why(f, id).await, HELD);
    flip(f.store.as_ref(), "stock", false).await;
    f.sweep().await;
    assert_eq!(f.state(id).await, State::Queued);
}

async fn a_serial_pack_has_one_chunk_at_a_time_on_all_nodes(f: &Fixture) {
    load(f, "stock", true).await;
    f.submit((0..3).map(|_| of("stock")).collect()).await;
    let plain = f.new_task(click()).await;
    let mut first = f.claim_on("n1", 10).await;
    assert_eq!(first.len(), 2, "one of the pack, and what is not of it");
    first.retain(|c| c.task.id != plain);
    assert!(f.claim_on("n2", 10).await.is_empty());
    f.end(&first[0], more(1)).await;
    let next = f.claim_on("n2", 10).await;
    assert_eq!(next.len(), 1);
    assert!(f.claim_on("n1", 10).await.is_empty());
}

async fn a_serial_pack_goes_on_only_when_a_lost_lease_is_taken(f: &Fixture) {
    load(f, "stock", true).await;
    f.submit(vec![of("stock"), of("stock")]).await;
    f.claim_on("dead", 10).await;
    f.pass(LEASE_MS + 1);
    assert!(f.claim_on("n2", 10).await.is_empty(), "until the lease is taken its owner may still be at work");
    f.sweep().await;
    assert_eq!(f.claim_on("n2", 10).await.len(), 1);
}

/// Proves: G20.
async fn many_claimers_of_a_serial_pack_never_hold_two_chunks(f: &Fixture) {
    load(f, "stock", true).await;
    f.submit((0..40).map(|_| of("stock")).collect()).await;
    let (holding, ends) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut claimers = JoinSet::new();
    for n in 0..6 {
        let (store, holding, ends) = (f.store.clone(), holding.clone(), ends.clone());
        claimers.spawn(async move {
            let mut written = Vec::new();
            while ends.load(Ordering::SeqCst) < 40 {
                let claimed = store.claim(claim_params(&format!("n{n}"), 5)).await.unwrap();
                let chunks = claimed.answer.clone();
                written.push((claimed.changes, Vec::new()));
                for chunk in chunks {
                    assert_eq!(holding.fetch_add(1, Ordering::SeqCst), 0, "two chunks of a serial pack at once");
                    tokio::task::yield_now().await;
                    // Given back before the commit that lets others claim it.
                    holding.fetch_sub(1, Ordering::SeqCst);
                    let committed = store.commit(vec![ended(&chunk, done())]).await.unwrap();
                    written.push((committed.changes, committed.answer));
                    ends.fetch_add(1, Ordering::SeqCst);
                }
            }
            written
        });
    }
    let mut written: Vec<_> = claimers.join_all().await.into_iter().flatten().collect();
    written.retain(|(changes, _)| !changes.is_empty());
    written.sort_by_key(|(changes, _)| changes[0].head());
    for (changes, answer) in written {
        f.heard(taskbell::store::Written { answer, changes });
    }
    assert_eq!(ends.load(Ordering::SeqCst), 40);
}

async fn a_list_of_a_pack_holds_its_tasks_only(f: &Fixture) {
    load(f, "stock", false).await;
    let id = f.new_task(of("stock")).await;
    f.submit(vec![of("till"), click()]).await;
    let params = ListParams { pack: Some("stock".into()), limit: 10, ..ListParams::default() };
    let page = f.store.list(params).await.unwrap();
    assert_eq!(page.items.iter().map(|t| t.id).collect::<Vec<_>>(), [id]);
    assert_eq!(page.items[0].pack.as_deref(), Some("stock"));
}

/// With nodes of their own, on the databases that have some.
mod nodes {
    use super::*;

    database_suite! {
        no_claim_of_any_node_starts_a_chunk_after_the_switch
    }

    /// Proves: G20.
    async fn no_claim_of_any_node_starts_a_chunk_after_the_switch(f: &Fixture) {
        load(f, "stock", false).await;
        f.store.submit((0..400).map(|_| of("stock")).collect()).await.unwrap();
        let off = Arc::new(AtomicBool::new(false));
        let mut claimers = JoinSet::new();
        for n in 0..3 {
            let (store, off) = (f.opened_again().await, off.clone());
            claimers.spawn(async move {
                let mut after = 0;
                for _ in 0..40 {
                    let told = off.load(Ordering::SeqCst);
                    let claimed = store.claim(claim_params(&format!("n{n}"), 2)).await.unwrap().answer.len();
                    after += if told { claimed } else { 0 };
                }
                after
            });
        }
        flip(f.opened_again().await.as_ref(), "stock", true).await;
        off.store(true, Ordering::SeqCst);
        let under_way = f.store.list(ListParams { states: vec![State::Running], limit: 200, ..ListParams::default() });
        let under_way = under_way.await.unwrap().items.len();
        assert_eq!(claimers.join_all().await.iter().sum::<usize>(), 0, "a chunk started after the switch was told");
        let still = f.store.list(ListParams { states: vec![State::Running], limit: 200, ..ListParams::default() });
        assert_eq!(still.await.unwrap().items.len(), under_way);
    }
}
