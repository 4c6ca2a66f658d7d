//! The clock of the browser is nobody's truth: elapsed, remaining and "today" are the server's.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![a_clock_that_is_an_hour_off_changes_nothing]
}

/// Sets the wall clock of every page off.
fn off(ms: i64) -> String {
    format!(
        "(() => {{ const Real = Date; globalThis.Date = class extends Real {{ constructor(...a) {{ a.length ? super(...a) : super(Real.now() + {ms}); }} static now() {{ return Real.now() + {ms}; }} }}; }})()"
    )
}

async fn a_clock_that_is_an_hour_off_changes_nothing(stage: &Stage) {
    stage.plays(json!({"1": [{"hold": {"ms": 120_000, "total": 1_500, "every": 50}, "hasMore": true}], "2": [{"hasMore": false}]})).await;
    let client = stage.client().await;
    let (runs, done) = (client.submit(playing(1, "runs")).await, client.submit(playing(2, "done")).await);
    client.until(done["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    stage.sign_in().await;
    for ms in [-3_600_000, 3_600_000] {
        stage.browser.preload(&off(ms)).await;
        let path = format!("/tasks/{}", runs["id"].as_str().unwrap());
        stage.open(&path).await;
        stage.until_live().await;
        let page = "document.querySelector('[data-part=progress]')";
        let part = |name: &str| format!("{page}.querySelector('[data-part={name}]').textContent");
        stage
            .until(
                Duration::from_secs(30),
                &format!("/^(about [1-3] min|less than a minute) left$/.test({})", part("eta")),
            )
            .await;
        let elapsed = stage.eval(&part("elapsed")).await;
        assert!(!elapsed.as_str().unwrap().contains('h'), "{ms}: elapsed {elapsed}");
        // The finish lies ahead by the server's clock, within what the estimate says.
        let finish = stage.eval(&format!("{page}.querySelector('[data-part=at]').getAttribute('datetime')")).await;
        let ahead = finish
            .as_str()
            .unwrap()
            .parse::<jiff::Timestamp>()
            .unwrap()
            .duration_since(jiff::Timestamp::now())
            .as_secs();
        assert!((0..240).contains(&ahead), "{ms}: finishes in {ahead} s");
        stage.open("/notifications").await;
        stage.until_live().await;
        let row = stage.list_row(&done);
        let group = format!("{row}?.closest('[data-group]').dataset.group");
        assert_eq!(stage.eval(&group).await, "today");
        let title = stage.eval(&format!("{row}.querySelector('[data-part=at]').title")).await;
        assert!(
            title.as_str().unwrap().ends_with("just now") || title.as_str().unwrap().ends_with("1 min ago"),
            "{title}"
        );
        // The preloads add up, so the second one has to take the first back.
        stage.browser.clear_preloads().await;
    }
}
