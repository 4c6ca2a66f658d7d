//! Sessions of the sign-in page: made, proven, ended, and the cookie and the form token that go with them.
//!
//! The cookie holds 32 random bytes, the database their SHA-256. A sign-in makes a new session each time and ends the one
//! that the browser came with, so nobody can hand out a session and wait for somebody to sign in to it.

use super::{Caller, Via, hash, secret};
use crate::core::principal::Principal;
use crate::core::time::{Clock, Millis};
use crate::store::accounts::SESSION_MS;
use crate::store::{Session, Store, StoreError, User};
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;

/// The session cookie. The prefix makes browsers refuse it from subdomains and over plain http outside this machine.
pub const COOKIE: &str = "__Host-taskbell";
/// The session cookie where `server.insecure_http` allows plain http.
pub const PLAIN_COOKIE: &str = "taskbell";

/// How often the use of a session is noted, ms: its idle limit is that much longer at most.
const NOTE_MS: i64 = 60_000;

/// Who signs in, and what the session rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignIn {
    principal: Principal,
    rests_on: Option<Millis>,
}

impl SignIn {
    /// A user of the demo, who has no row in the database.
    #[must_use]
    pub fn of_demo(principal: Principal) -> Self {
        Self { principal, rests_on: None }
    }

    /// A user whose password was proven against this row.
    #[must_use]
    pub fn of_user(user: &User) -> Self {
        Self { principal: user.principal(), rests_on: Some(user.updated_at) }
    }
}

/// Signs somebody in: a new session each time. Answers the secret for the cookie.
///
/// # Errors
/// Those of the store.
pub async fn sign_in(store: &dyn Store, who: SignIn, now: Millis) -> Result<String, StoreError> {
    let (secret, SignIn { principal, rests_on }) = (secret(), who);
    let (hash, expires_at) = (hash(&secret), now.plus(SESSION_MS));
    store.put_session(Session { hash, principal, created_at: now, used_at: now, expires_at, rests_on }).await?;
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

/// Whose session it is; `None` for one that is unknown or over.
pub(super) async fn caller_of_session(
    store: &dyn Store,
    clock: &dyn Clock,
    secret: String,
) -> Result<Option<Caller>, StoreError> {
    let now = clock.now();
    let Some(session) = store.session(&hash(&secret)).await?.filter(|s| !s.is_over(now)) else { return Ok(None) };
    if now.since(session.used_at) >= NOTE_MS
        && let Err(e) = store.touch_session(&session.hash, now).await
    {
        // A database that takes no writes is no reason not to show what can be read.
        tracing::debug!("the use of a session could not be noted: {e}");
    }
    Ok(Some(Caller {
        principal: session.principal,
        via: Via::Session(secret),
        expires_at: Some(session.expires_at),
        credential: Some(session.hash),
    }))
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

#[cfg(test)]
mod tests {
    use super::*;

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
