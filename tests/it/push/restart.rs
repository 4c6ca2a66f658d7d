//! A rolling restart under a crowd: every page is told, comes back at its own moment, and shows the truth again, and the
//! database does not feel it.
//!
//! `TASKBELL_TEST_LONG=1` runs the whole form with 2,000 pages, else it has 300.

use super::crowd::{assert_true, click, long, server};
use super::page::{Page, Plan, keys, store_of};
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, free_port};
use std::sync::Arc;
use std::time::{Duration, Instant};
use taskbell::core::principal::Role;
use tokio::sync::Semaphore;

const PAGES_OF_ONE: usize = 5;
/// Snapshots that a node may read at once, as docs/operations.md says.
const READS: f64 = 4.0;
/// Handshakes at once: so many that the server, and not the test, is what bounds them.
const AT_ONCE: usize = 200;
/// Over how much time, at least, the pages of one node come back; the longest window is that of `drain.spreadMs`.
const SPREAD: Duration = Duration::from_secs(5);
const LIMIT: Duration = Duration::from_secs(90);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn k3_a_rolling_restart_of_two_nodes_brings_every_page_back_with_bounded_readings() {
    let users = if long() { 400 } else { 60 };
    let ground = Arc::new(Ground::postgres().await);
    let ports = [free_port(), free_port()];
    let mut nodes = Vec::new();
    for port in ports {
        nodes
            .push(server(ground.clone(), |spec| spec.port(port).env("TASKBELL__ENGINE__DRAIN_GRACE_MS", "8000")).await);
    }
    let store = store_of(&nodes[0]).await;
    let keys = keys(store.as_ref(), users, Role::User).await;
    let gate = Arc::new(Semaphore::new(AT_ONCE));
    let pages: Vec<Page> = (0..users * PAGES_OF_ONE)
        .map(|n| {
            let (ports, key, gate) = (ports.to_vec(), keys[n % users].clone(), gate.clone());
            Page::open(n % users, Plan { ports, key, blink_ms: 0..0, gate })
        })
        .collect();
    let all_in = async || pages.iter().all(|page| page.story(|s| s.connected)).then_some(());
    eventually("every page is connected", LIMIT, all_in).await;

    for n in 0..2 {
        let before: Vec<usize> = pages.iter().map(|page| page.story(|s| s.ends.len())).collect();
        let (began, other) = (Instant::now(), nodes[1 - n].url());
        let clients = keys.iter().map(|key| Client::new(&other, key)).collect();
        let clicking = tokio::spawn(click(clients, Duration::from_millis(50), Duration::from_secs(5)));
        assert!(nodes[n].terminate().await.success());
        nodes[n].start_again().await;
        assert!(clicking.await.unwrap() > 0, "the other node goes on meanwhile");
        eventually("every page is back", LIMIT, all_in).await;

        let left: Vec<&Page> = pages
            .iter()
            .zip(before)
            .filter(|(page, ends)| page.story(|s| s.ends.len() > *ends))
            .map(|(page, _)| page)
            .collect();
        assert!(left.len() >= pages.len() / 8, "some were connected to the node: {}", left.len());
        for page in &left {
            let (told, code) = page.story(|s| *s.ends.last().unwrap());
            assert!(told || code == Some(1012), "told of the restart: {code:?}");
        }
        assert_spread(&left, began);
    }
    for page in &pages {
        assert_true(page, store.as_ref(), LIMIT).await;
    }
    for node in &nodes {
        let most = number(node, "taskbell_snapshot_reads_most").await;
        assert!((1.0..=READS).contains(&most), "{most} readings at once");
    }
}

/// They came back one by one over the time of the spread: not more than three tenths of a thousand in any second. Of a
/// hundred and fifty chance alone brings a third together now and then.
fn assert_spread(left: &[&Page], began: Instant) {
    let mut entered: Vec<Duration> =
        left.iter().map(|page| page.story(|s| *s.entered_at.last().unwrap()) - began).collect();
    entered.sort();
    let (first, last) = (entered[0], entered[entered.len() - 1]);
    assert!(last - first >= SPREAD, "from {first:?} to {last:?}");
    let fullest = entered.iter().map(|from| {
        let until = *from + Duration::from_secs(1);
        entered.iter().filter(|at| (*from..until).contains(*at)).count()
    });
    let fullest = fullest.max().unwrap();
    let tenths = if long() { 3 } else { 4 };
    assert!(fullest * 10 <= left.len() * tenths, "{fullest} of {} in one second", left.len());
}

/// A number of a node, as it tells it beside it.
async fn number(node: &Server, metric: &str) -> f64 {
    let text = reqwest::get(format!("{}/metrics", node.url())).await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| line.split_once(' ').is_some_and(|(name, _)| name == metric));
    line.unwrap_or_else(|| panic!("{metric} is told: {text}")).rsplit_once(' ').unwrap().1.parse().unwrap()
}
