//! Tokens of configured issuers: who they name, for how long, and why one is not taken.
//!
//! The issuer and the key are chosen by what the token says of itself, and everything else by the configuration: one
//! algorithm an issuer, so that neither `none` nor a public key used as a shared secret gets anywhere. Nothing is ever
//! fetched: a token that brings or points to a key (`jwk`, `jku`, `x5u`, `x5c`) is refused, and so is one that names a key
//! (`kid`) which the configuration does not. Claims are looked at after the signature; only then is told what is wrong.
//!
//! Time is the server's: `exp` has to be there, in the future and at most [`MOST_LIFE_MS`] ahead, without leeway, since
//! nothing may outlive it; `nbf` and `iat` may be [`LEEWAY_MS`] ahead, as clocks differ.

use super::{Caller, Via};
use crate::core::account::{check_name, check_tenant};
use crate::core::principal::{Principal, Role, Scope};
use crate::core::time::Millis;
pub use jsonwebtoken::Algorithm;
use jsonwebtoken::dangerous::insecure_decode_claims;
use jsonwebtoken::{DecodingKey, Header, Validation, decode, decode_header};
use serde::Deserialize;
use std::sync::Arc;

/// The longest token, bytes; a longer one is refused before any work.
pub const MOST_BYTES: usize = 8 * 1024;
/// The furthest `exp`, ms from now.
pub const MOST_LIFE_MS: i64 = 15 * 60_000;
/// By how much `nbf` and `iat` may be ahead, ms.
pub const LEEWAY_MS: i64 = 60_000;

/// Somebody whose tokens are taken.
#[derive(Clone, Debug)]
pub struct Issuer {
    issuer: String,
    audience: String,
    kid: Option<String>,
    max_role: Role,
    key: DecodingKey,
    validation: Validation,
}

/// What an issuer is made of.
#[derive(Debug)]
pub struct IssuerParts<'a> {
    /// The `iss` of its tokens.
    pub issuer: &'a str,
    /// The `aud` of its tokens.
    pub audience: &'a str,
    /// The `kid` of its tokens; without one they have to have none.
    pub kid: Option<&'a str>,
    /// The one algorithm.
    pub algorithm: Algorithm,
    /// The highest role it can give.
    pub max_role: Role,
    /// The shared secret, or the public key in PEM.
    pub key: &'a str,
}

impl Issuer {
    /// An issuer with its key.
    ///
    /// # Errors
    /// In words, when the key is none of the algorithm's kind.
    pub fn new(parts: IssuerParts<'_>) -> Result<Self, String> {
        let IssuerParts { issuer, audience, kid, algorithm, max_role, key } = parts;
        let bytes = key.as_bytes();
        let key = match algorithm {
            Algorithm::HS256 => DecodingKey::from_secret(bytes),
            Algorithm::RS256 => DecodingKey::from_rsa_pem(bytes),
            Algorithm::ES256 => DecodingKey::from_ec_pem(bytes),
            Algorithm::EdDSA => DecodingKey::from_ed_pem(bytes),
            other => return Err(format!("{issuer}: the algorithm {other:?} is not taken")),
        };
        let key = key.map_err(|e| format!("{issuer}: the key is none for {algorithm:?}: {e}"))?;
        let mut validation = Validation::new(algorithm);
        // The library reads the machine's clock; time and audience are looked at here, by the given one.
        validation.required_spec_claims.clear();
        (validation.validate_exp, validation.validate_aud) = (false, false);
        let (issuer, audience, kid) = (issuer.to_owned(), audience.to_owned(), kid.map(str::to_owned));
        Ok(Self { issuer, audience, kid, max_role, key, validation })
    }
}

/// All issuers.
#[derive(Clone, Debug, Default)]
pub struct Issuers(Arc<[Issuer]>);

impl Issuers {
    /// These.
    #[must_use]
    pub fn new(issuers: Vec<Issuer>) -> Self {
        Self(issuers.into())
    }
}

/// Why a token is not taken; a sentence for whoever made it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untaken {
    /// It is too long to be looked at.
    #[error("The token has more than {MOST_BYTES} bytes.")]
    TooLong,
    /// No token at all, or one whose signature does not fit. Which, is not told.
    #[error("The token is not valid here.")]
    Invalid,
    /// It carries or points to a key.
    #[error("The token's header brings a key or something else that is not taken.")]
    Header,
    /// A claim is missing or of the wrong kind.
    #[error("The token needs iss, aud, sub, tenant, role and exp, each once and of its kind.")]
    Claims,
    /// It is for somebody else.
    #[error("The token is for another audience.")]
    Audience,
    /// It has ended.
    #[error("The token has ended.")]
    Ended,
    /// It would live for too long.
    #[error("The token's exp is more than 15 minutes ahead.")]
    TooLongLived,
    /// It is not valid yet.
    #[error("The token is from the future: look at nbf, iat and the clocks.")]
    NotYet,
    /// The role is unknown, or above what the issuer may give.
    #[error("The token's role is none, or above what its issuer may give.")]
    Role,
    /// Name or tenant break a rule.
    #[error("The token's sub or tenant is refused: {0}.")]
    Who(String),
}

#[derive(Deserialize)]
struct OfIssuer {
    iss: String,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Audience,
    sub: String,
    tenant: String,
    role: String,
    exp: f64,
    nbf: Option<f64>,
    iat: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Audience {
    One(String),
    Several(Vec<String>),
}

impl Audience {
    fn holds(&self, wanted: &str) -> bool {
        match self {
            Self::One(one) => one == wanted,
            Self::Several(several) => several.iter().any(|one| one == wanted),
        }
    }
}

impl Issuers {
    /// Whose token it is.
    ///
    /// # Errors
    /// See [`Untaken`].
    pub fn caller(&self, token: &str, now: Millis) -> Result<Caller, Untaken> {
        if token.len() > MOST_BYTES {
            return Err(Untaken::TooLong);
        }
        if self.0.is_empty() {
            return Err(Untaken::Invalid);
        }
        let header = decode_header(token).map_err(|_| Untaken::Invalid)?;
        check_header(&header)?;
        let OfIssuer { iss } = insecure_decode_claims(token).map_err(|_| Untaken::Invalid)?;
        let issuer = self.0.iter().find(|i| i.issuer == iss && i.kid == header.kid).ok_or(Untaken::Invalid)?;
        let claims = decode::<Claims>(token, &issuer.key, &issuer.validation).map_err(|e| match e.kind() {
            jsonwebtoken::errors::ErrorKind::Json(_) => Untaken::Claims,
            _ => Untaken::Invalid,
        })?;
        issuer.caller(claims.claims, now)
    }
}

/// What a header must not have: keys of its own, ways to keys, and rules that this version does not know.
fn check_header(header: &Header) -> Result<(), Untaken> {
    let typ = header.typ.as_deref().map(str::to_ascii_lowercase);
    let plain = header.jku.is_none()
        && header.jwk.is_none()
        && header.x5u.is_none()
        && header.x5c.is_none()
        && header.crit.is_none()
        && header.enc.is_none()
        && header.zip.is_none()
        && matches!(typ.as_deref(), None | Some("jwt" | "at+jwt"));
    if plain { Ok(()) } else { Err(Untaken::Header) }
}

impl Issuer {
    /// The caller of claims whose signature fits.
    fn caller(&self, claims: Claims, now: Millis) -> Result<Caller, Untaken> {
        // The same text was read for the choice of the key; nothing rests on that alone.
        if claims.iss != self.issuer {
            return Err(Untaken::Invalid);
        }
        if !claims.aud.holds(&self.audience) {
            return Err(Untaken::Audience);
        }
        let expires_at = instant(claims.exp)?;
        if expires_at <= now {
            return Err(Untaken::Ended);
        }
        if expires_at.since(now) > MOST_LIFE_MS {
            return Err(Untaken::TooLongLived);
        }
        for from in [claims.nbf, claims.iat].into_iter().flatten() {
            if instant(from)?.since(now) > LEEWAY_MS {
                return Err(Untaken::NotYet);
            }
        }
        let role = Role::parse(&claims.role).filter(|role| *role <= self.max_role).ok_or(Untaken::Role)?;
        check_name(&claims.sub).map_err(Untaken::Who)?;
        check_tenant(&claims.tenant, role).map_err(Untaken::Who)?;
        let principal = Principal { tenant: claims.tenant, user: claims.sub, role, scopes: Scope::default_for(role) };
        Ok(Caller { principal, via: Via::Token, expires_at: Some(expires_at), credential: None })
    }
}

/// Seconds since 1970 as an instant; a fraction of a millisecond is cut.
fn instant(seconds: f64) -> Result<Millis, Untaken> {
    let ms = seconds * 1_000.0;
    // Beyond this a double no longer holds every millisecond, and no clock stands there.
    if (0.0..9e15).contains(&ms) { Ok(Millis(ms as i64)) } else { Err(Untaken::Claims) }
}

#[cfg(test)]
mod tests;
