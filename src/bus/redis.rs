//! Signals between nodes over one channel of a Redis server.
//!
//! What this node's commits tell is published after the commit, items and all; what other nodes publish is passed on inside
//! this node as if it had happened here. A node has two connections, however many pages are open: one publishes, one listens.
//!
//! # What may get lost
//! Redis keeps nothing: who does not listen at the moment of a message never gets it. So
//! - a node that could not publish something says so (`lost`) as soon as it can, and the others look into the database;
//! - a node whose subscription broke down looks into the database when it is back;
//! - a node publishes a beat each second and has to hear it: a subscription that is there and brings nothing is found out
//!   within [`DEAF_BEATS`], and made anew;
//! - meanwhile, and now and then anyway, the change log is read, which needs none of this.
//!
//! # What it may cost
//! A commit never waits: what it tells goes into the node's own bus, and from there into a queue of at most
//! [`QUEUE_BYTES`]. When the queue is full it is emptied, and `lost` is what is told instead. Messages of a queue go out
//! in one pipeline.
//!
//! A server that refuses (a wrong password, a user without the right to the channel) is told in one line that names what is
//! missing, and asked again once a minute: the node works as it does without Redis.
//!
//! Must never hold up a commit, never apply its own messages, and never put an address into a log.

use super::wire::{self, Heard};
use super::{Between, LocalBus, Signal};
use crate::core::metric;
use crate::core::time::Rng;
use ::redis::aio::MultiplexedConnection;
use ::redis::{
    AsyncConnectionConfig, Client, ErrorKind, IntoConnectionInfo as _, RedisError, ServerErrorKind, TlsCertificates,
};
use futures_util::StreamExt as _;
use metrics::{counter, gauge};
use serde_json::value::RawValue;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

/// What may wait to be published, bytes.
const QUEUE_BYTES: usize = 4 * 1024 * 1024;
/// What goes out in one pipeline, bytes.
const PIPELINE_BYTES: usize = 512 * 1024;
/// How often a node tells itself that it is there.
const BEAT_EVERY: Duration = Duration::from_secs(1);
/// So many beats may be missing before the subscription counts as deaf.
pub const DEAF_BEATS: u32 = 3;
/// How long a connection, and an answer, may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// Before the first and at most before another try, ms; a random half of it is left out.
const AGAIN_MS: u64 = 200;
const AGAIN_AT_MOST_MS: u64 = 2_000;
/// Before another try with a server that refuses.
const AGAIN_WHEN_REFUSED: Duration = Duration::from_secs(60);

/// How a certificate in PEM begins.
const CERTIFICATE: &[u8] = b"-----BEGIN CERTIFICATE-----";

/// A Redis server, not connected yet.
#[derive(Clone)]
pub struct Server(Client);

impl Server {
    /// The server at an address. `ca`: the certificates of those who vouch for it, PEM; absent = those that the system trusts.
    ///
    /// # Errors
    /// In words, without the address.
    pub fn at(url: &str, ca: Option<Vec<u8>>) -> Result<Self, String> {
        let fault = |_: RedisError| {
            "it is no address of a Redis server: redis://[user:password@]host[:port][/number]".to_owned()
        };
        let info = url.into_connection_info().map_err(fault)?;
        let client = match ca {
            None => Client::open(info).map_err(fault)?,
            Some(pem) if !pem.windows(CERTIFICATE.len()).any(|part| part == CERTIFICATE) => {
                return Err(no_certificate());
            }
            Some(pem) => Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(pem) })
                .map_err(|_| no_certificate())?,
        };
        Ok(Self(client))
    }
}

impl Server {
    /// Sends a word over a channel as nodes name theirs, and waits for it: whether the server answers, and gives the rights.
    ///
    /// # Errors
    /// What is missing, in words and without the address.
    pub async fn carries_a_word(&self) -> Result<(), String> {
        let channel = format!("taskbell:doctor:{}", std::process::id());
        let sent = async {
            let mut listener = self.0.get_async_pubsub().await?;
            listener.subscribe(&channel).await?;
            let mut teller = self.0.get_multiplexed_async_connection().await?;
            ::redis::cmd("PUBLISH").arg(&channel).arg("?").exec_async(&mut teller).await?;
            Ok::<bool, RedisError>(listener.on_message().next().await.is_some())
        };
        match timeout(2 * PATIENCE, sent).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("the subscription ended".into()),
            Ok(Err(e)) => Err(match end(&channel, &e) {
                End::Refused(why) | End::Fault(why) => why,
            }),
            Err(_) => Err("it does not answer".into()),
        }
    }
}

fn no_certificate() -> String {
    "`ca` holds no certificate in PEM".to_owned()
}

/// Publishes and listens until it is dropped.
pub struct Relay {
    _gathers: AbortOnDropHandle<()>,
    _runs: AbortOnDropHandle<()>,
}

impl Relay {
    /// Starts both on the channel of a database's incarnation: two installations may share a server. `wake` is rung when another node
    /// has work.
    #[must_use]
    pub fn start(server: Server, epoch: &str, bus: &LocalBus, wake: Arc<Notify>, rng: Arc<dyn Rng>) -> Self {
        bus.set_between(Between::Trying);
        let outbox = Arc::new(Outbox::default());
        let relay = Inner {
            server,
            channel: format!("taskbell:{epoch}"),
            node: format!("{:08x}{:08x}", random(&*rng), random(&*rng)),
            bus: bus.clone(),
            wake,
            rng,
            outbox: outbox.clone(),
        };
        Self {
            _gathers: AbortOnDropHandle::new(tokio::spawn(gather(bus.clone(), outbox))),
            _runs: AbortOnDropHandle::new(tokio::spawn(relay.run())),
        }
    }
}

fn random(rng: &dyn Rng) -> u32 {
    (rng.unit() * f64::from(u32::MAX)) as u32
}

/// What waits to be published.
#[derive(Default)]
struct Queue {
    events: Vec<Box<RawValue>>,
    bytes: usize,
    /// Something was told that is not in it.
    lost: bool,
    /// There is a connection to publish by.
    open: bool,
}

#[derive(Default)]
struct Outbox {
    queue: Mutex<Queue>,
    rung: Notify,
}

impl Outbox {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, events: Vec<Box<RawValue>>) {
        let mut queue = self.queue();
        let bytes: usize = events.iter().map(|event| event.get().len()).sum();
        if !queue.open || queue.bytes + bytes > QUEUE_BYTES {
            let left_out = queue.events.len() + events.len();
            counter!(metric::REDIS_LOST).increment(left_out as u64);
            *queue = Queue { lost: true, open: queue.open, ..Queue::default() };
        } else {
            queue.bytes += bytes;
            queue.events.extend(events);
        }
        drop(queue);
        self.rung.notify_one();
    }

    /// What goes out next; that something was lost goes first.
    fn take(&self) -> Vec<Box<RawValue>> {
        let mut queue = self.queue();
        let count = wire::fitting(&queue.events, PIPELINE_BYTES);
        let mut taken: Vec<Box<RawValue>> = queue.events.drain(..count).collect();
        queue.bytes -= taken.iter().map(|event| event.get().len()).sum::<usize>();
        if std::mem::take(&mut queue.lost) {
            taken.insert(0, wire::lost());
        }
        taken
    }

    /// From now on there is, or is not, a connection to publish by.
    fn open(&self, open: bool) {
        let mut queue = self.queue();
        let lost = queue.lost || !queue.events.is_empty();
        *queue = Queue { lost, open, ..Queue::default() };
    }
}

/// Takes from the node's bus whatever comes, so that nothing piles up there.
async fn gather(bus: LocalBus, outbox: Arc<Outbox>) {
    let mut own = bus.subscribe_to_own();
    while let Some(signal) = own.next().await {
        outbox.put(wire::events(&signal));
    }
}

/// Why a connection ended.
enum End {
    /// It may come back.
    Fault(String),
    /// Somebody has to change something first.
    Refused(String),
}

struct Inner {
    server: Server,
    channel: String,
    node: String,
    bus: LocalBus,
    wake: Arc<Notify>,
    rng: Arc<dyn Rng>,
    outbox: Arc<Outbox>,
}

impl Inner {
    async fn run(self) {
        let (mut was_up, mut told, mut tries) = (false, false, 0);
        loop {
            let heard = watch::Sender::new(0);
            let ended = {
                let session = self.session(&heard);
                let mut session = std::pin::pin!(session);
                let mut beats = heard.subscribe();
                let first = tokio::select! {
                    end = &mut session => Some(end),
                    Ok(_) = beats.wait_for(|n| *n > 0) => None,
                };
                match first {
                    Some(end) => end,
                    None => {
                        self.up(was_up || told);
                        (was_up, told, tries) = (true, false, 0);
                        session.await
                    }
                }
            };
            self.outbox.open(false);
            gauge!(metric::REDIS_UP).set(0.0);
            let again = match ended {
                End::Refused(why) => {
                    if self.bus.set_between(Between::Refused) {
                        tracing::warn!(
                            "redis refuses: {why}. Until then nodes find the changes of others in the database"
                        );
                    }
                    AGAIN_WHEN_REFUSED
                }
                End::Fault(why) => {
                    self.bus.set_between(Between::Down);
                    if !std::mem::replace(&mut told, true) {
                        tracing::warn!(
                            "redis is away ({why}): nodes find the changes of others in the database until it is back"
                        );
                    }
                    tries += 1;
                    self.pause(tries)
                }
            };
            sleep(again).await;
        }
    }

    fn pause(&self, tries: u32) -> Duration {
        let most = AGAIN_MS.saturating_mul(1 << tries.min(10)).min(AGAIN_AT_MOST_MS) as f64;
        Duration::from_millis((most * (0.5 + 0.5 * self.rng.unit())) as u64)
    }

    /// All that others tell arrives from now on; what they told before did not, `after_fault`.
    fn up(&self, after_fault: bool) {
        gauge!(metric::REDIS_UP).set(1.0);
        self.bus.set_between(Between::Up);
        self.wake.notify_one();
        if after_fault {
            tracing::info!("redis is back");
            self.bus.pass_on(Signal::Missed);
        }
    }

    /// Connects and goes on until something breaks. `heard` is the newest beat that came back.
    async fn session(&self, heard: &watch::Sender<u64>) -> End {
        let listener = async {
            let mut listener = self.server.0.get_async_pubsub().await?;
            listener.subscribe(&self.channel).await?;
            Ok(listener)
        };
        let teller = async {
            let config = AsyncConnectionConfig::new()
                .set_connection_timeout(Some(PATIENCE))
                .set_response_timeout(Some(PATIENCE));
            self.server.0.get_multiplexed_async_connection_with_config(&config).await
        };
        let connected = timeout(2 * PATIENCE, async { tokio::try_join!(listener, teller) }).await;
        let (listener, teller) = match connected {
            Ok(Ok(both)) => both,
            Ok(Err(e)) => return self.end(&e),
            Err(_) => return End::Fault("it does not answer".into()),
        };
        self.outbox.open(true);
        self.outbox.rung.notify_one();
        let mut messages = listener.into_on_message();
        let listens = async {
            while let Some(message) = messages.next().await {
                self.take(wire::hear(&self.node, message.get_payload_bytes()), heard);
            }
            End::Fault("the subscription ended".into())
        };
        tokio::select! {
            end = listens => end,
            end = self.publish(teller) => end,
            end = self.beat(heard) => end,
        }
    }

    async fn publish(&self, mut teller: MultiplexedConnection) -> End {
        loop {
            let events = self.outbox.take();
            if events.is_empty() {
                self.outbox.rung.notified().await;
                continue;
            }
            let mut pipeline = ::redis::pipe();
            for message in wire::messages(&self.node, &events) {
                pipeline.cmd("PUBLISH").arg(&self.channel).arg(message).ignore();
            }
            if let Err(e) = pipeline.query_async::<()>(&mut teller).await {
                self.outbox.queue().lost = true;
                return self.end(&e);
            }
            counter!(metric::REDIS_EVENTS, "direction" => "sent").increment(events.len() as u64);
        }
    }

    /// Tells itself that it is there, and ends when it does not hear it.
    async fn beat(&self, heard: &watch::Sender<u64>) -> End {
        let mut beats = heard.subscribe();
        let mut ticks = interval(BEAT_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut n, mut missing) = (0, 0);
        loop {
            tokio::select! {
                biased;
                Ok(()) = beats.changed() => missing = 0,
                _ = ticks.tick() => {
                    if missing == DEAF_BEATS {
                        return End::Fault("it brings nothing that is published".into());
                    }
                    (n, missing) = (n + 1, missing + 1);
                    self.outbox.put(vec![wire::beat(n)]);
                }
            }
        }
    }

    fn take(&self, message: Heard, heard: &watch::Sender<u64>) {
        if let Some(n) = message.beat {
            heard.send_replace(n);
        }
        counter!(metric::REDIS_EVENTS, "direction" => "received").increment(message.signals.len() as u64);
        for signal in message.signals {
            if signal.wakes() {
                self.wake.notify_one();
            }
            self.bus.pass_on(signal);
        }
    }

    fn end(&self, e: &RedisError) -> End {
        end(&self.channel, e)
    }
}

/// What a fault means, and what is missing where the server refuses.
fn end(channel: &str, e: &RedisError) -> End {
    let word = e.code().unwrap_or_default();
    match e.kind() {
        ErrorKind::Server(ServerErrorKind::NoPerm) => End::Refused(format!(
            "the user lacks the right to the channel `{channel}`; ACL SETUSER … +publish +subscribe &taskbell:* gives it"
        )),
        ErrorKind::AuthenticationFailed => End::Refused("the user or the password in redis.url is wrong".into()),
        ErrorKind::InvalidClientConfig => End::Refused("redis.url is not one that can be connected to".into()),
        _ if matches!(word, "NOAUTH" | "WRONGPASS") => {
            End::Refused("the user or the password in redis.url is wrong".into())
        }
        _ => End::Fault(e.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_full_is_emptied_and_tells_that_something_was_lost() {
        let outbox = Outbox::default();
        let large = || vec![serde_json::value::to_raw_value(&"x".repeat(QUEUE_BYTES / 3)).unwrap()];
        outbox.put(large());
        assert_eq!(outbox.take()[0].get(), wire::lost().get(), "nobody is there to publish it");
        outbox.open(true);
        outbox.put(large());
        outbox.put(large());
        assert_eq!(outbox.take().len(), 1, "a pipeline has its size");
        outbox.put(large());
        outbox.put(large());
        outbox.put(large());
        let left = outbox.take();
        assert_eq!((left.len(), left[0].get()), (2, wire::lost().get()), "what came after it goes out");
        assert!(outbox.take().is_empty());
        assert_eq!(outbox.queue().bytes, 0);
    }

    #[test]
    fn an_address_that_is_none_is_told_without_it() {
        let told = Server::at("redis://:hunter2@host/nine", None).err().unwrap();
        assert!(told.contains("no address") && !told.contains("hunter2"), "{told}");
        let told = Server::at("rediss://host", Some(b"nothing".to_vec())).err().unwrap();
        assert!(told.contains("PEM"), "{told}");
    }
}
