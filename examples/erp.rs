//! A business application of another origin with taskbell's widgets in its pages: a small ERP that publishes price lists.
//!
//! It has what a host page needs, and nothing else: it knows its own signed-in user, mints that user's short-lived token
//! for taskbell, sends a strict policy of its own, and marks its own record when taskbell says that a task has ended. Try
//! it, in two terminals:
//!
//! ```sh
//! ERP_SECRET=change-me-this-is-the-erp-secret cargo run -- --config examples/erp/taskbell.toml
//! ERP_SECRET=change-me-this-is-the-erp-secret cargo run --example erp
//! ```
//!
//! and open <http://127.0.0.1:9100>. `ERP_LISTEN` and `TASKBELL_URL` choose other addresses.

use axum::extract::{Path, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Who has signed in to the ERP. A real one reads it from its session.
const USER: &str = "alice";
/// How long a token for taskbell lives, seconds. The widgets ask for the next one in time.
const TOKEN_SECONDS: u64 = 300;

const PAGE: &str = include_str!("erp/index.html");
const SCRIPT: &str = include_str!("erp/erp.js");
const STYLE: &str = include_str!("erp/erp.css");

struct Erp {
    taskbell: String,
    secret: EncodingKey,
    token_seconds: u64,
    /// The ERP's own record: price list -> what became of it.
    lists: Mutex<BTreeMap<String, String>>,
}

type App = State<Arc<Erp>>;

/// A token of the ERP for its signed-in user: taskbell knows the secret, the browser sees only the token.
async fn token(State(erp): App) -> Result<Json<Value>, StatusCode> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?.as_secs();
    let claims = json!({
        "iss": "erp", "aud": "taskbell", "sub": USER, "tenant": "default", "role": "user",
        "iat": now, "exp": now + erp.token_seconds,
    });
    let token = encode(&Header::default(), &claims, &erp.secret).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    Ok(Json(json!({"token": token})))
}

async fn lists(State(erp): App) -> Json<Value> {
    Json(json!(*erp.lists.lock().unwrap_or_else(PoisonError::into_inner)))
}

/// The user's browser says that the task of a list has ended. Marking it again changes nothing.
async fn mark(State(erp): App, Path(id): Path<String>, Json(end): Json<Value>) -> StatusCode {
    let mut lists = erp.lists.lock().unwrap_or_else(PoisonError::into_inner);
    match (lists.get_mut(&id), end["state"].as_str()) {
        (Some(list), Some(state @ ("succeeded" | "failed" | "cancelled"))) => {
            *list = state.to_owned();
            StatusCode::NO_CONTENT
        }
        _ => StatusCode::NOT_FOUND,
    }
}

/// Scripts, styles and connections of this page and of taskbell; nothing inline, nothing made from text.
async fn policy(State(erp): App, request: axum::extract::Request, next: Next) -> Response {
    let taskbell = &erp.taskbell;
    let socket = taskbell.replacen("http", "ws", 1);
    let policy = format!(
        "default-src 'none'; script-src 'self' {taskbell}; connect-src 'self' {taskbell} {socket}; style-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let mut response = next.run(request).await;
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The page's own files; taskbell's address is put into the page.
fn file(kind: &'static str, text: String) -> impl IntoResponse {
    let no_store: (HeaderName, &str) = (header::CACHE_CONTROL, "no-store");
    ([(header::CONTENT_TYPE, kind), no_store], text)
}

fn setting(name: &str, default: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| default.to_owned())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let secret = std::env::var("ERP_SECRET").map_err(|_| std::io::Error::other("ERP_SECRET is not set"))?;
    let erp = Arc::new(Erp {
        taskbell: setting("TASKBELL_URL", "http://127.0.0.1:8080"),
        secret: EncodingKey::from_secret(secret.as_bytes()).map_err(std::io::Error::other)?,
        token_seconds: setting("ERP_TOKEN_SECONDS", "").parse().unwrap_or(TOKEN_SECONDS),
        lists: Mutex::new(["EU-2027", "UK-2027", "US-2027"].map(|id| (id.to_owned(), "draft".to_owned())).into()),
    });
    let page = PAGE.replace("{{taskbell}}", &erp.taskbell);
    let app = Router::new()
        .route("/", get(async move || file("text/html; charset=utf-8", page)))
        .route("/erp.js", get(async || file("text/javascript; charset=utf-8", SCRIPT.to_owned())))
        .route("/erp.css", get(async || file("text/css; charset=utf-8", STYLE.to_owned())))
        .route("/taskbell-token", get(token))
        .route("/price-lists", get(lists))
        .route("/price-lists/{id}/ended", post(mark))
        .layer(from_fn_with_state(erp.clone(), policy))
        .with_state(erp);
    let listener = tokio::net::TcpListener::bind(setting("ERP_LISTEN", "127.0.0.1:9100")).await?;
    axum::serve(listener, app).await
}
