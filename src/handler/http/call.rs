//! The call of a chunk: the bytes of its body, which are signed as they are sent, and its headers.
//!
//! Standard Webhooks: `webhook-id` is `task:chunk:attempt`, `webhook-timestamp` the second of the call, and
//! `webhook-signature` one signature of each key in force. `Idempotency-Key` is `task:chunk`, the same in every attempt.

use super::answer;
use crate::core::callback::ChunkName;
use crate::core::chunk::Outcome;
use crate::core::signing::SigningKeys;
use crate::core::time::Clock;
use crate::handler::{ChunkContext, ChunkIn, Handler, HandlerError};
use crate::outbound::{Call, HeaderMap, HeaderName, HeaderValue, Method, Outbound, header};
use async_trait::async_trait;
use serde::Serialize;
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Where the application calls back.
#[derive(Clone, Debug, Serialize)]
pub struct CallbackTo {
    /// `POST {url}/progress`, `/log`, `/artifacts`, `GET {url}/lease`, `GET {url}/files/{id}`.
    pub url: String,
    /// The bearer token of this chunk.
    pub token: String,
}

/// The headers of a signature.
pub const ID: HeaderName = HeaderName::from_static("webhook-id");
/// The second that is signed.
pub const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
/// The signatures.
pub const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

#[derive(Serialize)]
struct Body<'a> {
    #[serde(flatten)]
    chunk: &'a ChunkIn,
    callback: CallbackTo,
}

/// The body of a call: the chunk, and where its application calls back.
#[must_use]
pub fn body(chunk: &ChunkIn, callback: CallbackTo) -> Vec<u8> {
    serde_json::to_vec(&Body { chunk, callback }).expect("a chunk is JSON")
}

/// The call of a chunk with such a body, signed at this second.
#[must_use]
pub fn signed(
    url: &Url,
    keys: &SigningKeys,
    chunk: &ChunkIn,
    body: Vec<u8>,
    now_seconds: i64,
    timeout: Duration,
) -> Call {
    let key = format!("{}:{}", chunk.task.id, chunk.chunk);
    let id = format!("{key}:{}", chunk.attempt);
    let signature = keys.sign(&id, now_seconds, &body);
    let mut call = Call::new(Method::POST, url.clone(), timeout);
    call.headers = headers([
        (header::CONTENT_TYPE, "application/json".into()),
        (header::ACCEPT, "application/json".into()),
        (ID, id),
        (TIMESTAMP, now_seconds.to_string()),
        (SIGNATURE, signature),
        (HeaderName::from_static("taskbell-fencing-token"), chunk.fencing_token.to_string()),
        (HeaderName::from_static("idempotency-key"), key),
    ]);
    call.body = body.into();
    call
}

fn headers<const N: usize>(pairs: [(HeaderName, String); N]) -> HeaderMap {
    let value = |text: String| HeaderValue::from_str(&text).expect("ids, numbers and base64 are header values");
    pairs.into_iter().map(|(name, text)| (name, value(text))).collect()
}

/// A handler that is an endpoint of another application.
pub struct HttpHandler {
    /// Where.
    pub url: Url,
    /// What signs the calls and seals the callback tokens.
    pub keys: SigningKeys,
    /// The longest one chunk may take.
    pub timeout: Duration,
    /// The address of the callbacks, as the application reaches it.
    pub callback_url: Arc<str>,
    /// The way out.
    pub outbound: Arc<Outbound>,
    /// Time.
    pub clock: Arc<dyn Clock>,
}

impl HttpHandler {
    fn call(&self, chunk: &ChunkIn) -> Call {
        let (now, longest_ms) = (self.clock.now(), i64::try_from(self.timeout.as_millis()).unwrap_or(i64::MAX));
        let task = &chunk.task;
        let name = ChunkName::of(task.id, chunk.fencing_token, chunk.chunk, &task.action, now, longest_ms);
        let callback = CallbackTo { url: self.callback_url.to_string(), token: name.seal(&self.keys) };
        signed(&self.url, &self.keys, chunk, body(chunk, callback), now.0.div_euclid(1_000), self.timeout)
    }
}

#[async_trait]
impl Handler for HttpHandler {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let answered = match self.outbound.send(self.call(cx.chunk_in())).await {
            Ok(reply) => answer::outcome(reply, self.clock.now(), self.timeout).await,
            Err(fault) => Err(answer::no_answer(&fault, self.timeout)),
        };
        match answered {
            Ok((outcome, faults)) => {
                crate::handler::answer::warn_of(cx, &faults);
                Ok(outcome)
            }
            Err(failure) => Err(HandlerError::Failed(Box::new(failure))),
        }
    }
}
