//! What a task may not do because of those above it: wait for a slot that they keep, or go on while they have stopped.

use super::children::{child, submitting, wait};
use super::fixture::{Fixture, store_suite};
use super::words::*;
use taskbell::core::action::Policy;
use taskbell::core::family::OnFailure;
use taskbell::core::lifecycle::Ask;
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::store::{Asked, Claimed};

store_suite! {
    families_that_wait_for_each_others_keys_are_let_go_by_a_deadline_or_a_cancel
    a_descendant_behind_a_key_that_is_held_above_it_is_refused
    a_child_of_a_stopped_parent_is_not_resumed_alone
}

async fn a_descendant_behind_a_key_that_is_held_above_it_is_refused(f: &Fixture) {
    for (limit, holders) in [(1, 1), (2, 2)] {
        let name = format!("k{limit}");
        let behind = |parent: &Claimed| Submit { slot: slot(&name, limit, Policy::Wait), ..child(parent) };
        let top = f.new_task(under(&name, limit)).await;
        let claimed = f.take(top).await;
        let middle = if holders == 2 { behind(&claimed) } else { child(&claimed) };
        let middle_id = middle.id;
        assert!(f.commit(submitting(&claimed, wait(OnFailure::Fail), vec![middle])).await.child_fault.is_none());
        let claimed = f.take(middle_id).await;
        let lower = child(&claimed);
        let lower_id = lower.id;
        f.commit(submitting(&claimed, wait(OnFailure::Fail), vec![lower])).await;
        let claimed = f.take(lower_id).await;
        let committed = f.commit(submitting(&claimed, wait(OnFailure::Fail), vec![behind(&claimed)])).await;
        let fault = committed.child_fault.expect("it would wait for ever");
        assert!(!fault.retryable && fault.reason.contains("one above"), "{fault:?}");
        assert!(f.counts(lower_id).await.is_empty());
        // Another key, or a slot that is free, is no reason.
        let other = Submit { slot: slot(&name, holders + 1, Policy::Wait), ..child(&claimed) };
        assert!(f.commit(submitting(&claimed, more(1), vec![other])).await.child_fault.is_none());
        f.must(top, Ask::ForceCancel).await;
        f.lose_leases().await;
    }
}

async fn a_child_of_a_stopped_parent_is_not_resumed_alone(f: &Fixture) {
    let (id, children) = f.family(OnFailure::Fail, 2).await;
    f.must(id, Ask::Cancel).await;
    assert_eq!(f.ask(children[0], Ask::Resume).await, Asked::ParentStopped);
    assert_eq!(f.states(&children).await, [State::Cancelled, State::Cancelled]);
    // With its parent before it in one request, it is back already.
    f.must(id, Ask::Resume).await;
    assert!(matches!(f.ask(children[0], Ask::Resume).await, Asked::Done { changed: false, .. }));
    f.run(children[0], gives_up()).await;
    assert_eq!(f.ask(children[0], Ask::Resume).await, Asked::ParentStopped);
    assert_eq!(f.state(id).await, State::Failed);
    // A parent that passes failures over stands by its own: the child may go on.
    let (other, children) = f.family(OnFailure::Ignore, 2).await;
    f.run(children[0], gives_up()).await;
    f.must(children[0], Ask::Resume).await;
    f.run(children[0], done()).await;
    f.run(children[1], done()).await;
    f.run(other, done()).await;
}

async fn families_that_wait_for_each_others_keys_are_let_go_by_a_deadline_or_a_cancel(f: &Fixture) {
    for by_deadline in [true, false] {
        let timeout_ms = by_deadline.then_some(5_000);
        let first = f.new_task(Submit { timeout_ms, ..under("left", 1) }).await;
        let second = f.new_task(under("right", 1)).await;
        let mut children = Vec::new();
        for (parent, other) in [(first, "right"), (second, "left")] {
            let parent = f.take(parent).await;
            let child = Submit { slot: slot(other, 1, Policy::Wait), ..child(&parent) };
            children.push(child.id);
            f.commit(submitting(&parent, wait(OnFailure::Fail), vec![child])).await;
        }
        assert_eq!(f.states(&children).await, [State::Blocked; 2], "each waits for the other family");
        f.sweep().await;
        assert_eq!(f.states(&[first, second]).await, [State::Running; 2]);
        let ended = if by_deadline {
            f.pass(5_001);
            f.sweep().await;
            State::Failed
        } else {
            f.must(first, Ask::Cancel).await;
            State::Cancelled
        };
        assert_eq!(f.states(&[first, children[0]]).await, [ended, State::Cancelled]);
        f.run(children[1], done()).await;
        f.run(second, done()).await;
        assert_eq!(f.state(second).await, State::Succeeded);
    }
}
