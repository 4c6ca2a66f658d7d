//! What the web needs to know of the configuration, in its own types.

use super::StartError;
use crate::config::{JwtAlgorithm, JwtIssuer, Loaded, Settings};
use crate::web::WebSettings;
use crate::web::auth::jwt::{Algorithm, Issuer, IssuerParts, Issuers};

/// The issuers of tokens, with their keys.
fn issuers(settings: &Settings) -> Result<Issuers, StartError> {
    let issuer = |jwt: &JwtIssuer| {
        Issuer::new(IssuerParts {
            issuer: &jwt.issuer,
            audience: &jwt.audience,
            kid: jwt.kid.as_deref(),
            algorithm: match jwt.algorithm {
                JwtAlgorithm::Hs256 => Algorithm::HS256,
                JwtAlgorithm::Rs256 => Algorithm::RS256,
                JwtAlgorithm::Es256 => Algorithm::ES256,
                JwtAlgorithm::EdDsa => Algorithm::EdDSA,
            },
            max_role: jwt.max_role,
            key: jwt.key.expose(),
        })
    };
    let all = settings.jwt.iter().map(issuer).collect::<Result<Vec<_>, String>>();
    all.map(Issuers::new).map_err(StartError::Issuer)
}

/// All of it.
///
/// # Errors
/// When the key of an issuer is none.
pub(super) fn of(loaded: &Loaded) -> Result<WebSettings, StartError> {
    let settings = &loaded.settings;
    Ok(WebSettings {
        issuers: issuers(settings)?,
        public_origin: settings.server.public_url.as_ref().map(|url| url.origin().ascii_serialization()),
        allowed_origins: settings.server.allowed_origins.clone(),
        insecure_http: settings.server.insecure_http,
        trusted_proxies: settings.server.trusted_proxies.clone(),
        keep: settings.retention.keep,
    })
}
