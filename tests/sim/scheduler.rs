//! The scheduler: actors on one thread, virtual time, and chance in place of an operating system.
//!
//! An actor is a future. Of those that can go on, the dice choose one; it goes on until it waits, which is one *step*. Time
//! stands still while anybody can go on, and then jumps to the next timer. So a whole run is a function of its seed.
//!
//! Actors belong to a group: a node is a group, and a crash drops all of its futures wherever they stand. A group can be
//! frozen: its actors keep their place but do not go on until the thaw, as a process that was stopped and continued.
//!
//! Time is in ms of the database's clock.

use super::dice::Dice;
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

/// Who lives and dies together. 0 is the world itself, which never dies; node n is group n.
pub type Group = usize;

type Actor = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What actors need of the scheduler.
#[derive(Default)]
pub struct Time {
    now: AtomicI64,
    timers: Mutex<Timers>,
    spawned: Mutex<Vec<(Group, Actor)>>,
    doomed: Mutex<BTreeSet<Group>>,
    frozen: Mutex<BTreeMap<Group, i64>>,
}

#[derive(Default)]
struct Timers {
    due: BTreeMap<(i64, u64), Waker>,
    last: u64,
}

impl Time {
    /// Virtual now, ms.
    pub fn now(&self) -> i64 {
        self.now.load(Ordering::Relaxed)
    }

    /// Waits for virtual time.
    pub fn sleep(self: &Arc<Self>, ms: i64) -> Sleep {
        Sleep { time: self.clone(), at: self.now() + ms.max(0), key: None }
    }

    /// Starts an actor; it goes on with one of the next steps.
    pub fn spawn(&self, group: Group, actor: impl Future<Output = ()> + Send + 'static) {
        self.spawned.lock().unwrap().push((group, Box::pin(actor)));
    }

    /// Drops all actors of a group at the end of this step.
    pub fn crash(&self, group: Group) {
        self.doomed.lock().unwrap().insert(group);
        self.frozen.lock().unwrap().remove(&group);
    }

    /// Holds all actors of a group where they are, until then.
    pub fn freeze(&self, group: Group, until: i64) {
        self.frozen.lock().unwrap().insert(group, until);
    }

    /// Lets everybody go on.
    pub fn thaw(&self) {
        self.frozen.lock().unwrap().clear();
    }
}

/// A wait for virtual time; its timer goes with it.
pub struct Sleep {
    time: Arc<Time>,
    at: i64,
    key: Option<(i64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.time.now() >= self.at && self.key.is_some() {
            return Poll::Ready(());
        }
        let mut timers = self.time.timers.lock().unwrap();
        let key = self.key.unwrap_or_else(|| {
            timers.last += 1;
            (self.at, timers.last)
        });
        timers.due.insert(key, cx.waker().clone());
        drop(timers);
        self.key = Some(key);
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.time.timers.lock().unwrap().due.remove(&key);
        }
    }
}

/// Wakes one actor.
struct Bell {
    actor: u64,
    group: Group,
    ready: Arc<Mutex<BTreeSet<(u64, Group)>>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.ready.lock().unwrap().insert((self.actor, self.group));
    }
}

/// Runs actors.
pub struct Scheduler {
    time: Arc<Time>,
    actors: BTreeMap<u64, (Group, Waker, Actor)>,
    ready: Arc<Mutex<BTreeSet<(u64, Group)>>>,
    last: u64,
}

impl Scheduler {
    /// Nobody yet.
    pub fn new(time: Arc<Time>) -> Self {
        Self { time, actors: BTreeMap::new(), ready: Arc::default(), last: 0 }
    }

    /// Lets one actor go on, after time has passed if nobody can. `false` when nothing will ever happen again.
    pub fn step(&mut self, dice: &Dice) -> bool {
        self.take_in();
        let chosen = loop {
            if let Some(chosen) = self.choose(dice) {
                break chosen;
            }
            if !self.pass() {
                return false;
            }
        };
        self.ready.lock().unwrap().remove(&chosen);
        if let Some((group, waker, mut actor)) = self.actors.remove(&chosen.0)
            && actor.as_mut().poll(&mut Context::from_waker(&waker)).is_pending()
        {
            self.actors.insert(chosen.0, (group, waker, actor));
        }
        self.bury();
        true
    }

    /// Drops all actors, those that were never begun included.
    pub fn end(&mut self) {
        self.actors.clear();
        let unborn = std::mem::take(&mut *self.time.spawned.lock().unwrap());
        drop(unborn);
    }

    fn take_in(&mut self) {
        for (group, actor) in std::mem::take(&mut *self.time.spawned.lock().unwrap()) {
            self.last += 1;
            let waker = Waker::from(Arc::new(Bell { actor: self.last, group, ready: self.ready.clone() }));
            waker.wake_by_ref();
            self.actors.insert(self.last, (group, waker, actor));
        }
    }

    /// One of those that can go on and are not frozen.
    fn choose(&self, dice: &Dice) -> Option<(u64, Group)> {
        let ready = self.ready.lock().unwrap();
        let mut frozen = self.time.frozen.lock().unwrap();
        let now = self.time.now();
        frozen.retain(|_, until| *until > now);
        if frozen.is_empty() {
            return (!ready.is_empty()).then(|| ready.iter().nth(dice.below(ready.len())).copied()).flatten();
        }
        let moving: Vec<_> = ready.iter().filter(|(_, group)| !frozen.contains_key(group)).collect();
        (!moving.is_empty()).then(|| **dice.one(&moving))
    }

    /// To the next timer or thaw.
    fn pass(&self) -> bool {
        let now = self.time.now();
        let thaw = self.time.frozen.lock().unwrap().values().min().copied();
        let mut timers = self.time.timers.lock().unwrap();
        let next = timers.due.keys().next().map(|(at, _)| *at);
        let Some(next) = next.into_iter().chain(thaw).min() else { return false };
        let now = next.max(now);
        self.time.now.store(now, Ordering::Relaxed);
        let later = timers.due.split_off(&(now + 1, 0));
        for waker in std::mem::replace(&mut timers.due, later).into_values() {
            waker.wake();
        }
        true
    }

    /// Drops the actors of crashed groups.
    fn bury(&mut self) {
        let doomed = std::mem::take(&mut *self.time.doomed.lock().unwrap());
        if !doomed.is_empty() {
            let dead = self.actors.extract_if(.., |_, (group, ..)| doomed.contains(group));
            drop(dead.collect::<Vec<_>>());
            self.time.spawned.lock().unwrap().retain(|(group, _)| !doomed.contains(group));
        }
    }
}
