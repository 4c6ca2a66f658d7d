//! Secrets that are shown to a real server, rightly or wrongly: none proves anyone in an address, and none comes into its log.

use super::raw::{Got, Raw};
use crate::support::server::{Client, Server, Spec};
use jsonwebtoken::{EncodingKey, Header, encode};
use reqwest::redirect::Policy;
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

const PASSWORD: &str = "planted-password-7f3a";
const ISSUER_SECRET: &str = "planted-issuer-secret-of-32-bytes-or-so";
const CONFIG: &str = r#"
[database]
url = "sqlite://data/taskbell.db"
[log]
level = "debug"
[auth]
jwt = [{ issuer = "erp", max_role = "operator", secret = { env = "PLANTED_ISSUER_SECRET" } }]
"#;

async fn server(level: &str) -> Server {
    let spec = Spec::with_config(CONFIG).env("PLANTED_ISSUER_SECRET", ISSUER_SECRET);
    spec.env("TASKBELL__LOG__LEVEL", level).start().await
}

/// A token of the issuer, so many seconds long.
fn token(seconds: i64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
    let claims = json!({"iss": "erp", "aud": "taskbell", "sub": "alice", "tenant": "default", "role": "user", "exp": now + seconds});
    encode(&Header::default(), &claims, &EncodingKey::from_secret(ISSUER_SECRET.as_bytes()).unwrap()).unwrap()
}

/// The cookie of a sign-in, if it was one.
async fn sign_in(server: &Server, password: &str) -> Option<String> {
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let form = http.post(format!("{}/login", server.url())).header("origin", server.url());
    let form = form.header("content-type", "application/x-www-form-urlencoded");
    let answer = form.body(format!("user=alice&password={password}")).send().await.unwrap();
    let set = answer.headers().get("set-cookie")?.to_str().unwrap().to_owned();
    Some(set.split(';').next().unwrap().to_owned())
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_a_token_in_an_address_proves_nobody() {
    let server = server("info").await;
    let key = server.client("alice", "user").await.key;
    let http = reqwest::Client::new();
    for secret in [&key, &token(600)] {
        for name in ["token", "access_token", "key", "api_key", "apikey", "authorization", "bearer", "jwt", "auth", "t"]
        {
            let path = format!("/api/v1/tasks?{name}={secret}");
            let status = http.get(format!("{}{path}", server.url())).send().await.unwrap().status();
            assert_eq!(status.as_u16(), 401, "{name}");
            let (status, mut raw) = Raw::ask_at(&server, &format!("/api/v1/ws?{name}={secret}"), &[]).await;
            if status == 101 {
                raw.say(r#"{"t":"hello"}"#).await;
                assert_eq!(raw.frame("err").await["code"], "unauthorized", "{name}");
                assert_eq!(raw.end().await, Got::Closed(4001), "{name}");
            }
        }
        let with_user = server.url().replace("http://", &format!("http://{secret}:{secret}@"));
        assert_eq!(http.get(format!("{with_user}/api/v1/tasks")).send().await.unwrap().status().as_u16(), 401);
    }
}

/// Proves: G23.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s2_no_secret_that_was_shown_comes_into_the_log_at_any_level() {
    for level in ["debug", "trace"] {
        let server = server(level).await;
        let key = server.client("alice", "user").await.key;
        server.command_told(&["user", "add", "alice", "--role", "user"], &format!("{PASSWORD}\n")).await;
        let cookie = sign_in(&server, PASSWORD).await.expect("the password is right");
        let wrong_password = "planted-wrong-password-19";
        assert_eq!(sign_in(&server, wrong_password).await, None);
        let wrong_key = format!("tb_{}", "planted0".repeat(5));
        let wrong_cookie = format!("{}=planted-wrong-cookie-4711", cookie.split('=').next().unwrap());
        let tokens = [token(600), token(-600), format!("{}planted", token(600))];
        let keys = [&key, &wrong_key].into_iter().chain(&tokens);
        for secret in keys.clone() {
            let client = Client::new(&server.url(), secret);
            client.get("/api/v1/tasks").await;
            client.get(&format!("/api/v1/tasks?token={secret}&q={secret}")).await;
            client.get(&format!("/api/v1/tasks/{secret}")).await;
            client.post("/api/v1/tasks", &json!({"action": secret, "params": {"password": PASSWORD}})).await;
            let bearer = format!("Bearer {secret}");
            Raw::ask_at(&server, &format!("/api/v1/ws?token={secret}"), &[("authorization", bearer.as_bytes())]).await;
            let (_, mut raw) = Raw::ask(&server, &[]).await;
            raw.say(&json!({"t": "hello", "token": secret}).to_string()).await;
            raw.say(&json!({"t": "refresh", "token": secret}).to_string()).await;
            raw.say(&json!({"t": secret, "topic": secret}).to_string()).await;
            raw.say(&json!({"t": "sub", "topic": format!("task:{secret}")}).to_string()).await;
            raw.say("no frame at all").await;
            raw.next().await;
        }
        let origin = server.url();
        for cookie in [&cookie, &wrong_cookie] {
            for path in ["/", "/api/v1/tasks", "/tasks/none", "/no/such/page"] {
                let request = reqwest::Client::new().get(format!("{origin}{path}")).header("cookie", cookie);
                request.send().await.unwrap();
            }
            let headers = [("cookie", cookie.as_bytes()), ("origin", origin.as_bytes())];
            Raw::ask(&server, &headers).await.1.say(r#"{"t":"hello"}"#).await;
        }
        // Whatever is said of it all is said by now: the server answers one thing after the other.
        assert_eq!(Client::new(&server.url(), &key).get("/api/v1/tasks").await.0, 200);
        let said = server.said();
        assert!(said.contains("a request was refused"), "it tells of its doing:\n{said}");
        let of_cookies = [&cookie, &wrong_cookie].map(|cookie| cookie.split_once('=').unwrap().1.to_owned());
        let signatures = tokens.each_ref().map(|token| token.rsplit('.').next().unwrap().to_owned());
        let rest = [PASSWORD, wrong_password, ISSUER_SECRET].map(str::to_owned);
        let planted = keys.cloned().chain(of_cookies).chain(signatures).chain(rest);
        for secret in planted {
            let line = said.lines().find(|line| line.contains(&secret));
            assert_eq!(line, None, "at {level} the log holds {secret}");
        }
    }
}
