//! The functions of the server, as the prelude knows them: text and numbers in, text and numbers out.

use super::super::protocol::Came;
use super::chunk::Chunk;
use super::waits::Waits;
use super::{ids, nested};
use crate::core::task::limits::LOG_LINE_BYTES;
use rquickjs::convert::List;
use rquickjs::{Ctx, Error, Exception, Function, Object};
use std::rc::Rc;

/// What came of a call, for the prelude: a word and a text.
type Told = List<(&'static str, String)>;

/// Makes them for one run.
pub(super) fn functions<'js>(ctx: &Ctx<'js>, chunk: &Rc<Chunk>, waits: &Rc<Waits>) -> Result<Object<'js>, Error> {
    let host = Object::new(ctx.clone())?;
    host.set("lineChars", LOG_LINE_BYTES)?;
    let cx = Rc::clone(chunk);
    host.set("log", Function::new(ctx.clone(), move |level: String, text: String| cx.bridge.log(&level, &text))?)?;
    let cx = Rc::clone(chunk);
    host.set("progress", Function::new(ctx.clone(), move |report: String| cx.bridge.progress(&report))?)?;
    let cx = Rc::clone(chunk);
    host.set("stopRequested", Function::new(ctx.clone(), move || cx.bridge.stop_requested())?)?;
    let (cx, open) = (Rc::clone(chunk), Rc::clone(waits));
    host.set("sleep", Function::new(ctx.clone(), move |ms: f64| cx.bridge.sleep(&open, ms) as f64)?)?;
    let (cx, open) = (Rc::clone(chunk), Rc::clone(waits));
    let call = move |ctx: Ctx<'_>, name: String, asked: String| {
        cx.bridge.call(&open, &name, &asked).map(|ask| ask as f64).ok_or_else(|| over(&ctx))
    };
    host.set("call", Function::new(ctx.clone(), call)?)?;
    let cx = Rc::clone(chunk);
    let call_now = move |ctx: Ctx<'_>, name: String, asked: String| -> Result<Told, Error> {
        let returned = cx.bridge.call_now(&name, &asked).ok_or_else(|| over(&ctx))?;
        Ok(List((returned.came.word(), String::from_utf8_lossy(&returned.body).into_owned())))
    };
    host.set("callNow", Function::new(ctx.clone(), call_now)?)?;
    let cx = Rc::clone(chunk);
    let run = move |key: String, params: String| -> Told {
        List(match nested::run(&cx, &key, &params) {
            Ok(answer) => (Came::Json.word(), answer),
            Err(refusal) => (Came::Refused.word(), refusal),
        })
    };
    host.set("newGuid", Function::new(ctx.clone(), ids::guid)?)?;
    host.set("newUlid", Function::new(ctx.clone(), ids::ulid)?)?;
    let tables = serde_json::to_string(&chunk.run.world.tables).expect("names are texts");
    host.set("tables", tables)?;
    host.set("run", Function::new(ctx.clone(), run)?)?;
    Ok(host)
}

fn over(ctx: &Ctx<'_>) -> Error {
    Exception::throw_message(ctx, "a budget of the chunk is used up")
}
