//! What a server sends, as far as the client reads it: tasks, lines of the log, frames of the socket.
//!
//! Shapes of their own and not those of the server, because the two may be of different versions: unknown fields are
//! ignored, missing ones are empty, and a kind of frame that this client does not know is [`Frame::Other`].

use serde::Deserialize;
use serde_json::{Map, Value};

/// A task as far as it is shown. Unknown fields are ignored; missing ones are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct TaskLine {
    pub title: String,
    pub state: String,
    pub progress: ProgressLine,
    pub waiting: Option<WaitingLine>,
    pub error: Option<ErrorLine>,
    pub rows: RowsLine,
    pub warnings: Vec<String>,
    pub attempt: i64,
    pub max_attempts: i64,
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
}

/// Progress as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct ProgressLine {
    pub current: u64,
    pub total: Option<u64>,
    pub unit: Option<String>,
    pub message: Option<String>,
    pub percent: Option<u8>,
    pub updated_at: Option<String>,
    pub eta: EtaLine,
}

/// The estimate as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EtaLine {
    pub state: String,
    pub finish_at: Option<String>,
    pub remaining_seconds: Option<f64>,
    pub confidence: Option<String>,
}

/// Why no chunk runs.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct WaitingLine {
    pub reason: String,
    pub until: Option<String>,
    pub position: Option<u64>,
}

/// Why it failed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct ErrorLine {
    pub kind: String,
    pub code: String,
    pub message: String,
}

/// Counts of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct RowsLine {
    pub ok: u64,
    pub skipped: u64,
    pub failed: u64,
}

/// One line of the task's log.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct LogLine {
    pub seq: i64,
    pub at: String,
    pub level: String,
    pub message: String,
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Succeeded,
    Failed,
    Cancelled,
}

impl TaskLine {
    /// How it ended; none while it has not.
    pub(crate) fn end(&self) -> Option<End> {
        match self.state.as_str() {
            "succeeded" => Some(End::Succeeded),
            "failed" => Some(End::Failed),
            "cancelled" => Some(End::Cancelled),
            _ => None,
        }
    }
}

/// A frame from the server, as far as the follower reads it.
#[derive(Deserialize)]
#[serde(tag = "t", rename_all = "lowercase")]
pub(crate) enum Frame {
    #[serde(rename_all = "camelCase")]
    Welcome {
        epoch: String,
        #[serde(default)]
        head: i64,
        #[serde(default)]
        ping_ms: Option<u64>,
    },
    Snap {
        topic: String,
        #[serde(default)]
        head: i64,
        items: Vec<Map<String, Value>>,
    },
    Same {
        topic: String,
        #[serde(default)]
        head: i64,
    },
    Delta {
        #[serde(default)]
        topic: String,
        #[serde(default)]
        head: i64,
        items: Vec<Map<String, Value>>,
    },
    Gone {
        id: String,
    },
    Log {
        task: String,
        #[serde(default)]
        from: i64,
        lines: Vec<LogLine>,
    },
    Ping {
        #[serde(default)]
        head: i64,
    },
    #[serde(rename_all = "camelCase")]
    Drain {
        #[serde(default)]
        retry_ms: u64,
        #[serde(default)]
        spread_ms: u64,
    },
    Status {
        live: String,
    },
    Err {
        code: String,
        #[serde(default)]
        retryable: bool,
        #[serde(default)]
        topic: Option<String>,
    },
    #[serde(other)]
    Other,
}
