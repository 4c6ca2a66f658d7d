//! Word from node to node over a channel that the database offers: "there is work", "something changed", and nothing else.
//!
//! What changed is never in a message: it has a limit of a few thousand bytes, and a message that is refused would spoil more
//! than the wake-up. Nor is a message part of a commit: on PostgreSQL such commits wait for one another. It is sent by a
//! connection of its own, after the commit, one at a time; what comes meanwhile goes together into the next one.
//!
//! Between a node and its database may stand a pooler that gives a connection to another client after each transaction: then
//! nothing is heard, and nothing says so. So each node sends itself a message at the start and now and then. One that does
//! not come back means that the node looks for itself, as it does without a channel.
//!
//! Must never wait while a commit waits, and never be relied on.

use super::{Between, LocalBus, Signal, Subscription, Wake};
use crate::core::time::Rng;
use async_trait::async_trait;
use futures_util::FutureExt as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio_util::task::AbortOnDropHandle;

/// Messages of a node are at least so far apart, but for the first one after a quiet moment; and those that tell of work.
const SPACING: Duration = Duration::from_millis(50);
const WORK_SPACING: Duration = Duration::from_millis(5);
/// How often a node looks whether it hears itself.
const PROVE_EVERY: Duration = Duration::from_secs(30);
/// How long its own message may take.
const PROOF_TAKES: Duration = Duration::from_secs(3);
/// How long sending one may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Before it is tried again: after a fault, and where it hears nothing at all.
const AGAIN: Duration = Duration::from_secs(2);
const AGAIN_WHEN_DEAF: Duration = Duration::from_secs(60);

/// There is work to claim.
const WORK: char = 'w';
/// Something changed.
const CHANGED: char = 'c';
/// The node listens to itself.
const PROOF: char = 'p';

/// A channel that the database offers. Faults are sentences for the log.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Listens from now on, over a connection of its own that goes with the listener.
    async fn listen(&self) -> Result<Box<dyn Listener>, String>;
    /// Tells everybody who listens.
    async fn tell(&self, message: &str) -> Result<(), String>;
}

/// Somebody who listens.
#[async_trait]
pub trait Listener: Send {
    /// The next message. After an error nothing more comes.
    async fn next(&mut self) -> Result<String, String>;
}

/// Tells and listens until it is dropped.
pub struct Link {
    _told: AbortOnDropHandle<()>,
    _heard: AbortOnDropHandle<()>,
}

impl Link {
    /// Starts both. `wake` is rung when another node has work.
    #[must_use]
    pub fn start(channel: Arc<dyn Channel>, bus: &LocalBus, wake: Arc<Notify>, rng: &dyn Rng) -> Self {
        let node = format!("{:08x}", (rng.unit() * f64::from(u32::MAX)) as u32);
        let hears = Hears { node: node.clone(), channel: channel.clone(), bus: bus.clone(), wake };
        Self {
            _told: AbortOnDropHandle::new(tokio::spawn(tell(node, channel, bus.clone()))),
            _heard: AbortOnDropHandle::new(tokio::spawn(hears.run())),
        }
    }
}

/// What a node has to tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Word {
    work: bool,
    changed: bool,
}

impl Word {
    fn take(&mut self, signal: &Signal) {
        self.work |= signal.wakes();
        self.changed = true;
    }

    fn message(self, node: &str) -> String {
        let words = [self.work.then_some(WORK), self.changed.then_some(CHANGED)];
        format!("{node} {}", words.into_iter().flatten().collect::<String>())
    }
}

async fn tell(node: String, channel: Arc<dyn Channel>, bus: LocalBus) {
    let (mut own, between) = (bus.subscribe_to_own(), bus.between());
    let mut word = Word::default();
    loop {
        if !word.changed {
            let Some(signal) = own.next().await else { return };
            word.take(&signal);
        }
        while let Some(Some(more)) = own.next().now_or_never() {
            word.take(&more);
        }
        let said = std::mem::take(&mut word);
        if *between.borrow() == Between::Up {
            continue;
        }
        match tokio::time::timeout(PATIENCE, channel.tell(&said.message(&node))).await {
            Ok(Ok(())) => match rest(&mut own).await {
                Some(meanwhile) => word = meanwhile,
                None => return,
            },
            Ok(Err(e)) => {
                tracing::debug!("other nodes could not be told: {e}");
                tokio::time::sleep(AGAIN).await;
            }
            Err(_) => tracing::debug!("other nodes could not be told in time"),
        }
    }
}

/// Rests between two messages; answers what came meanwhile, or nothing where nothing comes any more. Somebody waits for work to
/// begin, so it cuts the rest short.
async fn rest(own: &mut Subscription) -> Option<Word> {
    let (mut soon, mut later) = (pin!(tokio::time::sleep(WORK_SPACING)), pin!(tokio::time::sleep(SPACING)));
    let mut word = Word::default();
    loop {
        tokio::select! {
            signal = own.next() => word.take(&signal?),
            () = &mut soon, if word.work => return Some(word),
            () = &mut later => return Some(word),
        }
    }
}

struct Hears {
    node: String,
    channel: Arc<dyn Channel>,
    bus: LocalBus,
    wake: Arc<Notify>,
}

/// Why listening ended.
enum End {
    Fault(String),
    Deaf,
}

impl Hears {
    async fn run(self) {
        // A fault is told once, until it is over.
        let mut told = false;
        loop {
            let end = match self.channel.listen().await {
                Ok(listener) => self.hear(listener, &mut told).await,
                Err(e) => End::Fault(e),
            };
            self.bus.set_wake(Wake::Poll);
            let again = match end {
                End::Fault(e) => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(
                            "notifications of the database cannot be had ({e}): this node looks for work of other nodes by its own poll"
                        );
                    }
                    AGAIN
                }
                End::Deaf => {
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(
                            "notifications of the database do not arrive (is there a transaction pooler before it?): this node looks for work of other nodes by its own poll"
                        );
                    }
                    AGAIN_WHEN_DEAF
                }
            };
            tokio::time::sleep(again).await;
        }
    }

    async fn hear(&self, mut listener: Box<dyn Listener>, told: &mut bool) -> End {
        loop {
            let proof = format!("{} {PROOF}", self.node);
            if let Err(e) = self.channel.tell(&proof).await {
                return End::Fault(e);
            }
            match self.listen_for(&mut *listener, PROOF_TAKES, Some(&proof)).await {
                Err(e) => return End::Fault(e),
                Ok(false) => return End::Deaf,
                Ok(true) => {}
            }
            if self.bus.set_wake(Wake::Listen) {
                *told = false;
                tracing::info!("the database tells this node of the work of others");
                // What was told before is not known.
                self.wake.notify_one();
                self.bus.pass_on(Signal::Elsewhere);
            }
            if let Err(e) = self.listen_for(&mut *listener, PROVE_EVERY, None).await {
                return End::Fault(e);
            }
        }
    }

    /// Takes what comes for so long, or until `proof` has come; answers whether it has.
    async fn listen_for(&self, from: &mut dyn Listener, time: Duration, proof: Option<&str>) -> Result<bool, String> {
        let mut over = pin!(tokio::time::sleep(time));
        loop {
            tokio::select! {
                () = &mut over => return Ok(false),
                message = from.next() => match message? {
                    message if Some(message.as_str()) == proof => return Ok(true),
                    message => self.take(&message),
                },
            }
        }
    }

    /// Words that this version does not know are passed over.
    fn take(&self, message: &str) {
        let Some((node, words)) = message.split_once(' ') else { return };
        if node == self.node {
            return;
        }
        if words.contains(WORK) {
            self.wake.notify_one();
        }
        if words.contains(CHANGED) {
            self.bus.pass_on(Signal::Elsewhere);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_tiny_whatever_it_tells_of() {
        let mut word = Word::default();
        for _ in 0..5_000 {
            word.take(&Signal::Missed);
        }
        assert_eq!(word.message("0a1b2c3d"), "0a1b2c3d c");
        assert_eq!(Word { work: true, changed: true }.message("0a1b2c3d"), "0a1b2c3d wc");
    }
}
