//! Running one task's chunks on a node: call the handler, hold it to its time, commit what it answers, go on.

use super::{LEASE_MS, Node};
use crate::actions::{CHUNK_TIMEOUT_MS, Chunk, RETRY};
use crate::people::child;
use std::sync::Arc;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::effect::Effect;
use taskbell::core::family::OnFailure;
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, Task};
use taskbell::core::time::{Clock, Mono};
use taskbell::core::view::Documents;
use taskbell::engine::running::{Told, hears};
use taskbell::store::{ChunkCommit, Claimed, Committed};
use tokio::sync::watch;

/// How long a task may keep its place from chunk to chunk, ms.
const KEEP_PLACE_MS: u64 = 6_000;
/// Between two tries of a commit while the database is away, ms.
const COMMIT_AGAIN_MS: i64 = 250;

/// Runs a claimed task until it gives its place up.
pub(super) async fn run_task(node: Arc<Node>, claimed: Claimed, claimed_at: Mono, heard: watch::Receiver<Told>) {
    let (id, token) = (claimed.task.id, claimed.task.fencing_token);
    let mut next = Some(claimed);
    while let Some(Claimed { task, documents }) = next.take() {
        let may_keep = node.mono() - claimed_at < KEEP_PLACE_MS;
        next = run_chunk(&node, task, documents, &heard, may_keep).await;
    }
    node.reports.withdraw(id);
    node.running.leave(id, token);
    node.wake.notify_one();
}

async fn run_chunk(
    node: &Arc<Node>,
    task: Task,
    documents: Documents,
    heard: &watch::Receiver<Told>,
    may_keep: bool,
) -> Option<Claimed> {
    let chunk = Chunk::new(&task, &documents);
    let stopping = || *heard.borrow() >= Told::Stop;
    let report = |reported| node.reports.take(task.id, task.fencing_token, reported);
    let (end, effects) = tokio::select! {
        biased;
        told = hears(heard, Told::HandBack) => match told {
            Told::Lost => {
                node.world.seen.note("chunk", "lost");
                return None;
            }
            _ => (ChunkEnd::HandedBack, Vec::new()),
        },
        (end, effects) = chunk.run(node, stopping, report) => (end, effects),
        () = node.sleep(CHUNK_TIMEOUT_MS) => {
            node.world.seen.note("chunk", "timeout");
            (ended(ErrorKind::Timeout, "timeout"), Vec::new())
        }
    };
    if matches!(end, ChunkEnd::HandedBack) {
        node.world.seen.note("chunk", "handed back");
    }
    let mut end = settled(node, &task, end);
    let children = family(node, &task, &mut end);
    let commit = ChunkCommit {
        task: task.id,
        token: task.fencing_token,
        chunk: task.chunks + 1,
        end,
        effects,
        children,
        retry: RETRY,
        unit_random: node.world.dice.unit(),
        continue_for_ms: (may_keep && !node.draining()).then_some(LEASE_MS),
    };
    let mut committed = commit_until_lease_end(node, commit.clone()).await?;
    let mut end = commit.end.clone();
    let refused = committed.effect_fault.is_some().then_some("effect-refused");
    if let Some(code) = refused.or(committed.child_fault.is_some().then_some("child-refused")) {
        end = ended(ErrorKind::Handler, code);
        let again = ChunkCommit { end: end.clone(), effects: Vec::<Effect>::new(), children: Vec::new(), ..commit };
        committed = commit_until_lease_end(node, again).await?;
    }
    follow_up(node, &task, end, committed, documents)
}

fn ended(kind: ErrorKind, code: &str) -> ChunkEnd {
    ChunkEnd::Answered(Box::new(Outcome::Fail(Failure::new(kind, code, "in the simulation"))))
}

/// Some chunks that have more to do submit children, down to grandchildren; most of those wait for them, and some for none.
fn family(node: &Node, task: &Task, end: &mut ChunkEnd) -> Vec<Submit> {
    let (world, depth) = (&node.world, task.parent.map_or(0, |parent| parent.depth) + 1);
    let ChunkEnd::Answered(outcome) = end else { return Vec::new() };
    let Outcome::More { told, .. } = outcome.as_mut() else { return Vec::new() };
    let many = depth > 2 || task.family.as_ref().is_some_and(|family| family.children > 3);
    if many || !world.fault(world.rates.families) {
        return Vec::new();
    }
    let waits = [None, Some(OnFailure::Fail), Some(OnFailure::Fail), Some(OnFailure::Ignore), Some(OnFailure::Collect)];
    told.wait = *world.dice.one(&waits);
    world.seen.note("family", told.wait.map_or("not waited for", OnFailure::as_str));
    (0..world.dice.between(0..4)).map(|_| child(world, task, depth)).collect()
}

/// Puts what was reported last under what the end tells.
fn settled(node: &Node, task: &Task, mut end: ChunkEnd) -> ChunkEnd {
    if let ChunkEnd::Answered(outcome) = &mut end
        && let Some(older) = node.reports.withdraw(task.id)
        && let Some(told) = outcome.told_mut()
    {
        told.report = std::mem::take(&mut told.report).over(older);
    }
    end
}

async fn commit_until_lease_end(node: &Node, commit: ChunkCommit) -> Option<Committed> {
    loop {
        match node.commits.call(commit.clone()).await {
            Ok(committed) => return Some(committed),
            Err(e) if e.is_transient() && node.running.holds(commit.task, commit.token, node.mono()) => {
                node.sleep(COMMIT_AGAIN_MS).await;
            }
            Err(_) => return None,
        }
    }
}

/// The next chunk, if the lease was kept.
fn follow_up(
    node: &Node,
    before: &Task,
    end: ChunkEnd,
    committed: Committed,
    mut documents: Documents,
) -> Option<Claimed> {
    let task = committed.task?;
    node.world.tell(|| {
        format!(
            "{}: chunk {} of {} ended {:?}, now {}",
            node.name,
            before.chunks + 1,
            task.id,
            committed.ended,
            task.state.as_str()
        )
    });
    if !committed.ended.keeps_lease(&task, before.fencing_token, before.chunks + 1) {
        return None;
    }
    node.running.renewed(task.id, task.fencing_token, node.mono() + LEASE_MS.unsigned_abs());
    if let ChunkEnd::Answered(outcome) = end
        && let Outcome::More { checkpoint: Some(checkpoint), .. } = *outcome
    {
        documents.checkpoint = Some(checkpoint);
    }
    Some(Claimed { task, documents })
}
