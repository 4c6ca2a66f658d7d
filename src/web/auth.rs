//! Who calls: API keys, sessions of the login page, and the proof that a form is our own.
//!
//! Keys and session secrets are 32 random bytes, shown once and stored as SHA-256: who reads the database cannot use them.
//! They are compared by the hash, through an index, so the time of a look-up tells nothing about a key. Never in a URL,
//! never in a log.

use super::error::{ApiError, Code};
use super::state::AppState;
use crate::core::principal::{Principal, Role, Scope};
use crate::core::time::Millis;
use crate::store::{ApiKey, Session, Store, StoreError};
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// What every API key begins with.
pub const KEY_PREFIX: &str = "tb_";
/// The session cookie. The prefix makes browsers refuse it from subdomains and over plain http outside this machine.
pub const COOKIE: &str = "__Host-taskbell";
/// The session cookie where `server.insecure_http` allows plain http.
pub const PLAIN_COOKIE: &str = "taskbell";
/// How long a session lives, ms.
pub const SESSION_MS: i64 = 12 * 3_600_000;

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
    /// The hash of the key or session, by which open connections are found when it is taken back.
    pub credential: String,
}

fn secret() -> String {
    URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

fn hash(secret: &str) -> String {
    hex::encode(Sha256::digest(secret))
}

/// A new API key: the text to show once, and what is stored of it.
///
/// # Errors
/// In words, when the scopes go beyond the role or the tenant does not fit it.
pub fn new_api_key(principal: Principal, life_ms: Option<i64>, created_at: Millis) -> Result<(String, ApiKey), String> {
    let allowed = Scope::default_for(principal.role);
    let beyond = |s: &&Scope| !allowed.contains(s) && !matches!(s, Scope::SubmitAs | Scope::Worker);
    if let Some(scope) = principal.scopes.iter().find(beyond) {
        return Err(format!("the role {} does not allow the scope {}", principal.role.as_str(), scope.as_str()));
    }
    if principal.tenant == "*" && principal.role != Role::Platform {
        return Err("the tenant * is for the role platform only".into());
    }
    if principal.user.is_empty() || principal.tenant.is_empty() {
        return Err("a key needs a tenant and a user".into());
    }
    let key = format!("{KEY_PREFIX}{}", secret());
    let expires_at = life_ms.map(|ms| created_at.plus(ms));
    let row = ApiKey { hash: hash(&key), principal, created_at, expires_at };
    Ok((key, row))
}

/// Whose key it is; `None` for one that is unknown or over.
///
/// # Errors
/// Those of the store.
pub async fn caller_of_key(state: &AppState, key: &str) -> Result<Option<Caller>, StoreError> {
    if !key.starts_with(KEY_PREFIX) {
        return Ok(None);
    }
    let (hash, now) = (hash(key), state.clock.mono());
    let row = match state.known_keys.get(&hash, now) {
        Some(row) => Some(row),
        None => state.store.api_key(&hash).await?.inspect(|row| state.known_keys.put(row, now)),
    };
    Ok(row.filter(|k| k.expires_at.is_none_or(|end| state.clock.now() < end)).map(|k| Caller {
        principal: k.principal,
        via: Via::Key,
        expires_at: k.expires_at,
        credential: k.hash,
    }))
}

/// Signs somebody in: a new session each time. Answers the secret for the cookie.
///
/// # Errors
/// Those of the store.
pub async fn sign_in(store: &dyn Store, principal: Principal, now: Millis) -> Result<String, StoreError> {
    let secret = secret();
    let session = Session { hash: hash(&secret), principal, created_at: now, expires_at: now.plus(SESSION_MS) };
    store.put_session(session).await?;
    Ok(secret)
}

/// Signs a session out. Answers the credential under which its open connections are found.
///
/// # Errors
/// Those of the store.
pub async fn sign_out(store: &dyn Store, secret: &str) -> Result<String, StoreError> {
    let credential = hash(secret);
    store.delete_session(&credential).await?;
    Ok(credential)
}

/// The `Set-Cookie` that hands a session to the browser; `plain` = over plain http, where that is allowed.
#[must_use]
pub fn session_cookie(secret: &str, plain: bool) -> HeaderValue {
    let (name, secure) = if plain { (PLAIN_COOKIE, "") } else { (COOKIE, " Secure;") };
    let text = format!("{name}={secret}; Path=/;{secure} HttpOnly; SameSite=Lax; Max-Age={}", SESSION_MS / 1_000);
    HeaderValue::from_str(&text).expect("base64url is a valid header value")
}

/// The `Set-Cookie` that takes it away.
#[must_use]
pub fn ended_cookie(plain: bool) -> HeaderValue {
    HeaderValue::from_static(match plain {
        true => "taskbell=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0",
        false => "__Host-taskbell=; Path=/; Secure; HttpOnly; SameSite=Lax; Max-Age=0",
    })
}

/// The token that our own forms carry; it belongs to one session and tells nothing of its secret.
#[must_use]
pub fn csrf_token(session_secret: &str) -> String {
    URL_SAFE_NO_PAD.encode(Sha256::digest(format!("csrf\0{session_secret}")))
}

/// Whether a form's token belongs to the session.
#[must_use]
pub fn csrf_fits(session_secret: &str, token: &str) -> bool {
    csrf_token(session_secret).as_bytes().ct_eq(token.as_bytes()).into()
}

/// Who calls. An `Authorization` header counts alone; a cookie counts only where `with_cookie`.
///
/// # Errors
/// 401 for a header that proves nothing; those of the store.
pub async fn caller(state: &AppState, headers: &HeaderMap, with_cookie: bool) -> Result<Option<Caller>, ApiError> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let text = value.to_str().unwrap_or_default();
        let key = match text.split_once(' ') {
            Some((scheme, key)) if scheme.eq_ignore_ascii_case("bearer") => key.trim(),
            _ => "",
        };
        let caller = caller_of_key(state, key).await?;
        return caller.map(Some).ok_or_else(|| ApiError::new(Code::Unauthenticated));
    }
    let Some(secret) = cookie(headers, state.settings.insecure_http).filter(|_| with_cookie) else { return Ok(None) };
    let session = state.store.session(&hash(&secret)).await?.filter(|s| state.clock.now() < s.expires_at);
    Ok(session.map(|s| Caller {
        principal: s.principal,
        via: Via::Session(secret),
        expires_at: Some(s.expires_at),
        credential: s.hash,
    }))
}

/// The secret in the session cookie, if there is one.
#[must_use]
pub fn cookie(headers: &HeaderMap, plain_too: bool) -> Option<String> {
    let find = |name: &str| {
        headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|v| v.to_str().ok())
            .flat_map(|v| v.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(key, value)| *key == name && !value.is_empty())
            .map(|(_, value)| value.to_owned())
    };
    find(COOKIE).or_else(|| find(PLAIN_COOKIE).filter(|_| plain_too))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn principal(tenant: &str, role: Role, scopes: Vec<Scope>) -> Principal {
        Principal { tenant: tenant.into(), user: "u".into(), role, scopes }
    }

    #[test]
    fn a_key_is_stored_as_its_hash_and_never_twice_the_same() {
        let make = || new_api_key(principal("t", Role::User, vec![Scope::TasksRead]), Some(5), Millis(10)).unwrap();
        let ((a, row), (b, _)) = (make(), make());
        assert!(a.starts_with("tb_") && a.len() == 3 + 43 && a != b);
        assert!(row.hash.len() == 64 && !row.hash.contains(&a[3..]));
        assert_eq!((row.created_at, row.expires_at), (Millis(10), Some(Millis(15))));
    }

    #[test]
    fn no_key_goes_beyond_its_role() {
        let make = |tenant: &str, role, scopes| new_api_key(principal(tenant, role, scopes), None, Millis(0));
        assert!(make("t", Role::User, vec![Scope::Admin]).is_err());
        assert!(make("t", Role::Operator, vec![Scope::Schedules]).is_err());
        assert!(make("t", Role::User, vec![Scope::SubmitAs, Scope::Worker]).is_ok());
        assert!(make("*", Role::Admin, vec![]).is_err());
        assert!(make("*", Role::Platform, Scope::default_for(Role::Platform)).is_ok());
    }

    #[test]
    fn a_form_token_fits_its_session_only() {
        assert!(csrf_fits("a", &csrf_token("a")));
        assert!(!csrf_fits("a", &csrf_token("b")) && !csrf_fits("a", ""));
    }

    #[test]
    fn the_cookie_is_found_among_others_and_the_plain_one_only_where_allowed() {
        let mut headers = HeaderMap::new();
        headers.append(header::COOKIE, HeaderValue::from_static("a=b; taskbell=plain"));
        assert_eq!(cookie(&headers, false), None);
        assert_eq!(cookie(&headers, true).unwrap(), "plain");
        headers.append(header::COOKIE, HeaderValue::from_static("x=y; __Host-taskbell=s3"));
        assert_eq!(cookie(&headers, true).unwrap(), "s3");
        for plain in [true, false] {
            let set = session_cookie("s", plain).to_str().unwrap().to_owned();
            assert!(set.contains("HttpOnly; SameSite=Lax") && set.contains("Secure") != plain);
        }
    }
}
