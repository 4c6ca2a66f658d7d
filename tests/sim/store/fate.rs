//! What happens to a call of the database, drawn when it begins.

use super::away;
use crate::scheduler::Group;
use crate::world::World;
use std::future::pending;
use std::sync::Arc;
use taskbell::store::{Result, StoreError};

/// What happens to a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It runs through.
    Well,
    /// It stands still for so long before its n-th step.
    Slow(u32, i64),
    /// It is aborted before its n-th step, or at its commit.
    Abort(u32),
    /// The node dies before its n-th step, or before its commit.
    Crash(u32),
    /// It commits and the answer is lost.
    LostAnswer,
    /// It commits and the answer takes so long.
    LateAnswer(i64),
    /// It commits and the node dies before it hears of it.
    CrashAfter,
}

/// No transaction takes more steps than this, mostly.
const STEPS: usize = 12;

impl Fate {
    /// Draws one; most transactions run through.
    pub fn draw(world: &World) -> Self {
        if !world.fault(world.rates.store) {
            return Self::Well;
        }
        let step = world.dice.below(STEPS) as u32;
        let fate = match world.dice.below(20) {
            0..6 => Self::Slow(step, world.dice.between(1..400)),
            6 => Self::Slow(step, world.dice.between(500..8_000)),
            7..11 => Self::Abort(step),
            11 => Self::Crash(step),
            12..16 => Self::LostAnswer,
            16..19 => Self::LateAnswer(world.dice.between(1..2_000)),
            _ => Self::CrashAfter,
        };
        world.seen.note("fate", fate.name());
        fate
    }

    fn name(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Slow(..) => "slow",
            Self::Abort(_) => "abort",
            Self::Crash(_) => "crash",
            Self::LostAnswer => "lost answer",
            Self::LateAnswer(_) => "late answer",
            Self::CrashAfter => "crash after",
        }
    }

    /// Plays out what happens before a step.
    pub async fn before(self, world: &Arc<World>, group: Group, step: u32, last: bool) -> Result<()> {
        let now = |at: u32| at == step || (last && at > step);
        match self {
            Self::Slow(at, ms) if now(at) => world.time.sleep(ms).await,
            Self::Abort(at) if now(at) => {
                world.tell(|| format!("node {group}: a transaction is aborted at step {step}"));
                return Err(StoreError::Conflict("the simulated database aborts it".into()));
            }
            Self::Crash(at) if now(at) => die(world, group).await,
            _ => {}
        }
        Ok(())
    }

    /// Plays out what happens after the commit.
    pub async fn after(self, world: &Arc<World>, group: Group) -> Result<()> {
        match self {
            Self::LostAnswer => {
                world.tell(|| format!("node {group}: the answer of a commit is lost"));
                return Err(away());
            }
            Self::LateAnswer(ms) => world.time.sleep(ms).await,
            Self::CrashAfter => die(world, group).await,
            _ => {}
        }
        Ok(())
    }
}

/// The node ends here.
async fn die(world: &Arc<World>, group: Group) {
    world.crash(group);
    pending().await
}

/// Reaches the database, unless the machine is cut off from it.
pub async fn reach(world: &Arc<World>, group: Group) -> Result<()> {
    let (until, hangs) = *world.machines[group - 1].cut.lock().unwrap();
    let left = until - world.time.now();
    if left > 0 {
        if hangs {
            world.time.sleep(left).await;
        }
        return Err(away());
    }
    if world.fault(10) {
        return Err(StoreError::Busy("the simulated database is busy".into()));
    }
    Ok(())
}
