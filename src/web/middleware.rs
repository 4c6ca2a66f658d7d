//! What every request passes through, from the outside in: a request id and the security headers, a net for panics, the
//! rule of origins, CORS.
//!
//! The request id is made here and taken from nobody outside. A problem that a handler returned gets it, is written once
//! into the process's log, and is sent.

use super::error::{ApiError, Code, Problem};
use super::measure;
use super::origin::{self, From};
use super::pages::dress::{Wanted, dress};
use super::room::{self, Room};
use super::state::{AppState, WebSettings};
use crate::core::ids;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderName, HeaderValue, Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::any::Any;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// The header that carries the request id.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How long browsers may remember the answer to a preflight.
const PREFLIGHT_AGE: Duration = Duration::from_secs(600);

/// Sent with every answer. Pages load nothing from elsewhere, run no inline script, are framed by nobody, and set no HTML
/// from text.
const SECURITY: [(HeaderName, &str); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'self'; img-src 'self' data:; connect-src 'self'; object-src 'none'; frame-ancestors 'none'; \
         base-uri 'none'; form-action 'self'; require-trusted-types-for 'script'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "same-origin"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The id of a request: UUIDv7, made here.
#[derive(Clone, Debug)]
pub struct RequestId(pub String);

/// What stands around the routes of a node. Clones share it.
#[derive(Clone)]
pub struct Around {
    /// What the bodies of requests may take together.
    pub room: Room,
    /// Where there are pages and an API for pages elsewhere: problems are shown as pages, and origins are looked at.
    pub pages: Option<AppState>,
}

/// What every request passes. It is one layer, since each one copies all that is inside of it for each request.
pub async fn around(State(Around { room, pages }): State<Around>, mut request: Request, next: Next) -> Response {
    let identity = Identity::given_to(&mut request);
    let counted = measure::Counted::of(&request);
    let wanted = pages.as_ref().and_then(|state| Some((state, Wanted::of(&request)?)));
    let mut response = match pages.as_ref().and_then(|state| refused_origin(state, &request)) {
        Some(refusal) => refusal.into_response(),
        None => room::share(room, next.run(request)).await,
    };
    measure::problem(&response);
    if let Some((state, wanted)) = wanted {
        response = dress(state, wanted, response).await;
    }
    counted.end(&response);
    identity.sign(response)
}

/// A request by its id.
struct Identity {
    id: RequestId,
    method: Method,
    path: String,
}

impl Identity {
    /// Gives a request its id.
    fn given_to(request: &mut Request) -> Self {
        let id = RequestId(ids::fresh().to_string());
        request.extensions_mut().insert(id.clone());
        Self { id, method: request.method().clone(), path: request.uri().path().to_owned() }
    }

    /// Gives the answer its headers and, where it is a problem, its body.
    fn sign(self, mut response: Response) -> Response {
        let Self { id, method, path } = self;
        if let Some(Problem(error)) = response.extensions_mut().remove::<Problem>() {
            note(&error, &id, &method, &path);
            *response.body_mut() = Body::from(error.problem(&id.0).to_string());
            response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        }
        let headers = response.headers_mut();
        for (name, value) in &SECURITY {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if path.starts_with("/api/") {
            headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
        }
        headers.insert(REQUEST_ID, HeaderValue::from_str(&id.0).expect("a UUID is a valid header value"));
        response
    }
}

/// One line a problem. Keys, cookies, queries and bodies are never in it.
pub fn note(error: &ApiError, id: &RequestId, method: &Method, path: &str) {
    let (code, cause) = (error.code.as_str(), error.cause.as_deref().unwrap_or_default());
    // Who is sent away since there is too much to do is counted, and a line for each would be more to do.
    if error.code.status().is_server_error() && error.code != Code::Busy {
        tracing::error!(request_id = id.0, %method, path, code, cause, "a request failed");
    } else {
        tracing::debug!(request_id = id.0, %method, path, code, cause, "a request was refused");
    }
}

/// A panic becomes a problem like any other; its text is in the process's log and goes nowhere else.
#[must_use]
pub fn panicked(_: Box<dyn Any + Send + 'static>) -> Response {
    ApiError::internal("a handler panicked; the panic is logged above").into_response()
}

/// The rule of origins, and in the demo the rule of names: why a request is refused.
fn refused_origin(state: &AppState, request: &Request) -> Option<ApiError> {
    if state.demo.is_some() && !origin::is_loopback_host(request.headers()) {
        return Some(ApiError::new(Code::HostRefused));
    }
    (origin::of(request.headers(), &state.settings) == From::Foreign).then(|| ApiError::new(Code::OriginRefused))
}

/// CORS for the listed origins, without credentials: other pages call with a key of their own.
pub fn cors(settings: &WebSettings) -> CorsLayer {
    let origins = settings.allowed_origins.iter().filter_map(|o| HeaderValue::from_str(o).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::ACCEPT_LANGUAGE,
            header::IF_NONE_MATCH,
            HeaderName::from_static("idempotency-key"),
        ])
        .expose_headers([header::LOCATION, header::ETAG, header::RETRY_AFTER])
        .max_age(PREFLIGHT_AGE)
}
