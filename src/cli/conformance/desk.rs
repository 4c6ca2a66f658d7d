//! The callbacks of the chunks that are played: answered as a node answers them, and kept for the verdicts.
//!
//! One chunk is under way at a time, so one token is good at a time. What a handler asks with a wrong shape is kept as a
//! fault; what it asks after its chunk is over is a 401 and no fault.

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use crate::core::progress::Reported;
use crate::handler::http::CallbackTo;
use http_body_util::{BodyExt as _, Full};

/// What was asked, and what is answered.
#[derive(Default)]
pub(super) struct Asked {
    /// The token of the chunk under way.
    pub token: Option<String>,
    /// What the lease says of a stop.
    pub stop: bool,
    /// How often the lease was asked for.
    pub leases: usize,
    /// Reports and lines that were taken.
    pub told: usize,
    /// What was asked in a wrong way.
    pub faults: Vec<String>,
}

/// The desk.
pub(super) struct Desk {
    url: String,
    asked: Arc<Mutex<Asked>>,
    _serving: AbortOnDropHandle<()>,
}

impl Desk {
    /// Serves on an address.
    pub(super) async fn open(
        listen: SocketAddr,
        url: Option<String>,
        files: BTreeMap<String, Bytes>,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(listen).await?;
        let url = url.unwrap_or(format!("http://{}", listener.local_addr()?)).trim_end_matches('/').to_owned();
        let (asked, files) = (Arc::<Mutex<Asked>>::default(), Arc::new(files));
        let shared = asked.clone();
        let serving = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, files) = (shared.clone(), files.clone());
                let service = hyper::service::service_fn(move |request| answer(request, asked.clone(), files.clone()));
                tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
            }
        });
        Ok(Self { url, asked, _serving: AbortOnDropHandle::new(serving) })
    }

    /// Makes the token of a chunk good, and all others dead.
    pub(super) fn enter(&self) -> CallbackTo {
        let token = format!("tbc_{}", crate::core::ids::fresh());
        self.asked().token = Some(token.clone());
        CallbackTo { url: self.url.clone(), token }
    }

    /// A token that is dead already: its chunk is over.
    pub(super) fn dead(&self) -> CallbackTo {
        self.asked().token = None;
        CallbackTo { url: self.url.clone(), token: format!("tbc_{}", crate::core::ids::fresh()) }
    }

    /// What was asked so far.
    pub(super) fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

type Reply = Result<Response<Full<Bytes>>, Infallible>;

async fn answer(request: Request<Incoming>, asked: Arc<Mutex<Asked>>, files: Arc<BTreeMap<String, Bytes>>) -> Reply {
    let bearer = request.headers().get(header::AUTHORIZATION).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let token = bearer.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let named = request.uri().query().is_some_and(|query| query.starts_with("name="));
    // A body that breaks off is judged as it came.
    let body = request.into_body().collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
    let mut asked = asked.lock().unwrap_or_else(PoisonError::into_inner);
    if asked.token.as_deref() != Some(token.as_str()) {
        return reply(StatusCode::UNAUTHORIZED, &json!({"code": "unauthenticated", "status": 401}));
    }
    let judged = match (method, path.as_str()) {
        (Method::GET, "/lease") => {
            asked.leases += 1;
            return reply(StatusCode::OK, &json!({"current": true, "stopRequested": asked.stop}));
        }
        (Method::GET, path) if path.starts_with("/files/") => {
            return match files.get(&path["/files/".len()..]) {
                Some(bytes) => Ok(Response::new(Full::new(bytes.clone()))),
                None => reply(StatusCode::NOT_FOUND, &json!({"code": "not-found", "status": 404})),
            };
        }
        (Method::POST, "/artifacts") if named => {
            let kept = json!({"id": crate::core::ids::fresh(), "name": "file", "size": body.len(), "sha256": ""});
            return reply(StatusCode::CREATED, &kept);
        }
        (Method::POST, "/progress") => report(&body),
        (Method::POST, "/log") => lines(&body),
        _ => Err("there is no such callback".to_owned()),
    };
    match judged {
        Ok(()) => {
            asked.told += 1;
            Ok(Response::builder().status(StatusCode::NO_CONTENT).body(Full::default()).expect("a status is enough"))
        }
        Err(fault) => {
            asked.faults.push(format!("{path}: {fault}"));
            reply(StatusCode::UNPROCESSABLE_ENTITY, &json!({"code": "invalid", "status": 422, "detail": fault}))
        }
    }
}

fn report(body: &[u8]) -> Result<(), String> {
    let report: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    match Reported::parse(&report) {
        Ok(_) if report.is_object() => Ok(()),
        Ok(_) => Err("must be an object".into()),
        Err(faults) => Err(faults.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

fn lines(body: &[u8]) -> Result<(), String> {
    let body: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let is_line = |line: &Value| line.is_string() || line["message"].is_string();
    let lines = body["lines"].as_array().is_some_and(|lines| lines.iter().all(is_line));
    if lines { Ok(()) } else { Err("lines must be a list of texts".into()) }
}

fn reply(status: StatusCode, body: &Value) -> Reply {
    let answer = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    Ok(answer.body(Full::from(body.to_string())).expect("a status and a type make an answer"))
}
