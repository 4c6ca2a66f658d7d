//! The lines between nodes, their database and Redis are cut in every way: each node that is cut off says what it misses, its
//! work goes on elsewhere, and when the lines are whole again every node has all its connections.

use crate::rig::nodes::{Nodes, Work};
use crate::rig::{PATIENCE, dice, long, test};
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::proxy::{Line, Proxy};
use crate::support::redis::Redis;
use futures_util::future::join_all;
use libtest_mimic::Trial;
use rand::RngExt as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub fn tests() -> Vec<Trial> {
    vec![
        test(
            "lines_that_are_cut_in_every_way_lose_nothing_and_each_node_says_what_it_misses",
            lines_that_are_cut_in_every_way_lose_nothing_and_each_node_says_what_it_misses,
        ),
        test(
            "e1_a_node_whose_line_stalls_drops_its_work_when_its_lease_ends_and_its_late_writes_are_refused",
            e1_a_node_whose_line_stalls_drops_its_work_when_its_lease_ends_and_its_late_writes_are_refused,
        ),
        test("e8_a_slow_line_to_the_database_loses_no_lease", e8_a_slow_line_to_the_database_loses_no_lease),
        test("e8_effects_that_take_longer_than_a_lease_lose_none", e8_effects_that_take_longer_than_a_lease_lose_none),
        test(
            "e9_nodes_that_come_back_across_a_due_time_run_due_work_once",
            e9_nodes_that_come_back_across_a_due_time_run_due_work_once,
        ),
    ]
}

const SETTINGS: [(&str, &str); 6] = [
    // Every node is full, so that each has something to lose.
    ("ENGINE__PARALLELISM", "4"),
    ("ENGINE__LEASE_MS", "3000"),
    ("ENGINE__HEARTBEAT_MS", "1000"),
    ("ENGINE__SWEEP_MS", "500"),
    ("ENGINE__POLL_MS", "500"),
    ("DATABASE__CONNECTIONS", "5"),
];
const CONNECTIONS: i64 = 5;
/// What all work may take at most.
const LONGEST: Duration = Duration::from_secs(240);
/// Longer than a connection waits for an answer that never comes.
const WHOLE: Duration = Duration::from_secs(90);
const LINES: [Line; 7] =
    [Line::Stalled, Line::Cut, Line::Reset, Line::Lost, Line::RequestsLost, Line::RepliesLost, Line::RepliesCut];

/// Nodes with a line of its own for each to the database, which knows each by a user of its own.
struct Net {
    nodes: Arc<Nodes>,
    databases: Vec<Proxy>,
    redises: Vec<Proxy>,
    _redis: Option<Redis>,
}

impl Net {
    async fn start(count: usize, with_redis: bool, settings: &[(&str, &str)]) -> Self {
        let ground = Arc::new(Ground::postgres().await);
        let database = ground.database().unwrap();
        let redis = if with_redis { Some(Redis::start(&[]).await) } else { None };
        let (mut databases, mut redises, mut urls) = (Vec::new(), Vec::new(), Vec::new());
        for n in 0..count {
            let (user, proxy) = (user(database.name(), n), Proxy::before(database.port()).await);
            database.execute(&format!("CREATE ROLE {user} LOGIN SUPERUSER PASSWORD 'p'")).await;
            let mut url = url::Url::parse(&database.url_as(&user, "p")).unwrap();
            url.set_port(Some(proxy.port())).unwrap();
            let mut own = vec![("TASKBELL__DATABASE__URL".to_owned(), url.to_string())];
            databases.push(proxy);
            if let Some(redis) = &redis {
                let proxy = Proxy::before(redis.port()).await;
                own.push(("TASKBELL__REDIS__URL".to_owned(), format!("redis://127.0.0.1:{}", proxy.port())));
                redises.push(proxy);
            }
            urls.push(own);
        }
        let nodes = Nodes::start_each(ground.clone(), count, settings, |n| urls[n].clone()).await;
        Self { nodes: Arc::new(nodes), databases, redises, _redis: redis }
    }

    /// Clicks so many times, from several sides at once.
    fn click(&self, name: &str, count: usize, work: Work) -> Vec<tokio::task::JoinHandle<()>> {
        let click = |side: usize| {
            let (nodes, name) = (self.nodes.clone(), name.to_owned());
            tokio::spawn(async move {
                for n in (side..count).step_by(8) {
                    nodes.click(&format!("{name} {n}"), work, false).await;
                }
            })
        };
        (0..8).map(click).collect()
    }

    /// How a node says that its parts are.
    async fn part(&self, node: usize, part: &str) -> Option<String> {
        let (_, text) = self.nodes.get(node, "/readyz").await?;
        let ready: serde_json::Value = serde_json::from_str(&text).ok()?;
        Some(ready["parts"][part].as_str()?.to_owned())
    }

    /// Every node can use every connection that it may have: the tasks are held up until all of them wait.
    async fn assert_pools_are_whole(&self) {
        let database = self.nodes.ground.database().unwrap();
        for n in 0..self.databases.len() {
            let path = "/api/v1/tasks";
            eventually("the node answers", WHOLE, async || (self.nodes.get(n, path).await?.0 == 200).then_some(()))
                .await;
            let sql = format!(
                "SELECT COUNT(*) FROM pg_stat_activity WHERE usename = '{}' AND wait_event_type = 'Lock'",
                user(database.name(), n)
            );
            let end = Instant::now() + WHOLE;
            loop {
                let mut c = database.connect().await;
                sqlx::raw_sql("BEGIN; LOCK TABLE taskbell_tasks IN ACCESS EXCLUSIVE MODE")
                    .execute(&mut c)
                    .await
                    .unwrap();
                let asked: Vec<_> = (0..3 * CONNECTIONS)
                    .map(|_| {
                        let nodes = self.nodes.clone();
                        tokio::spawn(async move { nodes.get(n, path).await.map(|(status, _)| status) })
                    })
                    .collect();
                let (mut most, round) = (0, Instant::now());
                while most < CONNECTIONS && round.elapsed() < Duration::from_secs(8) {
                    let query = sqlx::query_scalar(sqlx::AssertSqlSafe(sql.clone()));
                    most = query.fetch_one(&mut c).await.unwrap();
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                sqlx::raw_sql("ROLLBACK").execute(&mut c).await.unwrap();
                join_all(asked).await;
                if most >= CONNECTIONS {
                    break;
                }
                assert!(Instant::now() < end, "node {n} can use {most} of {CONNECTIONS} connections");
            }
        }
    }
}

fn user(database: &str, n: usize) -> String {
    format!("{database}_n{n}")
}

/// Proves: G2, G3, G4.
async fn lines_that_are_cut_in_every_way_lose_nothing_and_each_node_says_what_it_misses() {
    let (tasks, cuts, longest_ms) = if long() { (500, 40, 20_000) } else { (60, 7, 2_000) };
    let work = Work { chunks: 5, items: 2, pause: Duration::from_millis(200) };
    let net = Net::start(3, true, &SETTINGS).await;
    let mut dice = dice("partitions");
    let clicks = net.click("cut", tasks, work);
    let mut told = [Duration::ZERO; 2];
    for cut in 0..cuts {
        let (node, line) = (dice.random_range(0..3), LINES[cut % LINES.len()]);
        let lasts = Duration::from_millis(dice.random_range(500..longest_ms));
        // Redis every third time.
        let (proxy, part, which) = match cut % 3 {
            2 => (&net.redises[node], "redis", 1),
            _ => (&net.databases[node], "database", 0),
        };
        let from = Instant::now();
        proxy.becomes(line);
        eventually(&format!("{line:?}: node {node} says that its {part} is away"), PATIENCE, async || {
            net.part(node, part).await.filter(|word| word != "ok")
        })
        .await;
        told[which] = told[which].max(from.elapsed());
        tokio::time::sleep(lasts.saturating_sub(from.elapsed())).await;
        proxy.mend();
        eventually(&format!("{line:?}: node {node} says that its {part} is back"), WHOLE, async || {
            net.part(node, part).await.filter(|word| word == "ok")
        })
        .await;
    }
    for click in clicks {
        click.await.unwrap();
    }
    net.nodes.all_ended(PATIENCE).await;
    net.assert_pools_are_whole().await;
    let lost = net.nodes.settle(work, false).await;
    println!("{cuts} cuts, {tasks} tasks, {lost} leases lost; told after at most {told:?} (database, Redis)");
}

/// Proves: G2, G4.
async fn e1_a_node_whose_line_stalls_drops_its_work_when_its_lease_ends_and_its_late_writes_are_refused() {
    let work = Work { chunks: 2, items: 2, pause: Duration::from_secs(9) };
    let net = Net::start(2, false, &SETTINGS).await;
    for click in net.click("stall", 8, work) {
        click.await.unwrap();
    }
    let pid = net.nodes.servers[0].lock().await.pid();
    let held = eventually("the first node has work", PATIENCE, async || {
        Some(net.nodes.held_by(pid).await).filter(|held| *held > 0)
    })
    .await;
    net.databases[0].stall();
    let from = Instant::now();
    eventually("all of it is taken over", PATIENCE, async || (net.nodes.held_by(pid).await == 0).then_some(())).await;
    let after = from.elapsed();
    // While nobody answers it.
    let drops = async || {
        let said = net.nodes.servers[0].lock().await.said();
        said.contains("dropped chunks whose leases ended").then_some(())
    };
    eventually("it has dropped its chunks by its own clock", PATIENCE, drops).await;
    println!("{held} chunks held, taken over after {after:?}");
    net.databases[0].mend();
    net.nodes.all_ended(PATIENCE).await;
    net.assert_pools_are_whole().await;
    assert!(net.nodes.settle(work, false).await > 0);
}

/// Chunks that take longer than a lease live by renewals alone.
async fn e8_a_slow_line_to_the_database_loses_no_lease() {
    let (lasts, chunks, lease) = if long() { (600, 2, 10) } else { (1, 1, 20) };
    let lasts = Duration::from_secs(lasts);
    let work = Work { chunks, items: 1, pause: Duration::from_secs(lease + 2) };
    let lease_ms = format!("{lease}000");
    let settings = [("ENGINE__LEASE_MS", lease_ms.as_str()), ("DATABASE__CONNECTIONS", "5")];
    let net = Net::start(2, false, &settings).await;
    lose_no_lease(&net, 4, lasts, work).await;
}

/// Effects take a round trip each: those of a short chunk, or of several that end at once, take longer than a lease, in which
/// nobody can renew it.
async fn e8_effects_that_take_longer_than_a_lease_lose_none() {
    let (lasts, tasks, chunks, items) = if long() { (300, 24, 4, 10) } else { (1, 1, 2, 22) };
    let work = Work { chunks, items, pause: Duration::from_millis(200) };
    let settings = [("ENGINE__LEASE_MS", "5000"), ("ENGINE__HEARTBEAT_MS", "1500"), ("DATABASE__CONNECTIONS", "5")];
    let net = Net::start(2, false, &settings).await;
    lose_no_lease(&net, tasks, Duration::from_secs(lasts), work).await;
}

/// Clicks so many times, and again when all of it has ended, over lines that take 200 ms for each answer.
async fn lose_no_lease(net: &Net, at_once: usize, lasts: Duration, work: Work) {
    for proxy in &net.databases {
        // Both ways.
        proxy.delay(Duration::from_millis(100));
    }
    let (from, mut tasks) = (Instant::now(), 0);
    while tasks == 0 || from.elapsed() < lasts {
        for click in net.click(&format!("slow {tasks}"), at_once, work) {
            click.await.unwrap();
        }
        net.nodes.all_ended(LONGEST).await;
        tasks += at_once;
    }
    println!("{tasks} tasks in {:?}, 200 ms for each answer of the database", from.elapsed());
    net.nodes.assert_no_lease_lost().await;
    assert_eq!(net.nodes.settle(work, false).await, 0, "a lease was lost");
}

/// Proves: G2, G3.
async fn e9_nodes_that_come_back_across_a_due_time_run_due_work_once() {
    let work = Work { chunks: 4, items: 2, pause: Duration::from_millis(500) };
    let net = Net::start(2, false, &SETTINGS).await;
    for click in net.click("due", 30, work) {
        click.await.unwrap();
    }
    // Chunks are due, and leases end, while nobody can look.
    net.databases.iter().for_each(|proxy| proxy.becomes(Line::Lost));
    tokio::time::sleep(Duration::from_secs(if long() { 120 } else { 8 })).await;
    net.databases[0].mend();
    tokio::time::sleep(Duration::from_secs(3)).await;
    net.databases[1].mend();
    net.nodes.all_ended(PATIENCE).await;
    net.assert_pools_are_whole().await;
    let lost = net.nodes.settle(work, false).await;
    println!("{lost} leases lost");
}
