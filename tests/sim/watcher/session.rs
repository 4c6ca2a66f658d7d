//! One connection on its node: registers, tells the center, then what the mailbox gathers; pings with the database's head;
//! sends everything anew where it cannot know what was missed.

use super::{Desk, Frame, Request};
use crate::node::Node;
use crate::people::OWNERS;
use crate::plant::Plant;
use std::sync::Arc;
use taskbell::core::ids::Head;
use taskbell::core::time::{Clock, Mono};
use taskbell::push::mailbox::{Lane, Mailbox, Taken, What};
use taskbell::push::registry::OwnerKey;
use taskbell::push::snapshot::{Owed, Wanted};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender};

/// How long after a failed reading the store is asked again, ms.
const AGAIN_MS: u64 = 1_000;

/// The page is gone.
struct Gone;

struct Session<'n> {
    desk: &'n Desk,
    node: &'n Node,
    key: OwnerKey,
    id: u64,
    mailbox: Arc<Mailbox>,
    page: UnboundedSender<Frame>,
    visible: bool,
    told: Option<Head>,
    owed: bool,
    flushed_at: Option<Mono>,
    ping_at: Mono,
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        self.desk.registry.lock().unwrap().remove(self.id, &self.key);
    }
}

/// Serves a page until it, or the node, is gone.
pub(super) async fn serve(
    node: Arc<Node>,
    owner: usize,
    have: Option<Head>,
    page: UnboundedSender<Frame>,
    mut requests: UnboundedReceiver<Request>,
) {
    let desk = &node.desk;
    let key: OwnerKey = (OWNERS[owner].0.into(), OWNERS[owner].1.into());
    let Ok((id, mailbox, _)) = desk.registry.lock().unwrap().add(&key, None, &desk.limits) else { return };
    let ping_at = node.mono() + desk.limits.ping_ms;
    let mut session = Session {
        desk,
        node: &node,
        key,
        id,
        mailbox: mailbox.clone(),
        page,
        visible: true,
        told: None,
        owed: false,
        flushed_at: None,
        ping_at,
    };
    if session.hello(have).await.is_err() {
        return;
    }
    loop {
        let now = node.mono();
        let due = session.due(now);
        let done = if due <= now {
            session.work(now).await
        } else {
            tokio::select! {
                biased;
                request = requests.recv() => session.answer(request).await,
                () = mailbox.wake.notified() => Ok(()),
                () = node.sleep((due - now) as i64) => Ok(()),
            }
        };
        if done.is_err() {
            return;
        }
    }
}

impl Session<'_> {
    async fn hello(&mut self, have: Option<Head>) -> Result<(), Gone> {
        if self.node.world.plant == Some(Plant::NoRereadOnReconnect)
            && let Some(head) = have
            && let Ok(there) = self.desk.store.head(&self.key.0, &self.key.1).await
        {
            self.told = Some(head.max(there));
            self.mailbox.snapshot_sent(there, self.node.mono());
            return self.send(Frame::Same(there));
        }
        self.tell_center(Wanted::Answer(have)).await
    }

    async fn answer(&mut self, request: Option<Request>) -> Result<(), Gone> {
        match request.ok_or(Gone)? {
            Request::Sync(have) => self.tell_center(Wanted::Answer(have)).await,
            Request::View(visible) => {
                self.visible = visible;
                Ok(())
            }
        }
    }

    fn due(&self, now: Mono) -> Mono {
        let (pending, limits) = (self.mailbox.pending(), &self.desk.limits);
        let flush = match (pending.urgent, pending.progress && self.visible) {
            (true, _) => Some(limits.state_ms),
            (false, true) => Some(limits.progress_ms),
            (false, false) => None,
        };
        let flush = flush.map(|wait| self.flushed_at.map_or(now, |at| at + wait));
        [Some(self.ping_at), pending.gap_at, pending.stale_at, flush].into_iter().flatten().min().unwrap_or(now)
    }

    async fn work(&mut self, now: Mono) -> Result<(), Gone> {
        let pending = self.mailbox.pending();
        let due = |at: Option<Mono>| at.is_some_and(|at| at <= now);
        if due(pending.gap_at) {
            self.mailbox.give_up_gap(now);
        }
        if due(pending.stale_at) && self.mailbox.take_stale(now, self.visible).all {
            self.tell_center(if self.owed { Wanted::Anew } else { Wanted::IfNewer }).await?;
        }
        if pending.urgent || (pending.progress && self.visible) {
            self.flush(now).await?;
        }
        if self.ping_at <= now {
            self.ping().await?;
        }
        Ok(())
    }

    async fn tell_center(&mut self, wanted: Wanted) -> Result<(), Gone> {
        let Ok(head) = self.desk.store.head(&self.key.0, &self.key.1).await else { return self.degrade() };
        let told = match wanted.owed(head, self.told) {
            Owed::Same => {
                self.told = self.told.max(Some(head));
                self.send(Frame::Same(head))?;
                head
            }
            Owed::Nothing => head,
            Owed::Snapshot => {
                let Ok(snapshot) = self.desk.snapshots.read(&self.key, head).await else { return self.degrade() };
                self.told = self.told.max(Some(snapshot.head));
                let items = snapshot.items.iter().map(|item| item.task.clone()).collect();
                self.send(Frame::Snap(self.told.unwrap_or_default(), items, snapshot.more))?;
                snapshot.head
            }
        };
        self.mailbox.snapshot_sent(told, self.node.mono());
        self.owed = false;
        Ok(())
    }

    async fn flush(&mut self, now: Mono) -> Result<(), Gone> {
        self.flushed_at = Some(now);
        let Taken { changes, counts, head, .. } = self.mailbox.take(self.visible);
        if counts && self.desk.store.now().await.is_err() {
            self.owed = true;
            return self.degrade();
        }
        let mut items = Vec::new();
        for (lane, change) in changes {
            match change.what {
                What::Gone(revision) => self.send(Frame::Gone(change.id, revision))?,
                What::Is(item) if lane == Lane::Me => items.push(item.task.clone()),
                What::Is(_) => {}
            }
        }
        if !items.is_empty() || counts {
            self.told = self.told.max(Some(head));
            self.send(Frame::Delta(self.told.unwrap_or_default(), items))?;
        }
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), Gone> {
        let told = self.told.unwrap_or_default();
        let there = self.desk.store.head(&self.key.0, &self.key.1).await.unwrap_or(told);
        let known = self.mailbox.known().unwrap_or(told);
        self.mailbox.expect(there, self.node.mono());
        self.ping_at = self.node.mono() + self.desk.limits.ping_ms;
        self.send(Frame::Ping(if there > known { there } else { told }))
    }

    fn degrade(&mut self) -> Result<(), Gone> {
        self.mailbox.stale_all(self.node.mono() + AGAIN_MS);
        Ok(())
    }

    fn send(&self, frame: Frame) -> Result<(), Gone> {
        self.page.send(frame).map_err(|_| Gone)
    }
}
