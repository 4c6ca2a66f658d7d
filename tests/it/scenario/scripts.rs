//! Scripts of each shape on real processes: an import with cursor and fence, its rollback, a work that is spread over tasks and
//! looked after every three seconds, and a build of eight phases with its clean-up. Their processes are killed, and the node is.

use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec};
use crate::support::{eventually, on_each_database};
use serde_json::{Value, json};
use std::fs;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

const FILES: [(&str, &str); 7] = [
    ("pack.toml", include_str!("scripts/pack.toml")),
    ("fill.js", include_str!("scripts/fill.js")),
    ("part.js", include_str!("scripts/part.js")),
    ("import.js", include_str!("../handler/script/compat/import.js")),
    ("rollback.js", include_str!("../handler/script/compat/rollback.js")),
    ("fanout.js", include_str!("../handler/script/compat/fanout.js")),
    ("build.js", include_str!("../handler/script/compat/build.js")),
];

on_each_database! {
    scripts_of_each_shape_come_to_their_right_end_through_kills_of_their_processes_and_of_the_node
}

struct Shop {
    server: Server,
    alice: Client,
}

impl Shop {
    async fn open(ground: Arc<Ground>) -> Self {
        let config = "[packs]\npoll_ms = 50\n[[records]]\ntype = \"order\"\n";
        let database = ground.database().map(|database| format!("\n[database]\nurl = \"{}\"\n", database.url()));
        let server = Spec::with_config(config).env("TASKBELL__ENGINE__POLL_MS", "200").start_on(ground).await;
        let alice = server.client("alice", "user").await;
        let folder = server.folder().join("packs/shop");
        fs::create_dir_all(&folder).unwrap();
        // The manifest last: with it the folder is a pack.
        for (name, text) in FILES.iter().rev() {
            let more = if *name == "pack.toml" { database.as_deref().unwrap_or_default() } else { "" };
            fs::write(folder.join(name), format!("{text}{more}")).unwrap();
        }
        let shop = Self { server, alice };
        let ready = async || {
            let (_, actions) = shop.alice.get("/api/v1/actions").await;
            actions["items"].as_array()?.iter().any(|action| action["key"] == "shop.import").then_some(())
        };
        eventually("the pack is loaded", LIMIT, ready).await;
        shop
    }

    async fn start(&self, action: &str, params: Value) -> String {
        let task = self.alice.submit(json!({"action": action, "params": params})).await;
        task["id"].as_str().unwrap().to_owned()
    }

    async fn ended(&self, id: &str) -> Value {
        let is_final = |task: &Value| ["succeeded", "failed", "cancelled"].iter().any(|state| task["state"] == *state);
        self.alice.until(id, LIMIT, is_final).await
    }

    /// Chunks that tasks have committed, all together.
    async fn chunks(&self, ids: &[String]) -> i64 {
        let mut chunks = 0;
        for id in ids {
            chunks += self.alice.get(&format!("/api/v1/tasks/{id}")).await.1["chunks"].as_i64().unwrap_or(0);
        }
        chunks
    }

    /// The processes that run the scripts of the server.
    fn script_processes(&self) -> Vec<String> {
        let children =
            fs::read_to_string(format!("/proc/{0}/task/{0}/children", self.server.pid())).unwrap_or_default();
        let mut found: Vec<String> = children.split_whitespace().map(str::to_owned).collect();
        for task in fs::read_dir(format!("/proc/{}/task", self.server.pid())).into_iter().flatten().flatten() {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            found.extend(children.split_whitespace().map(str::to_owned));
        }
        let is_script = |id: &String| {
            fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|words| words.contains("script-worker"))
        };
        found.retain(is_script);
        found.sort();
        found.dedup();
        found
    }

    /// Kills them once the tasks have come so much further; whether a chunk was under way decides the machine.
    async fn kill_after(&mut self, ids: &[String], chunks: i64, node: bool) {
        let from = self.chunks(ids).await;
        let moved = async || (self.chunks(ids).await >= from + chunks || self.all_ended(ids).await).then_some(());
        eventually("the tasks go on", LIMIT, moved).await;
        if node {
            self.server.kill().await;
            self.server.start_again().await;
        } else {
            let processes = self.script_processes();
            assert!(!processes.is_empty(), "scripts run in processes of their own");
            for id in processes {
                Command::new("kill").args(["-9", &id]).output().unwrap();
            }
        }
    }

    async fn all_ended(&self, ids: &[String]) -> bool {
        for id in ids {
            let (_, task) = self.alice.get(&format!("/api/v1/tasks/{id}")).await;
            if !["succeeded", "failed", "cancelled"].iter().any(|state| task["state"] == *state) {
                return false;
            }
        }
        true
    }
}

async fn scripts_of_each_shape_come_to_their_right_end_through_kills_of_their_processes_and_of_the_node(
    ground: Arc<Ground>,
) {
    let mut shop = Shop::open(ground).await;
    let filled = shop.start("shop.fill", json!({"ImportId": "i1", "Lines": 200})).await;
    let filled = shop.ended(&filled).await;
    assert_eq!(filled["state"], "succeeded", "{filled}");

    let import = shop.start("shop.import", json!({"ImportId": "i1"})).await;
    let builds = [
        shop.start("shop.build", json!({"build": "good"})).await,
        shop.start("shop.build", json!({"build": "bad", "breaks": "check"})).await,
    ];
    let fanout = shop.start("shop.fanout", json!({"Run": "f1", "Parts": 6})).await;
    let mut all = vec![import.clone(), fanout.clone()];
    all.extend(builds.clone());
    let mut parts = Vec::new();
    for part in 1..=6 {
        parts.push(shop.start("shop.part", json!({"run": "f1", "part": part})).await);
    }
    all.extend(parts.clone());
    for (n, node) in [false, true, false, true].into_iter().enumerate() {
        shop.kill_after(&all, 3 + n as i64, node).await;
    }

    let imported = shop.ended(&import).await;
    assert_eq!(imported["result"], json!({"ImportId": "i1", "Taken": 180, "Refused": 20}), "{imported}");
    assert_eq!((&imported["progress"]["current"], &imported["chunks"]), (&json!(200), &json!(10)), "{imported}");
    let fanned = shop.ended(&fanout).await;
    assert_eq!(fanned["result"], json!({"Parts": 6}), "{fanned}");
    for part in &parts {
        let part = shop.ended(part).await;
        assert_eq!((&part["state"], &part["result"]), (&json!("succeeded"), &json!({"taken": 1})), "{part}");
    }
    let good = shop.ended(&builds[0]).await;
    assert_eq!((&good["result"], &good["chunks"]), (&json!({"phases": 8, "removed": 28}), &json!(8)), "{good}");
    let bad = shop.ended(&builds[1]).await;
    assert_eq!((&bad["state"], &bad["error"]["code"]), (&json!("failed"), &json!("build-failed")), "{bad}");

    let rollback = shop.start("shop.rollback", json!({"ImportId": "i1"})).await;
    for node in [false, true] {
        shop.kill_after(std::slice::from_ref(&rollback), 3, node).await;
    }
    let back = shop.ended(&rollback).await;
    assert_eq!(back["result"], json!({"TakenBack": 180, "Kept": 0}), "{back}");
    let again = shop.start("shop.import", json!({"ImportId": "i1"})).await;
    let again = shop.ended(&again).await;
    assert_eq!(
        again["result"],
        json!({"ImportId": "i1", "Taken": 0, "Refused": 20}),
        "nothing waits any more: {again}"
    );
}
