//! The call behind `cx.run`: hands out the text of another script. The script's process runs it itself, within the budgets
//! of the chunk.

use super::{Called, Caller, Refusal, Reply};
use serde_json::Value;

/// `script`: given a key, the script's name, a line feed, and its text.
pub(super) async fn script(caller: &Caller<'_>, asked: &Value) -> Called {
    let key = asked.as_str().unwrap_or_default();
    let unreadable = |error| {
        tracing::warn!(%error, key, "a script that another one runs could not be read");
        Refusal::retry("script-unreadable", format!("the script `{key}` could not be read"))
    };
    match caller.library.get(key).await.map_err(unreadable)? {
        Some((name, text)) => Ok(Reply::Text([name.as_bytes(), b"\n", &text].concat().into())),
        None => Err(Refusal::permanent("unknown-script", format!("there is no script `{key}`"))),
    }
}
