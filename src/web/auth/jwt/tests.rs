//! Tokens that are taken and the many that are not, by a clock in hand.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::EncodingKey;
use jsonwebtoken::crypto::sign;
use serde_json::{Value, json};

const SECRET: &str = "a shared secret of 32 bytes or so";
const RSA: (&str, &str) =
    (include_str!("../../../../tests/keys/rsa.private.pem"), include_str!("../../../../tests/keys/rsa.public.pem"));
const EC: (&str, &str) =
    (include_str!("../../../../tests/keys/ec.private.pem"), include_str!("../../../../tests/keys/ec.public.pem"));
const ED: (&str, &str) =
    (include_str!("../../../../tests/keys/ed.private.pem"), include_str!("../../../../tests/keys/ed.public.pem"));
const NOW: Millis = Millis(1_795_953_600_000);
const NOW_SECONDS: i64 = NOW.0 / 1_000;

fn parts<'a>(issuer: &'a str, algorithm: Algorithm, key: &'a str) -> IssuerParts<'a> {
    IssuerParts { issuer, audience: "taskbell", kid: None, algorithm, max_role: Role::Operator, key }
}

/// An issuer of each kind; `turning` has two keys, told apart by their names.
fn issuers() -> Issuers {
    let all = [
        parts("erp", Algorithm::HS256, SECRET),
        parts("rsa", Algorithm::RS256, RSA.1),
        parts("ec", Algorithm::ES256, EC.1),
        parts("ed", Algorithm::EdDSA, ED.1),
        IssuerParts { kid: Some("old"), ..parts("turning", Algorithm::EdDSA, ED.1) },
        IssuerParts { kid: Some("new"), max_role: Role::Platform, ..parts("turning", Algorithm::ES256, EC.1) },
    ];
    Issuers::new(all.map(|parts| Issuer::new(parts).unwrap()).into())
}

fn claims() -> Value {
    json!({"iss": "erp", "aud": "taskbell", "sub": "alice", "tenant": "north", "role": "user", "exp": NOW_SECONDS + 600})
}

/// The claims with some changed; `null` takes one away.
fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    claims
}

fn signed(header: &Value, claims: &str, key: &EncodingKey, algorithm: Algorithm) -> String {
    let message =
        format!("{}.{}", URL_SAFE_NO_PAD.encode(header.to_string()), URL_SAFE_NO_PAD.encode(claims.as_bytes()));
    let signature = sign(message.as_bytes(), key, algorithm).unwrap();
    format!("{message}.{signature}")
}

fn shared(header: &Value, claims: &str) -> String {
    signed(header, claims, &EncodingKey::from_secret(SECRET.as_bytes()).unwrap(), Algorithm::HS256)
}

/// A token of `erp` with these claims.
fn token(claims: &Value) -> String {
    shared(&json!({"alg": "HS256", "typ": "JWT"}), &claims.to_string())
}

fn judge(token: &str) -> Result<Caller, Untaken> {
    issuers().caller(token, NOW)
}

fn refusal(changes: Value) -> Untaken {
    judge(&token(&with(changes.clone()))).expect_err(&changes.to_string())
}

#[test]
fn a_token_names_its_user_with_the_scopes_of_the_role_until_its_end() {
    let caller = judge(&token(&claims())).unwrap();
    let principal = Principal {
        tenant: "north".into(),
        user: "alice".into(),
        role: Role::User,
        scopes: Scope::default_for(Role::User),
    };
    let expires_at = Some(Millis((NOW_SECONDS + 600) * 1_000));
    assert_eq!(caller, Caller { principal, via: Via::Token, expires_at, credential: None });
    for changes in [
        json!({"aud": ["other", "taskbell"]}),
        json!({"role": "operator", "more": {"deep": [1]}}),
        json!({"nbf": NOW_SECONDS, "iat": NOW_SECONDS - 5}),
        json!({"exp": NOW_SECONDS as f64 + 0.5}),
    ] {
        assert!(judge(&token(&with(changes.clone()))).is_ok(), "{changes}");
    }
}

#[test]
fn each_kind_of_key_proves_its_own_tokens() {
    let keys = [
        ("rsa", Algorithm::RS256, EncodingKey::from_rsa_pem(RSA.0.as_bytes()).unwrap()),
        ("ec", Algorithm::ES256, EncodingKey::from_ec_pem(EC.0.as_bytes()).unwrap()),
        ("ed", Algorithm::EdDSA, EncodingKey::from_ed_pem(ED.0.as_bytes()).unwrap()),
    ];
    for (issuer, algorithm, key) in &keys {
        let header = json!({"alg": format!("{algorithm:?}")});
        let text = with(json!({"iss": issuer})).to_string();
        assert!(judge(&signed(&header, &text, key, *algorithm)).is_ok(), "{issuer}");
        for (other, _, _) in keys.iter().filter(|(other, ..)| other != issuer) {
            let text = with(json!({"iss": other})).to_string();
            assert_eq!(judge(&signed(&header, &text, key, *algorithm)), Err(Untaken::Invalid), "{issuer} as {other}");
        }
    }
}

/// Proves: G22.
#[test]
fn s5_no_confusion_of_algorithms_gets_anywhere() {
    // A public key as a shared secret, whole, trimmed, and as its DER.
    let der: String = RSA.1.lines().filter(|line| !line.starts_with("--")).collect();
    let der = base64::engine::general_purpose::STANDARD.decode(der).unwrap();
    for secret in [RSA.1.as_bytes(), RSA.1.trim_end().as_bytes(), &der, ED.1.as_bytes(), b"secret"] {
        for (issuer, algorithm) in [("rsa", "HS256"), ("rsa", "RS256"), ("ed", "HS256"), ("erp", "HS256")] {
            let (header, text) = (json!({"alg": algorithm}), with(json!({"iss": issuer})).to_string());
            let forged = signed(&header, &text, &EncodingKey::from_secret(secret).unwrap(), Algorithm::HS256);
            assert_eq!(judge(&forged), Err(Untaken::Invalid), "{issuer} {algorithm}");
        }
    }
    // Another algorithm of the same family, with the right key.
    let rsa = EncodingKey::from_rsa_pem(RSA.0.as_bytes()).unwrap();
    for (name, algorithm) in [("RS512", Algorithm::RS512), ("PS256", Algorithm::PS256)] {
        let text = with(json!({"iss": "rsa"})).to_string();
        assert_eq!(judge(&signed(&json!({"alg": name}), &text, &rsa, algorithm)), Err(Untaken::Invalid), "{name}");
    }
    let longer = EncodingKey::from_secret(SECRET.as_bytes()).unwrap();
    let other = signed(&json!({"alg": "HS512"}), &claims().to_string(), &longer, Algorithm::HS512);
    assert_eq!(judge(&other), Err(Untaken::Invalid));
    // No signature at all.
    let whole = token(&claims());
    let (message, _) = whole.rsplit_once('.').unwrap();
    assert_eq!(judge(&format!("{message}.")), Err(Untaken::Invalid));
    for alg in ["none", "None", "NONE", "nOnE", "", "hs256"] {
        for signature in ["", "x", whole.rsplit_once('.').unwrap().1] {
            let header = URL_SAFE_NO_PAD.encode(json!({"alg": alg, "typ": "JWT"}).to_string());
            let payload = message.rsplit_once('.').unwrap().1;
            assert_eq!(judge(&format!("{header}.{payload}.{signature}")), Err(Untaken::Invalid), "{alg}");
        }
    }
}

#[test]
fn s5_a_token_that_brings_or_points_to_a_key_is_refused() {
    let jwk = json!({"kty": "oct", "k": URL_SAFE_NO_PAD.encode(SECRET)});
    for more in [
        json!({"jku": "https://evil.test/keys"}),
        json!({"x5u": "https://evil.test/cert"}),
        json!({"jwk": jwk}),
        json!({"x5c": ["AAAA"]}),
        json!({"crit": ["exp"]}),
        json!({"crit": ["b64"], "b64": false}),
        json!({"typ": "secevent+jwt"}),
        json!({"zip": "DEF"}),
    ] {
        let mut header = json!({"alg": "HS256"});
        header.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        assert_eq!(judge(&shared(&header, &claims().to_string())), Err(Untaken::Header), "{more}");
    }
}

#[test]
fn s5_the_name_of_a_key_has_to_be_the_configured_one_and_lets_an_issuer_change_its_key() {
    for kid in ["unknown", "", "../../etc/passwd", "' OR 1=1 --", "old"] {
        let named = shared(&json!({"alg": "HS256", "kid": kid}), &claims().to_string());
        assert_eq!(judge(&named), Err(Untaken::Invalid), "{kid}");
    }
    let (ed, ec) =
        (EncodingKey::from_ed_pem(ED.0.as_bytes()).unwrap(), EncodingKey::from_ec_pem(EC.0.as_bytes()).unwrap());
    let of = |kid: Value, role: &str, key: &EncodingKey, algorithm: Algorithm| {
        let mut header = json!({"alg": format!("{algorithm:?}"), "kid": kid});
        header.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        judge(&signed(&header, &with(json!({"iss": "turning", "role": role})).to_string(), key, algorithm))
    };
    assert!(of(json!("old"), "user", &ed, Algorithm::EdDSA).is_ok());
    assert!(of(json!("new"), "admin", &ec, Algorithm::ES256).is_ok());
    assert_eq!(of(json!("old"), "admin", &ed, Algorithm::EdDSA), Err(Untaken::Role), "each key has its own limit");
    assert_eq!(of(json!("new"), "user", &ed, Algorithm::EdDSA), Err(Untaken::Invalid));
    assert_eq!(of(Value::Null, "user", &ec, Algorithm::ES256), Err(Untaken::Invalid));
}

#[test]
fn s5_every_claim_has_to_be_there_once_and_of_its_kind() {
    for name in ["aud", "sub", "tenant", "role", "exp"] {
        for value in [Value::Null, json!(true), json!({}), json!([1])] {
            assert_eq!(refusal(json!({name: value})), Untaken::Claims, "{name}");
        }
    }
    for exp in [json!("2026-11-29"), json!(-1), json!(1e300)] {
        assert_eq!(refusal(json!({"exp": exp})), Untaken::Claims);
    }
    for iss in [Value::Null, json!(["erp"]), json!("other"), json!("erp "), json!("")] {
        assert_eq!(refusal(json!({"iss": iss})), Untaken::Invalid, "no issuer, no key");
    }
    let twice = claims().to_string().replace("\"role\":\"user\"", "\"role\":\"user\",\"role\":\"operator\"");
    assert_eq!(judge(&shared(&json!({"alg": "HS256"}), &twice)), Err(Untaken::Claims));
}

#[test]
fn s5_a_token_for_another_service_is_refused() {
    for aud in [json!("other"), json!("Taskbell"), json!(["other", "another"]), json!([]), json!("taskbell.evil.test")]
    {
        assert_eq!(refusal(json!({"aud": aud})), Untaken::Audience);
    }
}

#[test]
fn s5_the_end_is_neither_past_nor_more_than_15_minutes_ahead_to_the_second() {
    for (ahead, refused) in [
        (-3_600, Some(Untaken::Ended)),
        (-1, Some(Untaken::Ended)),
        (0, Some(Untaken::Ended)),
        (1, None),
        (900, None),
        (901, Some(Untaken::TooLongLived)),
        (86_400 * 365, Some(Untaken::TooLongLived)),
    ] {
        assert_eq!(judge(&token(&with(json!({"exp": NOW_SECONDS + ahead})))).err(), refused, "{ahead}");
    }
}

#[test]
fn s5_clocks_may_differ_by_a_minute_and_no_more() {
    for name in ["nbf", "iat"] {
        for (ahead, taken) in [(-86_400, true), (0, true), (60, true), (61, false), (3_600, false)] {
            let judged = judge(&token(&with(json!({name: NOW_SECONDS + ahead}))));
            assert_eq!(judged.err(), (!taken).then_some(Untaken::NotYet), "{name} {ahead}");
        }
    }
}

#[test]
fn no_token_goes_beyond_what_its_issuer_may_give() {
    for (role, taken) in [("user", true), ("operator", true), ("admin", false), ("platform", false), ("king", false)] {
        assert_eq!(judge(&token(&with(json!({"role": role})))).err(), (!taken).then_some(Untaken::Role), "{role}");
    }
    for changes in [json!({"tenant": "*"}), json!({"tenant": ""}), json!({"sub": ""}), json!({"sub": "a\u{0}b"})] {
        assert!(matches!(refusal(changes.clone()), Untaken::Who(_)), "{changes}");
    }
}

#[test]
fn s5_what_is_no_token_is_refused_and_a_huge_one_before_any_work() {
    let whole = token(&claims());
    for text in
        ["", ".", "..", "...", "a.b.c", "a.b", "Bearer x", &whole[1..], &format!("{whole}.x"), "\u{0}.\u{0}.\u{0}"]
    {
        assert_eq!(judge(text), Err(Untaken::Invalid), "{text}");
    }
    for cut in 1..20 {
        assert!(judge(&whole[..whole.len() - cut]).is_err());
    }
    let huge = token(&with(json!({"more": "x".repeat(1 << 20)})));
    assert_eq!(judge(&huge), Err(Untaken::TooLong));
    assert_eq!(judge(&"x".repeat(1 << 20)), Err(Untaken::TooLong));
    let at_most = MOST_BYTES - whole.len() - 20;
    assert!(judge(&token(&with(json!({"more": "x".repeat(at_most * 3 / 4)})))).is_ok());
    assert_eq!(Issuers::default().caller(&whole, NOW), Err(Untaken::Invalid), "without issuers none is taken");
}

#[test]
fn a_key_of_another_kind_is_no_key() {
    for (algorithm, key) in [
        (Algorithm::RS256, ED.1),
        (Algorithm::RS256, SECRET),
        (Algorithm::ES256, RSA.1),
        (Algorithm::EdDSA, EC.1),
        (Algorithm::HS256, ""),
        (Algorithm::HS512, SECRET),
    ] {
        assert!(Issuer::new(parts("x", algorithm, key)).is_err(), "{algorithm:?}");
    }
    let shown = format!("{:?}", issuers());
    assert!(!shown.contains("shared secret"), "{shown}");
}
