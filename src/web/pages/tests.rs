//! The pages as a whole: what they say in each state, and that hostile text stays text.

use super::buttons::{ButtonsPage, Refused};
use super::children::Newest;
use super::error::ErrorPage;
use super::login::LoginPage;
use super::notifications::{Filter, NotificationsPage, Unread, chips, in_groups, kept};
use super::record::RecordPage;
use super::row::Row;
use super::shell::Shell;
use super::task::{Beside, TaskPage};
use super::when::Watch;
use super::words::Words;
use crate::core::action::{Action, CancelRight, HandlerRef, Localized};
use crate::core::budget::Budgets;
use crate::core::eta::{Basis, Confidence, Eta, EtaState};
use crate::core::ids::{FencingToken, Revision, TaskId};
use crate::core::principal::{Principal, Role, Scope};
use crate::core::retention::Keep;
use crate::core::retry::RetryPolicy;
use crate::core::task::{ErrorKind, FailedAttempt, RecordRef, Rows, State, TaskError, TimelineEvent, WaitReason};
use crate::core::time::Millis;
use crate::core::view::{
    ArtifactView, ErrorView, ProgressView, RecordView, StopView, TaskDetail, TaskSummary, Waiting,
};
use crate::store::logs::{Level, LogLine};
use askama::Template;
use serde_json::json;
use std::collections::{BTreeMap, HashMap};

mod fold;

const NOW: Millis = Millis(1_795_968_000_000);
const KEEP: Keep = Keep { succeeded_ms: 86_400_000, failed_ms: 90 * 86_400_000, cancelled_ms: 129_600_000, logs_ms: 0 };
const HOSTILE: &str = "<img src=x onerror=alert(1)></script><svg onload=alert(2)>\"'";

fn shell(lang: &str) -> Shell {
    let w = Words::of(lang);
    Shell {
        w,
        watch: Watch::new("UTC", NOW, w),
        chosen_zone: None,
        viewer: Some(Principal {
            tenant: "default".into(),
            user: "user".into(),
            role: Role::Operator,
            scopes: Scope::default_for(Role::Operator),
        }),
        csrf: "token".into(),
        demo: true,
        here: "/notifications".into(),
    }
}

fn task(title: &str, state: State) -> TaskSummary {
    TaskSummary {
        id: TaskId::new(),
        tenant: "default".into(),
        action: "import-customers".into(),
        title: title.into(),
        owner: "user".into(),
        started_by: "user".into(),
        state,
        revision: Revision(3),
        record: None,
        idempotency_key: None,
        concurrency_key: None,
        priority: 0,
        progress: ProgressView {
            current: 0,
            total: None,
            unit: Some("rows".into()),
            phase: None,
            message: None,
            percent: None,
            revised_from: None,
            rate_per_second: None,
            updated_at: None,
            eta: Eta::default(),
        },
        waiting: None,
        attempt: 1,
        max_attempts: 3,
        chunks: 0,
        reclaims: 0,
        takeovers: 0,
        suppressed: 0,
        fencing_token: FencingToken(1),
        deadline: None,
        rows: Rows::default(),
        warnings: Vec::new(),
        error: None,
        has_result: false,
        artifacts: Vec::new(),
        schedule: None,
        parent: None,
        retry_of: None,
        can: Vec::new(),
        stop: None,
        seen: true,
        read: true,
        archived: false,
        created_at: NOW.plus(-90_000),
        run_at: NOW.plus(-90_000),
        started_at: Some(NOW.plus(-80_000)).filter(|_| !matches!(state, State::Queued | State::Blocked)),
        finished_at: state.is_final().then(|| NOW.plus(-32_000)),
        updated_at: NOW.plus(-1_000),
        lease_owner: None,
        lease_until: None,
        silent_since: None,
    }
}

fn at(mut task: TaskSummary, current: i64, total: Option<i64>, percent: Option<u8>) -> TaskSummary {
    task.progress.current = current;
    task.progress.total = total;
    task.progress.percent = percent;
    task.progress.updated_at = Some(NOW.plus(-1_000));
    task
}

fn failed(message: &str) -> TaskSummary {
    let mut task = at(task("Send invoices", State::Failed), 1_250, Some(5_000), Some(25));
    task.error = Some(ErrorView(TaskError {
        kind: ErrorKind::Permanent,
        code: "mail-refused".into(),
        message: message.into(),
        detail: None,
        retryable: true,
        at: NOW,
    }));
    task.can = vec!["resume", "retry", "delete"];
    task.read = false;
    task
}

fn eta(mut task: TaskSummary, seconds: i64, confidence: Confidence) -> TaskSummary {
    task.progress.eta = Eta {
        state: EtaState::Estimated,
        finish_at: Some(NOW.plus(seconds * 1000)),
        remaining_seconds: Some(seconds),
        low_seconds: Some(seconds),
        high_seconds: Some(seconds),
        confidence: Some(confidence),
        basis: Some(Basis::Measured),
    };
    task
}

fn waits(mut task: TaskSummary, reason: WaitReason, until: Option<i64>, position: Option<i64>) -> TaskSummary {
    let until = until.map(|ms| NOW.plus(ms));
    task.waiting = Some(Waiting { reason, until, blocked_by: None, position, open: None });
    task
}

fn html(shell: &Shell, task: &TaskSummary) -> String {
    let groups = in_groups(shell, std::slice::from_ref(task), false);
    list(shell, Filter::default(), groups).render().unwrap()
}

fn list<'a>(page: &'a Shell, filter: Filter, groups: Vec<super::notifications::RowGroup<'a>>) -> NotificationsPage<'a> {
    let counts = BTreeMap::from([(State::Running, 2), (State::Failed, 1_204)]);
    NotificationsPage {
        page,
        chips: chips(page, &filter, &counts),
        filter,
        actions: vec![("import-customers".into(), "Import customers".into())],
        may_see_all: true,
        groups,
        first: true,
        next: Some("abc".into()),
        unread: Unread { count: 3, beyond: 2, up_to: 7, filter: "{}".into() },
        list_json: super::shell::script_json(&json!({"items": []})),
        mark_read: page.w.count("list.mark_read", 3),
        updated: page.watch.at(NOW),
        kept: kept(page, &KEEP),
    }
}

/// The visible text of a row, parts joined by single spaces.
fn text(html: &str) -> String {
    let row = html.split("<article").nth(1).and_then(|rest| rest.split("</article>").next()).unwrap_or_default();
    let mut text = String::new();
    let mut inside = true;
    for c in row.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn says(lang: &str, task: &TaskSummary) -> String {
    text(&html(&shell(lang), task))
}

#[test]
fn each_state_says_its_word_its_figures_and_its_time() {
    let running = at(task("Import", State::Running), 1_200, Some(5_000), Some(24));
    let cases = [
        (
            waits(task("Import", State::Queued), WaitReason::Capacity, None, Some(3)),
            "Import Queued 3rd in line created 2026-11-29 15:58:30",
        ),
        (task("Import", State::Blocked), "Import Waiting for another task of its group created 2026-11-29 15:58:30"),
        (
            eta(running.clone(), 245, Confidence::High),
            "Import 1,200 / 5,000 rows 24% Running about 4 min left finishes 2026-11-29 16:04:05",
        ),
        (
            eta(running.clone(), -3, Confidence::High),
            "Import 1,200 / 5,000 rows 24% Running taking longer than estimated",
        ),
        (
            eta(running.clone(), 30, Confidence::Low),
            "Import 1,200 / 5,000 rows 24% Running less than a minute left finishes 2026-11-29 16:00:30",
        ),
        (
            waits(running.clone(), WaitReason::Retry, Some(5_000), None),
            "Import 1,200 / 5,000 rows 24% Waiting for retry attempt 1 of 3 next try at 2026-11-29 16:00:05",
        ),
        (
            at(task("Import", State::Paused), 1_250, Some(5_000), Some(25)),
            "Import 1,250 / 5,000 rows 25% Paused stopped at 1,250 of 5,000 (25%) created 2026-11-29 15:58:30",
        ),
        (
            failed("File has no column `email`."),
            "Send invoices 1,250 / 5,000 rows 25% Failed File has no column `email`. stopped at 1,250 of 5,000 (25%) finished 2026-11-29 15:59:28 Resume Retry",
        ),
        (
            at(task("Import", State::Cancelled), 1_250, None, None),
            "Import 1,250 rows Cancelled stopped at 1,250 rows finished 2026-11-29 15:59:28",
        ),
        (
            at(task("Import", State::Succeeded), 5_000, Some(5_000), Some(100)),
            "Import 5,000 / 5,000 rows 100% Succeeded 5,000 rows in 48 s finished 2026-11-29 15:59:28",
        ),
    ];
    for (task, expected) in cases {
        assert_eq!(says("en", &task), expected);
    }
}

#[test]
fn the_same_row_speaks_chinese() {
    let running = eta(at(task("导入客户", State::Running), 1_200, Some(5_000), Some(24)), 245, Confidence::High);
    assert_eq!(
        says("zh-CN", &running),
        "导入客户 1,200 / 5,000 行 24% 后台处理中 约剩 4 分钟 预计完成 2026-11-29 16:04:05"
    );
}

#[test]
fn an_unknown_total_shows_no_percent_sign_anywhere_in_its_row() {
    let mut running = at(task("Sync", State::Running), 1_250, None, None);
    running.progress.eta.state = EtaState::Unknown;
    let page = html(&shell("en"), &running);
    let row = page.split("<article").nth(1).unwrap().split("</article>").next().unwrap();
    assert!(!row.contains('%'), "{row}");
    assert!(row.contains("data-bar=\"moving\"") && !row.contains(" value="), "{row}");
    assert_eq!(says("en", &running), "Sync 1,250 rows Running estimating");
}

#[test]
fn a_planned_gap_keeps_the_bar_moving_and_is_told_when_it_is_long() {
    let running = at(task("Import", State::Running), 1_200, Some(5_000), Some(24));
    let gap = |ms, eta_state| {
        let mut task = waits(running.clone(), WaitReason::Delay, Some(ms), None);
        task.progress.eta.state = eta_state;
        says("en", &task)
    };
    assert!(gap(60_000, EtaState::Estimating).ends_with("Running next batch at 2026-11-29 16:01:00 estimating"));
    assert!(gap(300, EtaState::Estimating).ends_with("Running estimating"));
    let estimated = eta(waits(running, WaitReason::Delay, Some(60_000), None), 245, Confidence::High);
    let both = "Running next batch at 2026-11-29 16:01:00 about 4 min left finishes 2026-11-29 16:04:05";
    assert!(says("en", &estimated).ends_with(both));
}

#[test]
fn another_attempt_a_retry_a_revised_total_and_silence_are_said() {
    let mut running = at(task("Import", State::Running), 1_200, Some(8_000), Some(15));
    running.progress.revised_from = Some(5_000);
    assert!(says("en", &running).ends_with("Running total revised 5,000 to 8,000"));
    (running.attempt, running.progress.revised_from) = (2, None);
    assert!(says("en", &running).ends_with("Running attempt 2 of 3"));
    let first = TaskId::new();
    (running.attempt, running.retry_of) = (1, Some(first));
    assert!(says("en", &running).ends_with(&format!("Running retry of {}", super::row::short_id(&first.to_string()))));
    running.silent_since = Some(NOW.plus(-9_000));
    let row = html(&shell("en"), &running);
    assert!(says("en", &running).ends_with("No signal will be recovered no signal since 2026-11-29 15:59:51"));
    assert!(row.contains("data-bar=\"value\"") && row.contains("data-kind=\"no-signal\""));
}

#[test]
fn the_list_says_how_long_it_keeps_what_has_ended() {
    let said = ["en", "zh-CN"].map(|lang| kept(&shell(lang), &KEEP));
    assert_eq!(said[0], "Ended tasks are kept here: succeeded 1 day, failed 90 days, cancelled 1 d 12 h.");
    assert_eq!(said[1], "任务结束后在此保留：已完成 1 天，失败 90 天，已取消 1 天 12 小时。");
    assert!(html(&shell("en"), &failed("x")).contains(&said[0]));
}

#[test]
fn a_failure_after_the_last_item_is_not_complete() {
    let mut task = at(failed("Disk full"), 5_000, Some(5_000), Some(99));
    task.can.clear();
    let said = says("en", &task);
    assert!(said.contains("failed while finishing, at 5,000 of 5,000 (99%)") && !said.contains("100%"), "{said}");
}

#[test]
fn a_late_answer_to_a_cancel_is_told() {
    let mut cancelling = at(task("Import", State::Cancelling), 10, Some(20), Some(50));
    let mut asked = |ms: i64| {
        cancelling.stop = Some(StopView { actor: "user".into(), reason: None, at: NOW.plus(ms) });
        says("en", &cancelling)
    };
    assert!(asked(-5_000).contains("Cancelling until the current batch ends"));
    assert!(asked(-61_000).contains("Cancelling worker has not confirmed yet"));
}

#[test]
fn buttons_are_drawn_from_can_and_from_nothing_else() {
    for state in State::ALL {
        let mut task = task("Import", state);
        assert!(!html(&shell("en"), &task).contains("data-do="), "{state:?}");
        task.can = vec!["cancel"];
        let page = html(&shell("en"), &task);
        assert_eq!(page.matches("data-do=").count(), 1, "{state:?}");
        assert!(page.contains(&format!("action=\"/tasks/{}/cancel\"", task.id)));
        assert!(page.contains("name=\"csrf\" value=\"token\""));
    }
}

fn hostile_task() -> TaskSummary {
    let mut task = failed(HOSTILE);
    task.title = HOSTILE.into();
    task.owner = HOSTILE.into();
    task.started_by = HOSTILE.into();
    task.action = HOSTILE.into();
    task.warnings = vec![HOSTILE.into()];
    task.progress.message = Some(HOSTILE.into());
    task.progress.unit = Some(HOSTILE.into());
    task.record = Some(RecordView {
        record: RecordRef { kind: HOSTILE.into(), id: HOSTILE.into() },
        url: Some("javascript:alert(1)".into()),
    });
    task.artifacts = vec![ArtifactView {
        id: "x".into(),
        name: HOSTILE.into(),
        size: 1,
        content_type: HOSTILE.into(),
        expires_at: None,
    }];
    task
}

fn action() -> Action {
    Action {
        key: "import-customers".into(),
        title: Localized::plain(HOSTILE),
        group: Localized::plain(HOSTILE),
        description: Localized::plain(HOSTILE),
        handler: HandlerRef::Native("x".into()),
        pack: None,
        params: json!({"type": "object", "required": ["file"], "properties": {
            "file": {"type": "string", "format": "file", "title": HOSTILE, "description": HOSTILE, "default": HOSTILE},
            "mode": {"enum": [HOSTILE]},
        }}),
        record: None,
        roles: vec![Role::User],
        idempotency: None,
        concurrency: None,
        retry: RetryPolicy::default(),
        chunk_timeout_ms: 1,
        timeout_ms: None,
        budgets: Budgets::default(),
        undo_window_ms: 0,
        cancel: CancelRight::Owner,
    }
}

/// Proves: G25.
#[test]
fn hostile_text_stays_text_on_every_page() {
    let shell = shell("en");
    let summary = hostile_task();
    let tasks = [summary.clone()];
    let detail = TaskDetail {
        summary: summary.clone(),
        params: json!({HOSTILE: HOSTILE}),
        result: Some(json!(HOSTILE)),
        checkpoint: Some(json!(HOSTILE)),
    };
    let beside = Beside {
        log: Some(vec![LogLine {
            seq: 1,
            at: NOW,
            level: Level::Error,
            source: "handler".into(),
            chunk: 1,
            message: HOSTILE.into(),
        }]),
        timeline: vec![TimelineEvent {
            task: summary.id,
            seq: 1,
            at: NOW,
            from: None,
            to: State::Failed,
            reason: HOSTILE.into(),
            actor: Some(HOSTILE.into()),
            node: None,
            attempt: 1,
            chunk: 1,
            failure: Some(FailedAttempt {
                kind: ErrorKind::Handler,
                code: HOSTILE.into(),
                message: HOSTILE.into(),
                delay_ms: Some(5_000),
            }),
        }],
        earlier: 3,
        points: Vec::new(),
        children: Newest { items: tasks.to_vec(), more: true },
        note: HOSTILE.into(),
    };
    let action = action();
    let refused = Refused {
        action: action.key.clone(),
        sent: HashMap::from([("file".to_owned(), HOSTILE.to_owned())]),
        errors: vec![("file".to_owned(), HOSTILE.to_owned())],
        note: Some(HOSTILE.to_owned()),
    };
    let filter = Filter { q: HOSTILE.into(), record: HOSTILE.into(), action: HOSTILE.into(), ..Filter::default() };
    let record = RecordRef { kind: HOSTILE.into(), id: HOSTILE.into() };
    let pages = [
        ButtonsPage::new(&shell, &[(&action, Some(48_000))], Some(&refused)).render(),
        list(&shell, filter, in_groups(&shell, &tasks, true)).render(),
        TaskPage::new(&shell, &detail, &beside).render(),
        RecordPage::new(&shell, &record, Some("javascript:alert(1)"), &tasks, Some(HOSTILE.into())).render(),
        LoginPage { page: &shell, refused: Some(HOSTILE.into()), user: HOSTILE, next: HOSTILE }.render(),
        ErrorPage::new(&shell, 409, Some(HOSTILE), Some(HOSTILE.into())).render(),
    ];
    for page in pages {
        let page = page.unwrap();
        assert!(!page.contains("<img") && !page.contains("<svg onload"), "markup came through: {page}");
        assert!(!page.contains("href=\"javascript:"), "a script link came through");
        assert!(
            !page.contains(" style=") && !page.contains("<style") && !page.contains(" onclick"),
            "inline code or style"
        );
        assert!(!page.contains("onerror=alert(1)>\""), "an attribute was left open");
        for script in page.split("<script").skip(1) {
            assert!(
                script.starts_with(" type=\"module\" src=") || script.starts_with(" type=\"application/json\""),
                "{script}"
            );
        }
    }
}

#[test]
fn every_kind_of_row_has_the_parts_that_the_script_patches() {
    let script = include_str!("../../../static/row.js");
    let parts: Vec<&str> = script.split("'data-part': '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
    assert!(parts.len() >= 11, "{parts:?}");
    let shell = shell("en");
    for state in State::ALL {
        let task = task("Import", state);
        let page = html(&shell, &task);
        for part in &parts {
            assert!(page.contains(&format!("data-part=\"{part}\"")), "{state:?} lacks {part}");
        }
    }
}

#[test]
fn a_row_whose_owner_waits_for_a_decision_stands_first() {
    let shell = shell("en");
    let tasks = [
        task("a", State::Succeeded),
        task("b", State::Queued),
        task("c", State::Running),
        failed("x"),
        task("d", State::Paused),
    ];
    let groups: Vec<_> = in_groups(&shell, &tasks, false).iter().map(|g| (g.group.key(), g.entries.len())).collect();
    assert_eq!(groups, [("group.attention", 2), ("group.running", 1), ("group.queued", 1), ("group.today", 1)]);
    let mut read = failed("x");
    read.read = true;
    assert_eq!(Row::new(&read, shell.w, &shell.watch, "").group().key(), "group.today");
}
