//! Many tasks before somebody who reads: counts that are the server's, rows that hold still, like tasks in one row.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};
use std::time::Duration;
use thirtyfour::Key;

pub fn tests() -> Vec<Test> {
    browser_tests![
        many_new_ends_read_99_plus_and_opening_clears_them_all,
        groups_stand_in_order_and_nothing_moves_under_the_pointer,
        a_hundred_changes_leave_focus_selection_and_scroll_alone_and_come_at_most_four_times_a_second,
        more_than_five_like_tasks_fold_into_one_row,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";
const BADGE: &str = "document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-badge')";
const NAME: &str = "document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-bell-button').ariaLabel";

/// Submits the same click many times over.
async fn submit_many(client: &crate::server::Client, count: usize, task: Value) {
    let items = vec![task; count];
    let (status, answer) = client.post("/api/v1/tasks/batch", &json!({"items": items})).await;
    assert_eq!(status, 200, "{answer}");
}

async fn many_new_ends_read_99_plus_and_opening_clears_them_all(stage: &Stage) {
    stage
        .plays(json!({
            "1": [{"hasMore": false}], "2": [{"hold": {"ms": 60_000}, "hasMore": true}],
            "3": [{"fail": {"code": "no", "message": "No.", "retryable": false}}],
        }))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    stage.until_live().await;
    client.submit(playing(2, "holds")).await;
    stage.until(LIMIT, &format!("{NAME} === 'Notifications, 1 running'")).await;
    assert_eq!(stage.eval(&format!("{BADGE}.hidden")).await, true, "what runs is no news");
    submit_many(&client, 98, playing(1, "ends")).await;
    client.submit(playing(3, "fails")).await;
    stage.until(Duration::from_secs(60), &format!("{BADGE}.textContent === '99'")).await;
    stage.until(LIMIT, &format!("{NAME} === 'Notifications, 99 new, 1 running'")).await;
    submit_many(&client, 22, playing(1, "ends")).await;
    stage.until(Duration::from_secs(60), &format!("{NAME} === 'Notifications, 121 new, 1 running'")).await;
    assert_eq!(stage.eval(&format!("{BADGE}.textContent")).await, "99+");
    // More than a snapshot holds: all of them are shown, and seen, one snapshot after the other.
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    stage.until(LIMIT, &format!("{BADGE}.hidden && {NAME} === 'Notifications, 1 running'")).await;
    let (_, center) = client.get("/api/v1/notifications?filter=unread").await;
    assert_eq!((&center["counts"]["unseen"], &center["counts"]["attention"]), (&json!(0), &json!(1)));
    assert!(center["items"].as_array().unwrap().iter().all(|task| task["read"] == false && task["seen"] == true));
    // In focus the name is read aloud when it changes: at most once in 10 s, and the newest is never left out.
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, &format!("{BELL}.activeElement?.className === 'tb-bell-button'")).await;
    stage.eval(&format!("(window.names = 0, new MutationObserver((all) => window.names += all.length).observe({BELL}.activeElement, {{ attributes: true, attributeFilter: ['aria-label'] }}), true)")).await;
    for n in ["1", "2", "3"] {
        client.submit(playing(1, "ends")).await;
        stage.until(LIMIT, &format!("{BADGE}.textContent === '{n}'")).await;
    }
    let names = stage.eval("window.names").await.as_i64().unwrap();
    assert!(names <= 1, "the name was read {names} times");
    stage.eval(&format!("({BELL}.activeElement.blur(), true)")).await;
    stage.until(LIMIT, &format!("{NAME} === 'Notifications, 3 new, 1 running'")).await;
}

/// The groups on the screen: name, count, and how many rows stand there.
const GROUPS: &str = "[...document.querySelector('taskbell-bell').shadowRoot.querySelectorAll('.tb-group:not([hidden])')].map((g) => `${g.dataset.group} ${g.querySelector('.tb-group-count').textContent} ${g.querySelectorAll('.tb-row').length}`)";
/// Where each row stands.
const PLACES: &str = "JSON.stringify([...document.querySelector('taskbell-bell').shadowRoot.querySelectorAll('.tb-row')].map((r) => [r.dataset.task, Math.round(r.getBoundingClientRect().top)]))";

async fn groups_stand_in_order_and_nothing_moves_under_the_pointer(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let done = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}})).await;
    let failed = client.submit(json!({"action": "reconcile-payments", "params": {"pause": 0}})).await;
    let runs = client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 20}})).await;
    let waits = client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 20}})).await;
    for (task, state) in [(&done, "succeeded"), (&failed, "failed"), (&runs, "running"), (&waits, "blocked")] {
        client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == state).await;
    }
    let row = stage.open_bell_on(&failed).await;
    stage.until(LIMIT, &format!("{row}?.dataset.state === 'failed'")).await;
    let in_order = json!(["attention 1 1", "running 1 1", "queued 1 1", "today 1 1"]);
    stage.until(LIMIT, &format!("JSON.stringify({GROUPS}) === JSON.stringify({in_order})")).await;
    let running = stage.bell_row(&runs);
    let place = stage
        .eval(&format!("[{running}.getBoundingClientRect().left + 60, {running}.getBoundingClientRect().top + 20]"))
        .await;
    stage.point_at(place[0].as_f64().unwrap(), place[1].as_f64().unwrap()).await;
    let before = stage.eval(PLACES).await;
    // One ends, one starts, one is new, one is deleted: all of it waits for the pointer to leave.
    client.post(&format!("/api/v1/tasks/{}/cancel", runs["id"].as_str().unwrap()), &json!({})).await;
    stage.until(LIMIT, &format!("{running}.dataset.state === 'cancelled'")).await;
    stage.until(LIMIT, &format!("{}.dataset.state === 'running'", stage.bell_row(&waits))).await;
    let new = client.submit(json!({"action": "sync-catalogue", "params": {"pause": 1}})).await;
    let fresh = format!("{BELL}.querySelector('.tb-fresh')");
    stage.until(LIMIT, &format!("!{fresh}.hidden && {fresh}.textContent === '1 new task'")).await;
    stage
        .ask(&format!(
            "await fetch('/api/v1/tasks/{}', {{ method: 'DELETE' }}); return true;",
            done["id"].as_str().unwrap()
        ))
        .await;
    let gone = stage.bell_row(&done);
    stage.until(LIMIT, &format!("{gone}.querySelector('[data-part=word]').textContent === 'Removed'")).await;
    assert_eq!(stage.eval(PLACES).await, before, "not a row has moved");
    assert_eq!(stage.eval(&format!("Boolean({})", stage.bell_row(&new))).await, false);
    stage.point_at(5.0, 700.0).await;
    let after = json!(["attention 1 1", "running 2 2", "today 1 1"]);
    stage.until(LIMIT, &format!("JSON.stringify({GROUPS}) === JSON.stringify({after})")).await;
    assert_eq!(stage.eval(&format!("Boolean({gone}) || !{fresh}.hidden")).await, false, "what is gone has left");
    // The list of the notification center keeps the same order, and takes over what the server wrote.
    stage.open("/notifications").await;
    stage.eval(&format!("(window.row = {}, true)", stage.list_row(&failed))).await;
    stage.until_live().await;
    let listed = "[...document.querySelectorAll('main .tb-group:not([hidden])')].map((g) => `${g.dataset.group} ${g.querySelector('.tb-group-count').textContent}`)";
    stage.until(LIMIT, &format!("JSON.stringify({listed}) === '[\"attention 1\",\"running 2\",\"today 1\"]'")).await;
    assert_eq!(
        stage
            .eval(&format!(
                "window.row === {} && window.row.querySelector('button[data-do=retry]').form === null",
                stage.list_row(&failed)
            ))
            .await,
        true,
        "taken over in place"
    );
}

/// Watches the rows of the bell: how many patches of rows there were, and in how many moments.
const WATCH: &str = r"
    const root = document.querySelector('taskbell-bell').shadowRoot.querySelector('.tb-panel-body');
    window.patched = 0; window.moments = [];
    new MutationObserver((records) => {
      window.patched += new Set(records.map((r) => (r.target.closest ?? r.target.parentElement.closest).call(r.target.closest ? r.target : r.target.parentElement, '.tb-row'))).size;
      const now = performance.now();
      if (now - (window.moments.at(-1) ?? -Infinity) > 20) window.moments.push(now);
    }).observe(root, { subtree: true, childList: true, characterData: true, attributes: true });
    return true;
";

async fn a_hundred_changes_leave_focus_selection_and_scroll_alone_and_come_at_most_four_times_a_second(stage: &Stage) {
    stage.plays(json!({"1": [{"hold": {"ms": 120_000, "total": 9_000, "every": 40}, "hasMore": true}]})).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let mut tasks = Vec::new();
    for n in 0..4 {
        tasks.push(client.submit(playing(1, &format!("moves {n}"))).await);
    }
    for _ in 0..5 {
        client.submit(json!({"action": "recalculate-totals", "params": {"pause": 1, "batch": 500}})).await;
    }
    let row = stage.open_bell_on(&tasks[0]).await;
    stage.until(LIMIT, &format!("[...{BELL}.querySelectorAll('.tb-row')].filter((r) => r.dataset.state === 'running' && r.querySelector('[data-do=cancel]')).length === 9")).await;
    let body = format!("{BELL}.querySelector('.tb-panel-body')");
    stage.eval(&format!("({body}.scrollTop = 120, {row}.querySelector('[data-do=cancel]').focus({{ preventScroll: true }}), window.row = {row}, true)")).await;
    let place = stage.eval(PLACES).await;
    // Moving bars are laid out with each frame, inside of themselves; here is counted what else is.
    let still = json!({"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]});
    stage.browser.devtools("Emulation.setEmulatedMedia", still).await;
    stage.browser.devtools("Performance.enable", json!({})).await;
    stage.ask(WATCH).await;
    let layouts = stage.work_done("LayoutCount").await;
    stage.until(Duration::from_secs(60), "window.patched >= 100").await;
    let layouts = stage.work_done("LayoutCount").await - layouts;
    let moments: Vec<f64> = serde_json::from_value(stage.eval("window.moments").await).unwrap();
    assert_eq!(stage.eval(&format!("window.row === {row} && {BELL}.activeElement === {row}.querySelector('[data-do=cancel]') && {body}.scrollTop")).await, 120);
    assert_eq!(stage.eval(PLACES).await, place);
    let most = moments
        .iter()
        .map(|start| moments.iter().filter(|at| (0.0..1000.0).contains(&(*at - start))).count())
        .max()
        .unwrap();
    println!("patches in {} moments, at most {most} in a second; {layouts} layouts", moments.len());
    assert!(most <= 4, "the rows were painted {most} times within a second: {moments:?}");
    // One look at the layout for each change of what is shown, and none in between: nothing is measured while it is written.
    assert!(layouts <= 3.0 * moments.len() as f64 + 10.0, "{layouts} layouts for {} changes", moments.len());
    stage.open("/notifications").await;
    let listed = stage.list_row(&tasks[1]);
    stage.until(LIMIT, &listed).await;
    stage.until_live().await;
    let count = format!("{listed}.querySelector('[data-part=count]').textContent");
    stage.eval(&format!("(getSelection().selectAllChildren({listed}.querySelector('[data-part=title]')), window.seen = new Set(), true)")).await;
    stage.until(LIMIT, &format!("window.seen.add({count}).size > 8")).await;
    assert_eq!(stage.eval("getSelection().toString()").await, "moves 1");
}

async fn more_than_five_like_tasks_fold_into_one_row(stage: &Stage) {
    stage
        .plays(json!({
            "1": [{"hasMore": false}], "2": [{"hold": {"ms": 120_000}, "hasMore": true}],
            "3": [{"fail": {"code": "no", "message": "No.", "retryable": false}}],
        }))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    submit_many(&client, 3, playing(1, "Send invoices")).await;
    submit_many(&client, 2, playing(2, "Send invoices")).await;
    let last = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}})).await;
    let row = stage.open_bell_on(&last).await;
    stage
        .until(
            LIMIT,
            &format!("{row}?.dataset.state === 'succeeded' && {BELL}.querySelectorAll('.tb-row').length === 6"),
        )
        .await;
    assert_eq!(stage.eval(&format!("Boolean({BELL}.querySelector('.tb-batch'))")).await, false, "five are five rows");
    let failed = client.submit(playing(3, "Send invoices")).await;
    let batch = format!("{BELL}.querySelector('.tb-batch')");
    let told = "3 done, 1 failed, 2 running";
    stage.until(LIMIT, &format!("{batch}?.querySelector('summary').textContent === 'Send invoices × 6{told}'")).await;
    assert_eq!(stage.eval(GROUPS).await, json!(["attention 6 6", "today 1 1"]));
    let inside = stage.bell_row(&failed);
    assert_eq!(stage.eval(&format!("{batch}.open || {inside}.checkVisibility()")).await, false, "it is folded");
    stage.eval(&format!("({batch}.querySelector('summary').click(), true)")).await;
    stage
        .until(LIMIT, &format!("{inside}.checkVisibility() && {batch}.querySelectorAll('.tb-row').length === 6"))
        .await;
    // It stays open while its members go on, and the server folds by the same rule.
    client.submit(playing(1, "Send invoices")).await;
    stage
        .until(
            LIMIT,
            &format!(
                "{batch}.open && {batch}.querySelector('summary').textContent.includes('4 done, 1 failed, 2 running')"
            ),
        )
        .await;
    stage.open("/notifications").await;
    stage
        .until(LIMIT, "document.querySelector('main .tb-batch summary')?.textContent.includes('Send invoices × 7')")
        .await;
    let same = "document.querySelectorAll('main .tb-batch').length === 1 && document.querySelector('main .tb-batch').querySelectorAll('.tb-row').length === 7";
    stage.until_live().await;
    stage.until(LIMIT, same).await;
}
