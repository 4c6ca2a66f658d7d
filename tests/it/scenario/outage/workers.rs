//! Workers outside while the database is away: each call is answered 503 with a time to come again, never with a refusal after
//! which a worker would give up; it keeps its chunk until its lease ends, and no attempt is used.

use super::*;

const CONFIG: &str =
    "[[actions]]\nkey = \"pulled\"\ntitle = \"Pulled\"\nhandler = { pull = true }\nchunk_timeout = \"120s\"\n";

/// A call of a worker that must be answered in the end; how often it was told to come again.
async fn insist(worker: &Client, path: &str, body: &Value) -> (Value, usize) {
    let refused = AtomicUsize::new(0);
    let answer = eventually(path, BACK, async || {
        let (status, retry_after, answer) = worker.try_post(path, body).await;
        match status {
            200 => return Some(answer),
            503 => assert!(retry_after.is_some(), "{path}: {answer}"),
            _ => panic!("{path}: {status}: {answer}"),
        }
        refused.fetch_add(1, Ordering::Relaxed);
        None
    })
    .await;
    (answer, refused.into_inner())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn m18_a_worker_is_told_to_come_again_while_the_database_is_away_and_keeps_its_chunk() {
    let database_server = postgres::Server::start().await;
    let ground = Arc::new(Ground::on(Database::empty_on(database_server.url()).await));
    // The lease outlasts the outage.
    let spec = Spec::with_config(CONFIG).env("TASKBELL__ENGINE__LEASE_MS", "90000");
    let server = spec.env("TASKBELL__ENGINE__HEARTBEAT_MS", "1000").start_on(ground.clone()).await;
    let client = server.client("user", "user").await;
    let args = ["key", "create", "--tenant", "default", "--user", "w", "--role", "user", "--scopes", "worker"];
    let worker = Client::new(&server.url(), &server.command(&args).await);
    let task = client.submit(json!({"action": "pulled"})).await;
    let id = task["id"].as_str().unwrap();
    let ask = json!({"actions": ["pulled"], "worker": "w1", "waitMs": 1000});
    let (answer, _) = insist(&worker, "/api/v1/worker/claim", &ask).await;
    let chunk = answer["chunks"][0].clone();
    let about = |more: Value| {
        let mut item =
            json!({"task": chunk["task"]["id"], "fencingToken": chunk["fencingToken"], "chunk": chunk["chunk"]});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"items": [item]})
    };
    let end = about(json!({"outcome": {"hasMore": false, "result": {"sum": 4}}}));
    let calls = [
        ("/api/v1/worker/renew", about(json!({}))),
        ("/api/v1/worker/progress", about(json!({"progress": {"current": 1, "total": 2}}))),
        ("/api/v1/worker/commit", end.clone()),
        ("/api/v1/worker/claim", ask.clone()),
    ];
    database_server.pause().await;
    let away = async {
        tokio::time::sleep(Duration::from_secs(if long() { 20 } else { 5 })).await;
        database_server.restart().await;
    };
    // While it is away every call is refused so; the first ones that are answered are those after it.
    let told = join_all(calls.iter().map(async |(path, body)| {
        let (status, retry_after, answer) = worker.try_post(path, body).await;
        assert!(status == 503 && retry_after.is_some(), "{path}: {status}: {answer}");
    }));
    tokio::join!(away, told);
    for (path, body) in &calls[..2] {
        let (answer, refused) = insist(&worker, path, body).await;
        eprintln!("{path}: refused {refused} times after the return");
        assert_eq!(answer["items"][0]["result"], "ok", "{path}: {answer}");
    }
    let (answer, _) = insist(&worker, "/api/v1/worker/commit", &end).await;
    assert_eq!(answer["items"][0]["result"], "ok", "{answer}");
    let task = client.until(id, BACK, |task| task["state"] != "running").await;
    assert_eq!((&task["state"], &task["result"]), (&json!("succeeded"), &json!({"sum": 4})), "{task}");
    assert_eq!((&task["attempt"], &task["takeovers"]), (&json!(1), &json!(0)), "{task}");
}
