//! What goes wrong, as a caller is told it: RFC 9457 problems with stable codes.
//!
//! One table says code → HTTP status → sentence; `docs/errors.md` is held against it by a test. A handler returns
//! [`ApiError`]; [`super::middleware`] gives it the request id, writes it once into the process's log and sends it. The
//! inner cause goes into the log and never out.

use crate::core::params_check::FieldFault;
use crate::core::resolve::NotTaken;
use crate::store::StoreError;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use std::ops::Deref;

macro_rules! codes {
    ($($name:ident $code:literal $status:literal $sentence:literal;)*) => {
        /// What went wrong. The words are stable: clients are written against them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $(#[doc = $sentence] $name,)*
        }

        impl Code {
            /// All codes, in the order of their status.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The word in the answer.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $code,)* }
            }

            /// The HTTP status.
            #[must_use]
            pub fn status(self) -> StatusCode {
                let status = match self { $(Self::$name => $status,)* };
                StatusCode::from_u16(status).expect("the table holds valid statuses")
            }

            /// The sentence for people; the `title` of the problem.
            #[must_use]
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence,)* }
            }
        }
    };
}

codes! {
    MalformedJson "malformed-json" 400 "The body is not valid JSON.";
    BadRequest "bad-request" 400 "The request cannot be read.";
    BadCursor "bad-cursor" 400 "The cursor is not one of this list. Start again without it.";
    Unauthenticated "unauthenticated" 401 "Sign in, or send a valid API key.";
    Forbidden "forbidden" 403 "You are not allowed to do this.";
    OriginRefused "origin-refused" 403 "This page may not call the service.";
    HostRefused "host-refused" 403 "The demo answers only under names of this machine.";
    FormExpired "form-expired" 403 "The form is too old. Load the page again.";
    NotFound "not-found" 404 "There is nothing here, or it is not yours to see.";
    UnknownAction "unknown-action" 404 "There is no such action, or it is not yours to start.";
    MethodNotAllowed "method-not-allowed" 405 "This address does not know that method.";
    TooSlow "too-slow" 408 "The request took too long to arrive.";
    IdempotencyConflict "idempotency-conflict" 409 "Another task holds this idempotency key.";
    ConcurrencyConflict "concurrency-conflict" 409 "Another task holds this concurrency key.";
    NotCancellable "not-cancellable" 409 "The task cannot be cancelled in its state.";
    NotPausable "not-pausable" 409 "The task cannot be paused in its state.";
    NotResumable "not-resumable" 409 "The task cannot be resumed in its state.";
    Superseded "superseded" 409 "A newer task has taken over the idempotency key of this one.";
    ParentStopped "parent-stopped" 409 "The task that this one is a part of has stopped. Resume that one.";
    NotRetryable "not-retryable" 409 "Only failed and cancelled tasks can be started over.";
    NotEnded "not-ended" 409 "Only ended tasks can be deleted.";
    TooLarge "too-large" 413 "The request is too large.";
    UnsupportedMediaType "unsupported-media-type" 415 "The body has the wrong type.";
    Invalid "invalid" 422 "Some fields break their rules.";
    IdempotencyMismatch "idempotency-mismatch" 422 "The idempotency key belongs to a different request.";
    TooManyPolls "too-many-polls" 429 "Too many polls of this key wait already.";
    KeyQueueFull "key-queue-full" 429 "Too many tasks wait for this concurrency key.";
    Internal "internal" 500 "Something went wrong here. It has been noted under the request id.";
    Busy "busy" 503 "The service is busy. Try again in a moment.";
    Unavailable "unavailable" 503 "The database cannot be reached. Try again in a moment.";
}

/// Before that many seconds a repetition is pointless.
const RETRY_AFTER_SECONDS: u32 = 1;

/// A problem on its way out. Small, since every handler may return one.
#[derive(Clone, Debug)]
pub struct ApiError(Box<Facts>);

/// What is known of a problem.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Which.
    pub code: Code,
    /// This case in a sentence; safe to send.
    pub detail: Option<String>,
    /// The fields that are wrong.
    pub errors: Vec<FieldFault>,
    /// Further members of the problem.
    pub more: Map<String, Value>,
    /// Sent as `Retry-After`.
    pub retry_after_seconds: Option<u32>,
    /// For the process's log only.
    pub cause: Option<String>,
}

impl Deref for ApiError {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl ApiError {
    /// A problem with nothing but its code.
    #[must_use]
    pub fn new(code: Code) -> Self {
        let retry_after_seconds = matches!(code.status().as_u16(), 429 | 503).then_some(RETRY_AFTER_SECONDS);
        let (errors, more) = (Vec::new(), Map::new());
        Self(Box::new(Facts { code, detail: None, errors, more, retry_after_seconds, cause: None }))
    }

    /// Adds a sentence about this case.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<String>) -> Self {
        self.0.detail = Some(detail.into());
        self
    }

    /// Adds a member to the problem.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.0.more.insert(name.to_owned(), value.into());
        self
    }

    /// Says when it is worth asking again.
    #[must_use]
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.0.retry_after_seconds = Some(seconds);
        self
    }

    /// Adds what is only logged.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.0.cause = Some(cause.into());
        self
    }

    /// A fault of ours; the cause is only logged.
    #[must_use]
    pub fn internal(cause: impl Into<String>) -> Self {
        Self::new(Code::Internal).caused_by(cause)
    }

    /// Fields that break their rules.
    #[must_use]
    pub fn invalid(errors: Vec<FieldFault>) -> Self {
        let mut error = Self::new(Code::Invalid);
        error.0.errors = errors;
        error
    }

    /// One field that breaks its rule.
    #[must_use]
    pub fn field(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::invalid(vec![FieldFault::new(path, message)])
    }

    /// The body of the answer.
    #[must_use]
    pub fn problem(&self, request_id: &str) -> Value {
        let mut problem = self.more.clone();
        let code = self.code.as_str();
        let told: Vec<String> = self.errors.iter().map(|f| format!("{}: {}", f.path, f.message)).collect();
        let detail = self.detail.clone().or_else(|| (!told.is_empty()).then(|| told.join("; ")));
        problem.insert("type".into(), format!("urn:taskbell:problem:{code}").into());
        problem.insert("title".into(), self.code.sentence().into());
        problem.insert("status".into(), self.code.status().as_u16().into());
        problem.insert("code".into(), code.into());
        problem.insert("detail".into(), detail.unwrap_or_else(|| self.code.sentence().to_owned()).into());
        problem.insert("requestId".into(), request_id.into());
        if !self.errors.is_empty() {
            problem.insert("errors".into(), json!(self.errors));
        }
        problem.into()
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NotFound => Code::NotFound,
            StoreError::Conflict(_) | StoreError::Busy(_) => Code::Busy,
            StoreError::Unavailable(_) => Code::Unavailable,
            StoreError::Stale | StoreError::Limit(_) | StoreError::Corrupt(_) | StoreError::Unsupported(_) => {
                Code::Internal
            }
        };
        Self::new(code).caused_by(error.to_string())
    }
}

impl From<NotTaken> for ApiError {
    fn from(refusal: NotTaken) -> Self {
        match refusal {
            NotTaken::UnknownAction => Self::new(Code::UnknownAction),
            NotTaken::Forbidden(why) => Self::new(Code::Forbidden).detail(why),
            NotTaken::Invalid(faults) => Self::invalid(faults),
        }
    }
}

/// A problem inside a response that has no body yet: whoever sends it knows the request id.
#[derive(Clone, Debug)]
pub struct Problem(pub ApiError);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.code.status();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.code == Code::Unauthenticated {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(Problem(self));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_errors_md_lists_exactly_the_table() {
        let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/errors.md")).unwrap();
        let rows: Vec<Vec<String>> = file
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect())
            .collect();
        let told: Vec<_> = rows.iter().map(|r| (r[0].as_str(), r[1].as_str(), r[2].as_str())).collect();
        let status: Vec<String> = Code::ALL.iter().map(|c| c.status().as_u16().to_string()).collect();
        let table: Vec<_> =
            Code::ALL.iter().zip(&status).map(|(c, s)| (c.as_str(), s.as_str(), c.sentence())).collect();
        assert_eq!(told, table);
    }

    #[test]
    fn codes_are_told_apart_and_come_in_the_order_of_their_status() {
        let words: std::collections::HashSet<_> = Code::ALL.iter().map(|c| c.as_str()).collect();
        assert_eq!(words.len(), Code::ALL.len());
        assert!(Code::ALL.is_sorted_by_key(|c| c.status()));
    }

    #[test]
    fn a_cause_is_never_sent() {
        let error = ApiError::from(StoreError::Corrupt("row 17 of secrets".into()));
        assert!(!error.problem("r").to_string().contains("17"));
        assert_eq!(error.problem("r")["requestId"], "r");
    }

    #[test]
    fn what_may_pass_comes_with_retry_after() {
        for error in [StoreError::Busy(String::new()), StoreError::Unavailable(String::new())] {
            let response = ApiError::from(error).into_response();
            assert_eq!(response.status(), 503);
            assert!(response.headers().contains_key(header::RETRY_AFTER));
        }
    }
}
