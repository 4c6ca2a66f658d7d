//! What an answer of an application means. The table, held by tests and told in docs/handlers.md:
//!
//! | answer | becomes |
//! |---|---|
//! | 204 | done, without a result |
//! | another 2xx with an outcome | the outcome |
//! | another 2xx without one, or with one that is too long | `bad-outcome` |
//! | 408, 425, 429, 5xx | a failure that is tried again, not before its `Retry-After` |
//! | any other status, redirects among them | a failure for good |
//! | no connection, a broken or half answer | a failure that is tried again |
//! | no answer in time | `timeout`, tried again |
//! | an address that is not listed, or leads inside | a failure for good |

use crate::core::chunk::{Failure, Outcome};
use crate::core::progress::FieldFault;
use crate::core::task::{ErrorKind, limits};
use crate::core::time::Millis;
use crate::handler::answer::{ANSWER_BYTES, bad_outcome, parse};
use crate::outbound::{CallFault, HeaderMap, Reply, StatusCode, header};
use std::time::Duration;

/// What operators are shown of the body of an answer that is no outcome, bytes.
const EXCERPT_BYTES: usize = 1_000;

/// The outcome of an answer whose head has arrived.
///
/// # Errors
/// The failure that it counts as.
pub async fn outcome(reply: Reply, now: Millis, timeout: Duration) -> Result<(Outcome, Vec<FieldFault>), Failure> {
    let status = reply.status();
    if status == StatusCode::NO_CONTENT {
        return Ok((Outcome::done(serde_json::Value::Null), Vec::new()));
    }
    if status.is_success() {
        return match reply.body(ANSWER_BYTES).await {
            Ok(body) => parse(&body),
            Err(CallFault::TooLarge { limit_bytes }) => {
                Err(bad_outcome(format!("outcome: the answer has more than {limit_bytes} bytes")))
            }
            Err(fault) => Err(no_answer(&fault, timeout)),
        };
    }
    let retry_after_ms = retry_after_ms(reply.headers(), now);
    let location = reply.headers().get(header::LOCATION).map(|l| format!(" to {l:?}")).unwrap_or_default();
    let excerpt = reply.excerpt(EXCERPT_BYTES).await;
    let code = format!("http-{}", status.as_u16());
    let passes = matches!(status.as_u16(), 408 | 425 | 429 | 500..=599);
    let mut failure = if passes {
        let text = format!("The application could not do this step now (HTTP {}).", status.as_u16());
        Failure::new(ErrorKind::Handler, &code, text)
    } else {
        let text = format!("The application refused this step (HTTP {}).", status.as_u16());
        Failure::new(ErrorKind::Permanent, &code, text)
    };
    failure.retry_after_ms = retry_after_ms.filter(|_| passes);
    Err(failure.detail(format!("{status}{location}: {excerpt}")))
}

/// The failure of a call that has no answer.
#[must_use]
pub fn no_answer(fault: &CallFault, timeout: Duration) -> Failure {
    let (kind, code, text) = match fault {
        CallFault::Refused(_) => {
            let text = "This step may not call its application: the address is not allowed.";
            (ErrorKind::Permanent, "http-refused", text.to_owned())
        }
        CallFault::TimedOut => {
            let text = format!("A step took longer than its limit of {} s.", timeout.as_secs_f64());
            (ErrorKind::Timeout, "timeout", text)
        }
        CallFault::Unreachable(_) => {
            (ErrorKind::Handler, "http-unreachable", "The application cannot be reached.".to_owned())
        }
        CallFault::Broken(_) | CallFault::TooLarge { .. } => {
            (ErrorKind::Handler, "http-broken", "The application's answer broke off.".to_owned())
        }
    };
    Failure::new(kind, code, text).detail(fault.to_string())
}

/// `Retry-After`: seconds, or a date of HTTP in any of its forms. What is neither says nothing; more than a day is a day.
fn retry_after_ms(headers: &HeaderMap, now: Millis) -> Option<i64> {
    const MOST_MS: i64 = (limits::DELAY_SECONDS * 1_000.0) as i64;
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(text.parse::<i64>().map_or(MOST_MS, |seconds| seconds.saturating_mul(1_000)).min(MOST_MS));
    }
    let at = jiff::Timestamp::try_from(httpdate::parse_http_date(text).ok()?).ok()?;
    Some(Millis(at.as_millisecond()).since(now).clamp(0, MOST_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_is_seconds_or_a_date_and_never_more_than_a_day() {
        let now = Millis(784_111_777_000); // Sun, 06 Nov 1994 08:49:37 GMT
        for (text, ms) in [
            ("0", Some(0)),
            ("7", Some(7_000)),
            (" 120 ", Some(120_000)),
            ("99999999999999999999", Some(86_400_000)),
            ("86401", Some(86_400_000)),
            ("Sun, 06 Nov 1994 08:50:07 GMT", Some(30_000)),
            ("Sunday, 06-Nov-94 08:50:07 GMT", Some(30_000)),
            ("Sun Nov  6 08:50:07 1994", Some(30_000)),
            ("Sun, 06 Nov 1994 08:49:00 GMT", Some(0)),
            ("Thu, 01 Jan 2099 00:00:00 GMT", Some(86_400_000)),
            ("", None),
            ("-1", None),
            ("1.5", None),
            ("soon", None),
        ] {
            let headers = HeaderMap::from_iter([(header::RETRY_AFTER, text.parse().unwrap())]);
            assert_eq!(retry_after_ms(&headers, now), ms, "{text}");
        }
        assert_eq!(retry_after_ms(&HeaderMap::new(), now), None);
    }
}
