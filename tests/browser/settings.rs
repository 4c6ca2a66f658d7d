//! `/settings`: language and zone without a script, and the notices of the system.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test> {
    browser_tests![
        language_and_zone_are_chosen_without_a_script_and_every_time_follows,
        the_evening_of_one_zone_is_the_next_day_of_another,
        notices_of_the_system_are_asked_for_by_a_click_and_say_title_and_state_alone,
    ]
}

/// A task that starts years from now, in the late evening of UTC.
async fn far_task(stage: &Stage) -> Value {
    let at = "2031-10-12T23:00:00.000Z";
    stage.client().await.submit(json!({"action": "rebuild-index", "params": {"pause": 0}, "runAt": at})).await
}

/// What the list says of when a task starts, and in which zone.
async fn shown(stage: &Stage, task: &Value) -> (String, String) {
    let time = format!("{}.querySelector('[data-part=at]')", stage.list_row(task));
    stage.until(LIMIT, &format!("{time}?.textContent && {time}.title")).await;
    let of = async |part: &str| stage.eval(&format!("{time}.{part}")).await.as_str().unwrap().to_owned();
    (of("textContent").await, of("title").await)
}

/// Fills the form in and sends it.
async fn choose(stage: &Stage, language: &str, zone: &str) {
    stage.open("/settings").await;
    stage.eval(&format!("(document.getElementById('lang').value = '{language}', document.getElementById('zone').value = '{zone}', true)")).await;
    stage.click(".settings-form button").await;
    stage.find(".tb-banner[data-tone='ok']").await;
    assert_eq!(
        stage.eval("[document.documentElement.lang, document.getElementById('zone').value]").await,
        json!([language, zone])
    );
}

async fn language_and_zone_are_chosen_without_a_script_and_every_time_follows(stage: &Stage) {
    stage.open("/settings").await;
    stage.find("main[data-page='login']").await;
    let task = far_task(stage).await;
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": ["*.js"]})).await;
    stage.sign_in().await;
    stage.click("header a[href='/settings']").await;
    stage.find("main[data-page='settings']").await;
    choose(stage, "zh-CN", "Asia/Kolkata").await;
    assert_eq!(stage.eval("document.querySelector('h1').textContent").await, "设置");
    stage.open("/notifications").await;
    let (text, title) = shown(stage, &task).await;
    assert_eq!(text, "2031-10-13 04:30:00");
    assert!(title.starts_with("Asia/Kolkata"), "{title}");
    // With scripts the choice goes before the browser's own zone.
    stage.browser.devtools("Network.setBlockedURLs", json!({"urls": []})).await;
    stage.browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": "America/New_York"})).await;
    choose(stage, "en", "Europe/Paris").await;
    stage.open("/notifications").await;
    stage.until_live().await;
    let (text, title) = shown(stage, &task).await;
    assert_eq!(text, "2031-10-13 01:00:00");
    assert!(title.starts_with("Europe/Paris"), "{title}");
    choose(stage, "en", "").await;
    stage.open("/notifications").await;
    stage.until_live().await;
    assert_eq!(shown(stage, &task).await.0, "2031-10-12 19:00:00");
}

async fn the_evening_of_one_zone_is_the_next_day_of_another(stage: &Stage) {
    let task = far_task(stage).await;
    stage.sign_in().await;
    for (zone, text) in [("Europe/Paris", "2031-10-13 01:00:00"), ("Asia/Kolkata", "2031-10-13 04:30:00")] {
        stage.browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": zone})).await;
        stage.open("/notifications").await;
        stage.until_live().await;
        let (shown, title) = shown(stage, &task).await;
        assert_eq!(shown, text);
        // A browser may know a zone by its older name.
        assert!(title.starts_with(zone) || title.starts_with("Asia/Calcutta"), "{title}");
        let past = "import('/static/time.js').then(({ full }) => done(full('2021-10-12T23:00:00Z')));";
        assert_eq!(stage.eval_async(past).await, text.replace("2031", "2021"));
    }
}

/// What the browser shows and is asked, kept for the test; the person answers what `answer` says.
const NOTIFICATION: &str = "window.Notification = class extends EventTarget {
    static get permission() { return localStorage.getItem('answered') ?? 'default'; }
    static async requestPermission() { window.asked = (window.asked ?? 0) + 1; localStorage.setItem('answered', 'granted'); return 'granted'; }
    constructor(title, options) { super(); (window.notices ??= []).push([title, options.body, options.tag, Object.keys(options).sort().join()]); }
};";

async fn notices_of_the_system_are_asked_for_by_a_click_and_say_title_and_state_alone(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let first = stage.driver().window().await.unwrap();
    let second = stage.open_tab("/login").await;
    stage.browser.devtools("Page.enable", json!({})).await;
    stage.browser.devtools("Page.addScriptToEvaluateOnNewDocument", json!({"source": NOTIFICATION})).await;
    stage.driver().switch_to_window(first).await.unwrap();
    stage.driver().close_window().await.unwrap();
    stage.driver().switch_to_window(second).await.unwrap();
    stage.open("/settings").await;
    stage.until_live().await;
    let ask = "document.querySelector('[data-part=ask]')";
    stage.until(LIMIT, ask).await;
    let explained = format!("document.getElementById({ask}.getAttribute('aria-describedby')).textContent");
    assert!(stage.eval(&explained).await.as_str().unwrap().contains("its title and its state, nothing else"));
    assert_eq!(stage.eval("window.asked ?? 0").await, 0, "nobody is asked before a click");
    stage.click("[data-part='ask']").await;
    stage.until(LIMIT, "document.querySelector('[data-preference=system]')?.checked && window.asked === 1").await;
    let body = |title: &str| json!({"action": "rebuild-index", "params": {"pause": 0}, "title": title});
    // While somebody looks, the page itself tells.
    let seen = client.submit(body("while looked at")).await;
    stage.until(LIMIT, "document.querySelector('.tb-toast')?.textContent.includes('while looked at')").await;
    stage.hide().await;
    let hidden = client.submit(body("while hidden")).await;
    stage.until(LIMIT, "window.notices?.length > 0").await;
    assert_eq!(
        stage.eval("window.notices").await,
        json!([["while hidden", "Succeeded", hidden["id"], "body,lang,tag"]]),
        "{seen}"
    );
    stage.unhide().await;
    // What was told by the system is not told once more to who comes back; what nobody was told of is one sentence.
    stage.eval("(localStorage.setItem('answered', 'denied'), true)").await;
    stage.hide().await;
    for title in ["one unseen", "another unseen"] {
        let task = client.submit(body(title)).await;
        client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    }
    let keep =
        "import('/static/center.js').then(({ center }) => center()).then((kept) => done(Boolean(window.kept = kept)));";
    assert_eq!(stage.eval_async(keep).await, true);
    let heard =
        "window.kept.tasks.list().filter(({ title, state }) => title.endsWith('unseen') && state === 'succeeded')";
    stage.until(LIMIT, &format!("{heard}.length === 2")).await;
    stage.unhide().await;
    stage
        .until(LIMIT, "document.querySelector('.tb-toasts').textContent.includes('finished while you were away')")
        .await;
    let told = stage.eval(
        "[document.querySelector('.tb-toasts').textContent.match(/\\d tasks? finished/g), window.notices.length]",
    );
    assert_eq!(told.await, json!([["2 tasks finished"], 1]));
    // A refusal is told in words, and is no question any more.
    stage.open("/settings").await;
    stage.until(LIMIT, "document.querySelector('main').textContent.includes('taskbell does not ask again')").await;
    assert_eq!(stage.eval(&format!("[{ask}, window.asked ?? 0]")).await, json!([null, 0]));
}
