//! What each answer means: outcome, failure for good, failure that is tried again, and when.

use super::{AMPLE, SECRET, chunk, handler, run, run_by};
use crate::support::played::{Played, Target};
use serde_json::{Value, json};
use std::time::Duration;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::task::ErrorKind;

async fn answered(play: Played) -> (Result<Outcome, Failure>, Vec<String>) {
    let target = Target::start(move |_, _| play.clone()).await;
    let answer = run(&target, chunk(1, Value::Null)).await;
    assert_eq!(target.seen().len(), 1, "one call for one attempt, whatever comes back");
    answer
}

async fn failed(play: Played) -> Failure {
    answered(play).await.0.unwrap_err()
}

#[tokio::test]
async fn a_200_with_an_outcome_is_it_in_each_shape() {
    let canonical = json!({"hasMore": true, "checkpoint": {"n": 2}, "current": 7, "total": 9, "nextDelaySeconds": 1.5});
    let pascal = json!({"Code": 1, "Data": {"BackgroundTask": {"HasMore": true, "Checkpoint": {"n": 2}, "Current": 7,
        "Total": 9, "NextDelaySeconds": 1.5}}});
    for shape in [canonical, pascal] {
        let (outcome, log) = answered(Played::json(&shape)).await;
        let Ok(Outcome::More { checkpoint, delay_ms, told }) = outcome else { panic!("{shape}: {outcome:?}") };
        assert_eq!((checkpoint, delay_ms), (Some(json!({"n": 2})), 1_500));
        assert_eq!((told.report.current, told.report.total), (Some(7), Some(Some(9))));
        assert_eq!(log, [""; 0]);
    }
    let step = json!({"done": true, "result": {"rows": 3}});
    assert!(matches!(answered(Played::json(&step)).await.0, Ok(Outcome::Done { result: Some(_), .. })));
    let fail = json!({"fail": {"code": "period-closed", "message": "Closed.", "retryable": false}});
    let Ok(Outcome::Fail(failure)) = answered(Played::json(&fail)).await.0 else { panic!("a failure is an outcome") };
    assert_eq!((failure.code.as_str(), failure.retryable), ("period-closed", false));
    let refused = json!({"Code": 0, "Msg": "No stock", "Data": {"BackgroundTask": {"HasMore": true}}});
    assert!(matches!(answered(Played::json(&refused)).await.0, Ok(Outcome::Fail(_))));
}

#[tokio::test]
async fn fractions_are_floored_and_what_is_no_number_is_dropped_with_a_line() {
    let fractions = json!({"hasMore": true, "checkpoint": 1, "current": 7.9, "total": 20.5});
    let (outcome, _) = answered(Played::json(&fractions)).await;
    let Ok(Outcome::More { told, .. }) = outcome else { panic!("{outcome:?}") };
    assert_eq!((told.report.current, told.report.total), (Some(7), Some(Some(20))));
    let (outcome, log) = answered(Played::json(&json!({"hasMore": true, "checkpoint": 1, "current": "many"}))).await;
    assert!(matches!(outcome, Ok(Outcome::More { .. })), "the work counts: {outcome:?}");
    assert!(log.len() == 1 && log[0].starts_with("warn ") && log[0].contains("current"), "{log:?}");
}

#[tokio::test]
async fn a_204_is_done() {
    let (outcome, _) = answered(Played::Bytes(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_vec())).await;
    assert!(matches!(outcome, Ok(Outcome::Done { result: None, .. })), "{outcome:?}");
}

#[tokio::test]
async fn a_200_without_an_outcome_is_a_bad_outcome_for_good() {
    let large = format!("{{\"hasMore\":true,\"x\":\"{}\"}}", "x".repeat(4 << 20));
    for body in ["", "OK", "<html>", "{}", "[]", "null", "{\"hasMore\":\"yes\"}", "{\"hasMore\":true", &large] {
        let failure = failed(Played::answer("200 OK", "content-type: application/json\r\n", body)).await;
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::BadOutcome, "bad-outcome"), "{body:.20}");
        assert!(!failure.retryable);
    }
    let hundred = Played::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\n{".to_vec());
    assert_eq!(failed(hundred).await.kind, ErrorKind::BadOutcome);
    let unsaid =
        Played::Endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n".to_vec(), vec![b'x'; 1 << 16], Duration::ZERO);
    assert_eq!(failed(unsaid).await.kind, ErrorKind::BadOutcome);
    assert_eq!(failed(Played::answer("202 Accepted", "", "")).await.kind, ErrorKind::BadOutcome);
}

#[tokio::test]
async fn redirects_and_refusals_are_for_good_and_others_are_tried_again() {
    for status in [
        "301 Moved",
        "302 Found",
        "304 Not Modified",
        "307 Temporary",
        "400 Bad",
        "401 No",
        "404 None",
        "409 X",
        "422 X",
    ] {
        let failure =
            failed(Played::answer(status, "location: http://127.0.0.1:1/\r\nretry-after: 9\r\n", "why not")).await;
        let told = (failure.kind, failure.retryable, failure.retry_after_ms);
        assert_eq!(told, (ErrorKind::Permanent, false, None), "{status}");
        assert_eq!(failure.code, format!("http-{}", &status[..3]));
        assert!(!failure.message.contains("why not"), "what an application says is for operators");
        assert!(failure.detail.is_some_and(|detail| status.starts_with("304") || detail.contains("why not")));
    }
    for status in ["408 T", "425 T", "429 T", "500 T", "502 T", "503 T", "504 T", "599 T"] {
        let failure = failed(Played::answer(status, "", "{\"hasMore\":false}")).await;
        assert!(failure.kind == ErrorKind::Handler && failure.retryable, "{status}: {failure:?}");
        assert_eq!((failure.code, failure.retry_after_ms), (format!("http-{}", &status[..3]), None));
    }
}

#[tokio::test]
async fn retry_after_is_honoured_in_seconds_and_as_a_date() {
    let later = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(90);
    let date = later.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    for (status, given, least, most) in
        [("429 T", "7".to_owned(), 7_000, 7_000), ("503 T", date, 80_000, 90_000), ("503 T", "soon".into(), -1, -1)]
    {
        let failure = failed(Played::answer(status, &format!("retry-after: {given}\r\n"), "")).await;
        let waits = failure.retry_after_ms.unwrap_or(-1);
        assert!((least..=most).contains(&waits), "{given}: {waits}");
    }
}

#[tokio::test]
async fn what_breaks_off_is_tried_again() {
    for play in [
        Played::Reset,
        Played::Bytes(Vec::new()),
        Played::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 30\r\n\r\n{\"hasMore\":false".to_vec()),
        Played::Bytes(b"nonsense\r\n\r\n".to_vec()),
        Played::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x-more: and more\r\n".repeat(500), Duration::ZERO),
    ] {
        let failure = failed(play.clone()).await;
        assert_eq!((failure.kind, failure.code.as_str()), (ErrorKind::Handler, "http-broken"), "{play:?}: {failure:?}");
        assert!(failure.retryable);
    }
    let (answer, _) = run_by(&handler("http://127.0.0.1:1/run", &[SECRET], AMPLE), chunk(1, Value::Null)).await;
    let failure = answer.unwrap_err();
    assert_eq!((failure.code.as_str(), failure.retryable), ("http-unreachable", true));
}

#[tokio::test]
async fn what_takes_longer_than_a_chunk_may_is_a_timeout() {
    for play in [
        Played::Silence,
        Played::Endless(
            b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{".to_vec(),
            b" ".to_vec(),
            Duration::from_millis(20),
        ),
        Played::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), b"x".to_vec(), Duration::from_millis(20)),
    ] {
        let shown = format!("{play:?}");
        let target = Target::start(move |_, _| play.clone()).await;
        let handler = handler(&target.url("/run"), &[SECRET], Duration::from_millis(300));
        let failure = run_by(&handler, chunk(1, Value::Null)).await.0.unwrap_err();
        assert_eq!(
            (failure.kind, failure.code.as_str(), failure.retryable),
            (ErrorKind::Timeout, "timeout", true),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn an_address_that_may_not_be_called_is_refused_for_good() {
    let target = Target::start(|_, _| Played::json(&json!({"hasMore": false}))).await;
    let mut handler = handler(&target.url("/run"), &[SECRET], AMPLE);
    handler.url.set_host(Some("127.0.0.2")).unwrap();
    let failure = run_by(&handler, chunk(1, Value::Null)).await.0.unwrap_err();
    assert_eq!((failure.kind, failure.code.as_str(), failure.retryable), (ErrorKind::Permanent, "http-refused", false));
    assert!(failure.detail.is_some_and(|detail| detail.contains("outbound.allow")));
}
