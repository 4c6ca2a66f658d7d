//! Calls about the chunk itself: whether its lease is current, and the files that were uploaded for its task.

use super::{Called, Caller, Refusal, Reply};
use crate::handler::script::limits::FILE_BYTES;
use serde_json::Value;

/// `lease`: asks the database; answers true or false.
pub(super) async fn lease(caller: &Caller<'_>) -> Called {
    Ok(Reply::Json(caller.cx.lease_is_current().await.into()))
}

/// `file`: given an id, the text of a file: UTF-8, without a byte order mark, at most [`FILE_BYTES`].
pub(super) async fn file(caller: &Caller<'_>, asked: &Value) -> Called {
    let file = caller.cx.open_file(asked.as_str().unwrap_or_default()).await?;
    let refused = |code, why: String| Err(Refusal::permanent(code, format!("{} {why}", file.name)));
    if file.bytes.len() > FILE_BYTES {
        let bytes = file.bytes.len();
        return refused(
            "file-too-large",
            format!("has {bytes} bytes, the limit for reading it as text is {FILE_BYTES}"),
        );
    }
    if std::str::from_utf8(&file.bytes).is_err() {
        return refused("file-not-text", "is not UTF-8 text".into());
    }
    let mark = if file.bytes.starts_with("\u{feff}".as_bytes()) { 3 } else { 0 };
    Ok(Reply::Text(file.bytes.slice(mark..)))
}
