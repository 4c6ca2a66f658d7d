//! The forms of the buttons, made from the schema of the params.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use thirtyfour::By;

pub fn tests() -> Vec<Test> {
    browser_tests![
        a_file_from_the_disk_is_uploaded_and_imported_whole,
        a_fault_stands_beside_its_field,
        a_click_on_a_held_key_says_so
    ]
}

async fn a_file_from_the_disk_is_uploaded_and_imported_whole(stage: &Stage) {
    stage.sign_in().await;
    stage.click("[data-action='import-customers'] > .tb-button").await;
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("demo/customers.csv");
    let input = stage.find("dialog input[type='file']").await;
    input.send_keys(file.to_str().unwrap()).await.unwrap();
    stage.until(LIMIT, "document.querySelector('dialog .tb-drop').textContent.includes('customers.csv')").await;
    let pause = "[...document.querySelectorAll('dialog .tb-field')].find((f) => f.textContent.includes('Pause')).querySelector('input')";
    stage.eval(&format!("({pause}.value = '0', true)")).await;
    stage.until(LIMIT, "document.querySelector('dialog .tb-drop progress').hidden").await;
    stage.click("dialog button[type='submit']").await;
    // The button turns into the task's row, in place.
    let row = "document.querySelector('[data-action=import-customers] [data-task]')";
    stage.until(LIMIT, row).await;
    stage.until(Duration::from_secs(60), &format!("{row}.dataset.state === 'succeeded'")).await;
    let text = stage.eval(&format!("{row}.textContent")).await;
    assert!(text.as_str().unwrap().contains("20,000 rows in "), "{text}");
    let id = stage.eval(&format!("{row}.dataset.task")).await;
    let (_, task) = stage.client().await.get(&format!("/api/v1/tasks/{}", id.as_str().unwrap())).await;
    assert_eq!((&task["progress"]["current"], &task["progress"]["total"]), (&json!(20_000), &json!(20_000)));
    assert_eq!(task["rows"]["ok"], 20_000);
}

async fn a_fault_stands_beside_its_field(stage: &Stage) {
    stage.sign_in().await;
    stage.click("[data-action='recalculate-totals'] > .tb-button").await;
    let field = "[...document.querySelectorAll('dialog .tb-field')].find((f) => f.textContent.includes('Tax rate'))";
    stage.until(LIMIT, field).await;
    for wrong in ["101", "-1", "many"] {
        stage.eval(&format!("({field}.querySelector('input').value = '{wrong}', true)")).await;
        stage.click("dialog button[type='submit']").await;
        stage.until(LIMIT, &format!("!{field}.querySelector('.tb-error').hidden")).await;
        assert_eq!(stage.eval(&format!("{field}.querySelector('input').ariaInvalid")).await, "true", "{wrong}");
        assert_eq!(stage.eval(&format!("document.activeElement === {field}.querySelector('input')")).await, true);
    }
    let (_, list) = stage.client().await.get("/api/v1/tasks").await;
    assert_eq!(list["items"], json!([]), "nothing was started");
}

async fn a_click_on_a_held_key_says_so(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    client.submit(json!({"action": "sync-catalogue", "params": {"pause": 2}})).await;
    stage.click("[data-action='sync-catalogue'] > .tb-button").await;
    stage.click("dialog button[type='submit']").await;
    stage.until(LIMIT, "!document.querySelector('[data-action=sync-catalogue] [data-part=note]').hidden").await;
    let (_, list) = client.get("/api/v1/tasks").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "the second click made no second task");
    assert_eq!(stage.driver().find_all(By::Css("[data-action='sync-catalogue'] [data-task]")).await.unwrap().len(), 1);
}
