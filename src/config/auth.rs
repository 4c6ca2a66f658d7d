//! The section about who is believed: issuers of tokens, each with one algorithm and one key.
//!
//! A key that could not prove anything is a fault here already, so that it is told before a server starts.

use super::reader::{Choice, Section};
use super::secret::Secret;
use crate::core::principal::Role;
use jsonwebtoken::DecodingKey;

/// How tokens of an issuer are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JwtAlgorithm {
    /// HMAC with a shared secret.
    Hs256,
    /// RSA.
    Rs256,
    /// ECDSA on P-256.
    Es256,
    /// Ed25519.
    EdDsa,
}

/// One entry of `auth.jwt`.
#[derive(Clone, Debug)]
pub struct JwtIssuer {
    /// The `iss` of its tokens.
    pub issuer: String,
    /// The `aud` of its tokens.
    pub audience: String,
    /// The one algorithm taken.
    pub algorithm: JwtAlgorithm,
    /// The `kid` of its tokens; without one they have to have none.
    pub kid: Option<String>,
    /// The highest role it can give.
    pub max_role: Role,
    /// The shared secret, or the public key in PEM.
    pub key: Secret,
}

impl Choice for JwtAlgorithm {
    const WORDS: &'static [(&'static str, Self)] =
        &[("HS256", Self::Hs256), ("RS256", Self::Rs256), ("ES256", Self::Es256), ("EdDSA", Self::EdDsa)];
}

/// The shortest secret of HS256, bytes: as long as what it makes (RFC 7518, 3.2).
const SECRET_BYTES: usize = 32;

pub(super) fn auth(mut section: Section<'_>) -> Vec<JwtIssuer> {
    let mut issuers: Vec<JwtIssuer> = Vec::new();
    for one in section.sections("jwt") {
        let (key, cx) = (one.path_of("issuer"), one.cx);
        let Some(issuer) = issuer(one) else { continue };
        if issuers.iter().any(|other| (&other.issuer, &other.kid) == (&issuer.issuer, &issuer.kid)) {
            cx.faults.borrow_mut().push(key, format!("`{}` is declared twice with the same `kid`", issuer.issuer));
        }
        issuers.push(issuer);
    }
    section.finish();
    issuers
}

fn issuer(mut section: Section<'_>) -> Option<JwtIssuer> {
    let name = section.required_text("issuer");
    let audience = section.text("audience");
    let kid = section.text("kid");
    let algorithm = section.choice("algorithm");
    let max_role = section.choice("max_role");
    let (secret_given, public_given) = (section.given("secret"), section.given("public_key"));
    let secret = section.secret("secret");
    let public_key = section.secret("public_key");
    let key = match (algorithm, secret_given, public_given) {
        (JwtAlgorithm::Hs256, true, false) => {
            if secret.as_ref().is_some_and(|secret| secret.expose().len() < SECRET_BYTES) {
                section
                    .fault("secret", format!("must have at least {SECRET_BYTES} bytes: shorter ones can be guessed"));
            }
            secret
        }
        (JwtAlgorithm::Rs256 | JwtAlgorithm::Es256 | JwtAlgorithm::EdDsa, false, true) => {
            if public_key.as_ref().is_some_and(|key| !is_public_key(algorithm, key)) {
                let what = algorithm_word(algorithm);
                section.fault(
                    "public_key",
                    format!("must be a public key for {what} in PEM (-----BEGIN PUBLIC KEY-----)"),
                );
            }
            public_key
        }
        (JwtAlgorithm::Hs256, ..) => {
            section.fault("secret", "HS256 takes `secret`, and no `public_key`");
            None
        }
        _ => {
            section.fault("public_key", "RS256, ES256 and EdDSA take `public_key`, and no `secret`");
            None
        }
    };
    section.finish();
    Some(JwtIssuer { issuer: name?, audience: audience?, algorithm, kid, max_role, key: key? })
}

fn algorithm_word(algorithm: JwtAlgorithm) -> &'static str {
    JwtAlgorithm::WORDS.iter().find(|(_, a)| *a == algorithm).map_or("", |(word, _)| word)
}

/// Whether a text is a public key of the algorithm's kind, as the part that proves tokens reads it.
fn is_public_key(algorithm: JwtAlgorithm, key: &Secret) -> bool {
    let (text, bytes) = (key.expose(), key.expose().as_bytes());
    let read = match algorithm {
        JwtAlgorithm::Hs256 => return false,
        JwtAlgorithm::Rs256 => DecodingKey::from_rsa_pem(bytes),
        JwtAlgorithm::Es256 => DecodingKey::from_ec_pem(bytes),
        JwtAlgorithm::EdDsa => DecodingKey::from_ed_pem(bytes),
    };
    read.is_ok() && text.contains("-----BEGIN PUBLIC KEY-----")
}

#[cfg(test)]
mod tests {
    use super::super::Settings;

    fn faults(jwt: &str) -> String {
        let set = [("TASKBELL__AUTH__JWT".to_owned(), format!("[{jwt}]"))];
        Settings::load(None, set.into_iter(), false).map_or_else(|faults| faults.to_string(), |_| String::new())
    }

    #[test]
    fn a_key_that_could_prove_nothing_is_told_with_its_place() {
        let (rsa, ec) =
            (include_str!("../../tests/keys/rsa.public.pem"), include_str!("../../tests/keys/ec.public.pem"));
        let private = include_str!("../../tests/keys/ec.private.pem");
        let with = |algorithm: &str, key: &str| {
            faults(&format!("{{ issuer = 'a', algorithm = '{algorithm}', public_key = \"\"\"{key}\"\"\" }}"))
        };
        assert_eq!((with("RS256", rsa), with("ES256", ec)), (String::new(), String::new()));
        for (algorithm, key) in [("RS256", ec), ("ES256", rsa), ("EdDSA", rsa), ("ES256", private), ("RS256", "x")] {
            let told = with(algorithm, key);
            let wanted = format!("auth.jwt[0].public_key: must be a public key for {algorithm} in PEM");
            assert!(told.starts_with(&wanted), "{told}");
        }
        let short = faults(&format!("{{ issuer = 'a', secret = '{}' }}", "x".repeat(31)));
        assert!(short.starts_with("auth.jwt[0].secret: must have at least 32 bytes"), "{short}");
        assert_eq!(faults(&format!("{{ issuer = 'a', secret = '{}' }}", "x".repeat(32))), "");
    }

    #[test]
    fn an_issuer_may_have_several_keys_and_each_name_once() {
        let one = |kid: &str| format!("{{ issuer = 'a', {kid} secret = '{}' }}", "x".repeat(32));
        assert_eq!(faults(&[one("kid = '1',"), one("kid = '2',"), one("")].join(", ")), "");
        let twice = faults(&[one("kid = '1',"), one("kid = '1',")].join(", "));
        assert!(twice.starts_with("auth.jwt[1].issuer: `a` is declared twice"), "{twice}");
    }
}
