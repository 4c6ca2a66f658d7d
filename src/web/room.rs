//! How much of the bodies of requests a node holds at once: all of them share one room, so that no number of callers grows the
//! memory. Who finds it full is told to come again, and nothing of theirs was looked at.
//!
//! A body counts by the bytes that have come, from the moment that they are here until its request is answered, and until what
//! was made of it is in the database where that takes longer: a caller that has gone away does not take back what it gave
//! to the engine ([`kept`]). Bodies that go on to a disk as they come (uploads) do not pass here. Must never wait: a caller
//! that waits holds what it has.

use super::error::{ApiError, Code};
use futures_util::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::runtime::Handle;
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

tokio::task_local! {
    static SHARE: Share;
}

/// What the body of one request takes of it; given back with its last clone, which are all the same share.
#[derive(Clone, Debug)]
pub struct Share {
    room: Room,
    taken: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Share {
    fn of(room: Room) -> Self {
        Self { room, taken: Arc::default() }
    }

    /// That of the request that is worked on; none where bodies are not counted.
    #[must_use]
    pub fn current() -> Option<Self> {
        SHARE.try_with(Self::clone).ok()
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

/// Gives a request its share of the room, and holds it until the answer is made.
pub async fn share<T>(room: Room, answer: impl Future<Output = T>) -> T {
    SHARE.scope(Share::of(room), answer).await
}

/// Does what goes on without its caller, and holds the caller's share until it is done, whether the caller stays or not.
/// Whoever stays does it; what a caller leaves undone is brought to its end by the runtime.
pub fn kept<T: 'static>(work: impl Future<Output = T> + Send + 'static) -> Kept<T> {
    Kept { work: Some(Box::pin(work)), share: Share::current(), begun: false }
}

/// What [`kept`] is.
pub struct Kept<T: 'static> {
    work: Option<BoxFuture<'static, T>>,
    share: Option<Share>,
    begun: bool,
}

impl<T> Future for Kept<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        self.begun = true;
        let work = self.work.as_mut().expect("nobody asks again for what was answered");
        let answer = ready!(work.as_mut().poll(cx));
        (self.work, self.share) = (None, None);
        Poll::Ready(answer)
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        let (work, share) = (self.work.take().filter(|_| self.begun), self.share.take());
        if let (Some(work), Some(share), Ok(runtime)) = (work, share, Handle::try_current()) {
            runtime.spawn(async move {
                work.await;
                drop(share);
            });
        }
    }
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

    #[tokio::test]
    async fn a_caller_that_goes_away_gives_its_share_back_when_its_work_is_done() {
        let room = Room::default();
        let (done, told) = tokio::sync::oneshot::channel::<()>();
        let (begins, begun) = tokio::sync::oneshot::channel();
        let work = async move {
            let _ = begins.send(());
            told.await
        };
        let request = async {
            Share::current().unwrap().grow(ROOM_BYTES).unwrap();
            kept(work).await
        };
        let caller = tokio::spawn(SHARE.scope(Share::of(room.clone()), request));
        begun.await.unwrap();
        caller.abort();
        assert!(caller.await.unwrap_err().is_cancelled());
        assert!(Share::of(room.clone()).grow(1).is_err(), "the work is not done");
        done.send(()).unwrap();
        let all = room.0.acquire_many(ROOM_BYTES as u32);
        drop(tokio::time::timeout(std::time::Duration::from_secs(60), all).await.unwrap().unwrap());
    }
}
