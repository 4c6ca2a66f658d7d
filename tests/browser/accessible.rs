//! For everybody: by keyboard, aloud, without motion, in any language and direction, in any colours, on a phone, and while
//! there is nothing to show yet. What axe-core finds is held in looks.rs.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test> {
    browser_tests![
        bell_and_panel_work_by_keyboard_and_say_what_they_are,
        a_bar_says_its_value_in_words_and_moves_only_where_motion_is_wanted,
        plural_forms_and_numbers_are_those_of_the_language,
        longer_texts_and_the_other_direction_fit,
        the_host_chooses_the_scheme_and_colours_can_be_told_apart,
        on_a_phone_the_panel_is_a_sheet,
        loading_nothing_failed_and_not_allowed_are_told_apart,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";

async fn press(stage: &Stage, keys: &[&str]) {
    for key in keys {
        stage.driver().action_chain().send_keys(*key).perform().await.unwrap();
    }
}

async fn media(stage: &Stage, name: &str, value: &str) {
    stage.browser.devtools("Emulation.setEmulatedMedia", json!({"features": [{"name": name, "value": value}]})).await;
}

async fn bell_and_panel_work_by_keyboard_and_say_what_they_are(stage: &Stage) {
    let [enter, escape, page_up, page_down, tab] = ["\u{e007}", "\u{e00c}", "\u{e00e}", "\u{e00f}", "\u{e004}"];
    let client = stage.client().await;
    stage.sign_in().await;
    for _ in 0..2 {
        client.submit(json!({"action": "import-customers", "params": {"pause": 2}})).await;
    }
    stage.until_live().await;
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-bell-button').ariaLabel.includes('running')")).await;
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').focus(), true)")).await;
    let expanded = format!("{BELL}.querySelector('.tb-bell-button').ariaExpanded");
    assert_eq!(stage.eval(&expanded).await, "false");
    press(stage, &[enter]).await;
    stage.until(LIMIT, "document.querySelector('taskbell-bell').open").await;
    assert_eq!(stage.eval(&expanded).await, "true");
    let panel = format!("{BELL}.querySelector('[role=dialog]')");
    assert_eq!(
        stage.eval(&format!("[{panel}.ariaLabel, {panel}.ariaModal, {BELL}.activeElement === {panel}]")).await,
        json!(["Notification center", null, true])
    );
    // From item to item, and into the actions of one.
    stage
        .until(LIMIT, &format!("{BELL}.querySelectorAll('[role=feed] article[aria-label][tabindex]').length === 2"))
        .await;
    let place = format!("[...{BELL}.querySelectorAll('.tb-row')].indexOf({BELL}.activeElement)");
    for (key, at) in [(page_down, 0), (page_down, 1), (page_down, 1), (page_up, 0)] {
        press(stage, &[key]).await;
        stage.until(LIMIT, &format!("{place} === {at}")).await;
    }
    let mut reached = Vec::new();
    for _ in 0..5 {
        press(stage, &[tab]).await;
        reached.push(
            stage.eval(&format!("{BELL}.activeElement.dataset.do ?? {BELL}.activeElement.dataset.part ?? null")).await,
        );
        let seen =
            format!("{BELL}.activeElement.checkVisibility({{ opacityProperty: true, visibilityProperty: true }})");
        assert_eq!(stage.eval(&seen).await, true, "{reached:?}");
    }
    assert!(["title", "pause", "cancel"].iter().all(|part| reached.contains(&json!(part))), "{reached:?}");
    press(stage, &[escape]).await;
    stage.until(LIMIT, "!document.querySelector('taskbell-bell').open").await;
    assert_eq!(
        stage.eval(&format!("[{expanded}, {BELL}.activeElement.className]")).await,
        json!(["false", "tb-bell-button"])
    );
}

async fn a_bar_says_its_value_in_words_and_moves_only_where_motion_is_wanted(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let unknown = client.submit(json!({"action": "sync-catalogue", "params": {"pause": 2}})).await;
    let known = client.submit(json!({"action": "import-customers", "params": {"pause": 0.5}})).await;
    stage.open_bell_on(&unknown).await;
    let bar = |task: &Value| format!("{}.querySelector('progress')", stage.bell_row(task));
    let said = |task: &Value| format!("{}.getAttribute('aria-valuetext')", bar(task));
    stage.until(LIMIT, &format!("/^[\\d,]+ of 20,000 rows, .+ left$/.test({})", said(&known))).await;
    stage.until(LIMIT, &format!("/^[\\d,]+ products, total not known$/.test({})", said(&unknown))).await;
    for task in [&known, &unknown] {
        assert_eq!(
            stage.eval(&format!("[{0}.ariaLabel, {0}.children.length, {0}.matches('[aria-live]')]", bar(task))).await,
            json!([task["title"], 0, false])
        );
    }
    assert_eq!(
        stage
            .eval(&format!(
                "[{}.hasAttribute('value'), {}.hasAttribute('value'), {1}.hasAttribute('aria-valuenow')]",
                bar(&known),
                bar(&unknown)
            ))
            .await,
        json!([true, false, false])
    );
    let moving = format!(
        "[document, {BELL}].flatMap((root) => root.getAnimations()).filter((motion) => motion instanceof CSSAnimation).length"
    );
    stage.until(LIMIT, &format!("{moving} > 0")).await;
    media(stage, "prefers-reduced-motion", "reduce").await;
    stage.until(LIMIT, &format!("{moving} === 0")).await;
    let arc = format!("getComputedStyle({BELL}.querySelector('.tb-ring circle + circle'))");
    assert_eq!(
        stage.eval(&format!("[{arc}.transitionDuration, {arc}.strokeDasharray !== 'none']")).await,
        json!(["0s", true])
    );
}

async fn plural_forms_and_numbers_are_those_of_the_language(stage: &Stage) {
    stage.sign_in().await;
    let told = "import('/static/i18n.js').then(({ t, useMessages, currentLanguage }) => {
        const page = currentLanguage();
        const badge = Object.fromEntries(['zero', 'one', 'two', 'few', 'many', 'other'].map((form) => [form, `{n} ${form}`]));
        const forms = { en: ['one', 'other'], zh: ['other'], ru: ['one', 'few', 'many', 'other'], pl: ['one', 'few', 'many', 'other'], ar: Object.keys(badge) };
        const all = {};
        for (const [language, own] of Object.entries(forms)) {
            useMessages(language, { badge: Object.fromEntries(own.map((form) => [form, badge[form]])) });
            all[language] = [0, 1, 2, 5, 11, 21, 22, 1.5, 1000000].map((n) => t('badge', { n }).replaceAll('\\u00a0', ' ').replaceAll('\\u202f', ' '));
        }
        done([all, page, new Intl.NumberFormat('ar').format(1000000)]);
    }, (fault) => done(String(fault)));";
    let told = stage.eval_async(told).await;
    let lines = |language: &str| {
        told[0][language].as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        lines("en").join("; "),
        "0 other; 1 one; 2 other; 5 other; 11 other; 21 other; 22 other; 1.5 other; 1,000,000 other"
    );
    assert_eq!(
        lines("zh").join("; "),
        "0 other; 1 other; 2 other; 5 other; 11 other; 21 other; 22 other; 1.5 other; 1,000,000 other"
    );
    assert_eq!(
        lines("ru").join("; "),
        "0 many; 1 one; 2 few; 5 many; 11 many; 21 one; 22 few; 1,5 other; 1 000 000 many"
    );
    assert_eq!(
        lines("pl").join("; "),
        "0 many; 1 one; 2 few; 5 many; 11 many; 21 many; 22 few; 1,5 other; 1 000 000 many"
    );
    let forms: Vec<String> = lines("ar").iter().map(|line| line.split(' ').next_back().unwrap().to_owned()).collect();
    assert_eq!(forms.join(" "), "zero one two few many many many other other");
    assert!(lines("ar")[8].starts_with(told[2].as_str().unwrap()), "{:?}", lines("ar"));
}

/// Makes each text that is shown 40 % longer, and answers what then leaves its place.
const LONGER: &str = r"(() => {
    const faults = [];
    const roots = [document.body, ...[...document.querySelectorAll('taskbell-bell')].map((bell) => bell.shadowRoot).filter(Boolean)];
    const hidden = (e) => !e.checkVisibility() || getComputedStyle(e).clipPath !== 'none';
    const shortened = (e) => { for (; e && e !== document.body; e = e.parentElement) if (getComputedStyle(e).textOverflow === 'ellipsis' || getComputedStyle(e).overflowX === 'auto') return true; return false; };
    const texts = roots.flatMap((root) => { const found = []; const walk = document.createTreeWalker(root, NodeFilter.SHOW_TEXT); while (walk.nextNode()) found.push(walk.currentNode); return found; })
        .filter(({ data, parentElement: e }) => data.trim() && e && !e.closest('script, style, time, option') && !hidden(e));
    for (const text of texts) text.data = text.data.trimEnd() + ' ' + 'ẅøřđ żẁ '.repeat(40).slice(0, Math.ceil(text.data.trim().length * 0.4));
    for (const text of texts) {
        const range = document.createRange(); range.selectNodeContents(text);
        const box = text.parentElement.getBoundingClientRect();
        for (const line of range.getClientRects()) {
            if (shortened(text.parentElement)) continue;
            // A space at the end of a line may hang over.
            if (line.right > box.right + 6 || line.left < box.left - 6 || line.right > innerWidth + 1 || line.left < -1) { faults.push(`${text.data} leaves ${text.parentElement.className || text.parentElement.tagName}`); break; }
        }
    }
    if (document.documentElement.scrollWidth > innerWidth) faults.push('the page is wider than the screen');
    return faults;
})()";

async fn longer_texts_and_the_other_direction_fit(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let record = json!({"type": "customer-import", "id": "42"});
    let task = client.submit(json!({"action": "reconcile-payments", "params": {"pause": 0}, "record": record})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "failed").await;
    client.submit(json!({"action": "import-customers", "params": {"pause": 1}, "record": record})).await;
    let task_page = format!("/tasks/{}", task["id"].as_str().unwrap());
    let mut faults = Vec::new();
    for width in [1280, 390] {
        stage.screen(width, 900).await;
        for path in ["/", "/notifications", &task_page, "/records/customer-import/42", "/settings"] {
            stage.open(path).await;
            stage.open_bell_on(&task).await;
            let found = stage.eval(LONGER).await;
            faults.extend(found.as_array().unwrap().iter().map(|fault| format!("{path} at {width}: {fault}")));
            if path == "/notifications" {
                stage.picture(&format!("longer-{width}")).await;
            }
            stage.eval("(document.documentElement.dir = 'rtl', true)").await;
            let leaves = format!(
                "document.documentElement.scrollWidth > innerWidth || (({{ left, right }}) => left < 0 || right > innerWidth)({BELL}.querySelector('.tb-panel').getBoundingClientRect())"
            );
            if stage.eval(&leaves).await == true {
                faults.push(format!("{path} at {width} from right to left"));
            }
        }
    }
    stage.open("/notifications").await;
    stage.open_bell_on(&task).await;
    stage.eval("(document.documentElement.dir = 'rtl', true)").await;
    stage.picture("right-to-left-390").await;
    let bar = format!("{}.querySelector('progress')", stage.bell_row(&task));
    assert_eq!(
        stage.eval(&format!("getComputedStyle({bar}).direction")).await,
        "rtl",
        "a bar fills from the inline start"
    );
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The lowest contrast between the colour of a bar, whatever its tone, and its track.
const BARS: &str = r"(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const channel = (c) => (c /= 255) <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const light = (token) => {
        const probe = document.body.appendChild(document.createElement('i')); probe.className = 'tb-bar'; probe.dataset.probe = '';
        const sheet = new CSSStyleSheet(); sheet.replaceSync(`[data-probe] { color: var(${token}) !important; transition: none !important }`); document.adoptedStyleSheets = [sheet];
        canvas.fillStyle = getComputedStyle(probe).color; canvas.fillRect(0, 0, 1, 1); probe.remove(); document.adoptedStyleSheets = [];
        const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
        return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
    };
    const track = light('--tb-track');
    return Math.min(...['--tb-accent', '--tb-ok', '--tb-warn', '--tb-bad', '--tb-still'].map(light).map((bar) => (Math.max(bar, track) + 0.05) / (Math.min(bar, track) + 0.05)));
})()";

async fn the_host_chooses_the_scheme_and_colours_can_be_told_apart(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "import-customers", "params": {"pause": 1}})).await;
    stage.open_bell_on(&task).await;
    let ground = |of: &str| format!("getComputedStyle({of}).backgroundColor");
    let (page, panel) = (ground("document.documentElement"), ground(&format!("{BELL}.querySelector('.tb-panel')")));
    let colours = format!("[{page}, {panel}]");
    let mut schemes = Vec::new();
    for dark in [false, true] {
        stage.scheme(dark).await;
        schemes.push(stage.eval(&colours).await);
        let contrast = stage.eval(BARS).await.as_f64().unwrap();
        assert!(contrast >= 3.0, "dark {dark}: {contrast}");
    }
    assert!(schemes[0][0] != schemes[1][0] && schemes[0][1] != schemes[1][1]);
    // The host's word goes before the browser's, for the page and for a widget alone.
    stage.scheme(false).await;
    stage.eval("(document.documentElement.dataset.theme = 'dark', true)").await;
    assert_eq!(stage.eval(&colours).await, schemes[1]);
    stage.eval("(delete document.documentElement.dataset.theme, document.querySelector('taskbell-bell').dataset.theme = 'dark', true)").await;
    assert_eq!(stage.eval(&colours).await, json!([schemes[0][0], schemes[1][1]]));
    stage.eval("(delete document.querySelector('taskbell-bell').dataset.theme, true)").await;
    // In forced colours what is drawn by a ground alone has an edge or a system colour.
    media(stage, "forced-colors", "active").await;
    let edges = format!(
        "['.tb-panel', '.tb-row .tb-button', '.tb-bar'].map((part) => parseFloat(getComputedStyle({BELL}.querySelector(part)).borderTopWidth) > 0)"
    );
    stage.until(LIMIT, "matchMedia('(forced-colors: active)').matches").await;
    assert_eq!(stage.eval(&edges).await, json!([true, true, true]));
    stage.picture("bell-forced-colors").await;
    stage.open("/notifications").await;
    stage.until_live().await;
    stage.picture("list-forced-colors").await;
}

async fn on_a_phone_the_panel_is_a_sheet(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    let task = client.submit(json!({"action": "import-customers", "params": {"pause": 1}})).await;
    stage.screen(390, 720).await;
    stage.open("/").await;
    stage.open_bell_on(&task).await;
    let panel = format!("{BELL}.querySelector('.tb-panel')");
    let rect =
        format!("(({{ left, top, width, height }}) => [left, top, width, height])({panel}.getBoundingClientRect())");
    assert_eq!(stage.eval(&rect).await, json!([0, 0, 390, 720]));
    // The sheet keeps off the notch and the bar of the system.
    let safe = format!(
        "[...{BELL}.adoptedStyleSheets[0].cssRules].some((rule) => rule.cssText.includes('max-width: 599px') && rule.cssText.includes('safe-area-inset-bottom'))"
    );
    assert_eq!(
        stage
            .eval(&format!(
                "{safe} && document.querySelector('meta[name=viewport]').content.includes('viewport-fit=cover')"
            ))
            .await,
        true
    );
    let columns =
        format!("{}.getBoundingClientRect().width <= 390 && {panel}.scrollWidth <= 390", stage.bell_row(&task));
    assert_eq!(stage.eval(&columns).await, true);
    // Whatever can be done is a button, and so is the way out.
    let button = format!("{}.querySelector('[data-do=cancel]')", stage.bell_row(&task));
    stage.until(LIMIT, &format!("{button}?.checkVisibility({{ opacityProperty: true }})")).await;
    stage.eval(&format!("({panel}.querySelector('[aria-label=Close]').click(), true)")).await;
    stage.until(LIMIT, "!document.querySelector('taskbell-bell').open").await;
}

async fn loading_nothing_failed_and_not_allowed_are_told_apart(stage: &Stage) {
    stage.sign_in().await;
    stage.open("/notifications").await;
    let main = "document.querySelector('main').innerText";
    stage.until(LIMIT, &format!("{main}.includes('No tasks yet')")).await;
    stage.open("/notifications?state=failed").await;
    stage
        .until(LIMIT, &format!("{main}.includes('No task fits these filters') || {main}.includes('Nothing matches')"))
        .await;
    // Nothing has come yet, and nothing is said about what will. What the page asks for beside, as it connects again, gets no
    // answer.
    stage.proxy.refuse(&["/api/v1/ws"]);
    stage.open("/").await;
    stage.until(LIMIT, &format!("{BELL}?.querySelector('.tb-bell-button')")).await;
    stage
        .eval("(window.answer = null, window.fetch = (url) => new Promise((go) => { if (String(url).endsWith('/api/v1/notifications')) window.answer = (status, body) => go(new Response(JSON.stringify(body), { status })); }), true)")
        .await;
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    let empty = format!("{BELL}.querySelector('.tb-panel-body')");
    stage.until(LIMIT, "window.answer").await;
    assert_eq!(stage.eval(&format!("Boolean({empty}.querySelector('.tb-skeleton[aria-busy=true]')) && !{empty}.innerText.includes('No tasks')")).await, true);
    let cases = [
        (
            503,
            json!({"detail": "The database does not answer.", "requestId": "req-1"}),
            "The database does not answer. Request req-1",
        ),
        (403, json!({"detail": "You may not do this.", "requestId": "req-2"}), "You may not do this. Request req-2"),
    ];
    for (status, problem, told) in cases {
        stage.eval(&format!("(window.answer({status}, {problem}), window.answer = null, true)")).await;
        stage.until(LIMIT, &format!("{empty}.innerText.includes('{told}')")).await;
        stage.eval(&format!("({empty}.querySelector('button').click(), true)")).await;
        stage.until(LIMIT, "window.answer").await;
    }
    let snapshot = json!({"t": "snap", "topic": "me", "epoch": "e", "head": 1, "items": [], "counts": {"unseen": 0}, "more": false});
    stage.eval(&format!("(window.answer(200, {snapshot}), true)")).await;
    stage
        .until(LIMIT, &format!("{empty}.innerText.includes('No tasks yet') && !{empty}.innerText.includes('Request')"))
        .await;
}
