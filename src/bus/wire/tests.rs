//! The messages between nodes: as they are written, and what a version does with what it does not know.

use super::*;
use crate::core::task::Task;
use serde_json::{Value, json};

const ID: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

const TASK: &str = r#"{
    "id": "01890a5d-ac96-774b-bcce-b302099a8057", "tenant": "t", "action": "import", "title": "a title",
    "owner": "alice", "started_by": "alice", "state": "running", "revision": 7, "head": 12,
    "record": {"type": "order", "id": "42"}, "idempotency_key": null, "suppressed": 0, "superseded": false,
    "concurrency": {"key": "k", "limit": 1, "hold": "task"}, "slot_held": true, "gated": false, "priority": 0,
    "created_at": "2026-11-29T12:00:00.000Z", "run_at": "2026-11-29T12:00:00.000Z",
    "due_at": "2026-11-29T12:00:00.000Z", "started_at": "2026-11-29T12:00:01.000Z", "finished_at": null,
    "updated_at": "2026-11-29T12:00:02.000Z", "attempts": 0, "max_attempts": 3, "failures": 0, "chunks": 2,
    "idle_chunks": 0, "checkpoint_hash": -5, "reclaims": 0, "takeovers": 0, "fencing_token": 3, "lease_owner": "n1",
    "lease_until": "2026-11-29T12:00:32.000Z", "timeout_ms": null, "deadline": null, "wait": null, "blocked_by": null,
    "stop": {"actor": "bob", "reason": null, "at": "2026-11-29T12:00:02.000Z"},
    "progress": {"current": 5, "total": 10, "unit": "rows", "phase": null, "message": null, "updatedAt": null},
    "estimator": {}, "rows": {"ok": 5, "skipped": 0, "failed": 0}, "warnings": [], "error": null, "has_result": false,
    "retry_of": null, "seen_at": null, "read_at": null, "archived_at": null, "event_count": 4
}"#;

fn task_json(title: &str) -> Value {
    let mut task: Value = serde_json::from_str(TASK).unwrap();
    task["title"] = json!(title);
    task
}

fn task(title: &str) -> Change {
    let task: Task = serde_json::from_value(task_json(title)).unwrap();
    Change::Task(Box::new(task))
}

fn gone() -> Change {
    let json = json!({"gone": {"tenant": "t", "owner": "alice", "id": ID, "revision": 8, "head": 13}});
    serde_json::from_value(json).unwrap()
}

fn sent(signal: &Signal) -> Vec<String> {
    messages("n1", &events(signal))
}

/// A message with these events of another node.
fn message(events: &Value) -> Vec<u8> {
    json!({"node": "n1", "events": events}).to_string().into_bytes()
}

fn changes(heard: &Heard) -> Vec<&Change> {
    let each = heard.signals.iter().filter_map(|signal| match signal {
        Signal::Changes(changes) => Some(changes.iter()),
        _ => None,
    });
    each.flatten().collect()
}

#[test]
fn what_is_told_arrives_as_it_was() {
    let told = [task("导入"), gone()];
    let text = sent(&Signal::Changes(told.to_vec().into())).concat();
    let heard = hear("n2", text.as_bytes());
    assert_eq!(changes(&heard), told.iter().collect::<Vec<_>>());
    let marked = Signal::Marked { tenant: "t".into(), owner: "\"quoted\"\n".into() };
    let heard = hear("n2", sent(&marked)[0].as_bytes());
    assert!(matches!(&heard.signals[..], [Signal::Marked { owner, .. }] if owner == "\"quoted\"\n"));
    let heard = hear("n2", sent(&Signal::Missed)[0].as_bytes());
    assert!(matches!(heard.signals[..], [Signal::Missed]));
}

/// Other versions read these: a field may come, none may go or change its meaning.
#[test]
fn the_messages_are_written_as_they_always_were() {
    let task_id: TaskId = ID.parse().unwrap();
    for (signal, expected) in [
        (
            Signal::LogGrew { task: task_id, newest: 9 },
            format!(r#"{{"node":"n1","events":[{{"e":"log","task":"{ID}","newest":9}}]}}"#),
        ),
        (
            Signal::Marked { tenant: "t".into(), owner: "alice".into() },
            r#"{"node":"n1","events":[{"e":"marked","tenant":"t","owner":"alice"}]}"#.into(),
        ),
        (Signal::Missed, r#"{"node":"n1","events":[{"e":"lost"}]}"#.into()),
        (Signal::Elsewhere, r#"{"node":"n1","events":[{"e":"moved"}]}"#.into()),
    ] {
        assert_eq!(sent(&signal), [expected]);
    }
    assert_eq!(messages("n1", &[beat(4)]), [r#"{"node":"n1","events":[{"e":"beat","n":4}]}"#]);
    let text = &sent(&Signal::Changes(vec![task("x")].into()))[0];
    let read: Value = serde_json::from_str(text).unwrap();
    assert_eq!(read["events"][0]["e"], "change");
    let mut written = read["events"][0]["change"]["task"].clone();
    written["estimator"] = json!({});
    assert_eq!(written, task_json("x"));
}

#[test]
fn a_node_hears_of_its_own_messages_only_that_they_came() {
    let events = [events(&Signal::Changes(vec![gone()].into())), vec![beat(3), beat(2)]].concat();
    let heard = hear("n1", messages("n1", &events)[0].as_bytes());
    assert!(heard.signals.is_empty());
    assert_eq!(heard.beat, Some(3));
    assert_eq!(
        hear("n2", messages("n1", &events)[0].as_bytes()).beat,
        None,
        "nor does it take another's beat for its own"
    );
}

#[test]
fn what_this_version_does_not_know_is_passed_over_and_nothing_else_with_it() {
    let mut strange = task_json("x");
    strange["state"] = json!("zz_new");
    let mut newer = task_json("y");
    newer["a_field"] = json!({"of": "tomorrow"});
    let events = json!([
        {"e": "zz_new", "n": 1}, {"e": 7}, {}, null, 5, [], "x",
        {"e": "change", "change": {"task": strange}},
        {"e": "change", "change": {"zz": 1}},
        {"e": "change", "change": {"task": newer}, "more": true},
        {"e": "log", "task": "no id", "newest": 1},
        {"e": "lost", "since": "yesterday"},
    ]);
    let heard = hear("n2", &message(&events));
    assert_eq!(changes(&heard), [&task("y")]);
    assert_eq!(heard.signals.len(), 2);
    assert!(matches!(heard.signals[1], Signal::Missed));
}

#[test]
fn what_is_no_message_brings_nothing() {
    let deep = "[".repeat(100_000);
    for text in ["", "null", "{}", "[]", "{\"node\":1,\"events\":[]}", "{\"node\":\"n\"}", "1e999", &deep] {
        let heard = hear("n2", text.as_bytes());
        assert!(heard.signals.is_empty() && heard.beat.is_none(), "{text:.40}");
    }
    assert!(hear("n2", &[0xff, 0xfe, 0x00]).signals.is_empty());
    assert!(hear("n2", &message(&json!([{"e": "log", "task": deep, "newest": 1}]))).signals.is_empty());
}

#[test]
fn m10_five_thousand_tasks_with_the_longest_titles_stay_within_the_size_of_a_message() {
    // A title has 200 characters; those of four bytes cost the most.
    let long = "🦀".repeat(200);
    let all: Vec<Change> = (0..5_000).map(|_| task(&long)).collect();
    let texts = sent(&Signal::Changes(all.into()));
    assert!(texts.iter().all(|text| text.len() <= MESSAGE_BYTES + 100), "{:?}", texts.iter().map(String::len).max());
    let arrived: usize = texts.iter().map(|text| changes(&hear("n2", text.as_bytes())).len()).sum();
    assert_eq!(arrived, 5_000);
}

#[test]
fn a_task_that_is_too_large_is_told_of_and_not_told() {
    let heard = hear("n2", sent(&Signal::Changes(vec![task(&"x".repeat(EVENT_BYTES))].into()))[0].as_bytes());
    assert!(matches!(heard.signals[..], [Signal::Elsewhere]));
}
