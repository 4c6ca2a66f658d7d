//! How much a client may ask and how often it may err.

use super::super::limits::Limits;
use crate::core::time::Mono;

/// Two buckets: one for frames, one for faults.
#[derive(Debug)]
pub(super) struct Rate {
    frames: Bucket,
    faults: Bucket,
}

impl Rate {
    pub fn new(limits: &Limits, now: Mono) -> Self {
        let frames = Bucket::new(limits.commands_per_second, f64::from(limits.commands_per_second), now);
        Self { frames, faults: Bucket::new(limits.fault_count, 1.0, now) }
    }

    /// Whether one more frame may be followed.
    pub fn frame(&mut self, now: Mono) -> bool {
        self.frames.take(now)
    }

    /// Whether one more fault is borne.
    pub fn fault(&mut self, now: Mono) -> bool {
        self.faults.take(now)
    }
}

#[derive(Debug)]
struct Bucket {
    most: f64,
    per_ms: f64,
    left: f64,
    at: Mono,
}

impl Bucket {
    fn new(most: u32, per_second: f64, now: Mono) -> Self {
        Self { most: f64::from(most), per_ms: per_second / 1_000.0, left: f64::from(most), at: now }
    }

    fn take(&mut self, now: Mono) -> bool {
        self.left = (self.left + (now - self.at) as f64 * self.per_ms).min(self.most);
        self.at = now;
        let there = self.left >= 1.0;
        self.left -= f64::from(u8::from(there));
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p7_a_burst_and_then_so_many_a_second_are_taken() {
        let limits = Limits::default();
        let mut rate = Rate::new(&limits, Mono(0));
        let burst = (0..100).filter(|_| rate.frame(Mono(0))).count();
        assert_eq!(burst, limits.commands_per_second as usize);
        let later = (0..100).filter(|_| rate.frame(Mono(500))).count();
        assert_eq!(later, limits.commands_per_second as usize / 2);
        let much_later = (0..100).filter(|_| rate.frame(Mono(1_000_000))).count();
        assert_eq!(much_later, limits.commands_per_second as usize, "what was not used is not saved up");
    }

    #[test]
    fn k10_faults_are_borne_up_to_the_limit_and_forgiven_in_time() {
        let limits = Limits::default();
        let mut rate = Rate::new(&limits, Mono(0));
        assert_eq!((0..100).filter(|_| rate.fault(Mono(0))).count(), limits.fault_count as usize);
        assert!(rate.fault(Mono(1_000)));
        assert!(!rate.fault(Mono(1_000)));
    }
}
