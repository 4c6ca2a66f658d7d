//! The server under measurement, in a process of its own: this binary again. It tells on its standard output how to come in,
//! and takes orders line by line on its standard input; when that ends, it ends.

use serde::{Deserialize, Serialize};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;

/// Ticks of a process's time a second, as every Linux tells them.
const TICKS: f64 = 100.0;

/// Which server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Kind {
    /// The reference.
    Bare,
    /// taskbell as it is.
    Taskbell,
    /// taskbell without its pauses between two frames of a connection.
    Unpaced,
}

/// How to come in.
#[derive(Debug, Serialize, Deserialize)]
pub struct Door {
    pub port: u16,
    /// A key a user; none where nobody is asked.
    pub keys: Vec<String>,
    /// A topic a room; none where a room is its number.
    pub topics: Vec<String>,
}

/// What a child is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Something new in every room.
    Round,
    /// The handler of one room's task reports.
    Report(usize),
}

/// Microseconds by the clock that both processes share.
pub fn now_us() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    since.as_micros() as i64
}

/// The child's side: says how to come in.
pub fn tell(door: &Door) {
    let mut out = std::io::stdout();
    writeln!(out, "{}", serde_json::to_string(door).unwrap()).unwrap();
    out.flush().unwrap();
}

/// The child's side: the orders as they come.
pub fn orders() -> mpsc::UnboundedReceiver<Order> {
    let (to, orders) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            let order = line.parse().map_or(Order::Round, Order::Report);
            if to.send(order).is_err() {
                return;
            }
        }
    });
    orders
}

/// The parent's side.
pub struct Server {
    child: Child,
    orders: ChildStdin,
    pub door: Door,
}

impl Server {
    /// Starts one with so many rooms and users.
    pub fn start(kind: Kind, rooms: usize, users: usize) -> Self {
        let word = clap::ValueEnum::to_possible_value(&kind).unwrap();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--serve", word.get_name(), "--rooms", &rooms.to_string(), "--users", &users.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let orders = child.stdin.take().unwrap();
        Self { child, orders, door: serde_json::from_str(&line).expect("the server comes up") }
    }

    /// Gives an order.
    pub fn order(&mut self, order: Order) {
        let line = match order {
            Order::Round => "round\n".to_owned(),
            Order::Report(room) => format!("{room}\n"),
        };
        self.orders.write_all(line.as_bytes()).unwrap();
    }

    /// Its resident memory, bytes.
    pub fn resident_bytes(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() * 1_024.0
    }

    /// The time that it has had of the processors.
    pub fn cpu(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id())).unwrap();
        let after_name = stat.rsplit_once(')').unwrap().1;
        let ticks: f64 = after_name.split_whitespace().skip(11).take(2).map(|n| n.parse::<f64>().unwrap()).sum();
        Duration::from_secs_f64(ticks / TICKS)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
