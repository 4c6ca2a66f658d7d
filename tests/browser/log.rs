//! The log page under a log that is long, wide or growing.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::fs;
use std::time::Duration;
use taskbell::core::ids::FencingToken;
use taskbell::core::time::Millis;
use taskbell::store::logs::{Append, Level, NewLine};

pub fn tests() -> Vec<Test> {
    browser_tests![
        a_hundred_thousand_lines_and_a_huge_one_do_not_freeze_the_page,
        the_log_grows_live_and_follows_after_a_cut,
        the_log_waits_for_who_has_scrolled_up_keeps_to_2000_lines_and_shows_text_alone
    ]
}

/// The longest pause before a reconnect is 30 s.
const BACK: Duration = Duration::from_secs(45);

/// Each line follows the one before it by its number, or a mark.
const WHOLE: &str = "[...document.querySelector('.tb-log').children].every((line, at, all) => {
    const [seq, before] = [line, all[at - 1]].map((each) => Number(each?.dataset.seq ?? 0));
    return !seq || !before || seq === before + 1;
})";

async fn a_hundred_thousand_lines_and_a_huge_one_do_not_freeze_the_page(stage: &Stage) {
    let client = stage.client().await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    let id = task["id"].as_str().unwrap();
    client.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    // Written beside the server: no handler can log so much in the time of a test.
    let logs = stage.server.lock().await.ground().open_logs("data/taskbell-logs.db").await;
    let line = |message: String| NewLine {
        at: Millis(1_795_953_600_000),
        level: Level::Info,
        source: "handler",
        chunk: 1,
        message,
    };
    let append = |lines| Append { tenant: "default".into(), task: id.parse().unwrap(), token: FencingToken(9), lines };
    for batch in 0..20 {
        let lines = (0..5_000).map(|n| line(format!("line {} of the long log", batch * 5_000 + n))).collect();
        logs.append(vec![append(lines)]).await.unwrap();
    }
    logs.append(vec![append(vec![line("w".repeat(5_000_000)), line("the last line".into())])]).await.unwrap();
    drop(logs);
    stage.sign_in().await;
    let mut painted = Vec::new();
    for _ in 0..3 {
        stage.open(&format!("/tasks/{id}")).await;
        stage
            .until(LIMIT, "document.querySelector('.tb-log')?.lastElementChild?.textContent.includes('the last line')")
            .await;
        painted.push(
            stage
                .eval("performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0")
                .await
                .as_f64()
                .unwrap(),
        );
        assert!(stage.eval("document.querySelectorAll('*').length").await.as_i64().unwrap() < 2_000);
    }
    println!("first paint, ms: {painted:.0?}");
    assert!(painted.iter().any(|ms| *ms > 0.0 && *ms < 5_000.0), "first paint, ms: {painted:.0?}");
    let at_end = "(({scrollTop, clientHeight, scrollHeight}) => scrollTop + clientHeight > scrollHeight - 24)";
    // The page comes with the lines in it; the live log takes their place a moment later, at its end.
    stage.until(LIMIT, "Boolean(document.querySelector('.tb-log-tools button:not([hidden])'))").await;
    stage.until(LIMIT, &format!("{at_end}(document.querySelector('.tb-log'))")).await;
    assert!(
        stage.eval("[...document.querySelectorAll('.tb-log-line')].at(-2).textContent").await.as_str().unwrap().len()
            < 20_000
    );
    assert_eq!(stage.eval("/cut/.test([...document.querySelectorAll('.tb-log-line')].at(-2).textContent)").await, true);
    assert_eq!(stage.eval("Boolean(document.querySelector('a[download][href$=\"/logs/download\"]'))").await, true);
    stage.eval("[...document.querySelectorAll('.tb-log-tools button')].at(0).click()").await;
    stage.until(LIMIT, "document.querySelectorAll('.tb-log-line').length === 400").await;
    assert_eq!(stage.eval(WHOLE).await, true, "earlier lines stand before the others, none left out");
}

async fn the_log_grows_live_and_follows_after_a_cut(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "import-customers", "params": {"pause": 0.02, "batch": 20}})).await;
    let id = task["id"].as_str().unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    let last = "Number([...document.querySelectorAll('.tb-log-line')].at(-1)?.dataset.seq ?? 0)";
    stage.until(LIMIT, &format!("{last} > 5")).await;
    let before = stage.eval(last).await.as_i64().unwrap();
    stage.until(LIMIT, &format!("{last} > {before} + 10")).await;
    // More lines than one page of them are written while nobody hears it; then the task is stopped, so no line follows.
    stage.proxy.cut();
    let missed = stage.eval(last).await.as_i64().unwrap() + 220;
    client.until(id, Duration::from_secs(60), |task| task["chunks"].as_i64() > Some(missed)).await;
    client.post(&format!("/api/v1/tasks/{id}/cancel"), &json!({})).await;
    client.until(id, LIMIT, |task| task["state"] == "cancelled").await;
    stage.proxy.mend();
    let (_, newest) = client.get(&format!("/api/v1/tasks/{id}/logs?before=9007199254740991&limit=1")).await;
    let newest = newest["items"][0]["seq"].as_i64().unwrap();
    stage.until(BACK, &format!("{last} >= {newest}")).await;
    assert_eq!(stage.eval(WHOLE).await, true, "between two lines nothing is missing without a mark");
}

/// Nine chunks of three hundred lines, the first one with what a terminal, a secret and a line that turns its text would do.
const TALKS: &str = r#"
export default async function (task, cx) {
  const n = cx.checkpoint?.n ?? 0;
  if (n === 0) cx.log("\u001b[31mred\u001b[0m <b>bold</b> password=hunter2 \u202Eturned\u202C", "warn");
  for (let line = 0; line < 300; line += 1) cx.log(`line ${line} of step ${n}`);
  if (n >= 8) return { hasMore: false, current: 9, total: 9 };
  return { hasMore: true, checkpoint: { n: n + 1 }, nextDelaySeconds: n === 0 ? 2 : 0.2, current: n + 1, total: 9 };
}
"#;

async fn the_log_waits_for_who_has_scrolled_up_keeps_to_2000_lines_and_shows_text_alone(stage: &Stage) {
    fs::write(stage.folder().await.join("data/demo/clean-contacts.js"), TALKS).unwrap();
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "clean-contacts", "params": {"count": 1}})).await;
    let id = task["id"].as_str().unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    let log = "document.querySelector('.tb-log-frame .tb-log')";
    let last = "Number([...document.querySelectorAll('.tb-log-line')].at(-1)?.dataset.seq ?? 0)";
    let at_end = format!("{log}.scrollTop + {log}.clientHeight > {log}.scrollHeight - 24");
    stage.until(LIMIT, &format!("{log} && {last} >= 301 && {at_end}")).await;
    let (_, first) = client.get(&format!("/api/v1/tasks/{id}/logs?limit=1")).await;
    assert!(!first["items"][0]["message"].as_str().unwrap().contains("hunter2"), "{first}");
    let shown = stage.eval("[...document.querySelectorAll('.tb-log-line[data-level=warn] .tb-log-text')].map((line) => [line.childNodes.length, line.textContent])").await;
    if let Some(line) = shown[0].as_array() {
        let text = line[1].as_str().unwrap();
        assert!(line[0] == 1 && text.contains("red") && text.contains("<b>bold</b> password=***"), "{text}");
        assert!(!text.contains(['\u{1b}', '\u{202e}']) && !text.contains("hunter2"), "{text:?}");
    }
    // Whoever scrolls up stays there, however much comes, and is offered the way back.
    stage.eval(&format!("{log}.scrollTo(0, 0)")).await;
    let latest = "document.querySelector('.tb-log-latest')";
    stage.until(LIMIT, &format!("!{latest}.hidden && !document.querySelector('.tb-log-tools input').checked")).await;
    stage.until(LIMIT, &format!("{last} > 900")).await;
    assert_eq!(stage.eval(&at_end).await, false);
    client.until(id, Duration::from_secs(60), |task| task["state"] == "succeeded").await;
    stage.until(LIMIT, &format!("{last} >= 2701")).await;
    stage.eval(&format!("{latest}.click()")).await;
    stage
        .until(LIMIT, &format!("{latest}.hidden && {at_end} && document.querySelector('.tb-log-tools input').checked"))
        .await;
    assert!(stage.eval(&format!("{log}.childElementCount")).await.as_i64().unwrap() <= 2_000);
    let top = stage.eval(&format!("{log}.firstElementChild.textContent")).await;
    assert!(top.as_str().unwrap().contains("2,000"), "what has left the page is told: {top}");
    assert_eq!(stage.eval(WHOLE).await, true);
}
