//! How much of the bodies of requests a node holds at once: all of them share one room, so that no number of callers grows the
//! memory. Who finds it full is told to come again, and nothing of theirs was looked at.
//!
//! A body counts by the bytes that have come, from the moment that they are here until its request is answered. Bodies that
//! go on to a disk as they come (uploads) do not pass here. Must never wait: a caller that waits holds what it has.

use super::error::{ApiError, Code};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// What bodies may take together, bytes. What is made of them takes some times as much.
const ROOM_BYTES: usize = 32 * 1024 * 1024;

/// The room of a node. Clones share it.
#[derive(Clone, Debug)]
pub struct Room(Arc<Semaphore>);

impl Default for Room {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ROOM_BYTES)))
    }
}

/// What the body of one request takes of it; given back when the request is answered, or gone. Clones are the same share.
#[derive(Clone, Debug)]
pub struct Share {
    room: Room,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Share {
    fn of(room: Room) -> Self {
        Self { room, taken: Arc::default() }
    }

    /// Takes room for so many bytes more.
    ///
    /// # Errors
    /// 503 when there is none.
    pub fn grow(&self, bytes: usize) -> Result<(), ApiError> {
        let full = || ApiError::new(Code::Busy).detail("Too many large requests are under way.");
        let bytes = u32::try_from(bytes).map_err(|_| full())?;
        let more = self.room.0.clone().try_acquire_many_owned(bytes).map_err(|_| full())?;
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        match taken.as_mut() {
            Some(taken) => taken.merge(more),
            None => *taken = Some(more),
        }
        Ok(())
    }
}

/// Gives each request its share of the room, and holds it until the answer is made.
pub async fn share(State(room): State<Room>, mut request: Request, next: Next) -> Response {
    let share = Share::of(room);
    request.extensions_mut().insert(share.clone());
    let response = next.run(request).await;
    drop(share);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_room_is_told_as_busy_and_who_has_left_makes_room() {
        let room = Room::default();
        let (first, second) = (Share::of(room.clone()), Share::of(room.clone()));
        first.grow(ROOM_BYTES / 2).unwrap();
        second.grow(ROOM_BYTES / 4).unwrap();
        let full = first.grow(ROOM_BYTES / 2).unwrap_err();
        assert_eq!((full.code, full.retry_after_seconds), (Code::Busy, Some(1)));
        second.grow(ROOM_BYTES / 4).unwrap();
        let copy = first.clone();
        drop(first);
        assert!(second.grow(1).is_err(), "a copy is the same share");
        drop((copy, second));
        assert_eq!(room.0.available_permits(), ROOM_BYTES);
    }
}
