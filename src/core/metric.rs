//! What is measured: the name of each number, its kind, its labels and what it says. One table, so that what is counted where
//! it happens, what `/metrics` tells and what docs/operations.md lists are the same.
//!
//! A label takes its values from a list that the code or the configuration ends: states, outcomes, error codes, route
//! templates. Never a tenant, a user, a task, a path as it came, or any other text of a caller: the number of series is
//! bounded whatever is asked. Times are seconds, sizes bytes.

/// How a number moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only upwards, until the process ends.
    Counter,
    /// Up and down.
    Gauge,
    /// How often which size came.
    Histogram,
}

impl Kind {
    /// The word of the exposition format.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// One of the numbers.
#[derive(Clone, Copy, Debug)]
pub struct Metric {
    /// As it is exposed.
    pub name: &'static str,
    /// How it moves.
    pub kind: Kind,
    /// Names of its labels.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
}

macro_rules! metrics {
    ($($id:ident $name:literal $kind:ident [$($label:literal),*] $help:literal;)*) => {
        $(#[doc = $help] pub const $id: &str = $name;)*

        /// All of them, in the order of the docs.
        pub const ALL: &[Metric] = &[$(Metric { name: $name, kind: Kind::$kind, labels: &[$($label),*], help: $help },)*];
    };
}

metrics! {
    BUILD "taskbell_build_info" Gauge ["version"] "Always 1; the version is the label.";
    MEMORY "taskbell_process_resident_memory_bytes" Gauge [] "Memory of the process, where the system tells it.";
    DATABASE_UP "taskbell_database_up" Gauge [] "1 when the database answered this reading, else 0: then what is read from it is left out.";
    DATABASE_SECONDS "taskbell_database_answer_seconds" Gauge [] "How long the database took to answer this reading.";
    TASKS "taskbell_tasks" Gauge ["state"] "Unfinished tasks by state, of all tenants; at most 5 s old.";
    SUBMITS "taskbell_submits_total" Counter ["answer"] "Clicks by what became of them: created, replayed, skipped, refused.";
    CLAIMS "taskbell_claims_total" Counter [] "Chunks that this node claimed.";
    CLAIM_SECONDS "taskbell_claim_seconds" Histogram [] "How long a claim took, empty ones included.";
    PICKUP_SECONDS "taskbell_pickup_seconds" Histogram [] "From the instant that a chunk was due to its claim.";
    RUNNING "taskbell_running_chunks" Gauge [] "Chunks under way on this node.";
    CHUNKS "taskbell_chunks_total" Counter ["outcome"] "Chunks by their end: more, done, failed, handed-back, lost, not-stored.";
    CHUNK_SECONDS "taskbell_chunk_seconds" Histogram [] "How long handlers worked on a chunk.";
    WORKER_POLLS "taskbell_worker_polls" Gauge [] "Polls of workers outside that wait on this node.";
    COMMIT_ITEMS "taskbell_commit_items" Histogram ["kind"] "How many submits or chunks went into one commit.";
    COMMIT_SECONDS "taskbell_commit_seconds" Histogram ["kind"] "How long that commit took.";
    REPORTS "taskbell_reports_total" Counter [] "Progress reports that were stored between commits.";
    STALE_WRITES "taskbell_stale_writes_total" Counter ["write"] "Writes of an owner that had lost its task, which changed nothing: chunk, report, renewal.";
    LEASES_ENDED "taskbell_leases_ended_total" Counter [] "Chunks that this node dropped because it could not renew their leases.";
    SWEPT "taskbell_swept_total" Counter [] "Tasks that a sweep of this node took from dead owners, out of time or off a cancel.";
    SESSIONS_ENDED "taskbell_sessions_ended_total" Counter [] "Sessions at the database server that this node ended because their node stood still in a transaction.";
    RETAINED "taskbell_retained_total" Counter [] "Tasks that this node took away because the time they are kept was over.";
    CONFLICTS "taskbell_store_conflicts_total" Counter ["then"] "Transactions that the database gave up for the sake of others, and what their verb did: again, given-up.";
    PACK_LOADS "taskbell_pack_loads_total" Counter ["result"] "Folders of packs that this node read anew: loaded, refused.";
    PACKS_AT_FAULT "taskbell_packs_at_fault" Gauge [] "Packs whose folder, as it is now, this node cannot load.";
    EFFECTS_REFUSED "taskbell_effects_refused_total" Counter [] "Chunks that failed because the database refused what they wrote.";
    ROWS_LEFT_OUT "taskbell_rows_left_out_total" Counter [] "Tasks that this node's batches and sweeps left alone because this version does not understand their rows.";
    LOG_LINES_DROPPED "taskbell_log_lines_dropped_total" Counter [] "Lines of task logs that had no room or could not be stored.";
    SOCKETS "taskbell_sockets" Gauge [] "Open WebSockets of this node.";
    FRAMES "taskbell_frames_sent_total" Counter ["frame"] "Frames of the push that were written, by their kind.";
    SNAPSHOTS "taskbell_snapshots_read_total" Counter [] "Notification centers that were read from the database for the push.";
    REDIS_UP "taskbell_redis_up" Gauge [] "1 while Redis brings what other nodes tell, else 0; absent without Redis.";
    REDIS_EVENTS "taskbell_redis_events_total" Counter ["direction"] "Signals that were sent to other nodes and received from them by Redis.";
    REDIS_LOST "taskbell_redis_lost_total" Counter [] "Signals that could not be sent to other nodes; these find them in the database.";
    CAUGHT_UP "taskbell_changes_caught_up_total" Counter [] "Changes for the push that no other node told of and that were read off the database.";
    SNAPSHOT_READS "taskbell_snapshot_reads" Gauge [] "Readings of notification centers under way at this moment; the push makes at most 4 at once.";
    SNAPSHOT_READS_MOST "taskbell_snapshot_reads_most" Gauge [] "The most of them that were under way at once since the start.";
    REQUESTS "taskbell_http_requests_total" Counter ["method", "route", "status"] "Requests by method, route template and status.";
    REQUEST_SECONDS "taskbell_http_request_seconds" Histogram ["route"] "From the head of a request to that of its answer.";
    PROBLEMS "taskbell_problems_total" Counter ["code"] "Requests that were refused or failed, by the code of the problem.";
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_told_apart_and_say_their_unit() {
        assert_eq!(ALL.iter().map(|m| m.name).collect::<BTreeSet<_>>().len(), ALL.len());
        for Metric { name, kind, help, .. } in ALL {
            assert!(name.starts_with("taskbell_") && help.ends_with('.'), "{name}");
            assert_eq!(name.ends_with("_total"), *kind == Kind::Counter, "{name}");
            let with_unit = ["_seconds", "_bytes", "_items"].iter().any(|unit| name.ends_with(unit));
            assert!(with_unit || *kind != Kind::Histogram, "{name}");
        }
    }
}
