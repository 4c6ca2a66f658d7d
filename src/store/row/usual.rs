//! What the columns of a new task hold nearly always, so that a statement need not be given it row by row. A task that differs
//! in one of them is written whole; nothing is lost by a column too many or too few here but time.

/// Columns that are null in nearly every new task.
const SELDOM_GIVEN: &[&str] = &[
    "retry_of",
    "pack",
    "parent",
    "depth",
    "weight",
    "chunk_until",
    "blocked_by",
    "stop_actor",
    "stop_reason",
    "stop_at",
    "progress_unit",
    "progress_phase",
    "error",
    "seen_at",
    "read_at",
    "archived_at",
    "awaits",
    "family",
    "started_at",
    "finished_at",
    "checkpoint_hash",
    "lease_owner",
    "lease_until",
    "deadline",
    "progress_total",
    "progress_message",
    "progress_at",
];

/// Columns that are 0 in nearly every new task.
const SELDOM_MORE: &[&str] = &[
    "suppressed",
    "superseded",
    "gated",
    "failures",
    "reclaims",
    "takeovers",
    "rows_ok",
    "rows_skipped",
    "rows_failed",
    "attempts",
    "chunks",
    "idle_chunks",
    "fencing_token",
    "progress_current",
    "has_result",
    "under_way",
];

/// What nearly every new task has in a column, as SQL; `None` = that differs.
pub(crate) fn usual(column: &str) -> Option<&'static str> {
    match column {
        "warnings" => Some("'[]'"),
        _ if SELDOM_GIVEN.contains(&column) => Some("NULL"),
        _ if SELDOM_MORE.contains(&column) => Some("0"),
        _ => None,
    }
}
