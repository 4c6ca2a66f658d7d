//! Both languages, light and dark, wide and narrow. Each view is kept as a picture in `target/browser/`.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::json;
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        every_page_speaks_both_languages_fits_a_phone_and_can_be_read_in_the_dark,
        times_are_shown_in_the_zone_of_the_viewer,
    ]
}

/// The pairs of text and ground that are too close to each other to be read, by the rule of WCAG AA.
pub(crate) const FAINT: &str = r"(() => {
    const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const parse = (text) => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const ground = (element) => { for (let e = element; e; e = e.parentElement ?? e.getRootNode().host) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return parse(getComputedStyle(document.documentElement).colorScheme === 'dark' ? '#000' : '#fff'); };
    const faint = [];
    const roots = [document, document.querySelector('taskbell-bell')?.shadowRoot].filter(Boolean);
    for (const element of roots.flatMap((root) => [...root.querySelectorAll('h1, h2, h3, p, a, button, summary, dt, dd, label, span, time, strong')])) {
        if (!element.checkVisibility() || ![...element.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
        const style = getComputedStyle(element);
        const [a, b] = [light(parse(style.color)), light(ground(element))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        const large = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.66 && style.fontWeight >= 700);
        if (ratio < (large ? 3 : 4.5)) faint.push(`${element.className || element.tagName}: ${element.textContent.trim().slice(0, 30)} (${ratio.toFixed(1)})`);
    }
    return [...new Set(faint)];
})()";

async fn every_page_speaks_both_languages_fits_a_phone_and_can_be_read_in_the_dark(stage: &Stage) {
    let client = stage.client().await;
    stage.open("/login").await;
    stage.picture("login").await;
    stage.sign_in().await;
    let record = json!({"type": "customer-import", "id": "42"});
    let failed = client.submit(json!({"action": "reconcile-payments", "params": {"pause": 0}})).await;
    let done = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}})).await;
    let running = client.submit(json!({"action": "import-customers", "params": {"pause": 1}, "record": record})).await;
    client.submit(json!({"action": "sync-catalogue", "params": {"pause": 1}})).await;
    client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 50}})).await;
    client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 50}})).await;
    client.until(failed["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "failed").await;
    client.until(done["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    client.until(running["id"].as_str().unwrap(), LIMIT, |task| task["progress"]["current"].as_i64() > Some(0)).await;
    let task_page = format!("/tasks/{}", running["id"].as_str().unwrap());
    let pages =
        [("actions", "/"), ("list", "/notifications"), ("task", &task_page), ("record", "/records/customer-import/42")];
    // The rule sees what breaks it.
    stage.eval("document.querySelector('h1').style.color = '#ddd'").await;
    assert!(stage.eval(FAINT).await[0].as_str().unwrap().contains("Actions"));
    for (language, center, word) in [("en", "Notification center", "Running"), ("zh-CN", "通知中心", "后台处理中")]
    {
        stage.speak(language).await;
        for (look, width, dark) in
            [("wide", 1280, false), ("wide-dark", 1280, true), ("narrow", 360, false), ("narrow-dark", 360, true)]
        {
            stage.screen(width, 900).await;
            stage.scheme(dark).await;
            for (name, path) in pages {
                stage.open(path).await;
                stage.until_live().await;
                assert_eq!(stage.eval("document.documentElement.lang").await, language);
                if name != "actions" {
                    stage.until(LIMIT, &format!("document.querySelector('main').innerText.includes('{word}')")).await;
                }
                stage.until(Duration::from_secs(5), "document.documentElement.scrollWidth <= innerWidth").await;
                assert_eq!(stage.eval(FAINT).await, json!([]), "{language} {look} {name}");
                stage.picture(&format!("{name}-{language}-{look}")).await;
            }
            stage.open_bell_on(&running).await;
            assert_eq!(stage.eval(FAINT).await, json!([]), "{language} {look} bell");
            assert!(
                stage
                    .eval("document.querySelector('taskbell-bell').shadowRoot.textContent")
                    .await
                    .as_str()
                    .unwrap()
                    .contains(center)
            );
            stage.picture(&format!("bell-{language}-{look}")).await;
        }
    }
}

async fn times_are_shown_in_the_zone_of_the_viewer(stage: &Stage) {
    let client = stage.client().await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    let id = task["id"].as_str().unwrap();
    let task = client.until(id, LIMIT, |task| task["state"] == "succeeded").await;
    let started: jiff::Timestamp = task["startedAt"].as_str().unwrap().parse().unwrap();
    stage.sign_in().await;
    // Half an hour off, three quarters off, and on the other side of midnight.
    for zone in ["Asia/Kolkata", "Asia/Kathmandu", "Pacific/Kiritimati", "America/Los_Angeles"] {
        stage.browser.devtools("Emulation.setTimezoneOverride", json!({"timezoneId": zone})).await;
        stage.open(&format!("/tasks/{id}")).await;
        let shown = started.in_tz(zone).unwrap().strftime("%Y-%m-%d %H:%M:%S").to_string();
        let time = "document.querySelector('[data-part=started-at]')";
        stage.until(LIMIT, &format!("{time}?.textContent === '{shown}'")).await;
        // A browser may know a zone by its older name, so the part before the slash is what is sure.
        let title = stage.eval(&format!("{time}.title")).await;
        assert!(title.as_str().unwrap().contains(zone.split_once('/').unwrap().0), "the zone is named: {title}");
        let written = stage.eval(&format!("{time}.getAttribute('datetime')")).await;
        assert_eq!(written.as_str().unwrap().parse::<jiff::Timestamp>().unwrap(), started);
    }
}
