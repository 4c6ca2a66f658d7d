//! A script that another one runs: a world of its own within the budgets of the chunk.
//!
//! It has a runtime of its own, so that no value, no prototype and no promise passes between the two, only JSON. The one
//! above waits meanwhile. Time, statements, output and log run on the chunk's meter. Of memory and stack it gets what those
//! above it leave: memory is measured on the process, for the interpreter cannot tell in the middle of a run what it holds.

use super::super::limits::{self, LEAST_MEMORY_BYTES, LEAST_STACK_BYTES, NESTED_STACK_BYTES};
use super::super::protocol::{Fault, Thrown};
use super::chunk::{self, Chunk};
use super::realm::Realm;
use super::script::{self, Script};
use crate::core::budget::{Budget, Spent};
use serde_json::{Value, json};
use std::rc::Rc;

/// Runs the script of a key with params, both as the script above gave them. Answers what it returned, as JSON, or why there
/// is nothing, as the JSON of a refusal.
pub(super) fn run(chunk: &Rc<Chunk>, key: &str, params: &str) -> Result<String, String> {
    let meter = &chunk.bridge.meter;
    let over = || refused(chunk, Fault::Budget(meter.over().expect("it is over")));
    // To begin a run is work, however little it does.
    if chunk.bridge.tick() || !meter.hand_out(params.len()) {
        return Err(over());
    }
    let text = match chunk.bridge.script(key) {
        None => return Err(over()),
        Some(Err(refusal)) => return Err(String::from_utf8_lossy(&refusal).into_owned()),
        Some(Ok(text)) => text,
    };
    let end = text.iter().position(|byte| *byte == b'\n').expect("a name and a line feed come before the text");
    let name = String::from_utf8_lossy(&text[..end]).into_owned();
    if let Err(spent) = meter.enter(&name) {
        return Err(refused(chunk, Fault::Budget(spent)));
    }
    let said = within(chunk, &name, params, text[end + 1..].to_vec());
    meter.leave();
    match said {
        _ if meter.is_over() => Err(over()),
        said => said.map_err(|fault| refused(chunk, fault)),
    }
}

/// Runs it in what is left of memory and stack.
fn within(chunk: &Rc<Chunk>, name: &str, params: &str, source: Vec<u8>) -> Result<String, Fault> {
    let (budgets, meter) = (chunk.run.budgets, &chunk.bridge.meter);
    let stack = usize::try_from(budgets.stack_bytes).unwrap_or(usize::MAX);
    let stack_bytes = stack.saturating_add(meter.depth() * NESTED_STACK_BYTES).saturating_sub(chunk.stack_used_bytes());
    if stack_bytes < LEAST_STACK_BYTES {
        return Err(spent(chunk, Budget::Stack, budgets.stack_bytes, budgets.stack_bytes));
    }
    let held_bytes = limits::resident_bytes().saturating_sub(chunk.resident_bytes.get());
    let memory_bytes = budgets.memory_bytes.saturating_sub(held_bytes);
    if memory_bytes < LEAST_MEMORY_BYTES {
        return Err(spent(chunk, Budget::Memory, budgets.memory_bytes, held_bytes));
    }
    let mut inner = chunk.run.chunk.clone();
    inner.task.params = serde_json::from_str(params)
        .map_err(|error| Fault::BadOutcome(format!("params: cannot be handed over: {error}")))?;
    let inner = serde_json::to_string(&inner).expect("a chunk came as JSON");
    let Ok(realm) = Realm::new(&chunk.bridge) else {
        return Err(spent(chunk, Budget::Memory, budgets.memory_bytes, held_bytes));
    };
    let said = script::run(&realm, chunk, Script { name, chunk: inner, source, memory_bytes, stack_bytes });
    if meter.is_over() || said.as_ref().is_err_and(chunk::unsettles) {
        // A runtime that was stopped in its middle is not taken down; it goes with the process, after this chunk.
        chunk.unsettled.set(true);
        std::mem::forget(realm);
    } else {
        drop(realm);
        // What the system has not taken back is free for the next run, and is not what the scripts above hold.
        let after = limits::resident_bytes().saturating_sub(chunk.resident_bytes.get());
        let kept = after.saturating_sub(held_bytes);
        chunk.resident_bytes.set(chunk.resident_bytes.get() + kept);
    }
    said
}

fn spent(chunk: &Chunk, budget: Budget, limit: u64, used: u64) -> Fault {
    Fault::Budget(chunk.bridge.meter.spent(budget, limit, used, ""))
}

/// A fault of the nested run, as the script above gets it thrown.
fn refused(chunk: &Chunk, fault: Fault) -> String {
    let plain = |code: &str, message: &str| json!({"code": code, "message": message, "permanent": true});
    let told: Value = match fault {
        Fault::Budget(spent) => hit(chunk, spent),
        Fault::Syntax { message } => plain("script-syntax", &message),
        Fault::NoFunction => plain("script-no-function", "the script has no function to run"),
        Fault::BadOutcome(message) => plain("bad-outcome", &message),
        Fault::Thrown(Thrown { message, stack, code, permanent, .. }) => json!({
            "code": code.as_deref().unwrap_or("script-error"), "message": message, "permanent": permanent, "stack": stack,
        }),
    };
    told.to_string()
}

/// Numbers the hit, so that it is known again when it is thrown on.
fn hit(chunk: &Chunk, spent: Spent) -> Value {
    let mut hits = chunk.hits.borrow_mut();
    let told = json!({
        "code": spent.code.code(), "message": spent.message(), "permanent": false, "limit": spent, "hit": hits.len(),
    });
    // A script that catches in a loop should not fill the process.
    if hits.len() < MOST_HITS {
        hits.push(spent);
    }
    told
}

/// Hits that are known again when they are thrown on.
const MOST_HITS: usize = 10_000;
