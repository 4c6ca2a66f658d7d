//! The sign-in by name and password: what it takes, what it refuses, how long it lasts, and what ends it.

use crate::support::api::{Answer, Api, LISTED, send};
use crate::support::socket::Socket;
use reqwest::Method;
use reqwest::redirect::Policy;
use serde_json::json;
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use taskbell::store::UserChange;
use taskbell::store::accounts::{SESSION_IDLE_MS, SESSION_MS};
use taskbell::web::auth::password::hash_password;

const PASSWORD: &str = "correct horse battery";
/// Long beside the two seconds after which sockets are held against the database.
const LIMIT: Duration = Duration::from_secs(15);

/// A browser, as far as it matters here: follows nowhere, and says what it is told to say.
async fn post(api: &Api, path: &str, form: &[(&str, &str)], headers: &[(&str, &str)]) -> Answer {
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let body: String = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let mut request = http.post(format!("{}{path}", api.base)).body(body);
    request = request.header("content-type", "application/x-www-form-urlencoded").header("accept", "text/html");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    send(request).await
}

async fn sign_in(api: &Api, user: &str, password: &str) -> Answer {
    post(api, "/login", &[("user", user), ("password", password)], &[("origin", &api.base)]).await
}

/// The cookie that a sign-in gave, as it is sent back.
fn cookie(answer: &Answer) -> String {
    assert_eq!(answer.status, 303, "{}", answer.text);
    answer.header("set-cookie").split(';').next().unwrap().to_owned()
}

async fn get(api: &Api, path: &str, cookie: &str) -> Answer {
    send(api.nobody().request(Method::GET, path).header("cookie", cookie)).await
}

async fn alice(api: &Api) -> String {
    api.user("alice", Role::User, PASSWORD).await;
    cookie(&sign_in(api, "alice", PASSWORD).await)
}

#[tokio::test]
async fn a_right_password_opens_a_session_with_the_role_of_the_user() {
    let api = Api::start().await;
    for (name, role, status) in [("alice", Role::User, 403), ("olga", Role::Operator, 200)] {
        api.user(name, role, PASSWORD).await;
        let answer = sign_in(&api, name, PASSWORD).await;
        assert_eq!(answer.header("location"), "/");
        let set = answer.header("set-cookie");
        for part in ["__Host-taskbell=", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"] {
            assert!(set.contains(part), "{set}");
        }
        assert!(!set.contains("Domain"));
        let cookie = cookie(&answer);
        assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 200);
        assert_eq!(get(&api, "/api/v1/tasks?scope=tenant", &cookie).await.status, status, "{name}");
    }
}

#[tokio::test]
async fn a_wrong_password_and_an_unknown_name_are_told_alike_and_open_nothing() {
    let api = Api::start().await;
    api.user("alice", Role::User, PASSWORD).await;
    let mut told = Vec::new();
    for (user, password) in
        [("alice", "wrong horse battery"), ("nobody", PASSWORD), ("alice", ""), ("", ""), ("Alice", PASSWORD)]
    {
        let answer = sign_in(&api, user, password).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (401, ""), "{user} {password}");
        assert!(!answer.text.contains(PASSWORD) && !answer.text.contains("wrong horse"), "no password is sent back");
        told.push(answer.text.replace(&format!("value=\"{user}\""), "value=\"\"").replace(" autofocus", ""));
    }
    assert!(told.iter().all(|text| *text == told[0] && text.contains("not right")), "{told:#?}");
    let long = sign_in(&api, "alice", &"x".repeat(100_000)).await;
    assert_eq!(long.status, 401);
    for nobody in ["x".repeat(101), "a\0b".to_owned(), " alice".to_owned()] {
        assert_eq!(sign_in(&api, &nobody, PASSWORD).await.status, 401, "{nobody:?}");
    }
}

#[tokio::test]
async fn each_sign_in_is_a_new_session_and_ends_the_one_before() {
    let api = Api::start().await;
    let first = alice(&api).await;
    let form = [("user", "alice"), ("password", PASSWORD)];
    let second = cookie(&post(&api, "/login", &form, &[("origin", &api.base), ("cookie", &first)]).await);
    assert_ne!(first, second);
    assert_eq!(
        get(&api, "/api/v1/tasks", &first).await.status,
        401,
        "an id that was handed out before is worth nothing"
    );
    assert_eq!(get(&api, "/api/v1/tasks", &second).await.status, 200);
    let planted = "__Host-taskbell=planted-by-somebody-else";
    let third = cookie(&post(&api, "/login", &form, &[("origin", &api.base), ("cookie", planted)]).await);
    assert_ne!(third, planted);
    assert_eq!(get(&api, "/api/v1/tasks", planted).await.status, 401);
    assert_eq!(get(&api, "/api/v1/tasks", &second).await.status, 200, "other browsers stay signed in");
}

#[tokio::test]
async fn a_session_ends_when_it_was_idle_for_too_long_and_at_the_latest_after_its_whole_time() {
    let api = Api::start().await;
    let used = alice(&api).await;
    let left = cookie(&sign_in(&api, "alice", PASSWORD).await);
    for _ in 0..(SESSION_MS / (SESSION_IDLE_MS - 120_000)) {
        api.pass(SESSION_IDLE_MS - 120_000);
        assert_eq!(get(&api, "/api/v1/tasks", &used).await.status, 200, "it was used in time");
    }
    assert_eq!(get(&api, "/api/v1/tasks", &left).await.status, 401, "it was left alone");
    api.pass(SESSION_MS % (SESSION_IDLE_MS - 120_000));
    assert_eq!(get(&api, "/api/v1/tasks", &used).await.status, 401, "its whole time is over");
}

#[tokio::test]
async fn a_new_password_another_role_or_removal_ends_the_sessions_of_the_user() {
    let api = Api::start().await;
    let mut cookie = alice(&api).await;
    let olga = {
        api.user("olga", Role::Operator, PASSWORD).await;
        self::cookie(&sign_in(&api, "olga", PASSWORD).await)
    };
    let store = &api.node.store;
    let password = UserChange { password: Some(hash_password("another good one").unwrap()), role: None };
    assert!(store.change_user("alice", password, api.state.clock.now()).await.unwrap());
    assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 401);
    assert_eq!(sign_in(&api, "alice", PASSWORD).await.status, 401);
    cookie = self::cookie(&sign_in(&api, "alice", "another good one").await);
    let role = UserChange { password: None, role: Some(Role::Operator) };
    assert!(store.change_user("alice", role, api.state.clock.now()).await.unwrap());
    assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 401);
    cookie = self::cookie(&sign_in(&api, "alice", "another good one").await);
    assert_eq!(get(&api, "/api/v1/tasks?scope=tenant", &cookie).await.status, 200);
    assert!(store.remove_user("alice").await.unwrap());
    assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 401);
    assert_eq!(sign_in(&api, "alice", "another good one").await.status, 401);
    assert_eq!(get(&api, "/api/v1/tasks", &olga).await.status, 200, "nobody else is touched");
}

#[tokio::test]
async fn twenty_bad_sign_ins_slow_the_account_down_and_time_heals() {
    let api = Api::start().await;
    api.user("alice", Role::User, PASSWORD).await;
    api.user("bob", Role::User, PASSWORD).await;
    let mut slowed = None;
    for n in 0..20 {
        let answer = sign_in(&api, "alice", &format!("guess number {n}")).await;
        if answer.status == 429 {
            slowed = Some(answer);
            break;
        }
        assert_eq!(answer.status, 401);
    }
    let slowed = slowed.expect("the account is slowed down within 20 attempts");
    let wait: i64 = slowed.header("retry-after").parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    assert!(slowed.text.contains(&format!("Try again in {wait} seconds")), "{}", slowed.text);
    let right = sign_in(&api, "alice", PASSWORD).await;
    assert_eq!((right.status, right.header("set-cookie")), (429, ""), "the right password would tell that it is right");
    cookie(&sign_in(&api, "bob", PASSWORD).await);
    api.pass(wait * 1_000);
    cookie(&sign_in(&api, "alice", PASSWORD).await);
}

#[tokio::test]
async fn twenty_bad_sign_ins_slow_the_address_down_whomever_they_try() {
    let proxy = ["127.0.0.1/32".parse().unwrap()];
    let api = Api::start_set(|settings| settings.trusted_proxies = proxy.to_vec()).await;
    let from = async |user: &str, address: &str| {
        let headers = [("origin", api.base.as_str()), ("x-forwarded-for", address)];
        post(&api, "/login", &[("user", user), ("password", "a guess of mine")], &headers).await.status
    };
    for n in 0..20 {
        assert_eq!(from(&format!("user-{n}"), "198.51.100.7").await, 401);
    }
    assert_eq!(from("one-more", "198.51.100.7").await, 429);
    assert_eq!(from("one-more", "198.51.100.8").await, 401, "somebody else behind the same proxy");
}

#[tokio::test]
async fn a_form_of_another_page_signs_nobody_in() {
    let api = Api::start().await;
    api.user("alice", Role::User, PASSWORD).await;
    let form = [("user", "alice"), ("password", PASSWORD)];
    for headers in [
        &[("origin", LISTED)][..],
        &[("origin", "https://evil.test")],
        &[("origin", "null")],
        &[("sec-fetch-site", "cross-site")],
        &[("sec-fetch-site", "same-site")],
        &[("origin", api.base.as_str()), ("sec-fetch-site", "cross-site")],
    ] {
        let answer = post(&api, "/login", &form, headers).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, ""), "{headers:?}");
    }
    let own = [("origin", api.base.as_str()), ("sec-fetch-site", "same-origin")];
    assert_eq!(post(&api, "/login", &form, &own).await.status, 303);
    let text = api.nobody().request(Method::POST, "/login").body("user=alice").header("content-type", "text/plain");
    assert_eq!(send(text).await.status, 415);
}

#[tokio::test]
async fn after_the_sign_in_only_paths_of_ours_are_gone_to() {
    let api = Api::start().await;
    api.user("alice", Role::User, PASSWORD).await;
    for (next, to) in [
        ("/tasks/1?a=b", "/tasks/1?a=b"),
        ("https://evil.test/", "/"),
        ("//evil.test", "/"),
        ("/\\evil.test", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ] {
        let form = [("user", "alice"), ("password", PASSWORD), ("next", next)];
        let answer = post(&api, "/login", &form, &[("origin", &api.base)]).await;
        assert_eq!((answer.status, answer.header("location")), (303, to), "{next}");
    }
}

#[tokio::test]
async fn over_plain_http_from_elsewhere_a_password_is_refused_in_words_unless_it_is_allowed() {
    let form = [("user", "alice"), ("password", PASSWORD)];
    let refusing = Api::start_set(|s| s.public_origin = Some("https://tasks.example.com".into())).await;
    let allowing = Api::start_set(|s| s.insecure_http = true).await;
    for api in [&refusing, &allowing] {
        api.user("alice", Role::User, PASSWORD).await;
    }
    let plain = [
        vec![("host", "192.0.2.5:8080"), ("origin", "http://192.0.2.5:8080")],
        vec![("host", "192.0.2.5:8080")],
        vec![("host", "192.0.2.5:8080"), ("x-forwarded-proto", "https")],
    ];
    for headers in &plain {
        let answer = post(&refusing, "/login", &form, headers).await;
        assert_eq!((answer.status, answer.header("set-cookie")), (403, ""), "{headers:?}");
        assert!(answer.text.contains("plain http"), "{}", answer.text);
    }
    for headers in [
        vec![("host", "tasks.example.com"), ("origin", "https://tasks.example.com")],
        vec![("host", "tasks.example.com")],
        vec![("host", "localhost:8080"), ("origin", "http://localhost:8080")],
    ] {
        let answer = post(&refusing, "/login", &form, &headers).await;
        assert_eq!(answer.status, 303, "{headers:?}");
        assert!(answer.header("set-cookie").contains("Secure"));
    }
    let answer = post(&allowing, "/login", &form, &plain[0]).await;
    assert_eq!(answer.status, 303);
    let set = answer.header("set-cookie");
    assert!(set.starts_with("taskbell=") && set.contains("HttpOnly; SameSite=Lax") && !set.contains("Secure"), "{set}");
    assert_eq!(get(&allowing, "/api/v1/tasks", &cookie(&answer)).await.status, 200);
}

#[tokio::test]
async fn a_sign_out_needs_the_token_of_its_form_and_ends_the_session() {
    let api = Api::start().await;
    let cookie = alice(&api).await;
    let headers = [("origin", api.base.as_str()), ("cookie", cookie.as_str())];
    for token in ["", "wrong"] {
        assert_eq!(post(&api, "/logout", &[("csrf", token)], &headers).await.status, 403);
    }
    assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 200);
    let page = get(&api, "/", &cookie).await.text;
    let token = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let answer = post(&api, "/logout", &[("csrf", token)], &headers).await;
    assert_eq!((answer.status, answer.header("location")), (303, "/login"));
    assert!(answer.header("set-cookie").contains("Max-Age=0"));
    assert_eq!(get(&api, "/api/v1/tasks", &cookie).await.status, 401);
    assert_eq!(api.nobody().submit(json!({"action": "ok"})).await.status, 401);
}

#[tokio::test]
async fn outside_of_the_demo_its_users_do_not_exist() {
    let api = Api::start().await;
    for user in ["user", "admin"] {
        for password in ["", PASSWORD] {
            assert_eq!(sign_in(&api, user, password).await.status, 401, "{user}");
        }
    }
    let demo = Api::start_demo().await;
    assert_eq!(get(&demo, "/api/v1/tasks", &cookie(&sign_in(&demo, "admin", "").await)).await.status, 200);
}

/// Proves: G22.
#[tokio::test]
async fn s4_sockets_of_a_session_end_within_seconds_of_its_sign_out_or_of_a_change_of_its_user() {
    let api = Api::start().await;
    let (first, second) = (alice(&api).await, cookie(&sign_in(&api, "alice", PASSWORD).await));
    let open = async |cookie: &str| {
        let mut socket = Socket::open(&api.base, &[("origin", &api.base), ("cookie", cookie)]).await;
        socket.say(json!({"t": "hello"})).await;
        socket.frame("snap").await;
        socket
    };
    let (mut ended, mut kept) = (open(&first).await, open(&second).await);
    let page = get(&api, "/", &first).await.text;
    let token = page.split("name=\"csrf\" value=\"").nth(1).unwrap().split('"').next().unwrap();
    let headers = [("origin", api.base.as_str()), ("cookie", first.as_str())];
    let started = Instant::now();
    assert_eq!(post(&api, "/logout", &[("csrf", token)], &headers).await.status, 303);
    assert_eq!(ended.close_code().await, 4001);
    assert!(started.elapsed() < LIMIT);
    kept.say(json!({"t": "sync"})).await;
    kept.frame("snap").await;
    // As another node, or the command line, does it: only the database knows.
    let role = UserChange { password: None, role: Some(Role::Operator) };
    let started = Instant::now();
    assert!(api.node.store.change_user("alice", role, api.state.clock.now()).await.unwrap());
    assert_eq!(kept.close_code().await, 4001);
    assert!(started.elapsed() < LIMIT);
}

/// The pages and files that anybody may have; every other route needs somebody who is signed in.
const OPEN: &[(&str, &str)] =
    &[("GET", "/login"), ("POST", "/login"), ("POST", "/lang"), ("GET", "/static/{*path}"), ("GET", "/api/docs")];

/// Proves: G22.
#[tokio::test]
async fn outside_of_the_demo_every_page_and_form_leads_a_stranger_to_the_sign_in() {
    let api = Api::start().await;
    let id = api.alice().await.new_task(json!({"action": "rest", "title": "nobody's business"})).await;
    let file = format!("{}/src/web/pages/mod.rs", env!("CARGO_MANIFEST_DIR"));
    let http = reqwest::Client::builder().redirect(Policy::none()).build().unwrap();
    let mut count = 0;
    for line in std::fs::read_to_string(file).unwrap().lines().filter(|l| l.trim_start().starts_with(".route(")) {
        let route = line.split('"').nth(1).unwrap();
        for (method, word) in [("GET", "get("), ("POST", "post(")] {
            let known = line.contains(&format!(", {word}")) || line.contains(&format!(").{word}"));
            if !known || OPEN.contains(&(method, route)) {
                continue;
            }
            count += 1;
            let path = route.replace("{id}", &id).replace("{key}", "ok").replace("{act}", "cancel");
            let path = path.replace("{type}", "invoice");
            assert!(!path.contains('{'), "{route}: what stands for this?");
            for (cookie, accept) in [("", "text/html"), ("__Host-taskbell=made-up", "text/html"), ("", "*/*")] {
                let mut request = http.request(method.parse().unwrap(), format!("{}{path}", api.base));
                request = request.header("accept", accept).header("cookie", cookie);
                if method == "POST" {
                    request = request.header("content-type", "application/x-www-form-urlencoded").body("csrf=x");
                }
                let answer = send(request).await;
                if accept == "text/html" {
                    assert_eq!(answer.status, 303, "{method} {route}");
                    assert!(answer.header("location").starts_with("/login"), "{method} {route}");
                } else {
                    assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {route}");
                }
                assert!(!answer.text.contains("business"), "{method} {route}");
            }
        }
    }
    assert!(count >= 8, "{count}");
    for path in ["/login", "/static/pages.css", "/healthz", "/readyz", "/api/docs", "/api/openapi.json"] {
        assert_eq!(api.nobody().get(path).await.status, 200, "{path}");
    }
    let state = api.alice().await.get(&format!("/api/v1/tasks/{id}")).await.json["state"].clone();
    assert_ne!(state, "cancelled", "nobody has changed anything");
}
