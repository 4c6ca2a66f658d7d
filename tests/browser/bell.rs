//! The bell: it shows a click at once, and moves without a reload, in every tab alike.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        a_click_shows_in_the_bell_within_300_ms,
        bar_counts_and_eta_move_without_a_reload,
        a_second_tab_shows_the_same
    ]
}

/// Counts the tasks that the bell calls running, by its accessible name.
const RUNNING: &str = "Number((document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-bell-button').ariaLabel.match(/(\\d+) running/) ?? [0, 0])[1])";

/// Clicks a button and answers after how many milliseconds the bell calls one more task running.
const CLICK_TO_BELL: &str = r"
    const [button, done] = arguments;
    const bell = document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-bell-button');
    const running = () => Number((bell.ariaLabel.match(/(\d+) running/) ?? [0, 0])[1]);
    const before = running();
    const start = performance.now();
    const watch = new MutationObserver(() => running() > before && (watch.disconnect(), done(performance.now() - start)));
    watch.observe(bell, { attributes: true });
    button.click();
";

async fn a_click_shows_in_the_bell_within_300_ms(stage: &Stage) {
    stage.sign_in().await;
    stage.until(LIMIT, "document.querySelector('taskbell-bell').shadowRoot?.querySelector('.tb-bell-button')").await;
    stage.until_live().await;
    let mut took = Vec::new();
    for n in 1..=5 {
        stage.click("[data-action='recalculate-totals'] > .tb-button").await;
        let submit = stage.find("dialog button[type='submit']").await;
        let answer = stage.driver().execute_async(CLICK_TO_BELL, vec![submit.to_json().unwrap()]).await.unwrap();
        took.push(answer.json().as_f64().unwrap());
        stage.until(LIMIT, &format!("{RUNNING} >= {n} && !document.querySelector('dialog')")).await;
    }
    took.sort_by(f64::total_cmp);
    println!("from click to bell, ms: {took:.0?}");
    // The machine that runs the tests may be busy with others: the better half has to be in time.
    assert!(took[2] <= 300.0, "from click to bell, ms: {took:.0?}");
}

async fn bar_counts_and_eta_move_without_a_reload(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.eval("window.sameDocument = true").await;
    let task = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0.1}})).await;
    let row = stage.open_bell_on(&task).await;
    let count = stage.row_count(&row).await;
    let bar = format!("Number({row}?.querySelector('[data-part=bar]').getAttribute('value'))");
    let before = stage.eval(&bar).await.as_f64().unwrap();
    stage.until(LIMIT, &format!("{bar} >= {before} + 2")).await;
    assert_ne!(stage.row_count(&row).await, count);
    let estimate = format!("/left/.test({row}?.querySelector('[data-part=eta]').textContent)");
    stage.until(Duration::from_secs(30), &estimate).await;
    assert_eq!(
        stage.eval(&format!("{row}.querySelector('[data-part=percent]').textContent.endsWith('%')")).await,
        true
    );
    stage.until(Duration::from_secs(60), &format!("{row}?.dataset.state === 'succeeded'")).await;
    assert!(stage.row_count(&row).await.contains("50,000"), "{}", stage.row_count(&row).await);
    assert_eq!(stage.eval("window.sameDocument").await, true, "the page was never loaded again");
}

async fn a_second_tab_shows_the_same(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let first = stage.driver().window().await.unwrap();
    let second = stage.open_tab("/").await;
    let task = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0.3}})).await;
    let id = task["id"].as_str().unwrap();
    let row = stage.open_bell_on(&task).await;
    stage.driver().switch_to_window(first.clone()).await.unwrap();
    stage.open_bell_on(&task).await;
    stage
        .until(
            LIMIT,
            &format!("{row}?.dataset.state === 'running' && {row}.querySelector('[data-part=count]').textContent"),
        )
        .await;
    client.post(&format!("/api/v1/tasks/{id}/pause"), &json!({})).await;
    client.until(id, LIMIT, |task| task["state"] == "paused").await;
    let mut shown = Vec::new();
    for tab in [first, second] {
        stage.driver().switch_to_window(tab).await.unwrap();
        stage.until(LIMIT, &format!("{row}?.dataset.state === 'paused'")).await;
        shown.push(stage.eval(&format!("[{row}.dataset.revision, {row}.textContent]")).await);
    }
    assert_eq!(shown[0], shown[1]);
}
