//! API keys that were proven a moment ago, so that a busy client costs one look-up every few seconds and not one a request.
//!
//! Only keys that exist are remembered, by their hash, for [`KEEP_MS`]; a key that is taken out of the database works that
//! much longer and no more. When a key ends is checked each time. Elapsed time is monotonic: no change of the wall clock
//! lengthens it.

use crate::core::time::Mono;
use crate::store::ApiKey;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How long a look-up is used again, ms.
const KEEP_MS: u64 = 5_000;
/// The most keys that are remembered; above it all are forgotten.
const KEEP_COUNT: usize = 10_000;

/// What was looked up, and when.
#[derive(Debug, Default)]
pub struct KnownKeys(Mutex<HashMap<String, (Mono, ApiKey)>>);

impl KnownKeys {
    /// The key of a hash, if it was looked up a moment ago.
    #[must_use]
    pub fn get(&self, hash: &str, now: Mono) -> Option<ApiKey> {
        let keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        keys.get(hash).filter(|(at, _)| now - *at < KEEP_MS).map(|(_, key)| key.clone())
    }

    /// Remembers what was just looked up.
    pub fn put(&self, key: &ApiKey, now: Mono) {
        let mut keys = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KEEP_COUNT {
            keys.clear();
        }
        keys.insert(key.hash.clone(), (now, key.clone()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::principal::{Principal, Role};
    use crate::core::time::Millis;

    fn key(hash: &str) -> ApiKey {
        let principal = Principal { tenant: "t".into(), user: "u".into(), role: Role::User, scopes: Vec::new() };
        ApiKey { hash: hash.into(), principal, created_at: Millis(0), expires_at: None }
    }

    #[test]
    fn a_key_is_known_for_a_moment_and_no_number_of_keys_grows_the_memory() {
        let known = KnownKeys::default();
        known.put(&key("a"), Mono(1_000));
        assert!(known.get("a", Mono(5_999)).is_some());
        assert!(known.get("a", Mono(6_000)).is_none() && known.get("b", Mono(1_000)).is_none());
        for n in 0..=KEEP_COUNT {
            known.put(&key(&n.to_string()), Mono(1_000));
        }
        assert!(known.0.lock().unwrap().len() <= KEEP_COUNT);
    }
}
