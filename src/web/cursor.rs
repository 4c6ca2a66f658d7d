//! Where the next page of a list begins, as an opaque text.
//!
//! A cursor is bound to all that makes the list what it is (who looks, filters, sort): used anywhere else it is refused, as
//! is any text that this version did not make. It carries no rights: what it leads to is read within the caller's reach.

use super::error::{ApiError, Code};
use crate::core::ids::TaskId;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The version of what is inside.
const VERSION: u8 = 1;
/// No cursor is longer.
const MAX_BYTES: usize = 300;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Inside {
    v: u8,
    at: i64,
    id: TaskId,
    of: String,
}

/// A cursor after (sort value, id) in a list that `list` describes in full.
#[must_use]
pub fn write(list: &str, (at, id): (i64, TaskId)) -> String {
    let inside = Inside { v: VERSION, at, id, of: seal(list, at, id) };
    URL_SAFE_NO_PAD.encode(serde_json::to_vec(&inside).expect("plain data is JSON"))
}

/// Reads it back.
///
/// # Errors
/// 400 `bad-cursor` for anything that was not made for this list.
pub fn read(list: &str, text: &str) -> Result<(i64, TaskId), ApiError> {
    let inside = || -> Option<Inside> {
        let bytes = URL_SAFE_NO_PAD.decode(Some(text).filter(|t| t.len() <= MAX_BYTES)?).ok()?;
        let inside: Inside = serde_json::from_slice(&bytes).ok()?;
        (inside.v == VERSION && inside.of == seal(list, inside.at, inside.id)).then_some(inside)
    };
    inside().map(|i| (i.at, i.id)).ok_or_else(|| ApiError::new(Code::BadCursor))
}

fn seal(list: &str, at: i64, id: TaskId) -> String {
    hex::encode(&Sha256::digest(format!("{list}\0{at}\0{id}"))[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_and_nothing_else_is() {
        let place = (1_764_000_000_000, TaskId::new());
        let cursor = write("tenant a", place);
        assert_eq!(read("tenant a", &cursor).unwrap(), place);
        let changed = URL_SAFE_NO_PAD
            .encode(String::from_utf8(URL_SAFE_NO_PAD.decode(&cursor).unwrap()).unwrap().replace("1764000000000", "0"));
        let long = "A".repeat(100_000);
        for text in ["", "0", "-1", "9223372036854775807", "garbage!", "e30", "bnVsbA", &changed, &long] {
            assert_eq!(read("tenant a", text).unwrap_err().code, Code::BadCursor, "{text}");
        }
        assert_eq!(read("tenant b", &cursor).unwrap_err().code, Code::BadCursor);
    }
}
