//! The one source of chance in a simulated world: a seeded generator. Nothing else in the simulator may draw, so that one
//! number repeats a whole run.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use std::ops::Range;
use std::sync::Mutex;

/// Draws. Shared by everything in one world.
pub struct Dice(Mutex<SmallRng>);

impl Dice {
    /// The dice of a seed.
    pub fn of(seed: u64) -> Self {
        Self(Mutex::new(SmallRng::seed_from_u64(seed)))
    }

    /// Uniform in a range of whole numbers.
    pub fn between(&self, range: Range<i64>) -> i64 {
        self.0.lock().unwrap().random_range(range)
    }

    /// Uniform below a count that is not 0.
    pub fn below(&self, count: usize) -> usize {
        if count == 1 { 0 } else { self.0.lock().unwrap().random_range(0..count) }
    }

    /// Whether something happens that happens so many times in a thousand.
    pub fn chance(&self, per_mille: u32) -> bool {
        per_mille > 0 && self.0.lock().unwrap().random_range(0..1_000) < per_mille
    }

    /// One of several.
    pub fn one<'a, T>(&self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Uniform in `[0, 1)`.
    pub fn unit(&self) -> f64 {
        self.0.lock().unwrap().random()
    }

    /// 128 random bits.
    pub fn wide(&self) -> u128 {
        self.0.lock().unwrap().random()
    }
}
