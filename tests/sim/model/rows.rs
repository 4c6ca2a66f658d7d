//! What must be true of a changed row, and of the step from the row before to it.

use crate::violation::{Checked, Invariant, must};
use taskbell::core::ids::FencingToken;
use taskbell::core::progress::Stage;
use taskbell::core::task::{State, Task, TimelineEvent, limits};
use taskbell::core::transition::TABLE;

/// The concurrency key of a row, with its tenant.
pub fn slot_key(task: &Task) -> Option<(String, String)> {
    task.concurrency.as_ref().map(|c| (task.tenant.clone(), c.key.clone()))
}

/// The step from one row to the next one.
pub fn changed(before: Option<&Task>, after: &Task, events: &[TimelineEvent]) -> Checked {
    let told = events.iter().filter(|e| e.task == after.id);
    let mut state = before.map(|b| b.state);
    let mut seq = before.map_or(0, |b| b.event_count);
    for event in told {
        seq += 1;
        let arrow = match state {
            None => event.to == State::Queued && event.from.is_none(),
            Some(from) => {
                event.from == Some(from)
                    && (event.to == from || TABLE.iter().any(|a| a.from == from && a.to == event.to))
            }
        };
        must(arrow, Invariant::Arrows, || format!("no arrow leads from {state:?} by {event:?}"))?;
        must(event.seq == seq, Invariant::Timeline, || format!("entry {seq} of the timeline is {event:?}"))?;
        state = Some(event.to);
    }
    let untold = || format!("the timeline ends at {state:?}, the row is {after:?}");
    must(state == Some(after.state) && seq == after.event_count, Invariant::Timeline, untold)?;
    let Some(before) = before else { return Ok(()) };
    let both = || format!("{before:?} became {after:?}");
    must(after.fencing_token >= before.fencing_token, Invariant::Tokens, both)?;
    must(after.revision > before.revision && after.head > before.head, Invariant::Push, both)?;
    let grows = after.takeovers >= before.takeovers && after.chunks >= before.chunks;
    must(grows, Invariant::Tokens, both)?;
    let same_total = after.progress.total == before.progress.total;
    must(!same_total || after.progress.current >= before.progress.current, Invariant::Progress, both)
}

/// The row by itself.
pub fn fits(task: &Task) -> Checked {
    let told = || format!("{task:?}");
    let (ended, leased) = (task.state.is_final(), task.under_way());
    let stopping = matches!(task.state, State::Pausing | State::Cancelling);
    let movable = task.claimable() || leased || task.gated || task.state == State::Paused || task.awaits.is_some();
    must(ended || movable, Invariant::Orphans, told)?;
    must(task.finished_at.is_some() == ended && task.lease_owner.is_some() == leased, Invariant::Orphans, told)?;
    must(!ended || !(leased || task.slot_held || task.gated), Invariant::Orphans, told)?;
    must(!stopping || leased, Invariant::Orphans, told)?;
    must(ended || leased || task.wait.is_some(), Invariant::Orphans, told)?;
    must(task.stop.is_some() == stopping, Invariant::Orphans, told)?;
    must((task.state == State::Blocked) == (task.gated && task.state != State::Running), Invariant::Slots, told)?;
    must(!(task.slot_held && task.gated), Invariant::Slots, told)?;
    must(!leased || task.slot_held == task.concurrency.is_some(), Invariant::Slots, told)?;
    must(task.fencing_token > FencingToken(0) || task.started_at.is_none(), Invariant::Tokens, told)?;
    let budgets = task.attempts <= task.max_attempts
        && task.failures <= task.max_attempts * 10
        && task.reclaims <= limits::RECLAIMS + 1
        && task.reclaims <= task.takeovers;
    must(budgets, Invariant::Budgets, told)?;
    let stage = match task.state {
        State::Succeeded => Stage::Succeeded,
        State::Failed | State::Cancelled => Stage::Stopped,
        _ => Stage::Active,
    };
    let percent = task.progress.percent(stage);
    must(percent != Some(100) || task.state == State::Succeeded, Invariant::Progress, told)?;
    must(percent.is_none() || task.progress.total.is_some(), Invariant::Progress, told)
}
