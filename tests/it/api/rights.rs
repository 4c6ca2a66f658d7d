//! Who may see what: every route for nobody, for another user, for another tenant, and for a key without the scope.

use crate::support::api::{Answer, Api, Client, principal, send};
use reqwest::Method;
use serde_json::json;
use taskbell::core::principal::{Role, Scope};
use taskbell::store::files::{NewFile, UPLOAD_LIFE_MS};

/// Every route of the API; `{id}` stands for a task of alice, `{file}` for a file of hers. A new route belongs here.
const ROUTES: &[(&str, &str)] = &[
    ("GET", "/api/v1/tasks"),
    ("POST", "/api/v1/tasks"),
    ("POST", "/api/v1/tasks/batch"),
    ("POST", "/api/v1/tasks/bulk"),
    ("GET", "/api/v1/tasks/{id}"),
    ("DELETE", "/api/v1/tasks/{id}"),
    ("POST", "/api/v1/tasks/{id}/cancel"),
    ("POST", "/api/v1/tasks/{id}/pause"),
    ("POST", "/api/v1/tasks/{id}/resume"),
    ("POST", "/api/v1/tasks/{id}/retry"),
    ("GET", "/api/v1/tasks/{id}/logs"),
    ("GET", "/api/v1/tasks/{id}/logs/download"),
    ("GET", "/api/v1/tasks/{id}/events"),
    ("GET", "/api/v1/tasks/{id}/progress"),
    ("POST", "/api/v1/uploads?name=a.csv"),
    ("GET", "/api/v1/artifacts/{file}"),
    ("GET", "/api/v1/actions"),
    ("GET", "/api/v1/records/invoice/7/tasks"),
    ("GET", "/api/v1/notifications"),
    ("POST", "/api/v1/notifications/seen"),
    ("POST", "/api/v1/notifications/read"),
    ("POST", "/api/v1/notifications/archive"),
    ("POST", "/api/v1/callback/progress"),
    ("POST", "/api/v1/callback/log"),
    ("GET", "/api/v1/callback/lease"),
    ("POST", "/api/v1/callback/artifacts?name=a.csv"),
    ("GET", "/api/v1/callback/files/{id}"),
    ("POST", "/api/v1/worker/claim"),
    ("POST", "/api/v1/worker/commit"),
    ("POST", "/api/v1/worker/progress"),
    ("POST", "/api/v1/worker/log"),
    ("POST", "/api/v1/worker/renew"),
    ("GET", "/api/v1/admin/nodes"),
    ("GET", "/api/v1/admin/packs"),
    ("POST", "/api/v1/admin/packs/{name}/pause"),
    ("POST", "/api/v1/admin/packs/{name}/resume"),
];

#[test]
fn every_described_route_stands_in_the_table_of_rights() {
    let described = taskbell::web::openapi::document()["paths"].as_object().unwrap();
    let mut count = 0;
    for (path, item) in described.iter().filter(|(path, _)| path.starts_with("/api/v1/") && *path != "/api/v1/ws") {
        for method in item.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            let known = path.replace("/artifacts/{id}", "/artifacts/{file}");
            let known = known.replace("/records/{type}/{id}", "/records/invoice/7");
            let fits = |(m, p): &&(&str, &str)| *m == method && p.split('?').next() == Some(&known);
            assert!(ROUTES.iter().any(|route| fits(&route)), "{method} {path} is not in the table of rights");
            count += 1;
        }
    }
    assert_eq!(count, ROUTES.len());
}

async fn ask(client: &Client, method: &str, path: &str) -> Answer {
    send(client.request(method.parse::<Method>().unwrap(), path)).await
}

async fn setup(api: &Api) -> (String, String) {
    let alice = api.alice().await;
    let id = alice.new_task(json!({"action": "rest", "record": {"type": "invoice", "id": "7"}})).await;
    let new = NewFile {
        tenant: "default".into(),
        owner: "alice".into(),
        task: None,
        name: "a.csv".into(),
        content_type: "text/csv".into(),
        life_ms: UPLOAD_LIFE_MS,
    };
    let bytes = futures_util::stream::iter([Ok::<_, String>("a,b\n".into())]);
    (id, api.node.files.put(new, bytes).await.unwrap().id)
}

/// Proves: G21, G22.
#[tokio::test]
async fn every_route_asks_who_calls_before_anything_else() {
    let api = Api::start().await;
    let (id, file) = setup(&api).await;
    let strangers = [None, Some("tb_wrong"), Some("eyJhbGciOiJub25lIn0.e30."), Some("")];
    for key in strangers {
        let client = api.nobody().with_key(key.map(str::to_owned));
        for (method, path) in ROUTES {
            for path in [path.replace("{id}", &id).replace("{file}", &file), path.replace("{id}", "no-id")] {
                let answer = ask(&client, method, &path).await;
                assert_eq!((answer.status, answer.code()), (401, "unauthenticated"), "{method} {path} {key:?}");
                assert_eq!(answer.header("www-authenticate"), "Bearer");
            }
        }
    }
}

/// Proves: G21.
#[tokio::test]
async fn what_is_anothers_cannot_be_told_from_what_does_not_exist() {
    let api = Api::start().await;
    let (id, file) = setup(&api).await;
    let unknown = "01934f6e-7c1a-7000-8000-000000000000";
    let others = [
        api.caller("bob", Role::User).await,
        api.with(principal("other", "alice", Role::User)).await,
        api.with(principal("other", "eve", Role::Admin)).await,
    ];
    for other in &others {
        // The callbacks know no callers, but chunks: to whoever calls as somebody they are 401.
        let of_tasks = |path: &str| path.contains('{') && !path.contains("/admin/") && !path.contains("/callback/");
        for (method, path) in ROUTES.iter().filter(|(_, path)| of_tasks(path)) {
            let theirs = ask(other, method, &path.replace("{id}", &id).replace("{file}", &file)).await;
            let missing = ask(other, method, &path.replace("{id}", unknown).replace("{file}", unknown)).await;
            let garbage = ask(other, method, &path.replace("{id}", "../x").replace("{file}", "no-id")).await;
            assert_eq!((theirs.status, theirs.code()), (404, "not-found"), "{method} {path}");
            let told = |a: &Answer| (a.status, a.json["detail"].clone(), a.json["title"].clone());
            assert_eq!(told(&theirs), told(&missing), "{method} {path}");
            assert_eq!(garbage.status, 404, "{method} {path}");
        }
        for path in ["/api/v1/tasks?scope=own", "/api/v1/records/invoice/7/tasks", "/api/v1/notifications"] {
            let list = other.get(path).await;
            assert_eq!((list.status, &list.json["items"]), (200, &json!([])), "{path}");
        }
    }
    // The tenant's operator sees it all.
    let olga = api.olga().await;
    for path in [format!("/api/v1/tasks/{id}"), format!("/api/v1/artifacts/{file}")] {
        assert_eq!(olga.get(&path).await.status, 200, "{path}");
    }
    assert_eq!(olga.get("/api/v1/tasks?scope=tenant").await.json["items"][0]["id"], id.as_str());
    let platform = api.with(principal("*", "root", Role::Platform)).await;
    assert_eq!(platform.get("/api/v1/tasks?scope=tenant").await.json["items"][0]["id"], id.as_str());
    assert_eq!(platform.submit(json!({"action": "ok"})).await.code(), "forbidden");
}

#[tokio::test]
async fn the_tenants_tasks_are_listed_for_operators_only() {
    let api = Api::start().await;
    let answer = api.alice().await.get("/api/v1/tasks?scope=tenant").await;
    assert_eq!((answer.status, answer.code()), (403, "forbidden"));
}

#[tokio::test]
async fn a_key_does_what_its_scopes_say() {
    let api = Api::start().await;
    let (id, _) = setup(&api).await;
    let with = |scopes: Vec<Scope>| {
        let mut who = principal("default", "alice", Role::User);
        who.scopes = scopes;
        api.with(who)
    };
    let reads = with(vec![Scope::TasksRead]).await;
    assert_eq!(reads.get(&format!("/api/v1/tasks/{id}")).await.status, 200);
    assert_eq!(reads.get(&format!("/api/v1/tasks/{id}")).await.json["can"], json!([]));
    for path in ["/api/v1/tasks".to_owned(), format!("/api/v1/tasks/{id}/cancel")] {
        assert_eq!(reads.post(&path, json!({})).await.code(), "forbidden", "{path}");
    }
    let works = with(vec![Scope::Worker]).await;
    for (method, path) in ROUTES {
        let client = if path.contains("/worker/") { &reads } else { &works };
        let answer = ask(client, method, &path.replace("{id}", &id)).await;
        let refused = if path.contains("/callback/") { (401, "unauthenticated") } else { (403, "forbidden") };
        assert_eq!((answer.status, answer.code()), refused, "{method} {path}");
    }
}

#[tokio::test]
async fn a_key_ends_when_its_time_is_over() {
    let api = Api::start().await;
    let now = api.state.clock.now();
    let who = principal("default", "alice", Role::User);
    for (age_ms, life_ms, status) in [(0, Some(60_000), 200), (60_000, Some(60_000), 401), (60_000, None, 200)] {
        let (key, row) = taskbell::web::auth::new_api_key(who.clone(), life_ms, now.plus(-age_ms)).unwrap();
        api.node.store.put_api_key(row).await.unwrap();
        let client = api.nobody().with_key(Some(key));
        assert_eq!(client.get("/api/v1/tasks").await.status, status, "{life_ms:?}");
    }
}

/// The other callers keep look-ups under way all the time, which answer nobody who comes after a key was taken back.
#[tokio::test]
async fn a_key_that_was_taken_back_is_refused_at_the_next_request_while_others_call() {
    let api = Api::start().await;
    let others = tokio_util::sync::CancellationToken::new();
    let mut calling = tokio::task::JoinSet::new();
    for n in 0..8 {
        let (client, others) = (api.caller(&format!("other-{n}"), Role::User).await, others.clone());
        calling.spawn(async move {
            while !others.is_cancelled() {
                assert_eq!(client.get("/api/v1/actions").await.status, 200);
            }
        });
    }
    let who = principal("default", "alice", Role::User);
    for n in 0..30 {
        let (key, row) = taskbell::web::auth::new_api_key(who.clone(), None, api.state.clock.now()).unwrap();
        let hash = row.hash.clone();
        api.node.store.put_api_key(row).await.unwrap();
        let client = api.nobody().with_key(Some(key));
        assert_eq!(client.get("/api/v1/actions").await.status, 200, "round {n}");
        assert!(api.node.store.delete_api_key(&hash).await.unwrap());
        assert_eq!(client.get("/api/v1/actions").await.status, 401, "round {n}");
    }
    others.cancel();
    calling.join_all().await;
}

#[tokio::test]
async fn operators_see_what_users_do_not() {
    let api = Api::start().await;
    let (id, _) = setup(&api).await;
    let path = format!("/api/v1/tasks/{id}");
    api.alice().await.until(&id, "running").await;
    let (user, operator) = (api.alice().await.get(&path).await.json, api.olga().await.get(&path).await.json);
    assert!(user.get("checkpoint").is_none() && operator.get("checkpoint").is_some());
    let events = api.alice().await.get(&format!("{path}/events")).await.json;
    assert!(events["items"].as_array().unwrap().iter().all(|e| e["node"].is_null()));
    let events = api.olga().await.get(&format!("{path}/events")).await.json;
    assert!(events["items"].as_array().unwrap().iter().any(|e| e["node"] == "test-node"), "{events}");
}

#[tokio::test]
async fn a_colleague_sees_numbers_of_a_shared_record_and_nothing_else() {
    let api = Api::start().await;
    let alice = api.alice().await;
    for kind in ["shared", "invoice"] {
        let record = json!({"type": kind, "id": "a/b c"});
        alice.new_task(json!({"action": "rest", "title": "secret", "record": record, "idempotencyKey": kind})).await;
    }
    let bob = api.caller("bob", Role::User).await;
    let shared = bob.get("/api/v1/records/shared/a%2Fb%20c/tasks").await;
    let task = &shared.json["items"][0];
    assert_eq!((&task["startedBy"], &task["title"]), (&json!("alice"), &json!("rest")), "{}", shared.text);
    assert_eq!((&task["can"], &task["idempotencyKey"]), (&json!([]), &json!(null)));
    assert!(!shared.text.contains("secret") && !shared.text.contains("resting"));
    assert_eq!(bob.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await.status, 404);
    assert_eq!(bob.get("/api/v1/records/invoice/a%2Fb%20c/tasks").await.json["items"], json!([]));
    let own = alice.get("/api/v1/records/invoice/a%2Fb%20c/tasks").await;
    assert_eq!(own.json["items"][0]["title"], "secret");
    let eve = api.with(principal("other", "eve", Role::Admin)).await;
    assert_eq!(eve.get("/api/v1/records/shared/a%2Fb%20c/tasks").await.json["items"], json!([]));
}

#[tokio::test]
async fn packs_are_for_administrators_nodes_for_the_platform_and_an_unknown_pack_is_not_found() {
    let api = Api::start().await;
    let ada = api.caller("ada", Role::Admin).await;
    for (method, path) in ROUTES.iter().filter(|(_, path)| path.contains("/admin/")) {
        let path = path.replace("{name}", "stock");
        for role in [Role::User, Role::Operator] {
            let answer = ask(&api.caller("eve", role).await, method, &path).await;
            assert_eq!((answer.status, answer.code()), (403, "forbidden"), "{method} {path}");
        }
        let status = ask(&ada, method, &path).await.status;
        // Nodes serve all tenants, so they are nobody's of one tenant.
        let expected = if path.ends_with("/nodes") {
            403
        } else if *method == "GET" {
            200
        } else {
            404
        };
        assert_eq!(status, expected, "{method} {path}");
    }
    let root = api.with(principal("*", "root", Role::Platform)).await;
    assert_eq!(root.get("/api/v1/admin/nodes").await.status, 200);
}
