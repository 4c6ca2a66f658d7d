//! What a running script can reach of the server: frames out, answers and stop requests in, and the chunk's clock.
//!
//! It holds nothing of the script's world (no value, no function), only text, numbers and the numbers of open questions, so
//! it outlives any runtime. Reports are merged to one every [`REPORT_EVERY`], and lines beyond the chunk's limits are counted
//! and dropped here, before they cost the server anything.

use super::super::limits::{LOG_BYTES, LOG_LINES, REPORT_EVERY};
use super::super::protocol::{self, Found, FromChild, Run};
use super::Inbound;
use crate::core::progress::Reported;
use crate::core::task::limits::LOG_LINE_BYTES;
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Stdout};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// What an idle script was waiting for.
pub(super) enum Woken {
    /// A sleep is over.
    Slept { ask: u64 },
    /// A file came, or why it did not.
    Read { ask: u64, found: Found, text: Vec<u8> },
    /// Nothing that could settle a promise is under way.
    Never,
    /// The time is over.
    Over,
}

pub(super) struct Bridge {
    inbox: Receiver<Inbound>,
    stop: Arc<AtomicBool>,
    out: RefCell<Stdout>,
    /// Over the life of the process, so that a late answer to an earlier chunk meets no question.
    asked: Cell<u64>,
    until: Cell<Instant>,
    over: Cell<bool>,
    /// Files that came while something else was waited for.
    aside: RefCell<VecDeque<Woken>>,
    sleeps: RefCell<Vec<(Instant, u64)>>,
    files: RefCell<Vec<u64>>,
    report: RefCell<Map<String, Value>>,
    reported_at: Cell<Option<Instant>>,
    lines: Cell<usize>,
    line_bytes: Cell<usize>,
    cut: Cell<u64>,
}

impl Bridge {
    pub fn new(inbox: Receiver<Inbound>, stop: Arc<AtomicBool>) -> Self {
        Self {
            inbox,
            stop,
            out: RefCell::new(io::stdout()),
            asked: Cell::new(0),
            until: Cell::new(Instant::now()),
            over: Cell::new(false),
            aside: RefCell::default(),
            sleeps: RefCell::default(),
            files: RefCell::default(),
            report: RefCell::default(),
            reported_at: Cell::new(None),
            lines: Cell::new(0),
            line_bytes: Cell::new(0),
            cut: Cell::new(0),
        }
    }

    /// Waits for a chunk; none when the server has no more.
    pub fn next_run(&self) -> Option<(Box<Run>, Vec<u8>)> {
        loop {
            if let Inbound::Run(run, source) = self.inbox.recv().ok()? {
                return Some((run, source));
            }
        }
    }

    /// Starts the clock of a chunk and forgets the one before.
    pub fn begin(&self, time: Duration) {
        let now = Instant::now();
        // Beyond what the clock can hold is as good as never; the server's own limit is what ends it.
        self.until.set(now.checked_add(time).unwrap_or(now + Duration::from_hours(24)));
        self.over.set(false);
        self.aside.borrow_mut().clear();
        self.sleeps.borrow_mut().clear();
        self.files.borrow_mut().clear();
        self.reported_at.set(None);
        self.lines.set(0);
        self.line_bytes.set(0);
        self.cut.set(0);
    }

    /// Sends what is still held back.
    pub fn finish(&self) {
        self.send_report();
        if self.cut.get() > 0 {
            let cut = self.cut.get();
            let text = format!("{cut} more lines were cut: a chunk may log {LOG_LINES} lines and {LOG_BYTES} bytes");
            self.send(&FromChild::Log { level: "warn".into() }, text.as_bytes());
        }
    }

    /// Called by the interpreter every so often; whether it must stop.
    pub fn tick(&self) -> bool {
        if self.reported_at.get().is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            self.send_report();
        }
        self.is_over()
    }

    /// Whether the chunk's time is over. Once it is, it stays so.
    pub fn is_over(&self) -> bool {
        if !self.over.get() && Instant::now() >= self.until.get() {
            self.over.set(true);
        }
        self.over.get()
    }

    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Takes a report as JSON text.
    pub fn progress(&self, report: &str) {
        let Ok(Value::Object(fields)) = serde_json::from_str(report) else { return };
        let fields = Value::Object(fields);
        match (Reported::parse(&fields), fields) {
            (Ok(_), Value::Object(fields)) => {
                self.report.borrow_mut().extend(fields);
                self.tick();
            }
            (Err(faults), _) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                self.log("warn", &format!("a progress report was dropped: {}", faults.join(", ")));
            }
            _ => {}
        }
    }

    fn send_report(&self) {
        let fields = std::mem::take(&mut *self.report.borrow_mut());
        if !fields.is_empty() {
            self.reported_at.set(Some(Instant::now()));
            self.send(&FromChild::Progress(fields), b"");
        }
    }

    /// Takes a log line, as long as the chunk may log more.
    pub fn log(&self, level: &str, text: &str) {
        let text = &text[..text.floor_char_boundary(LOG_LINE_BYTES)];
        let (lines, bytes) = (self.lines.get() + 1, self.line_bytes.get() + text.len());
        if lines > LOG_LINES || bytes > LOG_BYTES {
            self.cut.set(self.cut.get() + 1);
            return;
        }
        self.lines.set(lines);
        self.line_bytes.set(bytes);
        self.send(&FromChild::Log { level: level.to_owned() }, text.as_bytes());
    }

    /// Asks the server and waits; none when the time ended first.
    pub fn lease_is_current(&self) -> Option<bool> {
        let asked = self.ask();
        self.send(&FromChild::Lease { ask: asked }, b"");
        loop {
            match self.receive(self.until.get()) {
                Some(Inbound::Lease { ask, current }) if ask == asked => return Some(current),
                Some(Inbound::File { ask, found, text }) => {
                    self.aside.borrow_mut().push_back(Woken::Read { ask, found, text });
                }
                Some(_) => {}
                None if self.is_over() => return None,
                None => {}
            }
        }
    }

    /// Asks for a file; the number is told again when it is there.
    pub fn read_file(&self, id: String) -> u64 {
        let ask = self.ask();
        self.files.borrow_mut().push(ask);
        self.send(&FromChild::File { ask, id }, b"");
        ask
    }

    /// Starts a sleep; the number is told again when it is over, or at once when a stop is requested.
    pub fn sleep(&self, ms: f64) -> u64 {
        let ask = self.ask();
        let until = self.until.get();
        let left = until.saturating_duration_since(Instant::now());
        // Not a number and negative are none at all.
        let wanted = Duration::try_from_secs_f64(ms.max(0.0) / 1000.0).unwrap_or(left);
        self.sleeps.borrow_mut().push((until.min(Instant::now() + wanted.min(left)), ask));
        ask
    }

    /// Waits, when the script has nothing left to do, for what it waits for.
    pub fn wait(&self) -> Woken {
        loop {
            if self.is_over() {
                return Woken::Over;
            }
            if let Some(woken) = self.aside.borrow_mut().pop_front() {
                if self.closes(&woken) {
                    return woken;
                }
                continue;
            }
            let next = self.next_sleep();
            match next {
                Some((at, ask)) if self.stop_requested() || Instant::now() >= at => {
                    self.sleeps.borrow_mut().retain(|(_, other)| *other != ask);
                    return Woken::Slept { ask };
                }
                None if self.files.borrow().is_empty() => return Woken::Never,
                _ => {}
            }
            self.send_report();
            let until = next.map_or(self.until.get(), |(at, _)| at.min(self.until.get()));
            if let Some(Inbound::File { ask, found, text }) = self.receive(until) {
                self.aside.borrow_mut().push_back(Woken::Read { ask, found, text });
            }
        }
    }

    fn next_sleep(&self) -> Option<(Instant, u64)> {
        self.sleeps.borrow().iter().copied().min()
    }

    /// Whether it answers a question of this chunk; then it is no longer open.
    fn closes(&self, woken: &Woken) -> bool {
        let Woken::Read { ask, .. } = woken else { return false };
        let mut files = self.files.borrow_mut();
        let open = files.len();
        files.retain(|file| file != ask);
        files.len() < open
    }

    fn ask(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }

    fn receive(&self, until: Instant) -> Option<Inbound> {
        match self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(inbound) => Some(inbound),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => process::exit(0),
        }
    }

    /// Sends a frame. A server that does not listen any more is gone, and this process with it.
    pub fn send(&self, head: &FromChild, body: &[u8]) {
        if protocol::write(&mut *self.out.borrow_mut(), head, body).is_err() {
            process::exit(0);
        }
    }
}
