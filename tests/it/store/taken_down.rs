//! Children go down with a parent that is stopped by what is not about it: a click under its key.

use super::children::{child, submitting};
use super::fixture::{Fixture, LEASE_MS, store_suite};
use super::words::*;
use taskbell::core::action::Policy;
use taskbell::core::lifecycle::Ended;
use taskbell::core::submit::Submit;
use taskbell::core::task::State;
use taskbell::store::ChunkCommit;

store_suite! {
    a_click_that_cancels_a_running_parent_takes_its_children_along
}

async fn a_click_that_cancels_a_running_parent_takes_its_children_along(f: &Fixture) {
    let id = f.new_task(under("k", 1)).await;
    let parent = f.claim_one().await;
    let open = child(&parent);
    let open_id = open.id;
    let end = submitting(&parent, more(1), vec![open]);
    let committed = f.commit(ChunkCommit { continue_for_ms: Some(LEASE_MS), ..end }).await;
    assert_eq!(committed.ended, Ended::Applied { continues: true });
    f.new_task(Submit { slot: slot("k", 1, Policy::CancelRunning), ..click() }).await;
    assert_eq!(f.states(&[id, open_id]).await, [State::Cancelling, State::Cancelled]);
}
