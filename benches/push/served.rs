//! taskbell under measurement: a node on a SQLite file with full durability, its engine, its hub and its web server, as the
//! binary puts them together. A room is a running task that everybody in it has subscribed to.
//!
//! A report goes the whole way: handler, store, bus, hub, socket. A round is put on the bus as if its commits had just been
//! made, for it is the push that is measured there and not the disk.

use crate::child::{Door, Kind, Order, now_us, tell};
use crate::support::ground::Ground;
use crate::support::node::{Node, action, short_settings};
use crate::swarm::CENTER_TASKS;
use async_trait::async_trait;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use taskbell::app::clock::{SystemClock, SystemRng};
use taskbell::bus::Signal;
use taskbell::core::action::Action;
use taskbell::core::change::Change;
use taskbell::core::chunk::Outcome;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::progress::Reported;
use taskbell::core::resolve::Resolver;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::{State, Task};
use taskbell::core::time::Millis;
use taskbell::engine::EngineSettings;
use taskbell::handler::{ChunkContext, Handler, HandlerError};
use taskbell::push::{Hub, HubParts, Limits};
use taskbell::store::beside::BesideReader;
use taskbell::web::auth::new_api_key;
use taskbell::web::{AppState, Parts, WebSettings, router, server};
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;

const TENANT: &str = "default";

/// Reports when it is told to.
struct Reporter(broadcast::Sender<usize>);

#[async_trait]
impl Handler for Reporter {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let mut told = self.0.subscribe();
        let room = cx.chunk_in().task.params["room"].as_u64().unwrap() as usize;
        loop {
            tokio::select! {
                () = cx.stopped() => return Err(HandlerError::HandedBack),
                said = told.recv() => if said.is_ok_and(|said| said == room) {
                    cx.report(report());
                },
            }
        }
    }
}

fn report() -> Reported {
    Reported { current: Some(now_us()), total: Some(Some(9_000_000_000_000_000)), ..Reported::default() }
}

fn user(n: usize) -> Principal {
    let (tenant, user, role) = (TENANT.to_owned(), format!("user-{n}"), Role::Operator);
    Principal { tenant, user, role, scopes: Scope::default_for(role) }
}

fn click(action: &str, owner: usize, room: usize) -> Submit {
    Submit {
        run_at: (action == "later").then_some(Millis(4_000_000_000_000)),
        ..Submit::new(user(owner), action, serde_json::json!({ "room": room }))
    }
}

/// Serves until the orders end.
pub async fn serve(kind: Kind, rooms: usize, users: usize, mut orders: mpsc::UnboundedReceiver<Order>) {
    let ground = Ground::sqlite().await;
    let spoken = broadcast::Sender::new(1_024);
    let reporter: Arc<dyn Handler> = Arc::new(Reporter(spoken.clone()));
    let handlers =
        ["report", "later"].map(|key| (Action { chunk_timeout_ms: 3_600_000, ..action(key) }, reporter.clone()));
    let settings = EngineSettings { parallelism: rooms.max(1), lease_ms: 30_000, ..short_settings() };
    let node = Node::start_with(&ground, handlers.into(), settings).await;
    let mut tasks = Vec::new();
    for room in 0..rooms {
        tasks.push(node.click(click("report", users + room, room)).await);
    }
    for task in &mut tasks {
        node.until(*task, State::Running).await;
    }
    let limits =
        Limits { node_connections: 20_000, address_connections: 20_000, user_connections: 100, ..Limits::default() };
    let limits = match kind {
        Kind::Unpaced => Limits { progress_ms: 0, state_ms: 0, ..limits },
        _ => limits,
    };
    let port = listen(&node, limits).await;
    let keys = keys(&node, users).await;
    let topics = tasks.iter().map(|id| format!("task:{id}")).collect();
    tell(&Door { port, keys, topics });
    let mut latest = Vec::new();
    for id in tasks {
        latest.push(node.task(id).await);
    }
    while let Some(order) = orders.recv().await {
        match order {
            Order::Report(room) => drop(spoken.send(room)),
            Order::Round => {
                latest.iter_mut().for_each(go_on);
                let changes = latest.iter().map(|task| Change::Task(Box::new(task.clone())));
                node.bus.publish(Signal::Changes(changes.collect()));
            }
        }
    }
}

/// A task after one more report.
fn go_on(task: &mut Task) {
    task.revision = task.revision.next();
    task.progress.current = now_us();
}

/// Keys of as many users, each with tasks of its own that start much later.
async fn keys(node: &Node, users: usize) -> Vec<String> {
    let mut keys = Vec::with_capacity(users);
    for n in 0..users {
        let (key, row) = new_api_key(user(n), None, Millis(0)).unwrap();
        node.store.put_api_key(row).await.unwrap();
        keys.push(key);
    }
    let clicks: Vec<Submit> = (0..users * CENTER_TASKS).map(|n| click("later", n / CENTER_TASKS, 0)).collect();
    for part in clicks.chunks(500) {
        let written = node.store.submit(part.to_vec()).await.unwrap();
        assert!(written.answer.iter().all(|one| matches!(one, Submitted::Created(_))));
    }
    keys
}

/// Starts the hub and the web server; its port.
async fn listen(node: &Node, limits: Limits) -> u16 {
    let clock = Arc::new(SystemClock::default());
    let hub = Hub::start(HubParts {
        store: node.store.clone(),
        logs: node.logs.clone(),
        bus: node.bus.clone(),
        catalogue: node.catalogue.clone(),
        clock: clock.clone(),
        rng: Arc::new(SystemRng),
        limits,
    });
    let state = AppState::new(Parts {
        store: node.store.clone(),
        logs: node.logs.clone(),
        files: node.files.clone(),
        commands: node.commands.clone(),
        chunk_calls: node.engine.chunk_calls(),
        workers: node.workers.clone(),
        resolver: Resolver::new(node.catalogue.clone()).unwrap().into(),
        catalogue: node.catalogue.clone(),
        hub,
        beside: Arc::new(BesideReader::new(node.store.clone(), node.catalogue.clone())),
        clock,
        settings: WebSettings::default(),
        demo: None,
        packs: taskbell::core::pack::PackBoard::default(),
        numbers: taskbell::telemetry::measures::start(),
        draining: Arc::new(AtomicBool::new(false)),
    });
    let listener = server::listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(server::serve(listener, router(state), CancellationToken::new(), Duration::from_secs(1)));
    port
}
