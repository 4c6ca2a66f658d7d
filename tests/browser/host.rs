//! Another application: a server of another origin with pages that embed the widgets, and with tokens for its own user.
//!
//! Its pages have a policy of their own that allows nothing but their own files and taskbell's origin, and note what they
//! hear: events, refusals of that policy, frames that were sent, names that became global.

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use jsonwebtoken::{EncodingKey, Header, encode};
use serde_json::json;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// What taskbell and the application both know.
pub const SECRET: &str = "a shared secret of 32 bytes or so";

/// Runs before all else in a page: notes what is heard from then on.
const EARLY: &str = "
    const early = new Set(Object.getOwnPropertyNames(window));
    const noted = { events: [], refused: [], sent: [], early };
    for (const type of ['taskbell:submitted', 'taskbell:ended'])
        document.addEventListener(type, (event) => noted.events.push({ type, at: event.target.localName ?? 'document', id: event.detail.id, state: event.detail.state }));
    document.addEventListener('securitypolicyviolation', (event) => noted.refused.push(`${event.violatedDirective} ${event.blockedURI} ${event.sample}`));
    const send = WebSocket.prototype.send;
    WebSocket.prototype.send = function (text) { noted.sent.push(text); send.call(this, text); };
    window.noted = noted;
";

/// Gives the token of this application's user.
const TOKEN: &str = "
    window.giveToken = async () => {
        const answer = await fetch('/token');
        if (answer.status === 204) return null;
        if (!answer.ok) throw new Error('the till is closed');
        return (await answer.json()).token;
    };
";

struct Shared {
    taskbell: String,
    pages: Mutex<Vec<(String, String)>>,
    seconds: AtomicI64,
    status: AtomicUsize,
    asked: AtomicUsize,
}

/// A running application.
pub struct Host {
    port: u16,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

impl Host {
    /// Starts one that embeds the widgets of a taskbell.
    pub async fn start(listener: TcpListener, taskbell: &str) -> Self {
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            taskbell: taskbell.to_owned(),
            pages: Mutex::default(),
            seconds: AtomicI64::new(600),
            status: AtomicUsize::new(200),
            asked: AtomicUsize::new(0),
        });
        let (tokens, pages) = (shared.clone(), shared.clone());
        let app = Router::new()
            .route("/token", get(async move || tokens.token()))
            .route("/{page}", get(async move |Path(page): Path<String>| pages.page(&page)));
        let serving = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { port, shared, serving }
    }

    /// Where it is.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Has a page from now on: what stands in `<html …>`, its body, and its own script.
    pub fn has(&self, name: &str, html: &str, body: &str, script: &str) {
        let taskbell = &self.shared.taskbell;
        let page = format!(
            "<!doctype html><html {html}><meta charset=utf-8><title>Another application</title>\n\
             <script src=/early.js></script><script src=/token.js></script>\n\
             <script type=module src={taskbell}/static/taskbell.js></script>\n\
             <script type=module src=/{name}.js></script><body>{body}</body></html>"
        );
        let script = script.replace("TASKBELL", taskbell);
        let mut pages = self.shared.pages.lock().unwrap();
        pages.extend([(name.to_owned(), page), (format!("{name}.js"), script)]);
    }

    /// How long its tokens live from now on.
    pub fn tokens_live(&self, seconds: i64) {
        self.shared.seconds.store(seconds, Ordering::Relaxed);
    }

    /// With which status it answers for tokens from now on.
    pub fn answers(&self, status: usize) {
        self.shared.status.store(status, Ordering::Relaxed);
    }

    /// How often it was asked for a token.
    pub fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::Relaxed)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Shared {
    fn token(&self) -> impl IntoResponse + use<> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as i64;
        let exp = now + self.seconds.load(Ordering::Relaxed);
        let claims =
            json!({"iss": "erp", "aud": "taskbell", "sub": "alice", "tenant": "default", "role": "user", "exp": exp});
        let token = encode(&Header::default(), &claims, &EncodingKey::from_secret(SECRET.as_bytes()).unwrap()).unwrap();
        let status = StatusCode::from_u16(self.status.load(Ordering::Relaxed) as u16).unwrap();
        (status, axum::Json(json!({"token": token})))
    }

    fn page(&self, name: &str) -> impl IntoResponse + use<> {
        let taskbell = &self.taskbell;
        let policy = format!(
            "default-src 'none'; script-src 'self' {taskbell}; connect-src 'self' {taskbell} {}; \
             require-trusted-types-for 'script'; trusted-types 'none'",
            taskbell.replacen("http", "ws", 1)
        );
        let kind = if name.ends_with(".js") { "text/javascript" } else { "text/html; charset=utf-8" };
        let text = match name {
            "early.js" => Some(EARLY.to_owned()),
            "token.js" => Some(TOKEN.to_owned()),
            _ => self.pages.lock().unwrap().iter().rfind(|(page, _)| page == name).map(|(_, text)| text.clone()),
        };
        let status = if text.is_some() { StatusCode::OK } else { StatusCode::NOT_FOUND };
        let headers = [(header::CONTENT_TYPE, kind.to_owned()), (header::CONTENT_SECURITY_POLICY, policy)];
        (status, headers, text.unwrap_or_default())
    }
}
