//! Looks up the API keys of requests that wait at the same time: one question to the database for all of them.
//!
//! Nothing is remembered. Each request is answered by a question that was asked after it came, so a key that was taken back is
//! refused at the next request, on every node, and a busy node still asks no more often than the database answers: what comes
//! while a question is under way goes together into the next one. A lone request waits for its own question and nobody
//! else's.
//!
//! A line that was cut without a word holds up those whose question is on it, and nobody who comes later: after [`PATIENCE_MS`]
//! the next request has a question of its own, beside it. Requests are bounded by the connections that the server takes, and
//! with them those that wait here.

use crate::core::time::{Clock, Mono};
use crate::store::{ApiKey, StoreError};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::oneshot;

/// How long a question may be under way before those who wait are asked for beside it, ms.
const PATIENCE_MS: u64 = 1_000;

type Answer = Result<Option<ApiKey>, StoreError>;

/// A hash, and who waits for its key.
type Waiting = (String, oneshot::Sender<Answer>);

/// The look-up of a node. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct KeyLookUp(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    waiting: Vec<Waiting>,
    /// Since when a question is under way; absent while nobody asks.
    asked_at: Option<Mono>,
    /// Who asks: goes up when somebody else takes over, and whoever asked until then ends.
    asker: u64,
}

impl KeyLookUp {
    /// The key of a hash, read by a question that is asked after this call: `read` answers the keys of some hashes.
    ///
    /// # Errors
    /// Those of the store, for all whom the question was asked for.
    pub async fn key<R, F>(&self, clock: &Arc<dyn Clock>, hash: String, read: R) -> Answer
    where
        R: Fn(Vec<String>) -> F + Send + Sync + 'static,
        F: Future<Output = Result<Vec<ApiKey>, StoreError>> + Send + 'static,
    {
        let (sender, answer) = oneshot::channel();
        if let Some(asker) = self.join((hash, sender), clock.mono()) {
            // On its own, for it asks for others too: a caller that goes away must not take their answers along.
            tokio::spawn(self.clone().ask(asker, clock.clone(), read));
        }
        answer.await.unwrap_or_else(|_| Err(StoreError::Unavailable("the look-up of an API key broke off".into())))
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lines up; a number when it is to ask, since nobody does.
    fn join(&self, waiting: Waiting, now: Mono) -> Option<u64> {
        let mut queue = self.queue();
        queue.waiting.push(waiting);
        if queue.asked_at.is_some_and(|at| now - at < PATIENCE_MS) {
            return None;
        }
        queue.asked_at = Some(now);
        queue.asker += 1;
        Some(queue.asker)
    }

    /// Whom the next question is for; none where nobody waits, or somebody else asks by now.
    fn next(&self, asker: u64, now: Mono) -> Option<Vec<Waiting>> {
        let mut queue = self.queue();
        if queue.asker != asker {
            return None;
        }
        queue.asked_at = (!queue.waiting.is_empty()).then_some(now);
        queue.asked_at.map(|_| std::mem::take(&mut queue.waiting))
    }

    /// Asks until nobody waits.
    async fn ask<R, F>(self, asker: u64, clock: Arc<dyn Clock>, read: R)
    where
        R: Fn(Vec<String>) -> F,
        F: Future<Output = Result<Vec<ApiKey>, StoreError>>,
    {
        // Whoever is ready at this moment lines up first.
        tokio::task::yield_now().await;
        while let Some(waiting) = self.next(asker, clock.mono()) {
            let mut hashes: Vec<String> = waiting.iter().map(|(hash, _)| hash.clone()).collect();
            hashes.sort_unstable();
            hashes.dedup();
            let found = read(hashes).await;
            for (hash, sender) in waiting {
                let key = |keys: &Vec<ApiKey>| keys.iter().find(|key| key.hash == hash).cloned();
                // An error means that the caller has gone away.
                let _ = sender.send(found.as_ref().map(key).map_err(Clone::clone));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::principal::{Principal, Role};
    use crate::core::time::Millis;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use tokio::sync::{Notify, Semaphore};

    fn key(hash: &str) -> ApiKey {
        let principal = Principal { tenant: "t".into(), user: "u".into(), role: Role::User, scopes: Vec::new() };
        ApiKey { hash: hash.into(), principal, created_at: Millis(0), expires_at: None }
    }

    /// A table of keys that answers a question when it is let.
    #[derive(Clone)]
    struct Table {
        keys: Arc<Mutex<Vec<ApiKey>>>,
        asked: Arc<Mutex<Vec<Vec<String>>>>,
        lets: Arc<Semaphore>,
        asks: Arc<Notify>,
        hand: Arc<Hand>,
    }

    /// A clock that the test moves.
    #[derive(Debug, Default)]
    struct Hand(AtomicU64);

    impl Clock for Hand {
        fn now(&self) -> Millis {
            Millis(0)
        }

        fn mono(&self) -> Mono {
            Mono(self.0.load(Ordering::SeqCst))
        }
    }

    impl Table {
        fn of(hashes: &[&str]) -> Self {
            let keys = hashes.iter().map(|hash| key(hash)).collect();
            let (asked, lets, asks) = (Arc::default(), Arc::new(Semaphore::new(0)), Arc::default());
            Self { keys: Arc::new(Mutex::new(keys)), asked, lets, asks, hand: Arc::default() }
        }

        /// Reads at once and answers later, as a slow line does.
        async fn read(self, hashes: Vec<String>) -> Result<Vec<ApiKey>, StoreError> {
            let known = |key: &&ApiKey| hashes.contains(&key.hash);
            let found = self.keys.lock().unwrap().iter().filter(known).cloned().collect();
            self.asked.lock().unwrap().push(hashes);
            self.asks.notify_one();
            self.lets.acquire().await.unwrap().forget();
            Ok(found)
        }

        fn ask(&self, look_up: &KeyLookUp, hash: &str) -> tokio::task::JoinHandle<Answer> {
            let (table, look_up, hash) = (self.clone(), look_up.clone(), hash.to_owned());
            let clock: Arc<dyn Clock> = self.hand.clone();
            tokio::spawn(async move { look_up.key(&clock, hash, move |hashes| table.clone().read(hashes)).await })
        }

        /// Until so many wait for the next question.
        async fn lined_up(look_up: &KeyLookUp, count: usize) {
            while look_up.queue().waiting.len() < count {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn what_comes_while_a_question_is_under_way_shares_the_next_one_and_never_this_one() {
        let (table, look_up) = (Table::of(&["a", "b"]), KeyLookUp::default());
        let before = table.ask(&look_up, "a");
        table.asks.notified().await;
        // Taken back while the question that has seen it is under way.
        table.keys.lock().unwrap().retain(|key| key.hash != "a");
        let after: Vec<_> = ["a", "b", "a", "c"].map(|hash| table.ask(&look_up, hash)).into();
        Table::lined_up(&look_up, 4).await;
        table.lets.add_permits(2);
        assert!(before.await.unwrap().unwrap().is_some(), "it came before the key was taken back");
        let mut found = Vec::new();
        for answer in after {
            found.push(answer.await.unwrap().unwrap().map(|key| key.hash));
        }
        assert_eq!(found, [None, Some("b".to_owned()), None, None]);
        let asked: Vec<String> = table.asked.lock().unwrap().iter().map(|hashes| hashes.concat()).collect();
        assert_eq!(asked, ["a", "abc"]);
        assert!(look_up.queue().asked_at.is_none(), "nobody asks while nobody waits");
    }

    #[tokio::test]
    async fn a_caller_that_goes_away_takes_no_answer_of_others_along() {
        let (table, look_up) = (Table::of(&["a", "b"]), KeyLookUp::default());
        let first = table.ask(&look_up, "a");
        table.asks.notified().await;
        let second = table.ask(&look_up, "b");
        Table::lined_up(&look_up, 1).await;
        first.abort();
        assert!(first.await.unwrap_err().is_cancelled());
        table.lets.add_permits(2);
        assert_eq!(second.await.unwrap().unwrap(), Some(key("b")));
    }

    #[tokio::test]
    async fn a_question_that_nobody_answers_holds_up_nobody_who_comes_later() {
        let (silent, sound, look_up) = (Table::of(&["a"]), Table::of(&["b", "c"]), KeyLookUp::default());
        let stuck = silent.ask(&look_up, "a");
        silent.asks.notified().await;
        let behind = sound.ask(&look_up, "b");
        Table::lined_up(&look_up, 1).await;
        sound.hand.0.store(PATIENCE_MS, Ordering::SeqCst);
        sound.lets.add_permits(1);
        assert_eq!(sound.ask(&look_up, "c").await.unwrap().unwrap(), Some(key("c")));
        assert_eq!(behind.await.unwrap().unwrap(), Some(key("b")), "it waited no longer than the one that came later");
        silent.lets.add_permits(1);
        assert_eq!(stuck.await.unwrap().unwrap(), Some(key("a")));
        sound.lets.add_permits(1);
        assert_eq!(sound.ask(&look_up, "b").await.unwrap().unwrap(), Some(key("b")), "one asks again as before");
    }

    #[tokio::test]
    async fn a_fault_is_told_to_all_whom_the_question_was_asked_for_and_the_next_one_is_asked_anew() {
        let (look_up, count) = (KeyLookUp::default(), Arc::new(AtomicUsize::new(0)));
        let clock: Arc<dyn Clock> = Arc::new(Hand::default());
        let ask = || {
            let count = count.clone();
            look_up.key(&clock, "a".into(), move |_| {
                let count = count.clone();
                async move {
                    match count.fetch_add(1, Ordering::SeqCst) {
                        0 => Err(StoreError::Unavailable("gone".into())),
                        _ => Ok(vec![key("a")]),
                    }
                }
            })
        };
        let (one, two) = tokio::join!(ask(), ask());
        assert!(one.is_err() && two.is_err());
        assert_eq!(ask().await.unwrap(), Some(key("a")));
    }
}
