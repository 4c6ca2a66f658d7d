//! A driver's fault as one of ours, by SQLSTATE. The server's message names tables and columns; its detail, which may hold
//! values, is left out.

use super::super::StoreError;

/// Tells what a fault means for whoever called.
pub(in crate::store) fn fault(e: sqlx::Error) -> StoreError {
    match &e {
        sqlx::Error::RowNotFound => StoreError::NotFound,
        sqlx::Error::PoolTimedOut => StoreError::Unavailable("no connection to the database in time".into()),
        sqlx::Error::Database(d) => of_server(d.code().as_deref().unwrap_or_default(), d.message()),
        sqlx::Error::ColumnDecode { .. } | sqlx::Error::Decode(_) | sqlx::Error::ColumnIndexOutOfBounds { .. } => {
            StoreError::Corrupt(e.to_string())
        }
        // Whatever is wrong with a connection, another one may do.
        _ => StoreError::Unavailable(e.to_string()),
    }
}

/// The same for the begin of a transaction, where a standby says that it cannot do what was asked.
pub(super) fn at_begin(e: sqlx::Error) -> StoreError {
    match &e {
        sqlx::Error::Database(d) if d.code().as_deref() == Some("0A000") => of_server("25006", d.message()),
        _ => fault(e),
    }
}

/// The same for what we write of our own, where only an id can be taken: it was written before, or at the same time.
pub(super) fn of_write(e: sqlx::Error) -> StoreError {
    match &e {
        sqlx::Error::Database(d) if d.is_unique_violation() => StoreError::Conflict("the id of a task is taken".into()),
        _ => fault(e),
    }
}

/// Whether a fault says that the server takes no writes: a connection to another one may.
pub(super) fn takes_no_writes(e: &sqlx::Error) -> bool {
    matches!(e, sqlx::Error::Database(d) if matches!(d.code().as_deref(), Some("0A000" | "25006")))
}

/// Whether a pooler refused what a connection was to be started with.
pub(super) fn refuses_settings(e: &sqlx::Error) -> bool {
    matches!(e, sqlx::Error::Database(d)
        if d.code().as_deref() == Some("08P01") && d.message().contains("startup parameter"))
}

fn of_server(state: &str, message: &str) -> StoreError {
    let text = message.to_owned();
    match state {
        // Serialization failure, deadlock, lock timeout.
        "40001" | "40P01" | "55P03" => StoreError::Conflict(text),
        // Statement timeout.
        "57014" => StoreError::Busy(text),
        // No rights on a table or schema: an administrator can give them back.
        "42501" => StoreError::Unavailable(format!("the database user lacks a right: {text}")),
        // A standby, or one that was made read-only: its successor takes writes.
        "25006" => StoreError::Unavailable(format!("the database takes no writes: {text}")),
        // The server ended a transaction whose node was silent for too long.
        "25P03" => StoreError::Unavailable(text),
        // What the database needs is not there, or another version changed it.
        "42P01" | "42703" => StoreError::Corrupt(text),
        _ => match state.get(..2).unwrap_or_default() {
            // Connection exceptions, wrong password, no such database, out of resources, shutting down, system errors.
            "08" | "28" | "3D" | "53" | "57" | "58" => StoreError::Unavailable(text),
            // Values that do not fit, and constraints.
            "22" | "23" => StoreError::Limit(text),
            _ => StoreError::Corrupt(text),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflicts_and_outages_are_transient_and_refusals_are_not() {
        for state in ["40001", "40P01", "55P03", "57014", "57P01", "08006", "53300", "25006", "25P03", "28P01", "42501"]
        {
            assert!(of_server(state, "").is_transient(), "{state}");
        }
        for state in ["23505", "22003", "42601", "42P01", "XX000"] {
            assert!(!of_server(state, "").is_transient(), "{state}");
        }
        assert!(fault(sqlx::Error::PoolTimedOut).is_transient());
    }
}
