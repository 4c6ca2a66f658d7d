//! What a running script can reach of the server: frames out, answers and stop requests in.
//!
//! It holds nothing of the script's world (no value, no function), only text, numbers and the numbers of open calls, so
//! it outlives any runtime. Reports are merged to one every [`REPORT_EVERY`], and lines beyond what is kept of a chunk are
//! counted and dropped here, before they cost the server anything. Once the chunk's [`Meter`] is over, nothing goes out any
//! more but how it ends.

use super::super::limits::{LOG_BYTES, LOG_LINES, REPORT_EVERY};
use super::super::protocol::{self, Came, FromChild, Run};
use super::meter::Meter;
use super::pace::Pace;
use super::waits::Waits;
use super::{Inbound, Returned};
use crate::core::progress::Reported;
use crate::core::task::limits::LOG_LINE_BYTES;
use serde_json::{Map, Value};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
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
    /// A call was answered.
    Answered { ask: u64, returned: Returned },
    /// Nothing that could settle a promise is under way.
    Never,
    /// A budget is used up.
    Over,
}

pub(super) struct Bridge {
    pub meter: Meter,
    pace: Pace,
    inbox: Receiver<Inbound>,
    stop: Arc<AtomicBool>,
    out: RefCell<Stdout>,
    /// Over the life of the process, so that a late answer to an earlier chunk meets no call.
    asked: Cell<u64>,
    open: RefCell<BTreeSet<u64>>,
    /// Answers that came while something else was waited for.
    aside: RefCell<BTreeMap<u64, Returned>>,
    /// Texts of scripts that this chunk has run by their key.
    texts: RefCell<BTreeMap<String, Vec<u8>>>,
    report: RefCell<Map<String, Value>>,
    reported_at: Cell<Option<Instant>>,
    lines: Cell<usize>,
    line_bytes: Cell<usize>,
    cut: Cell<u64>,
}

impl Bridge {
    pub fn new(inbox: Receiver<Inbound>, stop: Arc<AtomicBool>) -> Self {
        Self {
            meter: Meter::new(),
            pace: Pace::new(),
            inbox,
            stop,
            out: RefCell::new(io::stdout()),
            asked: Cell::default(),
            open: RefCell::default(),
            aside: RefCell::default(),
            texts: RefCell::default(),
            report: RefCell::default(),
            reported_at: Cell::default(),
            lines: Cell::default(),
            line_bytes: Cell::default(),
            cut: Cell::default(),
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

    /// Starts a chunk and forgets the one before.
    pub fn begin(&self, run: &Run) {
        self.pace.step_behind();
        self.meter.begin(run);
        self.open.borrow_mut().clear();
        self.aside.borrow_mut().clear();
        self.texts.borrow_mut().clear();
        self.reported_at.set(None);
        self.lines.set(0);
        self.line_bytes.set(0);
        self.cut.set(0);
    }

    /// Ends a chunk: sends what is still held back.
    pub fn finish(&self) {
        self.pace.come_back();
        self.send_report();
        if self.cut.get() > 0 {
            let cut = self.cut.get();
            let text =
                format!("{cut} more lines were cut: of a chunk {LOG_LINES} lines and {LOG_BYTES} bytes are kept");
            self.send(&FromChild::Log { level: "warn".into() }, text.as_bytes());
        }
    }

    /// Called by the interpreter every so often; whether it must stop.
    pub fn tick(&self) -> bool {
        self.pace.look();
        self.report_if_due();
        self.meter.look()
    }

    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Acquire)
    }

    /// Takes a report as JSON text.
    pub fn progress(&self, report: &str) {
        if self.meter.is_over() {
            return;
        }
        let Ok(Value::Object(fields)) = serde_json::from_str(report) else { return };
        let fields = Value::Object(fields);
        match (Reported::parse(&fields), fields) {
            (Ok(_), Value::Object(fields)) => {
                self.report.borrow_mut().extend(fields);
                self.report_if_due();
            }
            (Err(faults), _) => {
                let faults: Vec<_> = faults.iter().map(ToString::to_string).collect();
                self.log("warn", &format!("a progress report was dropped: {}", faults.join(", ")));
            }
            _ => {}
        }
    }

    fn report_if_due(&self) {
        if self.reported_at.get().is_none_or(|at| at.elapsed() >= REPORT_EVERY) {
            self.send_report();
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
        // An empty line is work as well.
        if !self.meter.log(text.len() + 1) || lines > LOG_LINES || bytes > LOG_BYTES {
            self.cut.set(self.cut.get() + 1);
            return;
        }
        self.lines.set(lines);
        self.line_bytes.set(bytes);
        self.send(&FromChild::Log { level: level.to_owned() }, text.as_bytes());
    }

    /// Asks something of the server and does not wait; the number is told again when it is answered. None when a budget is
    /// used up.
    pub fn call(&self, waits: &Waits, name: &str, asked: &str) -> Option<u64> {
        let ask = self.send_call(name, asked)?;
        waits.add_call(ask, name);
        Some(ask)
    }

    /// Asks something of the server and waits for the answer; none when a budget was used up first.
    pub fn call_now(&self, name: &str, asked: &str) -> Option<Returned> {
        let ask = self.send_call(name, asked)?;
        self.send_report();
        while !self.meter.is_over() {
            if let Some(returned) = self.aside.borrow_mut().remove(&ask) {
                return Some(returned);
            }
            self.receive(self.meter.until());
        }
        None
    }

    fn send_call(&self, name: &str, asked: &str) -> Option<u64> {
        self.meter.hand_out(asked.len()).then(|| {
            let ask = self.ask();
            self.open.borrow_mut().insert(ask);
            self.send(&FromChild::Call { ask, name: name.to_owned() }, asked.as_bytes());
            ask
        })
    }

    /// The text of a script of the library, name and line feed before it; the refusal when there is none. None at all when
    /// a budget was used up first.
    pub fn script(&self, key: &str) -> Option<Result<Vec<u8>, Vec<u8>>> {
        if let Some(text) = self.texts.borrow().get(key) {
            return Some(Ok(text.clone()));
        }
        let returned = self.call_now("script", &Value::from(key).to_string())?;
        if returned.came != Came::Text {
            return Some(Err(returned.body));
        }
        self.texts.borrow_mut().insert(key.to_owned(), returned.body.clone());
        Some(Ok(returned.body))
    }

    /// Starts a sleep; the number is told again when it is over, or at once when a stop is requested.
    pub fn sleep(&self, waits: &Waits, ms: f64) -> u64 {
        let ask = self.ask();
        let (now, until) = (Instant::now(), self.meter.until());
        let left = until.saturating_duration_since(now);
        // Not a number and negative are none at all.
        let wanted = Duration::try_from_secs_f64(ms.max(0.0) / 1000.0).unwrap_or(left);
        waits.add_sleep(until.min(now + wanted.min(left)), ask);
        ask
    }

    /// Waits, when a run has nothing left to do, for what it waits for.
    pub fn wait(&self, waits: &Waits) -> Woken {
        loop {
            if self.meter.is_over() {
                return Woken::Over;
            }
            for ask in waits.calls() {
                if let Some(returned) = self.aside.borrow_mut().remove(&ask) {
                    waits.close_call(ask);
                    return Woken::Answered { ask, returned };
                }
            }
            let sleep = waits.next_sleep();
            match sleep {
                Some(sleep @ (at, ask)) if self.stop_requested() || Instant::now() >= at => {
                    waits.close_sleep(sleep);
                    return Woken::Slept { ask };
                }
                None if waits.is_empty() => return Woken::Never,
                _ => {}
            }
            self.send_report();
            self.receive(sleep.map_or(self.meter.until(), |(at, _)| at.min(self.meter.until())));
        }
    }

    /// A run has ended: what it still waited for is nobody's any more.
    pub fn forget(&self, waits: &Waits) {
        for ask in waits.calls() {
            self.open.borrow_mut().remove(&ask);
            self.aside.borrow_mut().remove(&ask);
        }
    }

    fn ask(&self) -> u64 {
        self.asked.set(self.asked.get() + 1);
        self.asked.get()
    }

    /// Waits for the next frame; an answer that somebody waits for is put aside.
    fn receive(&self, until: Instant) {
        match self.inbox.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Inbound::Returned(ask, returned)) if self.open.borrow_mut().remove(&ask) => {
                self.aside.borrow_mut().insert(ask, returned);
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
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
