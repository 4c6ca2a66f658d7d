//! The list under its filters: they live in the address, pages go by cursor, and a mark touches what it names.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use crate::server::Client;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        filters_live_in_the_address_and_a_mark_under_them_touches_what_it_names,
        pages_go_by_cursor_and_tell_how_long_tasks_stay,
    ]
}

const PLAYS: &str =
    r#"{"1": [{"hasMore": false}], "3": [{"fail": {"code": "no", "message": "No.", "retryable": false}}]}"#;

/// Sixty ends: 55 successes and 3 failures of one action, 2 of another.
async fn sixty_ends(stage: &Stage, client: &Client) {
    stage.plays(serde_json::from_str(PLAYS).unwrap()).await;
    let mut items = vec![playing(1, "Send invoices"); 55];
    items.extend(vec![playing(3, "Send reminders"); 3]);
    items.extend(vec![json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}}); 2]);
    items[57]["record"] = json!({"type": "customer-import", "id": "42"});
    client.post("/api/v1/tasks/batch", &json!({"items": items})).await;
    let ended = |list: &Value| list["counts"]["succeeded"] == 57 && list["counts"]["failed"] == 3;
    client.until_any("/api/v1/tasks?limit=1", Duration::from_secs(60), ended).await;
}

/// How many unread ends a filter of the list finds.
async fn unread(client: &Client, filter: &str) -> usize {
    let (_, list) = client.get(&format!("/api/v1/tasks?limit=200&{filter}")).await;
    list["items"].as_array().unwrap().iter().filter(|task| task["read"] == false).count()
}

const BUTTON: &str = "document.querySelector('form[data-mark-read]:not([hidden]) button')";

async fn filters_live_in_the_address_and_a_mark_under_them_touches_what_it_names(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    sixty_ends(stage, &client).await;
    stage.open("/notifications").await;
    stage.until(LIMIT, &format!("{BUTTON}?.textContent === 'Mark 60 read'")).await;
    // By hand: an action, a text; each choice is an address that can be kept.
    stage.eval("(document.querySelector('[name=action]').value = 'clean-contacts', document.querySelector('[name=action]').dispatchEvent(new Event('change', { bubbles: true })), true)").await;
    stage.until(LIMIT, "location.search.includes('action=clean-contacts') && document.querySelector('[name=action]').value === 'clean-contacts'").await;
    stage.click(".chips a[data-state='failed']").await;
    stage
        .until(LIMIT, "location.search.includes('state=failed') && location.search.includes('action=clean-contacts')")
        .await;
    stage
        .until(
            LIMIT,
            &format!(
                "document.querySelectorAll('main [data-task]').length === 3 && {BUTTON}?.textContent === 'Mark 3 read'"
            ),
        )
        .await;
    // Each filter by its address: how many rows stand there, and how many a mark names.
    let today = stage.eval("new Date().toLocaleDateString('sv')").await;
    for (query, rows, named) in [
        ("record=customer-import:42", 1, 1),
        ("q=reminders", 3, 3),
        ("q=%25", 0, 0),
        (&format!("state=succeeded&from={0}&to={0}", today.as_str().unwrap()), 50, 57),
        ("from=2020-01-01&to=2020-01-02", 0, 0),
        ("action=clean-contacts", 50, 58),
    ] {
        stage.open(&format!("/notifications?{query}")).await;
        stage.until(LIMIT, &format!("document.querySelectorAll('main [data-task]').length === {rows}")).await;
        let said = if named == 0 { "undefined".to_owned() } else { format!("'Mark {named} read'") };
        stage.until_live().await;
        stage.until(LIMIT, &format!("{BUTTON}?.textContent.trim() === {said}")).await;
    }
    // Beyond the page too, and nothing else.
    stage.eval(&format!("({BUTTON}.click(), true)")).await;
    stage.until(LIMIT, &format!("!{BUTTON}")).await;
    client
        .until_any("/api/v1/tasks?limit=200", LIMIT, |list| {
            list["items"].as_array().unwrap().iter().filter(|task| task["read"] == true).count() == 58
        })
        .await;
    assert_eq!(unread(&client, "action=recalculate-totals").await, 2);
    // Without a script the form does the same.
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": ["*.js"]})).await;
    stage.open("/notifications?action=recalculate-totals&state=succeeded").await;
    assert_eq!(stage.eval(&format!("{BUTTON}.textContent.trim()")).await, "Mark 2 read");
    client.submit(playing(3, "fails later")).await;
    stage.click("form[data-mark-read] button").await;
    stage.until(LIMIT, &format!("location.search.includes('recalculate-totals') && !{BUTTON}")).await;
    assert_eq!((unread(&client, "action=recalculate-totals").await, unread(&client, "q=later").await), (0, 1));
}

const IDS: &str = "[...document.querySelectorAll('main [data-task]')].map((row) => row.dataset.task)";

async fn pages_go_by_cursor_and_tell_how_long_tasks_stay(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    sixty_ends(stage, &client).await;
    let ids = |told: Value| -> BTreeSet<String> { serde_json::from_value(told).unwrap() };
    stage.open("/notifications").await;
    stage.until_live().await;
    stage.until(LIMIT, &format!("{IDS}.length === 50")).await;
    let first = ids(stage.eval(IDS).await);
    // What ends or comes meanwhile moves no page: the cursor is a place, and not a number of rows.
    let late = client.submit(playing(1, "late")).await;
    stage.until(LIMIT, &stage.list_row(&late)).await;
    assert_eq!(
        stage.eval("[...document.querySelectorAll('main .tb-group-count')].at(-1).textContent.endsWith('+')").await,
        true
    );
    stage.click(".pager a[rel='next']").await;
    stage.until(LIMIT, &format!("location.search.includes('cursor=') && {IDS}.length === 10")).await;
    let second = ids(stage.eval(IDS).await);
    assert!(first.is_disjoint(&second), "a row stands on one page");
    assert_eq!(stage.eval("Boolean(document.querySelector('.pager a[rel=next]'))").await, false);
    stage.until(LIMIT, "document.querySelector('.tb-fresh')").await;
    client.submit(playing(1, "later still")).await;
    stage.until(LIMIT, "document.querySelector('.tb-fresh:not([hidden])')?.textContent === '1 new task'").await;
    assert_eq!(ids(stage.eval(IDS).await), second, "nothing pushes in on another page");
    for (language, kept) in [
        ("en", "Ended tasks are kept here: succeeded 30 days, failed 90 days, cancelled 90 days."),
        ("zh-CN", "任务结束后在此保留：已完成 30 天，失败 90 天，已取消 90 天。"),
    ] {
        stage.speak(language).await;
        stage.open("/notifications").await;
        assert_eq!(stage.eval("document.querySelector('.pager').firstElementChild.textContent").await, kept);
    }
}
