//! The chunks under way on this node: who holds which lease, until when by the monotonic clock, and who is to stop.
//!
//! A failed renewal means "unknown": the chunk goes on until its lease's own end by this table's clock, then it is dropped. One
//! whose end is being written is not: its work is done, nobody can take it over while its row is being written, and the token
//! decides what becomes of it.

use crate::core::ids::{FencingToken, TaskId};
use crate::core::time::Mono;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Notify, watch};

/// What a running chunk is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// Go on.
    #[default]
    GoOn,
    /// Come to an end: somebody asked, or the node drains.
    Stop,
    /// The grace of the drain is over: give the chunk back.
    HandBack,
    /// The lease is lost: whatever you do counts for nothing.
    Lost,
}

struct Place {
    token: FencingToken,
    lease_end: Mono,
    /// Whether the end of the chunk is being written, which may give the lease up.
    ends: bool,
    /// Whether the commit that gave the lease up has been answered: the place is free, though not yet tidied up.
    over: bool,
    told: watch::Sender<Told>,
}

impl Place {
    /// Whether it works, and nobody has told the chunk yet that it is lost.
    fn goes_on(&self) -> bool {
        !self.ends && *self.told.borrow() < Told::Lost
    }
}

/// The chunks under way on a node.
#[derive(Default)]
pub struct Running {
    places: Mutex<HashMap<TaskId, Place>>,
    emptied: Notify,
}

impl Running {
    fn places(&self) -> MutexGuard<'_, HashMap<TaskId, Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place for a claimed chunk; answers where it hears what it is told.
    pub fn enter(&self, id: TaskId, token: FencingToken, lease_end: Mono) -> watch::Receiver<Told> {
        let (told, heard) = watch::channel(Told::GoOn);
        self.places().insert(id, Place { token, lease_end, ends: false, over: false, told });
        heard
    }

    /// Gives the place of a chunk up, unless a newer claim of the same task has taken it.
    pub fn leave(&self, id: TaskId, token: FencingToken) {
        let mut places = self.places();
        if places.get(&id).is_some_and(|p| p.token == token) {
            places.remove(&id);
        }
        if places.is_empty() {
            self.emptied.notify_waiters();
        }
    }

    /// Chunks under way.
    pub fn count(&self) -> usize {
        self.places().len()
    }

    /// Places that are not free.
    pub fn taken(&self) -> usize {
        self.places().values().filter(|place| !place.over).count()
    }

    /// A commit has ended what was done in a place.
    pub fn over(&self, id: TaskId, token: FencingToken) {
        if let Some(place) = self.places().get_mut(&id).filter(|p| p.token == token) {
            place.over = true;
        }
    }

    /// Waits until no chunk is under way.
    pub async fn empty(&self) {
        loop {
            let emptied = self.emptied.notified();
            if self.count() == 0 {
                return;
            }
            emptied.await;
        }
    }

    /// What is held, for the renewal.
    pub fn held(&self) -> Vec<(TaskId, FencingToken)> {
        let mut held: Vec<_> = self.places().iter().map(|(id, p)| (*id, p.token)).collect();
        held.sort_unstable_by_key(|(id, _)| *id);
        held
    }

    /// Whether a lease is still ours by our own clock.
    pub fn holds(&self, id: TaskId, token: FencingToken, now: Mono) -> bool {
        self.places().get(&id).is_some_and(|p| p.token == token && p.lease_end > now)
    }

    /// Whether the lease of a chunk that works ends by an instant.
    pub fn ends_by(&self, id: TaskId, token: FencingToken, by: Mono) -> bool {
        self.places().get(&id).is_some_and(|p| p.token == token && !p.ends && p.lease_end <= by)
    }

    /// The end of a chunk is being written, or the next one under the same lease begins.
    pub fn ends(&self, id: TaskId, token: FencingToken, ends: bool) {
        if let Some(place) = self.places().get_mut(&id).filter(|p| p.token == token) {
            place.ends = ends;
        }
    }

    /// The database knows no lease of ours any more. Answers whether it was lost: an end that is being written may have given
    /// it up, and is told itself where it comes too late.
    pub fn lost(&self, id: TaskId, token: FencingToken) -> bool {
        let lost = self.places().get(&id).is_some_and(|p| p.token == token && !p.ends);
        if lost {
            self.tell(id, Some(token), Told::Lost);
        }
        lost
    }

    /// A lease was lengthened.
    pub fn renewed(&self, id: TaskId, token: FencingToken, lease_end: Mono) {
        if let Some(place) = self.places().get_mut(&id).filter(|p| p.token == token) {
            place.lease_end = place.lease_end.max(lease_end);
        }
    }

    /// Tells a chunk something; it hears only what is stronger than what it heard before, but for a stop taken back.
    pub fn tell(&self, id: TaskId, token: Option<FencingToken>, told: Told) {
        if let Some(place) = self.places().get(&id).filter(|p| token.is_none_or(|t| t == p.token)) {
            place.told.send_if_modified(|now| {
                let changes = told > *now || (told == Told::GoOn && *now == Told::Stop);
                if changes {
                    *now = told;
                }
                changes
            });
        }
    }

    /// What a chunk that runs here was told last.
    pub fn told(&self, id: TaskId, token: FencingToken) -> Option<Told> {
        self.places().get(&id).filter(|p| p.token == token).map(|p| *p.told.borrow())
    }

    /// The token of a task that runs here.
    pub fn token(&self, id: TaskId) -> Option<FencingToken> {
        self.places().get(&id).map(|p| p.token)
    }

    /// Tells all.
    pub fn tell_all(&self, told: Told) {
        for (id, _) in self.held() {
            self.tell(id, None, told);
        }
    }

    /// When the first lease ends of a chunk that goes on; `None` where there is none.
    pub fn first_end(&self) -> Option<Mono> {
        self.places().values().filter(|p| p.goes_on()).map(|p| p.lease_end).min()
    }

    /// Drops chunks whose lease has ended by our own clock; answers how many.
    pub fn drop_expired(&self, now: Mono) -> usize {
        let ended = |p: &Place| p.lease_end <= now && p.goes_on();
        let expired: Vec<_> = self.places().iter().filter(|(_, p)| ended(p)).map(|(id, p)| (*id, p.token)).collect();
        for (id, token) in &expired {
            self.tell(*id, Some(*token), Told::Lost);
        }
        expired.len()
    }
}

/// Waits until a chunk is told at least this.
pub async fn hears(heard: &watch::Receiver<Told>, at_least: Told) -> Told {
    let mut heard = heard.clone();
    match heard.wait_for(|told| *told >= at_least).await {
        Ok(told) => *told,
        // The place is gone: nobody will tell anything any more.
        Err(_) => Told::Lost,
    }
}

/// The table, shared.
pub type SharedRunning = Arc<Running>;

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> (Running, TaskId, FencingToken, watch::Receiver<Told>) {
        let (running, id, token) = (Running::default(), TaskId::new(), FencingToken(3));
        let heard = running.enter(id, token, Mono(100));
        (running, id, token, heard)
    }

    #[test]
    fn a_chunk_is_dropped_once_when_its_lease_ends_and_not_before() {
        let (running, id, token, heard) = one();
        assert_eq!(running.first_end(), Some(Mono(100)));
        running.renewed(id, token, Mono(200));
        // An answer that comes late shortens nothing.
        running.renewed(id, token, Mono(150));
        assert_eq!((running.first_end(), running.drop_expired(Mono(199))), (Some(Mono(200)), 0));
        assert_eq!((running.drop_expired(Mono(200)), *heard.borrow()), (1, Told::Lost));
        assert_eq!((running.drop_expired(Mono(201)), running.first_end()), (0, None));
    }

    #[test]
    fn a_chunk_whose_end_is_being_written_is_not_dropped_and_the_next_one_under_its_lease_is() {
        let (running, id, token, heard) = one();
        running.ends(id, token, true);
        assert_eq!((running.first_end(), running.drop_expired(Mono(500))), (None, 0));
        assert!(!running.ends_by(id, token, Mono(500)), "nothing but its own end is in the way of a renewal");
        running.ends(id, token, false);
        assert_eq!((running.drop_expired(Mono(500)), *heard.borrow()), (1, Told::Lost));
    }

    #[test]
    fn a_renewal_that_an_end_of_ours_overtook_is_no_lost_lease() {
        let (running, id, token, heard) = one();
        running.ends(id, token, true);
        assert!(!running.lost(id, token) && *heard.borrow() == Told::GoOn, "its end is being written");
        running.ends(id, token, false);
        assert!(!running.lost(id, FencingToken(2)), "that was an earlier claim");
        assert!(running.lost(id, token) && *heard.borrow() == Told::Lost);
        running.leave(id, token);
        assert!(!running.lost(id, token), "it has ended");
    }
}
