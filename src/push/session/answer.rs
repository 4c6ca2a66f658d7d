//! What a client asks, and what it gets for it.
//!
//! Rights are looked at for each subscription and again after each refresh. A task that does not exist and one that this
//! caller may not see are answered alike. Nothing here changes a task: that goes over HTTP.

use super::super::protocol::{ClientFrame, ErrorCode, Fault, ME, Sub, close};
use super::super::snapshot::Wanted;
use super::super::socket::{Incoming, Socket};
use super::tail::Tail;
use super::{End, Identity, Session};
use crate::core::ids::TaskId;
use crate::core::principal::Scope;

/// A topic as this version knows it.
enum Topic {
    Me,
    Task(TaskId),
    /// A room, or nothing that anybody could watch.
    Other,
}

impl Topic {
    fn read(name: &str) -> Self {
        match name.strip_prefix("task:").map(str::parse) {
            Some(Ok(id)) => Self::Task(id),
            None if name == ME => Self::Me,
            _ => Self::Other,
        }
    }
}

impl<S: Socket> Session<'_, S> {
    /// Follows a frame of the client, or says why not.
    pub(super) async fn answer(&mut self, frame: Incoming) -> Result<(), End> {
        // Whoever speaks is there.
        if self.pong_by.take().is_some() {
            self.ping_at = self.now() + self.hub.limits.ping_ms;
        }
        if !self.rate.frame(self.now()) {
            return self.fault(ErrorCode::TooManyCommands).await;
        }
        let text = match frame {
            Incoming::Control => return Ok(()),
            Incoming::Binary => return self.fault(ErrorCode::BadFrame).await,
            Incoming::Faulty => return Err(End::Close(close::PROTOCOL, "not a frame")),
            Incoming::Text(text) if text.len() > self.hub.limits.incoming_bytes => {
                return Err(End::Close(close::PROTOCOL, "the frame is too large"));
            }
            Incoming::Text(text) => text,
        };
        match ClientFrame::read(&text) {
            Err(Fault::Malformed) => self.fault(ErrorCode::BadFrame).await,
            Err(Fault::Unknown) => self.fault(ErrorCode::UnknownFrame).await,
            Ok(frame) => self.follow(frame).await,
        }
    }

    async fn follow(&mut self, frame: ClientFrame) -> Result<(), End> {
        match frame {
            ClientFrame::Hello(_) => self.fault(ErrorCode::BadFrame).await,
            ClientFrame::Pong => Ok(()),
            ClientFrame::View(view) => {
                self.visible = view.visible;
                Ok(())
            }
            ClientFrame::Sync(sync) => self.tell_center(self.wanted(sync.have)).await,
            ClientFrame::Refresh(refresh) => self.refresh(refresh.token).await,
            ClientFrame::Unsub(unsub) => {
                match Topic::read(&unsub.topic) {
                    Topic::Me => {}
                    Topic::Task(id) => self.leave(id),
                    Topic::Other => {
                        if let Some(slot) = self.place.slot_of(&unsub.topic) {
                            self.place.exit(slot);
                        }
                    }
                }
                Ok(())
            }
            ClientFrame::Sub(sub) => match Topic::read(&sub.topic) {
                Topic::Me => self.tell_center(Wanted::Answer(None)).await,
                Topic::Task(id) => self.subscribe(id, &sub).await,
                Topic::Other => self.subscribe_room(&sub.topic).await,
            },
        }
    }

    /// Tells of a fault; too many of them end the connection.
    async fn fault(&mut self, code: ErrorCode) -> Result<(), End> {
        if self.rate.fault(self.now()) {
            self.wire.refuse(code, None).await
        } else {
            Err(End::Close(close::PROTOCOL, "too many faults"))
        }
    }

    async fn subscribe(&mut self, id: TaskId, sub: &Sub) -> Result<(), End> {
        if !self.topics.contains_key(&id) && self.topic_count() >= self.hub.limits.topic_count {
            return self.wire.refuse(ErrorCode::TooManyTopics, Some(&sub.topic)).await;
        }
        self.place.watch(id);
        let tail = sub.log.unwrap_or(true).then(|| Tail::new(sub.after, self.now()));
        self.topics.insert(id, tail);
        self.tell_task(id).await
    }

    /// A topic is over.
    pub(super) fn leave(&mut self, id: TaskId) {
        self.topics.remove(&id);
        self.place.unwatch(id);
    }

    /// A new token of the same user: rights may be others now, so everything is shown anew.
    async fn refresh(&mut self, token: String) -> Result<(), End> {
        let Some(Identity { principal, expires_at, credential }) = (self.authenticate)(token).await else {
            return self.wire.refuse(ErrorCode::Unauthorized, None).await;
        };
        let before = &self.viewer.principal;
        let same = (&principal.tenant, &principal.user) == (&before.tenant, &before.user);
        if !same || !principal.has(Scope::TasksRead) {
            return self.wire.refuse(ErrorCode::Forbidden, None).await;
        }
        self.place.credential(credential);
        (self.expires_at, self.expiry_told) = (expires_at, false);
        if principal != *before {
            self.viewer.principal = principal;
            self.tell_all(Wanted::Answer(None)).await?;
        }
        Ok(())
    }
}
