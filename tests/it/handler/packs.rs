//! Packs on real server processes: loaded, changed, refused, taken away and switched while the service runs.

use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec};
use crate::support::{eventually, on_each_database};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Far more than anything here takes.
const LIMIT: Duration = Duration::from_secs(60);

on_each_database! {
    the_example_pack_runs_as_it_stands
    a_new_version_takes_its_place_and_a_chunk_under_way_ends_on_the_old_one
    a_bad_version_is_refused_with_file_line_and_reason_and_the_old_one_stays
    tasks_of_a_pack_that_is_gone_wait_until_it_is_back
    a_switch_outlives_the_process_and_lets_exactly_its_tasks_go_on
    d5_a_pack_that_is_off_stays_off_and_is_shown_so_whatever_else_is_changed
    a_serial_pack_never_has_two_chunks_through_kills
}

/// A server with packs, a folder at a time.
struct Shop {
    server: Server,
    alice: Client,
    ada: Client,
}

impl Shop {
    async fn open(ground: Arc<Ground>) -> Self {
        let config = "[packs]\npoll_ms = 50\n[[records]]\ntype = \"order\"\n";
        let spec = Spec::with_config(config).env("TASKBELL__ENGINE__POLL_MS", "200");
        let server = spec.start_on(ground).await;
        let (alice, ada) = (server.client("alice", "user").await, server.client("ada", "admin").await);
        Self { server, alice, ada }
    }

    fn folder(&self, pack: &str) -> PathBuf {
        self.server.folder().join("packs").join(pack)
    }

    /// Writes a pack with one action of its name.
    fn write(&self, pack: &str, version: &str, more: &str, script: &str) {
        let folder = self.folder(pack);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("run.js"), script).unwrap();
        let action = format!("[[actions]]\nkey = \"{pack}.run\"\nhandler = {{ script = \"run.js\" }}\n");
        fs::write(folder.join("pack.toml"), format!("name = \"{pack}\"\nversion = \"{version}\"\n{more}\n{action}"))
            .unwrap();
    }

    /// Waits until a pack is told as wished; answers it.
    async fn pack(&self, name: &str, wished: impl Fn(&Value) -> bool) -> Value {
        let find = |list: &Value| list["items"].as_array()?.iter().find(|pack| pack["name"] == name).cloned();
        eventually(&format!("the pack {name} is as wished"), LIMIT, async || {
            find(&self.ada.get("/api/v1/admin/packs").await.1).filter(&wished)
        })
        .await
    }

    async fn loaded(&self, name: &str, version: &str) -> Value {
        self.pack(name, |pack| pack["loadedVersion"] == version && pack["fault"].is_null()).await
    }

    async fn switch(&self, name: &str, to: &str) {
        let (status, pack) = self.ada.post(&format!("/api/v1/admin/packs/{name}/{to}"), &json!({})).await;
        assert_eq!((status, &pack["enabled"]), (200, &json!(to == "resume")), "{pack}");
    }

    /// A new task of the one action of a pack.
    async fn task(&self, pack: &str) -> String {
        self.alice.submit(json!({"action": format!("{pack}.run")})).await["id"].as_str().unwrap().to_owned()
    }

    async fn until(&self, id: &str, wished: impl Fn(&Value) -> bool) -> Value {
        self.alice.until(id, LIMIT, wished).await
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let copied = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &copied) } else { fs::copy(&path, &copied).map(drop).unwrap() }
    }
}

/// Goes on for as many chunks as it is told, half a minute apart where it is told so.
const COUNTS: &str = "export default (task, cx) => {
  const n = (cx.checkpoint?.n ?? 0) + 1;
  return n < 3 ? { hasMore: true, checkpoint: { n }, current: n, total: 3 } : { hasMore: false, result: { n } };
};";

async fn the_example_pack_runs_as_it_stands(ground: Arc<Ground>) {
    let shop = Shop::open(ground).await;
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/packs/month-end");
    copy(&example, &shop.folder("month-end"));
    shop.loaded("month-end", "1.0.0").await;
    let (_, actions) = shop.alice.get("/api/v1/actions?lang=zh-CN").await;
    assert_eq!(actions["items"][0]["title"], "月末结账", "{actions}");
    let submit = json!({"action": "month-end.close", "params": {"month": "2026-11", "accounts": 3}});
    let task = shop.alice.submit(submit).await;
    let task = shop.until(task["id"].as_str().unwrap(), |task| task["state"] == "succeeded").await;
    assert_eq!((&task["result"], &task["chunks"]), (&json!({"month": "2026-11", "total": 633}), &json!(3)));
    let (_, list) = shop.alice.get("/api/v1/tasks?pack=month-end").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let (_, list) = shop.alice.get("/api/v1/tasks?pack=other").await;
    assert_eq!(list["items"], json!([]));
    let refused = shop.alice.post("/api/v1/tasks", &json!({"action": "month-end.close"})).await;
    assert_eq!(refused.0, 422, "its schema counts like any other: {}", refused.1);
}

async fn a_new_version_takes_its_place_and_a_chunk_under_way_ends_on_the_old_one(ground: Arc<Ground>) {
    let shop = Shop::open(ground).await;
    shop.write(
        "stock",
        "1",
        "",
        "export default async (task, cx) => {
           cx.progress({ current: 1 });
           await cx.sleep(3000);
           return { hasMore: true, checkpoint: { by: 1 }, nextDelaySeconds: 0 };
         };",
    );
    shop.loaded("stock", "1").await;
    let id = shop.task("stock").await;
    shop.until(&id, |task| task["progress"]["current"] == 1).await;
    shop.write("stock", "2", "", "export default (task, cx) => ({ hasMore: false, result: [cx.checkpoint, 2] });");
    shop.loaded("stock", "2").await;
    let task = shop.until(&id, |task| task["state"] == "succeeded").await;
    assert_eq!((&task["result"], &task["attempt"]), (&json!([{"by": 1}, 2]), &json!(1)));
}

async fn a_bad_version_is_refused_with_file_line_and_reason_and_the_old_one_stays(ground: Arc<Ground>) {
    let shop = Shop::open(ground).await;
    shop.write("stock", "1", "", COUNTS);
    shop.loaded("stock", "1").await;
    for (more, script, file, line, reason) in [
        ("serail = true", COUNTS, "stock/pack.toml", 3, "serail: does not exist"),
        ("", "export default () => {\n  this is no script\n};", "stock/run.js", 2, ""),
    ] {
        shop.write("stock", "2", more, script);
        let pack = shop.pack("stock", |pack| pack["fault"]["file"] == file).await;
        assert_eq!((&pack["fault"]["line"], &pack["loadedVersion"]), (&json!(line), &json!("1")), "{pack}");
        assert!(pack["fault"]["reason"].as_str().unwrap().starts_with(reason) && !pack["fault"]["at"].is_null());
        assert!(shop.server.said().contains(&format!("{file}:{line}: ")), "the log tells it");
        let task = shop.task("stock").await;
        let task = shop.until(&task, |task| task["state"] == "succeeded").await;
        assert_eq!(task["result"], json!({"n": 3}), "the old version runs");
    }
    let numbers = reqwest::get(format!("{}/metrics", shop.server.url())).await.unwrap().text().await.unwrap();
    assert!(numbers.contains("taskbell_packs_at_fault 1") && numbers.contains("result=\"refused\"} 2"), "{numbers}");
    shop.write("stock", "2", "", COUNTS);
    shop.loaded("stock", "2").await;
}

async fn tasks_of_a_pack_that_is_gone_wait_until_it_is_back(ground: Arc<Ground>) {
    let shop = Shop::open(ground).await;
    let rests = "export default (task, cx) => cx.checkpoint
        ? { hasMore: false, result: 'back' } : { hasMore: true, checkpoint: { n: 1 }, nextDelaySeconds: 2 };";
    shop.write("stock", "1", "", rests);
    shop.loaded("stock", "1").await;
    let id = shop.task("stock").await;
    shop.until(&id, |task| task["chunks"] == 1).await;
    let away = shop.server.folder().join("away");
    fs::rename(shop.folder("stock"), &away).unwrap();
    shop.until(&id, |task| task["waiting"]["reason"] == "no-handler").await;
    let (status, _) = shop.alice.post("/api/v1/tasks", &json!({"action": "stock.run"})).await;
    assert_eq!(status, 404, "its button is gone");
    fs::rename(&away, shop.folder("stock")).unwrap();
    let task = shop.until(&id, |task| task["state"] == "succeeded").await;
    assert_eq!(task["result"], "back");
}

/// Proves: G20.
async fn a_switch_outlives_the_process_and_lets_exactly_its_tasks_go_on(ground: Arc<Ground>) {
    let mut shop = Shop::open(ground).await;
    let waits = "export default (task, cx) => cx.checkpoint
        ? { hasMore: false } : { hasMore: true, checkpoint: { n: 1 }, nextDelaySeconds: 3600 };";
    shop.write("stock", "1", "", waits);
    shop.write("till", "1", "", COUNTS);
    shop.loaded("stock", "1").await;
    shop.loaded("till", "1").await;
    let (held, by_hand) = (shop.task("stock").await, shop.task("stock").await);
    shop.until(&held, |task| task["waiting"]["reason"] == "delay").await;
    shop.until(&by_hand, |task| task["waiting"]["reason"] == "delay").await;
    assert_eq!(shop.alice.post(&format!("/api/v1/tasks/{by_hand}/pause"), &json!({})).await.0, 202);
    shop.switch("stock", "pause").await;
    shop.server.kill().await;
    shop.server.start_again().await;
    shop.loaded("stock", "1").await;
    let new = shop.task("stock").await;
    for id in [&held, &new] {
        let (_, task) = shop.alice.get(&format!("/api/v1/tasks/{id}")).await;
        assert_eq!((&task["state"], &task["waiting"]["reason"]), (&json!("paused"), &json!("pack-disabled")), "{task}");
        assert!(!task["can"].as_array().unwrap().contains(&json!("resume")));
        let (status, problem) = shop.alice.post(&format!("/api/v1/tasks/{id}/resume"), &json!({})).await;
        assert_eq!((status, &problem["code"]), (409, &json!("not-resumable")));
    }
    let other = shop.task("till").await;
    shop.until(&other, |task| task["state"] == "succeeded").await;
    let pack = shop.pack("stock", |pack| pack["enabled"] == false).await;
    assert_eq!(pack["tasksWaiting"], 3, "{pack}");
    shop.switch("stock", "resume").await;
    shop.until(&new, |task| task["chunks"] == 1).await;
    let (_, task) = shop.alice.get(&format!("/api/v1/tasks/{held}")).await;
    assert_eq!((&task["state"], &task["waiting"]["reason"]), (&json!("queued"), &json!("delay")), "{task}");
    let (_, task) = shop.alice.get(&format!("/api/v1/tasks/{by_hand}")).await;
    assert_eq!((&task["state"], &task["waiting"]["reason"]), (&json!("paused"), &json!("paused")), "{task}");
}

/// Proves: G20.
async fn d5_a_pack_that_is_off_stays_off_and_is_shown_so_whatever_else_is_changed(ground: Arc<Ground>) {
    let mut shop = Shop::open(ground).await;
    shop.write("stock", "1", "", COUNTS);
    shop.write("till", "1", "", COUNTS);
    shop.loaded("stock", "1").await;
    shop.loaded("till", "1").await;
    shop.switch("stock", "pause").await;
    let id = shop.task("stock").await;
    let switched = shop.pack("stock", |pack| pack["enabled"] == false).await["changedAt"].clone();
    let still_off = async |shop: &Shop, version: &str, after: &str| {
        let pack = shop.pack("stock", |pack| pack["loadedVersion"] == version).await;
        assert_eq!((&pack["enabled"], &pack["changedAt"]), (&json!(false), &switched), "{after}: {pack}");
        assert_eq!(pack["tasksWaiting"], 1, "{after}: {pack}");
        let (_, task) = shop.alice.get(&format!("/api/v1/tasks/{id}")).await;
        let shown = (&task["state"], &task["waiting"]["reason"], &task["chunks"]);
        assert_eq!(shown, (&json!("paused"), &json!("pack-disabled"), &json!(0)), "{after}: {task}");
        assert!(!task["can"].as_array().unwrap().contains(&json!("resume")), "{after}: {task}");
    };
    still_off(&shop, "1", "switched").await;
    // Its own limit, its version and its script.
    shop.write("stock", "2", "serial = true", COUNTS);
    still_off(&shop, "2", "another limit and version").await;
    // A version that cannot be loaded, and a good one after it.
    shop.write("stock", "3", "serail = true", COUNTS);
    shop.pack("stock", |pack| !pack["fault"].is_null()).await;
    still_off(&shop, "2", "a bad version").await;
    shop.write("stock", "3", "", COUNTS);
    still_off(&shop, "3", "a good version").await;
    // Another pack is edited, switched off and on.
    shop.write("till", "2", "serial = true", COUNTS);
    shop.loaded("till", "2").await;
    shop.switch("till", "pause").await;
    still_off(&shop, "3", "another one is switched off").await;
    shop.switch("till", "resume").await;
    let other = shop.task("till").await;
    shop.until(&other, |task| task["state"] == "succeeded").await;
    still_off(&shop, "3", "another one is edited and switched on").await;
    // Restarts: with the same settings, and with others.
    assert!(shop.server.terminate().await.success());
    shop.server.start_again().await;
    still_off(&shop, "3", "a restart").await;
    assert!(shop.server.terminate().await.success());
    assert!(shop.server.start_again_with("TASKBELL__ENGINE__PARALLELISM", "2").await);
    still_off(&shop, "3", "a restart with another setting").await;
    // The folder goes and comes again.
    let away = shop.server.folder().join("away");
    fs::rename(shop.folder("stock"), &away).unwrap();
    shop.pack("stock", |pack| pack["loadedVersion"].is_null()).await;
    fs::rename(&away, shop.folder("stock")).unwrap();
    still_off(&shop, "3", "a folder that was away").await;
    shop.switch("stock", "resume").await;
    let task = shop.until(&id, |task| task["state"] == "succeeded").await;
    assert_eq!(task["result"], json!({"n": 3}));
}

/// Proves: G20.
async fn a_serial_pack_never_has_two_chunks_through_kills(ground: Arc<Ground>) {
    let mut shop = Shop::open(ground).await;
    let slow = "export default async (task, cx) => {
        const n = (cx.checkpoint?.n ?? 0) + 1;
        await cx.sleep(20);
        return n < 8 ? { hasMore: true, checkpoint: { n }, current: n } : { hasMore: false, result: n };
    };";
    shop.write("stock", "1", "serial = true", slow);
    shop.loaded("stock", "1").await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(shop.task("stock").await);
    }
    for kill in 0..3 {
        let begun = format!("{} of the tasks have begun", kill + 1);
        eventually(&begun, LIMIT, async || {
            let (_, list) = shop.alice.get("/api/v1/tasks?pack=stock").await;
            let tasks = list["items"].as_array().unwrap();
            assert!(tasks.iter().filter(|t| t["state"] == "running" && t["waiting"].is_null()).count() <= 1, "{list}");
            (tasks.iter().filter(|t| t["chunks"] != 0).count() > kill).then_some(())
        })
        .await;
        shop.server.kill().await;
        shop.server.start_again().await;
    }
    for id in &ids {
        let task = shop.until(id, |task| task["state"] == "succeeded").await;
        assert_eq!(task["result"], 8);
    }
}
