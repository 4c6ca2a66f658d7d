//! One connection from its hello to its close.
//!
//! A session waits for three things at once: a frame of the client, its mailbox, and the next moment at which something is
//! due. Whatever wakes it, it then does all that is due, in a fixed order. It holds no queue: while a frame is being written
//! nothing else happens here, and what changes meanwhile is merged in the mailbox.
//!
//! When changes go out: the first one after a quiet moment at once; a changed state, a mark or an end at most
//! [`state_ms`](super::Limits::state_ms) after the last frame; progress alone [`progress_ms`](super::Limits::progress_ms)
//! after it, moved once by a phase of the connection's own, so that many connections do not write at the same moment. A
//! hidden page gets no progress.

mod answer;
mod greet;
mod rate;
mod room;
mod tail;
mod tell;
mod wire;

use super::door::Full;
use super::hub::{Hub, Registration};
use super::item::Viewer;
use super::protocol::{Have, Live, ServerFrame, close};
use super::snapshot::Wanted;
use super::socket::Socket;
use crate::core::ids::{Head, TaskId};
use crate::core::principal::Principal;
use crate::core::time::{Millis, Mono};
use futures_util::future::BoxFuture;
use rate::Rate;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tail::Tail;
use wire::Wire;

/// The least time between two snapshots that only show that estimates were withdrawn.
const STALL_MS: u64 = 5_000;
/// A session looks at itself at least so often.
const LONGEST_SLEEP_MS: u64 = 60_000;

/// A caller whose identity was proven, and how long and by what.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Who it is.
    pub principal: Principal,
    /// When it ends; absent = not by itself.
    pub expires_at: Option<Millis>,
    /// The name under which [`Hub::revoke`] ends the connection, such as the hash of a key or of a session.
    pub credential: Option<String>,
}

/// Turns a token of a hello or a refresh into an identity; `None` = it proves nothing.
pub type Authenticate = Arc<dyn Fn(String) -> BoxFuture<'static, Option<Identity>> + Send + Sync>;

/// What is known of a connection before its first frame.
#[derive(Clone)]
pub struct Opening {
    /// Who it is by cookie or header, if either proved it.
    pub identity: Option<Identity>,
    /// What counts as the address it comes from, where that is known.
    pub address: Option<IpAddr>,
    /// What tokens prove. Has to answer `None` where the Origin may not bring one.
    pub authenticate: Authenticate,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The peer is gone.
    Lost,
    /// We close it.
    Close(u16, &'static str),
}

/// Runs one connection to its end.
pub(super) fn serve<S: Socket>(hub: Arc<Hub>, socket: S, opening: Opening) -> BoxFuture<'static, ()> {
    // What a future is given it keeps in its own size, twice where it moves it: boxes are small.
    let wire = Box::new(Wire::new(socket, &hub.limits));
    Box::pin(run(hub, wire, Box::new(opening)))
}

async fn run<S: Socket>(hub: Arc<Hub>, mut wire: Box<Wire<S>>, opening: Box<Opening>) {
    let _inside = match hub.let_in(opening.address) {
        Ok(inside) => inside,
        Err(Full::Node) => return Box::pin(wire.farewell(close::OVERLOAD, "too many connections")).await,
        Err(Full::Address) => {
            return Box::pin(wire.farewell(close::TOO_MANY, "too many connections from this address")).await;
        }
    };
    let end = {
        let (hub, wire) = (&hub, &mut *wire);
        // What only the greeting needs goes with it.
        let greeted = Box::pin(async move {
            let (session, have) = greet::greet(hub, wire, &opening).await?;
            Ok((Box::new(session), have))
        });
        match greeted.await {
            Err(end) => end,
            Ok((mut session, have)) => match session.live(have).await {
                Err(end) => end,
                Ok(never) => match never {},
            },
        }
    };
    if let End::Close(code, reason) = end {
        tracing::debug!(code, reason, "a push connection is closed");
        let mut draining = hub.draining();
        tokio::select! {
            () = Box::pin(wire.farewell(code, reason)) => {}
            // A node that goes waits for nobody who may be asleep.
            _ = draining.wait_for(|draining| *draining), if code == close::TOO_SLOW => {}
        }
    }
}

/// A connection after its hello.
struct Session<'w, S> {
    hub: Arc<Hub>,
    wire: &'w mut Wire<S>,
    authenticate: super::Authenticate,
    place: Registration,
    viewer: Viewer,
    expires_at: Option<Millis>,
    expiry_told: bool,
    visible: bool,
    /// What was told.
    live: Live,
    /// The store did not answer when it was asked last.
    store_down: bool,
    /// The head that the client has been told; never falls. Absent before the first snapshot.
    told: Option<Head>,
    /// Something was taken to be sent and could not be: the next snapshot goes out whatever its head.
    owed: bool,
    /// Subscribed tasks, with the tail of their log where it is wanted.
    topics: BTreeMap<TaskId, Option<Tail>>,
    rate: Rate,
    flushed_at: Option<Mono>,
    /// How long progress waits after the last frame; one phase longer after a quiet moment.
    progress_wait_ms: u64,
    phase_ms: u64,
    ping_at: Mono,
    pong_by: Option<Mono>,
    stall_told_at: Option<Mono>,
}

impl<S: Socket> Session<'_, S> {
    async fn live(&mut self, have: Option<Have>) -> Result<Infallible, End> {
        Box::pin(self.tell_center(self.wanted(have))).await?;
        let (mut timer, mut rings_at) = (std::pin::pin!(tokio::time::sleep(Duration::ZERO)), Mono(0));
        loop {
            let (now, due) = (self.now(), self.due());
            if due <= now {
                Box::pin(self.work()).await?;
                continue;
            }
            // One that rings too early costs a look at what is due; to set it anew for each frame would cost more.
            if timer.is_elapsed() || due < rings_at {
                let sleep_ms = (due - now).min(LONGEST_SLEEP_MS);
                timer.set(tokio::time::sleep(Duration::from_millis(sleep_ms)));
                rings_at = now + sleep_ms;
            }
            tokio::select! {
                frame = self.wire.receive() => match frame {
                    Some(frame) => Box::pin(self.answer(frame)).await?,
                    None => return Err(End::Lost),
                },
                () = self.place.mailbox.wake.notified() => {}
                () = timer.as_mut() => {}
            }
        }
    }

    /// The center, for a page that has this already.
    fn wanted(&self, have: Option<Have>) -> Wanted {
        Wanted::Answer(have.and_then(|have| have.head_in(self.hub.store.epoch())))
    }

    /// The head for a frame: all up to it was sent.
    fn told(&self) -> Head {
        self.told.unwrap_or_default()
    }

    fn now(&self) -> Mono {
        self.hub.clock.mono()
    }

    /// When there is something to do next.
    fn due(&self) -> Mono {
        let now = self.now();
        let pending = self.place.mailbox.pending();
        let late = self.live != self.freshness();
        let at_once = (late || pending.revoked || pending.tell_drain || pending.logs).then_some(now);
        [
            at_once,
            Some(self.pong_by.unwrap_or(self.ping_at)),
            pending.leave_at,
            pending.gap_at,
            pending.stale_at,
            pending.stalled.then(|| self.stall_due(now)).flatten(),
            self.flush_due(pending.urgent, pending.progress, now),
            self.expiry_due(now),
            self.tail_due(),
        ]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(now)
    }

    /// When changes may go out.
    fn flush_due(&self, urgent: bool, progress: bool, now: Mono) -> Option<Mono> {
        let wait = match (urgent, progress && self.visible) {
            (true, _) => self.hub.limits.state_ms,
            (false, true) => self.progress_wait_ms,
            (false, false) => return None,
        };
        Some(self.flushed_at.map_or(now, |at| at + wait))
    }

    fn stall_due(&self, now: Mono) -> Option<Mono> {
        self.visible.then(|| self.stall_told_at.map_or(now, |at| at + STALL_MS))
    }

    /// When the identity has to be spoken of: a warning first, then its end.
    fn expiry_due(&self, now: Mono) -> Option<Mono> {
        let left = self.expires_at?.since(self.hub.clock.now());
        let warning = if self.expiry_told { 0 } else { self.hub.limits.expiry_warning_ms as i64 };
        Some(now + (left - warning).max(0) as u64)
    }

    /// Does all that is due.
    async fn work(&mut self) -> Result<(), End> {
        let now = self.now();
        let pending = self.place.mailbox.pending();
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now);
        if pending.revoked {
            return Err(End::Close(close::NEW_TOKEN, "the identity was taken back"));
        }
        self.tell_status().await?;
        if pending.tell_drain {
            let (retry_ms, spread_ms) = (self.hub.limits.drain_retry_ms, self.hub.limits.drain_spread_ms);
            self.wire.send(&ServerFrame::Drain { retry_ms, spread_ms }).await?;
            self.place.mailbox.drain_told();
        }
        if due(pending.leave_at) {
            return Err(End::Close(close::RESTART, "the node goes"));
        }
        if due(self.pong_by) {
            return Err(End::Close(close::NO_PONG, "no pong"));
        }
        if due(self.expiry_due(now)) {
            self.tell_expiry().await?;
        }
        if due(pending.gap_at) {
            self.place.mailbox.give_up_gap(now + self.hub.jitter_ms());
        }
        if due(pending.stale_at) || (pending.stalled && due(self.stall_due(now))) {
            self.tell_again().await?;
        }
        if due(self.flush_due(pending.urgent, pending.progress, now)) {
            self.flush().await?;
        }
        self.follow_logs().await?;
        if self.pong_by.is_none() && self.ping_at <= now {
            self.ping().await?;
        }
        Ok(())
    }
}
