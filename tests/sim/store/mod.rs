//! The database as a node sees it: the memory store behind a connection that can be slow, refuse, abort, lose the answer of
//! a commit that happened, or take the node down at any of these points.
//!
//! Every transaction reports what it wrote to the [`Model`](crate::model::Model), at the instant of its commit.

mod accounts;
mod fate;
mod nodes;
mod port;
mod tx;

use crate::scheduler::Group;
use crate::world::World;
use fate::Fate;
use std::future::Future;
use std::sync::Arc;
use taskbell::core::ids::FencingToken;
use taskbell::core::lifecycle::Ended;
use taskbell::core::task::State;
use taskbell::store::tx::Tx;
use taskbell::store::{ChunkCommit, ClaimParams, Claimed, Committed, Result, StoreError, Written};
use tx::FaultyTx;
pub use tx::{REFUSED, row_of};

use crate::plant::Plant;
use crate::violation::{Invariant, must};

/// A connection of one node.
#[derive(Clone)]
pub struct FaultyStore {
    world: Arc<World>,
    group: Group,
}

impl FaultyStore {
    /// The connection of a node.
    pub fn new(world: &Arc<World>, group: Group) -> Self {
        Self { world: world.clone(), group }
    }

    /// A transaction with a fate; what happens to the answer is the caller's to play out.
    async fn open(&self) -> Result<(Box<dyn Tx>, Fate)> {
        fate::reach(&self.world, self.group).await?;
        let fate = Fate::draw(&self.world);
        let tx = taskbell::store::Store::begin(&self.world.memory).await?;
        Ok((Box::new(FaultyTx::new(tx, self.world.clone(), self.group, fate)), fate))
    }

    /// One verb: its transaction, and then what becomes of the answer.
    async fn verb<T, F: Future<Output = Result<T>>>(&self, run: impl FnOnce(Box<dyn Tx>) -> F) -> Result<T> {
        let (tx, fate) = self.open().await?;
        let answer = run(tx).await?;
        fate.after(&self.world, self.group).await?;
        Ok(answer)
    }

    /// Ends of chunks. Whoever is told that its work counts must hold the newest token.
    async fn commit_chunks(
        &self,
        items: &[ChunkCommit],
        next: Option<&ClaimParams>,
        again: bool,
    ) -> Result<Written<(Vec<Committed>, Vec<Claimed>)>> {
        let (tx, fate) = self.open().await?;
        let (mut sent, before) = (items.to_vec(), self.tokens(items));
        if self.world.plant == Some(Plant::NoTokenTest) {
            for (item, token) in sent.iter_mut().zip(&before) {
                item.token = *token;
            }
        }
        let written = taskbell::store::flow::chunk::commit(tx, &sent, next, again).await?;
        for ((item, token), answer) in items.iter().zip(&before).zip(&written.answer.0) {
            let case = match answer.ended {
                _ if answer.effect_fault.is_some() => "effect refused",
                _ if answer.child_fault.is_some() => "child refused",
                Ended::Applied { .. } => "applied",
                Ended::Repeated => "repeated",
                Ended::Stale => "stale",
            };
            self.world.seen.note("end", case);
            let ended = answer.task.as_ref().is_some_and(|t| matches!(t.state, State::Failed | State::Cancelled));
            if matches!(answer.ended, Ended::Applied { .. }) && !ended {
                let model = self.world.model.lock().unwrap();
                self.world.check(item.children.iter().try_for_each(|child| model.submitted(child.id)));
            }
            let newest = item.token == *token || !matches!(answer.ended, Ended::Applied { .. });
            self.world.check(must(newest, Invariant::Tokens, || {
                format!(
                    "chunk {} of {} was taken with {:?}, the newest is {token:?}",
                    item.chunk, item.task, item.token
                )
            }));
        }
        fate.after(&self.world, self.group).await?;
        Ok(written)
    }

    fn tokens(&self, items: &[ChunkCommit]) -> Vec<FencingToken> {
        let model = self.world.model.lock().unwrap();
        items.iter().map(|item| model.token(item.task)).collect()
    }
}

fn away() -> StoreError {
    StoreError::Unavailable("the simulated database is away".into())
}
