//! How a script ends its chunk: with an outcome, with nonsense, or with an error.

use super::{Host, MEMORY, Rig, chunk, eventually, failure, function, result, run};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::chunk::Outcome;
use taskbell::core::task::ErrorKind;
use taskbell::handler::script::check;

#[tokio::test]
async fn what_a_script_returns_is_its_outcome() {
    let rig = Rig::new(1);
    let more = rig
        .run(&function(
            "return { hasMore: true, checkpoint: { row: cx.checkpoint.row + 100 }, current: 1300, total: 5000,
                      nextDelaySeconds: 0.5, log: ['one', 'two'], rows: { ok: 98, skipped: 1, failed: 1 } };",
        ))
        .await
        .unwrap();
    let Outcome::More { checkpoint, delay_ms, told } = more else { panic!("{more:?}") };
    assert_eq!((checkpoint, delay_ms), (Some(json!({"row": 1300})), 500));
    assert_eq!((told.report.current, told.report.total), (Some(1300), Some(Some(5000))));
    assert_eq!((told.log, told.rows.ok), (vec!["one".to_owned(), "two".to_owned()], 98));
    let done = rig.run("export default (task) => ({ hasMore: false, result: task.params.file });").await;
    assert_eq!(result(done), json!("f1"), "a plain function will do as well");
    let failed =
        rig.run(&function("return { fail: { code: 'no-stock', message: 'Sold out', retryable: true } };")).await;
    assert!(
        matches!(failed, Ok(Outcome::Fail(f)) if f.code == "no-stock" && f.retryable && f.kind == ErrorKind::Handler)
    );
}

#[tokio::test]
async fn a_nul_character_in_what_an_outcome_tells_is_replaced_and_costs_nothing() {
    let rig = Rig::new(1);
    let told = rig.run(&function("return { hasMore: true, message: 'a\\0b', log: ['c\\0d'] };")).await.unwrap();
    let Outcome::More { told, .. } = told else { panic!("{told:?}") };
    assert_eq!(told.report.message.flatten().as_deref(), Some("a\u{fffd}b"));
    let failed = rig.run(&function("return { fail: { code: 'odd', message: 'a\\0b', retryable: true } };")).await;
    let Ok(Outcome::Fail(failed)) = failed else { panic!("{failed:?}") };
    assert_eq!((failed.code.as_str(), failed.message.as_str(), failed.retryable), ("odd", "a\u{fffd}b", true));
    let kept = failure(rig.run(&function("return { hasMore: true, checkpoint: { at: 'a\\0b' } };")).await);
    assert!(kept.kind == ErrorKind::BadOutcome && kept.message.contains("checkpoint.at"), "{kept:?}");
}

#[tokio::test]
async fn an_answer_that_is_no_outcome_is_a_bad_outcome() {
    let rig = Rig::new(1);
    for body in [
        "",
        "return null;",
        "return 7;",
        "return 'done';",
        "return [];",
        "return {};",
        "return { hasMore: 'yes' };",
        "return { hasMore: true, nextDelaySeconds: NaN };",
        "return { hasMore: true, checkpoint: { id: 10n } };",
        "return () => {};",
        "const answer = { hasMore: true }; answer.checkpoint = answer; return answer;",
        "return { hasMore: false, result: { toJSON() { throw new Error('no'); } } };",
        "return new Proxy({}, { get(_, key) { if (key !== 'then') throw new Error('no'); } });",
        "let deep = 1; for (let i = 0; i < 500; i++) deep = [deep]; return { hasMore: false, result: deep };",
        "return new Promise(() => {});",
    ] {
        let failure = failure(rig.run(&function(body)).await);
        assert_eq!(
            (failure.kind, failure.code.as_str()),
            (ErrorKind::BadOutcome, "bad-outcome"),
            "{body}: {failure:?}"
        );
        assert!(!failure.retryable && !failure.message.is_empty(), "{body}");
    }
    // The pool may have started one more while its first was not yet ready, and lets it go again.
    eventually("nonsense harms no process", || rig.pool.living_count() == 1).await;
}

#[tokio::test]
async fn an_answer_that_is_too_large_names_its_limit() {
    let rig = Rig::new(1);
    for (body, limit) in [
        ("return { hasMore: false, result: 'x'.repeat(1024 * 1024) };", "1048576"),
        ("return { hasMore: true, checkpoint: 'x'.repeat(256 * 1024) };", "262144"),
    ] {
        let failure = failure(rig.run(&function(body)).await);
        assert!(failure.kind == ErrorKind::BadOutcome && failure.message.contains(limit), "{failure:?}");
    }
}

#[tokio::test]
async fn what_is_thrown_is_a_failure_whose_first_line_is_for_the_user() {
    let rig = Rig::new(1);
    let thrown = failure(rig.run(&function("throw new TypeError('The price is missing\\nrow 17 of 20');")).await);
    assert_eq!((thrown.kind, thrown.code.as_str(), thrown.retryable), (ErrorKind::Handler, "script-error", true));
    assert_eq!(thrown.message, "The price is missing");
    let detail = thrown.detail.unwrap();
    assert!(detail.starts_with("TypeError: The price is missing\nrow 17 of 20\n"), "{detail}");
    assert!(detail.contains("script.js:1"), "the place: {detail}");

    let last = failure(
        rig.run(&function("throw Object.assign(new Error('Closed'), { permanent: true, code: 'period-closed' });"))
            .await,
    );
    assert_eq!((last.kind, last.code.as_str(), last.retryable), (ErrorKind::Permanent, "period-closed", false));

    for (body, message) in [
        ("throw 'just a text';", "just a text"),
        ("throw undefined;", "The script threw an error without a message."),
        ("throw { reason: 7 };", r#"{"reason":7}"#),
        ("throw new Error();", "The script threw an error without a message."),
        ("null.field;", "cannot read property 'field' of null"),
        ("await Promise.reject(new Error('later'));", "later"),
        (
            "throw { get message() { throw 1; }, get stack() { throw 1; }, toJSON() { throw 1; } };",
            "(a value that cannot be shown)",
        ),
        ("throw new Proxy(new Error('veiled'), {});", "veiled"),
    ] {
        let failure = failure(rig.run(&function(body)).await);
        assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::Handler, message), "{body}");
    }
    let early = failure(rig.run("throw new Error('at the top'); export default () => {};").await);
    assert_eq!((early.kind, early.message.as_str()), (ErrorKind::Handler, "at the top"));
}

#[tokio::test]
async fn a_file_that_is_no_script_fails_for_good_with_its_line() {
    let rig = Rig::new(1);
    let wrong = failure(rig.run("export default async function (task, cx) {\n  return { hasMore: false;\n}\n").await);
    assert_eq!((wrong.kind, wrong.code.as_str(), wrong.retryable), (ErrorKind::Permanent, "script-syntax", false));
    assert!(wrong.message.starts_with("script.js:2:"), "{}", wrong.message);
    for text in ["", "export const run = 1;", "export default 7;"] {
        let failure = failure(rig.run(text).await);
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Permanent, "script-no-function"), "{text}");
    }
}

#[tokio::test]
async fn a_file_is_checked_without_being_run() {
    let rig = Rig::new(1);
    let path = rig.path("checked.js");
    for (text, fault) in [
        ("export default () => {}; while (true) {}", None),
        ("export default () => {\n\n  let = ;\n}", Some("checked.js:3:")),
        ("import 'x';", Some("cannot import")),
    ] {
        std::fs::write(&path, text).unwrap();
        match (check(&path), fault) {
            (Ok(()), None) => {}
            (Err(said), Some(fault)) => assert!(said.contains(fault), "{said}"),
            (other, _) => panic!("{text}: {other:?}"),
        }
    }
    std::fs::write(&path, [0xff]).unwrap();
    assert!(check(&path).is_err());
    assert!(check(&rig.path("none.js")).is_err());
}

#[tokio::test]
async fn a_changed_file_is_read_again_and_a_running_chunk_ends_on_its_old_text() {
    let rig = Rig::new(1);
    let host = Arc::new(Host::new());
    let old = function(
        "cx.log('on'); while (!cx.stopRequested()) await cx.sleep(5); return { hasMore: false, result: 'old' };",
    );
    let handler = rig.handler("changing.js", &old, MEMORY, Duration::from_secs(60));
    let (ended, ()) = tokio::join!(run(&handler, &host, chunk()), async {
        super::eventually("it runs", || !host.log().is_empty()).await;
        std::fs::write(rig.path("changing.js"), function("return { hasMore: false, result: 'new' };")).unwrap();
        host.stop.send_replace(true);
    });
    assert_eq!(result(ended), json!("old"));
    assert_eq!(result(run(&handler, &Arc::new(Host::new()), chunk()).await), json!("new"));
    std::fs::remove_file(rig.path("changing.js")).unwrap();
    let gone = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
    assert_eq!((gone.code.as_str(), gone.retryable), ("script-unreadable", true));
}
