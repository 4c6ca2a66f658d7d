//! A node's store, bus and hub, with the steps by which a test moves tasks: each commits and then tells the bus, as the
//! engine does.

use super::peer::Peer;
use crate::support::ground::Ground;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime};
use taskbell::bus::{LocalBus, Signal};
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::effect::Effect;
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::lifecycle::{Ask, ChunkEnd};
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::progress::Reported;
use taskbell::core::retry::RetryPolicy;
use taskbell::core::submit::Submit;
use taskbell::core::task::{RecordRef, Task};
use taskbell::core::time::{Clock, Millis, Mono, Rng};
use taskbell::core::view::Catalogue;
use taskbell::push::{Hub, HubParts, Identity, Limits, Opening};
use taskbell::store::logs::{Append, Level, LogLimits, LogStore, MemoryLogs, NewLine};
use taskbell::store::{
    ApiKey, AskParams, ChunkCommit, ClaimParams, Mark, MarkFilter, MarkParams, Report, Store, Written,
};

/// The machine's time, with a wall clock that a test may move; the database's moves with it.
struct ShiftedClock {
    start: Instant,
    shift_ms: Arc<AtomicI64>,
}

impl Clock for ShiftedClock {
    fn now(&self) -> Millis {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        Millis(since.as_millis() as i64 + self.shift_ms.load(Ordering::Relaxed))
    }

    fn mono(&self) -> Mono {
        Mono(self.start.elapsed().as_millis() as u64)
    }
}

/// No spread: what may wait a random time waits a tenth of the longest.
struct Tenth;

impl Rng for Tenth {
    fn unit(&self) -> f64 {
        0.1
    }
}

pub struct World {
    pub store: Arc<dyn Store>,
    pub logs: Arc<MemoryLogs>,
    pub bus: LocalBus,
    pub hub: Arc<Hub>,
    /// What a commit would tell is kept here instead, where a test wants to be the bus.
    pub held: Mutex<Option<Vec<Signal>>>,
    shift_ms: Arc<AtomicI64>,
    _ground: Ground,
}

pub fn user(name: &str) -> Principal {
    let scopes = Scope::default_for(Role::User);
    Principal { tenant: "t".into(), user: name.into(), role: Role::User, scopes }
}

pub fn identity(principal: Principal) -> Identity {
    Identity { principal, expires_at: None, credential: None }
}

/// Tokens in these tests are names of users.
pub fn opening(identity: Option<Identity>) -> Opening {
    let authenticate = Arc::new(|token: String| {
        let found = token.strip_prefix("tb_").map(|name| self::identity(user(name)));
        Box::pin(async move { found }) as futures_util::future::BoxFuture<'static, _>
    });
    Opening { identity, address: None, authenticate }
}

impl World {
    pub async fn open() -> Self {
        Self::with(Limits::default()).await
    }

    pub async fn with(limits: Limits) -> Self {
        Self::on(Ground::usual().await, limits).await
    }

    pub async fn on(ground: Ground, limits: Limits) -> Self {
        let shift_ms = Arc::new(AtomicI64::new(0));
        let store = ground.open_shifted(shift_ms.clone()).await;
        let logs = Arc::new(MemoryLogs::new(LogLimits::default()));
        let bus = LocalBus::default();
        let hub = Hub::start(HubParts {
            store: store.clone(),
            logs: logs.clone(),
            bus: bus.clone(),
            catalogue: Arc::new(Catalogue { open_records: ["shared".to_owned()].into(), ..Catalogue::default() }),
            clock: Arc::new(ShiftedClock { start: Instant::now(), shift_ms: shift_ms.clone() }),
            rng: Arc::new(Tenth),
            limits,
        });
        Self { store, logs, bus, hub, held: Mutex::default(), shift_ms, _ground: ground }
    }

    /// Lets the wall clocks go on by `ms`.
    pub fn pass(&self, ms: i64) {
        self.shift_ms.fetch_add(ms, Ordering::Relaxed);
    }

    /// A key of alice by this hash.
    pub async fn key(&self, hash: &str) {
        let now = self.store.now().await.unwrap();
        let key = ApiKey { hash: hash.into(), principal: user("alice"), created_at: now, expires_at: None };
        self.store.put_api_key(key).await.unwrap();
    }

    /// Takes the table of tasks away, or gives it back: the database answers, and cannot be read.
    pub async fn hide_tasks(&self, hide: bool) {
        let sql = match hide {
            true => "ALTER TABLE taskbell_tasks RENAME TO hidden_tasks",
            false => "ALTER TABLE hidden_tasks RENAME TO taskbell_tasks",
        };
        self.store.execute(vec![Effect { sql, rows: vec![Vec::new()] }]).await.unwrap();
    }

    /// A connection before its hello.
    pub fn connect(&self, opening: Opening) -> Peer {
        let (peer, end) = Peer::pair();
        tokio::spawn(self.hub.serve(end, opening));
        peer
    }

    /// A connection that said hello and was welcomed.
    pub async fn enter(&self, who: Principal, have: Value) -> Peer {
        let mut peer = self.connect(opening(Some(identity(who))));
        peer.send(json!({"t": "hello", "token": null, "have": have, "lang": "en"}));
        peer.frame("welcome").await;
        peer
    }

    /// A connection that has its snapshot too.
    pub async fn watch(&self, name: &str) -> (Peer, Value) {
        let mut peer = self.enter(user(name), Value::Null).await;
        let snap = peer.frame("snap").await;
        (peer, snap)
    }

    /// Tells the bus, if it is to know.
    fn tell<T>(&self, written: Written<T>, aloud: bool) -> T {
        let signal = Signal::Changes(written.changes.into());
        match &mut *self.held.lock().unwrap() {
            Some(held) => held.push(signal),
            None if aloud => self.bus.publish(signal),
            None => {}
        }
        written.answer
    }

    pub async fn submit(&self, owner: &str) -> TaskId {
        self.submit_titled(owner, "a task", true).await
    }

    pub async fn submit_silently(&self, owner: &str) -> TaskId {
        self.submit_titled(owner, "a task", false).await
    }

    pub async fn submit_titled(&self, owner: &str, title: &str, aloud: bool) -> TaskId {
        self.submit_all(owner, title, None, aloud).await
    }

    pub async fn submit_on_record(&self, owner: &str, kind: &str, id: &str) -> TaskId {
        self.submit_all(owner, "a task", Some(RecordRef { kind: kind.into(), id: id.into() }), true).await
    }

    pub async fn submit_on_record_silently(&self, owner: &str, kind: &str, id: &str) -> TaskId {
        self.submit_all(owner, "a task", Some(RecordRef { kind: kind.into(), id: id.into() }), false).await
    }

    /// A task of a record, that runs.
    pub async fn start_on_record(&self, owner: &str, kind: &str, id: &str) -> (TaskId, FencingToken) {
        let id = self.submit_on_record(owner, kind, id).await;
        (id, self.claim(id).await)
    }

    async fn submit_all(&self, owner: &str, title: &str, record: Option<RecordRef>, aloud: bool) -> TaskId {
        let id = TaskId::new();
        let submit = Submit { id, title: Some(title.into()), record, ..Submit::new(user(owner), "work", json!({})) };
        self.tell(self.store.submit(vec![submit]).await.unwrap(), aloud);
        id
    }

    /// Claims all that is due.
    pub async fn claim_all(&self) -> Vec<(TaskId, FencingToken)> {
        let params = ClaimParams {
            node: "n".into(),
            actions: vec!["work".into()],
            packs: Vec::new(),
            tenants: Vec::new(),
            limit: 100,
            lease_ms: 600_000,
            after_tenant: None,
            many_wait: false,
            seats: None,
        };
        let claimed = self.tell(self.store.claim(params).await.unwrap(), true);
        claimed.iter().map(|c| (c.task.id, c.task.fencing_token)).collect()
    }

    /// Claims all that is due and answers with the token of `id`.
    pub async fn claim(&self, id: TaskId) -> FencingToken {
        let claimed = self.claim_all().await;
        claimed.iter().find(|(claimed, _)| *claimed == id).expect("it was due").1
    }

    /// A task that runs.
    pub async fn start(&self, owner: &str) -> (TaskId, FencingToken) {
        let id = self.submit(owner).await;
        (id, self.claim(id).await)
    }

    pub async fn report(&self, id: TaskId, token: FencingToken, current: i64, aloud: bool) {
        let report = Reported { current: Some(current), total: Some(Some(1_000)), ..Reported::default() };
        self.tell(self.store.report(vec![Report { task: id, token, report }]).await.unwrap(), aloud);
    }

    pub async fn finish(&self, id: TaskId, token: FencingToken, aloud: bool) {
        let outcome = Outcome::Done { result: None, told: Told::default() };
        let commit = ChunkCommit {
            task: id,
            token,
            chunk: 1,
            end: ChunkEnd::Answered(Box::new(outcome)),
            effects: Vec::new(),
            children: Vec::new(),
            retry: RetryPolicy::default(),
            unit_random: 0.5,
            continue_for_ms: None,
        };
        self.tell(self.store.commit(vec![commit]).await.unwrap(), aloud);
    }

    pub async fn cancel(&self, owner: &str, id: TaskId) {
        let params = AskParams { caller: user(owner), task: id, ask: Ask::Cancel, reason: None };
        self.tell(self.store.ask(vec![params]).await.unwrap(), true);
    }

    pub async fn delete(&self, owner: &str, id: TaskId) {
        self.tell(self.store.delete(&user(owner), vec![id]).await.unwrap(), true);
    }

    pub async fn mark_seen(&self, owner: &str, id: TaskId) {
        let params = MarkParams {
            tenant: "t".into(),
            owner: owner.into(),
            mark: Mark::Seen,
            ids: vec![id],
            up_to: None,
            filter: MarkFilter::default(),
        };
        self.tell(self.store.mark(params).await.unwrap(), true);
        self.bus.publish(Signal::Marked { tenant: "t".into(), owner: owner.into() });
    }

    pub async fn log(&self, id: TaskId, lines: std::ops::RangeInclusive<i64>) {
        let newest = *lines.end();
        self.log_silently(id, lines).await;
        self.bus.publish(Signal::LogGrew { task: id, newest });
    }

    pub async fn log_silently(&self, id: TaskId, lines: std::ops::RangeInclusive<i64>) {
        let line = |n| NewLine {
            at: Millis(0),
            level: Level::Info,
            source: "handler",
            chunk: 1,
            message: format!("line {n}"),
        };
        let append = Append { tenant: "t".into(), task: id, token: FencingToken(1), lines: lines.map(line).collect() };
        self.logs.append(vec![append]).await.unwrap();
    }

    pub async fn head(&self, owner: &str) -> i64 {
        self.store.head("t", owner).await.unwrap().0
    }

    pub async fn task(&self, id: TaskId) -> Task {
        self.store.tasks(&Default::default(), &[id]).await.unwrap().pop().unwrap()
    }
}
