//! Several tabs of one person, and a tab that is hidden, left and come back to. Hidden here is hidden to the browser itself.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        of_hidden_tabs_one_keeps_its_socket_and_the_next_one_inherits_it,
        without_locks_no_hidden_tab_has_a_socket_and_a_look_is_true_at_once,
        a_mark_reaches_a_tab_that_has_no_socket,
        another_person_or_nobody_clears_every_tab,
        a_page_comes_back_from_the_cache_live_and_true,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";

/// A page that is not hidden has to be true again within three seconds; a slow machine may take three times as long.
const TRUE_AGAIN: Duration = Duration::from_secs(9);

async fn of_hidden_tabs_one_keeps_its_socket_and_the_next_one_inherits_it(stage: &Stage) {
    stage.sign_in().await;
    stage.until_live().await;
    for _ in 0..2 {
        stage.open_tab("/notifications").await;
        stage.until_live().await;
    }
    // One is looked at, two are behind it.
    stage.until_sockets(2).await;
    stage.hide().await;
    stage.until_sockets(1).await;
    stage.unhide().await;
    stage.until_live().await;
    stage.until_sockets(2).await;
    // Whichever of the two others kept one: when it goes, the other one has it.
    let windows = stage.driver().windows().await.unwrap();
    stage.driver().close_window().await.unwrap();
    stage.driver().switch_to_window(windows[0].clone()).await.unwrap();
    stage.until_live().await;
    stage.until_sockets(2).await;
    // A hidden page that the browser stops has no socket; it connects when it goes on.
    stage.driver().switch_to_window(windows[1].clone()).await.unwrap();
    stage.driver().close_window().await.unwrap();
    stage.driver().switch_to_window(windows[0].clone()).await.unwrap();
    stage.hide().await;
    stage.until_sockets(1).await;
    stage.browser.devtools("Page.setWebLifecycleState", json!({"state": "frozen"})).await;
    stage.until_sockets(0).await;
    stage.browser.devtools("Page.setWebLifecycleState", json!({"state": "active"})).await;
    stage.until_sockets(1).await;
}

async fn without_locks_no_hidden_tab_has_a_socket_and_a_look_is_true_at_once(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.driver().new_tab().await.unwrap();
    let windows = stage.driver().windows().await.unwrap();
    stage.driver().switch_to_window(windows[1].clone()).await.unwrap();
    // As on plain http, where a browser has no locks. The tab and with it this wish end with the test.
    let source = json!({"source": "delete Navigator.prototype.locks"});
    stage.browser.devtools("Page.enable", json!({})).await;
    stage.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source).await;
    stage.open("/notifications").await;
    assert_eq!(stage.eval("navigator.locks === undefined").await, true);
    stage.until_live().await;
    stage.hide().await;
    // The first tab has locks and keeps one; this one has none.
    stage.until_sockets(1).await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    assert_eq!(
        stage.eval(&format!("Boolean({})", stage.list_row(&task))).await,
        false,
        "nothing came without a socket"
    );
    stage.unhide().await;
    stage.until(TRUE_AGAIN, &format!("{}?.dataset.state === 'succeeded'", stage.list_row(&task))).await;
    stage.until_live().await;
}

async fn a_mark_reaches_a_tab_that_has_no_socket(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    let new = format!("!{BELL}.querySelector('.tb-badge').hidden");
    // Two hidden tabs: one of them keeps a socket, and the other one hears of the mark from the tab that set it.
    for _ in 0..2 {
        stage.until(LIMIT, &new).await;
        stage.open_bell_on(&task).await;
        let unread = format!("!{}.querySelector('[data-part=unread]').hidden", stage.bell_row(&task));
        stage.until(LIMIT, &unread).await;
        stage
            .eval(&format!(
                "(document.addEventListener('visibilitychange', () => {{ if (!document.hidden) window.unread ??= {unread}; }}), true)"
            ))
            .await;
        stage.open_tab("/notifications").await;
    }
    stage.until(LIMIT, "!document.querySelector('form[data-mark-read]').hidden").await;
    let windows = stage.driver().windows().await.unwrap();
    stage.click("form[data-mark-read] button").await;
    stage.until(LIMIT, "document.querySelector('form[data-mark-read]').hidden").await;
    for window in &windows[..2] {
        stage.driver().switch_to_window(window.clone()).await.unwrap();
        stage.until(LIMIT, "window.unread !== undefined").await;
        assert_eq!(stage.eval("window.unread").await, false, "it was read before anybody looked here");
    }
}

async fn another_person_or_nobody_clears_every_tab(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let secret = json!({"action": "rebuild-index", "params": {"pause": 0}, "title": "payroll of the board"});
    let task = client.submit(secret).await;
    let id = task["id"].as_str().unwrap();
    client.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    let told = "document.documentElement.innerHTML.includes('payroll') || document.title.includes('payroll') || \
        document.querySelector('taskbell-bell').shadowRoot.textContent.includes('payroll')";
    let first = stage.driver().window().await.unwrap();
    stage.open(&format!("/tasks/{id}")).await;
    stage.open_bell_on(&task).await;
    assert_eq!(stage.eval(told).await, true);
    stage.open_tab("/notifications").await;
    stage.until(LIMIT, &stage.list_row(&task)).await;
    // Somebody else signs in, in one of them.
    stage.open("/login").await;
    stage.click("button[name='user'][value='admin']").await;
    stage.find("main[data-page='actions']").await;
    stage.until_live().await;
    let second = stage.driver().window().await.unwrap();
    stage.driver().switch_to_window(first.clone()).await.unwrap();
    stage.until(LIMIT, &format!("!({told})")).await;
    assert_eq!(stage.eval("document.querySelector('main').innerText.includes('Signed out')").await, true);
    // And nobody: the way back does not lead to what was shown before.
    stage.open("/notifications?scope=tenant").await;
    stage.until(LIMIT, &stage.list_row(&task)).await;
    stage.click("[data-sign-out] button").await;
    stage.find("main[data-page='login']").await;
    stage.driver().back().await.unwrap();
    stage.until(LIMIT, &format!("document.readyState === 'complete' && !({told})")).await;
    stage.driver().switch_to_window(second).await.unwrap();
    stage.until(LIMIT, "document.querySelector('main').innerText.includes('Signed out')").await;
}

async fn a_page_comes_back_from_the_cache_live_and_true(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.open("/notifications").await;
    stage.until_live().await;
    stage.eval("(window.kept = true)").await;
    stage.click("nav a[href='/']").await;
    stage.find("main[data-page='actions']").await;
    stage.until_live().await;
    // The page that was left has no socket any more.
    stage.until_sockets(1).await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    stage.driver().back().await.unwrap();
    stage.find("main[data-page='notifications']").await;
    assert_eq!(stage.eval("window.kept === true").await, true, "it is the page that was left, and not a new one");
    stage.until(TRUE_AGAIN, &format!("{}?.dataset.state === 'succeeded'", stage.list_row(&task))).await;
    stage.until_live().await;
}
