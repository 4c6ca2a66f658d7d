//! What is measured on one server, and the table of it: medians of the rounds, each figure of taskbell beside the bare
//! server's.

use crate::child::{Kind, Order, Server};
use crate::swarm::{Crowd, SNAPSHOT, Swarm};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::time::{Duration, Instant};

/// Pages of one user.
const PER_USER: usize = 20;
/// Pages that show the same task.
const PER_ROOM: usize = 100;
/// How long news are delivered flat out.
const FLAT_OUT: Duration = Duration::from_secs(3);
/// A second and a bit: a task that says nothing for so long is quiet.
const QUIET: Duration = Duration::from_millis(1_100);
/// Changes after a quiet moment.
const FIRSTS: usize = 12;
/// Reports of each room.
const REPORTS: usize = 5;

/// All figures, by the order in which they came.
#[derive(Default)]
pub struct Table {
    names: Vec<(String, &'static str)>,
    /// By name: bare, then taskbell's.
    values: BTreeMap<String, [Vec<f64>; 2]>,
}

impl Table {
    fn put(&mut self, kind: Kind, name: impl Into<String>, unit: &'static str, value: f64) {
        let name = name.into();
        eprintln!("{kind:?}: {name}: {value:.3} {unit}");
        if self.names.iter().all(|(known, _)| *known != name) {
            self.names.push((name.clone(), unit));
        }
        self.values.entry(name).or_default()[usize::from(kind != Kind::Bare)].push(value);
    }

    /// Prints it.
    pub fn print(&self, took: Duration) {
        let mut text = String::from("| figure | taskbell | bare server | ratio |\n|---|---:|---:|---:|\n");
        for (name, unit) in &self.names {
            let [bare, ours] = self.values[name].each_ref().map(|values| middle(values));
            text += &format!("| {name} | {} {unit} | {} {unit} | {:.2} × |\n", told(ours), told(bare), ours / bare);
        }
        text += &format!("\nTook {:.0} s.\n", took.as_secs_f64());
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    }
}

fn told(value: f64) -> String {
    if value >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

fn middle(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Milliseconds at a part of all.
fn quantile(latencies_us: &mut [i64], part: f64) -> f64 {
    latencies_us.sort_unstable();
    latencies_us[((latencies_us.len() - 1) as f64 * part) as usize] as f64 / 1_000.0
}

fn crowd(sockets: usize) -> Crowd {
    Crowd { sockets, per_user: PER_USER, per_room: PER_ROOM, first: SNAPSHOT }
}

/// What an idle socket costs in memory.
pub async fn idle(table: &mut Table, kind: Kind, sockets: usize) {
    let crowd = Crowd { per_room: sockets + 1, first: 0, ..crowd(sockets) };
    let mut server = Server::start(kind, 1, crowd.users() + 1);
    server.door.topics.clear();
    // What is made once is made before.
    let (warm, _) = Swarm::open(&server.door, Crowd { sockets: PER_ROOM, ..crowd }, false).await;
    let before = server.resident_bytes();
    let (_swarm, _) = Swarm::open(&server.door, crowd, false).await;
    let each = (server.resident_bytes() - before) / crowd.sockets as f64;
    drop(warm);
    table.put(kind, format!("memory of an idle socket, of {sockets}"), "KiB", each / 1_024.0);
}

/// How long the first report after a quiet moment takes to one page.
pub async fn quiet(table: &mut Table, kind: Kind) {
    let crowd = crowd(1);
    let mut server = Server::start(kind, 1, 1);
    let (swarm, _) = Swarm::open(&server.door, crowd, false).await;
    for n in 0..FIRSTS {
        tokio::time::sleep(QUIET).await;
        server.order(Order::Report(0));
        swarm.delivered(n as u64 + 1).await;
    }
    let mut latencies = swarm.take_latencies();
    table.put(kind, "first change after a quiet moment, p50", "ms", quantile(&mut latencies, 0.5));
}

/// From a handler's report to its receipt, while each room has one report a second and a bit.
pub async fn reports(table: &mut Table, kind: Kind, sockets: usize) {
    let crowd = crowd(sockets);
    let mut server = Server::start(kind, crowd.rooms(), crowd.users());
    let (swarm, _) = Swarm::open(&server.door, crowd, false).await;
    let mut wanted = 0;
    tokio::time::sleep(QUIET).await;
    for _ in 0..REPORTS {
        let pause = QUIET / crowd.rooms() as u32;
        for room in 0..crowd.rooms() {
            server.order(Order::Report(room));
            tokio::time::sleep(pause).await;
        }
        wanted += sockets as u64;
        swarm.delivered(wanted).await;
    }
    let mut latencies = swarm.take_latencies();
    for (word, part) in [("p50", 0.5), ("p99", 0.99)] {
        let name = format!("from a report to its receipt, {sockets} sockets, {word}");
        table.put(kind, name, "ms", quantile(&mut latencies, part));
    }
}

/// How many deliveries a second are made when there is always something new, and what each costs the server.
pub async fn flat_out(table: &mut Table, kind: Kind, sockets: usize) {
    let crowd = crowd(sockets);
    let mut server = Server::start(kind, crowd.rooms(), crowd.users());
    let (swarm, _) = Swarm::open(&server.door, crowd, false).await;
    for _ in 0..3 {
        swarm.next_round().await;
        server.order(Order::Round);
    }
    let (began, cpu, before) = (Instant::now(), server.cpu(), swarm.deliveries());
    while began.elapsed() < FLAT_OUT {
        swarm.next_round().await;
        server.order(Order::Round);
        drop(swarm.take_latencies());
    }
    let (took, delivered) = (began.elapsed(), (swarm.deliveries() - before) as f64);
    eprintln!("{:.0} bytes each", swarm.bytes_each());
    table.put(kind, format!("deliveries, {sockets} sockets"), "/s", delivered / took.as_secs_f64());
    let each = (server.cpu() - cpu).as_secs_f64() * 1e6 / delivered;
    table.put(kind, format!("processor time of a delivery, {sockets} sockets"), "µs", each);
}

/// How long it takes until as many sockets as were cut have their snapshots again.
pub async fn reconnects(table: &mut Table, kind: Kind, sockets: usize) {
    let crowd = Crowd { per_room: sockets + 1, ..crowd(sockets) };
    let mut server = Server::start(kind, 1, crowd.users());
    server.door.topics.clear();
    let (swarm, _) = Swarm::open(&server.door, crowd, false).await;
    drop(swarm);
    let (swarm, took) = Swarm::open(&server.door, crowd, true).await;
    drop(swarm);
    table.put(kind, format!("{sockets} sockets all come back at once"), "s", took.as_secs_f64());
}
