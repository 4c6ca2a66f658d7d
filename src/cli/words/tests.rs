//! What a terminal says of a task, in both languages.

use super::*;
use serde_json::{Value, json};

fn task(value: Value) -> TaskLine {
    serde_json::from_value(value).unwrap()
}

/// In English and in Chinese.
fn both(value: Value) -> [String; 2] {
    let task = task(value);
    ["C.UTF-8", "zh_CN.UTF-8"].map(|tag| {
        let says = Says::of(tag, "Asia/Shanghai");
        task.end().map_or_else(|| says.line(&task), |end| says.ended(&task, end))
    })
}

fn said(value: Value) -> String {
    let [english, _] = both(value);
    english
}

#[test]
fn a_known_total_has_percent_counts_and_what_is_left() {
    let eta = json!({"state": "estimated", "finishAt": "2026-11-29T15:42:10.000Z", "remainingSeconds": 230, "confidence": "high"});
    let progress =
        json!({"current": 1200, "total": 5000, "unit": "rows", "percent": 24, "message": "batch 12\nmore", "eta": eta});
    assert_eq!(
        both(json!({"state": "running", "progress": progress})),
        [
            "Running · 24% · 1,200 / 5,000 rows · about 4 min left · finishes 2026-11-29 23:42:10 · batch 12",
            "后台处理中 · 24% · 1,200 / 5,000 行 · 约剩 4 分钟 · 预计完成 2026-11-29 23:42:10 · batch 12",
        ]
    );
}

#[test]
fn an_unknown_total_has_a_count_and_no_percent_sign() {
    let progress =
        json!({"current": 1250, "total": null, "unit": "rows", "percent": null, "eta": {"state": "unknown"}});
    assert_eq!(
        both(json!({"state": "running", "progress": progress})),
        ["Running · 1,250 rows · estimating", "后台处理中 · 1,250 行 · 估算中"]
    );
    let over = json!({"current": 1200, "total": 1000, "unit": "rows", "percent": 99, "eta": {"state": "none"}});
    assert_eq!(said(json!({"state": "running", "progress": over})), "Running · 99% · 1,200 of 1,000 rows expected");
}

#[test]
fn the_time_left_is_rounded_the_more_the_longer_it_is_and_never_negative() {
    let says = Says::of("en", "UTC");
    for (seconds, confidence, words) in [
        (5, "high", "less than a minute left"),
        (60, "high", "about 1 min left"),
        (599, "high", "about 10 min left"),
        (840, "high", "about 15 min left"),
        (5_000, "high", "about 85 min left"),
        (8_000, "high", "about 2 h left"),
        (9_200, "high", "about 2.5 h left"),
        (120, "low", "roughly 2 min left"),
        (0, "high", "taking longer than estimated"),
        (-3, "high", "taking longer than estimated"),
    ] {
        let eta = json!({"state": "estimated", "remainingSeconds": seconds, "confidence": confidence});
        assert_eq!(says.left(&serde_json::from_value(eta).unwrap()), words, "{seconds}");
    }
    assert_eq!(says.left(&EtaLine::default()), "");
}

#[test]
fn a_wait_says_why() {
    let at = "2026-11-29T15:42:10.000Z";
    let gap = |until: &str| {
        json!({"state": "running", "progress": {"updatedAt": "2026-11-29T15:42:00.000Z"},
            "waiting": {"reason": "delay", "until": until}})
    };
    for (value, words) in [
        (json!({"state": "queued"}), "Queued · starting"),
        (json!({"state": "queued", "waiting": {"reason": "capacity", "position": 3}}), "Queued · 3rd in line"),
        (
            json!({"state": "queued", "attempt": 2, "maxAttempts": 3, "error": {"message": "No answer."}, "waiting": {"reason": "retry", "until": at}}),
            "Waiting for retry · next try at 2026-11-29 23:42:10 · attempt 2 of 3 · No answer.",
        ),
        (
            json!({"state": "queued", "waiting": {"reason": "scheduled", "until": at}}),
            "Queued · starts at 2026-11-29 23:42:10",
        ),
        (json!({"state": "blocked", "waiting": {"reason": "concurrency"}}), "Waiting · for another task of its group"),
        (gap(at), "Running · next batch at 2026-11-29 23:42:10"),
        (gap("2026-11-29T15:42:01.000Z"), "Running"),
        (json!({"state": "cancelling"}), "Cancelling · until the current batch ends"),
        (json!({"state": "unknown"}), "Unknown state · only a newer version of this service knows it"),
        (json!({"state": "zz_new"}), "Unknown state"),
    ] {
        assert_eq!(said(value), words);
    }
}

#[test]
fn an_end_tells_the_true_numbers_and_the_reason() {
    let progress = json!({"current": 5000, "total": 5000, "unit": "rows", "percent": 100});
    let times = ("2026-11-29T15:00:00.000Z", "2026-11-29T15:00:48.100Z");
    let good = json!({"state": "succeeded", "progress": progress, "startedAt": times.0, "finishedAt": times.1,
        "rows": {"ok": 4998, "failed": 2}});
    assert_eq!(
        both(good),
        [
            "Finished with warnings · 5,000 rows in 48 s · 4,998 done, 2 failed",
            "完成，有警告 · 5,000 行，用时 48 秒 · 成功 4,998，失败 2",
        ]
    );
    let progress = json!({"current": 1250, "total": 5000, "unit": "rows", "percent": 25});
    let error = json!({"kind": "handler", "code": "no-column", "message": "File has no column \u{1b}[1memail."});
    assert_eq!(
        both(json!({"state": "failed", "progress": progress, "error": error})),
        [
            "Failed · File has no column email. (no-column) · stopped at 1,250 of 5,000 (25%)",
            "失败 · File has no column email. (no-column) · 停在 1,250 / 5,000（25%）",
        ]
    );
    assert_eq!(
        said(json!({"state": "cancelled", "progress": progress})),
        "Cancelled · stopped at 1,250 of 5,000 (25%)"
    );
    let whole = json!({"current": 5000, "total": 5000, "percent": 99});
    assert_eq!(
        said(json!({"state": "failed", "progress": whole})),
        "Failed · failed while finishing, at 5,000 of 5,000 (99%)"
    );
    assert_eq!(said(json!({"state": "succeeded"})), "Succeeded");
}

#[test]
fn a_log_line_has_its_time_its_level_and_no_control_codes() {
    let line = LogLine {
        seq: 1,
        at: "2026-11-29T15:42:10.123Z".into(),
        level: "warn".into(),
        message: "a\u{1b}[2Jb\nc".into(),
    };
    let says = Says::of("en", "UTC");
    assert_eq!(says.log(&line), format!("2026-11-29 15:42:10 W ab\n{}c", " ".repeat(22)));
}
