//! Who calls: API keys, tokens of configured issuers, and sessions of the sign-in page.
//!
//! Secrets are 32 random bytes, shown once and stored as SHA-256: who reads the database cannot use them. They are compared
//! by the hash, through an index, so the time of a look-up tells nothing about a key. Never in a URL, never in a log.

pub mod jwt;
pub mod key;
pub mod key_look_up;
pub mod password;
pub mod session;
pub mod slow_down;

pub use key::{KEY_PREFIX, key_hash, new_api_key};
pub use session::{
    COOKIE, PLAIN_COOKIE, SignIn, cookie, csrf_fits, csrf_token, ended_cookie, session_cookie, sign_in, sign_out,
};

use super::error::{ApiError, Code};
use super::state::AppState;
use crate::core::principal::{Principal, Role, Scope};
use crate::core::time::Millis;
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};

/// The users of the demo, chosen on the login page without a password.
#[derive(Clone, Debug)]
pub struct DemoUsers(pub Vec<Principal>);

impl Default for DemoUsers {
    fn default() -> Self {
        let one = |user: &str, role| Principal {
            tenant: "default".into(),
            user: user.into(),
            role,
            scopes: Scope::default_for(role),
        };
        Self(vec![one("user", Role::User), one("admin", Role::Admin)])
    }
}

impl DemoUsers {
    /// The user of a name.
    #[must_use]
    pub fn get(&self, user: &str) -> Option<&Principal> {
        self.0.iter().find(|p| p.user == user)
    }
}

/// How a caller has proven who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Via {
    /// An API key.
    Key,
    /// A token of an issuer.
    Token,
    /// A session of the login page, by its secret.
    Session(String),
}

/// A caller whose identity is proven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who.
    pub principal: Principal,
    /// By what.
    pub via: Via,
    /// When the proof ends; absent = not by itself.
    pub expires_at: Option<Millis>,
    /// The hash of the key or session, by which open connections are found when it is taken back. A token has none: it ends
    /// by itself, soon.
    pub credential: Option<String>,
}

/// What is kept in memory to prove callers.
#[derive(Debug, Default)]
pub struct Guard {
    /// Where API keys are looked up.
    pub key_look_up: key_look_up::KeyLookUp,
    /// Where passwords are proven.
    pub passwords: password::Passwords,
    /// What failed sign-ins cost.
    pub slow_down: slow_down::SlowDown,
}

fn secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret))
}

/// Whose bearer token it is, in a header or in a frame: an API key, or a token of an issuer.
///
/// # Errors
/// 401 for one that proves nothing; those of the store.
pub async fn caller_of_token(state: &AppState, token: &str) -> Result<Caller, ApiError> {
    if token.starts_with(KEY_PREFIX) {
        let look_up = &state.guard.key_look_up;
        let caller = key::caller_of_key(&state.store, look_up, &state.clock, token).await?;
        return caller.ok_or_else(|| ApiError::new(Code::Unauthenticated));
    }
    let caller = state.settings.issuers.caller(token, state.clock.now());
    caller.map_err(|why| ApiError::new(Code::Unauthenticated).detail(why.to_string()))
}

/// The token of an `Authorization` header; absent where it carries none.
#[must_use]
pub fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    Some(token.trim()).filter(|token| scheme.eq_ignore_ascii_case("bearer") && !token.is_empty())
}

/// Who calls. An `Authorization` header counts alone; a cookie counts only where `with_cookie`.
///
/// # Errors
/// 401 for a header that proves nothing; those of the store.
pub async fn caller(state: &AppState, headers: &HeaderMap, with_cookie: bool) -> Result<Option<Caller>, ApiError> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let token = bearer(value).ok_or_else(|| ApiError::new(Code::Unauthenticated))?;
        return caller_of_token(state, token).await.map(Some);
    }
    let Some(secret) = cookie(headers, state.settings.insecure_http).filter(|_| with_cookie) else { return Ok(None) };
    Ok(session::caller_of_session(state.store.as_ref(), state.clock.as_ref(), secret).await?)
}
