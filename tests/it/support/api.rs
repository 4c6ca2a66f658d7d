//! The API on a real port, over one node, with a client for each kind of caller.
//!
//! Actions: `ok` succeeds, `fail` fails for good, `rest` rests for hours between two chunks (and so stays running), `hold` never
//! ends its chunk, the others have one rule each.

use super::clock::PushedClock;
use super::ground::Ground;
use super::node::{Node, action, answer, closure};
use reqwest::header::HeaderMap;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;
use taskbell::app::clock::SystemRng;
use taskbell::core::action::{Action, CancelRight, ConcurrencyRule, HandlerRef, IdempotencyRule, OnConflict, Policy};
use taskbell::core::pack::PackBoard;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::resolve::Resolver;
use taskbell::core::task::Hold;
use taskbell::core::time::Millis;
use taskbell::handler::{Handler, HandlerError};
use taskbell::push::{Hub, HubParts, Limits};
use taskbell::store::beside::BesideReader;
use taskbell::store::{Store, User};
use taskbell::web::auth::password::hash_password;
use taskbell::web::auth::{DemoUsers, SignIn, new_api_key, sign_in};
use taskbell::web::{AppState, Parts, WebSettings, router, server};
use tokio_util::sync::CancellationToken;

/// The origin that the rig lists.
pub const LISTED: &str = "https://erp.example.com";

/// A running API.
pub struct Api {
    pub node: Node,
    pub state: AppState,
    pub base: String,
    pub stop: CancellationToken,
    /// Ends when the server has ended.
    pub served: tokio::task::JoinHandle<()>,
    hand: Arc<AtomicI64>,
    _ground: Ground,
}

/// An answer, read whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub text: String,
    pub json: Value,
}

impl Answer {
    /// The code of a problem.
    pub fn code(&self) -> &str {
        self.json["code"].as_str().unwrap_or_default()
    }

    /// The paths of the faults of a problem.
    pub fn paths(&self) -> Vec<&str> {
        let errors = self.json["errors"].as_array().map(Vec::as_slice).unwrap_or_default();
        errors.iter().map(|e| e["path"].as_str().unwrap()).collect()
    }

    /// The id of the task that is the answer.
    pub fn id(&self) -> String {
        self.json["id"].as_str().unwrap_or_else(|| panic!("a task, not {}", self.text)).to_owned()
    }

    /// A header.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|v| v.to_str().unwrap()).unwrap_or_default()
    }
}

/// A caller.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    pub key: Option<String>,
}

impl Client {
    /// The same client with another key.
    pub fn with_key(self, key: Option<String>) -> Self {
        Self { key, ..self }
    }

    /// A request that is not sent yet.
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Answer {
        send(self.request(Method::GET, path)).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Answer {
        send(self.request(Method::POST, path).json(&body)).await
    }

    /// Posts without a body.
    pub async fn ask(&self, path: &str) -> Answer {
        send(self.request(Method::POST, path)).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        send(self.request(Method::DELETE, path)).await
    }

    pub async fn submit(&self, body: Value) -> Answer {
        self.post("/api/v1/tasks", body).await
    }

    /// Submits a task that has to be new; its id.
    pub async fn new_task(&self, body: Value) -> String {
        let answer = self.submit(body).await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.id()
    }

    /// Waits until a task is in a state; for `running`, until it rests between two chunks, and for `held`, until one is under way.
    pub async fn until(&self, id: &str, state: &str) -> Value {
        let what = format!("task {id} is {state}");
        let so = |t: &Value| match state {
            "running" => t["state"] == state && t["waiting"]["reason"] == "delay",
            "held" => t["state"] == "running" && t["waiting"].is_null(),
            _ => t["state"] == state,
        };
        super::eventually(&what, super::node::SOON, async || {
            Some(self.get(&format!("/api/v1/tasks/{id}")).await.json).filter(so)
        })
        .await
    }
}

/// Sends a request.
pub async fn send(request: RequestBuilder) -> Answer {
    let answer = request.send().await.unwrap();
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    let text = answer.text().await.unwrap();
    let json = serde_json::from_str(&text).unwrap_or_default();
    Answer { status, headers, text, json }
}

fn concurrent(key: &str, slot: &str, policy: Policy) -> Action {
    let rule = ConcurrencyRule { key: slot.into(), limit: 1, policy, hold: Hold::Task, max_waiting: 2 };
    Action { concurrency: Some(rule), ..action(key) }
}

/// An action whose chunks workers fetch.
fn pulled(key: &str) -> Action {
    Action { handler: HandlerRef::Pull, ..action(key) }
}

fn actions() -> Vec<(Action, Arc<dyn Handler>)> {
    let ok =
        || closure(|_| async { answer(json!({"hasMore": false, "result": {"done": true}, "current": 3, "total": 3})) });
    let rest = || {
        closure(|_| async {
            answer(json!({"hasMore": true, "checkpoint": {"at": 1}, "nextDelaySeconds": 3600, "current": 1, "total": 4,
                "message": "resting"}))
        })
    };
    let fail = || closure(|_| async { Err(HandlerError::permanent("broken", "It is broken.")) });
    let by_record = |conflict| Some(IdempotencyRule { fields: vec!["record.id".into()], keep_ms: None, conflict });
    let keys = |conflict| Some(IdempotencyRule { fields: Vec::new(), keep_ms: None, conflict });
    let file = json!({"type": "object", "required": ["file"], "additionalProperties": false,
        "properties": {"file": {"type": "string", "title": "File", "x-i18n": {"zh-CN": {"title": "文件"}}}}});
    vec![
        (action("ok"), ok()),
        (action("rest"), rest()),
        (action("fail"), fail()),
        (Action { chunk_timeout_ms: 600_000, ..action("hold") }, closure(|_| std::future::pending())),
        (Action { roles: vec![Role::Admin], ..action("for-admins") }, ok()),
        (Action { params: file, ..action("with-file") }, ok()),
        (Action { idempotency: by_record(OnConflict::Return), ..action("by-record") }, rest()),
        (Action { idempotency: keys(OnConflict::Reject), ..action("key-rejects") }, rest()),
        (Action { record: Some("import".into()), ..action("on-imports") }, rest()),
        (Action { cancel: CancelRight::Operator, ..action("operators-cancel") }, rest()),
        (pulled("pulled"), ok()),
        (Action { chunk_timeout_ms: 1_500, ..pulled("pulled-soon") }, ok()),
        (concurrent("named", "{request}", Policy::Wait), rest()),
        (concurrent("rejects", "rejects", Policy::Reject), rest()),
        (concurrent("skips", "skips", Policy::Skip), rest()),
    ]
}

impl Api {
    /// Starts it.
    pub async fn start() -> Self {
        Self::start_as(None, |_| {}).await
    }

    /// Starts it as the demo.
    pub async fn start_demo() -> Self {
        Self::start_as(Some(DemoUsers::default()), |_| {}).await
    }

    /// Starts it with other settings.
    pub async fn start_set(set: impl FnOnce(&mut WebSettings)) -> Self {
        Self::start_as(None, set).await
    }

    async fn start_as(demo: Option<DemoUsers>, set: impl FnOnce(&mut WebSettings)) -> Self {
        let ground = Ground::usual().await;
        let node = Node::start(&ground, actions()).await;
        let store: Arc<dyn Store> = node.store.clone();
        let clock = Arc::new(PushedClock::default());
        let hand = clock.hand();
        let hub = Hub::start(HubParts {
            store: store.clone(),
            logs: node.logs.clone(),
            bus: node.bus.clone(),
            catalogue: node.catalogue.clone(),
            clock: clock.clone(),
            rng: Arc::new(SystemRng),
            limits: Limits::default(),
        });
        let mut settings = WebSettings { allowed_origins: vec![LISTED.to_owned()], ..WebSettings::default() };
        set(&mut settings);
        let state = AppState::new(Parts {
            store: store.clone(),
            logs: node.logs.clone(),
            files: node.files.clone(),
            commands: node.commands.clone(),
            chunk_calls: node.engine.chunk_calls(),
            workers: node.workers.clone(),
            resolver: Resolver::new(node.catalogue.clone()).unwrap().into(),
            catalogue: node.catalogue.clone(),
            hub,
            beside: Arc::new(BesideReader::new(store, node.catalogue.clone())),
            clock,
            settings,
            demo,
            packs: PackBoard::default(),
            numbers: taskbell::telemetry::measures::start(),
            draining: Arc::new(AtomicBool::new(false)),
        });
        let listener = server::listen("127.0.0.1:0".parse().unwrap()).unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let stop = CancellationToken::new();
        let served = tokio::spawn(server::serve(listener, router(state.clone()), stop.clone(), Duration::from_secs(2)));
        Self { node, state, base, stop, served, hand, _ground: ground }
    }

    /// Nobody.
    pub fn nobody(&self) -> Client {
        Client { http: reqwest::Client::new(), base: self.base.clone(), key: None }
    }

    /// A caller with a key.
    pub async fn with(&self, principal: Principal) -> Client {
        let (key, row) = new_api_key(principal, None, Millis(0)).unwrap();
        self.node.store.put_api_key(row).await.unwrap();
        self.nobody().with_key(Some(key))
    }

    /// A user of the tenant `default`, with the usual scopes of the role.
    pub async fn caller(&self, user: &str, role: Role) -> Client {
        self.with(principal("default", user, role)).await
    }

    /// A user.
    pub async fn alice(&self) -> Client {
        self.caller("alice", Role::User).await
    }

    /// A worker of a tenant.
    pub async fn worker(&self, tenant: &str) -> Client {
        self.with(Principal { scopes: vec![Scope::Worker], ..principal(tenant, "worker", Role::User) }).await
    }

    /// An operator.
    pub async fn olga(&self) -> Client {
        self.caller("olga", Role::Operator).await
    }

    /// The secret of a fresh session.
    pub async fn session(&self, principal: Principal) -> String {
        let who = SignIn::of_demo(principal);
        sign_in(self.node.store.as_ref(), who, self.state.clock.now()).await.unwrap()
    }

    /// A user with a password.
    pub async fn user(&self, name: &str, role: Role, password: &str) {
        let (now, password) = (self.state.clock.now(), hash_password(password).unwrap());
        let tenant = "default".to_owned();
        let user = User { name: name.into(), tenant, role, password, created_at: now, updated_at: now };
        assert!(self.state.store.add_user(user).await.unwrap());
    }

    /// Lets time pass for the web and the push.
    pub fn pass(&self, ms: i64) {
        self.hand.fetch_add(ms, Ordering::SeqCst);
    }
}

/// A principal with the usual scopes of its role.
pub fn principal(tenant: &str, user: &str, role: Role) -> Principal {
    Principal { tenant: tenant.into(), user: user.into(), role, scopes: Scope::default_for(role) }
}
