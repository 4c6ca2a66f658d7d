//! The widgets in a page of another application: another origin, a policy of its own, a token from its own server.

use crate::browser_tests;
use crate::ground::Ground;
use crate::host::{Host, SECRET};
use crate::proxy::Proxy;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use crate::server::{Client, Server, Spec, free_port};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use thirtyfour::Key;
use tokio::net::TcpListener;

pub fn tests() -> Vec<Test> {
    browser_tests![
        all_three_widgets_work_in_a_foreign_page_under_a_strict_policy,
        a_button_asks_for_what_is_missing_and_says_why_it_is_off,
        links_lead_to_the_pages_of_the_application_where_it_says_so,
        an_end_is_told_once_and_none_that_was_there_before,
        a_token_is_renewed_on_the_open_socket_and_a_missing_one_is_told_in_words,
        an_origin_that_is_not_listed_gets_nothing,
        tabs_of_a_foreign_page_share_marks_and_keep_hostile_text_as_text,
        a_widget_follows_its_attributes_and_leaves_nothing_behind,
    ]
}

const CONFIG: &str = r#"
[database]
url = "sqlite://data/taskbell.db"
[auth]
jwt = [{ issuer = "erp", audience = "taskbell", algorithm = "HS256", max_role = "user", secret = { env = "ERP_SECRET" } }]
[[records]]
type = "list"
url = "https://erp.example.com/lists/{id}"
[[actions]]
key = "publish"
title = { en = "Publish prices", zh-CN = "发布价格" }
handler = { script = "work.js" }
record = "list"
params = { type = "object", properties = { steps = { type = "integer" }, pause = { type = "number" } }, additionalProperties = false }
[[actions]]
key = "raise"
title = "Raise prices"
handler = { script = "work.js" }
params = { type = "object", properties = { steps = { type = "integer" }, percent = { type = "number", title = "Percent" } }, required = ["percent", "steps"], additionalProperties = false }
[[actions]]
key = "close"
title = "Close the year"
handler = { script = "work.js" }
roles = ["admin"]
"#;

const WORK: &str = r#"
export default async function (task, cx) {
  const total = task.params.steps ?? 3;
  const current = (cx.checkpoint?.at ?? 0) + 1;
  const progress = { current, total, unit: "rows", message: "<img src=x onerror=alert(1)>" };
  if (current >= total) return { hasMore: false, result: {}, ...progress };
  return { hasMore: true, checkpoint: { at: current }, nextDelaySeconds: task.params.pause ?? 0.3, ...progress };
}
"#;

/// Says whose token speaks as a page does that knows nothing of when the widgets' script has run.
const GIVE: &str = "document.querySelector('taskbell-bell').getToken = giveToken;";

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";
const BUTTON: &str = "document.querySelector('taskbell-button').shadowRoot";
const PROGRESS: &str = "document.querySelector('taskbell-progress').shadowRoot";

struct World {
    proxy: Proxy,
    host: Host,
    server: Server,
}

impl World {
    /// A taskbell that lists the application's origin, and the application.
    async fn new(stage: &Stage) -> Self {
        // What the browser said of the tests before is not ours.
        stage.driver().browser_log().await.unwrap();
        let ground = Ground::usual().await;
        fs::write(ground.path().join("work.js"), WORK).unwrap();
        let port = free_port();
        let proxy = Proxy::before(port).await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let host = Host::start(listener, &proxy.url()).await;
        let server = Spec::with_config(CONFIG)
            .port(port)
            .env("ERP_SECRET", SECRET)
            .env("TASKBELL__SERVER__PUBLIC_URL", &proxy.url())
            .env("TASKBELL__SERVER__ALLOWED_ORIGINS", &json!([host.url()]).to_string());
        Self { server: server.start_on(Arc::new(ground)).await, proxy, host }
    }

    async fn client(&self) -> Client {
        self.server.client("alice", "user").await
    }

    async fn open(&self, stage: &Stage, page: &str) {
        stage.driver().goto(format!("{}/{page}", self.host.url())).await.unwrap();
    }
}

fn live() -> String {
    format!("{BELL}?.querySelector('.tb-panel-foot .tb-live')?.dataset.live === 'live'")
}

/// What a page heard, as `type at state`, in order.
async fn heard(stage: &Stage) -> Vec<String> {
    let events = stage.eval("noted.events.map(({ type, at, state }) => `${type} ${at} ${state}`)").await;
    events.as_array().unwrap().iter().map(|event| event.as_str().unwrap().to_owned()).collect()
}

/// Nothing was refused by the page's policy, and the browser complained of nothing.
async fn nothing_was_refused(stage: &Stage) {
    assert_eq!(stage.eval("noted.refused").await, json!([]));
    let log = stage.driver().browser_log().await.unwrap();
    let said: Vec<_> = log.iter().filter(|entry| !entry.message.contains("favicon")).map(|e| &e.message).collect();
    assert!(said.is_empty(), "{said:?}");
}

async fn all_three_widgets_work_in_a_foreign_page_under_a_strict_policy(stage: &Stage) {
    let world = World::new(stage).await;
    let body = "<main><h1>Price lists</h1><p><taskbell-bell></taskbell-bell></p>\
        <p><taskbell-button action=publish record-type=list record-id=EU params='{\"steps\":6,\"pause\":0.7}'></taskbell-button></p>\
        <taskbell-progress record=list:EU></taskbell-progress></main>";
    world.host.has("page", "lang=en", body, GIVE);
    world.open(stage, "page").await;
    stage.until(LIMIT, &live()).await;
    // By keyboard alone: into the shadow root, a double press, and the button has become the row of one task.
    stage
        .until(
            LIMIT,
            &format!("{BUTTON}?.querySelector('button:not([aria-disabled])')?.textContent === 'Publish prices'"),
        )
        .await;
    stage.until(LIMIT, &format!("{PROGRESS}?.textContent.includes('No task has worked on this record yet')")).await;
    stage.eval(&format!("({BUTTON}.querySelector('button').focus(), true)")).await;
    let enter = || stage.driver().action_chain().send_keys(Key::Enter);
    enter().perform().await.unwrap();
    enter().perform().await.unwrap();
    for root in [BUTTON, PROGRESS] {
        stage.until(LIMIT, &format!("{root}.querySelector('.tb-row')?.dataset.state === 'running'")).await;
        stage
            .until(LIMIT, &format!("/[1-6] \\/ 6 rows/.test({root}.querySelector('[data-part=count]').textContent)"))
            .await;
    }
    assert_eq!(stage.eval(&format!("{BUTTON}.querySelector('button.tb-button[part]').checkVisibility()")).await, false);
    // The bell too, by keyboard: Enter opens, Escape closes and gives the focus back.
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').focus(), true)")).await;
    enter().perform().await.unwrap();
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-row svg.tb-icon path, .tb-row svg.tb-icon circle')")).await;
    stage.driver().action_chain().send_keys(Key::Escape).perform().await.unwrap();
    stage.until(LIMIT, "!document.querySelector('taskbell-bell').open").await;
    assert_eq!(stage.eval(&format!("{BELL}.activeElement?.className")).await, "tb-bell-button");
    for root in [BUTTON, PROGRESS] {
        stage.until(LIMIT, &format!("{root}.querySelector('.tb-row')?.dataset.state === 'succeeded'")).await;
    }
    stage.until(LIMIT, &format!("{BUTTON}.querySelector('button.tb-button[part]').checkVisibility()")).await;
    stage.until(LIMIT, "noted.events.length >= 2").await;
    let told = heard(stage).await;
    assert_eq!(told.len(), 2, "each once, however many widgets show the task: {told:?}");
    assert_eq!(told[0], "taskbell:submitted taskbell-button queued");
    let nearest = ["taskbell:ended taskbell-button succeeded", "taskbell:ended taskbell-progress succeeded"];
    assert!(nearest.contains(&told[1].as_str()), "{told:?}");
    let (_, tasks) = world.client().await.get("/api/v1/records/list/EU/tasks").await;
    assert_eq!(tasks["items"].as_array().unwrap().len(), 1, "two presses are one task");
    // A link leads to taskbell, beside the page; the record's leads into the application.
    let link = stage
        .eval(&format!(
            "(({{ href, target, rel }}) => [href, target, rel])({PROGRESS}.querySelector('a[data-part=title]'))"
        ))
        .await;
    let id = tasks["items"][0]["id"].as_str().unwrap();
    assert_eq!(link, json!([format!("{}/tasks/{id}", world.proxy.url()), "_blank", "noopener"]));
    assert_eq!(
        stage.eval(&format!("{PROGRESS}.querySelector('a[data-part=record]').href")).await,
        "https://erp.example.com/lists/EU"
    );
    // Nothing leaks, and nobody else is asked.
    let names = "Object.getOwnPropertyNames(window).filter((name) => !noted.early.has(name) && !['noted', 'giveToken', 'ret_nodes'].includes(name))";
    assert_eq!(stage.eval(names).await, json!([]));
    let asked = stage
        .eval("[...new Set(performance.getEntriesByType('resource').map(({ name }) => new URL(name).origin))]")
        .await;
    let asked: BTreeSet<&str> = asked.as_array().unwrap().iter().map(|origin| origin.as_str().unwrap()).collect();
    let (host, taskbell) = (world.host.url(), world.proxy.url());
    assert_eq!(asked, BTreeSet::from([host.as_str(), taskbell.as_str()]));
    // What the widgets cost a page is these two files, whose sizes a test of the server holds.
    let files = "performance.getEntriesByType('resource').map(({ name }) => new URL(name)).filter(({ origin, pathname }) => origin !== location.origin && !pathname.startsWith('/api/')).map(({ pathname }) => pathname)";
    assert_eq!(stage.eval(files).await, json!(["/static/taskbell.js", "/static/i18n/en.widgets.json"]));
    nothing_was_refused(stage).await;
    assert_eq!(stage.axe().await, Vec::<String>::new());
    // A task that is deleted from its row is gone from both, and the button is there for the next one.
    stage.eval(&format!("({BUTTON}.querySelector('[data-do=delete]').click(), true)")).await;
    stage.until(LIMIT, &format!("{BUTTON}.querySelector('dialog[open] .tb-dialog-foot button:last-child')")).await;
    stage
        .eval(&format!("({BUTTON}.querySelector('dialog[open] .tb-dialog-foot button:last-child').click(), true)"))
        .await;
    stage
        .until(
            LIMIT,
            &format!("!{BUTTON}.querySelector('.tb-row') && {PROGRESS}.textContent.includes('No task has worked')"),
        )
        .await;
}

async fn a_button_asks_for_what_is_missing_and_says_why_it_is_off(stage: &Stage) {
    let world = World::new(stage).await;
    let body = "<taskbell-bell></taskbell-bell><taskbell-button id=ask action=raise params='{\"steps\":2}'></taskbell-button>\
        <taskbell-button id=no action=close>Close it</taskbell-button><taskbell-button id=odd action=publish params='{steps'></taskbell-button>";
    world.host.has("page", "lang=en", body, GIVE);
    world.open(stage, "page").await;
    let root = |id: &str| format!("document.querySelector('#{id}').shadowRoot");
    for (id, why) in [("no", "This is not yours to start."), ("odd", "The attribute params is not a JSON object.")] {
        let root = root(id);
        stage.until(LIMIT, &format!("{root}?.querySelector('button')?.ariaDisabled === 'true' && {root}.querySelector('#note').textContent === '{why}'")).await;
    }
    let ask = root("ask");
    stage.until(LIMIT, &format!("{ask}?.querySelector('button:not([aria-disabled])')")).await;
    stage.eval(&format!("({ask}.querySelector('button').click(), true)")).await;
    let dialog = format!("{ask}.querySelector('dialog[open]')");
    stage.until(LIMIT, &format!("{dialog}?.querySelector('input') === {ask}.activeElement")).await;
    assert_eq!(
        stage.eval(&format!("{dialog}.querySelectorAll('input').length")).await,
        1,
        "only what is missing is asked"
    );
    let submit = format!("({dialog}.querySelector('[type=submit]').click(), true)");
    stage.eval(&submit).await;
    stage
        .until(LIMIT, &format!("{dialog}.querySelector('.tb-field .tb-error').textContent.includes('Fill this in')"))
        .await;
    stage.driver().action_chain().send_keys("5").perform().await.unwrap();
    stage.eval(&submit).await;
    stage.until(LIMIT, &format!("!{dialog} && {ask}.querySelector('.tb-row')")).await;
    let (_, tasks) = world.client().await.get("/api/v1/tasks?action=raise").await;
    let id = tasks["items"][0]["id"].as_str().unwrap();
    let (_, task) = world.client().await.get(&format!("/api/v1/tasks/{id}")).await;
    assert_eq!(task["params"], json!({"steps": 2, "percent": 5}));
    nothing_was_refused(stage).await;
}

async fn links_lead_to_the_pages_of_the_application_where_it_says_so(stage: &Stage) {
    let world = World::new(stage).await;
    let client = world.client().await;
    let record = json!({"type": "list", "id": "EU"});
    let task = client.submit(json!({"action": "publish", "record": record, "params": {"steps": 1}})).await;
    for (name, url, href) in
        [("none", "", Value::Null), ("own", "/work/{id}?x=1", json!(format!("/work/{}?x=1", id(&task))))]
    {
        let body = format!(
            "<main><taskbell-bell task-url='{url}'></taskbell-bell><taskbell-progress record=list:EU></taskbell-progress></main>"
        );
        world.host.has(name, "lang=en", &body, GIVE);
        world.open(stage, name).await;
        stage.until(LIMIT, &live()).await;
        stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
        for root in [BELL, PROGRESS] {
            stage
                .until(LIMIT, &format!("{root}.querySelector('[data-part=title]')?.textContent === 'Publish prices'"))
                .await;
            let link = format!(
                "(({{ attributes: {{ href, target }} }}) => [href?.value ?? null, target?.value ?? null])({root}.querySelector('[data-part=title]'))"
            );
            assert_eq!(stage.eval(&link).await, json!([href, null]));
        }
        // No other link leads to pages that this person cannot enter; the record's leads into the application.
        let taskbell = format!(
            "[...{BELL}.querySelectorAll('a')].filter((a) => a.checkVisibility() && a.href.startsWith('{}'))",
            world.proxy.url()
        );
        assert_eq!(stage.eval(&format!("{taskbell}.map((a) => a.href)")).await, json!([]));
        assert_eq!(
            stage.eval(&format!("{PROGRESS}.querySelector('a[data-part=record]').href")).await,
            "https://erp.example.com/lists/EU"
        );
    }
    nothing_was_refused(stage).await;
}

async fn an_end_is_told_once_and_none_that_was_there_before(stage: &Stage) {
    let world = World::new(stage).await;
    let client = world.client().await;
    let start = async |id: &str, steps: i64| {
        let record = json!({"type": "list", "id": id});
        client.submit(json!({"action": "publish", "params": {"steps": steps}, "record": record})).await
    };
    let before = start("OLD", 1).await;
    client.until(id(&before), LIMIT, |task| task["state"] == "succeeded").await;
    let body = "<taskbell-bell></taskbell-bell><taskbell-progress record=list:OLD></taskbell-progress>";
    world.host.has("page", "lang=en", body, GIVE);
    // Headless: no element, the store alone, and the document is told.
    let headless = "import { connect } from 'TASKBELL/static/taskbell.js';\n\
        connect({ getToken: giveToken }).then((center) => { noted.center = center; });";
    world.host.has("headless", "lang=en", "", headless);
    world.open(stage, "page").await;
    stage.until(LIMIT, &live()).await;
    stage.until(LIMIT, &format!("{PROGRESS}?.querySelector('.tb-row')?.dataset.state === 'succeeded'")).await;
    // An end that comes while the connection is away is told when it is back.
    let during = start("OTHER", 8).await;
    stage.until(LIMIT, &format!("{BELL}.querySelector('[data-ring]').dataset.ring !== 'none'")).await;
    world.proxy.cut();
    client.until(id(&during), LIMIT, |task| task["state"] == "succeeded").await;
    world.proxy.mend();
    stage.until(LIMIT * 2, "noted.events.length > 0").await;
    let after = start("OLD", 2).await;
    stage.until(LIMIT, "noted.events.length > 1").await;
    let told = stage.eval("noted.events.map(({ id, at }) => [id, at])").await;
    assert_eq!(told, json!([[id(&during), "taskbell-bell"], [id(&after), "taskbell-progress"]]));
    world.open(stage, "headless").await;
    stage.until(LIMIT, "noted.center?.tasks.list().length === 3").await;
    let alone = start("ALONE", 2).await;
    stage.until(LIMIT, "noted.events.length > 0").await;
    assert_eq!(stage.eval("noted.events.map(({ id, at }) => [id, at])").await, json!([[id(&alone), "document"]]));
}

async fn a_token_is_renewed_on_the_open_socket_and_a_missing_one_is_told_in_words(stage: &Stage) {
    let world = World::new(stage).await;
    world.host.has("page", "lang=en", "<taskbell-bell></taskbell-bell>", GIVE);
    world.host.tokens_live(4);
    world.open(stage, "page").await;
    stage.until(LIMIT, &live()).await;
    // Long enough for the first tokens to end; all of it on one socket.
    stage.until(LIMIT, "noted.sent.filter((text) => JSON.parse(text).t === 'refresh').length >= 3").await;
    assert_eq!(stage.eval("noted.sent.filter((text) => JSON.parse(text).t === 'hello').length").await, 1);
    stage.until(LIMIT, &live()).await;
    assert!(world.host.asked() < 20, "asked {} times", world.host.asked());
    let banner = format!("{BELL}.querySelector('.tb-banner')");
    world.host.answers(503);
    stage.until(LIMIT * 2, &format!("!{banner}.hidden && {banner}.textContent.includes('This page could not get access: the till is closed')")).await;
    world.host.answers(200);
    stage.until(LIMIT * 3, &format!("{banner}.hidden && {}", live())).await;
    // Nobody is signed in there any more: the same here, without another try.
    world.host.answers(204);
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-live').dataset.live === 'signed-out'")).await;
    assert_eq!(
        stage.eval(&format!("{BELL}.querySelector('.tb-banner a').hidden")).await,
        true,
        "the sign-in is the application's"
    );
    // A new way to a token begins anew.
    world.host.answers(200);
    stage.eval("(document.querySelector('taskbell-bell').getToken = () => giveToken(), true)").await;
    stage.until(LIMIT, &live()).await;
}

async fn an_origin_that_is_not_listed_gets_nothing(stage: &Stage) {
    let world = World::new(stage).await;
    let stranger = Host::start(TcpListener::bind("127.0.0.1:0").await.unwrap(), &world.proxy.url()).await;
    let script = "const token = await giveToken(); \
        noted.api = await fetch('TASKBELL/api/v1/tasks', { headers: { Authorization: `Bearer ${token}` } }).then(() => 'answered', () => 'refused'); \
        const socket = new WebSocket('TASKBELL/api/v1/ws'.replace('http', 'ws'), 'taskbell.v1'); \
        socket.onopen = () => { noted.socket = 'open'; }; socket.onerror = () => { noted.socket = 'refused'; };";
    stranger.has("page", "lang=en", "<taskbell-bell><a href=/login>Tasks</a></taskbell-bell>", script);
    stage.driver().goto(format!("{}/page", stranger.url())).await.unwrap();
    stage.until(LIMIT, "noted.api && noted.socket").await;
    assert_eq!(
        stage.eval("[noted.api, noted.socket, customElements.get('taskbell-bell') ?? null]").await,
        json!(["refused", "refused", null])
    );
    assert_eq!(
        stage.eval("document.querySelector('taskbell-bell a').checkVisibility()").await,
        true,
        "what the page wrote stays"
    );
}

async fn tabs_of_a_foreign_page_share_marks_and_keep_hostile_text_as_text(stage: &Stage) {
    let world = World::new(stage).await;
    let client = world.client().await;
    let title = "<img src=x onerror=alert(1)></script><svg onload=alert(2)>";
    let task = client.submit(json!({"action": "publish", "params": {"steps": 1}, "title": title, "record": {"type": "list", "id": title}})).await;
    client.until(id(&task), LIMIT, |task| task["state"] == "succeeded").await;
    let body = format!("<taskbell-bell></taskbell-bell><taskbell-progress task={}></taskbell-progress>", id(&task));
    world.host.has("page", "lang=en", &body, GIVE);
    world.open(stage, "page").await;
    stage.until(LIMIT, &format!("{} && {BELL}.querySelector('.tb-badge').textContent === '1'", live())).await;
    let first = stage.driver().window().await.unwrap();
    let second = stage.driver().new_window().await.unwrap();
    stage.driver().switch_to_window(second).await.unwrap();
    world.open(stage, "page").await;
    stage.until(LIMIT, &live()).await;
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    for root in [BELL, PROGRESS] {
        stage
            .until(LIMIT, &format!("{root}.querySelector('[data-part=title]')?.textContent === {}", json!(title)))
            .await;
        assert_eq!(stage.eval(&format!("{root}.querySelectorAll('img, [onerror], [onload]').length")).await, 0);
    }
    assert!(stage.driver().get_alert_text().await.is_err());
    // Shown for a second here, it is seen in the other tab too.
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-badge').hidden")).await;
    nothing_was_refused(stage).await;
    stage.driver().switch_to_window(first).await.unwrap();
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-badge').hidden")).await;
}

async fn a_widget_follows_its_attributes_and_leaves_nothing_behind(stage: &Stage) {
    let world = World::new(stage).await;
    let client = world.client().await;
    let mut tasks = Vec::new();
    for title in ["one", "two"] {
        tasks.push(
            client.submit(json!({"action": "publish", "title": title, "params": {"steps": 500, "pause": 1}})).await,
        );
    }
    // A column of 320 px in a page that is written from right to left, in Chinese.
    let body = format!(
        "<taskbell-bell></taskbell-bell><main><taskbell-progress task={}></taskbell-progress>\
         <taskbell-button action=publish record-type=list record-id=CN></taskbell-button></main>",
        id(&tasks[0])
    );
    world.host.has("page", "lang=zh-CN dir=rtl", &body, "document.querySelector('main').style.inlineSize = '320px';");
    world.host.has("first", "", "", GIVE);
    world.host.has("before", "lang=zh-CN", "<taskbell-bell></taskbell-bell><script src=/first.js></script>", "");
    world.open(stage, "page").await;
    stage.until(LIMIT, "customElements.get('taskbell-progress')").await;
    stage.eval("(document.querySelector('taskbell-progress').getToken = giveToken, true)").await;
    stage.until(LIMIT, &format!("{PROGRESS}?.querySelector('[data-part=title]')?.textContent === 'one' && {PROGRESS}.querySelector('.tb-word').textContent === '后台处理中'")).await;
    stage.until(LIMIT, &format!("{BUTTON}?.querySelector('button')?.textContent === '发布价格'")).await;
    let fits = format!(
        "(() => {{ const row = {PROGRESS}.querySelector('.tb-row'); return row.offsetWidth <= 320 && row.scrollWidth <= row.offsetWidth; }})()"
    );
    assert_eq!(stage.eval(&fits).await, true);
    // In a page from right to left the bell stands on the left: its panel opens into the page.
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    let inside = format!(
        "(({{ left, right }}) => left >= 0 && right <= innerWidth)({BELL}.querySelector('.tb-panel').getBoundingClientRect())"
    );
    stage.until(LIMIT, &inside).await;
    // Another target, then none: the old topic is left each time.
    let frames = |word: &str, task: &Value| {
        format!("noted.sent.filter((text) => text.includes('\"{word}\"') && text.includes('task:{}')).length", id(task))
    };
    stage
        .eval(&format!("(document.querySelector('taskbell-progress').setAttribute('task', '{}'), true)", id(&tasks[1])))
        .await;
    stage.until(LIMIT, &format!("{PROGRESS}.querySelector('[data-part=title]')?.textContent === 'two'")).await;
    stage.until(LIMIT, &format!("{} === 1", frames("unsub", &tasks[0]))).await;
    stage.eval("(noted.gone = document.querySelector('taskbell-progress'), noted.gone.remove(), true)").await;
    stage.until(LIMIT, &format!("{} === 1", frames("unsub", &tasks[1]))).await;
    stage.eval("(document.querySelector('main').append(noted.gone), true)").await;
    stage
        .until(
            LIMIT,
            &format!(
                "{} === 2 && {PROGRESS}.querySelector('[data-part=title]')?.textContent === 'two'",
                frames("sub", &tasks[1])
            ),
        )
        .await;
    // A token that is there before the widgets' own script has run.
    world.open(stage, "before").await;
    stage.until(LIMIT, &live()).await;
}

fn id(task: &Value) -> &str {
    task["id"].as_str().expect("a task has an id")
}
