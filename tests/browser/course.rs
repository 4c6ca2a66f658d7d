//! The course of a task on its page: the picture, the timeline, and why attempts failed.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};
use std::fs;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        the_picture_grows_live_and_tells_retries_takeovers_pauses_and_a_revised_total,
        a_failure_tells_its_class_its_reason_its_attempts_and_an_id_to_copy,
        a_result_tells_when_its_file_goes_and_that_it_is_only_a_part
    ]
}

/// Counts to 24 in steps of two, twice a second. The fourth step fails once, the fifth finds out that there is more to do,
/// and the ninth takes so long that its node can be lost in it.
const COUNTS: &str = r#"
export default async function (task, cx) {
  const n = cx.checkpoint?.n ?? 0;
  cx.log(`step ${n}`);
  if (task.params.count === 2) return { fail: { code: "mail-refused", message: "The mail server refused the sender.", retryable: cx.attempt < 2 } };
  if (n === 6 && cx.attempt === 1) return { fail: { code: "mail-busy", message: "The mail server did not answer.", retryable: true } };
  if (n === 16) await cx.sleep(3000);
  const progress = { current: n + 2, total: n < 8 ? 20 : 24, unit: "rows", message: `row ${n + 2}` };
  if (n >= 22) return { hasMore: false, ...progress };
  return { hasMore: true, checkpoint: { n: n + 2 }, nextDelaySeconds: 0.5, ...progress };
}
"#;

const PLOT: &str = "document.querySelector('[data-part=plot]')";

async fn with_handler(stage: &Stage) {
    fs::write(stage.folder().await.join("data/demo/clean-contacts.js"), COUNTS).unwrap();
}

/// The paths and marks of the picture.
async fn drawn(stage: &Stage) -> Value {
    let lines = format!(
        "[...{PLOT}.querySelectorAll('path, rect')].map((e) => [e.dataset.line ?? e.dataset.turn, e.getAttribute('d') ?? e.getAttribute('x')].join(' '))"
    );
    stage.eval(&lines).await
}

/// What the timeline says, line by line.
async fn told(stage: &Stage) -> Vec<String> {
    let lines = stage.eval("[...document.querySelectorAll('[data-part=timeline] > li')].map((line) => line.innerText)");
    lines.await.as_array().unwrap().iter().map(|line| line.as_str().unwrap().replace('\n', " ")).collect()
}

async fn the_picture_grows_live_and_tells_retries_takeovers_pauses_and_a_revised_total(stage: &Stage) {
    with_handler(stage).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "clean-contacts", "params": {"count": 1}})).await;
    let id = task["id"].as_str().unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    stage.until_live().await;
    assert_eq!(
        stage.eval(&format!("{PLOT}.hidden")).await,
        true,
        "a page of a task that has just begun has no picture"
    );
    assert!(
        stage
            .eval("document.querySelector('[data-part=plot-none]').innerText")
            .await
            .as_str()
            .unwrap()
            .contains("two seconds")
    );
    let current = |n: i64| move |task: &Value| task["progress"]["current"].as_i64() >= Some(n);
    stage.until(LIMIT, &format!("{PLOT}.querySelector('[data-head][data-turn=retry]')")).await;
    stage.until(LIMIT, "[...document.querySelectorAll('[data-part=timeline] li')].some((line) => line.innerText.includes('The mail server did not answer.'))").await;
    // While it works, the line grows with what the socket brings, and nothing is asked for.
    client.until(id, LIMIT, current(8)).await;
    stage.until(LIMIT, "document.querySelector('[data-part=head]').dataset.kind === 'running'").await;
    let done = format!("{PLOT}.querySelector('[data-line=done]').getAttribute('d')");
    let before = stage.eval(&done).await;
    stage.proxy.take_seen();
    stage
        .until(
            LIMIT,
            &format!("{done} !== {before} && parseInt(document.querySelector('[data-part=count]').textContent) >= 12"),
        )
        .await;
    let seen = stage.proxy.take_seen();
    assert!(!seen.keys().any(|request| request.contains("/api/v1/tasks")), "{seen:?}");
    client.until(id, LIMIT, current(12)).await;
    client.post(&format!("/api/v1/tasks/{id}/pause"), &json!({})).await;
    client.until(id, LIMIT, |task| task["state"] == "paused").await;
    client.post(&format!("/api/v1/tasks/{id}/resume"), &json!({})).await;
    client.until(id, LIMIT, |task| current(16)(task) && task["waiting"].is_null()).await;
    // The script is written anew at a start of the demo, so a first step after it may be tried with the wrong one.
    let mut server = stage.server.lock().await;
    server.kill().await;
    server.start_again().await;
    drop(server);
    with_handler(stage).await;
    client.until(id, Duration::from_secs(60), |task| task["state"] == "succeeded").await;
    stage
        .until(Duration::from_secs(60), "document.querySelector('[data-part=head]').dataset.kind === 'succeeded'")
        .await;
    for turn in ["retry", "takeover", "pause", "revised"] {
        stage.until(LIMIT, &format!("{PLOT}.querySelector('[data-head][data-turn={turn}]')")).await;
    }
    let legend = stage.eval("document.querySelector('[data-part=legend]').innerText").await;
    for words in
        ["Done", "Finish as it was told", "Not working", " retr", "1 takeover", "1 pause", "Total revised once"]
    {
        assert!(legend.as_str().unwrap().contains(words), "{words}: {legend}");
    }
    let label = stage.eval(&format!("{PLOT}.querySelector('svg[role=img]').getAttribute('aria-label')")).await;
    assert!(
        label.as_str().unwrap().contains("24 / 24 rows") && label.as_str().unwrap().contains("1 takeover"),
        "{label}"
    );
    assert_eq!(
        stage.eval("document.querySelectorAll('[style]').length").await,
        0,
        "the policy forbids style attributes"
    );
    let lines = told(stage).await;
    for words in
        ["Attempt 1 of 3 failed, next one after", "Total revised 20 to 24", "chunks, ", "Worker lost", "Pause asked"]
    {
        assert!(lines.iter().any(|line| line.contains(words)), "{words}: {lines:?}");
    }
    // What the page has drawn from what it heard is, after a reload, what the server draws without any script.
    let (_, points) = client.get(&format!("/api/v1/tasks/{id}/progress")).await;
    let count = points["items"].as_array().unwrap().len();
    assert!(count > 5, "{points}");
    stage.open(&format!("/tasks/{id}")).await;
    stage.until_live().await;
    stage
        .until(
            LIMIT,
            &format!("document.querySelector('.tb-log-tools input') && {PLOT}.querySelector('[data-line=done]')"),
        )
        .await;
    let (by_script, said_by_script) = (drawn(stage).await, told(stage).await);
    stage.picture("course-en").await;
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": ["*.js"]})).await;
    stage.open(&format!("/tasks/{id}")).await;
    assert_eq!(drawn(stage).await, by_script);
    assert_eq!(told(stage).await.len(), said_by_script.len());
    stage.eval("document.querySelector('[data-part=plot-table] summary').click()").await;
    let rows = stage.eval("document.querySelectorAll('[data-part=plot-table] tbody tr').length").await;
    assert_eq!(rows, count, "the table has each point");
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
    stage.speak("zh-CN").await;
    for (width, look) in [(1280, "wide"), (320, "narrow")] {
        stage.screen(width, 900).await;
        stage.open(&format!("/tasks/{id}")).await;
        stage.until(LIMIT, "document.querySelector('[data-part=legend]').innerText.includes('接管 1 次')").await;
        stage.until(LIMIT, "document.documentElement.scrollWidth <= innerWidth").await;
        stage.picture(&format!("course-zh-CN-{look}")).await;
    }
}

async fn a_failure_tells_its_class_its_reason_its_attempts_and_an_id_to_copy(stage: &Stage) {
    with_handler(stage).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "clean-contacts", "params": {"count": 2}})).await;
    let id = task["id"].as_str().unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    client.until(id, Duration::from_secs(60), |task| task["state"] == "failed").await;
    let told = "document.querySelector('[data-part=error]')";
    stage
        .until(LIMIT, &format!("!{told}.hidden && {told}.querySelectorAll('[data-part=attempts] li').length === 2"))
        .await;
    for reload in [false, true] {
        if reload {
            stage.open(&format!("/tasks/{id}")).await;
        }
        let text = stage.eval(&format!("{told}.innerText")).await;
        let attempts = ["Attempt 1 of 3 failed, next one after", "Attempt 2 of 3 failed"];
        for words in ["The action cannot go on", "The mail server refused the sender.", "mail-refused", id]
            .into_iter()
            .chain(attempts)
        {
            assert!(text.as_str().unwrap().contains(words), "{words}: {text}");
        }
        stage.until(LIMIT, &format!("{told}.querySelector('[data-copy=\"{id}\"]:not([hidden])')")).await;
    }
    stage.picture("failure").await;
}

async fn a_result_tells_when_its_file_goes_and_that_it_is_only_a_part(stage: &Stage) {
    let client = stage.client().await;
    let csv = "number,name,email,city,country,credit_limit,since\n\
        C-90001,Ann,ann@mail.example,Oslo,NO,0,2017-03-28\nC-90002,Bob,no address,Oslo,NO,0,2017-03-28\n";
    let file = client.upload("two.csv", csv.into()).await;
    let task = client.submit(json!({"action": "import-customers", "params": {"file": file, "pause": 0}})).await;
    let id = task["id"].as_str().unwrap();
    let task = client.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    let artifact = &task["artifacts"][0];
    stage.sign_in().await;
    stage.open(&format!("/tasks/{id}")).await;
    let card = "document.querySelector('[data-part=result-card]')";
    assert_eq!(stage.eval(&format!("{card}.querySelector('h2').textContent")).await, "Partial result");
    let expires = stage.eval(&format!("{card}.querySelector('.files time').getAttribute('datetime')")).await;
    assert_eq!(expires, artifact["expiresAt"]);
    let link = stage.eval(&format!("{card}.querySelector('.files a[download]').getAttribute('href')")).await;
    assert_eq!(link, format!("/api/v1/artifacts/{}", artifact["id"].as_str().unwrap()));
    assert!(stage.eval(&format!("{card}.innerText")).await.as_str().unwrap().contains("rejected.csv"));
}
