//! Who may come in: users with passwords, sessions of the sign-in page, API keys. A part of the port.
//!
//! Must never hold a secret that lets somebody in: keys and sessions are known by their hash alone, passwords by an argon2id
//! hash. A session rests on its user's row as it was at the sign-in: a new password, another role or the removal of the
//! user changes that row, and every node sees at its next look that the session is over. Nothing has to be told around.

use super::Result;
use crate::core::principal::{Principal, Role, Scope};
use crate::core::time::Millis;
use async_trait::async_trait;
use std::fmt;

/// How long a session lives at most, ms: a working day.
pub const SESSION_MS: i64 = 12 * 3_600_000;
/// How long a session lives without a request, ms.
pub const SESSION_IDLE_MS: i64 = 4 * 3_600_000;

/// An API key as stored: the hash, never the key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// SHA-256 of the key, hex.
    pub hash: String,
    /// Who it makes its bearer.
    pub principal: Principal,
    /// When it was made.
    pub created_at: Millis,
    /// When it ends.
    pub expires_at: Option<Millis>,
}

/// A session of the login page, by the hash of its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// SHA-256 of the cookie's secret, hex.
    pub hash: String,
    /// Who is signed in.
    pub principal: Principal,
    /// Since when.
    pub created_at: Millis,
    /// When it was last used, give or take a minute.
    pub used_at: Millis,
    /// Until when.
    pub expires_at: Millis,
    /// The [`User::updated_at`] of the user at the sign-in; absent in the demo, whose users have no row.
    pub rests_on: Option<Millis>,
}

impl Session {
    /// Whether its time is over: all of it, or since it was last used.
    #[must_use]
    pub fn is_over(&self, now: Millis) -> bool {
        self.expires_at <= now || self.used_at.since(idle_since(now)) <= 0
    }
}

/// What was not used after this instant is over.
#[must_use]
pub fn idle_since(now: Millis) -> Millis {
    now.plus(-SESSION_IDLE_MS)
}

/// The hash of a password: a PHC string of argon2id with its own salt and cost. Not shown by Debug, so that no log or
/// error can hold it.
#[derive(Clone, PartialEq, Eq)]
pub struct PasswordHash(pub String);

impl fmt::Debug for PasswordHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A person who signs in by password.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, of which there is one in all tenants, since the sign-in asks for nothing else.
    pub name: String,
    /// The tenant; `*` for the role platform.
    pub tenant: String,
    /// What the person may do.
    pub role: Role,
    /// What proves the password.
    pub password: PasswordHash,
    /// Since when.
    pub created_at: Millis,
    /// When anything of it last changed; grows with each change.
    pub updated_at: Millis,
}

impl User {
    /// Who this is as a caller, with the usual rights of the role.
    #[must_use]
    pub fn principal(&self) -> Principal {
        Principal {
            tenant: self.tenant.clone(),
            user: self.name.clone(),
            role: self.role,
            scopes: Scope::default_for(self.role),
        }
    }
}

/// What is to change of a user; all sessions of the user are over with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserChange {
    /// A new password.
    pub password: Option<PasswordHash>,
    /// Another role.
    pub role: Option<Role>,
}

/// Users, sessions and keys, as the rest of taskbell sees them.
#[async_trait]
pub trait Accounts: Send + Sync {
    /// Keeps an API key.
    async fn put_api_key(&self, key: ApiKey) -> Result<()>;
    /// The keys of these hashes, in any order. A hash that is none is left out.
    async fn known_api_keys(&self, hashes: &[String]) -> Result<Vec<ApiKey>>;
    /// All keys, the oldest first.
    async fn api_keys(&self) -> Result<Vec<ApiKey>>;
    /// Takes a key back; `false` = there is none.
    async fn delete_api_key(&self, hash: &str) -> Result<bool>;

    /// Keeps a new user; `false` = the name is taken, and nothing was changed.
    async fn add_user(&self, user: User) -> Result<bool>;
    /// The user of a name.
    async fn user(&self, name: &str) -> Result<Option<User>>;
    /// All users, by name.
    async fn users(&self) -> Result<Vec<User>>;
    /// Changes a user at an instant; `false` = there is none.
    async fn change_user(&self, name: &str, change: UserChange, now: Millis) -> Result<bool>;
    /// Removes a user; `false` = there is none.
    async fn remove_user(&self, name: &str) -> Result<bool>;

    /// Keeps a session, and forgets those whose time is over.
    async fn put_session(&self, session: Session) -> Result<()>;
    /// The session of a hash, unless the user it rests on has changed or is gone.
    async fn session(&self, hash: &str) -> Result<Option<Session>>;
    /// Notes that a session was used at an instant.
    async fn touch_session(&self, hash: &str, now: Millis) -> Result<()>;
    /// Ends a session.
    async fn delete_session(&self, hash: &str) -> Result<()>;

    /// Which of these hashes belong to no key and to no session that was used after an instant.
    async fn lost_credentials(&self, hashes: &[String], idle_since: Millis) -> Result<Vec<String>>;
}
