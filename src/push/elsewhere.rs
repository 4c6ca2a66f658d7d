//! What other nodes committed, read off the change log: the tail of the database.
//!
//! Where nodes tell each other what they did, this heals what got lost; where they do not, it is how a node hears of the
//! others at all. One statement asks for the heads of all who are connected here. Who is behind gets the tasks that changed
//! since, as if the bus had told of them, so that all that holds for changes holds for these as well. What a commit changed
//! and a later one changed again is in the later state; a deleted task leaves no row, so that an owner whose tasks were
//! deleted since gets a snapshot, and so does one who is far behind.
//!
//! Subscribed tasks of owners who are not connected here are looked at by their revisions, and their logs by the newest seq.
//!
//! Named failure cases: a change that this node committed itself may be read before the bus has brought it, which is the same
//! news twice and is told once; a row that this version does not understand is told as unknown; a database that does not answer
//! is asked again at the next look.

use super::hub::Hub;
use super::locked;
use super::registry::OwnerKey;
use crate::bus::Between;
use crate::core::change::Change;
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::metric;
use crate::core::task::Task;
use crate::store::{OwnerHeads, Reach, Result};
use metrics::counter;
use std::sync::Weak;
use std::time::Duration;
use tokio::sync::watch;

/// Two looks that were asked for are at least so far apart.
const SPACING_MS: u64 = 100;
/// And so many times as far as one takes: what is asked for often must not keep the database busy.
const REST_FACTOR: u64 = 4;
/// An owner with more changes than these gets a snapshot, which is as large.
const MOST_OF_ONE: usize = 100;
/// So many owners are caught up with in one statement.
const OWNERS_AT_ONCE: usize = 50;

/// Looks as long as the hub is there: by its rhythm, and when it is told that another node changed something.
pub(super) async fn follow(hub: Weak<Hub>, mut between: watch::Receiver<Between>) {
    loop {
        let Some((every_ms, asked)) = hub.upgrade().map(|hub| (rhythm_ms(&hub, &between), hub.elsewhere.clone()))
        else {
            return;
        };
        tokio::select! {
            () = asked.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(every_ms)) => {}
            // An error means that the bus is gone, and then the hub is as well.
            Ok(()) = between.changed() => {}
        }
        let Some(at_hub) = hub.upgrade() else { return };
        let began = at_hub.clock.mono();
        if let Err(e) = look(&at_hub).await {
            tracing::debug!("the change log could not be read: {e}");
        }
        let rest_ms = SPACING_MS.max((at_hub.clock.mono() - began) * REST_FACTOR);
        drop(at_hub);
        tokio::time::sleep(Duration::from_millis(rest_ms)).await;
    }
}

fn rhythm_ms(hub: &Hub, between: &watch::Receiver<Between>) -> u64 {
    match *between.borrow() {
        Between::Up => hub.limits.heads_calm_ms,
        Between::Nothing | Between::Trying | Between::Refused | Between::Down => hub.limits.heads_ms,
    }
}

async fn look(hub: &Hub) -> Result<()> {
    let (known, watched) = {
        let registry = locked(&hub.registry);
        (registry.known(), registry.watched_alone())
    };
    if !known.is_empty() {
        look_at_owners(hub, known).await?;
    }
    if !watched.is_empty() {
        look_at_tasks(hub, &watched).await?;
    }
    let logs = locked(&hub.registry).watched();
    if !logs.is_empty() {
        let newest = hub.logs.newest(&logs).await?;
        let mut registry = locked(&hub.registry);
        newest.into_iter().for_each(|(task, newest)| registry.log_is_at(task, newest));
    }
    Ok(())
}

async fn look_at_owners(hub: &Hub, known: Vec<(OwnerKey, Head)>) -> Result<()> {
    let (owners, since): (Vec<OwnerKey>, Vec<Head>) = known.into_iter().unzip();
    let heads = hub.store.heads(&owners).await?;
    let all = owners.into_iter().zip(since).zip(heads);
    let behind: Vec<_> = all.filter(|((_, since), there)| there.head > *since).collect();
    for part in behind.chunks(OWNERS_AT_ONCE) {
        catch_up(hub, part).await?;
    }
    Ok(())
}

/// The tasks are one look, in which everything is that was committed up to the highest head among them. Whether tasks were
/// deleted meanwhile is read after it.
async fn catch_up(hub: &Hub, behind: &[((OwnerKey, Head), OwnerHeads)]) -> Result<()> {
    let (since, there): (Vec<(OwnerKey, Head)>, Vec<OwnerHeads>) = behind.iter().cloned().unzip();
    let owners: Vec<OwnerKey> = since.iter().map(|(owner, _)| owner.clone()).collect();
    let tasks = hub.store.changed(&since, MOST_OF_ONE + 1).await?;
    let after = hub.store.heads(&owners).await?;
    let now = hub.clock.mono();
    let mut registry = locked(&hub.registry);
    for (((owner, since), there), after) in since.into_iter().zip(there).zip(after) {
        let of = |task: &&Task| (&task.tenant, &task.owner) == (&owner.0, &owner.1);
        let changed: Vec<Change> = tasks.iter().filter(of).map(|task| Change::Task(Box::new(task.clone()))).collect();
        let to = changed.iter().map(Change::head).fold(there.head, Head::max);
        if after.deleted <= since && changed.len() <= MOST_OF_ONE {
            counter!(metric::CAUGHT_UP).increment(changed.len() as u64);
            registry.catch_up(&owner, &changed, since, to, now);
        } else {
            registry.overtaken(&owner, to, now + hub.jitter_ms());
        }
    }
    Ok(())
}

async fn look_at_tasks(hub: &Hub, watched: &[(TaskId, Revision)]) -> Result<()> {
    let ids: Vec<TaskId> = watched.iter().map(|(id, _)| *id).collect();
    let there = hub.store.revisions(&ids).await?;
    let newer: Vec<TaskId> =
        watched.iter().filter(|(id, known)| there.get(id).is_some_and(|there| there > known)).map(|w| w.0).collect();
    let tasks = if newer.is_empty() { Vec::new() } else { hub.store.tasks(&Reach::default(), &newer).await? };
    let changes: Vec<Change> = tasks.into_iter().map(|task| Change::Task(Box::new(task))).collect();
    let now = hub.clock.mono();
    let mut registry = locked(&hub.registry);
    registry.dispatch(&changes, now);
    watched.iter().filter(|(id, _)| !there.contains_key(id)).for_each(|(id, _)| registry.is_gone(*id, now));
    Ok(())
}
