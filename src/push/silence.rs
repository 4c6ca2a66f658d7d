//! Silence past a lease: tasks whose worker should be at work and is not heard.
//!
//! Renewals change nothing that is seen and so are not announced. What is known of a lease here is old when it seems to be
//! over, so the database is asked then: by one statement a second for all that are due, and for nothing while all report.
//! Whoever sees such a task is told when its lease has truly ended, and again when it is renewed after all; that it was
//! taken back is a change like any other. Must never end or free anything: that is the sweep's.

use super::hub::Hub;
use super::locked;
use super::registry::Seen;
use crate::core::ids::TaskId;
use crate::core::task::Task;
use crate::core::time::Millis;
use crate::store::Reach;
use std::collections::HashMap;
use std::sync::Weak;
use std::time::Duration;

/// How often leases are looked at that are over, or were when they were last looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A task that is silent is looked at again after this time, ms.
const AGAIN_MS: i64 = 5_000;

/// The leases of tasks that somebody here sees.
#[derive(Default)]
pub struct Leases {
    known: HashMap<TaskId, Lease>,
}

struct Lease {
    /// When it is worth a look.
    at: Millis,
    /// Its end was told.
    silent: bool,
    seen: Seen,
}

impl Leases {
    /// What a change or a snapshot tells of a task.
    pub fn note(&mut self, task: &Task) {
        match task.lease_until.filter(|_| task.under_way()) {
            Some(at) => {
                let silent = self.known.get(&task.id).is_some_and(|known| known.silent);
                self.known.insert(task.id, Lease { at, silent, seen: Seen::of(task) });
            }
            None => self.forget(task.id),
        }
    }

    /// The task is gone, or nobody is at work on it.
    pub fn forget(&mut self, task: TaskId) {
        self.known.remove(&task);
    }

    /// Forgets those that nobody sees any more.
    pub fn retain(&mut self, sees: impl Fn(&TaskId, &Seen) -> bool) {
        self.known.retain(|id, lease| sees(id, &lease.seen));
    }

    /// Those that seem to be over since `grace_ms`: longer than any picture of them is kept.
    pub fn due(&self, now: Millis, grace_ms: i64) -> Vec<TaskId> {
        self.known.iter().filter(|(_, lease)| lease.at.plus(grace_ms) < now).map(|(id, _)| *id).collect()
    }

    /// What the database says of one that was due; answers who has to be told.
    fn looked(&mut self, id: TaskId, task: Option<&Task>, now: Millis) -> Option<Seen> {
        let lease = self.known.get_mut(&id)?;
        let Some(until) = task.filter(|task| task.under_way()).and_then(|task| task.lease_until) else {
            self.known.remove(&id);
            return None;
        };
        let over = until < now;
        let told = std::mem::replace(&mut lease.silent, over) != over;
        lease.at = if over { now.plus(AGAIN_MS) } else { until };
        told.then(|| lease.seen.clone())
    }
}

/// Looks at leases for as long as the hub is there.
pub(super) async fn look(hub: Weak<Hub>) {
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let Some(hub) = hub.upgrade() else { return };
        let grace_ms = i64::try_from(hub.limits.snapshot_ms + hub.limits.render_ms).unwrap_or(i64::MAX);
        let due = locked(hub.registry()).due_leases(hub.clock.now(), grace_ms);
        if due.is_empty() {
            continue;
        }
        match hub.store.tasks(&Reach::default(), &due).await {
            Ok(found) => {
                let (mut registry, now) = (locked(hub.registry()), hub.clock.now());
                for id in due {
                    let task = found.iter().find(|task| task.id == id);
                    if let Some(seen) = registry.leases.looked(id, task, now) {
                        registry.tell_time(id, &seen);
                    }
                }
            }
            Err(e) => tracing::debug!("leases could not be looked at: {e}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leased(until: i64) -> Task {
        let mut task = crate::push::registry::tests::task(1);
        (task.state, task.lease_until) = (crate::core::task::State::Running, Some(Millis(until)));
        (task.lease_owner, task.started_at) = (Some("node".into()), Some(Millis(1)));
        task
    }

    #[test]
    fn a_lease_that_seems_over_is_asked_for_and_told_only_when_it_is() {
        let mut leases = Leases::default();
        let task = leased(30_000);
        leases.note(&task);
        assert_eq!(leases.due(Millis(32_000), 2_500), []);
        assert_eq!(leases.due(Millis(32_501), 2_500), [task.id]);
        // It was renewed meanwhile, and nobody had said so.
        assert!(leases.looked(task.id, Some(&leased(60_000)), Millis(32_501)).is_none());
        assert_eq!(leases.due(Millis(62_501), 2_500), [task.id]);
        assert!(leases.looked(task.id, Some(&leased(60_000)), Millis(62_501)).is_some(), "now it is over");
        assert_eq!(leases.due(Millis(63_000), 2_500), []);
        let later = Millis(62_501 + AGAIN_MS + 2_501);
        assert_eq!(leases.due(later, 2_500), [task.id]);
        assert!(leases.looked(task.id, Some(&leased(60_000)), later).is_none(), "told once");
        assert!(leases.looked(task.id, Some(&leased(90_000)), later).is_some(), "and again when it goes on");
        assert!(leases.looked(task.id, None, later).is_none());
        assert_eq!(leases.due(Millis(i64::MAX / 2), 0), []);
    }
}
