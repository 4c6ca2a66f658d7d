//! T13: a crowd of pages before a real server, while its users' tasks change all the time. Sockets are cut, readers stare
//! into the air, snapshots reach their pages late. In the end every page shows what the database holds, no version ever
//! fell, and the server has not grown.
//!
//! `TASKBELL_TEST_LONG=1` runs the whole form: 1,000 pages of 200 users, 300 changes a second for 90 s, 100 cuts, 50 slow
//! readers, and every page true within 2 s.

use super::page::{Page, Plan, keys, name, resident_bytes, store_of};
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec};
use crate::support::{eventually, on_each_database};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use taskbell::store::Store;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Memory that the server may have, bytes.
const MOST_BYTES: u64 = 400 << 20;
/// Tasks of one user, so that all of them fit into a snapshot.
const TASKS: usize = 12;
/// Clients of the API at once.
const CLICKERS: usize = 8;
/// Handshakes at once.
const AT_ONCE: usize = 32;
/// How long a slow reader stares, and how often it does.
const STARE: Duration = Duration::from_secs(2);
pub const SCRIPT: &str = "export default () => ({ hasMore: false });\n";

struct Size {
    users: usize,
    pages_of_one: usize,
    changes_per_second: u32,
    time: Duration,
    cuts: u64,
    slow: usize,
    true_within: Duration,
}

pub fn long() -> bool {
    std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1")
}

impl Size {
    fn usual() -> Self {
        match long() {
            true => Self {
                users: 200,
                pages_of_one: 5,
                changes_per_second: 300,
                time: Duration::from_secs(90),
                cuts: 100,
                slow: 50,
                true_within: Duration::from_secs(2),
            },
            // The true time is the machine's here: the other tests run beside.
            false => Self {
                users: 30,
                pages_of_one: 5,
                changes_per_second: 40,
                time: Duration::from_secs(8),
                cuts: 20,
                slow: 10,
                true_within: Duration::from_secs(15),
            },
        }
    }
}

/// A server with an action whose tasks start when the test says so, which is never.
pub async fn server(ground: Arc<Ground>, spec: impl FnOnce(Spec) -> Spec) -> Server {
    let script = ground.path().join("noop.js");
    std::fs::write(&script, SCRIPT).unwrap();
    let config = format!("[[actions]]\nkey = \"noop\"\nhandler = {{ script = {script:?} }}\n");
    // All pages of a test come from one address.
    let usual = Spec::with_config(&config).env("TASKBELL__PUSH__CONNECTIONS_PER_ADDRESS", "10000");
    spec(usual).start_on(ground).await
}

on_each_database! {
    t13_every_page_of_a_crowd_ends_with_what_the_database_holds
}

async fn t13_every_page_of_a_crowd_ends_with_what_the_database_holds(ground: Arc<Ground>) {
    let size = Size::usual();
    let server = server(ground, |spec| spec).await;
    let store = store_of(&server).await;
    let keys = keys(store.as_ref(), size.users, Role::User).await;
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let pages: Vec<Page> = (0..size.users * size.pages_of_one)
        .map(|n| {
            let owner = n % size.users;
            let plan =
                Plan { ports: vec![server.port()], key: keys[owner].clone(), blink_ms: 0..500, gate: gate.clone() };
            Page::open(owner, plan)
        })
        .collect();
    let all_in = async || pages.iter().all(|page| page.story(|s| s.connected)).then_some(());
    eventually("every page is connected", Duration::from_secs(60), all_in).await;

    let mut clicking = JoinSet::new();
    let every = Duration::from_secs(CLICKERS as u64) / size.changes_per_second;
    for clicker in 0..CLICKERS {
        let clients: Vec<Client> =
            keys.iter().skip(clicker).step_by(CLICKERS).map(|key| Client::new(&server.url(), key)).collect();
        clicking.spawn(click(clients, every, size.time));
    }
    disturb(&pages, &size).await;
    let changes: usize = clicking.join_all().await.into_iter().sum();
    assert!(changes >= size.time.as_secs() as usize * size.changes_per_second as usize / 4, "{changes} changes");

    eventually("every page is back", Duration::from_secs(60), all_in).await;
    let end = Instant::now() + size.true_within;
    for page in &pages {
        let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(100));
        assert_true(page, store.as_ref(), left).await;
    }
    let bytes = resident_bytes(&server);
    assert!(bytes < MOST_BYTES, "the server has {} MiB", bytes >> 20);
}

/// Waits until a page shows what the database holds.
pub async fn assert_true(page: &Page, store: &dyn Store, limit: Duration) {
    let owner = name(page.owner);
    let truth = async || {
        let center = store.center("default", &owner).await.unwrap();
        page.story(|story| {
            assert_eq!(story.model.fault, None, "{owner}");
            story.model.is(&center).then_some(())
        })
    };
    eventually(&format!("a page of {owner} is true"), limit, truth).await;
}

/// Changes tasks of some users, one after the other, for a while; how many times.
pub async fn click(clients: Vec<Client>, every: Duration, time: Duration) -> usize {
    let mut tasks: Vec<Vec<String>> = vec![Vec::new(); clients.len()];
    let (mut pace, end, mut count) = (tokio::time::interval(every), Instant::now() + time, 0);
    while Instant::now() < end {
        pace.tick().await;
        let n = rand::random_range(0..clients.len());
        // A node that goes answers no more; what was asked then is asked again another time.
        count += usize::from(change(&clients[n], &mut tasks[n]).await);
    }
    count
}

/// One change: a new task, a cancel, a mark, or the end of a row.
async fn change(client: &Client, tasks: &mut Vec<String>) -> bool {
    if tasks.len() < TASKS {
        let body = json!({"action": "noop", "runAt": "2100-01-01T00:00:00Z"});
        let (status, _, task) = client.try_post("/api/v1/tasks", &body).await;
        tasks.extend(task["id"].as_str().map(str::to_owned));
        return status == 201;
    }
    let id = tasks[rand::random_range(0..tasks.len())].clone();
    let (path, body) = match rand::random_range(0..4) {
        0 => ("/api/v1/notifications/seen".to_owned(), json!({ "ids": [id] })),
        1 => ("/api/v1/notifications/read".to_owned(), json!({ "ids": [id] })),
        2 => (format!("/api/v1/tasks/{id}/cancel"), Value::Null),
        _ => {
            tasks.retain(|known| *known != id);
            ("/api/v1/notifications/archive".to_owned(), json!({ "ids": [id] }))
        }
    };
    client.try_post(&path, &body).await.0 < 300
}

/// Cuts pages and lets some stare, all the while.
async fn disturb(pages: &[Page], size: &Size) {
    let mut pace = tokio::time::interval(size.time / size.cuts as u32);
    let (slow, others) = pages.split_at(size.slow);
    let mut stares_since = None::<Instant>;
    for cut in 1..=size.cuts {
        pace.tick().await;
        others[rand::random_range(0..others.len())].cut(cut);
        match stares_since {
            Some(since) if since.elapsed() > STARE => {
                slow.iter().for_each(|page| page.stare(false));
                stares_since = None;
            }
            Some(_) => {}
            None => {
                slow.iter().for_each(|page| page.stare(true));
                stares_since = Some(Instant::now());
            }
        }
    }
    slow.iter().for_each(|page| page.stare(false));
}
