//! The topics of rooms: `record:TYPE:ID` and `ops`.
//!
//! Which room a topic is for this caller is asked at each subscription and again before each snapshot: after a refresh it may
//! be another one, or none. No room and one that is not this caller's are answered alike.

use super::super::protocol::{ErrorCode, ServerFrame};
use super::super::room::RoomKey;
use super::super::socket::Socket;
use super::tell::{Row, fitting};
use super::{End, Session};
use crate::core::ids::{Revision, TaskId};
use crate::store::Result as Stored;

impl<S: Socket> Session<'_, S> {
    /// Topics of this connection beside `me`.
    pub(super) fn topic_count(&self) -> usize {
        self.topics.len() + self.place.rooms.len()
    }

    /// Watches the room of a topic.
    pub(super) async fn subscribe_room(&mut self, topic: &str) -> Result<(), End> {
        let slot = match self.place.slot_of(topic) {
            Some(slot) => slot,
            None if self.topic_count() >= self.hub.limits.topic_count => {
                return self.wire.refuse(ErrorCode::TooManyTopics, Some(topic)).await;
            }
            None => match RoomKey::of(topic, &self.viewer.principal, self.hub.renderer.catalogue()) {
                Some(key) => self.place.enter(topic, &key),
                None => return self.wire.refuse(ErrorCode::NotFound, Some(topic)).await,
            },
        };
        self.tell_room(slot).await
    }

    /// Sends the snapshot of a room; one that is none for this caller any more ends the topic.
    pub(super) async fn tell_room(&mut self, slot: u16) -> Result<(), End> {
        let Some((topic, _)) = self.place.room(slot) else { return Ok(()) };
        let Some(key) = RoomKey::of(&topic, &self.viewer.principal, self.hub.renderer.catalogue()) else {
            self.place.exit(slot);
            return self.wire.refuse(ErrorCode::NotFound, Some(&topic)).await;
        };
        let Some(room) = self.place.stand_in(slot, &key) else { return Ok(()) };
        let read = async {
            let view = self.hub.read_room(&room).await?;
            let texts = self.hub.renderer.render(&self.viewer, &view.items).await?;
            Stored::Ok((view, texts))
        };
        let Ok((view, texts)) = read.await else { return self.degrade().await };
        let (items, cut) = fitting(&texts, self.hub.limits.snapshot_bytes);
        let frame = ServerFrame::Snap {
            topic: &topic,
            epoch: self.hub.store.epoch(),
            head: self.told(),
            as_of: view.as_of,
            items: &items,
            more: view.more || cut,
            counts: view.counts.as_deref(),
        };
        self.wire.send(&frame).await?;
        let shown: Vec<(TaskId, Revision)> = view.items.iter().map(|i| (i.task.id, i.task.revision)).collect();
        self.place.mailbox.room_sent(slot, &shown);
        self.hub.shown(&view.items);
        Ok(())
    }

    /// Sends changes of a room, and its counts where they are wanted.
    pub(super) async fn tell_room_changes(&mut self, slot: u16, rows: &[Row], counted: bool) -> Result<(), End> {
        let Some((topic, room)) = self.place.room(slot) else { return Ok(()) };
        let counts = room.counts().filter(|_| counted);
        self.tell_changes(&topic, rows, counts.as_ref(), None).await
    }
}
