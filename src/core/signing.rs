//! Signatures of calls, by the Standard Webhooks scheme: HMAC-SHA256 over `id.timestamp.body` with a shared secret.
//!
//! While a secret is changed two are in force: every call carries a signature of each, and either proves a call. Must never
//! show a key, and never compare a signature byte by byte.

use base64::Engine;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;

/// What a secret begins with.
pub const SECRET_PREFIX: &str = "whsec_";
/// The shortest key, bytes.
pub const KEY_BYTES: usize = 24;
/// How far the clock of a sender may be off, seconds.
pub const TOLERANCE_SECONDS: i64 = 300;

const SECRET: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// One key of at least [`KEY_BYTES`].
#[derive(Clone, PartialEq, Eq)]
struct Key(Vec<u8>);

impl Key {
    fn mac(&self, parts: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("an HMAC takes keys of any length");
        parts.iter().for_each(|part| mac.update(part));
        mac
    }
}

/// The keys in force, the newest first; never empty.
#[derive(Clone, PartialEq, Eq)]
pub struct SigningKeys(Vec<Key>);

impl fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKeys({})", self.0.len())
    }
}

/// Why a call proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotProven {
    /// Too long ago, or ahead.
    #[error("the timestamp is more than five minutes off")]
    Timestamp,
    /// Of no key in force.
    #[error("no signature of the call is right")]
    Signature,
}

impl SigningKeys {
    /// Reads secrets, `whsec_` and at least 24 bytes in base64 each; `None` when one is not, or there is none.
    #[must_use]
    pub fn parse<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        let key = |secret: &str| {
            let bytes = SECRET.decode(secret.strip_prefix(SECRET_PREFIX)?).ok()?;
            (bytes.len() >= KEY_BYTES).then_some(Key(bytes))
        };
        let keys = secrets.into_iter().map(key).collect::<Option<Vec<Key>>>()?;
        (!keys.is_empty()).then_some(Self(keys))
    }

    /// The value of `webhook-signature`: one signature of each key, a space between.
    #[must_use]
    pub fn sign(&self, id: &str, timestamp_seconds: i64, body: &[u8]) -> String {
        let timestamp = timestamp_seconds.to_string();
        let one = |key: &Key| {
            let mac = key.mac(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
            format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
        };
        self.0.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    /// Whether a call that came in is proven by one of the keys. Whoever asks also has to remember ids for as long as a
    /// timestamp is taken, if a repetition matters.
    ///
    /// # Errors
    /// Why it is not.
    pub fn verify(
        &self,
        id: &str,
        timestamp_seconds: i64,
        body: &[u8],
        signatures: &str,
        now_seconds: i64,
    ) -> Result<(), NotProven> {
        if now_seconds.abs_diff(timestamp_seconds) > TOLERANCE_SECONDS.unsigned_abs() {
            return Err(NotProven::Timestamp);
        }
        let timestamp = timestamp_seconds.to_string();
        let given = signatures.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
        let proves = |given: &[u8]| {
            let signs = |key: &Key| {
                let mac = key.mac(&[id.as_bytes(), b".", timestamp.as_bytes(), b".", body]);
                mac.verify_slice(given).is_ok()
            };
            self.0.iter().any(signs)
        };
        // A call that brings very many signatures makes no work for nothing.
        if given.take(8).any(|given| proves(&given)) { Ok(()) } else { Err(NotProven::Signature) }
    }

    /// A code over a text of our own for one purpose, by the newest key.
    #[must_use]
    pub fn seal(&self, purpose: &str, text: &str) -> Vec<u8> {
        let newest = self.0.first().expect("there is always a key");
        newest.mac(&[purpose.as_bytes(), b"\0", text.as_bytes()]).finalize().into_bytes().to_vec()
    }

    /// Whether a code is one of [`Self::seal`], by any key in force.
    #[must_use]
    pub fn sealed(&self, purpose: &str, text: &str, seal: &[u8]) -> bool {
        self.0.iter().any(|key| key.mac(&[purpose.as_bytes(), b"\0", text.as_bytes()]).verify_slice(seal).is_ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

    fn keys(secrets: &[&str]) -> SigningKeys {
        SigningKeys::parse(secrets.iter().copied()).unwrap()
    }

    #[test]
    fn the_published_vector_is_signed_and_proven() {
        let (id, at, body) = ("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        let signature = keys(&[SECRET]).sign(id, at, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(keys(&[SECRET]).verify(id, at, body, &signature, at + 299), Ok(()));
    }

    #[test]
    fn while_a_secret_is_changed_either_one_proves_a_call() {
        let both = keys(&[OTHER, SECRET]).sign("id", 100, b"body");
        assert_eq!(both.split(' ').count(), 2);
        for one in [SECRET, OTHER] {
            assert_eq!(keys(&[one]).verify("id", 100, b"body", &both, 100), Ok(()));
            let signed = keys(&[one]).sign("id", 100, b"body");
            assert_eq!(keys(&[OTHER, SECRET]).verify("id", 100, b"body", &format!("v2,x v1,! {signed}"), 100), Ok(()));
        }
    }

    #[test]
    fn what_was_changed_or_is_old_proves_nothing() {
        let (keys, other) = (keys(&[SECRET]), keys(&[OTHER]));
        let signed = keys.sign("id", 1_000, b"body");
        for (id, at, body, now, fault) in [
            ("id2", 1_000, "body", 1_000, NotProven::Signature),
            ("id", 1_001, "body", 1_000, NotProven::Signature),
            ("id", 1_000, "bodY", 1_000, NotProven::Signature),
            ("id", 1_000, "body", 1_301, NotProven::Timestamp),
            ("id", 1_000, "body", 699, NotProven::Timestamp),
            ("id", i64::MIN, "body", i64::MAX, NotProven::Timestamp),
        ] {
            assert_eq!(keys.verify(id, at, body.as_bytes(), &signed, now), Err(fault), "{id} {at} {body} {now}");
        }
        assert_eq!(other.verify("id", 1_000, b"body", &signed, 1_000), Err(NotProven::Signature));
        for none in ["", "v1,", "v1", &signed.replace("v1,", "v1a,")] {
            assert_eq!(keys.verify("id", 1_000, b"body", none, 1_000), Err(NotProven::Signature), "{none}");
        }
    }

    #[test]
    fn a_secret_has_its_prefix_and_24_bytes_and_is_never_shown() {
        for bad in [
            "",
            "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "whsec_",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLa",
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!",
        ] {
            assert!(SigningKeys::parse([bad]).is_none(), "{bad}");
        }
        assert!(SigningKeys::parse([]).is_none());
        assert!(SigningKeys::parse(["whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="]).is_some());
        assert_eq!(format!("{:?}", keys(&[SECRET])), "SigningKeys(1)");
    }

    #[test]
    fn a_seal_is_of_its_purpose_and_text_and_outlives_one_change_of_the_secret() {
        let seal = keys(&[SECRET]).seal("callback", "text");
        assert!(keys(&[OTHER, SECRET]).sealed("callback", "text", &seal));
        assert!(!keys(&[SECRET]).sealed("callback", "texT", &seal));
        assert!(!keys(&[SECRET]).sealed("other", "text", &seal));
        assert!(!keys(&[OTHER]).sealed("callback", "text", &seal));
    }
}
