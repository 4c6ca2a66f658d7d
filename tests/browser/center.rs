//! The notification center under somebody who reads it: counts that are true, rows that hold still.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use thirtyfour::Key;

pub fn tests() -> Vec<Test> {
    browser_tests![
        the_badge_counts_what_was_not_seen_and_reading_is_another_mark,
        focus_and_selection_survive_a_stream_of_changes,
        new_rows_wait_while_somebody_is_in_the_list,
        a_cancel_asks_first_and_says_what_stays,
        escape_closes_the_panel_and_gives_the_focus_back,
        signing_out_ends_what_the_page_may_show,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";

async fn the_badge_counts_what_was_not_seen_and_reading_is_another_mark(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.until_live().await;
    assert_eq!(stage.eval(&format!("{BELL}.querySelector('.tb-badge').hidden")).await, true, "nothing is new yet");
    for _ in 0..2 {
        let body = json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}});
        let task = client.submit(body).await;
        client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    }
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-badge').textContent === '2'")).await;
    assert_eq!(stage.eval(&format!("{BELL}.querySelector('.tb-bell-button').ariaLabel")).await, "Notifications, 2 new");
    // Seen is what stood in the open panel for a second; the badge follows the server's counts.
    stage.eval(&format!("{BELL}.querySelector('.tb-bell-button').click()")).await;
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-badge').hidden")).await;
    let (_, center) = client.get("/api/v1/notifications").await;
    assert_eq!(center["counts"]["unseen"], 0, "{}", center["counts"]);
    let marks: Vec<_> = center["items"].as_array().unwrap().iter().map(|t| (&t["seen"], &t["read"])).collect();
    assert!(marks.iter().all(|(seen, read)| **seen == json!(true) && **read == json!(false)), "{marks:?}");
    assert_eq!(stage.eval(&format!("{BELL}.querySelectorAll('[data-part=unread]:not([hidden])').length")).await, 2);
}

async fn focus_and_selection_survive_a_stream_of_changes(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let body = json!({"action": "recalculate-totals", "params": {"pause": 0.1, "batch": 200}});
    let task = client.submit(body).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("{row}?.querySelector('[data-do=cancel]')")).await;
    stage.eval(&format!("({row}.querySelector('[data-do=cancel]').focus(), window.row = {row}, true)")).await;
    ten_changes_of(stage, &row).await;
    assert_eq!(stage.eval(&format!("{row} === window.row")).await, true, "the row was patched, not made anew");
    assert_eq!(stage.eval(&format!("{BELL}.activeElement === {row}.querySelector('[data-do=cancel]')")).await, true);
    stage.open("/notifications").await;
    stage.until_live().await;
    let row = stage.list_row(&task);
    stage.until(LIMIT, &row).await;
    stage.eval(&format!("(getSelection().selectAllChildren({row}.querySelector('[data-part=title]')), true)")).await;
    ten_changes_of(stage, &row).await;
    assert_eq!(stage.eval("getSelection().toString()").await, "Recalculate order totals");
}

/// Waits until a running row was patched ten times.
async fn ten_changes_of(stage: &Stage, row: &str) {
    let patched = format!("{row}.querySelector('[data-part=count]').textContent");
    let count = format!("(window.seen ??= new Set(), window.seen.add({patched}), window.seen.size > 10)");
    stage.eval("(delete window.seen, true)").await;
    stage.until(LIMIT, &format!("{count} && {row}.dataset.state === 'running'")).await;
}

async fn new_rows_wait_while_somebody_is_in_the_list(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let first = client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 50}})).await;
    let row = stage.open_bell_on(&first).await;
    stage.until(LIMIT, &format!("{row}?.querySelector('[data-do=cancel]')")).await;
    stage.eval(&format!("({row}.querySelector('[data-do=cancel]').focus(), true)")).await;
    let second = client.submit(json!({"action": "sync-catalogue", "params": {"pause": 1}})).await;
    let fresh = format!("{BELL}.querySelector('.tb-fresh')");
    stage.until(LIMIT, &format!("!{fresh}.hidden && {fresh}.textContent.includes('1 new task')")).await;
    let second = stage.bell_row(&second);
    assert_eq!(stage.eval(&format!("Boolean({second})")).await, false, "nothing moves under the focus");
    stage.eval(&format!("({fresh}.querySelector('button').click(), true)")).await;
    stage.until(LIMIT, &format!("{second} && {fresh}.hidden")).await;
}

async fn a_cancel_asks_first_and_says_what_stays(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 1}})).await;
    let id = task["id"].as_str().unwrap();
    let row = stage.open_bell_on(&task).await;
    client.until(id, LIMIT, |task| task["progress"]["current"].as_i64() > Some(0)).await;
    stage.until(LIMIT, &format!("/[1-9]/.test({row}?.querySelector('[data-part=count]').textContent)")).await;
    stage.eval(&format!("({row}.querySelector('[data-do=cancel]').click(), true)")).await;
    let dialog = format!("{BELL}.querySelector('dialog[open]')");
    stage.until(LIMIT, &dialog).await;
    let text = stage.eval(&format!("{dialog}.textContent")).await;
    let text = text.as_str().unwrap();
    assert!(text.contains("Recalculate order totals") && text.contains("orders committed so far are kept"), "{text}");
    // A blind Enter is the safe answer.
    let safe = format!("{dialog}.querySelector('.tb-dialog-foot button')");
    assert_eq!(stage.eval(&format!("{BELL}.activeElement === {safe}")).await, true);
    stage.eval(&format!("({safe}.click(), true)")).await;
    stage.until(LIMIT, &format!("!{dialog}")).await;
    assert_eq!(client.get(&format!("/api/v1/tasks/{id}")).await.1["state"], "running");
}

async fn escape_closes_the_panel_and_gives_the_focus_back(stage: &Stage) {
    stage.sign_in().await;
    stage.until_live().await;
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    stage.until(LIMIT, "document.querySelector('taskbell-bell').open").await;
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, "!document.querySelector('taskbell-bell').open").await;
    assert_eq!(stage.eval(&format!("{BELL}.activeElement?.className")).await, "tb-bell-button");
}

async fn signing_out_ends_what_the_page_may_show(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let first = stage.driver().window().await.unwrap();
    stage.open_tab("/notifications").await;
    stage.until_live().await;
    stage.click("[data-sign-out] button").await;
    stage.find("main[data-page='login']").await;
    // The other tab of the same person loses its socket too, and says so instead of standing still.
    stage.driver().switch_to_window(first).await.unwrap();
    let live = format!("{BELL}.querySelector('.tb-panel-foot .tb-live').dataset.live");
    stage.until(LIMIT, &format!("{live} === 'signed-out'")).await;
    let secret = json!({"action": "recalculate-totals", "params": {"pause": 0}, "title": "not for whoever is next"});
    let task = client.submit(secret).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    assert_eq!(stage.eval(&format!("Boolean({})", stage.bell_row(&task))).await, false);
    stage.open(&format!("/tasks/{}", task["id"].as_str().unwrap())).await;
    stage.find("main[data-page='login']").await;
}
