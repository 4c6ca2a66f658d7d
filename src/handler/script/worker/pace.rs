//! The place of a running script at the processors: behind everything else, and still never starved.
//!
//! A script that keeps a processor busy must not make others wait for the end of its slices, and a step back by `nice` does
//! not prevent that: it decides on shares and not on who waits. So a chunk runs under the policy "idle" ([`Policy::Idle`]),
//! which gives way the moment that anybody else wants to run. Where others want to run all the time, such a thread gets
//! next to nothing, and its chunk would be over its time without any fault of its own: then it goes back, for the rest of the
//! chunk, to where its process was put by `nice`. Between chunks a process has that place too: it is short work that the
//! server waits for.
//!
//! The thread looks at itself, from the interpreter's own looks; a native loop is not lifted, and is what has to stand
//! behind. Systems without these policies or figures leave the thread where it was.

use super::super::limits::{LEAST_SHARE, SHARE_WINDOW};
use rustix::process::{getpriority_process, setpriority_process};
use std::cell::Cell;
use std::time::{Duration, Instant};
use std::{fs, thread};
use thread_priority::{
    NormalThreadSchedulePolicy as Policy, ThreadPriority, ThreadSchedulePolicy, set_thread_priority_and_policy,
    thread_native_id,
};

/// Of the thread that made it.
#[derive(Debug)]
pub(super) struct Pace {
    behind: Cell<bool>,
    looked_at: Cell<Instant>,
    waited: Cell<Duration>,
}

impl Pace {
    pub fn new() -> Self {
        Self { behind: Cell::default(), looked_at: Cell::new(Instant::now()), waited: Cell::default() }
    }

    /// Steps behind everybody, for a chunk.
    pub fn step_behind(&self) {
        // Who cannot tell whether they starve must not.
        let Some(waited) = waited() else { return };
        self.looked_at.set(Instant::now());
        self.waited.set(waited);
        self.behind.set(set(Policy::Idle));
    }

    /// Goes back to the place of the process.
    pub fn come_back(&self) {
        if self.behind.take() {
            set(Policy::Other);
        }
    }

    /// Lets go of the processor for whoever waits for it, and comes back if hardly anything was left for this thread.
    pub fn look(&self) {
        // Some kernels let who was woken from another processor wait for the next tick; any call of the system is soon enough.
        thread::yield_now();
        let passed = self.looked_at.get().elapsed();
        if !self.behind.get() || passed < SHARE_WINDOW {
            return;
        }
        let waited = waited().unwrap_or(Duration::MAX);
        if starves(passed, waited.saturating_sub(self.waited.get())) {
            self.come_back();
        }
        self.looked_at.set(Instant::now());
        self.waited.set(waited);
    }
}

/// Whether a thread that waited so long for a processor got less than its least share. Time that it slept is no waiting.
fn starves(passed: Duration, waited: Duration) -> bool {
    passed.saturating_sub(waited) < passed.mul_f64(LEAST_SHARE)
}

/// How long this thread has waited for a processor in its life; none where the system does not tell.
fn waited() -> Option<Duration> {
    let figures = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    figures.split(' ').nth(1)?.parse().ok().map(Duration::from_nanos)
}

/// Sets the policy of this thread and keeps its `nice`; whether it could be set.
fn set(policy: Policy) -> bool {
    let nice = getpriority_process(None);
    let policy = ThreadSchedulePolicy::Normal(policy);
    // It sets a `nice` of its own too, which may be refused after the policy was taken.
    let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy);
    if let Ok(nice) = nice {
        let _ = setpriority_process(None, nice);
    }
    thread_priority::thread_schedule_policy() == Ok(policy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_for_nearly_all_of_the_time_starves_and_who_sleeps_or_shares_does_not() {
        let second = Duration::from_secs(1);
        assert!(starves(second, Duration::from_millis(995)));
        assert!(starves(second, Duration::from_millis(1_001)), "two clocks differ a little");
        assert!(!starves(second, Duration::from_millis(940)), "one of sixteen on one processor");
        assert!(!starves(second, Duration::ZERO), "it slept");
    }

    #[test]
    fn a_thread_steps_behind_and_comes_back_to_where_it_was() {
        // In a thread of its own: the test's is used again.
        std::thread::spawn(|| {
            let nice = getpriority_process(None).unwrap();
            let other = thread_priority::thread_schedule_policy().unwrap();
            let pace = Pace::new();
            pace.step_behind();
            let idle = thread_priority::thread_schedule_policy().unwrap();
            assert_eq!(idle, ThreadSchedulePolicy::Normal(Policy::Idle));
            pace.come_back();
            assert_eq!(thread_priority::thread_schedule_policy().unwrap(), other);
            assert_eq!(getpriority_process(None).unwrap(), nice);
        })
        .join()
        .unwrap();
    }
}
