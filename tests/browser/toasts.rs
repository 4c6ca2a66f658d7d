//! What a page tells by itself: toasts and announcements. Never twice, never of old things, never too much.

use crate::browser_tests;
use crate::eventually;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use crate::server::Client;
use serde_json::{Value, json};
use std::time::Duration;
use thirtyfour::By;

pub fn tests() -> Vec<Test> {
    browser_tests![
        one_tab_alone_raises_a_toast,
        a_success_goes_after_a_while_a_failure_stays_and_there_are_three_at_most,
        what_ended_before_or_meanwhile_is_not_told_one_by_one,
        announcements_are_merged_and_ten_seconds_apart,
    ]
}

const TOASTS: &str = "[...document.querySelectorAll('.tb-toast')]";

async fn ends(client: &Client, action: &str, title: &str) -> Value {
    let task = client.submit(json!({"action": action, "params": {"pause": 0}, "title": title})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["finishedAt"].is_string()).await
}

async fn one_tab_alone_raises_a_toast(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.until_live().await;
    for _ in 0..2 {
        stage.open_window("/notifications").await;
        stage.until_live().await;
        assert_eq!(stage.eval("document.hidden").await, false);
    }
    let task = ends(&client, "reconcile-payments", "told once").await;
    // Whichever page it is, it may hear of the end later than the others.
    eventually("it is told", LIMIT, async || (toasts(stage).await > 0).then_some(())).await;
    for window in stage.driver().windows().await.unwrap() {
        stage.driver().switch_to_window(window).await.unwrap();
        // The row is there, so whoever wants to tell of it has begun to; the claim is settled when the next one is granted.
        stage
            .until(
                LIMIT,
                &format!(
                    "document.querySelector('main[data-page=actions]') || {}?.dataset.state === 'failed'",
                    stage.list_row(&task)
                ),
            )
            .await;
        let settled =
            "import('/static/claim.js').then(({ claim }) => claim('default:user', String(Math.random()))).then(done);";
        assert_eq!(stage.eval_async(settled).await, true);
    }
    assert_eq!(toasts(stage).await, 1);
}

/// Toasts in all windows.
async fn toasts(stage: &Stage) -> i64 {
    let mut count = 0;
    for window in stage.driver().windows().await.unwrap() {
        stage.driver().switch_to_window(window).await.unwrap();
        count += stage.eval(&format!("{TOASTS}.length")).await.as_i64().unwrap();
    }
    count
}

async fn a_success_goes_after_a_while_a_failure_stays_and_there_are_three_at_most(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.until_live().await;
    stage.eval("(window.life = {}, new MutationObserver((changes) => changes.forEach(({ addedNodes, removedNodes }) => { \
        addedNodes.forEach((n) => window.life[n.textContent] = [performance.now()]); removedNodes.forEach((n) => window.life[n.textContent]?.push(performance.now())); })) \
        .observe(document.querySelector('.tb-toasts'), { childList: true }), true)").await;
    let failed = ends(&client, "reconcile-payments", "fails").await;
    let toast = |title: &str| format!("{TOASTS}.find((toast) => toast.textContent.includes('{title}'))");
    stage.until(LIMIT, &toast("fails")).await;
    for n in 1..=3 {
        ends(&client, "rebuild-index", &format!("goes well {n}")).await;
        stage.until(LIMIT, &toast(&format!("goes well {n}"))).await;
    }
    // The oldest success made room, and not the failure.
    assert_eq!(
        stage.eval(&format!("{TOASTS}.map((toast) => toast.querySelector('a').textContent)")).await,
        json!(["fails", "goes well 2", "goes well 3"])
    );
    let held = stage.driver().find_all(By::Css(".tb-toast")).await.unwrap()[1].clone();
    stage.driver().action_chain().move_to_element_center(&held).perform().await.unwrap();
    stage.until(LIMIT, &format!("!{}", toast("goes well 3"))).await;
    assert_eq!(
        stage.eval(&format!("[Boolean({}), Boolean({})]", toast("fails"), toast("goes well 2"))).await,
        json!([true, true]),
        "one under the pointer stays"
    );
    let life = stage.eval("(() => { const [from, to] = Object.entries(window.life).find(([text]) => text.includes('goes well 3'))[1]; return to - from; })()");
    assert!(life.await.as_f64().unwrap() >= 6000.0, "a success stays long enough to be read");
    stage.driver().action_chain().move_to(0, 0).perform().await.unwrap();
    stage.until(LIMIT, &format!("!{}", toast("goes well 2"))).await;
    // Each has its row in the list.
    stage.open("/notifications").await;
    stage.until(LIMIT, &stage.list_row(&failed)).await;
    // Who does not want them has none.
    stage.open("/settings").await;
    stage.click("[data-preference='toasts']").await;
    stage.open("/notifications").await;
    stage.until_live().await;
    let quiet = ends(&client, "rebuild-index", "quiet").await;
    stage
        .until(
            LIMIT,
            &format!(
                "document.getElementById('tb-status').textContent.includes('quiet') && {}",
                stage.list_row(&quiet)
            ),
        )
        .await;
    assert_eq!(stage.eval(&format!("{TOASTS}.length")).await, 0);
}

async fn what_ended_before_or_meanwhile_is_not_told_one_by_one(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    for n in 1..=3 {
        ends(&client, "rebuild-index", &format!("before {n}")).await;
    }
    stage.open("/notifications").await;
    stage.until_live().await;
    let rows = "document.querySelectorAll('main [data-task]').length";
    stage.until(LIMIT, &format!("{rows} === 3")).await;
    stage.proxy.cut();
    let live = "document.querySelector('main .tb-live').dataset.live";
    stage.until(LIMIT, &format!("{live} === 'reconnecting'")).await;
    for n in 1..=2 {
        ends(&client, "rebuild-index", &format!("meanwhile {n}")).await;
    }
    // Started by somebody else for this person: its end is in the list, and is no news.
    let scopes = "tasks:read,tasks:write,tasks:submit-as";
    let server = stage.server.lock().await;
    let key = ["key", "create", "--tenant", "default", "--user", "erp", "--role", "operator", "--scopes", scopes];
    let erp = Client::new(&server.url(), &server.command(&key).await);
    drop(server);
    erp.submit(json!({"action": "rebuild-index", "params": {"pause": 0}, "title": "by another", "owner": "user"}))
        .await;
    stage.proxy.mend();
    stage.until(Duration::from_secs(30), &format!("{live} === 'live' && {rows} === 6")).await;
    stage.until(LIMIT, &format!("{TOASTS}.length > 0")).await;
    let told = format!("{TOASTS}.map((toast) => toast.querySelector('a').textContent)");
    assert_eq!(stage.eval(&told).await, json!(["2 tasks finished while you were away"]));
}

async fn announcements_are_merged_and_ten_seconds_apart(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.until_live().await;
    assert_eq!(stage.eval("document.querySelectorAll('[role=status]').length").await, 1);
    stage.eval("(window.said = [], new MutationObserver(() => window.said.push([performance.now(), document.getElementById('tb-status').textContent])) \
        .observe(document.getElementById('tb-status'), { childList: true, characterData: true, subtree: true }), true)").await;
    let body = json!({"action": "rebuild-index", "params": {"pause": 0.2, "batch": 100}, "title": "read aloud"});
    client.submit(body).await;
    let said = "window.said.map(([, text]) => text).join(' ')";
    stage.until(Duration::from_secs(40), &format!("{said}.includes('read aloud: succeeded')")).await;
    let all = stage.eval(said).await;
    for word in ["started", "succeeded"] {
        assert!(all.as_str().unwrap().contains(&format!("read aloud: {word}")), "{word} in {all}");
    }
    // One sentence when a quarter of the way is passed, with the share that it is then; a busy machine may pass two at once.
    let shares = stage.eval(&format!("{said}.match(/\\d+(?=%)/g).map((share) => Math.floor(share / 25))")).await;
    assert!((1..=3).contains(&shares.as_array().unwrap().len()), "{all}");
    assert!(shares.as_array().unwrap().windows(2).all(|pair| pair[0].as_i64() < pair[1].as_i64()), "{all}");
    let gaps = stage.eval("window.said.slice(1).map(([at], n) => at - window.said[n][0])").await;
    let gaps: Vec<f64> = gaps.as_array().unwrap().iter().map(|gap| gap.as_f64().unwrap()).collect();
    // A timer of the browser may come a few milliseconds early.
    assert!(!gaps.is_empty() && gaps.iter().all(|gap| *gap >= 9_990.0), "{gaps:?}: {all}");
}
