//! One script of a chunk, from its source to its answer as JSON text, or to why there is none.
//!
//! The script's module is declared and evaluated and its default export is called with `task` and `cx`, or its function body is
//! called with `V8` in the realm; its promises are worked off until the answer is there. What was thrown is read in a second step, after the memory limit was raised a
//! little: a script that has filled its memory leaves no room to say so.

use super::super::limits::{self, LAST_WORDS_BYTES};
use super::super::protocol::{Fault, Thrown};
use super::bridge::{Bridge, Woken};
use super::chunk::Chunk;
use super::host;
use super::realm::Realm;
use super::shape::{self, Shape, syntax_fault};
use super::waits::Waits;
use crate::core::budget::Budget;
use crate::core::tables::form;
use rquickjs::{Ctx, Error, FromJs, Function, Object, Persistent, Promise, Value};
use serde::Deserialize;
use serde_json::json;
use std::rc::Rc;

/// What stands between a script and the host; an expression whose value is called with the host's functions.
const PRELUDE: &str = include_str!("../js/prelude.js");
/// What a script finds whose file is the body of a function; called with the prelude's kit.
const V8: &str = include_str!("../js/v8.js");

/// What the interpreter says when it will not give out as much memory as is asked for.
const REFUSALS: [&str; 3] = ["out of memory", "invalid array buffer length", "invalid string length"];

/// A script, and what it may use.
pub(super) struct Script<'a> {
    /// In messages and stack traces.
    pub name: &'a str,
    /// The chunk as JSON.
    pub chunk: String,
    pub source: Vec<u8>,
    /// Memory that the chunk has left for it.
    pub memory_bytes: u64,
    /// Stack that the chunk has left for it.
    pub stack_bytes: usize,
}

/// What was going on when something was thrown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// The source was read; none of it ran.
    Declaring,
    /// The script ran.
    Running,
    /// Its answer was made into text.
    Answering,
}

/// Why a step went no further.
enum Stop {
    /// The script threw, or the interpreter did.
    Thrown(Step, Persistent<Value<'static>>),
    /// Not even an error could be made.
    NoMemory,
    /// It waits for what will never come.
    Never,
    /// A budget that cannot come back is used up.
    Over,
    /// All is said.
    Fault(Fault),
}

/// What a thrown value says of itself.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    #[serde(flatten)]
    thrown: Thrown,
    /// The number of the hit, where it is the error of a nested run.
    hit: Option<usize>,
}

/// Runs a script in a fresh realm.
pub(super) fn run(realm: &Realm, chunk: &Rc<Chunk>, script: Script<'_>) -> Result<String, Fault> {
    let meter = &chunk.bridge.meter;
    let (name, memory_bytes, before) = (script.name, script.memory_bytes, shape::before(&script.source));
    let resident_bytes = limits::resident_bytes();
    let limit = usize::try_from(memory_bytes).unwrap_or(usize::MAX);
    realm.runtime.set_memory_limit(limit);
    realm.runtime.set_max_stack_size(script.stack_bytes);
    let waits = Rc::new(Waits::default());
    let mut describe = None;
    let answered = realm.context.with(|ctx| answer(&ctx, chunk, &waits, script, &mut describe));
    // Whether such a change is part of the chunk would hang on who is faster.
    let leaves_behind = waits.asks("table");
    chunk.bridge.forget(&waits);
    let over = || meter.over().map(Fault::Budget);
    let stop = match (answered, over()) {
        (_, Some(over)) => return Err(over),
        (Ok(_), None) if leaves_behind => {
            let why = "outcome: the script answered while a call of cx.tables was under way; it must await each";
            return Err(Fault::BadOutcome(why.into()));
        }
        (Ok(answer), None) => return Ok(answer),
        (Err(stop), None) => stop,
    };
    let budgets = meter.budgets();
    let used_bytes = u64::try_from(realm.runtime.memory_usage().malloc_size).unwrap_or(0);
    let above_bytes = budgets.memory_bytes.saturating_sub(memory_bytes);
    let memory = |at: &str| {
        Fault::Budget(meter.spent(Budget::Memory, budgets.memory_bytes, above_bytes.saturating_add(used_bytes), at))
    };
    // With no room for an error the interpreter throws null, or a promise is lost. What filled the memory may be gone by
    // now; then the process remembers it.
    let grew_bytes = limits::peak_bytes().saturating_sub(resident_bytes);
    let full = used_bytes.max(grew_bytes) > memory_bytes / 2;
    Err(match stop {
        Stop::NoMemory => memory(""),
        Stop::Never if full => memory(""),
        Stop::Never | Stop::Over => {
            Fault::BadOutcome("outcome: the script waits for a promise that nothing will settle".into())
        }
        Stop::Fault(fault) => fault,
        Stop::Thrown(step, value) => {
            realm.runtime.set_memory_limit(limit.saturating_add(LAST_WORDS_BYTES));
            let described = realm.context.with(|ctx| read_thrown(&ctx, describe, value));
            if let Some(over) = over() {
                return Err(over);
            }
            let Described { thrown, hit } = described.unwrap_or_default();
            let at = || format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack);
            let nothing = thrown.name.is_empty() && (thrown.message.is_empty() || thrown.message == "null");
            if let Some(spent) = hit.and_then(|hit| chunk.hits.borrow().get(hit).cloned()) {
                Fault::Budget(spent)
            } else if REFUSALS.iter().any(|text| thrown.message.starts_with(text)) || (nothing && full) {
                memory(&at())
            } else if thrown.message == "Maximum call stack size exceeded" || thrown.message == "stack overflow" {
                let limit = budgets.stack_bytes;
                Fault::Budget(meter.spent(Budget::Stack, limit, limit, &at()))
            } else {
                match step {
                    Step::Declaring if thrown.name == "SyntaxError" => {
                        Fault::Syntax { message: syntax_fault(name, before, &thrown.message, &thrown.stack) }
                    }
                    Step::Declaring | Step::Running => Fault::Thrown(thrown),
                    Step::Answering => {
                        Fault::BadOutcome(format!("outcome: cannot be made into JSON: {}", thrown.message))
                    }
                }
            }
        }
    })
}

fn answer<'js>(
    ctx: &Ctx<'js>,
    chunk: &Rc<Chunk>,
    waits: &Rc<Waits>,
    script: Script<'_>,
    describe: &mut Option<Persistent<Function<'static>>>,
) -> Result<String, Stop> {
    let bridge = &*chunk.bridge;
    let declaring = |error| stopped(ctx, Step::Declaring, &error);
    let running = |error| stopped(ctx, Step::Running, &error);
    let prelude: Function = ctx.eval(PRELUDE).map_err(declaring)?;
    let host = host::functions(ctx, chunk, waits).map_err(declaring)?;
    let prelude: Object = prelude.call((host, script.chunk.as_str())).map_err(declaring)?;
    let function = |name| prelude.get::<_, Function>(name).map_err(running);
    *describe = Some(Persistent::save(ctx, function("describe")?));
    let settle = function("settle")?;

    let called: Promise = match Shape::of(ctx, script.name, &script.source).map_err(declaring)? {
        Shape::Module(module) => {
            let (module, evaluated) = module.eval().map_err(running)?;
            work_off(ctx, bridge, waits, &evaluated, &settle)?;
            let exported: Value = module.get("default").map_err(|_| Stop::Fault(Fault::NoFunction))?;
            let exported = exported.into_function().ok_or(Stop::Fault(Fault::NoFunction))?;
            function("call")?.call((exported,)).map_err(running)?
        }
        Shape::Blank => return Err(Stop::Fault(Fault::NoFunction)),
        Shape::Body(body) => {
            let v8: Function = ctx.eval(V8).map_err(declaring)?;
            let kit: Object = prelude.get("kit").map_err(declaring)?;
            v8.call::<_, ()>((kit, script.chunk, world(chunk))).map_err(declaring)?;
            body.call(()).map_err(running)?
        }
    };
    let answer = work_off(ctx, bridge, waits, &called, &settle)?;

    let answering = |error| stopped(ctx, Step::Answering, &error);
    let text: Option<rquickjs::String> = function("encode")?.call((answer,)).map_err(answering)?;
    let text = text.map_or(Ok("null".into()), |text| text.to_string()).map_err(answering)?;
    if bridge.meter.hand_out(text.len()) { Ok(text) } else { Err(Stop::Over) }
}

/// What a script of the V8 form is told of the server, as JSON.
fn world(chunk: &Chunk) -> String {
    let task = &chunk.run.chunk.task;
    let (world, budgets) = (&chunk.run.world, chunk.run.budgets);
    let forms: &[&str] = if world.tables.is_empty() { &[] } else { &form::METHODS };
    let told = json!({
        "nested": chunk.bridge.meter.depth() > 0,
        "user": {"Id": task.owner, "Account": task.owner, "Name": task.owner, "Level": world.user_level},
        "limits": {
            "TimeMs": chunk.run.time_ms, "Statements": budgets.statements, "MemoryBytes": budgets.memory_bytes,
            "StackBytes": budgets.stack_bytes, "Nesting": budgets.nesting, "OutputBytes": budgets.output_bytes,
            "LogBytes": budgets.log_bytes,
        },
        "forms": forms,
        "utcOffsetSeconds": world.utc_offset_seconds,
    });
    told.to_string()
}

/// Runs what is queued, and waits for sleeps and calls, until a promise is settled.
fn work_off<'js>(
    ctx: &Ctx<'js>,
    bridge: &Bridge,
    waits: &Waits,
    promise: &Promise<'js>,
    settle: &Function<'js>,
) -> Result<Value<'js>, Stop> {
    let running = |error| stopped(ctx, Step::Running, &error);
    loop {
        // Asked for here as well: a loop of short jobs is never long enough inside the interpreter to be asked there.
        if bridge.meter.is_over() {
            return Err(Stop::Over);
        }
        if let Some(settled) = promise.result::<Value>() {
            return settled.map_err(running);
        }
        if ctx.execute_pending_job() {
            continue;
        }
        match bridge.wait(waits) {
            Woken::Slept { ask } => settle.call::<_, ()>((ask as f64, "slept")).map_err(running)?,
            Woken::Answered { ask, returned } => {
                let text = String::from_utf8_lossy(&returned.body);
                let text = rquickjs::String::from_str(ctx.clone(), &text).map_err(running)?;
                settle.call::<_, ()>((ask as f64, returned.came.word(), text)).map_err(running)?;
            }
            Woken::Never => return Err(Stop::Never),
            Woken::Over => return Err(Stop::Over),
        }
    }
}

/// Takes what was thrown out of the interpreter.
fn stopped(ctx: &Ctx<'_>, step: Step, error: &Error) -> Stop {
    match error {
        Error::Exception => Stop::Thrown(step, Persistent::save(ctx, ctx.catch())),
        Error::Allocation => Stop::NoMemory,
        other => Stop::Fault(Fault::Thrown(Thrown { message: other.to_string(), ..Thrown::default() })),
    }
}

/// What was thrown, in words; none when it cannot be read.
fn read_thrown(
    ctx: &Ctx<'_>,
    describe: Option<Persistent<Function<'static>>>,
    value: Persistent<Value<'static>>,
) -> Option<Described> {
    let value = value.restore(ctx).ok()?;
    let text = describe?.restore(ctx).ok()?.call::<_, Value>((value,)).ok()?;
    serde_json::from_str(&String::from_js(ctx, text).ok()?).ok()
}
