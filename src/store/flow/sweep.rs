//! Taking what time has undone: leases that ran out, cancels that no chunk answered, deadlines that have passed, slots
//! that are free while somebody waits (after a limit was raised), parents that wait for nothing (after a version that knows
//! no parents ended their last child), and tasks that the switch of their pack has not reached.

use super::super::tx::Tx;
use super::super::{Result, SweepParams, Written};
use super::packs::settle_all;
use super::work::Work;
use crate::core::lifecycle::SweepTerms;

/// How many waited-for keys one sweep looks at.
const KEYS_AT_ONCE: usize = 100;

/// The most parents that one sweep wakes; there should be none.
const PARENTS_AT_ONCE: usize = 100;

/// The verb. `again`: an earlier try met somebody who changes a parent.
pub async fn sweep(mut tx: Box<dyn Tx>, params: &SweepParams, again: bool) -> Result<Written<usize>> {
    let mut work = Work::begin(tx.as_mut()).await?;
    work.with_ancestors = again;
    let now = work.step.now;
    let asked_by = now.plus(-params.cancel_grace_ms);
    let ids = tx.overdue(now, params.all, asked_by, params.limit).await?;
    let waited = tx.waited_keys(KEYS_AT_ONCE).await?;
    let strays = tx.pack_strays(params.limit).await?;
    let in_vain = tx.waiting_in_vain(PARENTS_AT_ONCE).await?;
    work.load_overdue(tx.as_mut(), &waited, &ids, strays.iter().chain(&in_vain).copied()).await?;
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
    for id in in_vain {
        work.recheck_parent(tx.as_mut(), id).await?;
    }
    for key in waited {
        work.recheck(key);
    }
    let (changes, _) = work.finish(tx.as_mut()).await?;
    store_point!("sweep.before");
    tx.commit().await?;
    store_point!("sweep.after");
    Ok(Written { answer: swept, changes })
}
