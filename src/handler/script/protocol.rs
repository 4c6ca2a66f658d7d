//! What the server and a script's process say to each other: frames over the child's standard input and output.
//!
//! A frame is its length (4 bytes, big endian, of what follows), a head as one line of JSON, a line feed, and a body of
//! raw bytes, which for most frames is empty. A body is whatever is large or was written by a script: a source, a file,
//! an answer. It is never read as part of a head, so nothing that a script writes can change what a head says.
//!
//! The order: the child says `ready`; the server sends `run`; both talk while the chunk runs; the child ends it with
//! `answer` or `fault` and is ready again, unless it said that this was its last.

use crate::core::budget::{Budgets, Spent};
use crate::handler::ChunkIn;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::io::{self, Read, Write};

/// Of this protocol. A server and a child of different versions do not work together.
pub const VERSION: u32 = 3;

/// The longest frame that a child may send before it has a chunk, bytes.
pub const MAX_FROM_IDLE_BYTES: usize = 64 * 1024;

/// The longest frame that a server may send, bytes.
const MAX_TO_CHILD_BYTES: usize = super::limits::FILE_BYTES + 64 * 1024;

/// From the server to the child.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToChild {
    /// Run a chunk; the body is the script's source.
    Run(Box<Run>),
    /// The chunk should come to an end.
    Stop,
    /// The answer to a [`FromChild::Call`].
    Returned {
        /// Of the call.
        ask: u64,
        /// What the body is.
        came: Came,
    },
}

/// What came of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Came {
    /// A value, as JSON.
    Json,
    /// A text, as it is.
    Text,
    /// A refusal, as JSON: `{code, message, permanent}`, and `limit` where it was a budget.
    Refused,
}

impl Came {
    /// As the prelude knows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Text => "text",
            Self::Refused => "refused",
        }
    }
}

/// One chunk to run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Run {
    /// The script's name in messages and stack traces.
    pub name: String,
    /// The chunk.
    pub chunk: ChunkIn,
    /// What the chunk may use.
    pub budgets: Budgets,
    /// Time of the chunk.
    pub time_ms: u64,
    /// What of the server its scripts are told.
    pub world: World,
}

/// What of the server is told to the scripts of a chunk, beside the chunk itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct World {
    /// The tables of the pack that they may ask.
    pub tables: Vec<String>,
    /// How high whoever started the task stands at least, on the scale of the V8 form.
    pub user_level: u32,
    /// How far the server's local time is ahead of UTC.
    pub utc_offset_seconds: i32,
}

/// From the child to the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromChild {
    /// Waits for a chunk.
    Ready {
        /// [`VERSION`] of the child.
        version: u32,
    },
    /// A progress report.
    Progress(Map<String, Value>),
    /// A log line; the body is its text.
    Log {
        /// debug, info, warn or error.
        level: String,
    },
    /// Asks something of the server; the body is a JSON value.
    Call {
        /// Number of the call.
        ask: u64,
        /// What is asked, a name of the table in `calls`.
        name: String,
    },
    /// The script answered; the body is the answer as JSON.
    Answer {
        /// The child ends.
        last: bool,
    },
    /// The script did not answer.
    Fault {
        /// Why.
        fault: Fault,
        /// The child ends.
        last: bool,
    },
}

/// Why there is no answer.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// A budget was hit.
    Budget(Spent),
    /// It is no script.
    Syntax {
        /// File, line, column and what is wrong there.
        message: String,
    },
    /// It has no default export that can be called.
    NoFunction,
    /// It threw.
    Thrown(Thrown),
    /// Its answer cannot be sent on; the text names the limit or the reason.
    BadOutcome(String),
}

/// What a script threw.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Thrown {
    /// Its class, such as `TypeError`.
    pub name: String,
    /// What it says.
    pub message: String,
    /// Where it came from.
    pub stack: String,
    /// A code that the script gave it.
    pub code: Option<String>,
    /// The script says that trying again is useless.
    pub permanent: bool,
}

/// A whole frame.
pub fn encode<T: Serialize>(head: &T, body: &[u8]) -> Vec<u8> {
    let head = serde_json::to_vec(head).expect("heads hold nothing that JSON cannot");
    let length = head.len() + 1 + body.len();
    let mut frame = Vec::with_capacity(4 + length);
    frame.extend(u32::try_from(length).expect("bodies are held to their limits before").to_be_bytes());
    frame.extend(head);
    frame.push(b'\n');
    frame.extend(body);
    frame
}

/// A frame without its length, taken apart: the head, and where the body begins.
pub fn decode<T: DeserializeOwned>(frame: &[u8]) -> io::Result<(T, usize)> {
    let end = frame.iter().position(|byte| *byte == b'\n').ok_or_else(|| garbled("no head"))?;
    let head = serde_json::from_slice(&frame[..end]).map_err(garbled)?;
    Ok((head, end + 1))
}

/// Writes a frame and sends it off.
pub fn write(out: &mut impl Write, head: &FromChild, body: &[u8]) -> io::Result<()> {
    out.write_all(&encode(head, body))?;
    out.flush()
}

/// Waits for a frame from the server: its head and its body, or none when there will be no more.
pub fn read(from: &mut impl Read) -> io::Result<Option<(ToChild, Vec<u8>)>> {
    let mut length = [0; 4];
    if let Err(error) = from.read_exact(&mut length) {
        return if error.kind() == io::ErrorKind::UnexpectedEof { Ok(None) } else { Err(error) };
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_TO_CHILD_BYTES {
        return Err(garbled("a frame beyond the limit"));
    }
    let mut frame = vec![0; length];
    from.read_exact(&mut frame)?;
    let (head, body_at) = decode(&frame)?;
    Ok(Some((head, frame.split_off(body_at))))
}

fn garbled(why: impl ToString) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_reads_back_with_its_body_byte_for_byte() {
        let body = b"line\n{\"answer\":1}\n\0\xff";
        let mut pipe = encode(&ToChild::Returned { ask: 7, came: Came::Text }, body);
        pipe.extend(encode(&ToChild::Stop, b""));
        let mut pipe = pipe.as_slice();
        let (head, read_body) = read(&mut pipe).unwrap().unwrap();
        assert!(matches!(head, ToChild::Returned { ask: 7, came: Came::Text }));
        assert_eq!(read_body, body);
        let (head, read_body) = read(&mut pipe).unwrap().unwrap();
        assert!(matches!(head, ToChild::Stop) && read_body.is_empty());
        assert!(read(&mut pipe).unwrap().is_none());
    }

    #[test]
    fn a_frame_that_is_cut_garbled_or_too_long_is_an_error_and_never_a_panic() {
        let whole = encode(&ToChild::Returned { ask: 1, came: Came::Json }, b"");
        for length in 5..whole.len() {
            assert!(read(&mut &whole[..length]).is_err(), "{length}");
        }
        assert!(read(&mut [0, 0, 0, 2, b'{', b'\n'].as_slice()).is_err());
        assert!(read(&mut [0, 0, 0, 2, b'{', b'}'].as_slice()).is_err());
        assert!(read(&mut [0xff, 0xff, 0xff, 0xff].as_slice()).is_err());
    }
}
