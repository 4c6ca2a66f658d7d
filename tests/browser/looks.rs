//! Both languages, light and dark, wide and narrow. Each view is kept as a picture in `target/browser/pictures/`, and axe-core
//! looks at each: see rig/axe.rs.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test> {
    browser_tests![
        bell_list_task_and_record_read_well_in_both_languages_light_and_dark_wide_and_narrow,
        the_other_pages_read_well_wide_and_light_and_narrow_and_dark,
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

/// That no colour is on its way to another one.
const STILL: &str = "[document, ...[...document.querySelectorAll('taskbell-bell')].map((bell) => bell.shadowRoot)].every((root) => \
    root.getAnimations().every((motion) => !(motion instanceof CSSTransition)))";

/// What is wrong with the page as it stands: it is wider than the screen, it cannot be read, or axe-core finds a fault.
async fn faults(stage: &Stage, view: &str) -> Vec<String> {
    stage.until(LIMIT, STILL).await;
    let mut faults = stage.axe().await;
    if stage.eval("document.documentElement.scrollWidth > innerWidth").await == true {
        faults.push("wider than the screen".to_owned());
    }
    let faint = stage.eval(FAINT).await;
    faults.extend(faint.as_array().unwrap().iter().map(|line| format!("faint: {line}")));
    faults.into_iter().map(|fault| format!("{view}: {fault}")).collect()
}

/// Looks at the page in the light and in the dark, and keeps both pictures.
pub(crate) async fn look(stage: &Stage, view: &str, found: &mut Vec<String>) {
    for dark in [false, true] {
        stage.scheme(dark).await;
        let view = format!("{view}-{}", if dark { "dark" } else { "light" });
        found.extend(faults(stage, &view).await);
        stage.picture(&view).await;
    }
}

/// Tasks in the states that a person meets; answers the one that runs for a record, and the one that failed.
async fn some_tasks(stage: &Stage) -> (Value, Value) {
    let client = stage.client().await;
    let record = json!({"type": "customer-import", "id": "42"});
    let failed = client.submit(json!({"action": "reconcile-payments", "params": {"pause": 0}})).await;
    let done = client.submit(json!({"action": "recalculate-totals", "params": {"pause": 0, "batch": 5000}})).await;
    let running = client.submit(json!({"action": "import-customers", "params": {"pause": 1}, "record": record})).await;
    client.submit(json!({"action": "sync-catalogue", "params": {"pause": 1}})).await;
    for _ in 0..2 {
        client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 50}})).await;
    }
    client.until(failed["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "failed").await;
    client.until(done["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    client.until(running["id"].as_str().unwrap(), LIMIT, |task| task["progress"]["current"].as_i64() > Some(0)).await;
    (running, failed)
}

async fn bell_list_task_and_record_read_well_in_both_languages_light_and_dark_wide_and_narrow(stage: &Stage) {
    stage.sign_in().await;
    let (running, _) = some_tasks(stage).await;
    let task_page = format!("/tasks/{}", running["id"].as_str().unwrap());
    let pages = [("list", "/notifications"), ("task", &task_page), ("record", "/records/customer-import/42")];
    // The rules see what breaks them.
    stage.eval("(document.querySelector('h1').style.color = '#ddd', document.querySelector('h1').style.width = '2000px', document.querySelector('html').removeAttribute('lang'))").await;
    let seen = faults(stage, "broken").await.join(" ");
    for sign in ["faint: ", "html-has-lang", "wider than the screen", "color-contrast"] {
        assert!(seen.contains(sign), "{sign} in {seen}");
    }
    let mut found = Vec::new();
    for (language, center, word) in [("en", "Notification center", "Running"), ("zh-CN", "通知中心", "后台处理中")]
    {
        stage.speak(language).await;
        for width in [1280, 390] {
            stage.screen(width, 900).await;
            for (name, path) in pages {
                stage.open(path).await;
                stage.until_live().await;
                assert_eq!(stage.eval("document.documentElement.lang").await, language);
                stage.until(LIMIT, &format!("document.querySelector('main').innerText.includes('{word}')")).await;
                look(stage, &format!("{name}-{language}-{width}"), &mut found).await;
            }
            stage.open_bell_on(&running).await;
            let panel = stage.eval("document.querySelector('taskbell-bell').shadowRoot.textContent").await;
            assert!(panel.as_str().unwrap().contains(center), "{panel}");
            look(stage, &format!("bell-{language}-{width}"), &mut found).await;
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

async fn the_other_pages_read_well_wide_and_light_and_narrow_and_dark(stage: &Stage) {
    let mut found = Vec::new();
    stage.sign_in().await;
    let (running, failed) = some_tasks(stage).await;
    let failed_page = format!("/tasks/{}", failed["id"].as_str().unwrap());
    let pages = [
        ("actions", "/"),
        ("list-without-a-match", "/notifications?q=nothing+like+it"),
        ("record-without-a-task", "/records/customer-import/77"),
        ("task-that-failed", failed_page.as_str()),
        ("not-here", "/tasks/nothing"),
        ("settings", "/settings"),
        ("api", "/api/docs"),
    ];
    for (language, width, dark) in [("en", 1280, false), ("zh-CN", 390, true)] {
        stage.scheme(dark).await;
        stage.speak(language).await;
        stage.screen(width, 900).await;
        let look = async |name: &str| {
            let view = format!("{name}-{language}-{width}");
            let found = faults(stage, &view).await;
            stage.picture(&view).await;
            found
        };
        for (name, path) in pages {
            stage.open(path).await;
            stage.until_live().await;
            found.extend(look(name).await);
        }
        stage.open("/").await;
        stage.until_live().await;
        stage.click("[data-action='recalculate-totals'] > .tb-button").await;
        stage.find("dialog[open] button[type='submit']").await;
        found.extend(look("form").await);
        stage.eval("(document.querySelector('dialog').close(), true)").await;
        let row = stage.open_bell_on(&running).await;
        stage.until(LIMIT, &format!("{row}.querySelector('[data-do=cancel]')")).await;
        stage.eval(&format!("({row}.querySelector('[data-do=cancel]').click(), true)")).await;
        stage.until(LIMIT, "document.querySelector('taskbell-bell').shadowRoot.querySelector('dialog[open]')").await;
        found.extend(look("question").await);
    }
    stage.screen(320, 640).await;
    for (name, path) in [("/", "/"), ("list", "/notifications")].into_iter().chain(pages) {
        stage.open(path).await;
        stage.until_live().await;
        found.extend(fits(stage, name).await);
    }
    stage.browser.devtools("Network.clearBrowserCookies", json!({})).await;
    for (width, dark) in [(1280, false), (390, true), (320, true)] {
        stage.screen(width, 900).await;
        stage.scheme(dark).await;
        stage.open("/login").await;
        let view = format!("login-{width}");
        stage.picture(&view).await;
        found.extend(faults(stage, &view).await);
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

/// That nothing has to be scrolled sideways on the narrowest screen, the open panel included.
async fn fits(stage: &Stage, name: &str) -> Option<String> {
    let wide = "document.documentElement.scrollWidth > innerWidth || [...document.querySelectorAll('taskbell-bell')].some(({ shadowRoot }) => { \
        shadowRoot.querySelector('.tb-bell-button').click(); const panel = shadowRoot.querySelector('.tb-panel'); return panel.scrollWidth > innerWidth; })";
    (stage.eval(wide).await == true).then(|| format!("{name} does not fit into 320 px"))
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
