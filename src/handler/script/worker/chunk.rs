//! One chunk of a script, from its source to its answer as JSON text, or to why there is none.
//!
//! The script's module is declared and evaluated, its default export is called with `task` and `cx`, and its promises are
//! worked off until the answer is there. What was thrown is read in a second step, after the memory limit was raised a
//! little: a script that has filled its memory leaves no room to say so.

use super::super::limits::{self, ANSWER_BYTES, LAST_WORDS_BYTES};
use super::super::protocol::{Fault, Found, Run, Thrown};
use super::bridge::{Bridge, Woken};
use super::realm::{Realm, syntax_fault};
use crate::core::task::limits::{CHECKPOINT_BYTES, LOG_LINE_BYTES, RESULT_BYTES};
use rquickjs::{Ctx, Error, FromJs, Function, Module, Object, Persistent, Promise, Value};
use std::rc::Rc;
use std::time::Duration;

/// What stands between a script and the host; an expression whose value is called with the host's functions.
const PRELUDE: &str = include_str!("../js/prelude.js");

/// What the interpreter says when it will not give out as much memory as is asked for.
const REFUSALS: [&str; 3] = ["out of memory", "invalid array buffer length", "invalid string length"];

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
    /// Its time is over.
    Over,
    /// All is said.
    Fault(Fault),
}

/// Runs a chunk.
pub(super) fn run(realm: &Realm, bridge: &Rc<Bridge>, run: &Run, source: Vec<u8>) -> Result<String, Fault> {
    bridge.begin(Duration::from_millis(run.time_ms));
    let resident_bytes = limits::resident_bytes();
    let limit = usize::try_from(run.memory_bytes).unwrap_or(usize::MAX);
    realm.runtime.set_memory_limit(limit);
    let mut describe = None;
    let stop = match realm.context.with(|ctx| answer(&ctx, bridge, run, source, &mut describe)) {
        Ok(answer) => return Ok(answer),
        Err(_) if bridge.is_over() => return Err(Fault::Time),
        Err(stop) => stop,
    };
    let used_bytes = u64::try_from(realm.runtime.memory_usage().malloc_size).unwrap_or(0);
    let memory = |detail: String| Fault::Memory { used_bytes, detail };
    // With no room for an error the interpreter throws null, or a promise is lost. What filled the memory may be gone by
    // now; then the process remembers it.
    let grew_bytes = limits::peak_bytes().saturating_sub(resident_bytes);
    let full = used_bytes.max(grew_bytes) > run.memory_bytes / 2;
    Err(match stop {
        Stop::Over => Fault::Time,
        Stop::NoMemory => memory(String::new()),
        Stop::Never if full => memory(String::new()),
        Stop::Never => Fault::BadOutcome("outcome: the script waits for a promise that nothing will settle".into()),
        Stop::Fault(fault) => fault,
        Stop::Thrown(step, value) => {
            realm.runtime.set_memory_limit(limit.saturating_add(LAST_WORDS_BYTES));
            let thrown = realm.context.with(|ctx| read_thrown(&ctx, describe, value));
            if bridge.is_over() {
                return Err(Fault::Time);
            }
            let thrown = thrown.unwrap_or_default();
            let nothing = thrown.name.is_empty() && (thrown.message.is_empty() || thrown.message == "null");
            if REFUSALS.iter().any(|text| thrown.message.starts_with(text)) || (nothing && full) {
                memory(format!("{}: {}\n{}", thrown.name, thrown.message, thrown.stack))
            } else if thrown.message == "Maximum call stack size exceeded" || thrown.message == "stack overflow" {
                Fault::Stack { detail: thrown.stack }
            } else {
                match step {
                    Step::Declaring if thrown.name == "SyntaxError" => {
                        Fault::Syntax { message: syntax_fault(&run.name, &thrown.message, &thrown.stack) }
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
    bridge: &Rc<Bridge>,
    run: &Run,
    source: Vec<u8>,
    describe: &mut Option<Persistent<Function<'static>>>,
) -> Result<String, Stop> {
    let declaring = |error| stopped(ctx, Step::Declaring, &error);
    let running = |error| stopped(ctx, Step::Running, &error);
    let chunk = serde_json::to_string(&run.chunk).expect("a chunk came as JSON");
    let prelude: Function = ctx.eval(PRELUDE).map_err(declaring)?;
    let host = host(ctx, bridge).map_err(declaring)?;
    let prelude: Object = prelude.call((host, chunk)).map_err(declaring)?;
    let function = |name| prelude.get::<_, Function>(name).map_err(running);
    *describe = Some(Persistent::save(ctx, function("describe")?));
    let settle = function("settle")?;

    let module = Module::declare(ctx.clone(), run.name.as_str(), source).map_err(declaring)?;
    let (module, evaluated) = module.eval().map_err(running)?;
    work_off(ctx, bridge, &evaluated, &settle)?;
    let exported: Value = module.get("default").map_err(|_| Stop::Fault(Fault::NoFunction))?;
    let exported = exported.into_function().ok_or(Stop::Fault(Fault::NoFunction))?;
    let called: Promise = function("call")?.call((exported,)).map_err(running)?;
    let answer = work_off(ctx, bridge, &called, &settle)?;

    let answering = |error| stopped(ctx, Step::Answering, &error);
    let text: Option<rquickjs::String> = function("encode")?.call((answer,)).map_err(answering)?;
    let text = text.map_or(Ok("null".into()), |text| text.to_string()).map_err(answering)?;
    if text.len() > ANSWER_BYTES {
        return Err(Stop::Fault(Fault::BadOutcome(format!(
            "outcome: has {} bytes, the limit is {ANSWER_BYTES} ({RESULT_BYTES} for a result, {CHECKPOINT_BYTES} for a \
             checkpoint)",
            text.len()
        ))));
    }
    Ok(text)
}

/// Runs what is queued, and waits for sleeps and files, until a promise is settled.
fn work_off<'js>(
    ctx: &Ctx<'js>,
    bridge: &Bridge,
    promise: &Promise<'js>,
    settle: &Function<'js>,
) -> Result<Value<'js>, Stop> {
    let running = |error| stopped(ctx, Step::Running, &error);
    loop {
        // Asked for here as well: a loop of short jobs is never long enough inside the interpreter to be asked there.
        if bridge.is_over() {
            return Err(Stop::Over);
        }
        if let Some(settled) = promise.result::<Value>() {
            return settled.map_err(running);
        }
        if ctx.execute_pending_job() {
            continue;
        }
        match bridge.wait() {
            Woken::Slept { ask } => settle.call::<_, ()>((ask as f64, true)).map_err(running)?,
            Woken::Read { ask, found, text } => {
                let text = String::from_utf8_lossy(&text);
                let text = rquickjs::String::from_str(ctx.clone(), &text).map_err(running)?;
                let permanent = found == Found::Never;
                settle.call::<_, ()>((ask as f64, found == Found::Text, text, permanent)).map_err(running)?;
            }
            Woken::Never => return Err(Stop::Never),
            Woken::Over => return Err(Stop::Over),
        }
    }
}

/// The functions of the server, as the prelude knows them: text and numbers in, text and numbers out.
fn host<'js>(ctx: &Ctx<'js>, bridge: &Rc<Bridge>) -> Result<Object<'js>, Error> {
    let host = Object::new(ctx.clone())?;
    let with = |bridge: &Rc<Bridge>| Rc::clone(bridge);
    host.set("lineChars", LOG_LINE_BYTES)?;
    let cx = with(bridge);
    host.set("log", Function::new(ctx.clone(), move |level: String, text: String| cx.log(&level, &text))?)?;
    let cx = with(bridge);
    host.set("progress", Function::new(ctx.clone(), move |report: String| cx.progress(&report))?)?;
    let cx = with(bridge);
    host.set("stopRequested", Function::new(ctx.clone(), move || cx.stop_requested())?)?;
    let cx = with(bridge);
    host.set("leaseIsCurrent", Function::new(ctx.clone(), move || cx.lease_is_current().unwrap_or(false))?)?;
    let cx = with(bridge);
    host.set("readFile", Function::new(ctx.clone(), move |id: String| cx.read_file(id) as f64)?)?;
    let cx = with(bridge);
    host.set("sleep", Function::new(ctx.clone(), move |ms: f64| cx.sleep(ms) as f64)?)?;
    Ok(host)
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
) -> Option<Thrown> {
    let value = value.restore(ctx).ok()?;
    let text = describe?.restore(ctx).ok()?.call::<_, Value>((value,)).ok()?;
    serde_json::from_str(&String::from_js(ctx, text).ok()?).ok()
}
