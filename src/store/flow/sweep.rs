//! Taking what time has undone: leases that ran out, cancels that no chunk answered, deadlines that have passed, slots
//! that are free while somebody waits (after a limit was raised), and tasks that the switch of their pack has not reached.

use super::super::tx::Tx;
use super::super::{Result, SweepParams, Written};
use super::packs::settle_all;
use super::work::Work;
use crate::core::lifecycle::SweepTerms;

/// How many waited-for keys one sweep looks at.
const KEYS_AT_ONCE: usize = 100;

/// The verb.
pub async fn sweep(mut tx: Box<dyn Tx>, params: &SweepParams) -> Result<Written<usize>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    let now = work.step.now;
    let asked_by = now.plus(-params.cancel_grace_ms);
    let ids = tx.overdue(now, params.all, asked_by, params.limit).await?;
    let waited = tx.waited_keys(KEYS_AT_ONCE).await?;
    let strays = tx.pack_strays(params.limit).await?;
    work.load_with_slots(tx.as_mut(), &waited, ids.iter().chain(&strays).copied()).await?;
    let mut swept = 0;
    for id in ids {
        let Some(task) = work.get(id) else { continue };
        let terms = SweepTerms {
            all: params.all,
            cancel_grace_ms: params.cancel_grace_ms,
            retry: params.retries.by_action.get(&task.action).copied().unwrap_or_default(),
            unit_random: params.retries.unit_random,
        };
        // A refusal means that the row changed between look and lock; the next sweep sees it as it is.
        let touched = work.apply(id, |task, step| task.sweep(&terms, step));
        swept += usize::from(touched.unwrap_or(false));
        work.step.node = None;
    }
    settle_all(tx.as_mut(), &mut work, &strays).await?;
    for key in waited {
        work.recheck(key);
    }
    let (changes, _) = work.finish(tx.as_mut()).await?;
    tx.commit().await?;
    Ok(Written { answer: swept, changes })
}
