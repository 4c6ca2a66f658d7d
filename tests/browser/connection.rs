//! The connection: a cut heals to the true state, and an idle page asks for nothing.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

pub fn tests() -> Vec<Test> {
    browser_tests![
        after_ten_seconds_without_a_socket_the_true_state_shows,
        a_killed_server_comes_back_and_the_page_goes_on,
        an_idle_page_asks_for_no_list_whether_the_socket_is_up_or_down,
    ]
}

/// After a cut the first try comes within 2 s, the next within 2, 4 and 8 s more.
const BACK_LIMIT: Duration = Duration::from_secs(30);

/// Long enough for a ping of the server, and for every clock of the page that counts in seconds.
const IDLE: Duration = Duration::from_secs(40);

/// Proves: G8.
async fn after_ten_seconds_without_a_socket_the_true_state_shows(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let ends = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0.05}})).await;
    let goes_on = client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 20}})).await;
    let (ends_row, goes_on_row) = (stage.open_bell_on(&ends).await, stage.open_bell_on(&goes_on).await);
    stage.until(LIMIT, &format!("{goes_on_row}?.dataset.state === 'running'")).await;
    stage.proxy.cut();
    let cut = tokio::time::Instant::now();
    let live =
        "document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-panel-foot .tb-live').dataset.live";
    stage.until(LIMIT, &format!("['reconnecting', 'offline'].includes({live})")).await;
    // What happens meanwhile: one task comes to its end, and a new one is there.
    client.until(ends["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    let new = client.submit(json!({"action": "sync-catalogue", "params": {"pause": 1}})).await;
    sleep(Duration::from_secs(10).saturating_sub(cut.elapsed())).await;
    assert_ne!(stage.eval(&format!("{ends_row}?.dataset.state")).await, "succeeded", "nothing came through the cut");
    stage.proxy.mend();
    stage.until(BACK_LIMIT, &format!("{live} === 'live'")).await;
    stage.until(LIMIT, &format!("{ends_row}?.dataset.state === 'succeeded'")).await;
    let new_row = stage.bell_row(&new);
    stage.until(LIMIT, &format!("{new_row}?.dataset.state === 'running'")).await;
    // The one that still runs is as far as the database says, and goes on moving.
    let (_, now) = client.get(&format!("/api/v1/tasks/{}", goes_on["id"].as_str().unwrap())).await;
    let least = now["revision"].as_i64().unwrap();
    stage.until(LIMIT, &format!("Number({goes_on_row}?.dataset.revision) >= {least}")).await;
}

async fn a_killed_server_comes_back_and_the_page_goes_on(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "import-customers", "params": {"pause": 0.05}})).await;
    let row = stage.open_bell_on(&task).await;
    // Every value the bar ever shows is kept.
    stage.eval(&format!(
        "(window.shown = [], new MutationObserver(() => {row} && window.shown.push(Number({row}.querySelector('[data-part=bar]').getAttribute('value')))) \
         .observe(document.querySelector('taskbell-bell').shadowRoot, {{ subtree: true, attributes: true, attributeFilter: ['value'] }}), true)"
    )).await;
    let bar = format!("Number({row}?.querySelector('[data-part=bar]').getAttribute('value'))");
    for share in [10, 40] {
        stage.until(LIMIT, &format!("{bar} >= {share}")).await;
        let mut server = stage.server.lock().await;
        server.kill().await;
        server.start_again().await;
    }
    stage.until(Duration::from_secs(90), &format!("{row}?.dataset.state === 'succeeded'")).await;
    assert!(stage.row_count(&row).await.contains("20,000 / 20,000"), "{}", stage.row_count(&row).await);
    let fell = stage.eval(
        "window.shown.slice(0, -1).some((value, at) => value && window.shown[at + 1] && window.shown[at + 1] < value)",
    );
    assert_eq!(fell.await, false, "the bar never runs backwards");
}

/// Proves: G8.
async fn an_idle_page_asks_for_no_list_whether_the_socket_is_up_or_down(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}})).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("{row}?.dataset.state === 'succeeded'")).await;
    // The panel marks what it has shown for a second as seen; that is the last thing this page has to say.
    let badge = "document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-badge').hidden";
    stage.until(LIMIT, badge).await;
    let up = stage.driver().window().await.unwrap();
    // Beside it a page that gets no socket.
    stage.proxy.refuse(&["/api/v1/ws"]);
    stage.open_window("/notifications").await;
    stage
        .until(LIMIT, "document.querySelector('main [data-part=live] .tb-live')?.textContent === 'Reconnecting'")
        .await;
    stage.proxy.take_seen();
    sleep(IDLE).await;
    let mut seen = stage.proxy.take_seen();
    let tries = seen.remove("GET /api/v1/ws").unwrap_or(0);
    assert!((2..=60).contains(&tries), "{tries} tries");
    // Once in an outage it is asked whether anybody is still signed in, for a refused socket does not tell.
    assert!(seen.remove("GET /api/v1/actions").unwrap_or(0) <= 1);
    assert!(seen.is_empty(), "an idle page asked: {seen:?}");
    assert_eq!(stage.eval("document.hidden").await, false);
    stage.driver().switch_to_window(up).await.unwrap();
    stage.until_live().await;
}
