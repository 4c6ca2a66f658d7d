//! What a row says, held word for word over tables: the page's own modules are asked inside the page.

use crate::browser_tests;
use crate::rig::page::LIMIT;
use crate::rig::play::playing;
use crate::rig::runner::Test;
use crate::rig::stage::Stage;
use serde_json::{Value, json};

pub fn tests() -> Vec<Test> {
    browser_tests![
        each_kind_of_row_has_a_symbol_a_word_and_a_colour,
        the_time_left_is_told_only_where_it_is_known_and_as_roughly_as_it_is,
        what_stands_still_what_was_revised_and_what_is_late_is_said,
        plural_forms_come_from_the_rules_of_each_language,
        the_server_and_the_script_draw_the_same_row,
    ]
}

/// A running task, 25 of 100, and the page's modules; `made` changes what it is told.
const MADE: &str = r"
    const { describe, groupOf } = await import('/static/words.js');
    const { makeRow } = await import('/static/row.js');
    const { serverNow } = await import('/static/time.js');
    const now = Math.round(serverNow());
    const at = (ms) => new Date(now + ms).toISOString();
    const eta = (ms, confidence = 'high') => ({ state: 'estimated', finishAt: at(ms), confidence, basis: 'measured' });
    const made = ({ progress = {}, ...task } = {}) => ({
      id: '0190aaaa-0000-7000-8000-00000000a1f3', action: 'import', title: 'Import', owner: 'user', state: 'running', revision: 1, attempt: 1, maxAttempts: 3,
      rows: { ok: 0, skipped: 0, failed: 0 }, warnings: [], waiting: null, can: [], createdAt: at(-60000), startedAt: at(-50000), finishedAt: null, updatedAt: at(-1000), ...task,
      progress: { current: 1250, total: 5000, unit: 'rows', percent: 25, eta: { state: 'none' }, updatedAt: at(-1000), ...progress },
    });
    const ended = { finishedAt: at(-500), read: true, seen: true };
";

async fn each_kind_of_row_has_a_symbol_a_word_and_a_colour(stage: &Stage) {
    stage.sign_in().await;
    let kinds = r"
        const kinds = {
          queued: made({ state: 'queued' }), running: made(), retrying: made({ waiting: { reason: 'retry', until: at(9000) }, attempt: 2 }), paused: made({ state: 'paused' }),
          cancelling: made({ state: 'cancelling' }), cancelled: made({ state: 'cancelled', ...ended }), failed: made({ state: 'failed', ...ended }),
          succeeded: made({ state: 'succeeded', ...ended }), partial: made({ state: 'succeeded', rows: { ok: 9, skipped: 0, failed: 1 }, ...ended }),
          unknown: made({ state: 'zz_new' }),
        };
        const place = document.createElement('div');
        place.className = 'tb-rows';
        document.querySelector('main').append(place);
        return Object.entries(kinds).map(([kind, task]) => {
          const row = makeRow(task, now);
          place.append(row);
          const word = row.querySelector('[data-part=word]');
          const icon = row.querySelector('.tb-icon');
          return { kind: row.dataset.kind, wanted: kind, word: word.textContent, colour: getComputedStyle(icon).color, icon: icon.dataset.icon,
            box: icon.getBoundingClientRect().width, acts: row.querySelectorAll('[data-do]').length, time: row.querySelector('[data-part=at]').textContent, label: row.querySelector('[data-part=at-label]').textContent, height: row.clientHeight };
        });
    ";
    for (language, retry, unknown) in [("en", "next try at", "Unknown state"), ("zh-CN", "下次重试于", "未知状态")]
    {
        stage.speak(language).await;
        let rows = stage.ask(&format!("{MADE}{kinds}")).await;
        let rows = rows.as_array().unwrap();
        let distinct = |key: &str| {
            let mut values: Vec<String> = rows.iter().map(|row| row[key].to_string()).collect();
            values.sort();
            values.dedup();
            values.len()
        };
        assert!(rows.iter().all(|row| row["kind"] == row["wanted"] && row["box"] == 16.0), "{rows:?}");
        assert_eq!((distinct("icon"), distinct("word")), (10, 10), "{rows:?}");
        // A colour says how it stands: waiting, moving, standing, good, bad, and what wants a look.
        assert!(distinct("colour") >= 5, "{rows:?}");
        let colour = |kind: &str| &rows.iter().find(|row| row["kind"] == kind).unwrap()["colour"];
        for (a, b) in [("running", "queued"), ("failed", "cancelled"), ("succeeded", "partial"), ("failed", "retrying")]
        {
            assert_ne!(colour(a), colour(b), "{a} and {b}");
        }
        let strange = rows.iter().find(|row| row["kind"] == "unknown").unwrap();
        assert_eq!((&strange["word"], &strange["acts"]), (&json!(unknown), &json!(0)));
        let waits = rows.iter().find(|row| row["kind"] == "retrying").unwrap();
        assert!(waits["label"] == retry && waits["time"].as_str().unwrap().len() == "2026-11-29 15:59:28".len());
        assert_eq!(distinct("height"), 1, "no state moves the rows below it: {rows:?}");
    }
}

async fn the_time_left_is_told_only_where_it_is_known_and_as_roughly_as_it_is(stage: &Stage) {
    stage.sign_in().await;
    let left = r"
        const seconds = [-3600, -1, 0, 1, 59, 60, 89, 90, 245, 600, 640, 749, 751, 780, 1770, 3600, 7019, 7081, 8700, 93600];
        const of = (task) => { const said = describe(made(task), now); return [said.eta, said.atLabel, said.at]; };
        return {
          steps: seconds.map((s) => of({ progress: { eta: eta(s * 1000) } })[0]),
          low: of({ progress: { eta: eta(245000, 'low') } })[0], medium: of({ progress: { eta: eta(245000, 'medium') } })[0],
          finish: of({ progress: { eta: eta(245000) } }), wanted: at(245000), overdue: of({ progress: { eta: eta(-1) } }),
          estimating: of({ progress: { eta: { state: 'estimating' } } })[0],
          never: [['queued'], ['blocked'], ['paused'], ['pausing'], ['cancelling'], ['failed'], ['cancelled'], ['succeeded'], ['running', { reason: 'retry', until: at(9000) }]]
            .map(([state, waiting]) => of({ state, waiting: waiting ?? null, finishedAt: at(-1), progress: { eta: eta(245000) } })[0]),
          gap: (() => { const said = describe(made({ waiting: { reason: 'delay', until: at(60000) }, progress: { eta: eta(245000) } }), now); return [said.kind, said.bar.look, said.eta, said.nextLabel, said.next === at(60000)]; })(),
          group: groupOf(made({ waiting: { reason: 'delay', until: at(60000) } }), now),
          short: describe(made({ waiting: { reason: 'delay', until: at(1000) }, progress: { eta: eta(245000) } }), now).nextLabel,
          position: describe(made({ state: 'queued', waiting: { reason: 'capacity', position: 3 } }), now).message,
          unknown: of({ progress: { total: null, percent: null, eta: { state: 'unknown' } } }),
          value: describe(made({ progress: { eta: eta(245000) } }), now).valueText,
        };
    ";
    let told = stage.ask(&format!("{MADE}{left}")).await;
    let late = "taking longer than estimated";
    let under = "less than a minute left";
    let about = |span: &str| format!("about {span} left");
    let steps: Vec<String> = [late, late, late, under, under]
        .map(str::to_owned)
        .into_iter()
        .chain(
            [
                "1 min", "1 min", "2 min", "4 min", "10 min", "10 min", "10 min", "15 min", "15 min", "30 min",
                "60 min", "115 min", "2 h", "2.5 h", "26 h",
            ]
            .map(about),
        )
        .collect();
    assert_eq!(told["steps"], json!(steps));
    assert_eq!((&told["low"], &told["medium"]), (&json!("roughly 4 min left"), &json!("about 4 min left")));
    assert_eq!(told["finish"], json!(["about 4 min left", "finishes", told["wanted"]]));
    assert_eq!(told["overdue"], json!([late, "", null]));
    assert_eq!(told["estimating"], "estimating");
    let no_time_left = |text: &Value| !text.as_str().unwrap().contains("left");
    assert!(told["never"].as_array().unwrap().iter().all(no_time_left), "{}", told["never"]);
    assert_eq!(told["gap"], json!(["running", "value", "about 4 min left", "next batch at", true]));
    assert_eq!((&told["group"], &told["short"]), (&json!("running"), &json!("")));
    assert_eq!(told["position"], "3rd in line");
    assert_eq!(told["unknown"], json!(["estimating", "", null]));
    assert_eq!(told["value"], "1,250 of 5,000 rows, about 4 min left");
    stage.speak("zh-CN").await;
    let told = stage.ask(&format!("{MADE}{left}")).await;
    assert_eq!(told["finish"], json!(["约剩 4 分钟", "预计完成", told["wanted"]]));
    assert_eq!((&told["estimating"], &told["position"]), (&json!("估算中"), &json!("第 3 位")));
}

async fn what_stands_still_what_was_revised_and_what_is_late_is_said(stage: &Stage) {
    stage.sign_in().await;
    let said = r"
        const whole = { current: 5000, percent: 99 };
        const say = (task) => describe(made(task), now);
        const failure = { kind: 'handler', code: 'x', message: 'Disk full\nmore' };
        const cases = {
          failed: say({ state: 'failed', error: failure, ...ended }), finishing: say({ state: 'failed', error: failure, progress: whole, ...ended }),
          cancelled: say({ state: 'cancelled', ...ended }), unknown: say({ progress: { total: null, percent: null, eta: { state: 'unknown' } } }),
          over: say({ progress: { current: 6000, percent: 99 } }), revised: say({ progress: { total: 8000, percent: 15, revisedFrom: 5000, message: 'batch 3' } }),
          second: say({ attempt: 2 }), retry: say({ retryOf: '0190aaaa-0000-7000-8000-00000000beef' }),
          asked: say({ state: 'cancelling', stop: { at: at(-59000) } }), late: say({ state: 'cancelling', stop: { at: at(-61000) } }),
          silent: say({ silentSince: at(-9000) }), silentUnknown: say({ silentSince: at(-9000), progress: { total: null, percent: null, eta: { state: 'unknown' } } }),
          stalled: say({ progress: { eta: { state: 'stalled' }, updatedAt: at(-240000) } }),
        };
        const row = makeRow(made({ progress: { current: 4000, percent: 80 } }), now);
        const { patchRow } = await import('/static/row.js');
        patchRow(row, made({ revision: 2, progress: { current: 4000, total: 8000, percent: 50 } }), now);
        const bar = row.querySelector('[data-part=bar]');
        document.querySelector('main').append(row);
        const transition = getComputedStyle(bar, '::-webkit-progress-value').transitionDuration;
        return Object.fromEntries([...Object.entries(cases).map(([name, s]) => [name, [s.kind, s.message, s.eta, s.bar.look, s.percent, s.count]]),
          ['back', [bar.value, bar.hasAttribute('data-still')]], ['silentAt', [cases.silent.atLabel, cases.silent.at === at(-9000)]], ['transition', transition]]);
    ";
    let told = stage.ask(&format!("{MADE}{said}")).await;
    let rows = "1,250 / 5,000 rows";
    let wanted = [
        ("failed", json!(["failed", "Disk full", "stopped at 1,250 of 5,000 (25%)", "value", "25%", rows])),
        (
            "finishing",
            json!([
                "failed",
                "Disk full",
                "failed while finishing, at 5,000 of 5,000 (99%)",
                "value",
                "99%",
                "5,000 / 5,000 rows"
            ]),
        ),
        ("cancelled", json!(["cancelled", "stopped at 1,250 of 5,000 (25%)", "", "value", "25%", rows])),
        ("unknown", json!(["running", "", "estimating", "moving", "", "1,250 rows"])),
        ("over", json!(["running", "", "", "value", "99%", "6,000 of 5,000 rows expected"])),
        (
            "revised",
            json!(["running", "total revised 5,000 to 8,000 · batch 3", "", "value", "15%", "1,250 / 8,000 rows"]),
        ),
        ("second", json!(["running", "attempt 2 of 3", "", "value", "25%", rows])),
        ("retry", json!(["running", "retry of #beef", "", "value", "25%", rows])),
        ("asked", json!(["cancelling", "until the current batch ends", "", "value", "25%", rows])),
        ("late", json!(["cancelling", "worker has not confirmed yet", "", "value", "25%", rows])),
        ("silent", json!(["no-signal", "will be recovered", "", "value", "25%", rows])),
        ("silentUnknown", json!(["no-signal", "will be recovered", "", "still", "", "1,250 rows"])),
        ("stalled", json!(["stalled", "", "last moved 4 min ago", "value", "25%", rows])),
        ("silentAt", json!(["no signal since", true])),
        ("back", json!([50, true])),
    ];
    for (name, row) in wanted {
        assert_eq!(told[name], row, "{name}");
    }
    let longest = told["transition"]
        .as_str()
        .unwrap()
        .split(", ")
        .map(|t| t.trim_end_matches('s').parse::<f64>().unwrap())
        .fold(0.0, f64::max);
    assert!(longest <= 0.25, "a transition of {longest} s");
}

async fn plural_forms_come_from_the_rules_of_each_language(stage: &Stage) {
    stage.sign_in().await;
    let forms = r"
        const { choose } = await import('/static/i18n.js');
        const message = Object.fromEntries(['zero', 'one', 'two', 'few', 'many', 'other'].map((form) => [form, form]));
        const numbers = [0, 1, 2, 5, 11, 21, 22, 1.5, 1000000];
        return Object.fromEntries(['en', 'zh-CN', 'ru', 'pl', 'ar'].map((tag) => [tag,
          numbers.map((n) => choose(message, n, { cardinal: new Intl.PluralRules(tag), ordinal: new Intl.PluralRules(tag, { type: 'ordinal' }) }))]));
    ";
    let told = stage.ask(forms).await;
    assert_eq!(told["en"], json!(["other", "one", "other", "other", "other", "other", "other", "other", "other"]));
    assert_eq!(told["zh-CN"], json!(["other", "other", "other", "other", "other", "other", "other", "other", "other"]));
    assert_eq!(told["ru"], json!(["many", "one", "few", "many", "many", "one", "few", "other", "many"]));
    assert_eq!(told["pl"], json!(["many", "one", "few", "many", "many", "many", "few", "other", "many"]));
    assert_eq!(told["ar"], json!(["zero", "one", "two", "few", "many", "many", "many", "other", "other"]));
    let said =
        "const { t } = await import('/static/i18n.js'); return [1, 2, 1000000].map((n) => t('login.slow', { n }));";
    let seconds = stage.ask(said).await;
    assert!(
        seconds[0].as_str().unwrap().ends_with("in 1 second.")
            && seconds[2].as_str().unwrap().ends_with("in 1,000,000 seconds.")
    );
    stage.speak("zh-CN").await;
    assert!(stage.ask(said).await[2].as_str().unwrap().contains("1,000,000 秒"));
}

/// For each row that the server wrote: where the script draws it otherwise.
const DIFFERENCES: &str = r"
    const { makeRow } = await import('/static/row.js');
    const page = await new Promise((done) => { const r = new XMLHttpRequest(); r.open('GET', '/notifications'); r.responseType = 'document'; r.onload = () => done(r.response); r.send(); });
    const data = (id) => JSON.parse(page.getElementById(id).textContent);
    const now = Date.parse(data('tb-page').now);
    const { setServerTime } = await import('/static/time.js');
    setServerTime(now);
    const text = (e) => e.textContent.replace(/\s+/g, ' ').trim();
    const differences = [];
    const rows = [...page.querySelectorAll('[data-task]')];
    for (const row of rows) {
      const task = data('tb-list').items.find((item) => item.id === row.dataset.task);
      const drawn = makeRow(task, now);
      const compare = (what, a, b) => a !== b && differences.push(`${task.state} ${what}: ${a} | ${b}`);
      for (const name of ['data-kind', 'data-tone', 'data-state', 'aria-label']) compare(name, row.getAttribute(name), drawn.getAttribute(name));
      compare('icon', row.querySelector('use').getAttribute('href').split('#')[1], drawn.querySelector('.tb-icon').dataset.icon);
      for (const part of drawn.querySelectorAll('[data-part]')) {
        const other = row.querySelector(`[data-part='${part.dataset.part}']`);
        if (!other) { differences.push(`${task.state} has no ${part.dataset.part}`); continue; }
        compare(part.dataset.part, text(other), text(part));
        for (const name of ['value', 'data-bar', 'aria-valuetext', 'datetime']) compare(`${part.dataset.part} ${name}`, other.getAttribute(name), part.getAttribute(name));
        if (part.dataset.part !== 'acts') compare(`${part.dataset.part} hidden`, other.hidden, part.hidden);
      }
    }
    return { differences, states: [...new Set(rows.map((row) => row.dataset.kind))].sort() };
";

async fn the_server_and_the_script_draw_the_same_row(stage: &Stage) {
    stage.plays(json!({
        "1": [{"hold": {"ms": 60_000, "total": 4_000, "every": 200}, "hasMore": true}],
        "2": [{"hasMore": true, "current": 40, "total": 80, "unit": "rows", "nextDelaySeconds": 40, "message": "batch 1"}],
        "3": [[{"fail": {"code": "busy", "message": "The bank is closed.", "retryable": true, "retryAfterSeconds": 60}}]],
        "4": [{"hasMore": false, "current": 9, "total": 9, "unit": "rows", "rows": {"ok": 8, "skipped": 0, "failed": 1}}],
        "5": [{"hasMore": true, "current": 1, "total": 9}, {"hasMore": true, "current": 2, "total": 12, "nextDelaySeconds": 60}],
    })).await;
    let client = stage.client().await;
    stage.sign_in().await;
    let mut last = Value::Null;
    for (play, title) in [
        (1, "holds"),
        (2, "waits for its next batch"),
        (3, "waits for a retry"),
        (4, "has warnings"),
        (5, "was revised"),
    ] {
        last = client.submit(playing(play, title)).await;
    }
    let failed = client
        .submit(
            json!({"action": "reconcile-payments", "params": {"pause": 0}, "record": {"type": "ledger", "id": "7"}}),
        )
        .await;
    for _ in 0..2 {
        client.submit(json!({"action": "rebuild-index", "params": {"pause": 1, "batch": 20}})).await;
    }
    let paused = client.submit(playing(2, "is paused")).await;
    let cancelled = client.submit(playing(2, "is cancelled")).await;
    for (task, ask, state) in [(&paused, "pause", "paused"), (&cancelled, "cancel", "cancelled")] {
        let id = task["id"].as_str().unwrap();
        client.until(id, LIMIT, |task| task["progress"]["current"] == 40 && task["waiting"]["reason"] == "delay").await;
        client.post(&format!("/api/v1/tasks/{id}/{ask}"), &json!({})).await;
        client.until(id, LIMIT, |task| task["state"] == state).await;
    }
    client.until(failed["id"].as_str().unwrap(), LIMIT, |task| task["state"] == "failed").await;
    client.until(last["id"].as_str().unwrap(), LIMIT, |task| task["progress"]["current"] == 2).await;
    for language in ["en", "zh-CN"] {
        stage.speak(language).await;
        let told = stage.ask(DIFFERENCES).await;
        assert_eq!(told["differences"], json!([]), "{language}");
        let kinds = ["blocked", "cancelled", "failed", "partial", "paused", "retrying", "running"];
        assert_eq!(told["states"], json!(kinds), "{language}");
        stage.open("/notifications").await;
        let message = format!("{}?.querySelector('[data-part=message]')", stage.list_row(&last));
        stage.until(LIMIT, &message).await;
        let said = stage.eval(&format!("{message}.textContent")).await;
        let revised = if language == "en" { "total revised 9 to 12" } else { "总数由 9 修正为 12" };
        assert_eq!(said, revised, "a revised total is still said after a reload");
    }
}
