//! Passwords: argon2id with the usual cost (19 MiB, two passes) and a salt of each its own.
//!
//! Proving one takes tens of milliseconds and 19 MiB on purpose, so it is done off the threads that serve, few at once, and
//! no more than some wait for it. A name that nobody has costs the same as a wrong password, so that the time of an answer
//! does not tell who has an account.

use crate::core::account::PASSWORD_BYTES;
use crate::store::PasswordHash;
use crate::web::error::{ApiError, Code};
use argon2::Argon2;
use argon2::password_hash::phc;
use argon2::password_hash::{PasswordHasher, PasswordVerifier};
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Passwords that are proven at once on a node.
const AT_ONCE: usize = 2;
/// Sign-ins that may wait for their turn; above it they are sent away.
const WAITING: usize = 64;
/// The hash of no password, of the same cost as any other.
const NOBODY: &str = "$argon2id$v=19$m=19456,t=2,p=1$c2FsdCBvZiBub2JvZHk$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// The hash of a new password. Takes tens of milliseconds: for the command line, which waits for nothing else.
///
/// # Errors
/// When the machine has no randomness.
pub fn hash_password(password: &str) -> Result<PasswordHash, String> {
    let hash: phc::PasswordHash = Argon2::default()
        .hash_password(password.as_bytes())
        .map_err(|e| format!("the password cannot be hashed: {e}"))?;
    Ok(PasswordHash(hash.to_string()))
}

/// Proves passwords, few at once.
#[derive(Debug)]
pub struct Passwords {
    at_once: Arc<Semaphore>,
    waiting: Semaphore,
}

impl Default for Passwords {
    fn default() -> Self {
        Self { at_once: Arc::new(Semaphore::new(AT_ONCE)), waiting: Semaphore::new(WAITING) }
    }
}

impl Passwords {
    /// Whether a password is the one of a hash. Without a hash it is not, after the same work.
    ///
    /// # Errors
    /// 503 when too many wait; a fault of ours when a stored hash cannot be read.
    pub async fn prove(&self, password: String, hash: Option<PasswordHash>) -> Result<bool, ApiError> {
        // No such password was ever set; and nobody is told more than that it is wrong.
        if password.len() > PASSWORD_BYTES {
            return Ok(false);
        }
        let _waits = self.waiting.try_acquire().map_err(|_| ApiError::new(Code::Busy))?;
        let turn = self.at_once.clone().acquire_owned().await.expect("this semaphore is never closed");
        let proof = tokio::task::spawn_blocking(move || {
            // Held to the end of the work, also when the caller is gone.
            let _turn = turn;
            fits(&password, hash.as_ref())
        });
        proof.await.map_err(|e| ApiError::internal(format!("proving a password broke off: {e}")))?
    }
}

fn fits(password: &str, hash: Option<&PasswordHash>) -> Result<bool, ApiError> {
    let text = hash.map_or(NOBODY, |h| &h.0);
    let stored = phc::PasswordHash::new(text)
        .map_err(|e| ApiError::internal(format!("a stored password hash cannot be read: {e}")))?;
    let fits = Argon2::default().verify_password(password.as_bytes(), &stored).is_ok();
    Ok(fits && hash.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobodys_hash_costs_what_any_hash_costs() {
        let cost = |text: &str| text.split('$').take(4).map(str::to_owned).collect::<Vec<_>>();
        let any = hash_password("correct horse").unwrap().0;
        assert_eq!(cost(NOBODY), cost(&any));
        assert_eq!(any.rsplit('$').next().map(str::len), NOBODY.rsplit('$').next().map(str::len));
        assert!(phc::PasswordHash::new(NOBODY).is_ok());
    }

    #[tokio::test]
    async fn few_are_proven_at_once_few_wait_and_the_others_are_sent_away() {
        let passwords = Arc::new(Passwords { at_once: Arc::new(Semaphore::new(1)), waiting: Semaphore::new(2) });
        let turn = passwords.at_once.clone().acquire_owned().await.unwrap();
        let prove = || {
            let passwords = passwords.clone();
            tokio::spawn(async move { passwords.prove("correct horse".into(), None).await })
        };
        let waiting = [prove(), prove()];
        while passwords.waiting.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(prove().await.unwrap().unwrap_err().code, Code::Busy);
        drop(turn);
        for one in waiting {
            assert!(!one.await.unwrap().unwrap());
        }
        assert!(!prove().await.unwrap().unwrap(), "there is room again");
    }

    #[tokio::test]
    async fn only_the_right_password_fits_its_hash_and_nothing_fits_nobodys() {
        let (passwords, hash) = (Passwords::default(), hash_password("correct horse").unwrap());
        assert!(passwords.prove("correct horse".into(), Some(hash.clone())).await.unwrap());
        assert!(!passwords.prove("correct horse ".into(), Some(hash.clone())).await.unwrap());
        assert!(!passwords.prove("correct horse".into(), None).await.unwrap());
        assert!(!passwords.prove("x".repeat(PASSWORD_BYTES + 1), Some(hash)).await.unwrap());
        assert_ne!(hash_password("correct horse").unwrap(), hash_password("correct horse").unwrap(), "own salts");
    }
}
