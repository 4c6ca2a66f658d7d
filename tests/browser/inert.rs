//! What comes from a task is text, wherever it is shown.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::fs;

pub fn tests() -> Vec<Test> {
    browser_tests![markup_from_a_task_is_inert_on_every_page]
}

const MARKUP: &str = "<img src=x onerror=alert(1)>";
const SCRIPT: &str = "</script><svg onload=alert(2)>";

/// A handler that says markup in every way it can.
const HANDLER: &str = r#"
export default async function (task, cx) {
  const bad = "<img src=x onerror=alert(1)>";
  for (const level of ["info", "warn", "error"]) cx.log(`${bad}</script><svg onload=alert(2)>`, level);
  if (cx.checkpoint === null) return { hasMore: true, checkpoint: { bad }, current: 1, total: 3, unit: bad, phase: bad, message: bad };
  if (task.params.count === 2) return { fail: { code: "bad", message: bad, retryable: false } };
  return { hasMore: false, result: { [bad]: bad }, current: 2, total: 3, unit: bad, phase: bad, message: bad };
}
"#;

async fn markup_from_a_task_is_inert_on_every_page(stage: &Stage) {
    fs::write(stage.folder().await.join("data/demo/clean-contacts.js"), HANDLER).unwrap();
    let client = stage.client().await;
    let mut ids = Vec::new();
    for (count, state) in [(1, "succeeded"), (2, "failed")] {
        let title = format!("{MARKUP}{SCRIPT}{count}");
        let record = json!({"type": "customer-import", "id": format!("{MARKUP}{count}")});
        let task = client
            .submit(json!({"action": "clean-contacts", "params": {"count": count}, "title": title, "record": record,
            "idempotencyKey": format!("{SCRIPT}{count}")}));
        let id = task.await["id"].as_str().unwrap().to_owned();
        client.until(&id, LIMIT, |task| task["state"] == state).await;
        ids.push(id);
    }
    stage.sign_in().await;
    let record = "/records/customer-import/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E1";
    let search = "/notifications?q=%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    let unknown = "/tasks/%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E";
    let tasks = ids.iter().map(|id| format!("/tasks/{id}"));
    for path in ["/", "/notifications", search, record, unknown].into_iter().map(str::to_owned).chain(tasks) {
        stage.open(&path).await;
        if path != unknown {
            let row = stage.open_bell_on(&json!({"id": ids[0]})).await;
            stage.until(LIMIT, &format!("{row}?.textContent.includes('{MARKUP}')")).await;
        }
        let shown = "document.body.innerText.includes('<img src=x') || document.querySelector('input[type=search]')?.value.includes('<img src=x')";
        if path != "/" && path != unknown {
            stage.until(LIMIT, shown).await;
        }
        assert!(stage.driver().get_alert_text().await.is_err(), "{path} opened a dialog");
        let live = stage.eval("(() => { const bell = document.querySelector('taskbell-bell')?.shadowRoot; \
            return [document, bell].filter(Boolean).flatMap((root) => [...root.querySelectorAll('img, [onerror], [onload]')]).length; })()");
        assert_eq!(live.await, 0, "{path} has an element that came from a text");
    }
    let log = stage.driver().browser_log().await.unwrap();
    let refused: Vec<_> = log.iter().filter(|entry| entry.message.contains("Content Security Policy")).collect();
    assert!(refused.is_empty(), "the policy had to step in, so something was markup: {refused:?}");
}
