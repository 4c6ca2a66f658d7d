//! What is true of every database at every instant between two commits, whatever happened before.

use std::collections::{BTreeMap, BTreeSet};
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::task::{State, Task, TimelineEvent, limits};
use taskbell::core::transition::TABLE;
use taskbell::store::{Counts, ListParams, Reach, Store};

/// Fails with the task and the sentence that is not true of it.
pub async fn assert_invariants(store: &dyn Store) {
    let tasks = all_tasks(store).await;
    for task in &tasks {
        columns_fit_the_state(task);
        budgets_hold(task);
        timeline_follows_the_arrows(task, &store.events(task.id, 0, usize::MAX >> 1).await.unwrap());
        assert!(task.head <= store.head(&task.tenant, &task.owner).await.unwrap(), "{task:?} is ahead of its owner");
    }
    slots_are_within_their_limits_and_given_on(&tasks);
    families_are_whole(&tasks);
    centers_hold_what_is_owed(store, &tasks).await;
}

/// Every task of every tenant, each once (invariant 1).
pub async fn all_tasks(store: &dyn Store) -> Vec<Task> {
    let (mut tasks, mut seen, mut after) = (Vec::new(), BTreeSet::new(), None);
    loop {
        let params = ListParams { archived: true, after, limit: 200, ..ListParams::default() };
        let page = store.list(params).await.unwrap();
        for task in page.items {
            assert!(seen.insert(task.id), "{} is listed twice", task.id);
            tasks.push(task);
        }
        match page.next {
            Some(next) => after = Some(next),
            None => return tasks,
        }
    }
}

/// Ended, running, waiting: which columns go together (and invariant 5: nothing that no claim, sweep or person can move).
fn columns_fit_the_state(task: &Task) {
    let ended = task.state.is_final();
    let leased = task.under_way();
    assert_eq!(task.finished_at.is_some(), ended, "an end and only an end has an instant: {task:?}");
    assert_eq!(task.lease_owner.is_some(), leased, "a lease has an owner: {task:?}");
    assert!(!(task.slot_held && task.gated), "holds a slot and waits for one: {task:?}");
    assert!(task.concurrency.is_some() || !(task.slot_held || task.gated), "a slot without a key: {task:?}");
    assert_eq!(task.state == State::Blocked, task.gated && task.state != State::Running, "{task:?}");
    assert!(!task.gated || matches!(task.state, State::Blocked | State::Running), "{task:?}");
    assert!(task.fencing_token > FencingToken(0) || task.started_at.is_none(), "started without a token: {task:?}");
    let stopping = matches!(task.state, State::Pausing | State::Cancelling);
    assert_eq!(task.stop.is_some(), stopping, "a stop is asked while it is asked: {task:?}");
    if ended {
        assert!(!leased && !task.slot_held && !task.gated, "an end gives everything back: {task:?}");
    } else {
        let movable = task.claimable() || leased || task.gated || task.state == State::Paused || task.awaits.is_some();
        assert!(movable, "nothing can move it: {task:?}");
        assert!(leased || task.wait.is_some(), "waits without a reason: {task:?}");
    }
    if stopping {
        assert!(leased, "a stop without a chunk to answer it: {task:?}");
    }
    if leased {
        assert_eq!(task.concurrency.is_some(), task.slot_held, "a chunk runs without its slot: {task:?}");
    }
}

/// Invariants 7 and 8.
fn budgets_hold(task: &Task) {
    assert!(task.attempts <= task.max_attempts, "{task:?}");
    assert!(task.failures <= task.max_attempts * 10, "{task:?}");
    assert!(task.reclaims <= limits::RECLAIMS + 1 && task.reclaims <= task.takeovers, "{task:?}");
    assert!(task.idle_chunks <= limits::IDLE_CHUNKS_FAIL, "{task:?}");
    assert!(task.progress.current >= 0 && task.progress.total.is_none_or(|t| t >= 0), "{task:?}");
    let warned: BTreeSet<&String> = task.warnings.iter().collect();
    assert_eq!(warned.len(), task.warnings.len(), "warned twice of the same: {task:?}");
}

/// Invariants 4 and 11: every change of state is an arrow, and each has its line in the same commit.
fn timeline_follows_the_arrows(task: &Task, timeline: &[TimelineEvent]) {
    assert_eq!(timeline.len() as i64, task.event_count, "{task:?}: {timeline:#?}");
    let mut state = None;
    for (seq, event) in (1..).zip(timeline) {
        assert_eq!(event.seq, seq, "{timeline:#?}");
        match state {
            None => assert_eq!((event.from, event.to), (None, State::Queued), "{timeline:#?}"),
            Some(before) => {
                assert_eq!(event.from, Some(before), "a change was not told: {timeline:#?}");
                let arrow = TABLE.iter().any(|a| a.from == before && a.to == event.to);
                assert!(arrow || before == event.to, "no arrow leads there: {event:?}");
            }
        }
        state = Some(event.to);
    }
    assert_eq!(state, Some(task.state), "the last line is the state: {timeline:#?}");
}

/// Invariant 6, and that no slot lies idle while somebody waits for it.
fn slots_are_within_their_limits_and_given_on(tasks: &[Task]) {
    let mut keys: BTreeMap<(&str, &str), (u32, u32, Vec<TaskId>)> = BTreeMap::new();
    for task in tasks {
        let Some(c) = &task.concurrency else { continue };
        let (held, limit, waiting) = keys.entry((&task.tenant, &c.key)).or_default();
        *limit = c.limit.max(*limit);
        *held += u32::from(task.slot_held);
        if task.gated {
            waiting.push(task.id);
        }
    }
    for (key, (held, limit, waiting)) in keys {
        assert!(held <= limit, "{key:?} is held {held} times, the limit is {limit}");
        assert!(
            waiting.is_empty() || held == limit,
            "{waiting:?} wait for {key:?}, of which {held} of {limit} are held"
        );
    }
}

/// A parent waits only while a child of it is open, and its row knows the children that there are. A parent that was
/// stopped has asked its open children to stop.
fn families_are_whole(tasks: &[Task]) {
    let mut children: BTreeMap<TaskId, Vec<&Task>> = BTreeMap::new();
    for task in tasks {
        if let Some(parent) = task.parent {
            children.entry(parent.id).or_default().push(task);
        }
    }
    for task in tasks {
        let own = children.remove(&task.id).unwrap_or_default();
        let open: Vec<&&Task> = own.iter().filter(|c| !c.state.is_final()).collect();
        let waits = task.awaits.is_some() && !task.state.is_final();
        assert!(!waits || !open.is_empty(), "it waits for nothing: {task:?}");
        assert!(!(waits && task.under_way()), "it waits and runs: {task:?}");
        let (count, weight) = task.family.as_ref().map_or((0, 0), |f| (f.children, f.weight));
        let weights: i64 = own.iter().filter_map(|c| c.parent).map(|p| p.weight).sum();
        assert!(own.len() as i64 <= count && weights <= weight, "{} children of {task:?}", own.len());
        let asked = open.iter().all(|c| c.state == State::Cancelling);
        assert!(!task.takes_children_down() || asked, "{open:?} go on without {task:?}");
        for child in own {
            assert_eq!((&child.tenant, &child.owner), (&task.tenant, &task.owner), "{child:?} of {task:?}");
        }
    }
}

/// The notification center of every owner: its counts are those of the rows, and no unfinished task is left out.
async fn centers_hold_what_is_owed(store: &dyn Store, tasks: &[Task]) {
    let owners: BTreeSet<(&str, &str)> = tasks.iter().map(|t| (t.tenant.as_str(), t.owner.as_str())).collect();
    for (tenant, owner) in owners {
        let own: Vec<&Task> = tasks.iter().filter(|t| t.tenant == tenant && t.owner == owner).collect();
        let center = store.center(tenant, owner).await.unwrap();
        let mut counts = Counts::default();
        for task in &own {
            let ended = task.state.is_final();
            if !ended {
                *counts.by_state.entry(task.state).or_default() += 1;
            }
            counts.unseen += i64::from(ended && task.seen_at.is_none() && task.archived_at.is_none());
            let failed = task.state == State::Failed && task.read_at.is_none() && task.archived_at.is_none();
            counts.attention += i64::from(failed);
        }
        assert_eq!(center.counts, counts, "{tenant} {owner}");
        assert_eq!(center.head, store.head(tenant, owner).await.unwrap());
        let shown: BTreeSet<TaskId> = center.tasks.iter().map(|t| t.id).collect();
        assert_eq!(shown.len(), center.tasks.len(), "shown twice");
        let unfinished = own.iter().filter(|t| !t.state.is_final()).count();
        let shown_unfinished = center.tasks.iter().filter(|t| !t.state.is_final()).count();
        assert_eq!(shown_unfinished, unfinished.min(100), "{tenant} {owner}");
        let reach = Reach { tenant: Some(tenant.to_owned()), owner: Some(owner.to_owned()) };
        let all: i64 = store.counts(&reach, true).await.unwrap().by_state.values().sum();
        assert_eq!(all as usize, own.len());
    }
}
