//! The description of the API, held against the API: every route is in it, every field of a request that it tells is read,
//! and real answers fit their schemas, without a member that it does not tell.

use crate::architecture::files;
use crate::support::api::{Answer, Api, Client, send};
use regex::Regex;
use reqwest::Method;
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::web::openapi::document;

const METHODS: [&str; 4] = ["get", "post", "put", "delete"];

/// Path, method, operation.
fn operations() -> Vec<(&'static str, &'static str, &'static Value)> {
    let paths = document()["paths"].as_object().unwrap();
    let each = |(path, item): (&'static String, &'static Value)| {
        let item = item.as_object().unwrap();
        item.iter().map(move |(method, operation)| (path.as_str(), method.as_str(), operation)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(each).collect()
}

fn is_open(operation: &Value) -> bool {
    operation["security"].as_array().is_some_and(|ways| ways.contains(&json!({})))
}

/// An address of a path: its places filled with what names nothing.
fn address(path: &str) -> String {
    path.replace("{id}", "0193c0de-0000-7000-8000-000000000000").replace("{type}", "none")
}

fn request(client: &Client, method: &str, path: &str) -> reqwest::RequestBuilder {
    client.request(Method::from_bytes(method.to_uppercase().as_bytes()).unwrap(), path)
}

/// What a schema refers to.
fn resolved(schema: &Value) -> &Value {
    match schema["$ref"].as_str() {
        Some(place) => resolved(document().pointer(place.trim_start_matches('#')).unwrap_or_else(|| panic!("{place}"))),
        None => schema,
    }
}

/// The schemas that an object has to fit together, or one of.
fn parts(schema: &Value) -> Vec<&Value> {
    let schema = resolved(schema);
    let inner = ["allOf", "oneOf", "anyOf"].into_iter().filter_map(|word| schema[word].as_array()).flatten();
    std::iter::once(schema).chain(inner.flat_map(parts)).collect()
}

/// The members of an object by a schema; none where any may be there.
fn members(schema: &Value) -> Option<Map<String, Value>> {
    let parts = parts(schema);
    if parts.iter().any(|part| part["additionalProperties"].is_object()) {
        return None;
    }
    let told: Map<_, _> =
        parts.iter().filter_map(|part| part["properties"].as_object()).flat_map(Clone::clone).collect();
    Some(told).filter(|told| !told.is_empty())
}

/// Members of a value that its schema does not tell.
fn untold(value: &Value, schema: &Value, at: &str) -> Vec<String> {
    match value {
        Value::Object(map) => {
            let Some(members) = members(schema) else { return Vec::new() };
            let each = |(name, value): (&String, &Value)| match members.get(name) {
                Some(inner) => untold(value, inner, &format!("{at}.{name}")),
                None => vec![format!("{at}.{name}")],
            };
            map.iter().flat_map(each).collect()
        }
        Value::Array(items) => {
            let of_items = parts(schema).into_iter().map(|part| &part["items"]).find(|items| !items.is_null());
            let Some(of_items) = of_items else { return Vec::new() };
            items.iter().flat_map(|item| untold(item, of_items, &format!("{at}[]"))).collect()
        }
        _ => Vec::new(),
    }
}

/// Holds an answer against the description of its operation.
fn assert_described(method: &str, path: &str, answer: &Answer) {
    let operation = &document()["paths"][path][method];
    let told = &operation["responses"][answer.status.to_string()];
    assert!(told.is_object(), "{method} {path} answers {}, which is not described: {}", answer.status, answer.text);
    let content = told["content"].as_object().cloned().unwrap_or_default();
    if answer.text.is_empty() {
        assert!(content.is_empty(), "{method} {path}: {} has no body", answer.status);
        return;
    }
    let kind = answer.header("content-type").split(';').next().unwrap().to_owned();
    let schema = &content.get(&kind).unwrap_or_else(|| panic!("{method} {path}: {kind} is not described"))["schema"];
    let whole = json!({"allOf": [schema], "components": document()["components"]});
    let validator = jsonschema::validator_for(&whole).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(&answer.json).map(|e| format!("{}: {e}", e.instance_path())).collect();
    assert!(faults.is_empty(), "{method} {path} {}: {faults:#?}\n{}", answer.status, answer.text);
    let untold = untold(&answer.json, schema, "");
    assert!(untold.is_empty(), "{method} {path} {}: {untold:?}", answer.status);
}

#[tokio::test]
async fn every_route_for_programs_is_described_and_every_description_is_served() {
    let tables = files(&["src/web"]).into_iter().filter(|(path, _)| !path.contains("/pages/"));
    for (path, text) in tables {
        assert!(!text.contains(".route("), "{path} serves a route without a description: use `.routes(routes!(…))`");
    }
    let api = Api::start().await;
    let nobody = api.nobody();
    let mut described: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (path, method, operation) in operations() {
        described.entry(path).or_default().insert(method);
        let answer = send(request(&nobody, method, &address(path))).await;
        match (is_open(operation), path) {
            (true, _) => assert_eq!(answer.status, 200, "{method} {path}: {}", answer.text),
            (false, "/api/v1/ws") => assert_eq!(answer.code(), "bad-request", "{}", answer.text),
            (false, _) => assert_eq!(answer.code(), "unauthenticated", "{method} {path}: {}", answer.text),
        }
    }
    for (path, methods) in &described {
        for method in METHODS.into_iter().filter(|method| !methods.contains(method)) {
            let answer = send(request(&nobody, method, &address(path))).await;
            assert_eq!(answer.status, 405, "{method} {path} is served and not described");
        }
    }
    let served = nobody.get("/api/openapi.json").await;
    assert_eq!(&served.json, document());
    assert_described("get", "/api/openapi.json", &served);
}

#[test]
fn the_table_of_routes_in_the_docs_is_that_of_the_description() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/api.md")).unwrap();
    let row = Regex::new(r"(?m)^\| `([A-Z]+) (/\S+)` \|").unwrap();
    let told: BTreeSet<(String, String)> =
        row.captures_iter(&page).map(|found| (found[1].to_owned(), found[2].to_owned())).collect();
    let of_api = operations().into_iter().filter_map(|(path, method, _)| {
        let path = path.strip_prefix("/api/v1").filter(|path| *path != "/ws")?;
        Some((method.to_uppercase(), path.to_owned()))
    });
    assert_eq!(told, of_api.collect());
}

#[test]
fn every_operation_says_what_it_is_for_and_every_reference_leads_somewhere() {
    let mut ids = BTreeSet::new();
    let tags: Vec<&str> = document()["tags"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    for (path, method, operation) in operations() {
        let summary = operation["summary"].as_str().unwrap_or_default();
        assert!(summary.ends_with('.') && !summary.contains('`'), "{method} {path}: {summary:?}");
        assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{method} {path} has the id of another one");
        assert!(tags.contains(&operation["tags"][0].as_str().unwrap()), "{method} {path}");
        assert!(operation.get("x-codes").is_none());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            assert!(!parameter["description"].as_str().unwrap_or_default().is_empty(), "{method} {path}: {parameter}");
        }
        for (status, told) in operation["responses"].as_object().unwrap() {
            assert!(!told["description"].as_str().unwrap_or_default().is_empty(), "{method} {path} {status}");
        }
    }
    let text = document().to_string();
    for place in Regex::new(r##""\$ref":"#([^"]+)""##).unwrap().captures_iter(&text) {
        assert!(document().pointer(&place[1]).is_some(), "{}", &place[1]);
    }
    let schema = json!({"$ref": "#/components/schemas/TaskDetail", "components": document()["components"]});
    assert!(!jsonschema::is_valid(&schema, &json!({"id": 7})), "the schemas refuse what is no task");
}

/// A body with all members that are told, each absent in value, objects inside filled the same way.
fn hollow(schema: &Value) -> Value {
    let members = members(schema).unwrap_or_default();
    let hollowed = members.iter().map(|(name, inner)| {
        let object = parts(inner).iter().any(|part| part["type"] == "object" && part["properties"].is_object());
        (name.clone(), if object { hollow(inner) } else { Value::Null })
    });
    Value::Object(hollowed.collect())
}

#[tokio::test]
async fn every_field_and_every_key_that_is_described_is_known_to_the_reader() {
    let api = Api::start().await;
    let usual = crate::support::api::principal("default", "olga", Role::Operator);
    let scopes = [usual.scopes.as_slice(), &[Scope::Worker]].concat();
    let olga = api.with(Principal { scopes, ..usual }).await;
    let (mut bodies, mut queries) = (0, 0);
    for (path, method, operation) in operations() {
        if operation["security"] == json!([{"callback": []}]) {
            continue; // Asked by the handler of a chunk alone: tests/it/handler/http/callbacks.rs.
        }
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        if !schema.is_null() {
            let mut body = hollow(schema);
            body["never-told"] = json!(1);
            let answer = send(request(&olga, method, &address(path)).json(&body)).await;
            let strangers: Vec<&str> = answer.json["errors"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|fault| fault["message"].as_str().unwrap().contains("not known"))
                .map(|fault| fault["path"].as_str().unwrap())
                .collect();
            assert_eq!(strangers, ["never-told"], "{method} {path} {body}: {}", answer.text);
            bodies += 1;
        }
        let keys: Vec<&str> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|p| p["in"] == "query")
            .map(|p| p["name"].as_str().unwrap())
            .collect();
        if !keys.is_empty() {
            let query = format!("{}=&never-told=1", keys.join("=&"));
            let answer = send(request(&olga, method, &format!("{}?{query}", address(path)))).await;
            let strangers: Vec<&str> = answer.json["errors"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|fault| fault["message"].as_str().unwrap().contains("not known"))
                .map(|fault| fault["path"].as_str().unwrap())
                .collect();
            assert_eq!(strangers, ["never-told"], "{method} {path}?{query}: {}", answer.text);
            queries += 1;
        }
    }
    assert!(bodies >= 9 && queries >= 6, "{bodies} bodies, {queries} queries");
}

#[tokio::test]
async fn real_answers_fit_their_schemas_and_hold_nothing_that_is_not_described() {
    let api = Api::start().await;
    let (alice, olga, nobody) = (api.alice().await, api.olga().await, api.nobody());
    let (task, tasks) = ("/api/v1/tasks/{id}", "/api/v1/tasks");
    let submit = json!({"action": "rest", "idempotencyKey": "k", "record": {"type": "shared", "id": "7"}});
    let first = alice.submit(submit.clone()).await;
    assert_described("post", tasks, &first);
    let resting = first.id();
    alice.until(&resting, "running").await;
    let (failed, ended) =
        (alice.new_task(json!({"action": "fail"})).await, alice.new_task(json!({"action": "ok"})).await);
    alice.until(&failed, "failed").await;
    alice.until(&ended, "succeeded").await;
    assert_described("post", tasks, &alice.submit(submit).await);
    for refused in [
        json!({"action": "rest", "idempotencyKey": "k", "params": {"x": 1}}),
        json!({"action": "nothing-of-that-name"}),
        json!({"action": "ok", "priority": "high", "what": 1}),
    ] {
        assert_described("post", tasks, &alice.submit(refused).await);
    }
    let items = json!({"items": [{"action": "ok"}, {"action": "no"}, {"action": "rest", "idempotencyKey": "k"}]});
    assert_described("post", "/api/v1/tasks/batch", &alice.post("/api/v1/tasks/batch", items).await);
    for client in [&alice, &olga] {
        for id in [&resting, &failed, &ended] {
            assert_described("get", task, &client.get(&format!("/api/v1/tasks/{id}")).await);
            for part in ["events", "logs", "progress"] {
                let answer = client.get(&format!("/api/v1/tasks/{id}/{part}?limit=2")).await;
                assert_described("get", &format!("{task}/{part}"), &answer);
            }
        }
    }
    let stranger = api.caller("bob", taskbell::core::principal::Role::User).await;
    assert_described("get", task, &stranger.get(&format!("/api/v1/tasks/{resting}")).await);
    assert_described("get", tasks, &alice.get("/api/v1/tasks?limit=2&sort=-updatedAt&state=running,failed").await);
    for wrong in ["cursor=x", "state=x", "scope=tenant"] {
        assert_described("get", tasks, &alice.get(&format!("/api/v1/tasks?{wrong}")).await);
    }
    assert_described("get", tasks, &nobody.get(tasks).await);
    let of_record = "/api/v1/records/shared/7/tasks";
    assert_described("get", "/api/v1/records/{type}/{id}/tasks", &stranger.get(of_record).await);
    assert_described("get", "/api/v1/actions", &alice.get("/api/v1/actions").await);
    assert_described("get", "/api/v1/notifications", &alice.get("/api/v1/notifications").await);
    for mark in ["seen", "read", "archive"] {
        let path = format!("/api/v1/notifications/{mark}");
        assert_described("post", &path, &alice.post(&path, json!({"ids": [ended]})).await);
    }
    for (id, act) in [
        (&resting, "pause"),
        (&resting, "resume"),
        (&ended, "resume"),
        (&ended, "cancel"),
        (&ended, "pause"),
        (&failed, "retry"),
        (&ended, "retry"),
        (&resting, "cancel"),
    ] {
        let answer = alice.post(&format!("/api/v1/tasks/{id}/{act}"), json!({})).await;
        assert_described("post", &format!("{task}/{act}"), &answer);
    }
    assert_described("delete", task, &alice.delete(&format!("/api/v1/tasks/{ended}")).await);
    let running = alice.new_task(json!({"action": "rest"})).await;
    assert_described("delete", task, &alice.delete(&format!("/api/v1/tasks/{running}")).await);
    let bulk = |dry| json!({"do": "cancel", "filter": {"state": ["running"]}, "dryRun": dry});
    for (client, dry) in [(&olga, true), (&olga, false), (&alice, true)] {
        assert_described("post", "/api/v1/tasks/bulk", &client.post("/api/v1/tasks/bulk", bulk(dry)).await);
    }
    let upload = alice.request(Method::POST, "/api/v1/uploads?name=a.csv").body("a,b");
    assert_described("post", "/api/v1/uploads", &send(upload.header("content-type", "application/octet-stream")).await);
    for probe in ["/healthz", "/readyz"] {
        assert_described("get", probe, &nobody.get(probe).await);
    }
    api.state.draining.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_described("get", "/readyz", &nobody.get("/readyz").await);
}

#[tokio::test]
async fn the_page_of_the_description_is_open_to_everybody_and_shows_every_operation_in_both_frames() {
    let api = Api::start().await;
    let page = |lang: &'static str| {
        let request = api.nobody().request(Method::GET, "/api/docs").header("accept-language", lang);
        async move { send(request).await }
    };
    let (links, scripts) = (Regex::new("href=\"#([^\"]+)\"").unwrap(), Regex::new("<script[^>]*>").unwrap());
    for (lang, word) in [("en", "Parameters"), ("zh-CN", "参数")] {
        let answer = page(lang).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "text/html; charset=utf-8"));
        assert!(answer.text.contains(&format!("<h4>{word}</h4>")), "{lang}");
        for (path, method, operation) in operations() {
            let shown = format!("{} {path}</h3>", method.to_uppercase());
            assert!(answer.text.contains(&shown), "{lang}: {shown}");
            assert!(answer.text.contains(&format!("id=\"{}\"", operation["operationId"].as_str().unwrap())));
        }
        for name in document()["components"]["schemas"].as_object().unwrap().keys() {
            assert!(answer.text.contains(&format!("id=\"shape-{name}\"")), "{lang}: {name}");
        }
        // Whatever a link leads to on the page is there, and no script stands in it.
        for link in links.captures_iter(&answer.text) {
            assert!(answer.text.contains(&format!("id=\"{}\"", &link[1])), "{lang}: {}", &link[1]);
        }
        let inline: Vec<&str> =
            scripts.find_iter(&answer.text).map(|s| s.as_str()).filter(|s| !s.contains("src=")).collect();
        assert!(inline.is_empty() && !answer.text.contains("style=\""), "{inline:?}");
    }
}
