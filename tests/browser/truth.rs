//! Numbers that are never made prettier than they are: failed, cancelled, unknown.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        a_failed_task_stays_at_its_true_value,
        a_cancelled_task_stays_at_its_true_value,
        an_unknown_total_shows_no_percent_anywhere,
        rows_in_the_details_follow_the_task,
    ]
}

/// Holds what a row and the task's page show against what the database says, before and after a reload.
async fn stands_still_at_the_truth(stage: &Stage, task: &Value) {
    let (current, percent) =
        (task["progress"]["current"].as_i64().unwrap(), task["progress"]["percent"].as_i64().unwrap());
    assert!((1..100).contains(&percent), "{task}");
    let grouped = stage.eval(&format!("({current}).toLocaleString('en')")).await;
    let grouped = grouped.as_str().unwrap();
    for path in ["/", "/notifications"] {
        stage.open(path).await;
        let row = if path == "/" { stage.open_bell_on(task).await } else { stage.list_row(task) };
        stage.until(LIMIT, &format!("{row}?.querySelector('[data-part=percent]').textContent === '{percent}%'")).await;
        assert_eq!(
            stage.eval(&format!("Number({row}.querySelector('[data-part=bar]').getAttribute('value'))")).await,
            percent
        );
        assert_eq!(stage.eval(&format!("{row}.querySelector('[data-part=bar]').dataset.bar")).await, "value");
        let text = stage.eval(&format!("{row}.textContent")).await;
        let text = text.as_str().unwrap();
        assert!(text.contains(grouped) && !text.contains("100%"), "{path}: {text}");
    }
    stage.open(&format!("/tasks/{}", task["id"].as_str().unwrap())).await;
    stage
        .until(
            LIMIT,
            &format!("document.querySelector('[data-part=progress] [data-part=big]').textContent === '{percent}%'"),
        )
        .await;
}

/// Proves: G12.
async fn a_failed_task_stays_at_its_true_value(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "reconcile-payments", "params": {"pause": 0}})).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("{row}?.dataset.state === 'failed'")).await;
    let (_, task) = client.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await;
    stands_still_at_the_truth(stage, &task).await;
    // Resume is offered, and leads on from there to the right end.
    let row = {
        stage.open("/").await;
        stage.open_bell_on(&task).await
    };
    stage.eval(&format!("{row}.querySelector('[data-do=resume]').click()")).await;
    stage.confirm().await;
    stage.until(Duration::from_secs(60), &format!("{row}?.dataset.state === 'succeeded'")).await;
}

async fn a_cancelled_task_stays_at_its_true_value(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0.3}})).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("Number({row}?.querySelector('[data-part=bar]').getAttribute('value')) >= 2")).await;
    stage.eval(&format!("{row}.querySelector('[data-do=cancel]').click()")).await;
    stage.confirm().await;
    stage.until(LIMIT, &format!("{row}?.dataset.state === 'cancelled'")).await;
    let (_, task) = client.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await;
    assert_eq!(task["state"], "cancelled");
    stands_still_at_the_truth(stage, &task).await;
}

/// Proves: G12.
async fn an_unknown_total_shows_no_percent_anywhere(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "sync-catalogue", "params": {"pause": 0.3}})).await;
    let row = stage.open_bell_on(&task).await;
    stage.until(LIMIT, &format!("/\\d/.test({row}?.querySelector('[data-part=count]').textContent)")).await;
    assert_eq!(stage.eval(&format!("{row}.querySelector('[data-part=bar]').dataset.bar")).await, "moving");
    stage.until(LIMIT, &format!("{row}.textContent.includes('estimating')")).await;
    assert_eq!(stage.percent_signs(&row).await, json!([]));
    stage.open("/notifications").await;
    let listed = stage.list_row(&task);
    stage.until(LIMIT, &format!("/\\d/.test({listed}?.querySelector('[data-part=count]').textContent)")).await;
    assert_eq!(stage.percent_signs(&listed).await, json!([]));
    let id = task["id"].as_str().unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    let page = "document.querySelector('[data-part=progress]')";
    stage.until(LIMIT, &format!("/\\d/.test({page}?.querySelector('[data-part=big]').textContent)")).await;
    assert_eq!(stage.percent_signs(page).await, json!([]));
    client.until(id, Duration::from_secs(60), |task| task["state"] == "succeeded").await;
    stage.until(LIMIT, "document.querySelector('[data-part=head]').dataset.kind === 'succeeded'").await;
    assert_eq!(stage.percent_signs(page).await, json!([]), "nor after the end");
}

async fn rows_in_the_details_follow_the_task(stage: &Stage) {
    stage
        .plays(json!({"1": [
            {"hasMore": true, "current": 3, "total": 9, "rows": {"ok": 3}, "nextDelaySeconds": 1},
            {"hasMore": true, "current": 1_300, "total": 2_000, "rows": {"ok": 1_297, "skipped": 2, "failed": 1}, "nextDelaySeconds": 2},
            {"hasMore": false, "current": 2_000, "total": 2_000},
        ]}))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(playing(1, "counts")).await;
    stage.open(&format!("/tasks/{}", task["id"].as_str().unwrap())).await;
    let says = |name: &str, text: &str| {
        format!(
            "(({{ hidden, textContent }}) => !hidden && textContent === '{text}')(document.querySelector('[data-part={name}]')) && document.querySelector('[data-part={name}-label]').checkVisibility()"
        )
    };
    stage.until(LIMIT, &says("rows", "1,300 done, 2 skipped, 1 failed")).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    stage.until(LIMIT, "document.querySelector('[data-part=head]').dataset.kind === 'partial'").await;
    let details =
        "[...document.querySelectorAll('dl.details > *')].filter((e) => e.checkVisibility()).map((e) => e.textContent)";
    let live = stage.eval(details).await;
    stage.driver().refresh().await.unwrap();
    stage.until_live().await;
    assert_eq!(stage.eval(details).await, live, "the server writes the same");
}
