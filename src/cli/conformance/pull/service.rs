//! The service that a worker meets while it is looked at: hands each request to whoever looks, and sends what that one answers.
//!
//! Decides nothing but whether a request is one of a worker at all; what is not is refused and kept as a fault.

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::task::AbortOnDropHandle;

/// Where the calls of workers stand.
const PATH: &str = "/api/v1/worker/";
/// Where files stand.
const FILES: &str = "/api/v1/artifacts/";

/// Requests that may wait for whoever looks; further ones wait on their connections.
const WAITING: usize = 64;

/// What is answered.
#[derive(Debug)]
pub(in crate::cli::conformance) enum Answer {
    /// 200 with JSON.
    Json(Value),
    /// A refusal that passes, with `Retry-After` in seconds.
    Later(u16, u32),
    /// 200 with what is no JSON, as from a proxy.
    Garbage,
    /// Nothing: the connection breaks.
    Break,
}

/// A request of a worker.
pub(in crate::cli::conformance) struct Asked {
    /// `claim`, `commit`, `progress`, `log` or `renew`.
    pub call: String,
    /// Its body.
    pub body: Value,
    answer: oneshot::Sender<Answer>,
}

impl Asked {
    /// Answers it. Nobody may be there any more.
    pub fn answer(self, answer: Answer) {
        let _ = self.answer.send(answer);
    }
}

struct Shared {
    key: String,
    files: BTreeMap<String, Bytes>,
    asked: mpsc::Sender<Asked>,
    faults: Mutex<Vec<String>>,
}

/// The service.
pub(in crate::cli::conformance) struct Service {
    /// Its address, without a slash at the end.
    pub url: String,
    /// The key that the worker has to show.
    pub key: String,
    asked: mpsc::Receiver<Asked>,
    shared: Arc<Shared>,
    _serving: AbortOnDropHandle<()>,
}

impl Service {
    /// Serves on an address.
    pub async fn open(listen: SocketAddr, url: Option<String>, files: BTreeMap<String, Bytes>) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let url = url.unwrap_or(format!("http://{}", listener.local_addr()?)).trim_end_matches('/').to_owned();
        let (sender, asked) = mpsc::channel(WAITING);
        let key = format!("tb_{}", crate::core::ids::fresh().simple());
        let shared = Arc::new(Shared { key: key.clone(), files, asked: sender, faults: Mutex::default() });
        let to = shared.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shared = to.clone();
                let service = hyper::service::service_fn(move |request| answer(request, shared.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { url, key, asked, shared, _serving: AbortOnDropHandle::new(serving) })
    }

    /// The next request of the worker.
    pub async fn next(&mut self) -> Asked {
        self.asked.recv().await.expect("the service holds the other end")
    }

    /// What was asked in a wrong way so far.
    pub fn faults(&self) -> MutexGuard<'_, Vec<String>> {
        self.shared.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> Result<Response<Full<Bytes>>, io::Error> {
    let header = |name| request.headers().get(name).and_then(|v| v.to_str().ok()).unwrap_or_default().to_owned();
    let (bearer, kind) = (header(header::AUTHORIZATION), header(header::CONTENT_TYPE));
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    // A body that breaks off is judged as it came.
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let refuse = |status: StatusCode, fault: String| {
        shared.faults.lock().unwrap_or_else(PoisonError::into_inner).push(format!("{method} {path}: {fault}"));
        reply(status, &json!({"status": status.as_u16(), "code": "conformance", "detail": fault}))
    };
    if bearer.split_once(' ').is_none_or(|(word, key)| !word.eq_ignore_ascii_case("bearer") || key != shared.key) {
        return refuse(StatusCode::UNAUTHORIZED, "shows another key than it was given".into());
    }
    if let (&Method::GET, Some(id)) = (&method, path.strip_prefix(FILES)) {
        return match shared.files.get(id) {
            Some(bytes) => Ok(Response::new(Full::new(bytes.clone()))),
            None => refuse(StatusCode::NOT_FOUND, "there is no such file".into()),
        };
    }
    let call = path.strip_prefix(PATH).unwrap_or_default();
    if method != Method::POST || !["claim", "commit", "progress", "log", "renew"].contains(&call) {
        return refuse(StatusCode::NOT_FOUND, "there is no such call".into());
    }
    if !kind.to_ascii_lowercase().starts_with("application/json") {
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "says no Content-Type: application/json".into());
    }
    let body = match serde_json::from_slice::<Value>(&body).map_err(|e| e.to_string()).and_then(|b| judged(call, b)) {
        Ok(body) => body,
        Err(fault) => return refuse(StatusCode::UNPROCESSABLE_ENTITY, fault),
    };
    let (sender, answered) = oneshot::channel();
    // Without whoever looks there is nobody to answer, and the connection breaks.
    drop(shared.asked.send(Asked { call: call.to_owned(), body, answer: sender }).await);
    match answered.await {
        Ok(Answer::Json(body)) => reply(StatusCode::OK, &body),
        Ok(Answer::Later(status, seconds)) => {
            let answer = Response::builder().status(status).header(header::RETRY_AFTER, seconds);
            Ok(answer.body(Full::default()).expect("a status and a number make an answer"))
        }
        Ok(Answer::Garbage) => Ok(Response::new(Full::from("<html>One moment, please.</html>"))),
        Ok(Answer::Break) | Err(_) => Err(io::Error::other("broken on purpose")),
    }
}

/// A body, if it has the right shape.
fn judged(call: &str, body: Value) -> Result<Value, String> {
    let texts = |value: &Value| value.as_array().is_some_and(|all| !all.is_empty() && all.iter().all(Value::is_string));
    let fault = match call {
        "claim" if !texts(&body["actions"]) => Some("`actions` must be a list of texts".to_owned()),
        "claim" => None,
        _ => match body["items"].as_array() {
            None => Some("`items` must be a list".to_owned()),
            Some(items) => items.iter().find_map(|item| misshapen(call, item)),
        },
    };
    fault.map_or(Ok(body), Err)
}

fn misshapen(call: &str, item: &Value) -> Option<String> {
    let needs: &[&str] = match call {
        "commit" => &["task", "fencingToken", "chunk", "outcome"],
        "progress" => &["task", "fencingToken", "progress"],
        "log" => &["task", "fencingToken", "lines"],
        _ => &["task", "fencingToken"],
    };
    let missing = needs.iter().find(|name| item.get(**name).is_none());
    let unknown = || {
        let all = [needs, &["chunk"]].concat();
        item.as_object()?.keys().find(|name| !all.contains(&name.as_str())).cloned()
    };
    match missing {
        Some(name) => Some(format!("an item has no `{name}`")),
        None => unknown().map(|name| format!("an item has `{name}`, which is not known")),
    }
}

fn reply(status: StatusCode, body: &Value) -> Result<Response<Full<Bytes>>, io::Error> {
    let answer = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    Ok(answer.body(Full::from(body.to_string())).expect("a status and a type make an answer"))
}
