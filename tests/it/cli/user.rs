//! `taskbell user …` and `taskbell key …` beside a server that is up.

use super::{Ran, taskbell_told};
use crate::support::server::{Server, Spec};
use reqwest::redirect::Policy;

const PASSWORD: &str = "correct horse battery";

async fn server() -> Server {
    Spec::with_config("[database]\nurl = \"sqlite://data/taskbell.db\"\n").start().await
}

/// Runs the binary beside a server, with its configuration.
async fn beside(server: &Server, args: &[&str], input: &str) -> Ran {
    let config = [&["--config", "taskbell.toml"], args].concat();
    taskbell_told(server.folder(), &config, &server.env(), input).await
}

async fn sign_in(server: &Server, user: &str, password: &str) -> (u16, String) {
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let body = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("user", user), ("password", password)])
        .finish();
    let request = http.post(format!("{}/login", server.url())).body(body);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    let cookie = answer.headers().get("set-cookie").map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default();
    (answer.status().as_u16(), cookie.split(';').next().unwrap_or_default().to_owned())
}

async fn reads(server: &Server, cookie: &str) -> u16 {
    let http = reqwest::Client::new();
    http.get(format!("{}/api/v1/tasks", server.url())).header("cookie", cookie).send().await.unwrap().status().as_u16()
}

#[tokio::test]
async fn a_user_is_added_beside_a_running_server_and_signs_in_at_once() {
    let server = server().await;
    let added = beside(&server, &["user", "add", "alice", "--role", "user"], &format!("{PASSWORD}\n")).await;
    assert_eq!((added.status, added.err.as_str()), (0, ""));
    assert_eq!(added.out, "alice: added with the role user in the tenant default\n");
    let (status, cookie) = sign_in(&server, "alice", PASSWORD).await;
    assert_eq!((status, reads(&server, &cookie).await), (303, 200));
    assert_eq!(sign_in(&server, "alice", "correct horse batterz").await.0, 401);
    assert!(!server.said().contains(PASSWORD));
    let hashed = "SELECT CAST(length(password) AS BIGINT) FROM taskbell_users WHERE name = 'alice' AND password LIKE '$argon2id$v=19$m=%'";
    let lengths = server.ground().numbers("data/taskbell.db", hashed).await;
    assert!(matches!(lengths[..], [length] if length > 90), "stored as a hash only: {lengths:?}");
}

#[tokio::test]
async fn what_cannot_be_a_user_is_refused_with_the_rule_and_changes_nothing() {
    let server = server().await;
    let add = async |args: &[&str], input: &str| beside(&server, &[&["user", "add"], args].concat(), input).await;
    assert_eq!(add(&["alice", "--role", "user"], PASSWORD).await.status, 0);
    let (long, name) = ("x".repeat(1_025), "n".repeat(101));
    for (args, input, told) in [
        (&["alice", "--role", "admin", "--tenant", "other"][..], "another good one", "there is a user `alice` already"),
        (&["bob", "--role", "user"], "short", "the password must have at least 8 characters"),
        (&["bob", "--role", "user"], "", "the password must have at least 8 characters"),
        (&["bob", "--role", "user"], &long, "the password must have at most 1024 bytes"),
        (&[&name, "--role", "user"], PASSWORD, "the name must have 1 to 100 characters"),
        (&["", "--role", "user"], PASSWORD, "the name must have 1 to 100 characters"),
        (&["bob", "--role", "admin", "--tenant", "*"], PASSWORD, "the tenant * is for the role platform"),
        (&["bob", "--role", "king"], PASSWORD, "king"),
        (&["bob"], PASSWORD, "--role"),
    ] {
        let ran = add(args, input).await;
        assert_eq!((ran.status, ran.out.as_str()), (3, ""), "{args:?}");
        assert!(ran.err.contains(told), "{args:?}: {}", ran.err);
        assert!(input.is_empty() || !ran.err.contains(input), "a password is in {}", ran.err);
    }
    let list = beside(&server, &["user", "list"], "").await.out;
    assert!(list.starts_with("alice\tdefault\tuser\t") && list.lines().count() == 1, "{list}");
    assert_eq!(sign_in(&server, "alice", PASSWORD).await.0, 303, "the first alice is as she was");
}

#[tokio::test]
async fn password_role_and_removal_take_effect_on_a_running_server() {
    let server = server().await;
    beside(&server, &["user", "add", "root", "--role", "platform"], PASSWORD).await;
    assert!(beside(&server, &["user", "list"], "").await.out.starts_with("root\t*\tplatform\t"));
    assert_eq!(beside(&server, &["user", "role", "root", "admin"], "").await.status, 3, "* is for platform");
    beside(&server, &["user", "add", "alice", "--role", "user", "--tenant", "north"], PASSWORD).await;
    let (_, cookie) = sign_in(&server, "alice", PASSWORD).await;
    let (_, other) = sign_in(&server, "root", PASSWORD).await;
    assert_eq!(beside(&server, &["user", "passwd", "alice"], "a better password\n").await.status, 0);
    assert_eq!((reads(&server, &cookie).await, sign_in(&server, "alice", PASSWORD).await.0), (401, 401));
    let (_, cookie) = sign_in(&server, "alice", "a better password").await;
    assert_eq!(beside(&server, &["user", "role", "alice", "operator"], "").await.status, 0);
    assert_eq!(reads(&server, &cookie).await, 401);
    assert!(beside(&server, &["user", "list"], "").await.out.contains("alice\tnorth\toperator\t"));
    let (_, cookie) = sign_in(&server, "alice", "a better password").await;
    assert_eq!(beside(&server, &["user", "remove", "alice"], "").await.status, 0);
    assert_eq!((reads(&server, &cookie).await, sign_in(&server, "alice", "a better password").await.0), (401, 401));
    assert_eq!(reads(&server, &other).await, 200);
    for args in [&["user", "passwd", "alice"][..], &["user", "role", "alice", "user"], &["user", "remove", "alice"]] {
        let ran = beside(&server, args, "a better password").await;
        assert_eq!((ran.status, ran.err.contains("there is no user `alice`")), (3, true), "{args:?}: {}", ran.err);
    }
}

#[tokio::test]
async fn a_key_is_listed_without_its_text_and_does_nothing_after_it_was_taken_back() {
    let server = server().await;
    let (alice, bob) = (server.client("alice", "user").await, server.client("bob", "operator").await);
    assert_eq!((alice.get("/api/v1/tasks").await.0, bob.get("/api/v1/tasks").await.0), (200, 200));
    let list = beside(&server, &["key", "list"], "").await.out;
    assert!(list.lines().count() == 2 && !list.contains("tb_"), "{list}");
    assert!(list.contains("\tdefault\tbob\toperator\ttasks:read,tasks:write\t"), "{list}");
    let id = list.lines().find(|l| l.contains("\tbob\t")).unwrap().split('\t').next().unwrap();
    for named in [id, alice.key.as_str()] {
        let ran = beside(&server, &["key", "revoke", named], "").await;
        assert_eq!(ran.status, 0, "{}", ran.err);
        assert_eq!(beside(&server, &["key", "revoke", named], "").await.status, 3, "it is gone");
    }
    for client in [&alice, &bob] {
        assert_eq!(client.get("/api/v1/tasks").await.0, 401, "the next request");
    }
    assert_eq!(beside(&server, &["key", "revoke", "ab"], "").await.status, 3, "too short to mean one key");
}
