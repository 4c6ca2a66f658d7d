//! Tells the other nodes, by the database, that this one is there: its row is written with every beat, and taken away when
//! it ends.
//!
//! Nothing rests on it but words: leases have beats of their own. A beat that fails is the last one's row standing a little
//! longer, and is not told again and again. Every role has it, also a node that runs nothing.

use super::loops::supervised;
use super::pulse::Pulse;
use crate::core::node::Node;
use crate::core::time::Clock;
use crate::handler::Registry;
use crate::store::{Store, StoreError};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::task::AbortOnDropHandle;

/// How long a goodbye may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// What is told beside the numbers of the engine: how signals of others reach this node, in words.
pub type WaysToNode = Arc<dyn Fn() -> (&'static str, &'static str) + Send + Sync>;

/// What a presence is made of.
pub struct PresenceParts {
    /// The database.
    pub store: Arc<dyn Store>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// What never changes about the node; its lists, instants and standing are filled in.
    pub node: Node,
    /// What it can run, if it runs anything.
    pub registry: Option<Registry>,
    /// (redis, wake), as [`crate::core::node::Standing`] tells them.
    pub ways: WaysToNode,
    /// It is going down.
    pub draining: Arc<AtomicBool>,
    /// How often it tells, ms.
    pub every_ms: u64,
}

struct Inner {
    parts: PresenceParts,
    engine: OnceLock<Numbers>,
}

/// Where the numbers of the node come from.
struct Numbers {
    pulse: Arc<Pulse>,
    running: Box<dyn Fn() -> usize + Send + Sync>,
}

/// A node that is known to the others until it leaves.
pub struct Presence {
    inner: Arc<Inner>,
    beats: AbortOnDropHandle<()>,
}

impl Presence {
    /// Writes the first beat, and goes on.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn start(parts: PresenceParts) -> Result<Self, StoreError> {
        let inner = Arc::new(Inner { parts, engine: OnceLock::new() });
        inner.beat().await?;
        let beating = inner.clone();
        let beats = tokio::spawn(async move { supervised("presence", || beating.clone().go_on()).await });
        Ok(Self { inner, beats: AbortOnDropHandle::new(beats) })
    }

    /// From now on tells the numbers of the engine as well.
    pub fn watch(&self, pulse: Arc<Pulse>, running: impl Fn() -> usize + Send + Sync + 'static) {
        // There is one engine in a node; of a second one nothing would be told.
        let _ = self.inner.engine.set(Numbers { pulse, running: Box::new(running) });
    }

    /// Tells at once that the node is going down.
    pub async fn announce_drain(&self) {
        let _ = tokio::time::timeout(GOODBYE, self.inner.beat()).await;
    }

    /// Takes the node's row away. Without an answer of the database the row goes by itself, an hour later.
    pub async fn leave(self) {
        drop(self.beats);
        let goodbye = self.inner.parts.store.leave(&self.inner.parts.node.id);
        let _ = tokio::time::timeout(GOODBYE, goodbye).await;
    }
}

impl Inner {
    async fn go_on(self: Arc<Self>) {
        let mut told = false;
        loop {
            tokio::time::sleep(Duration::from_millis(self.parts.every_ms)).await;
            match self.beat().await {
                Ok(()) => told = false,
                Err(e) if !std::mem::replace(&mut told, true) => {
                    tracing::warn!(error = %e, "this node could not tell the others that it is there");
                }
                Err(_) => {}
            }
        }
    }

    async fn beat(&self) -> Result<(), StoreError> {
        self.parts.store.beat(&self.now()).await.map(drop)
    }

    fn now(&self) -> Node {
        let mut node = self.parts.node.clone();
        if let Some(registry) = &self.parts.registry {
            (node.actions, node.packs) = (registry.actions(), registry.packs());
        }
        if let Some(Numbers { pulse, running }) = self.engine.get() {
            node.standing = pulse.standing(self.parts.clock.now());
            node.standing.running = i64::try_from(running()).unwrap_or(i64::MAX);
        }
        let (redis, wake) = (self.parts.ways)();
        (node.standing.redis, node.standing.wake) = (redis.to_owned(), wake.to_owned());
        node.standing.draining = self.parts.draining.load(Ordering::Relaxed);
        node
    }
}
