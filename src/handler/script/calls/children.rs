//! Children of the task: submitting them with the commit of the chunk, and looking at them.

use super::{Called, Caller, Refusal, Reply};
use crate::core::child::Child;
use crate::core::ids::TaskId;
use serde_json::Value;

/// Why a script may not.
pub(in crate::handler::script) const NOT_PERMITTED: &str =
    "this pack may not submit children: its manifest lacks the permission `tasks:submit`";

/// `submit`: given a child, how many the chunk has submitted with it. What is wrong with its fields for its action is told at
/// the end of the chunk.
pub(super) fn submit(caller: &Caller<'_>, asked: &Value) -> Called {
    if !caller.may_submit {
        return Err(Refusal::permanent("not-permitted", NOT_PERMITTED));
    }
    let child = Child::parse(asked, "child").map_err(|bad| Refusal::permanent("child-invalid", bad.0))?;
    caller.cx.submit(child)?;
    Ok(Reply::Json(caller.cx.submitted_count().into()))
}

/// `children`: counts by state, and the page of children after an id, or the first one.
pub(super) async fn children(caller: &Caller<'_>, asked: &Value) -> Called {
    let after = match asked {
        Value::Null => None,
        Value::String(id) => match id.parse::<TaskId>() {
            Ok(id) => Some(id),
            Err(_) => {
                return Err(Refusal::permanent("bad-argument", "what `children` goes on after is no id of a task"));
            }
        },
        _ => return Err(Refusal::permanent("bad-argument", "`children` goes on after the id of a task")),
    };
    let page = caller.cx.children_after(after).await?;
    serde_json::to_value(page)
        .map(Reply::Json)
        .map_err(|e| Refusal::retry("children", format!("the children could not be told: {e}")))
}
