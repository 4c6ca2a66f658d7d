//! Tokens of configured issuers, on the API and on the WebSocket. What a token must hold to be taken is told rule by rule
//! beside the code; here it is told what a taken one may do, and for how long.

use crate::support::api::{Api, Client, LISTED, principal, send};
use crate::support::socket::Socket;
use jsonwebtoken::{EncodingKey, Header, encode};
use reqwest::Method;
use serde_json::json;
use taskbell::core::principal::Role;
use taskbell::web::auth::jwt::{Algorithm, Issuer, IssuerParts, Issuers};

const SECRET: &str = "a shared secret of 32 bytes or so";

async fn start() -> Api {
    let erp = IssuerParts {
        issuer: "erp",
        audience: "taskbell",
        kid: None,
        algorithm: Algorithm::HS256,
        max_role: Role::Operator,
        key: SECRET,
    };
    Api::start_set(|settings| settings.issuers = Issuers::new(vec![Issuer::new(erp).unwrap()])).await
}

/// A token of the issuer for a user, some seconds long.
fn token(api: &Api, user: &str, role: &str, seconds: i64) -> String {
    let exp = api.state.clock.now().0 / 1_000 + seconds;
    let claims = json!({"iss": "erp", "aud": "taskbell", "sub": user, "tenant": "default", "role": role, "exp": exp});
    encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes()).unwrap()).unwrap()
}

fn with(api: &Api, token: &str) -> Client {
    api.nobody().with_key(Some(token.to_owned()))
}

#[tokio::test]
async fn a_token_reads_and_submits_as_its_user_within_its_role() {
    let api = start().await;
    let alice = with(&api, &token(&api, "alice", "user", 600));
    let id = alice.new_task(json!({"action": "ok"})).await;
    assert_eq!(alice.until(&id, "succeeded").await["owner"], "alice");
    let bob = with(&api, &token(&api, "bob", "user", 600));
    assert_eq!(bob.get(&format!("/api/v1/tasks/{id}")).await.status, 404);
    assert_eq!(bob.get("/api/v1/tasks?scope=tenant").await.status, 403);
    let olga = with(&api, &token(&api, "olga", "operator", 600));
    assert_eq!(olga.get(&format!("/api/v1/tasks/{id}")).await.status, 200);
    assert_eq!(olga.submit(json!({"action": "for-admins"})).await.status, 404);
    let refused = alice.submit(json!({"action": "ok", "owner": "bob"})).await;
    assert_eq!((refused.status, refused.code()), (403, "forbidden"), "submitting for others is a scope of keys");
}

#[tokio::test]
async fn a_refused_token_says_why_once_its_signature_was_right_and_counts_for_no_route() {
    let api = start().await;
    for (token, told) in [
        (token(&api, "root", "admin", 600), "above what its issuer may give"),
        (token(&api, "alice", "user", 0), "has ended"),
        (token(&api, "alice", "user", 3_600), "more than 15 minutes ahead"),
        (format!("{}x", token(&api, "alice", "user", 600)), "not valid here"),
        ("eyJhbGciOiJub25lIn0.e30.".to_owned(), "not valid here"),
        ("x".repeat(30_000), "more than 8192 bytes"),
        (String::new(), "Sign in"),
    ] {
        let answer = with(&api, &token).get("/api/v1/tasks").await;
        assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{told}");
        assert!(answer.text.contains(told) && !answer.text.contains(SECRET), "{}", answer.text);
        assert_eq!(answer.header("www-authenticate"), "Bearer");
    }
    let cookie = format!("__Host-taskbell={}", api.session(principal("default", "a", Role::User)).await);
    let wrong = api.nobody().request(Method::GET, "/api/v1/tasks").bearer_auth("wrong").header("cookie", cookie);
    assert_eq!(send(wrong).await.status, 401, "a cookie does not make a wrong token good");
}

#[tokio::test]
async fn a_token_ends_to_the_moment_on_the_api() {
    let api = start().await;
    let alice = with(&api, &token(&api, "alice", "user", 600));
    assert_eq!(alice.get("/api/v1/tasks").await.status, 200);
    api.pass(590_000);
    assert_eq!(alice.get("/api/v1/tasks").await.status, 200);
    api.pass(10_000);
    assert_eq!(alice.get("/api/v1/tasks").await.status, 401);
}

#[tokio::test]
async fn a_token_opens_a_socket_by_header_or_in_the_hello_from_a_listed_page_or_none() {
    let api = start().await;
    let token = token(&api, "alice", "user", 600);
    let bearer = format!("Bearer {token}");
    for (headers, in_hello) in
        [(vec![("authorization", bearer.as_str())], false), (vec![], true), (vec![("origin", LISTED)], true)]
    {
        let mut socket = Socket::open(&api.base, &headers).await;
        socket.say(json!({"t": "hello", "token": in_hello.then_some(&token)})).await;
        socket.frame("welcome").await;
        assert_eq!(socket.frame("snap").await["items"], json!([]), "{headers:?}");
    }
    for bad in [format!("{token}x"), self::token(&api, "root", "platform", 600), "x".repeat(20_000)] {
        let mut socket = Socket::open(&api.base, &[]).await;
        socket.say(json!({"t": "hello", "token": bad})).await;
        assert_eq!(socket.frame("err").await["code"], "unauthorized");
        assert_eq!(socket.close_code().await, 4001);
    }
}

#[tokio::test]
async fn a_socket_is_warned_before_its_token_ends_and_does_not_outlive_it() {
    let api = start().await;
    let mut socket = Socket::open(&api.base, &[]).await;
    socket.say(json!({"t": "hello", "token": token(&api, "alice", "user", 4)})).await;
    let left = socket.frame("auth").await["expiresInMs"].as_i64().unwrap();
    assert!((1..=4_000).contains(&left), "{left}");
    assert_eq!(socket.close_code().await, 4001);
    assert!(api.state.hub.connection_count() <= 1);
}

#[tokio::test]
async fn a_new_token_of_the_same_user_goes_on_with_the_socket_and_no_other_does() {
    let api = start().await;
    let mut socket = Socket::open(&api.base, &[]).await;
    socket.say(json!({"t": "hello", "token": token(&api, "alice", "user", 5)})).await;
    socket.frame("auth").await;
    for (other, code) in [
        (token(&api, "bob", "user", 600), "forbidden"),
        (token(&api, "alice", "admin", 600), "unauthorized"),
        (token(&api, "alice", "user", 0), "unauthorized"),
    ] {
        socket.say(json!({"t": "refresh", "token": other})).await;
        assert_eq!(socket.frame("err").await["code"], code);
    }
    // The next one is longer than the first and shorter than the warning: it is told its own end.
    socket.say(json!({"t": "refresh", "token": token(&api, "alice", "operator", 30)})).await;
    let left = socket.frame("auth").await["expiresInMs"].as_i64().unwrap();
    assert!((15_000..=30_000).contains(&left), "{left}");
}
