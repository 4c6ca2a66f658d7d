//! The loops of a node, beside that of [`super::claims`]: heartbeat, expire, sweep, listen, clean. Each is supervised: one that
//! breaks down is logged and started again.

use super::commands::announce;
use super::measure;
use super::running::Told;
use super::{Inner, SWEEP_AT_ONCE, sweep_params};
use crate::bus::{LocalBus, Signal, Subscription};
use crate::core::change::Change;
use crate::core::ids::{FencingToken, TaskId};
use crate::core::metric;
use crate::core::task::State;
use crate::store::{RenewParams, Renewed, Store, SweepParams};
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// How often files whose time is over are looked for.
const CLEAN_EVERY: Duration = Duration::from_secs(60);
/// A renewal is given up after a third of the lease, and never sooner: a busy database is not one that is gone.
const LEAST_PATIENCE: Duration = Duration::from_secs(2);
/// Before a loop that broke down is started again.
const REST: Duration = Duration::from_secs(1);

/// Runs a loop for ever: one that panics is logged and started again.
pub(super) async fn supervised<F, Fut>(name: &'static str, run: F)
where
    F: Fn() -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    while let Err(broke) = AbortOnDropHandle::new(tokio::spawn(run())).await {
        if broke.is_cancelled() {
            return;
        }
        tracing::error!(loop_name = name, "an engine loop broke down and is started again: {broke}");
        tokio::time::sleep(REST).await;
    }
}

/// Renews the leases of all running chunks in one statement, and hears what was asked of them. It is held up by nobody who
/// writes one of the tasks; only where half of a lease is gone is that waited for.
pub(super) async fn heartbeat(engine: Arc<Inner>) {
    let half_ms = engine.settings.lease_ms.unsigned_abs() / 2;
    let mut wait = engine.settings.heartbeat_ms;
    loop {
        engine.pulse.turns("heartbeat", engine.clock.now());
        tokio::time::sleep(Duration::from_millis(wait)).await;
        wait = engine.settings.heartbeat_ms;
        let Some(busy) = renew(&engine, engine.running.held(), false).await else {
            // At once, on another connection.
            wait = 0;
            continue;
        };
        let soon = engine.clock.mono() + half_ms;
        let urgent = busy.into_iter().filter(|(id, token)| engine.running.ends_by(*id, *token, soon));
        renew(&engine, urgent.collect(), true).await;
    }
}

/// One renewal. Answers what somebody was writing, or nothing where nobody answered in time: a renewal is given up while there
/// is time for another one.
async fn renew(engine: &Inner, held: Vec<(TaskId, FencingToken)>, waits: bool) -> Option<Vec<(TaskId, FencingToken)>> {
    let mut busy = Vec::new();
    if held.is_empty() {
        return Some(busy);
    }
    let (asked_at, lease_ms) = (engine.clock.mono(), engine.settings.lease_ms);
    let patience = match engine.store.capabilities().single_process {
        true => Duration::MAX,
        false => LEAST_PATIENCE.max(Duration::from_millis(lease_ms.unsigned_abs() / if waits { 2 } else { 3 })),
    };
    let params = RenewParams { node: engine.settings.node.clone(), held: held.clone(), lease_ms, waits };
    let Ok(renewed) = tokio::time::timeout(patience, engine.store.renew(params)).await else {
        tracing::warn!("nobody answers a renewal of leases; work goes on until they end");
        return None;
    };
    let answers = match renewed {
        Ok(answers) => answers,
        Err(e) => {
            tracing::warn!(error = %e, "leases could not be renewed; work goes on until they end");
            return Some(busy);
        }
    };
    let (lease_end, mut stale) = (asked_at + lease_ms.unsigned_abs(), 0);
    for ((id, token), answer) in held.into_iter().zip(answers) {
        match answer {
            Renewed::Busy => busy.push((id, token)),
            Renewed::Stale => stale += usize::from(engine.running.lost(id, token)),
            Renewed::Ok => engine.running.renewed(id, token, lease_end),
            Renewed::Stop => {
                engine.running.renewed(id, token, lease_end);
                engine.running.tell(id, Some(token), Told::Stop);
            }
        }
    }
    measure::stale("renewal", stale);
    Some(busy)
}

/// Drops chunks when their leases end, whatever becomes of renewals: another node may have them by then.
pub(super) async fn expire(engine: Arc<Inner>) {
    let beat = engine.settings.heartbeat_ms;
    loop {
        let now = engine.clock.mono();
        let dropped = engine.running.drop_expired(now);
        measure::more(metric::LEASES_ENDED, dropped);
        if dropped > 0 {
            tracing::warn!(dropped, "dropped chunks whose leases ended");
        }
        // What is entered meanwhile holds for longer than a beat.
        let wait = engine.running.first_end().map_or(beat, |end| (end - now).min(beat));
        tokio::time::sleep(Duration::from_millis(wait.max(1))).await;
    }
}

/// Takes what time has undone.
pub(super) async fn sweep(engine: Arc<Inner>) {
    let every = Duration::from_millis(engine.settings.sweep_ms);
    let params = || {
        engine.pulse.turns("sweep", engine.clock.now());
        sweep_params(&engine, false)
    };
    sweep_every(every, engine.store.as_ref(), &engine.bus, &engine.wake, params).await;
}

/// The same for whoever sweeps: again at once while there is more than one sweep takes.
pub(super) async fn sweep_every(
    every: Duration,
    store: &dyn Store,
    bus: &LocalBus,
    wake: &Notify,
    params: impl Fn() -> SweepParams,
) {
    loop {
        match store.sweep(params()).await {
            Ok(written) => {
                let swept = announce(bus, wake, written);
                measure::more(metric::SWEPT, swept);
                if swept == SWEEP_AT_ONCE {
                    continue;
                }
            }
            Err(e) => tracing::warn!(error = %e, "the sweep failed and is tried again"),
        }
        tokio::time::sleep(every).await;
    }
}

/// Hears what was asked of running tasks on this node at once, before the next heartbeat brings it.
pub(super) async fn listen(engine: Arc<Inner>, mut signals: Subscription) {
    while let Some(signal) = signals.next().await {
        let Signal::Changes(changes) = signal else { continue };
        for change in changes.iter() {
            let id = change.task_id();
            let Some(token) = engine.running.token(id) else { continue };
            match change {
                Change::Task(task) if task.fencing_token > token => engine.running.tell(id, Some(token), Told::Lost),
                Change::Task(task) if task.fencing_token == token => match task.state {
                    State::Pausing | State::Cancelling => engine.running.tell(id, Some(token), Told::Stop),
                    State::Running if !engine.draining() => engine.running.tell(id, Some(token), Told::GoOn),
                    _ => {}
                },
                _ => {}
            }
        }
    }
}

/// Removes files whose time is over.
pub(super) async fn clean(engine: Arc<Inner>) {
    loop {
        match engine.files.clean(SWEEP_AT_ONCE).await {
            Ok(0) => {}
            Ok(removed) => tracing::info!(removed, "removed files whose time is over"),
            Err(e) => tracing::warn!(error = %e, "old files could not be removed and are tried again"),
        }
        tokio::time::sleep(CLEAN_EVERY).await;
    }
}
