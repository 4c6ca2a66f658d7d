//! Running one task's chunks on this node: call the handler, hold it to its time, commit what it answers, go on.
//!
//! While nobody else waits for the place, the next chunk runs here at once under the same lease and token; after
//! [`KEEP_PLACE_MS`] the place is given up all the same, so that the queue moves.
//!
//! Named failure cases. The handler panics: a failed attempt. It runs over its time: dropped, recorded as `timeout`. The
//! lease is lost: dropped, and nothing is committed or pushed. The commit is refused as stale: nothing is marked. The
//! database is away: the commit is tried until the lease's own end. An effect is refused by the database: nothing of the
//! chunk was applied, and it counts as a failed attempt.

use super::Inner;
use super::exchange;
use super::host::Host;
use super::logbook::Origin;
use super::measure::{self, Stopwatch};
use super::running::{Told, hears};
use crate::core::action::Action;
use crate::core::chunk::{Failure, Outcome};
use crate::core::lifecycle::{ChunkEnd, Ended};
use crate::core::metric;
use crate::core::task::{ErrorKind, Task};
use crate::core::time::Mono;
use crate::core::view::Documents;
use crate::handler::{ChunkContext, HandlerError};
use crate::store::logs::Level;
use crate::store::{ChunkCommit, Claimed, Committed};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// How long a task may keep its place from chunk to chunk, ms.
const KEEP_PLACE_MS: u64 = 30_000;
/// Between two tries of a commit while the database is away.
const COMMIT_AGAIN: Duration = Duration::from_millis(250);

/// How a call of a handler ended.
enum Called {
    Answered(Box<Outcome>),
    HandedBack,
    Lost,
}

/// Runs a claimed task until it gives its place up.
pub(super) async fn run_task(engine: Arc<Inner>, claimed: Claimed, claimed_at: Mono, heard: watch::Receiver<Told>) {
    let (id, token) = (claimed.task.id, claimed.task.fencing_token);
    let mut next = Some(claimed);
    while let Some(Claimed { task, documents }) = next.take() {
        let may_keep = engine.clock.mono() - claimed_at < KEEP_PLACE_MS;
        next = run_chunk(&engine, task, documents, &heard, may_keep).await;
    }
    engine.reports.forget(id);
    engine.running.leave(id, token);
    measure::running(engine.running.count());
    engine.wake.notify_one();
}

/// One chunk from call to commit; answers the next one if it runs here at once.
async fn run_chunk(
    engine: &Arc<Inner>,
    task: Task,
    documents: Documents,
    heard: &watch::Receiver<Told>,
    may_keep: bool,
) -> Option<Claimed> {
    let origin = exchange::origin(&task);
    engine.running.ends(task.id, task.fencing_token, false);
    let action = engine.catalogue.actions.get(&task.action);
    let cx = Arc::new(context(engine, &task, &documents, origin.clone(), heard));
    let watch = Stopwatch::start();
    let called = call(engine, &task, action.as_deref(), cx.clone(), heard).await;
    watch.tell(metric::CHUNK_SECONDS);
    let (effects, submitted) = (cx.take_effects(), cx.take_children());
    let mut children = Vec::new();
    let end = match called {
        Called::Lost => {
            tracing::info!(task = %task.id, chunk = origin.chunk, "dropped a chunk whose lease is lost");
            measure::chunk("lost");
            return None;
        }
        Called::HandedBack => {
            engine.reports.withdraw(task.id, task.fencing_token);
            ChunkEnd::HandedBack
        }
        Called::Answered(outcome) => {
            let outcome = settled(engine, &origin, *outcome);
            let (outcome, clicks) = exchange::with_children(&engine.resolver, &task, outcome, submitted);
            children = clicks;
            ChunkEnd::Answered(Box::new(outcome))
        }
    };
    engine.running.ends(task.id, task.fencing_token, true);
    let draining = engine.draining();
    let commit = ChunkCommit {
        task: task.id,
        token: task.fencing_token,
        chunk: origin.chunk,
        effects: if matches!(end, ChunkEnd::HandedBack) { Vec::new() } else { effects },
        children,
        end,
        retry: action.as_ref().map(|a| a.retry).unwrap_or_default(),
        unit_random: engine.rng.unit(),
        continue_for_ms: (may_keep && !draining).then_some(engine.settings.lease_ms),
    };
    let (committed, began) = commit_until_lease_end(engine, commit.clone()).await?;
    let (end, committed, began) = match refusal(engine, &origin, &committed) {
        None => (commit.end, committed, began),
        Some(failure) => {
            let end = ChunkEnd::Answered(Box::new(Outcome::Fail(failure)));
            let again = ChunkCommit { end, effects: Vec::new(), children: Vec::new(), ..commit };
            let (committed, began) = commit_until_lease_end(engine, again.clone()).await?;
            (again.end, committed, began)
        }
    };
    // A repeated end found the lease as an earlier commit had given it.
    let applied = committed.task.as_ref().filter(|_| matches!(committed.ended, Ended::Applied { .. }));
    let usual_ms = engine.settings.lease_ms;
    let lease_end = began + applied.map_or(usual_ms.unsigned_abs(), |task| given_ms(task, usual_ms));
    follow_up(engine, &origin, end, committed, lease_end, documents)
}

/// How long the lease lasts that a commit has given, ms, counted from the begin of that commit, which is the instant at which
/// the task was updated: longer than usual where the commit took long.
pub(super) fn given_ms(task: &Task, usual_ms: i64) -> u64 {
    task.lease_until.map_or(usual_ms, |until| until.since(task.updated_at)).max(0).unsigned_abs()
}

/// What the database or the keys of a child did not take, so that nothing of the chunk was applied and it counts as failed.
fn refusal(engine: &Inner, origin: &Origin, committed: &Committed) -> Option<Failure> {
    if let Some(fault) = &committed.child_fault {
        return Some(fault.failure());
    }
    let fault = committed.effect_fault.clone()?;
    measure::more(metric::EFFECTS_REFUSED, 1);
    engine.logbook.log(origin, Level::Error, "taskbell", &format!("The database refused an effect: {fault}"));
    let failure = Failure::new(ErrorKind::Handler, "effect-refused", "The database refused a row of this step.");
    Some(failure.detail(fault))
}

/// What follows from a commit: the words in the log, and the next chunk if the lease was kept.
fn follow_up(
    engine: &Inner,
    origin: &Origin,
    end: ChunkEnd,
    committed: Committed,
    lease_end: Mono,
    mut documents: Documents,
) -> Option<Claimed> {
    measure::chunk_ended(&end, &committed.ended);
    exchange::tell_failure(&engine.logbook, origin, &end, &committed);
    let task = committed.task?;
    if committed.ended == Ended::Stale {
        tracing::warn!(task = %task.id, chunk = origin.chunk, "a chunk's end came too late and changed nothing");
    } else {
        engine.pulse.executed();
    }
    if !committed.ended.keeps_lease(&task, origin.token, origin.chunk) {
        return None;
    }
    engine.running.renewed(task.id, task.fencing_token, lease_end);
    if let ChunkEnd::Answered(outcome) = end
        && let Outcome::More { checkpoint: Some(checkpoint), .. } = *outcome
    {
        documents.checkpoint = Some(checkpoint);
    }
    Some(Claimed { task, documents })
}

fn context(
    engine: &Arc<Inner>,
    task: &Task,
    documents: &Documents,
    origin: Origin,
    heard: &watch::Receiver<Told>,
) -> ChunkContext {
    let chunk = exchange::chunk_in(&engine.catalogue, task, documents);
    let host = Host {
        store: engine.store.clone(),
        files: engine.files.clone(),
        reports: engine.reports.clone(),
        logbook: engine.logbook.clone(),
        owner: task.owner.clone(),
        started_by: task.started_by.clone(),
        heard: heard.clone(),
        task: task.clone(),
        resolver: engine.resolver.clone(),
        origin,
    };
    ChunkContext::new(chunk, Arc::new(host))
}

/// Calls the handler in a task of its own, so that a panic ends the chunk and not the node.
async fn call(
    engine: &Inner,
    task: &Task,
    action: Option<&Action>,
    cx: Arc<ChunkContext>,
    heard: &watch::Receiver<Told>,
) -> Called {
    let Some(handler) = engine.registry.get(&task.action) else { return Called::HandedBack };
    let limit_ms = action.map_or(30_000, |a| a.chunk_timeout_ms).unsigned_abs();
    let mut running = tokio::spawn(async move { handler.run(&cx).await });
    let ended = tokio::select! {
        ended = &mut running => Some(ended),
        told = hears(heard, Told::HandBack) => {
            running.abort();
            return if told == Told::Lost { Called::Lost } else { Called::HandedBack };
        }
        () = tokio::time::sleep(Duration::from_millis(limit_ms)) => None,
    };
    let failure = match ended {
        Some(Ok(Ok(outcome))) => return Called::Answered(Box::new(outcome)),
        Some(Ok(Err(HandlerError::HandedBack))) => return Called::HandedBack,
        Some(Ok(Err(error))) => error.into_failure(),
        Some(Err(panicked)) => {
            tracing::error!(task = %task.id, action = %task.action, "a handler panicked: {panicked}");
            let failure = Failure::new(ErrorKind::Handler, "panic", "The handler broke down.");
            Some(failure.detail(panicked.to_string()))
        }
        None => {
            running.abort();
            let text = format!("A step took longer than its limit of {} s.", limit_ms as f64 / 1000.0);
            Some(Failure::new(ErrorKind::Timeout, "timeout", text))
        }
    };
    failure.map_or(Called::HandedBack, |f| Called::Answered(Box::new(Outcome::Fail(f))))
}

/// Holds an outcome against its limits, writes its log lines, and puts what was reported last under what it tells.
fn settled(engine: &Inner, origin: &Origin, outcome: Outcome) -> Outcome {
    let reported = engine.reports.withdraw(origin.task, origin.token);
    let (outcome, lines) = exchange::settled(outcome, || reported);
    for line in lines {
        engine.logbook.log(origin, Level::Info, "handler", &line);
    }
    outcome
}

/// Tries while the lease holds; answers with when the commit began.
async fn commit_until_lease_end(engine: &Inner, commit: ChunkCommit) -> Option<(Committed, Mono)> {
    loop {
        match engine.commits.call(commit.clone()).await {
            Ok(committed) => return Some(committed),
            Err(e) if e.is_transient() && engine.running.holds(commit.task, commit.token, engine.clock.mono()) => {
                tracing::warn!(task = %commit.task, error = %e, "a commit is tried again");
                tokio::time::sleep(COMMIT_AGAIN).await;
            }
            Err(e) => {
                tracing::error!(task = %commit.task, error = %e, "a chunk's end could not be stored");
                measure::chunk("not-stored");
                return None;
            }
        }
    }
}
