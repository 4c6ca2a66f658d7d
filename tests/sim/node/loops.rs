//! The endless loops of a node: claim, heartbeat, sweep.

use super::chunk::run_task;
use super::{CANCEL_GRACE_MS, HEARTBEAT_MS, LEASE_MS, Node, POLL_MS, SWEEP_MS};
use crate::actions::{PACKS, names};
use std::sync::Arc;
use taskbell::core::time::{Clock, Mono};
use taskbell::engine::running::Told;
use taskbell::store::{ClaimParams, Claimed, RenewParams, Renewed, Store, SweepParams, Written};

/// The most rows of one sweep.
const SWEEP_AT_ONCE: usize = 100;

/// Claims what is due into the free places.
pub(super) async fn claim(node: Arc<Node>) {
    let mut drain = node.drain.subscribe();
    while !node.draining() {
        let mut wait_ms = (POLL_MS * (0.75 + 0.5 * node.world.dice.unit())) as i64;
        let looked_at = node.now();
        if fill_places(&node).await
            && let Ok(Some(due)) = node.store.next_due().await
            && due > looked_at
        {
            wait_ms = wait_ms.min(due.since(node.now()).max(2));
        }
        tokio::select! {
            biased;
            () = node.wake.notified() => {}
            () = node.sleep(wait_ms) => {}
            _ = drain.wait_for(|began| *began) => {}
        }
    }
}

/// One claim; whether nothing more is due.
async fn fill_places(node: &Arc<Node>) -> bool {
    let _turn = node.turn.lock().await;
    let Some(params) = node.next_claim(0) else { return false };
    let (claimed_at, free) = (node.mono(), params.limit);
    let Ok(Written { answer: claimed, changes }) = node.store.claim(params).await else { return false };
    let left = claimed.len() < free;
    node.start(claimed, claimed_at);
    node.announce(Written { answer: left, changes })
}

impl Node {
    /// A claim for the free places, and those that a commit will free; if there are any, and the node takes more work.
    pub(super) fn next_claim(&self, freed: usize) -> Option<ClaimParams> {
        let free = (self.parallelism + freed).saturating_sub(self.running.taken());
        (free > 0 && !self.draining()).then(|| ClaimParams {
            node: self.name.clone(),
            actions: names(),
            packs: PACKS.map(|(name, _)| name.to_owned()).to_vec(),
            tenants: Vec::new(),
            limit: free,
            lease_ms: LEASE_MS,
            after_tenant: self.served.lock().unwrap().clone(),
            many_wait: false,
            seats: None,
        })
    }

    /// Gives claimed chunks their places, before anybody hears of the claim, and lets them run.
    pub(super) fn start(self: &Arc<Self>, claimed: Vec<Claimed>, claimed_at: Mono) {
        let lease_end = claimed_at + LEASE_MS.unsigned_abs();
        for claimed in claimed {
            let heard = self.running.enter(claimed.task.id, claimed.task.fencing_token, lease_end);
            *self.served.lock().unwrap() = Some(claimed.task.tenant.clone());
            self.world.time.spawn(self.group, run_task(self.clone(), claimed, claimed_at, heard));
        }
    }
}

/// Renews leases, hears what was asked, and drops what is lost by its own clock.
pub(super) async fn heartbeat(node: Arc<Node>) {
    loop {
        node.sleep(HEARTBEAT_MS).await;
        let held = node.running.held();
        let asked_at = node.mono();
        if !held.is_empty() {
            let params = RenewParams { node: node.name.clone(), held: held.clone(), lease_ms: LEASE_MS, waits: false };
            if let Ok(answers) = node.store.renew(params).await {
                let lease_end = asked_at + LEASE_MS.unsigned_abs();
                for ((id, token), answer) in held.into_iter().zip(answers) {
                    match answer {
                        Renewed::Stale => node.running.tell(id, Some(token), Told::Lost),
                        Renewed::Busy => {}
                        Renewed::Ok => node.running.renewed(id, token, lease_end),
                        Renewed::Stop => {
                            node.running.renewed(id, token, lease_end);
                            node.running.tell(id, Some(token), Told::Stop);
                        }
                    }
                }
            }
        }
        node.running.drop_expired(node.mono());
    }
}

/// Takes what time has undone, and what children have done over into their parents' progress.
pub(super) async fn sweep(node: Arc<Node>) {
    loop {
        let parents = std::mem::take(&mut *node.parents.lock().unwrap());
        if !parents.is_empty()
            && let Ok(written) = node.store.roll_up(parents.into_iter().collect()).await
        {
            node.announce(written);
        }
        let params = SweepParams {
            limit: SWEEP_AT_ONCE,
            all: false,
            cancel_grace_ms: CANCEL_GRACE_MS,
            retries: Default::default(),
        };
        if let Ok(written) = node.store.sweep(params).await {
            node.announce(written);
        }
        node.sleep(SWEEP_MS).await;
    }
}
