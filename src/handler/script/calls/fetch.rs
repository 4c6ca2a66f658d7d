//! The call behind `cx.fetch`: one request to a host that is listed, through the guarded client of the node.
//!
//! Bounded by the chunk's own time, by [`FETCH_BYTES`] of answer and [`HEADERS`] of request; the body of the request counts
//! on the chunk's output budget before it comes here. The answer of any status is an answer, a redirect too.

use super::{Called, Caller, Refusal, Reply};
use crate::handler::script::limits::FETCH_BYTES;
use crate::outbound::{Call, CallFault, HeaderMap, HeaderName, HeaderValue, Method, header};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use url::Url;

/// Headers that a request may have.
const HEADERS: usize = 50;

/// What the prelude makes of the arguments.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    url: String,
    method: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// The body as it is sent.
    body: Option<String>,
    /// The body was no text and has been made into JSON.
    #[serde(default)]
    is_json: bool,
    timeout_ms: Option<f64>,
}

/// `fetch`: given [`Asked`], answers `{status, headers, body}`.
pub(super) async fn fetch(caller: &Caller<'_>, asked: Value) -> Called {
    let asked: Asked =
        serde_json::from_value(asked).map_err(|_| bad("takes (address, { method, headers, body, timeoutMs })"))?;
    let call = call(asked, caller.until.saturating_duration_since(Instant::now()))?;
    let unlisted = || Refusal::permanent("fetch-refused", "scripts may call no host: none is listed");
    let outbound = caller.outbound.ok_or_else(unlisted)?;
    if let Some(hosts) = caller.hosts {
        hosts.check(&call.url).map_err(|refusal| Refusal::permanent("fetch-refused", refusal.to_string()))?;
    }
    let reply = outbound.send(call).await.map_err(refusal)?;
    let status = reply.status().as_u16();
    let headers = told(reply.headers());
    let body = reply.body(FETCH_BYTES).await.map_err(refusal)?;
    let body =
        std::str::from_utf8(&body).map_err(|_| Refusal::permanent("fetch-not-text", "the answer is not UTF-8 text"))?;
    Ok(Reply::Json(json!({"status": status, "headers": headers, "body": body.trim_start_matches('\u{feff}')})))
}

fn call(asked: Asked, left: Duration) -> Result<Call, Refusal> {
    let url = Url::parse(&asked.url).map_err(|_| bad("needs a whole address, such as https://example.com/orders"))?;
    let method = asked.method.unwrap_or_else(|| "GET".into()).to_ascii_uppercase();
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| bad("was given a method that is none"))?;
    if asked.headers.len() > HEADERS {
        return Err(bad("takes at most 50 headers"));
    }
    let mut headers = HeaderMap::new();
    if asked.is_json {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    for (name, value) in asked.headers {
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad("was given a header whose name is none"))?;
        let value = HeaderValue::from_str(&value).map_err(|_| bad("was given a header whose value is none"))?;
        headers.insert(name, value);
    }
    let wanted = asked.timeout_ms.and_then(|ms| Duration::try_from_secs_f64(ms / 1000.0).ok());
    let timeout = wanted.map_or(left, |wanted| wanted.min(left));
    Ok(Call { method, url, headers, body: asked.body.unwrap_or_default().into(), timeout })
}

/// The headers of an answer; those of one name in one line, those that are no text left out.
fn told(headers: &HeaderMap) -> Map<String, Value> {
    let line = |name: &HeaderName| {
        let values: Vec<_> = headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).collect();
        (name.as_str().to_owned(), values.join(", ").into())
    };
    headers.keys().map(line).collect()
}

fn bad(why: &str) -> Refusal {
    Refusal::permanent("bad-argument", format!("cx.fetch {why}"))
}

fn refusal(fault: CallFault) -> Refusal {
    let code = match fault {
        CallFault::Refused(_) => "fetch-refused",
        CallFault::Unreachable(_) => "fetch-unreachable",
        CallFault::TimedOut => "fetch-timeout",
        CallFault::Broken(_) => "fetch-broken",
        CallFault::TooLarge { .. } => "fetch-too-large",
    };
    Refusal { code: code.into(), message: fault.to_string(), permanent: !fault.may_pass() }
}
