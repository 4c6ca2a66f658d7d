//! The command handle: what the web may ask of the engine. Every act that changes something goes through here, is
//! committed, and is then told to the bus; an act that was accepted is in the database.

pub mod outside;
pub mod workers;

use super::group::{Group, Turn};
use super::measure::{self, Stopwatch};
use crate::bus::{LocalBus, Signal};
use crate::core::ids::TaskId;
use crate::core::lifecycle::Ask;
use crate::core::principal::Principal;
use crate::core::submit::{Submit, Submitted};
use crate::store::{AskParams, Asked, MarkParams, PackSwitch, Result, Store, StoreError, Written};
use std::sync::Arc;
use tokio::sync::Notify;

/// Tasks that follow the switch of a pack in one commit.
const SETTLE_AT_ONCE: usize = 500;
/// Such commits of one call.
const SETTLE_BATCHES: usize = 20;

/// What the web may ask of the engine. Cheap to clone.
#[derive(Clone)]
pub struct Commands {
    store: Arc<dyn Store>,
    bus: LocalBus,
    wake: Arc<Notify>,
    submits: Group<Submit, Submitted>,
}

impl Commands {
    /// A handle over a store; `wake` is rung when there may be something to claim.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, bus: LocalBus, wake: Arc<Notify>) -> Self {
        let submits = {
            let (store, bus, wake) = (store.clone(), bus.clone(), wake.clone());
            Group::start(Turn::on(store.as_ref()), move |items, again| {
                let (store, bus, wake) = (store.clone(), bus.clone(), wake.clone());
                async move {
                    let (watch, count) = (Stopwatch::start(), items.len());
                    let written = if again { store.submit_again(items).await } else { store.submit(items).await };
                    let answers = watch.committed("submits", count, written, &bus, &wake)?;
                    measure::submitted(&answers);
                    Ok(answers)
                }
            })
        };
        Self { store, bus, wake, submits }
    }

    /// Accepts a click: insert or return. Answers after the commit.
    pub async fn submit(&self, submit: Submit) -> Result<Submitted> {
        self.submits.call(submit).await
    }

    /// Cancel, pause or resume.
    pub async fn ask(&self, caller: &Principal, task: TaskId, ask: Ask, reason: Option<String>) -> Result<Asked> {
        let params = AskParams { caller: caller.clone(), task, ask, reason };
        let written = self.store.ask(vec![params]).await?;
        announce(&self.bus, &self.wake, written)
            .pop()
            .ok_or_else(|| StoreError::Corrupt("the store answered fewer items than asked".into()))
    }

    /// Cancel, pause or resume of many, in one commit; an answer for each, in order.
    pub async fn ask_all(&self, items: Vec<AskParams>) -> Result<Vec<Asked>> {
        Ok(announce(&self.bus, &self.wake, self.store.ask(items).await?))
    }

    /// Deletes ended tasks in one commit; answers as [`Self::delete`] for each, in order.
    pub async fn delete_all(&self, caller: &Principal, tasks: Vec<TaskId>) -> Result<Vec<Option<bool>>> {
        Ok(announce(&self.bus, &self.wake, self.store.delete(caller, tasks).await?))
    }

    /// Deletes an ended task: `None` = does not exist for the caller, `Some(false)` = not ended.
    pub async fn delete(&self, caller: &Principal, task: TaskId) -> Result<Option<bool>> {
        let written = self.store.delete(caller, vec![task]).await?;
        Ok(announce(&self.bus, &self.wake, written).pop().flatten())
    }

    /// Switches a pack on or off: when this has answered, no chunk of a pack that is off starts any more, on any node. `None`
    /// = no such pack, else whether it was the other way before. Its tasks are paused or go on in the same call, but for what
    /// is left after [`SETTLE_BATCHES`], which the sweeps bring after.
    pub async fn switch_pack(&self, params: PackSwitch) -> Result<Option<bool>> {
        let switched = self.store.switch_pack(params).await?;
        if switched.is_some() {
            for _ in 0..SETTLE_BATCHES {
                let settled = announce(&self.bus, &self.wake, self.store.settle_packs(SETTLE_AT_ONCE).await?);
                if settled < SETTLE_AT_ONCE {
                    break;
                }
            }
            self.wake.notify_one();
        }
        Ok(switched)
    }

    /// Sets marks on an owner's items; answers how many changed.
    pub async fn mark(&self, params: MarkParams) -> Result<usize> {
        let (tenant, owner) = (params.tenant.clone(), params.owner.clone());
        let written = self.store.mark(params).await?;
        if written.answer > 0 {
            self.bus.publish(Signal::Marked { tenant, owner });
        }
        Ok(announce(&self.bus, &self.wake, written))
    }
}

/// Tells the bus what a commit changed and rings for the claim loop where something may be due; passes the answer on.
pub(super) fn announce<T>(bus: &LocalBus, wake: &Notify, written: Written<T>) -> T {
    if !written.changes.is_empty() {
        let signal = Signal::Changes(written.changes.into());
        if signal.wakes() {
            wake.notify_one();
        }
        bus.publish(signal);
    }
    written.answer
}
