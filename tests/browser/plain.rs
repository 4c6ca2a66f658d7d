//! Without a script, and so without a socket, the pages still do their work: links and forms.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;

pub fn tests() -> Vec<Test> {
    browser_tests![a_task_is_started_seen_and_cancelled_without_a_script]
}

async fn a_task_is_started_seen_and_cancelled_without_a_script(stage: &Stage) {
    let client = stage.client().await;
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": ["*.js"]})).await;
    stage.sign_in().await;
    stage.click("#recalculate-totals summary").await;
    stage.click("#recalculate-totals form button").await;
    let found = client
        .until_any("/api/v1/tasks", LIMIT, |list| list["items"].as_array().is_some_and(|items| items.len() == 1))
        .await;
    let task = &found["items"][0];
    stage.open("/notifications").await;
    let listed = stage.text(&format!("main [data-task='{}']", task["id"].as_str().unwrap())).await;
    assert!(listed.contains("Recalculate order totals"));
    // A cancel asks first, and names what it is about; the way back does nothing.
    for answer in ["a.tb-button", "button"] {
        stage.open("/notifications").await;
        stage.click("main [data-task] button[data-do='cancel']").await;
        stage.until_text("main h1", "Cancel “Recalculate order totals”?").await;
        let told = stage.text("main .lead").await;
        assert!(told.contains("committed"), "{told}");
        assert_ne!(
            client.get(&format!("/api/v1/tasks/{}", task["id"].as_str().unwrap())).await.1["state"],
            "cancelled"
        );
        stage.click(&format!("main form.answers {answer}")).await;
    }
    let id = task["id"].as_str().unwrap();
    client.until(id, LIMIT, |task| task["state"] == "cancelled").await;
    stage.open(&format!("/tasks/{id}")).await;
    stage.find("main [data-part='head'][data-kind='cancelled']").await;
    // What is possible now is offered.
    stage.find("button[data-do='resume']").await;
    assert!(!stage.proxy.take_seen().keys().any(|request| request.contains("/ws")), "there was no socket");
}
