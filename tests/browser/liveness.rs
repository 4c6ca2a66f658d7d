//! How true the page is at this moment, what it asks for, and when: the indicator, the reads, the retries.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};
use std::time::Duration;

pub fn tests() -> Vec<Test> {
    browser_tests![
        the_indicator_has_a_word_for_each_state_and_the_banner_tells_since_when,
        one_trigger_is_one_read_and_triggers_at_once_share_it,
        refresh_works_without_a_socket_and_a_failure_says_why,
        retries_follow_the_table,
        a_server_that_does_not_understand_the_page_is_told_and_not_asked_over_and_over,
    ]
}

const BELL: &str = "document.querySelector('taskbell-bell').shadowRoot";
const BANNER: &str = "document.querySelector('header > .tb-banner')";
const LIVE: &str = "document.querySelector('main [data-part=live] .tb-live')";

/// A connection over sockets that the test plays, so that every frame and every silence can be had.
const PLAYED: &str = r"
    const { Connection } = await import('/static/connection.js');
    const sockets = [];
    class Played extends EventTarget {
        static OPEN = 1;
        readyState = 1; sent = [];
        constructor() { super(); sockets.push(this); queueMicrotask(() => this.dispatchEvent(new Event('open'))); }
        send(text) { this.sent.push(JSON.parse(text).t); }
        close() {}
        hear(frame) { this.dispatchEvent(new MessageEvent('message', { data: JSON.stringify(frame) })); }
        drop(code) { this.dispatchEvent(new CloseEvent('close', { code })); }
    }
    const settle = () => new Promise((go) => setTimeout(go));
    const who = { tenant: 'default', user: 'alice' };
    const greet = { t: 'welcome', epoch: 'e', head: 5, serverTime: new Date().toISOString(), ...who };
    const snap = { t: 'snap', topic: 'me', epoch: 'e', head: 5, items: [], counts: {} };
    const real = window.WebSocket;
    window.WebSocket = Played;
    const connection = new Connection({ who });
    connection.start();
    await settle();
";

/// Runs a script after [`PLAYED`]; answers what it returns.
async fn played(stage: &Stage, script: &str) -> Value {
    let whole = format!(
        "(async () => {{ {PLAYED} try {{ {script} }} finally {{ connection.signOut(); window.WebSocket = real; }} }})()\
         .then(done, (fault) => done(String(fault.stack ?? fault)));"
    );
    stage.eval_async(&whole).await
}

async fn the_indicator_has_a_word_for_each_state_and_the_banner_tells_since_when(stage: &Stage) {
    stage.sign_in().await;
    stage.open("/notifications").await;
    stage.until_live().await;
    stage.until(LIMIT, &format!("{LIVE}.textContent === 'Live' && {BANNER}.hidden")).await;
    // What the banner is like at the moment at which the word changes.
    stage
        .eval(&format!(
            "(new MutationObserver(() => window.early ??= {BANNER}.hidden).observe({LIVE}, {{ attributes: true }}), true)"
        ))
        .await;
    stage.proxy.cut();
    stage.until(LIMIT, &format!("{LIVE}.textContent === 'Reconnecting'")).await;
    stage.until(LIMIT, &format!("!{BANNER}.hidden && {BANNER}.checkVisibility()")).await;
    assert_eq!(stage.eval("window.early").await, true, "a short cut is not worth a banner");
    let told = format!("/as of \\d{{4}}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d\\./.test({BANNER}.textContent)");
    assert_eq!(stage.eval(&told).await, true, "{}", stage.eval(&format!("{BANNER}.textContent")).await);
    stage.proxy.mend();
    stage.until(Duration::from_secs(30), &format!("{LIVE}.textContent === 'Live' && {BANNER}.hidden")).await;
    stage.eval("(dispatchEvent(new Event('offline')), true)").await;
    stage.until(LIMIT, &format!("{LIVE}.textContent === 'Offline'")).await;
    stage.eval("(dispatchEvent(new Event('online')), true)").await;
    stage.until(LIMIT, &format!("{LIVE}.textContent === 'Live'")).await;
    let states = played(
        stage,
        "const states = [connection.live];
         const say = () => states.push(connection.live);
         sockets[0].hear(greet); say();
         sockets[0].hear({ t: 'status', live: 'degraded' }); say();
         sockets[0].hear({ t: 'status', live: 'ok' }); say();
         sockets[0].drop(1012); say();
         sockets[0].drop(4403); connection.signOut(); say();
         return states;",
    );
    assert_eq!(states.await, json!(["connecting", "live", "delayed", "live", "reconnecting", "signed-out"]));
    // Another person's session took the place of the one that the page was made for.
    let other = "sockets[0].hear({ ...greet, user: 'bob' }); return [connection.live, sockets[0].sent];";
    assert_eq!(played(stage, other).await, json!(["signed-out", ["hello"]]));
}

/// Notes each read from here on: hello and sync over a socket, the snapshot over HTTP.
const NOTE_READS: &str = r"(() => {
    window.reads = [];
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) { const { t } = JSON.parse(text); if (t === 'hello' || t === 'sync') window.reads.push(t); return send.call(this, text); };
    const get = window.fetch;
    window.fetch = (url, options) => { if (/notifications$/.test(url)) window.reads.push('http'); return get(url, options); };
    return true;
})()";

async fn one_trigger_is_one_read_and_triggers_at_once_share_it(stage: &Stage) {
    stage.sign_in().await;
    stage.until_live().await;
    stage.eval(NOTE_READS).await;
    let press = |label: &str| format!("{BELL}.querySelector('[aria-label=\"{label}\"]').click()");
    let open = format!("{BELL}.querySelector('.tb-bell-button').click()");
    let refresh = press("Refresh");
    let visible = "document.dispatchEvent(new Event('visibilitychange'))";
    let resume = "document.dispatchEvent(new Event('resume'))";
    let online = "dispatchEvent(new Event('online'))";
    let all = format!("{refresh}, {visible}, {resume}, {online}, {refresh}");
    for trigger in [open.as_str(), &refresh, visible, resume, online, &all] {
        // What is under way is waited for first; the read that is waited for at the end is the one that the trigger began.
        let script = format!(
            "import('/static/center.js').then(({{ center }}) => center()).then(async ({{ connection }}) => {{ \
             await connection.refresh(); window.reads = []; {trigger}; \
             const begun = window.reads.length; await connection.refresh(); done([begun, window.reads]); }});"
        );
        assert_eq!(stage.eval_async(&script).await, json!([1, ["sync"]]), "{trigger}");
    }
    // A reconnect is one read too: what the hello brings.
    stage.eval("(window.reads = [], true)").await;
    stage.proxy.cut();
    let live = format!("{BELL}.querySelector('.tb-panel-foot .tb-live').dataset.live");
    stage.until(LIMIT, &format!("{live} === 'reconnecting'")).await;
    stage.proxy.mend();
    stage.until(Duration::from_secs(30), &format!("{live} === 'live'")).await;
    assert_eq!(stage.eval("window.reads").await, json!(["hello"]));
    let pings = played(
        stage,
        "const [socket] = sockets;
         socket.hear(greet);
         connection.refresh();
         socket.hear(snap);
         socket.hear({ t: 'ping', head: 5 });
         await settle();
         const idle = [...socket.sent];
         socket.hear({ t: 'ping', head: 6 }); socket.hear({ t: 'ping', head: 7 });
         return [idle, socket.sent.slice(idle.length)];",
    );
    // A read while the hello is being answered waits for that answer; a ping that shows us behind asks once.
    assert_eq!(pings.await, json!([["hello", "view", "pong"], ["pong", "sync", "pong"]]));
}

async fn refresh_works_without_a_socket_and_a_failure_says_why(stage: &Stage) {
    let client = stage.client().await;
    stage.sign_in().await;
    stage.proxy.refuse(&["/api/v1/ws"]);
    stage.open("/notifications").await;
    let updated = "document.querySelector('[data-part=updated]').dateTime";
    stage.until(LIMIT, &format!("{LIVE}?.textContent === 'Reconnecting' && {updated}")).await;
    let task = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    client.until(task["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "succeeded").await;
    let before = stage.eval(updated).await;
    stage.until(LIMIT, &format!("!{BANNER}.hidden")).await;
    stage.click("[data-part='refresh']").await;
    stage.until(LIMIT, &format!("{}?.dataset.state === 'succeeded'", stage.list_row(&task))).await;
    stage.until(LIMIT, &format!("{updated} > {before}")).await;
    // The banner goes on saying that nothing is pushed, and tells the newer time.
    let told = format!("{BANNER}.textContent.match(/[-0-9]{{10}} [:0-9]{{8}}/)?.[0]");
    let of_list = "document.querySelector('[data-part=updated]').textContent";
    stage.until(LIMIT, &format!("!{BANNER}.hidden && {told} >= {of_list}")).await;
    let row = stage.bell_row(&task);
    stage.eval(&format!("({BELL}.querySelector('.tb-bell-button').click(), true)")).await;
    stage.until(LIMIT, &format!("{row}?.checkVisibility()")).await;
    stage.until(LIMIT, &format!("{BELL}.querySelector('.tb-badge').hidden")).await;
    // The counts are known and the list cannot be read: what is known stays, the reason is told, and a retry is offered.
    let other = client.submit(json!({"action": "rebuild-index", "params": {"pause": 0}})).await;
    stage.proxy.refuse(&["/api/v1/ws", "/api/v1/notifications"]);
    stage.eval(&format!("({BELL}.querySelector('[aria-label=Refresh]').click(), true)")).await;
    let banner = format!("{BELL}.querySelector('.tb-banner')");
    stage.until(LIMIT, &format!("{banner}.textContent.includes('could not be read: No answer')")).await;
    assert_eq!(stage.eval(&format!("{row}.checkVisibility()")).await, true);
    stage.proxy.refuse(&["/api/v1/ws"]);
    stage.eval(&format!("({banner}.querySelector('button').click(), true)")).await;
    // Under the pointer it waits behind its button.
    let waits = format!("!{BELL}.querySelector('.tb-fresh').hidden");
    stage.until(LIMIT, &format!("{} || {waits}", stage.bell_row(&other))).await;
    stage.until(LIMIT, &format!("!{banner}.textContent.includes('could not be read')")).await;
    stage.proxy.refuse(&[]);
    stage.eval("(dispatchEvent(new Event('online')), true)").await;
    stage.until(LIMIT, &format!("{LIVE}.textContent === 'Live' && {BANNER}.hidden")).await;
}

async fn retries_follow_the_table(stage: &Stage) {
    stage.sign_in().await;
    let delays = "import('/static/backoff.js').then(({ retryDelay }) => {
        const visible = { attempt: 0 };
        const hidden = { attempt: 3, hidden: true };
        const half = (situation) => retryDelay(situation, 0.5);
        done({
            first: [0, 0.5, 1].map((random) => retryDelay(visible, random)),
            later: [1, 2, 3, 4, 5, 9, 16].map((attempt) => half({ attempt })),
            hidden: half({ ...hidden, hiddenMs: 1 }),
            hiddenLong: half({ ...hidden, hiddenMs: 300001 }),
            hiddenLongAndBusy: half({ ...hidden, hiddenMs: 300001, busy: true }),
            hiddenAndAnotherKeepsOne: half({ ...hidden, mayConnect: false }),
            signedOut: half({ ...visible, signedOut: true }),
            drained: half({ ...visible, drain: { retryMs: 500, spreadMs: 5000 } }),
            tooMany: half({ ...visible, code: 4429 }),
            notUnderstood: half({ ...visible, code: 4409 }),
        });
    }, (fault) => done(String(fault)));";
    assert_eq!(
        stage.eval_async(delays).await,
        json!({
            "first": [0, 1000, 2000],
            "later": [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000],
            "hidden": 30_000,
            "hiddenLong": null,
            "hiddenLongAndBusy": 30_000,
            "hiddenAndAnotherKeepsOne": null,
            "signedOut": null,
            "drained": 3000,
            "tooMany": 30_000,
            "notUnderstood": 30_000,
        })
    );
}

async fn a_server_that_does_not_understand_the_page_is_told_and_not_asked_over_and_over(stage: &Stage) {
    stage.sign_in().await;
    stage.open("/notifications").await;
    stage.until_live().await;
    let told = played(
        stage,
        "const waits = []; const later = window.setTimeout; window.setTimeout = (act, ms) => (waits.push(ms), later(act, ms));
         sockets[0].drop(4409);
         window.setTimeout = later;
         const said = [connection.live, connection.fault?.message, Math.max(...waits.filter((ms) => ms < 60_000)), sockets.length];
         dispatchEvent(new Event('online')); await settle();
         sockets[1].hear(greet);
         return [...said, connection.live, connection.fault];",
    )
    .await;
    let words = "The server does not understand this page. Reload it.";
    assert_eq!(told, json!(["reconnecting", words, 30_000, 1, "live", null]));
}
