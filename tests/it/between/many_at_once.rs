//! Much that happens in one commit: what other nodes are told of it stays tiny, in bytes, and they hear it.

use crate::store::fixture::claim_params;
use crate::store::words::{click, done, ended};
use crate::support::eventually;
use crate::support::ground::Ground;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use taskbell::app::clock::SystemRng;
use taskbell::bus::listen::{Channel, Link, Listener};
use taskbell::bus::{LocalBus, Signal, Wake};
use taskbell::core::submit::Submit;
use taskbell::core::task::limits;
use taskbell::store::postgres::{PostgresChannel, PostgresListener, PostgresOptions};
use tokio::sync::Notify;

const TASKS: usize = 5_000;
const BATCH: usize = 500;
const SOON: Duration = Duration::from_secs(60);
/// Of a message, far below the 8,000 that the server takes.
const FEW_BYTES: usize = 100;

/// The channel of the database, and how long the longest message was.
struct Measured {
    channel: PostgresChannel,
    longest: AtomicUsize,
}

struct Heard(PostgresListener);

#[async_trait]
impl Channel for Measured {
    async fn listen(&self) -> Result<Box<dyn Listener>, String> {
        let listener = self.channel.listen().await.map_err(|e| e.to_string())?;
        Ok(Box::new(Heard(listener)))
    }

    async fn tell(&self, message: &str) -> Result<(), String> {
        self.longest.fetch_max(message.len(), Ordering::SeqCst);
        self.channel.tell(message).await.map_err(|e| e.to_string())
    }
}

#[async_trait]
impl Listener for Heard {
    async fn next(&mut self) -> Result<String, String> {
        self.0.next().await.map_err(|e| e.to_string())
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m10_five_thousand_ends_of_one_commit_with_the_longest_titles_reach_other_nodes_as_one_word() {
    let ground = Ground::postgres().await;
    let store = ground.open().await;
    let options = PostgresOptions::new(ground.database().unwrap().url());
    let node = || {
        let channel = Measured { channel: PostgresChannel::new(options.clone()), longest: AtomicUsize::new(0) };
        let (channel, bus, wake) = (Arc::new(channel), LocalBus::default(), Arc::new(Notify::new()));
        let link = Link::start(channel.clone(), &bus, wake.clone(), &SystemRng);
        (channel, bus, link)
    };
    let ((told, teller, _teller), (_, hearer, _hearer)) = (node(), node());
    for bus in [&teller, &hearer] {
        eventually("the node hears itself", SOON, async || (*bus.wake().borrow() == Wake::Listen).then_some(())).await;
    }
    let title = "\u{1F514}".repeat(limits::TITLE_CHARS);
    for _ in 0..TASKS / BATCH {
        let clicks = (0..BATCH).map(|_| Submit { title: Some(title.clone()), ..click() }).collect();
        store.submit(clicks).await.unwrap();
    }
    let mut ends = Vec::new();
    while ends.len() < TASKS {
        let claimed = store.claim(claim_params("n1", BATCH)).await.unwrap().answer;
        assert!(!claimed.is_empty(), "{} of {TASKS}", ends.len());
        ends.extend(claimed.iter().map(|c| ended(c, done())));
    }
    let written = store.commit(ends).await.unwrap();
    assert_eq!(written.changes.len(), TASKS);
    let mut hears = hearer.subscribe();
    teller.publish(Signal::Changes(written.changes.into()));
    let heard = tokio::time::timeout(SOON, hears.next()).await.expect("the other node hears of it");
    assert!(matches!(heard, Some(Signal::Elsewhere)), "{heard:?}");
    let longest = told.longest.load(Ordering::SeqCst);
    assert!((1..=FEW_BYTES).contains(&longest), "a message of {longest} bytes");
}
