//! What an answer becomes, shape by shape: the tables that every kind of handler relies on.

use super::*;
use serde_json::json;

#[test]
fn more_with_a_fractional_delay_and_no_checkpoint_keeps_the_old_one() {
    let (outcome, faults) =
        Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": 0.25, "current": 3, "later": 1})).unwrap();
    assert!(faults.is_empty());
    assert!(matches!(outcome, Outcome::More { checkpoint: None, delay_ms: 250, .. }));
}

#[test]
fn an_answer_without_a_known_key_is_a_bad_outcome() {
    for answer in [
        json!(null),
        json!([]),
        json!("x"),
        json!(1),
        json!(true),
        json!({}),
        json!({"hasMore": "yes"}),
        json!({"hasMore": null}),
        json!({"hasMore": 1}),
        json!({"HasMore": true}),
        json!({"code": 1}),
        json!({"BackgroundTask": {"HasMore": true}}),
        json!({"Code": null, "Data": {}}),
        json!({"done": "true"}),
        json!({"done": 1}),
        json!({"Done": true}),
        json!({"fail": "no"}),
        json!([{"hasMore": false}]),
    ] {
        assert!(Outcome::parse(&answer).is_err(), "{answer}");
    }
}

#[test]
fn an_outcome_that_is_built_is_the_one_that_is_read() {
    for (built, read) in [
        (
            Outcome::more(json!({"row": 9})).counted(9, Some(20), "rows"),
            json!({"hasMore": true, "checkpoint": {"row": 9}, "current": 9, "total": 20, "unit": "rows"}),
        ),
        (
            Outcome::done(json!({"written": 20})).counted(20, Some(20), "rows"),
            json!({"hasMore": false, "result": {"written": 20}, "current": 20, "total": 20, "unit": "rows"}),
        ),
        (Outcome::done(Value::Null), json!({"hasMore": false})),
    ] {
        assert_eq!(Outcome::parse(&read), Ok((built, Vec::new())));
    }
    let failed = Outcome::Fail(Failure::new(ErrorKind::Handler, "x", "no"));
    assert_eq!(failed.clone().counted(9, None, "rows"), failed);
}

#[test]
fn a_delay_outside_a_day_is_a_bad_outcome_that_names_field_and_limit() {
    for delay in [json!(-1), json!(86_401), json!("5"), json!(f64::MAX)] {
        let e = Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": delay})).unwrap_err();
        assert!(e.0.contains("nextDelaySeconds") && e.0.contains("86,400"), "{e}");
    }
    assert!(Outcome::parse(&json!({"hasMore": true, "nextDelaySeconds": 86_400})).is_ok());
}

#[test]
fn a_checkpoint_is_taken_at_its_cap_and_refused_one_above() {
    let at = "x".repeat(limits::CHECKPOINT_BYTES - 2);
    assert!(Outcome::parse(&json!({"hasMore": true, "checkpoint": at})).is_ok());
    let above = "x".repeat(limits::CHECKPOINT_BYTES - 1);
    let e = Outcome::parse(&json!({"hasMore": true, "checkpoint": above})).unwrap_err();
    assert!(e.0.contains("262145") && e.0.contains("262144"), "{e}");
}

#[test]
fn a_bad_progress_number_is_dropped_and_named_but_the_work_counts() {
    let (outcome, faults) = Outcome::parse(&json!({"hasMore": true, "current": "7", "checkpoint": {"n": 1}})).unwrap();
    assert_eq!(faults.len(), 1);
    assert!(matches!(outcome, Outcome::More { checkpoint: Some(_), .. }));
}

#[test]
fn an_error_text_is_cut_between_characters_and_marked() {
    let long = format!("a{}", "界".repeat(65_535 / 3));
    let failure = Failure::new(ErrorKind::Handler, "x", long);
    assert_eq!(failure.message.chars().count(), limits::MESSAGE_CHARS);
    assert!(failure.message.ends_with('…'));
}

#[test]
fn the_shape_is_told_by_its_key_and_a_null_is_no_key() {
    let read = |answer: Value| Outcome::parse(&answer).unwrap().0;
    assert!(matches!(read(json!({"fail": {"code": "x"}, "hasMore": true, "Code": 1, "done": true})), Outcome::Fail(_)));
    assert!(matches!(read(json!({"hasMore": true, "Code": 0, "done": true})), Outcome::More { .. }));
    assert!(matches!(read(json!({"Code": 1, "done": false})), Outcome::Done { .. }));
    assert!(matches!(read(json!({"fail": null, "hasMore": false})), Outcome::Done { .. }));
    assert!(matches!(read(json!({"fail": null, "hasMore": null, "Code": null, "done": false})), Outcome::More { .. }));
}

/// What an answer becomes, written in the canonical shape; its own faults aside.
fn same(answer: &Value, canonical: &Value) {
    let (read, faults) = Outcome::parse(answer).unwrap_or_else(|e| panic!("{answer}: {e}"));
    assert_eq!(faults, Vec::new(), "{answer}");
    assert_eq!(read, Outcome::parse(canonical).unwrap().0, "{answer}");
}

#[test]
fn an_answer_with_a_code_becomes_the_same_outcome_wherever_its_background_task_stands() {
    let task = json!({"HasMore": true, "Checkpoint": {"LastId": 9}, "Current": 9, "Total": 20, "NextDelaySeconds": 3,
        "Msg": "9 of 20"});
    let more = json!({"hasMore": true, "checkpoint": {"LastId": 9}, "current": 9, "total": 20, "nextDelaySeconds": 3,
        "message": "9 of 20"});
    for answer in [
        json!({"Code": 1, "Msg": "ok", "Data": {"BackgroundTask": task}}),
        json!({"Code": 1, "BackgroundTask": task}),
        json!({"Code": 1, "Data": null, "DataAppend": {"BackgroundTask": task}}),
        json!({"Code": "1", "Data": [1, 2], "DataAppend": {"BackgroundTask": task}}),
        json!({"Code": 1.0, "BackgroundTask": task, "Data": {"BackgroundTask": {"HasMore": false}}}),
    ] {
        same(&answer, &more);
    }
}

#[test]
fn an_answer_with_code_1_is_read_field_for_field() {
    let in_data = |task: Value| json!({"Code": 1, "Data": {"BackgroundTask": task}});
    for (answer, canonical) in [
        (json!({"Code": 1}), json!({"hasMore": false})),
        (json!({"Code": 1, "Data": null, "Msg": ""}), json!({"hasMore": false})),
        (
            json!({"Code": 1, "Data": {"Rows": 3}, "Msg": "done"}),
            json!({"hasMore": false, "result": {"Rows": 3}, "message": "done"}),
        ),
        (json!({"Code": 1, "Data": [1]}), json!({"hasMore": false, "result": [1]})),
        (in_data(json!({"HasMore": false, "Checkpoint": 1, "Current": 7})), json!({"hasMore": false, "current": 7})),
        (
            json!({"Code": 1, "Data": {"BackgroundTask": {"HasMore": false, "Msg": "all"}, "Rows": 3}}),
            json!({"hasMore": false, "result": {"Rows": 3}, "message": "all"}),
        ),
        (in_data(json!({"HasMore": true})), json!({"hasMore": true})),
        (in_data(json!({"HasMore": "True", "Checkpoint": null})), json!({"hasMore": true})),
        (in_data(json!({"HasMore": 1, "Checkpoint": "a"})), json!({"hasMore": true, "checkpoint": "a"})),
        (in_data(json!({"HasMore": "false"})), json!({"hasMore": false})),
        (in_data(json!({"HasMore": true, "NextDelaySeconds": "2"})), json!({"hasMore": true, "nextDelaySeconds": 2})),
        (in_data(json!({"HasMore": true, "NextDelaySeconds": 0.5})), json!({"hasMore": true, "nextDelaySeconds": 0.5})),
        (
            in_data(json!({"HasMore": true, "Current": "5", "Total": "10"})),
            json!({"hasMore": true, "current": 5, "total": 10}),
        ),
        (in_data(json!({"HasMore": true, "Current": 5, "Total": null})), json!({"hasMore": true, "current": 5})),
        (in_data(json!({"HasMore": true, "Current": 5, "Progress": 90})), json!({"hasMore": true, "current": 5})),
        (
            in_data(json!({"HasMore": true, "Progress": 30})),
            json!({"hasMore": true, "current": 30, "total": 100, "unit": "percent"}),
        ),
        (
            json!({"Code": 1, "Msg": "outside", "Data": {"BackgroundTask": {"HasMore": true, "Log": ["a", "b"]}}}),
            json!({"hasMore": true, "message": "outside", "log": ["a", "b"]}),
        ),
    ] {
        same(&answer, &canonical);
    }
}

#[test]
fn any_other_code_is_a_failure_and_its_has_more_is_not_honoured() {
    let task = json!({"HasMore": true, "Checkpoint": {"n": 1}, "Current": 5});
    for code in [json!(0), json!(2), json!(-1), json!(1.5), json!("0"), json!("one"), json!(true), json!(""), json!({})]
    {
        let answer = json!({"Code": code, "Msg": "The period is closed", "Data": {"BackgroundTask": task}});
        let (Outcome::Fail(failure), _) = Outcome::parse(&answer).unwrap() else { panic!("{answer}") };
        assert_eq!((failure.message.as_str(), failure.retryable), ("The period is closed", false), "{answer}");
        assert_eq!(failure.kind, ErrorKind::Permanent);
    }
    let failed = |answer: Value| match Outcome::parse(&answer).unwrap().0 {
        Outcome::Fail(failure) => failure,
        other => panic!("{answer}: {other:?}"),
    };
    assert_eq!(failed(json!({"Code": 0})).code, "code-0");
    assert!(failed(json!({"Code": 0})).message.contains("Code 0"));
    assert!(failed(json!({"Code": 0, "Data": {"Retryable": true}})).retryable);
    assert_eq!(failed(json!({"Code": 0, "Retryable": true})).kind, ErrorKind::Handler);
    let limit = json!({"Code": 0, "Msg": "x", "DataAppend": {"V8Limit": {"Code": "statements"}}});
    assert_eq!(failed(limit).code, "statements");
    assert_eq!(failed(json!({"Code": 0, "Data": {"Row": 7}})).detail.as_deref(), Some("{\"Row\":7}"));
}

#[test]
fn a_step_is_read_field_for_field() {
    for (answer, canonical) in [
        (json!({"done": true}), json!({"hasMore": false})),
        (json!({"done": true, "result": {"n": 1}, "cursor": 9}), json!({"hasMore": false, "result": {"n": 1}})),
        (
            json!({"done": true, "progress": 100, "message": "all"}),
            json!({"hasMore": false, "current": 100, "total": 100, "unit": "percent", "message": "all"}),
        ),
        (json!({"done": false}), json!({"hasMore": true})),
        (json!({"done": false, "cursor": null, "delayMS": null, "progress": null}), json!({"hasMore": true})),
        (
            json!({"done": false, "cursor": "page-3", "delayMS": 250}),
            json!({"hasMore": true, "checkpoint": "page-3", "nextDelaySeconds": 0.25}),
        ),
        (json!({"done": false, "delayMS": 86_400_000}), json!({"hasMore": true, "nextDelaySeconds": 86_400})),
        (
            json!({"done": false, "progress": 33.9}),
            json!({"hasMore": true, "current": 33, "total": 100, "unit": "percent"}),
        ),
        (json!({"done": false, "log": "one"}), json!({"hasMore": true, "log": ["one"]})),
    ] {
        same(&answer, &canonical);
    }
}

#[test]
fn what_drives_the_work_is_never_guessed_and_the_field_is_named_as_it_was_written() {
    let in_data = |task: Value| json!({"Code": 1, "Data": {"BackgroundTask": task}});
    for (answer, field) in [
        (in_data(json!({"HasMore": "perhaps"})), "HasMore"),
        (in_data(json!({"HasMore": {}})), "HasMore"),
        (in_data(json!({"HasMore": true, "NextDelaySeconds": -1})), "NextDelaySeconds"),
        (in_data(json!({"HasMore": true, "NextDelaySeconds": 86_401})), "NextDelaySeconds"),
        (in_data(json!({"HasMore": true, "NextDelaySeconds": "soon"})), "NextDelaySeconds"),
        (json!({"done": false, "delayMS": 86_400_001}), "delayMS"),
        (json!({"done": false, "delayMS": "1"}), "delayMS"),
        (json!({"done": null, "Code": null}), "outcome"),
        (json!({"Code": 1, "Data": "x".repeat(limits::RESULT_BYTES)}), "result"),
        (json!({"done": false, "cursor": "x".repeat(limits::CHECKPOINT_BYTES)}), "checkpoint"),
    ] {
        let fault = Outcome::parse(&answer).unwrap_err().0;
        assert!(fault.starts_with(field), "{field}: {fault}");
    }
}

#[test]
fn a_progress_number_of_any_shape_that_is_none_is_dropped_and_named_and_the_work_counts() {
    for (answer, field) in [
        (json!({"hasMore": true, "current": -1}), "current"),
        (json!({"Code": 1, "BackgroundTask": {"HasMore": true, "Current": -1}}), "Current"),
        (json!({"Code": 1, "BackgroundTask": {"HasMore": true, "Total": "many"}}), "Total"),
        (json!({"done": false, "progress": "half"}), "progress"),
        (json!({"done": false, "progress": -5}), "progress"),
    ] {
        let (outcome, faults) = Outcome::parse(&answer).unwrap();
        assert_eq!(faults.iter().map(|f| f.field).collect::<Vec<_>>(), [field], "{answer}");
        assert!(matches!(outcome, Outcome::More { told, .. } if told.report == Reported::default()), "{answer}");
    }
}

#[test]
fn children_and_the_wait_for_them_stand_beside_any_shape() {
    let submit = json!([{"action": "part", "params": {"n": 1}, "weight": 3}]);
    for more in [json!({"hasMore": true}), json!({"done": false})] {
        let mut said = more.clone();
        said["submit"] = submit.clone();
        said["wait"] = json!({"children": true, "onFailure": "collect"});
        let (outcome, _) = Outcome::parse(&said).unwrap();
        let Outcome::More { told, .. } = outcome else { panic!("{said}") };
        assert_eq!((told.submit.len(), told.wait), (1, Some(OnFailure::Collect)), "{said}");
    }
    let waits = |wait: Value| {
        let (outcome, _) = Outcome::parse(&json!({"hasMore": true, "wait": wait}))?;
        let Outcome::More { told, .. } = outcome else { panic!() };
        Ok::<_, BadOutcome>(told.wait)
    };
    assert_eq!(waits(json!({"children": true})), Ok(Some(OnFailure::Fail)));
    assert_eq!(waits(json!({"children": false})), Ok(None));
    assert_eq!(waits(Value::Null), Ok(None));
    for half in [json!(true), json!({}), json!({"children": "yes"}), json!({"children": true, "onFailure": "stop"})] {
        assert!(waits(half.clone()).is_err(), "{half}");
    }
    let ends = Outcome::parse(&json!({"hasMore": false, "wait": {"children": true}}));
    assert!(ends.is_err(), "an end waits for nothing");
}

#[test]
fn a_chunk_may_have_a_thousand_children_and_not_one_more() {
    let children = |count| json!({"hasMore": false, "submit": vec![json!({"action": "part"}); count]});
    assert!(Outcome::parse(&children(CHILDREN_PER_CHUNK)).is_ok());
    let fault = Outcome::parse(&children(CHILDREN_PER_CHUNK + 1)).unwrap_err();
    assert!(fault.0.contains("1001") && fault.0.contains("1000"), "{fault}");
}
