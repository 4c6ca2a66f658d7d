//! Children: written in the commit of their parent's chunk or not at all, and what their ends mean for the parent.

use super::fixture::{Fixture, LEASE_MS, store_suite};
use super::words::*;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use taskbell::core::action::Policy;
use taskbell::core::chunk::Outcome;
use taskbell::core::family::{OnFailure, Parent};
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::{Ask, Ended};
use taskbell::core::progress::Reported;
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, State, Task, WaitReason};
use taskbell::core::transition::Refused;
use taskbell::store::{Asked, ChunkCommit, Claimed, Committed, ListParams, Reach};

store_suite! {
    children_are_written_in_the_commit_of_their_chunk_once
    a_stale_chunk_writes_no_child
    a_child_that_is_refused_takes_the_whole_chunk_back
    a_refused_child_gives_back_what_its_brothers_took
    a_key_that_somebody_else_holds_makes_no_child
    a_waiting_parent_holds_no_lease_and_is_not_claimed
    the_last_child_makes_its_parent_due_in_its_own_commit
    a_parent_whose_children_have_ended_already_does_not_wait
    the_first_failed_child_fails_a_parent_that_needs_it_and_the_others_are_cancelled
    a_failure_before_the_wait_counts_as_well
    a_cancelled_child_fails_its_parent_as_a_failed_one_does
    failures_are_passed_over_where_the_parent_says_so
    a_failure_climbs_to_the_first_parent
    a_cancel_goes_down_to_the_last_grandchild
    a_chunk_that_ends_as_cancelled_writes_no_children
    a_success_leaves_open_children_be
    a_forced_cancel_and_a_deadline_go_down_too
    a_paused_parent_waits_on_and_its_children_go_on
    a_resume_brings_back_what_the_failure_took
    a_resume_brings_back_what_a_cancel_took
    a_resume_waits_until_the_children_have_stopped
    a_child_stays_until_its_parent_has_ended_and_a_parent_until_its_children_have
    a_child_behind_the_key_of_its_parent_is_refused
    a_waiting_parent_gives_a_slot_per_chunk_back
    progress_of_a_parent_is_the_weighted_work_of_its_children
    own_work_and_children_add_up
    a_page_of_children_goes_on_after_its_last_one
    a_list_can_be_held_to_the_children_of_one_task
}

/// A child of a claimed task.
pub fn child(parent: &Claimed) -> Submit {
    weighing(parent, 1)
}

pub fn weighing(parent: &Claimed, weight: i64) -> Submit {
    let depth = parent.task.parent.map_or(0, |p| p.depth) + 1;
    Submit { parent: Some(Parent { id: parent.task.id, depth, weight }), ..click() }
}

pub fn wait(policy: OnFailure) -> Outcome {
    Outcome::when_children_ended(json!({"phase": 2}), policy)
}

pub fn submitting(parent: &Claimed, outcome: Outcome, children: Vec<Submit>) -> ChunkCommit {
    ChunkCommit { children, ..ended(parent, outcome) }
}

impl Fixture {
    /// A parent that waits for so many children.
    pub async fn family(&self, policy: OnFailure, count: usize) -> (TaskId, Vec<TaskId>) {
        let id = self.new_task(click()).await;
        let parent = self.take(id).await;
        let children: Vec<Submit> = (0..count).map(|_| child(&parent)).collect();
        let ids = children.iter().map(|c| c.id).collect();
        let committed = self.commit(submitting(&parent, wait(policy), children)).await;
        assert!(matches!(committed.ended, Ended::Applied { continues: false }), "{committed:?}");
        (id, ids)
    }

    /// Turns the next chunk of a task into a parent that waits for one child of its own.
    pub async fn nest(&self, id: TaskId, policy: OnFailure) -> TaskId {
        let parent = self.take(id).await;
        let grandchild = child(&parent);
        let its_id = grandchild.id;
        self.commit(submitting(&parent, wait(policy), vec![grandchild])).await;
        its_id
    }

    /// Claims a certain task, whatever stands before it.
    pub async fn take(&self, id: TaskId) -> Claimed {
        let mut others = Vec::new();
        loop {
            let claimed = self.claim_one().await;
            if claimed.task.id == id {
                for other in &others {
                    self.commit(handed_back(other)).await;
                }
                return claimed;
            }
            others.push(claimed);
        }
    }

    pub async fn run(&self, id: TaskId, outcome: Outcome) -> Committed {
        let claimed = self.take(id).await;
        self.end(&claimed, outcome).await
    }

    pub async fn states(&self, ids: &[TaskId]) -> Vec<State> {
        let mut states = Vec::new();
        for id in ids {
            states.push(self.state(*id).await);
        }
        states
    }

    pub async fn counts(&self, id: TaskId) -> BTreeMap<State, i64> {
        self.store.family_counts(&[id]).await.unwrap().remove(&id).unwrap_or_default()
    }
}

fn waits(task: &Task) -> bool {
    task.awaits.is_some() && task.wait == Some(WaitReason::Children) && !task.claimable() && !task.under_way()
}

/// Proves: G18.
async fn children_are_written_in_the_commit_of_their_chunk_once(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    let item = submitting(&parent, more(1), vec![weighing(&parent, 3), child(&parent)]);
    let ids: Vec<TaskId> = item.children.iter().map(|c| c.id).collect();
    assert!(matches!(f.commit(item.clone()).await.ended, Ended::Applied { .. }));
    assert_eq!(f.commit(item).await.ended, Ended::Repeated);
    assert_eq!(f.counts(id).await, BTreeMap::from([(State::Queued, 2)]));
    let (task, born) = (f.get(id).await, f.get(ids[0]).await);
    assert_eq!(task.family.map(|family| (family.children, family.weight)), Some((2, 4)));
    assert_eq!(born.parent, Some(Parent { id, depth: 1, weight: 3 }));
    assert_eq!((born.owner, born.tenant), (task.owner, task.tenant));
    assert_eq!(f.store.children(id, None, 10).await.unwrap().len(), 2);
}

async fn a_stale_chunk_writes_no_child(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    f.lose_leases().await;
    let item = submitting(&parent, more(1), vec![child(&parent)]);
    assert_eq!(f.commit(item).await.ended, Ended::Stale);
    assert!(f.counts(id).await.is_empty() && f.get(id).await.family.is_none());
}

async fn a_child_that_is_refused_takes_the_whole_chunk_back(f: &Fixture) {
    let holder = f.new_task(keyed("taken")).await;
    let id = f.new_task(click()).await;
    let parent = f.take(id).await;
    let other = Submit { keys: vec![key("taken")], fingerprint: "another".into(), ..child(&parent) };
    let item = submitting(&parent, more(1), vec![child(&parent), other]);
    let committed = f.commit(item).await;
    let fault = committed.child_fault.expect("it was refused");
    assert_eq!((committed.ended, fault.index, fault.retryable), (Ended::Stale, 1, false));
    assert!(fault.failure().message.starts_with("submit[1]: idempotencyKey"), "{fault:?}");
    let task = f.get(id).await;
    assert_eq!((task.chunks, task.under_way(), task.family), (0, true, None));
    assert!(f.counts(id).await.is_empty() && f.store.documents(id).await.unwrap().checkpoint.is_none());
    assert_eq!(f.get(holder).await.suppressed, 0);
}

async fn a_refused_child_gives_back_what_its_brothers_took(f: &Fixture) {
    let waiter = f.new_task(under("free", 1)).await;
    let running = f.new_task(under("full", 1)).await;
    let id = f.new_task(click()).await;
    let parent = f.take(id).await;
    let replaces = Submit { slot: slot("free", 1, Policy::CancelRunning), keys: vec![key("mine")], ..child(&parent) };
    let refused = Submit { slot: slot("full", 1, Policy::Reject), ..child(&parent) };
    let committed = f.commit(submitting(&parent, more(1), vec![replaces, refused])).await;
    assert!(committed.child_fault.is_some_and(|fault| fault.index == 1 && fault.retryable));
    let states = f.states(&[waiter, running]).await;
    assert!(states.iter().all(|s| !s.is_final() && *s != State::Cancelling), "{states:?}");
    f.new_task(keyed("mine")).await;
}

async fn a_key_that_somebody_else_holds_makes_no_child(f: &Fixture) {
    let holder = f.new_task(keyed("k")).await;
    let id = f.new_task(click()).await;
    let parent = f.take(id).await;
    let same = Submit { keys: vec![key("k")], ..child(&parent) };
    f.commit(submitting(&parent, wait(OnFailure::Fail), vec![same])).await;
    let task = f.get(id).await;
    assert!(task.awaits.is_none() && task.claimable(), "there is nothing to wait for: {task:?}");
    assert!(f.counts(id).await.is_empty());
    assert_eq!(f.get(holder).await.suppressed, 1);
}

async fn a_waiting_parent_holds_no_lease_and_is_not_claimed(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 2).await;
    let task = f.get(id).await;
    assert!(waits(&task) && task.state == State::Running, "{task:?}");
    f.pass(LEASE_MS * 10);
    f.sweep().await;
    let claimed = f.claim(10).await;
    assert_eq!(claimed.iter().filter(|c| children.contains(&c.task.id)).count(), 2);
    assert_eq!(claimed.len(), 2, "the parent was claimed");
    assert_eq!(f.get(id).await.reclaims, 0);
}

/// Proves: G18.
async fn the_last_child_makes_its_parent_due_in_its_own_commit(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 3).await;
    for (n, child) in children.iter().enumerate() {
        assert!(waits(&f.get(id).await), "after {n} children");
        f.pass(1_000);
        f.run(*child, done()).await;
    }
    let task = f.get(id).await;
    assert!(task.claimable() && task.awaits.is_none() && task.due_at == f.now(), "{task:?}");
    let claimed = f.claim_one().await;
    assert_eq!((claimed.task.id, claimed.documents.checkpoint.clone()), (id, Some(json!({"phase": 2}))));
    f.end(&claimed, done()).await;
    let words = f.reasons(id).await;
    assert!(words.contains(&"children".into()) && words.contains(&"children-ended".into()), "{words:?}");
}

async fn a_parent_whose_children_have_ended_already_does_not_wait(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    let child = child(&parent);
    let child_id = child.id;
    f.commit(submitting(&parent, more(1), vec![child])).await;
    f.run(child_id, done()).await;
    f.run(id, wait(OnFailure::Fail)).await;
    assert!(f.get(id).await.claimable());
    // One without any child goes on as well.
    let alone = f.new_task(click()).await;
    f.run(alone, wait(OnFailure::Fail)).await;
    assert!(f.get(alone).await.claimable());
}

async fn the_first_failed_child_fails_a_parent_that_needs_it_and_the_others_are_cancelled(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 3).await;
    let running = f.take(children[2]).await;
    f.run(children[0], gives_up()).await;
    let task = f.get(id).await;
    let error = task.error.expect("it failed");
    assert_eq!((task.state, error.kind, error.code.as_str()), (State::Failed, ErrorKind::Handler, "child-failed"));
    assert_eq!(error.message, "A part of it failed: It will never work.");
    assert_eq!(f.states(&children).await, [State::Failed, State::Cancelled, State::Cancelling]);
    f.end(&running, more(1)).await;
    assert_eq!(f.state(children[2]).await, State::Cancelled);
    assert_eq!(f.state(id).await, State::Failed);
}

async fn a_failure_before_the_wait_counts_as_well(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    let children = vec![child(&parent), child(&parent)];
    let ids: Vec<TaskId> = children.iter().map(|c| c.id).collect();
    f.commit(submitting(&parent, more(1), children)).await;
    f.run(ids[0], gives_up()).await;
    assert_eq!(f.state(id).await, State::Running);
    f.run(id, wait(OnFailure::Fail)).await;
    assert_eq!(f.states(&[id, ids[1]]).await, [State::Failed, State::Cancelled]);
}

async fn a_cancelled_child_fails_its_parent_as_a_failed_one_does(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 2).await;
    f.must(children[1], Ask::Cancel).await;
    let task = f.get(id).await;
    assert_eq!((task.state, task.error.unwrap().message), (State::Failed, "A part of it was cancelled.".into()));
    assert_eq!(f.state(children[0]).await, State::Cancelled);
}

async fn failures_are_passed_over_where_the_parent_says_so(f: &Fixture) {
    for policy in [OnFailure::Ignore, OnFailure::Collect] {
        let (id, children) = f.family(policy, 3).await;
        f.run(children[0], gives_up()).await;
        f.must(children[1], Ask::Cancel).await;
        assert!(waits(&f.get(id).await));
        f.run(children[2], Outcome::done(json!({"rows": 7}))).await;
        assert!(f.get(id).await.claimable());
        let ended = f.store.children(id, None, 10).await.unwrap();
        assert_eq!(ended.iter().filter_map(|c| c.error.as_ref()).count(), 1);
        assert_eq!(f.store.results(&children).await.unwrap(), BTreeMap::from([(children[2], json!({"rows": 7}))]));
        f.run(id, done()).await;
    }
}

async fn a_failure_climbs_to_the_first_parent(f: &Fixture) {
    let (top, children) = f.family(OnFailure::Fail, 2).await;
    let grandchild = f.nest(children[0], OnFailure::Fail).await;
    assert_eq!(f.get(grandchild).await.parent.unwrap().depth, 2);
    f.run(grandchild, gives_up()).await;
    assert_eq!(f.states(&[children[0], top, children[1]]).await, [State::Failed, State::Failed, State::Cancelled]);
}

/// Proves: G18.
async fn a_cancel_goes_down_to_the_last_grandchild(f: &Fixture) {
    let (top, children) = f.family(OnFailure::Fail, 2).await;
    let grandchild = f.nest(children[0], OnFailure::Ignore).await;
    let running = f.take(children[1]).await;
    f.must(top, Ask::Cancel).await;
    let states = f.states(&[top, children[0], grandchild, children[1]]).await;
    assert_eq!(states, [State::Cancelled, State::Cancelled, State::Cancelled, State::Cancelling]);
    // One that was already committing its end wins, as anywhere.
    f.end(&running, done()).await;
    assert_eq!(f.state(children[1]).await, State::Succeeded);
    assert!(f.reasons(grandchild).await.contains(&"cancel: its parent was cancelled".into()));
}

async fn a_chunk_that_ends_as_cancelled_writes_no_children(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    f.must(id, Ask::Cancel).await;
    f.commit(submitting(&parent, wait(OnFailure::Fail), vec![child(&parent)])).await;
    assert_eq!(f.state(id).await, State::Cancelled);
    assert!(f.counts(id).await.is_empty());
}

async fn a_success_leaves_open_children_be(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    f.commit(submitting(&parent, done(), vec![child(&parent)])).await;
    f.sweep().await;
    assert_eq!(f.state(id).await, State::Succeeded);
    assert_eq!(f.counts(id).await, BTreeMap::from([(State::Queued, 1)]));
}

async fn a_forced_cancel_and_a_deadline_go_down_too(f: &Fixture) {
    let (forced, children) = f.family(OnFailure::Ignore, 1).await;
    f.must(forced, Ask::ForceCancel).await;
    assert_eq!(f.state(children[0]).await, State::Cancelled);
    let id = f.new_task(Submit { timeout_ms: Some(5_000), ..click() }).await;
    let parent = f.take(id).await;
    let late = child(&parent);
    let late_id = late.id;
    f.commit(submitting(&parent, wait(OnFailure::Ignore), vec![late])).await;
    f.pass(5_001);
    f.sweep().await;
    assert_eq!(f.states(&[id, late_id]).await, [State::Failed, State::Cancelled]);
}

async fn a_paused_parent_waits_on_and_its_children_go_on(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 2).await;
    f.must(id, Ask::Pause).await;
    f.run(children[0], done()).await;
    f.must(id, Ask::Resume).await;
    assert!(waits(&f.get(id).await), "one is still open: {:?}", f.get(id).await);
    f.must(id, Ask::Pause).await;
    f.run(children[1], done()).await;
    assert_eq!(f.state(id).await, State::Paused);
    f.must(id, Ask::Resume).await;
    assert!(f.get(id).await.claimable());
}

async fn a_resume_brings_back_what_the_failure_took(f: &Fixture) {
    let (top, children) = f.family(OnFailure::Fail, 3).await;
    let grandchild = f.nest(children[0], OnFailure::Fail).await;
    f.run(children[1], done()).await;
    f.run(grandchild, gives_up()).await;
    assert_eq!(f.states(&[top, children[0], children[2]]).await, [State::Failed, State::Failed, State::Cancelled]);
    f.must(top, Ask::Resume).await;
    assert!(waits(&f.get(top).await) && waits(&f.get(children[0]).await));
    assert_eq!(
        f.states(&[grandchild, children[1], children[2]]).await,
        [State::Queued, State::Succeeded, State::Queued]
    );
    f.run(grandchild, done()).await;
    f.run(children[0], done()).await;
    f.run(children[2], done()).await;
    f.run(top, done()).await;
    assert_eq!(f.state(top).await, State::Succeeded);
}

async fn a_resume_brings_back_what_a_cancel_took(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Ignore, 3).await;
    f.run(children[0], gives_up()).await;
    f.must(id, Ask::Cancel).await;
    f.must(id, Ask::Resume).await;
    assert!(waits(&f.get(id).await));
    assert_eq!(f.states(&children).await, [State::Failed, State::Queued, State::Queued], "a passed failure stays");
}

async fn a_resume_waits_until_the_children_have_stopped(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 1).await;
    let running = f.take(children[0]).await;
    f.must(id, Ask::Cancel).await;
    let refused = f.ask(id, Ask::Resume).await;
    assert!(matches!(refused, Asked::Refused(Refused { state: State::Cancelling, .. })), "{refused:?}");
    f.end(&running, more(1)).await;
    f.must(id, Ask::Resume).await;
    assert_eq!(f.state(children[0]).await, State::Queued);
}

async fn a_child_stays_until_its_parent_has_ended_and_a_parent_until_its_children_have(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Collect, 2).await;
    f.run(children[0], done()).await;
    let deleted = f.heard(f.store.delete(&operator(), vec![children[0], children[1]]).await.unwrap());
    assert_eq!(deleted, [Some(false), Some(false)]);
    f.run(children[1], done()).await;
    f.run(id, done()).await;
    let deleted = f.heard(f.store.delete(&operator(), vec![children[0], id, children[1]]).await.unwrap());
    assert_eq!(deleted, [Some(true), Some(true), Some(true)]);
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    f.commit(submitting(&parent, done(), vec![child(&parent)])).await;
    assert_eq!(f.heard(f.store.delete(&operator(), vec![id]).await.unwrap()), [Some(false)]);
}

async fn a_child_behind_the_key_of_its_parent_is_refused(f: &Fixture) {
    f.new_task(under("k", 1)).await;
    let parent = f.claim_one().await;
    let behind = Submit { slot: slot("k", 1, Policy::Wait), ..child(&parent) };
    let committed = f.commit(submitting(&parent, wait(OnFailure::Fail), vec![behind.clone()])).await;
    assert!(committed.child_fault.is_some_and(|fault| fault.reason.contains("held by its parent")));
    // As its last act, the key is free.
    let committed = f.commit(submitting(&parent, done(), vec![behind])).await;
    assert!(matches!(committed.ended, Ended::Applied { .. }));
}

async fn a_waiting_parent_gives_a_slot_per_chunk_back(f: &Fixture) {
    let id = f.new_task(Submit { slot: chunk_slot("k", 1), ..click() }).await;
    let parent = f.claim_one().await;
    let behind = Submit { slot: chunk_slot("k", 1), ..child(&parent) };
    let child_id = behind.id;
    f.commit(submitting(&parent, wait(OnFailure::Fail), vec![behind])).await;
    assert!(!f.get(id).await.slot_held);
    f.must(id, Ask::Pause).await;
    f.must(id, Ask::Resume).await;
    assert!(!f.get(id).await.slot_held && waits(&f.get(id).await));
    f.run(child_id, done()).await;
    f.run(id, done()).await;
}

async fn progress_of_a_parent_is_the_weighted_work_of_its_children(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    let children = vec![weighing(&parent, 3), weighing(&parent, 1)];
    let ids: Vec<TaskId> = children.iter().map(|c| c.id).collect();
    f.commit(submitting(&parent, wait(OnFailure::Fail), children)).await;
    let shown = async || {
        f.heard(f.store.roll_up(vec![id]).await.unwrap());
        let progress = f.get(id).await.progress;
        (progress.current, progress.total)
    };
    assert_eq!(shown().await, (0, Some(400)));
    let big = f.take(ids[0]).await;
    f.pass(1_000);
    assert!(f.report(&big, json!({"current": 50, "total": 100})).await);
    assert_eq!(shown().await, (150, Some(400)));
    let before = f.get(id).await.revision;
    assert_eq!(shown().await, (150, Some(400)));
    assert_eq!(f.get(id).await.revision, before, "nothing moved, so nothing is written");
    f.pass(1_000);
    f.end(&big, done()).await;
    assert_eq!(shown().await, (300, Some(400)));
    f.run(ids[1], done()).await;
    assert_eq!((f.get(id).await.progress.current, f.get(id).await.progress.total), (400, Some(400)));
}

async fn own_work_and_children_add_up(f: &Fixture) {
    let id = f.new_task(click()).await;
    let parent = f.claim_one().await;
    let Outcome::More { checkpoint, delay_ms, mut told } = wait(OnFailure::Ignore) else { panic!() };
    told.report = Reported::parse(&json!({"current": 10, "total": 20})).unwrap();
    let children = vec![weighing(&parent, 80)];
    let child_id = children[0].id;
    f.commit(submitting(&parent, Outcome::More { checkpoint, delay_ms, told }, children)).await;
    assert_eq!((f.get(id).await.progress.current, f.get(id).await.progress.total), (10, Some(100)));
    f.run(child_id, gives_up()).await;
    let parent = f.take(id).await;
    assert_eq!(parent.task.progress.current, 90);
    assert!(f.report(&parent, json!({"current": 15})).await);
    assert_eq!((f.get(id).await.progress.current, f.get(id).await.progress.total), (95, Some(100)));
    f.end(&parent, done()).await;
}

async fn a_page_of_children_goes_on_after_its_last_one(f: &Fixture) {
    let (id, mut children) = f.family(OnFailure::Ignore, 5).await;
    children.sort_unstable();
    let first = f.store.children(id, None, 2).await.unwrap();
    let rest = f.store.children(id, Some(first[1].id), 10).await.unwrap();
    let seen: Vec<TaskId> = first.iter().chain(&rest).map(|t| t.id).collect();
    assert_eq!(seen, children);
}

async fn a_list_can_be_held_to_the_children_of_one_task(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Ignore, 3).await;
    let (other, _) = f.family(OnFailure::Ignore, 2).await;
    let of = |parent| ListParams { reach: Reach::own(&bob()), parent: Some(parent), limit: 2, ..ListParams::default() };
    let first = f.store.list(of(id)).await.unwrap();
    let rest = f.store.list(ListParams { after: first.next, ..of(id) }).await.unwrap();
    let listed: BTreeSet<TaskId> = first.items.iter().chain(&rest.items).map(|task| task.id).collect();
    assert_eq!(listed, children.into_iter().collect());
    assert_eq!(f.store.list(of(other)).await.unwrap().items.len(), 2);
    let stranger = ListParams { reach: Reach::own(&alice()), ..of(id) };
    assert!(f.store.list(stranger).await.unwrap().items.is_empty());
}
