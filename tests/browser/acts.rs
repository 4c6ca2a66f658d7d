//! What a person does with a task: asked first, sent once, painted when the server has said so.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};
use thirtyfour::Key;

pub fn tests() -> Vec<Test> {
    browser_tests![
        a_dialog_starts_at_its_safe_button_closes_on_escape_and_gives_the_focus_back,
        resume_and_retry_are_two_questions_and_stand_only_where_they_are_allowed,
        nothing_is_final_before_the_server_says_so_and_two_clicks_are_one,
        a_conflict_shows_the_task_as_it_is_and_says_why,
        a_cancel_waits_for_its_worker_and_says_when_that_takes_long,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";
const DIALOG: &str = "document.querySelector('taskbell-bell').shadowRoot.querySelector('dialog[open]')";

fn button(row: &str, act: &str) -> String {
    format!("{row}?.querySelector('button[data-do={act}]')")
}

/// Opens the question of an act; answers what it says.
async fn question(stage: &Stage, row: &str, act: &str) -> String {
    stage.until(LIMIT, &button(row, act)).await;
    stage.eval(&format!("({0}.focus(), {0}.click(), true)", button(row, act))).await;
    stage.until(LIMIT, DIALOG).await;
    stage.eval(&format!("{DIALOG}.innerText")).await.as_str().unwrap().to_owned()
}

fn id(task: &Value) -> &str {
    task["id"].as_str().unwrap()
}

async fn a_dialog_starts_at_its_safe_button_closes_on_escape_and_gives_the_focus_back(stage: &Stage) {
    stage.plays(json!({"1": [{"hasMore": true, "current": 1_250, "total": 5_000, "unit": "rows", "nextDelaySeconds": 1}, {"hold": {"ms": 60_000}, "hasMore": true}]})).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(playing(1, "Import customers of May")).await;
    client.until(id(&task), LIMIT, |task| task["progress"]["current"] == 1_250).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("{row}?.querySelector('[data-part=count]').textContent.includes('1,250')")).await;
    let said = question(stage, &row, "cancel").await;
    assert!(
        said.contains("Cancel “Import customers of May”?") && said.contains("1,250 rows committed so far are kept"),
        "{said}"
    );
    assert_eq!(stage.eval(&format!("{BELL}.activeElement.textContent")).await, "Keep it running");
    assert_eq!(stage.eval(&format!("{DIALOG}.querySelectorAll('h2').length === 1 && {DIALOG}.getAttribute('aria-labelledby') === {DIALOG}.querySelector('h2').id")).await, true);
    // The row is drawn anew behind the dialog: the focus finds the button again.
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, &format!("!{DIALOG} && {BELL}.activeElement === {}", button(&row, "cancel"))).await;
    assert_eq!(
        stage.eval("document.querySelector('taskbell-bell').open").await,
        true,
        "Escape closed the dialog alone"
    );
    question(stage, &row, "cancel").await;
    client.post(&format!("/api/v1/tasks/{}/pause", id(&task)), &json!({})).await;
    stage.until(LIMIT, &format!("['pausing', 'paused'].includes({row}.dataset.state)")).await;
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, &format!("!{DIALOG} && {BELL}.activeElement?.dataset.do === 'cancel'")).await;
    // On a page, the same; and in Chinese.
    stage.speak("zh-CN").await;
    let row = stage.open_bell_on(&task).await;
    let said = question(stage, &row, "cancel").await;
    assert!(said.contains("取消“Import customers of May”？") && said.contains("已提交的 1,250 行 会保留"), "{said}");
}

async fn resume_and_retry_are_two_questions_and_stand_only_where_they_are_allowed(stage: &Stage) {
    stage
        .plays(json!({"1": [
            {"hasMore": true, "current": 40, "total": 80, "unit": "rows"},
            {"fail": {"code": "no", "message": "The bank is closed.", "retryable": false}},
        ]}))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    let body =
        json!({"action": "clean-contacts", "params": {"count": 1}, "title": "Send invoices", "idempotencyKey": "june"});
    let first = client.submit(body.clone()).await;
    client.until(id(&first), LIMIT, |task| task["state"] == "failed").await;
    let row = stage.open_bell_on(&first).await;
    let shown = format!("[...{row}.querySelectorAll('[data-do]')].map((b) => b.dataset.do).join()");
    stage.until(LIMIT, &format!("{shown} === 'resume,retry,delete'")).await;
    let said = question(stage, &row, "resume").await;
    assert!(said.contains("goes on from its checkpoint at 40 rows. Finished work is not repeated."), "{said}");
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, &format!("!{DIALOG}")).await;
    let said = question(stage, &row, "retry").await;
    assert!(
        said.contains("from the start?") && said.contains("40 rows already committed may be processed again"),
        "{said}"
    );
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    // The key has passed to a newer task: the server lists no resume any more, and so there is no button.
    let second = client.submit(body).await;
    stage.until(LIMIT, &format!("{shown} === 'retry,delete'")).await;
    question(stage, &row, "retry").await;
    stage.confirm().await;
    client.until_any("/api/v1/tasks", LIMIT, |list| list["items"].as_array().unwrap().len() == 3).await;
    let (_, list) = client.get("/api/v1/tasks").await;
    let newest = &list["items"][0];
    assert_eq!((&newest["retryOf"], newest["id"] != second["id"]), (&first["id"], true));
    client.until(id(newest), LIMIT, |task| task["state"] == "failed").await;
    let (_, now) = client.get(&format!("/api/v1/tasks/{}", id(&first))).await;
    assert_eq!(now["state"], "failed", "the first one stays as it was");
}

async fn nothing_is_final_before_the_server_says_so_and_two_clicks_are_one(stage: &Stage) {
    stage.plays(json!({"1": [{"fail": {"code": "no", "message": "No.", "retryable": false}}], "2": [{"hasMore": true, "current": 1, "nextDelaySeconds": 60}]})).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let (failed, waits) = (client.submit(playing(1, "failed")).await, client.submit(playing(2, "waits")).await);
    client.until(id(&failed), LIMIT, |task| task["state"] == "failed").await;
    client.until(id(&waits), LIMIT, |task| task["waiting"]["reason"] == "delay").await;
    let (failed_row, row) = (stage.open_bell_on(&failed).await, stage.bell_row(&waits));
    question(stage, &row, "cancel").await;
    stage.proxy.stall();
    stage.confirm().await;
    let cancel = button(&row, "cancel");
    stage.until(LIMIT, &format!("{cancel}.hasAttribute('data-pending')")).await;
    // A second click while the first is on its way opens nothing and sends nothing.
    stage.eval(&format!("({cancel}.click(), {cancel}.click(), true)")).await;
    let shown = stage
        .eval(&format!("[{row}.dataset.state, {row}.querySelector('[data-part=word]').textContent, Boolean({DIALOG})]"))
        .await;
    assert_eq!(shown, json!(["running", "Running", false]));
    stage.proxy.take_seen();
    stage.proxy.mend();
    stage.until(LIMIT, &format!("{row}.dataset.state === 'cancelled' && !{row}.querySelector('[data-pending]')")).await;
    // Twice on Yes is one retry.
    question(stage, &failed_row, "retry").await;
    stage.eval(&format!("(() => {{ const yes = {DIALOG}.querySelector('.tb-dialog-foot button:last-child'); yes.click(); yes.click(); return true; }})()")).await;
    let retried =
        |list: &Value| list["items"].as_array().unwrap().iter().filter(|task| task["state"] == "failed").count() == 2;
    client.until_any("/api/v1/tasks", LIMIT, retried).await;
    let posts: usize =
        stage.proxy.take_seen().iter().filter(|(path, _)| path.ends_with("/retry")).map(|(_, n)| n).sum();
    assert_eq!(posts, 1);
    assert_eq!(client.get("/api/v1/tasks").await.1["items"].as_array().unwrap().len(), 3);
}

async fn a_conflict_shows_the_task_as_it_is_and_says_why(stage: &Stage) {
    stage.plays(json!({"1": [{"hasMore": true, "current": 1, "nextDelaySeconds": 4}, {"hasMore": false}]})).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(playing(1, "ends meanwhile")).await;
    let row = stage.open_bell_on(&task).await;
    question(stage, &row, "cancel").await;
    client.until(id(&task), LIMIT, |task| task["state"] == "succeeded").await;
    stage.confirm().await;
    let message = format!("{row}.querySelector('[data-part=message]').textContent");
    let why = "This task changed meanwhile:";
    stage.until(LIMIT, &format!("{row}.dataset.state === 'succeeded' && {message}.startsWith('{why}')")).await;
    stage.until(LIMIT, &format!("!{row}.querySelector('[data-pending]') && {}", button(&row, "delete"))).await;
    // It is said aloud too.
    stage.until(LIMIT, &format!("document.getElementById('tb-status').textContent.includes('{why}')")).await;
}

/// The page's monotonic clock, which a test may set ahead.
const AHEAD: &str = "(() => { const real = performance.now.bind(performance); window.ahead = 0; performance.now = () => real() + window.ahead; })()";

async fn a_cancel_waits_for_its_worker_and_says_when_that_takes_long(stage: &Stage) {
    stage.browser.preload(AHEAD).await;
    stage
        .plays(json!({"1": [{"hold": {"ms": 6_000, "deaf": true, "total": 500}, "hasMore": true, "current": 500}]}))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(playing(1, "does not listen")).await;
    let row = stage.open_bell_on(&task).await;
    client.until(id(&task), LIMIT, |task| task["progress"]["current"].as_i64() > Some(2)).await;
    question(stage, &row, "cancel").await;
    stage.confirm().await;
    let said = format!("{row}.querySelector('[data-part=message]').textContent");
    stage
        .until(LIMIT, &format!("{row}.dataset.kind === 'cancelling' && {said} === 'until the current batch ends'"))
        .await;
    stage.eval("(window.ahead = 61000, true)").await;
    stage
        .until(LIMIT, &format!("{row}.dataset.kind !== 'cancelling' || {said} === 'worker has not confirmed yet'"))
        .await;
    assert_eq!(stage.eval(&format!("{row}.dataset.kind")).await, "cancelling", "never shown as cancelled before it is");
    stage.until(LIMIT, &format!("{row}.dataset.state === 'cancelled' && /^stopped at/.test({said})")).await;
}
