//! The subtasks on the page of a task: they come, move and end there while it is open, in both languages and on a phone.

use crate::browser_tests;
use crate::looks::look;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;

pub fn tests() -> Vec<Test> {
    browser_tests![subtasks_come_move_and_end_on_the_page_of_their_task]
}

const SECTION: &str = "document.querySelector('[data-part=\"children\"]')";
/// State and title of each row, newest first.
const ROWS: &str = "[...document.querySelectorAll('[data-part=\"children-rows\"] [data-task]')].map((row) => \
    `${row.dataset.state} ${row.querySelector('[data-part=\"title\"]').textContent}`).sort().join(', ')";

async fn subtasks_come_move_and_end_on_the_page_of_their_task(stage: &Stage) {
    let child = |play: u32, title: &str| playing(play, title);
    // The pause of the parent ends its first chunk, and so its subtasks come when the page is there.
    stage
        .plays(json!([
            [],
            [{"hold": {"ms": 25_000}, "hasMore": true, "checkpoint": {}, "submit": [child(2, "long part"), child(3, "bad part")],
              "wait": {"children": true, "onFailure": "ignore"}}, {"hasMore": false}],
            [{"hold": {"ms": 25_000, "total": 100, "every": 300}, "hasMore": true, "checkpoint": {}}],
            [{"fail": {"code": "x", "message": "The part is bad.", "retryable": false}}],
        ]))
        .await;
    let client = stage.client().await;
    stage.sign_in().await;
    let parent = client.submit(playing(1, "whole")).await["id"].as_str().unwrap().to_owned();
    client.until(&parent, LIMIT, |task| task["state"] == "running").await;
    stage.open(&format!("/tasks/{parent}")).await;
    stage.until_live().await;
    assert_eq!(stage.eval(&format!("{SECTION}.hidden")).await, true);
    assert_eq!(client.post(&format!("/api/v1/tasks/{parent}/pause"), &json!({})).await.0, 202);
    stage.until(LIMIT, &format!("!{SECTION}.hidden && {ROWS} === 'failed bad part, running long part'")).await;
    assert_eq!(stage.eval("document.querySelector('[data-part=\"children-count\"]').textContent").await, "2");
    assert_eq!(
        stage.eval("document.querySelector('h1').textContent").await,
        "whole",
        "the rows below take no part of the page"
    );
    let before = stage.eval("performance.timeOrigin").await;
    stage.click("[data-part='children-rows'] [data-state='running'] [data-do='cancel']").await;
    stage.click("dialog[open] .tb-dialog-foot button:last-child").await;
    stage.until(LIMIT, &format!("{ROWS} === 'cancelled long part, failed bad part'")).await;
    assert_eq!(stage.eval("performance.timeOrigin").await, before, "the page was not loaded again");
    let mut found = Vec::new();
    for (language, title, width) in [("en", "Subtasks", 1280), ("zh-CN", "子任务", 390)] {
        stage.speak(language).await;
        stage.screen(width, 900).await;
        stage.open(&format!("/tasks/{parent}")).await;
        assert_eq!(stage.eval(&format!("{SECTION}.querySelector('h2').textContent")).await, title);
        assert_eq!(stage.eval(ROWS).await, "cancelled long part, failed bad part", "the server writes the same rows");
        look(stage, &format!("subtasks-{language}-{width}"), &mut found).await;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}
