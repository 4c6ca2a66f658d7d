//! What a script's process does: wait for a chunk, run it in a runtime of its own, answer, and begin again.
//!
//! Two threads. One reads the server's frames and does nothing else, so that a stop request is seen and the end of the
//! server ends this process even while a script is deep in a native loop. The other runs the scripts, on a stack whose size
//! is ours. The runtime for the next chunk is made before the process says that it is ready.
//!
//! Nothing here may outlive its chunk: a fault that may have left the interpreter in an odd state ends the process.

mod bridge;
mod chunk;
mod host;
mod ids;
mod meter;
mod nested;
mod pace;
mod realm;
mod script;
mod shape;
mod waits;

use super::limits;
use super::protocol::{self, Came, FromChild, Run, ToChild};
use bridge::Bridge;
use realm::Realm;
use std::process::{self, ExitCode};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::{io, thread};

pub use shape::parse;

/// What may wait for the thread that runs scripts: the server sends one chunk, one stop, and an answer for each call that is
/// open, so that the reading thread never waits here.
const INBOX: usize = 2 * limits::CALLS_AT_ONCE + 8;

/// What the reading thread hands to the one that runs scripts.
enum Inbound {
    Run(Box<Run>, Vec<u8>),
    Returned(u64, Returned),
    Wake,
}

/// What came of a call.
struct Returned {
    came: Came,
    body: Vec<u8>,
}

/// Runs chunks until the server closes the pipe or a fault makes this process unfit for another.
#[must_use]
pub fn run() -> ExitCode {
    if let Err(error) = limits::confine() {
        return gone(&format!("the limits of the process could not be set: {error}"));
    }
    let (sender, inbox) = mpsc::sync_channel(INBOX);
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let scripts = thread::Builder::new().stack_size(limits::THREAD_STACK_BYTES).spawn(move || run_chunks(inbox, stop));
    let reader = thread::Builder::new().spawn(move || read_frames(&sender, &seen));
    match (scripts, reader) {
        (Ok(scripts), Ok(_)) => match scripts.join() {
            Ok(code) => code,
            // The panic has told its place on standard error.
            Err(_) => gone("the thread of the scripts is gone"),
        },
        (Err(error), _) | (_, Err(error)) => gone(&format!("no thread: {error}")),
    }
}

fn gone(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

/// Never returns: the process ends with the pipe.
fn read_frames(sender: &SyncSender<Inbound>, stop: &AtomicBool) {
    let mut from = io::stdin().lock();
    loop {
        let inbound = match protocol::read(&mut from) {
            Ok(Some((ToChild::Run(run), source))) => {
                stop.store(false, Ordering::Release);
                Inbound::Run(run, source)
            }
            Ok(Some((ToChild::Stop, _))) => {
                stop.store(true, Ordering::Release);
                Inbound::Wake
            }
            Ok(Some((ToChild::Returned { ask, came }, body))) => Inbound::Returned(ask, Returned { came, body }),
            Ok(None) => process::exit(0),
            Err(error) => {
                eprintln!("standard input: {error}");
                process::exit(1);
            }
        };
        if sender.send(inbound).is_err() {
            return;
        }
    }
}

fn run_chunks(inbox: Receiver<Inbound>, stop: Arc<AtomicBool>) -> ExitCode {
    let bridge = Rc::new(Bridge::new(inbox, stop));
    let mut first_bytes = None;
    loop {
        let realm = match Realm::new(&bridge) {
            Ok(realm) => realm,
            Err(error) => return gone(&format!("no runtime: {error}")),
        };
        let first_bytes = *first_bytes.get_or_insert_with(limits::resident_bytes);
        bridge.send(&FromChild::Ready { version: protocol::VERSION }, b"");
        let Some((run, source)) = bridge.next_run() else { return ExitCode::SUCCESS };
        if let Err(error) = limits::allow_memory(run.budgets.memory_bytes) {
            return gone(&format!("the memory limit of the process could not be set: {error}"));
        }
        let ended = chunk::run(&realm, &bridge, *run, source);
        bridge.finish();
        let grown = limits::resident_bytes().saturating_sub(first_bytes) > limits::GROWTH_BYTES;
        let last = grown || ended.unsettled;
        match ended.said {
            Ok(answer) => bridge.send(&FromChild::Answer { last }, answer.as_bytes()),
            Err(fault) => bridge.send(&FromChild::Fault { fault, last }, b""),
        }
        if last {
            // Not by returning: a runtime that was stopped in the middle is not taken down, it goes with the process.
            process::exit(0);
        }
    }
}
