//! Without a script, and so without a socket, the pages still do their work: links and forms.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use thirtyfour::By;

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
    let listed = stage.find(&format!("main [data-task='{}']", task["id"].as_str().unwrap())).await;
    assert!(listed.text().await.unwrap().contains("Recalculate order totals"));
    // A cancel asks first, and names what it is about; the way back does nothing.
    for answer in ["a.tb-button", "button"] {
        stage.open("/notifications").await;
        stage.click("main [data-task] button[data-do='cancel']").await;
        assert_eq!(stage.find("main h1").await.text().await.unwrap(), "Cancel “Recalculate order totals”?");
        let told = stage.find("main .lead").await.text().await.unwrap();
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
    assert_eq!(stage.find("main [data-part='head']").await.attr("data-kind").await.unwrap().unwrap(), "cancelled");
    assert!(stage.driver().find(By::Css("button[data-do='resume']")).await.is_ok(), "what is possible now is offered");
    assert!(!stage.proxy.take_seen().keys().any(|request| request.contains("/ws")), "there was no socket");
}
