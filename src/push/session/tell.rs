//! What a session tells: snapshots, changes, pings, the end of an identity.
//!
//! After each frame `told` is the head up to which the client has everything; it never falls. A store that does not answer
//! is told as `status degraded`, once, and everything is sent anew when it answers again.

use super::super::frames::Content;
use super::super::hub::Hub;
use super::super::item::{Item, Viewer};
use super::super::mailbox::{Delivery, Lane, Taken, What};
use super::super::protocol::{CountsView, ErrorCode, Live, ME, ServerFrame, close};
use super::super::registry::OwnerKey;
use super::super::snapshot::{Owed, Snapshot, Wanted};
use super::super::socket::Socket;
use super::{End, Session};
use crate::core::ids::{Head, TaskId};
use crate::store::{Reach, Result as Stored};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How long after a failed reading the store is asked again, ms; jitter comes on top.
const AGAIN_MS: u64 = 1_000;

/// A changed task and how the viewer sees it.
pub(super) type Row = (Arc<Item>, Arc<RawValue>);

enum Center {
    Same(Head),
    NotNewer(Head),
    Snapshot(Arc<Snapshot>, Vec<Arc<RawValue>>),
}

impl<S: Socket> Session<'_, S> {
    /// Sends the notification center.
    pub(super) async fn tell_center(&mut self, wanted: Wanted) -> Result<(), End> {
        let center = match read_center(&self.hub, &self.place.key, &self.viewer, self.told, wanted).await {
            Ok(center) => center,
            Err(_) => return self.degrade().await,
        };
        let head = match center {
            Center::NotNewer(head) => head,
            Center::Same(head) => {
                self.told = self.told.max(Some(head));
                self.wire.send(&ServerFrame::Same { topic: ME, head: self.told() }).await?;
                head
            }
            Center::Snapshot(snapshot, texts) => {
                self.told = self.told.max(Some(snapshot.head));
                let content = Content { topic: ME.into(), head: self.told(), texts, counts: None };
                let (most, epoch) = (self.hub.limits.snapshot_bytes, self.hub.store.epoch());
                let text = snapshot.frames.get(content, |content| {
                    let (items, cut) = fitting(&content.texts, most);
                    let (head, as_of, more) = (content.head, snapshot.as_of, snapshot.more || cut);
                    let counts = Some(&snapshot.counts);
                    let frame = ServerFrame::Snap { topic: ME, epoch, head, as_of, items: &items, more, counts };
                    frame.text().into()
                });
                self.wire.send_made("snap", text).await?;
                self.hub.shown(&snapshot.items);
                snapshot.head
            }
        };
        self.place.mailbox.snapshot_sent(head, self.now());
        self.owed = false;
        self.recover().await
    }

    /// Sends the summary of a subscribed task; one that is not there, or not for this caller, ends the topic.
    pub(super) async fn tell_task(&mut self, id: TaskId) -> Result<(), End> {
        let read = async {
            let found = self.hub.store.tasks(&Reach::of(&self.viewer.principal), &[id]).await?.pop();
            let Some(item) = found.filter(|task| self.viewer.principal.sees(task)).map(Item::new) else {
                return Ok(None);
            };
            let texts = self.hub.renderer.render(&self.viewer, std::slice::from_ref(&item)).await?;
            Stored::Ok(Some((item, texts)))
        };
        let topic = format!("task:{id}");
        match read.await {
            Err(_) => self.degrade().await,
            Ok(None) => {
                self.leave(id);
                self.wire.refuse(ErrorCode::NotFound, Some(&topic)).await
            }
            Ok(Some((item, texts))) => {
                let items: Vec<&RawValue> = texts.iter().map(|text| &**text).collect();
                let frame = ServerFrame::Snap {
                    topic: &topic,
                    epoch: self.hub.store.epoch(),
                    head: self.told(),
                    as_of: self.hub.clock.now(),
                    items: &items,
                    more: false,
                    counts: None,
                };
                self.wire.send(&frame).await?;
                self.place.mailbox.task_sent(id, item.task.revision);
                self.hub.shown(&[item]);
                Ok(())
            }
        }
    }

    /// Sends the center and all subscribed tasks.
    pub(super) async fn tell_all(&mut self, wanted: Wanted) -> Result<(), End> {
        self.tell_center(wanted).await?;
        let topics: Vec<TaskId> = self.topics.keys().copied().collect();
        for id in topics {
            self.tell_task(id).await?;
        }
        let rooms: Vec<u16> = self.place.rooms.iter().map(|place| place.slot).collect();
        for slot in rooms {
            self.tell_room(slot).await?;
        }
        Ok(())
    }

    /// Sends again what may be old.
    pub(super) async fn tell_again(&mut self) -> Result<(), End> {
        let now = self.now();
        let stale = self.place.mailbox.take_stale(now, self.visible);
        if stale.all {
            self.topics.values_mut().flatten().for_each(|tail| tail.look(now));
            let anew = stale.me_stalled || self.owed;
            return self.tell_all(if anew { Wanted::Anew } else { Wanted::IfNewer }).await;
        }
        self.stall_told_at = Some(now);
        if stale.me_stalled {
            self.tell_center(Wanted::Anew).await?;
        }
        for id in stale.tasks_stalled {
            self.tell_task(id).await?;
        }
        for slot in stale.rooms_stalled {
            self.tell_room(slot).await?;
        }
        Ok(())
    }

    /// Sends what has changed.
    pub(super) async fn flush(&mut self) -> Result<(), End> {
        let now = self.now();
        let limits = &self.hub.limits;
        let quiet = self.flushed_at.is_none_or(|at| now - at > 2 * limits.progress_ms);
        self.progress_wait_ms = limits.progress_ms + if quiet { self.phase_ms } else { 0 };
        self.flushed_at = Some(now);
        let Taken { changes, counts, room_counts, head } = self.place.mailbox.take(self.visible);
        let items: Vec<Arc<Item>> = changes.iter().filter_map(|(_, change)| item(change)).cloned().collect();
        let read = async {
            let texts = self.hub.renderer.render(&self.viewer, &items).await?;
            let (tenant, owner) = &self.place.key;
            let counts = match counts {
                true => Some(self.place.owner.counts.read(&*self.hub.store, tenant, owner).await?),
                false => None,
            };
            Stored::Ok((texts, counts))
        };
        let (texts, counts) = match read.await {
            Ok(read) => read,
            Err(_) => {
                self.owed = true;
                return self.degrade().await;
            }
        };
        let mut gone = BTreeSet::new();
        let mut mine = Vec::new();
        let mut watched = Vec::new();
        let mut rooms: BTreeMap<u16, Vec<Row>> = room_counts.iter().map(|slot| (*slot, Vec::new())).collect();
        let mut rows = items.iter().cloned().zip(texts);
        for (lane, change) in &changes {
            match &change.what {
                What::Gone(revision) => {
                    if gone.insert(change.id) {
                        self.wire.send(&ServerFrame::Gone { id: change.id, revision: *revision }).await?;
                    }
                    if *lane == Lane::Task {
                        self.leave(change.id);
                    }
                }
                What::Is(item) => {
                    let row = rows.next().expect("each item was rendered");
                    match lane {
                        Lane::Me => mine.push(row),
                        Lane::Task if self.viewer.principal.sees(&item.task) => watched.push(row),
                        Lane::Task => {}
                        Lane::Room(slot) => rooms.entry(*slot).or_default().push(row),
                    }
                }
            }
        }
        self.tell_changes(ME, &mine, counts.as_ref(), Some(head)).await?;
        for row in watched {
            let topic = format!("task:{}", row.0.task.id);
            self.tell_changes(&topic, &[row], None, None).await?;
        }
        for (slot, rows) in rooms {
            self.tell_room_changes(slot, &rows, room_counts.contains(&slot)).await?;
        }
        Ok(())
    }

    /// Sends changes of a topic in frames of limited size, each made once for all that are told the same; the last one
    /// carries the counts and the new head.
    pub(super) async fn tell_changes(
        &mut self,
        topic: &str,
        rows: &[Row],
        counts: Option<&Arc<CountsView>>,
        head: Option<Head>,
    ) -> Result<(), End> {
        let mut rest = rows;
        while !rest.is_empty() || counts.is_some() {
            let mut bytes = 0;
            let fits = |(_, text): &&Row| {
                bytes += text.get().len() + 1;
                bytes <= self.hub.limits.frame_bytes
            };
            let count = rest.iter().take(self.hub.limits.frame_items).take_while(fits).count();
            let (now, later) = rest.split_at(count.max(1).min(rest.len()));
            rest = later;
            let last = rest.is_empty();
            if last {
                self.told = self.told.max(head);
            }
            let counts = counts.filter(|_| last).cloned();
            let texts = now.iter().map(|(_, text)| text.clone()).collect();
            let content = Content { topic: topic.into(), head: self.told(), texts, counts };
            let text = match now.first() {
                Some((item, _)) => item.frames.get(content, delta),
                None => delta(&content),
            };
            self.wire.send_made("delta", text).await?;
            if last {
                break;
            }
        }
        Ok(())
    }

    /// Asks for a sign of life and tells the head of the database: what the bus lost shows here at the latest.
    pub(super) async fn ping(&mut self) -> Result<(), End> {
        let (tenant, owner) = &self.place.key;
        let there = self.hub.store.head(tenant, owner).await.unwrap_or(self.told());
        let known = self.place.mailbox.known().unwrap_or(self.told());
        self.place.mailbox.expect(there, self.now());
        // What is held back from a hidden page is no reason for it to ask.
        let head = if there > known { there } else { self.told() };
        self.pong_by = Some(self.now() + self.hub.limits.pong_ms);
        self.wire.send(&ServerFrame::Ping { head }).await
    }

    /// Warns of the end of the identity, and ends the connection when it has come.
    pub(super) async fn tell_expiry(&mut self) -> Result<(), End> {
        let left = self.expires_at.map_or(i64::MAX, |at| at.since(self.hub.clock.now()));
        if left <= 0 {
            return Err(End::Close(close::NEW_TOKEN, "the identity has ended"));
        }
        if !self.expiry_told {
            self.expiry_told = true;
            self.wire.send(&ServerFrame::Auth { expires_in_ms: left }).await?;
        }
        Ok(())
    }

    /// The store does not answer.
    pub(super) async fn degrade(&mut self) -> Result<(), End> {
        self.place.mailbox.stale_all(self.now() + AGAIN_MS + self.hub.jitter_ms());
        self.store_down = true;
        self.tell_status().await
    }

    /// It does.
    async fn recover(&mut self) -> Result<(), End> {
        self.store_down = false;
        self.tell_status().await
    }

    /// How fresh what this connection is told is.
    pub(super) fn freshness(&self) -> Live {
        if self.store_down || self.hub.is_late() { Live::Degraded } else { Live::Ok }
    }

    /// Tells it, where it is not what was told last.
    pub(super) async fn tell_status(&mut self) -> Result<(), End> {
        let live = self.freshness();
        if self.live == live {
            return Ok(());
        }
        self.live = live;
        self.wire.send(&ServerFrame::Status { live, since: self.hub.clock.now() }).await
    }
}

async fn read_center(hub: &Hub, key: &OwnerKey, viewer: &Viewer, told: Option<Head>, wanted: Wanted) -> Stored<Center> {
    let head = hub.store.head(&key.0, &key.1).await?;
    match wanted.owed(head, told) {
        Owed::Same => return Ok(Center::Same(head)),
        Owed::Nothing => return Ok(Center::NotNewer(head)),
        Owed::Snapshot => {}
    }
    let snapshot = hub.snapshots.read(key, head).await?;
    let texts = hub.renderer.render(viewer, &snapshot.items).await?;
    Ok(Center::Snapshot(snapshot, texts))
}

fn delta(content: &Content) -> Bytes {
    let items: Vec<&RawValue> = content.texts.iter().map(|text| &**text).collect();
    let (topic, head, counts) = (&content.topic, content.head, content.counts.as_deref());
    ServerFrame::Delta { topic, head, items: &items, counts }.text().into()
}

fn item(change: &Delivery) -> Option<&Arc<Item>> {
    match &change.what {
        What::Is(item) => Some(item),
        What::Gone(_) => None,
    }
}

/// The first texts that fit, and whether some do not.
pub(super) fn fitting(texts: &[Arc<RawValue>], most: usize) -> (Vec<&RawValue>, bool) {
    let mut bytes = 0;
    let fits = |text: &&Arc<RawValue>| {
        bytes += text.get().len() + 1;
        bytes <= most
    };
    let items: Vec<&RawValue> = texts.iter().take_while(fits).map(|text| &**text).collect();
    let cut = items.len() < texts.len();
    (items, cut)
}
