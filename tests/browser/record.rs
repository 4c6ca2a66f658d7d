//! The page of a business record, its chip, and the ways between a task and its record.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;

pub fn tests() -> Vec<Test> {
    browser_tests![
        the_chip_of_a_record_opens_the_center_on_its_task,
        what_is_unknown_and_what_belongs_to_others_look_the_same,
        the_pages_of_a_record_go_forward_and_back_over_the_same_tasks
    ]
}

async fn the_chip_of_a_record_opens_the_center_on_its_task(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let record = json!({"type": "customer-import", "id": "a/b 7"});
    let page = "/records/customer-import/a%2Fb%207";
    stage.open(page).await;
    stage.until_live().await;
    let chip = "document.querySelector('[data-part=chip]')";
    assert_eq!(stage.eval(&format!("{chip}.hidden")).await, true, "a record without tasks has no chip");
    // A task that somebody starts elsewhere appears by itself.
    let submit = |pause: f64| json!({"action": "recalculate-totals", "params": {"pause": pause}, "record": record});
    let older = client.submit(submit(0.0)).await;
    let short = |task: &serde_json::Value| format!("#{}", &task["id"].as_str().unwrap()[32..]);
    stage.until(LIMIT, &format!("!{chip}.hidden && {chip}.innerText.includes('{}')", short(&older))).await;
    let task = client.submit(submit(0.5)).await;
    let id = task["id"].as_str().unwrap();
    stage
        .until(
            LIMIT,
            &format!("{chip}.innerText.includes('{}') && /Running\\s*\\d+%/.test({chip}.innerText)", short(&task)),
        )
        .await;
    assert_eq!(
        stage.eval("[...document.querySelectorAll('main [data-task]')].map((row) => row.dataset.task)").await,
        json!([id, older["id"]])
    );
    stage.picture("record-chip").await;
    stage.eval(&format!("{chip}.click()")).await;
    stage.until(LIMIT, &format!("document.querySelector('taskbell-bell').open && document.querySelector('taskbell-bell').shadowRoot.activeElement?.dataset.task === '{id}'")).await;
    // Without a script the chip leads to the task, which gets the focus; from there a link leads back.
    let href = stage.eval(&format!("{chip}.href")).await;
    stage.driver().goto(href.as_str().unwrap()).await.unwrap();
    stage.until(LIMIT, "document.activeElement === document.querySelector('h1')").await;
    let back = stage.eval("document.querySelector('.task-under a.tb-chip').getAttribute('href')").await;
    assert_eq!(back, page.replace("-import", "%2Dimport"));
    client.post(&format!("/api/v1/tasks/{id}/cancel"), &json!({})).await;
    client.until(id, LIMIT, |task| task["state"] == "cancelled").await;
    stage.open(page).await;
    stage.until_live().await;
    assert_eq!(client.delete(&format!("/api/v1/tasks/{id}")).await, 204);
    stage
        .until(
            LIMIT,
            &format!(
                "!document.querySelector('main [data-task=\"{id}\"]') && {chip}.innerText.includes('{}')",
                short(&older)
            ),
        )
        .await;
}

async fn what_is_unknown_and_what_belongs_to_others_look_the_same(stage: &Stage) {
    let others = stage.server.lock().await.client("somebody-else", "user").await;
    let record = json!({"type": "invoice", "id": "secret"});
    let theirs = others.submit(json!({"action": "rebuild-index", "params": {"pause": 0}, "record": record})).await;
    let theirs = theirs["id"].as_str().unwrap().to_owned();
    stage.sign_in().await;
    let mut shown = Vec::new();
    for path in [
        format!("/tasks/{theirs}"),
        format!("/tasks/{}ffff", &theirs[..32]),
        "/records/invoice/secret".to_owned(),
        "/records/invoice/unknwn".to_owned(),
    ] {
        stage.open(&path).await;
        let text = stage.eval("document.querySelector('main').innerText").await.as_str().unwrap().to_owned();
        // A request has a number of its own, and a record's name is what was asked for.
        let lines: Vec<&str> = text.lines().filter(|line| !line.contains("Request ")).collect();
        shown.push(lines.join("\n").replace("secret", "unknwn"));
    }
    assert_eq!((&shown[0], &shown[2]), (&shown[1], &shown[3]));
    assert!(shown[0].contains("It does not exist, or it is not yours to see."), "{}", shown[0]);
    assert!(shown[2].contains("No task has worked on this record yet."), "{}", shown[2]);
}

async fn the_pages_of_a_record_go_forward_and_back_over_the_same_tasks(stage: &Stage) {
    let client = stage.client().await;
    // They stay queued, so that nothing moves but the pages.
    let record = json!({"type": "invoice", "id": "9"});
    let task = json!({"action": "rebuild-index", "record": record, "runAt": "2199-01-01T00:00:00Z"});
    let (_, answers) = client.post("/api/v1/tasks/batch", &json!({"items": vec![task; 120]})).await;
    assert!(answers["items"].as_array().unwrap().iter().all(|item| item["status"] == 201), "{answers}");
    stage.sign_in().await;
    stage.open("/records/invoice/9").await;
    let ids = "[...document.querySelectorAll('main [data-task]')].map((row) => row.dataset.task)";
    let mut forward = Vec::new();
    for page in 0..3 {
        stage.until_live().await;
        forward.push(stage.eval(ids).await);
        if page < 2 {
            stage.click("a[rel=next]").await;
            stage.until(LIMIT, &format!("!{}.includes({ids}[0])", forward[page])).await;
        }
    }
    let all: std::collections::BTreeSet<&str> =
        forward.iter().flat_map(|page| page.as_array().unwrap()).map(|id| id.as_str().unwrap()).collect();
    assert_eq!(all.len(), 120, "each task once");
    for page in (0..2).rev() {
        stage.driver().back().await.unwrap();
        stage.until(LIMIT, &format!("JSON.stringify({ids}) === JSON.stringify({})", forward[page])).await;
    }
    for cursor in ["0", "-1", "9223372036854775807", "x"] {
        stage.open(&format!("/records/invoice/9?cursor={cursor}")).await;
        let said = stage.eval("document.querySelector('main').innerText").await;
        assert!(said.as_str().unwrap().contains("This request cannot be read"), "{cursor}: {said}");
    }
}
