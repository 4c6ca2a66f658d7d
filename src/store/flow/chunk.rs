//! Ends of chunks, and reports between them. Guarded by (task, token, chunk): a stale writer changes nothing and is told,
//! a repeated report is answered again and applied once.
//!
//! Effects of a chunk that commits work run under the same transaction; those of one that failed do not happen. An effect
//! that the database refuses undoes only its own chunk, which is answered with the fault; the neighbours in the batch are
//! not touched.

use super::super::tx::{Document, DocumentKind, Tx};
use super::super::{ChunkCommit, Committed, Report, Result, Written};
use super::work::{Work, slot_key};
use crate::core::chunk::Outcome;
use crate::core::ids::TaskId;
use crate::core::lifecycle::{ChunkEnd, EndTerms, Ended};
use crate::core::task::Hold;
use serde_json::Value;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The verb.
pub async fn commit(mut tx: Box<dyn Tx>, items: &[ChunkCommit]) -> Result<Written<Vec<Committed>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.load_with_slots(tx.as_mut(), &[], items.iter().map(|i| i.task)).await?;
    let mut ends: Vec<(TaskId, Ended, Option<String>)> = Vec::with_capacity(items.len());
    for item in items {
        let (ended, fault) = commit_one(tx.as_mut(), &mut work, item).await?;
        ends.push((item.task, ended, fault));
    }
    let (changes, tasks) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    let answer = ends
        .into_iter()
        .map(|(id, ended, effect_fault)| Committed { ended, task: tasks.get(&id).cloned(), effect_fault })
        .collect();
    Ok(Written { answer, changes })
}

async fn commit_one(tx: &mut dyn Tx, work: &mut Work, item: &ChunkCommit) -> Result<(Ended, Option<String>)> {
    let Some(task) = work.get(item.task) else { return Ok((Ended::Stale, None)) };
    let before = work.mark(&[item.task]);
    let mut continue_for_ms = item.continue_for_ms;
    if let (Some(key), Some(Hold::Chunk)) = (slot_key(task), task.hold())
        && work.key_use(tx, &key).await?.waiting > 0
    {
        continue_for_ms = None;
    }
    let documents = documents_of(item);
    let terms = EndTerms {
        token: item.token,
        chunk: item.chunk,
        retry: item.retry,
        unit_random: item.unit_random,
        continue_for_ms,
        checkpoint_hash: documents
            .iter()
            .find(|d| d.kind == DocumentKind::Checkpoint)
            .map(|d| checkpoint_hash(&d.body)),
    };
    let ended = work.apply(item.task, |task, step| task.end_chunk(&item.end, &terms, step));
    if !matches!(ended, Ended::Applied { .. }) {
        return Ok((ended, None));
    }
    if !item.effects.is_empty()
        && keeps_work(&item.end)
        && let Some(fault) = tx.run_effects(&item.effects).await?
    {
        work.back_to(before);
        return Ok((Ended::Stale, Some(fault)));
    }
    work.documents.extend(documents);
    Ok((ended, None))
}

/// Whether the end of a chunk commits its work. What a failed or handed back chunk wrote never happened.
fn keeps_work(end: &ChunkEnd) -> bool {
    matches!(end, ChunkEnd::Answered(outcome) if !matches!(outcome.as_ref(), Outcome::Fail(_)))
}

fn documents_of(item: &ChunkCommit) -> Vec<Document> {
    let ChunkEnd::Answered(outcome) = &item.end else { return Vec::new() };
    let (kind, body) = match outcome.as_ref() {
        Outcome::More { checkpoint: Some(body), .. } => (DocumentKind::Checkpoint, body),
        Outcome::Done { result: Some(body), .. } => (DocumentKind::Result, body),
        _ => return Vec::new(),
    };
    vec![Document { task: item.task, kind, body: body.clone() }]
}

/// Tells a moved checkpoint from an unmoved one. Only ever compared with what this version has stored itself; a
/// different hash after an upgrade costs one chunk's idle count.
fn checkpoint_hash(body: &Value) -> i64 {
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    hasher.finish().cast_signed()
}

/// The verb: stores reports between commits.
pub async fn report(mut tx: Box<dyn Tx>, items: &[Report]) -> Result<Written<Vec<bool>>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.load(tx.as_mut(), items.iter().map(|i| i.task)).await?;
    let answer = items
        .iter()
        .map(|item| {
            work.get(item.task).is_some()
                && work.apply(item.task, |task, step| task.report(item.token, &item.report, step)).is_some()
        })
        .collect();
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer, changes })
}
