//! The numbers at `/metrics`: they follow what happens, name nobody, stay as many as they are, and are not for everybody.
//!
//! What is counted belongs to a process, so most of this asks a server in a process of its own.

use crate::support::api::{Api, send};
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::proxy::{Line, Proxy};
use crate::support::server::{Server, Spec};
use regex::Regex;
use reqwest::Method;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::metric::{self, ALL, Kind};

const SOON: Duration = Duration::from_secs(30);
const SCRIPT: &str =
    "export default (task, cx) => cx.chunk < 3 ? { hasMore: true, checkpoint: cx.chunk } : { hasMore: false };";

async fn server() -> (Server, tempfile::TempDir) {
    let scripts = tempfile::tempdir().unwrap();
    let script = scripts.path().join("three.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let config = format!("[[actions]]\nkey = \"three\"\nhandler = {{ script = {script:?} }}\n");
    (Spec::with_config(&config).start().await, scripts)
}

/// Samples as they are told: series with its labels → value. Comments are left out.
async fn samples(server: &Server) -> BTreeMap<String, f64> {
    let answer = reqwest::get(format!("{}/metrics", server.url())).await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    let text = answer.text().await.unwrap();
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.rsplit_once(' ').unwrap())
        .map(|(series, value)| (series.into(), value.parse().unwrap()))
        .collect()
}

#[tokio::test]
async fn what_happens_is_counted_under_names_and_labels_that_the_table_has() {
    let (server, _scripts) = server().await;
    let client = server.client("alice", "user").await;
    let before = samples(&server).await;
    assert_eq!((before[metric::CLAIMS], before[metric::DATABASE_UP]), (0.0, 1.0));
    let click = json!({"action": "three", "idempotencyKey": "k"});
    let task = client.submit(click.clone()).await;
    client.until(task["id"].as_str().unwrap(), SOON, |task| task["state"] == "succeeded").await;
    let (status, again) = client.post("/api/v1/tasks", &click).await;
    assert_eq!((status, &again["replayed"]), (200, &json!(true)));
    assert_eq!(client.get("/api/v1/tasks/0193c0de-0000-7000-8000-000000000000").await.0, 404);
    let after = samples(&server).await;
    let at = |series: &str| after.get(series).copied().unwrap_or_else(|| panic!("{series} is missing in {after:#?}"));
    assert_eq!(at("taskbell_submits_total{answer=\"created\"}"), 1.0);
    assert_eq!(at("taskbell_submits_total{answer=\"replayed\"}"), 1.0);
    assert_eq!(at("taskbell_chunks_total{outcome=\"more\"}"), 2.0);
    assert_eq!(at("taskbell_chunks_total{outcome=\"done\"}"), 1.0);
    assert!(at(metric::CLAIMS) >= 1.0 && at("taskbell_pickup_seconds_count") >= 1.0);
    assert_eq!(at("taskbell_chunk_seconds_count"), 3.0);
    assert_eq!(at("taskbell_commit_items_sum{kind=\"chunks\"}"), 3.0);
    assert_eq!(at("taskbell_commit_items_sum{kind=\"submits\"}"), 2.0);
    assert_eq!(at("taskbell_problems_total{code=\"not-found\"}"), 1.0);
    let refused = "taskbell_http_requests_total{method=\"GET\",route=\"/api/v1/tasks/{id}\",status=\"404\"}";
    assert_eq!(at(refused), 1.0);
    assert_eq!(at("taskbell_tasks{state=\"running\"}"), 0.0);
    assert!(at(metric::MEMORY) > 1e6);
    let series = Regex::new(r#"^([a-z_]+)(?:\{(.*)\})?$"#).unwrap();
    let label = Regex::new(r#"([a-z]+)="[^"]*""#).unwrap();
    for told in after.keys() {
        let found = series.captures(told).unwrap();
        let stem =
            |name: &str| ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).map(str::to_owned);
        let of = |m: &&metric::Metric| {
            m.name == &found[1] || (m.kind == Kind::Histogram && stem(&found[1]).as_deref() == Some(m.name))
        };
        let metric = ALL.iter().find(of).unwrap_or_else(|| panic!("{told} is not in the table"));
        let labels = found.get(2).map_or("", |labels| labels.as_str());
        for name in label.captures_iter(labels).map(|found| found[1].to_owned()).filter(|name| name != "le") {
            assert!(metric.labels.contains(&name.as_str()), "{told}: the table does not tell the label {name}");
        }
    }
    let names: BTreeSet<&str> = ["alice", "default", "three"].into();
    assert!(after.keys().all(|told| !names.iter().any(|name| told.contains(&format!("\"{name}\"")))), "{after:#?}");
}

#[tokio::test]
async fn whatever_is_asked_there_are_no_more_numbers_than_before() {
    const ROUNDS: usize = 250;
    let (server, _scripts) = server().await;
    let client = server.client("alice", "user").await;
    let http = reqwest::Client::new();
    let random = || format!("{:016x}", rand::random::<u64>());
    let round = async || {
        let [a, b, c] = [random(), random(), random()];
        for (method, path) in [
            ("GET", format!("/{a}/{b}")),
            ("GET", format!("/api/v1/{a}")),
            ("GET", format!("/api/v1/tasks/{a}")),
            ("GET", format!("/api/v1/records/{a}/{b}/tasks")),
            ("GET", format!("/api/v1/artifacts/{a}")),
            ("GET", format!("/static/{a}.js")),
            ("GET", format!("/api/v1/tasks?action={a}&owner={b}&q={c}")),
            (&a.to_uppercase(), format!("/api/v1/tasks/{b}")),
            ("POST", format!("/api/v1/tasks/{a}/{b}")),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            let request = http.request(method, format!("{}{path}", server.url())).bearer_auth(&client.key);
            request.send().await.unwrap().bytes().await.unwrap();
        }
        let submit = json!({"action": a, "owner": b, "record": {"type": c, "id": a}, "idempotencyKey": b});
        assert_eq!(client.post("/api/v1/tasks", &submit).await.0, 404);
        let stranger = http.get(format!("{}/api/v1/tasks", server.url())).bearer_auth(format!("tb_{a}"));
        assert_eq!(stranger.send().await.unwrap().status(), 401);
    };
    round().await;
    samples(&server).await;
    let before: BTreeSet<String> = samples(&server).await.into_keys().collect();
    for _ in 0..ROUNDS {
        round().await;
    }
    let after = samples(&server).await;
    let new: Vec<&String> = after.keys().filter(|series| !before.contains(*series)).collect();
    assert!(new.is_empty(), "{new:#?}");
    let counted: f64 = after.iter().filter(|(s, _)| s.starts_with(metric::REQUESTS)).map(|(_, n)| n).sum();
    assert!(counted >= (ROUNDS * 11) as f64, "{counted}");
}

#[tokio::test]
async fn the_numbers_are_for_programs_beside_the_server_and_elsewhere_for_operators() {
    let api = Api::start().await;
    let (alice, olga, nobody) = (api.alice().await, api.olga().await, api.nobody());
    let ask = |client: &crate::support::api::Client, name: &'static str, value: &'static str| {
        send(client.request(Method::GET, "/metrics").header(name, value))
    };
    for client in [&nobody, &alice, &olga] {
        assert_eq!(client.get("/metrics").await.status, 200);
    }
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.9"),
        ("forwarded", "for=203.0.113.9"),
        ("via", "1.1 proxy"),
        ("x-real-ip", "127.0.0.1"),
        ("host", "tasks.example.com"),
    ] {
        assert_eq!(ask(&nobody, name, value).await.code(), "unauthenticated", "{name}");
        assert_eq!(ask(&alice, name, value).await.code(), "forbidden", "{name}");
        assert_eq!(ask(&olga, name, value).await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn the_numbers_of_a_node_are_told_while_its_database_is_away_without_those_that_are_read_from_it() {
    let ground = Ground::postgres().await;
    let database = ground.database().unwrap();
    let proxy = Proxy::before(database.port()).await;
    let server = Spec::demo().env("TASKBELL__DATABASE__URL", &database.url_by_port(proxy.port()));
    let server = server.start_on(Arc::new(ground)).await;
    let (olga, alice) = (server.client("olga", "operator").await, server.client("alice", "user").await);
    let http = reqwest::Client::new();
    let elsewhere = async |key: &str| {
        let request = http.get(format!("{}/metrics", server.url())).header("x-forwarded-for", "203.0.113.9");
        let answer = request.bearer_auth(key).send().await.unwrap();
        (answer.status().as_u16(), answer.text().await.unwrap())
    };
    let of_database = |name: &String| name.starts_with("taskbell_tasks") || name.as_str() == metric::DATABASE_SECONDS;
    let before = samples(&server).await;
    assert_eq!(before[metric::DATABASE_UP], 1.0);
    assert!(before.keys().any(of_database) && before.contains_key("taskbell_tasks{state=\"queued\"}"), "{before:#?}");
    assert_eq!((elsewhere(&olga.key).await.0, elsewhere(&alice.key).await.0), (200, 403));
    proxy.becomes(Line::Cut);
    let away = eventually("the numbers say that the database is away", SOON, async || {
        Some(samples(&server).await).filter(|now| now[metric::DATABASE_UP] == 0.0)
    });
    let away = away.await;
    assert!(!away.keys().any(of_database), "{away:#?}");
    assert!(away[metric::CLAIMS] >= before[metric::CLAIMS] && away[metric::MEMORY] > 0.0);
    let (status, text) = elsewhere(&olga.key).await;
    assert_eq!(status, 200, "{text}");
    assert!(text.contains("taskbell_database_up 0\n") && !text.contains("taskbell_tasks"), "{text}");
    assert_eq!((elsewhere(&alice.key).await.0, elsewhere("tb_x").await.0), (503, 503), "who has not read them before");
    proxy.mend();
    eventually("all numbers are told again", SOON, async || {
        let now = samples(&server).await;
        (now[metric::DATABASE_UP] == 1.0 && now.contains_key("taskbell_tasks{state=\"queued\"}")).then_some(())
    })
    .await;
}

#[test]
fn the_table_of_numbers_in_the_docs_is_that_of_the_code() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md")).unwrap();
    let rows = ALL.iter().map(|metric| {
        let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
        format!("| `{}` | {} | {} | {} |\n", metric.name, metric.kind.as_str(), labels.join(", "), metric.help)
    });
    let table = format!("| number | kind | labels | what it says |\n|---|---|---|---|\n{}", rows.collect::<String>());
    assert!(page.contains(&table), "the table in docs/operations.md has to be\n{table}");
}
