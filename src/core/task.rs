//! The task: one accepted request, as the store keeps it. Plain data; what may change and how is in [`super::lifecycle`].
//!
//! Invariants: a final state has `finished_at` and no lease; a lease means that a chunk is under way; `slot_held` only with
//! a concurrency key; `fencing_token`, `revision`, `takeovers` and `chunks` only grow.

use super::eta::Estimator;
use super::family::{Family, OnFailure, Parent};
use super::ids::{FencingToken, Head, Revision, TaskId};
use super::progress::Progress;
use super::time::Millis;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What a person sees. `Running` lasts from the first claim to an end, a pause or a failure, also between two chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Accepted, not yet claimed, or put back for a retry. Entered by submit, unblock, retry, resume; left by claim.
    Queued,
    /// Its concurrency key is full. Left when a slot frees.
    Blocked,
    /// Claimed at least once and not ended.
    Running,
    /// A pause was asked while a chunk was under way.
    Pausing,
    /// Stopped at its checkpoint until somebody resumes it.
    Paused,
    /// A cancel was asked while a chunk was under way.
    Cancelling,
    /// Ended well. Final.
    Succeeded,
    /// Ended with an error. Final but for resume.
    Failed,
    /// Ended by a person or a policy. Final but for resume.
    Cancelled,
    /// A newer version wrote the row in words that this one does not know. Only ever read: no event leads here or on from
    /// here, and nobody writes it.
    Unknown,
}

impl State {
    /// All states that a task can be in, in the order in which people list them; [`Self::Unknown`] comes after them.
    pub const ALL: [Self; 9] = [
        Self::Queued,
        Self::Blocked,
        Self::Running,
        Self::Pausing,
        Self::Paused,
        Self::Cancelling,
        Self::Succeeded,
        Self::Failed,
        Self::Cancelled,
    ];

    /// The word used in JSON, SQL, pages and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Running => "running",
            Self::Pausing => "pausing",
            Self::Paused => "paused",
            Self::Cancelling => "cancelling",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// Reads the word as a filter names it, where `unknown` stands for all that [`Self::parse`] does not know.
    #[must_use]
    pub fn named(text: &str) -> Option<Self> {
        Self::parse(text).or((text == Self::Unknown.as_str()).then_some(Self::Unknown))
    }

    /// Reads the word; `None` for one that this version does not know.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|s| s.as_str() == text)
    }

    /// Succeeded, failed or cancelled.
    #[must_use]
    pub fn is_final(self) -> bool {
        matches!(self, Self::Succeeded | Self::Failed | Self::Cancelled)
    }
}

/// The business record a task belongs to: a declared type and the application's own id (1–255 bytes each).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct RecordRef {
    /// The record type, as declared in the configuration or named by the caller.
    #[serde(rename = "type")]
    pub kind: String,
    /// The application's id of the record.
    pub id: String,
}

impl RecordRef {
    /// Whether a task could ever belong to it: both parts have 1 to 255 bytes and no NUL, the type has no colon.
    #[must_use]
    pub fn may_exist(&self) -> bool {
        let sound = |text: &str| (1..=limits::KEY_BYTES).contains(&text.len()) && !text.contains('\0');
        sound(&self.kind) && sound(&self.id) && !self.kind.contains(':')
    }
}

/// How long a task keeps its slot of a concurrency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Hold {
    /// From the first claim to the end, through gaps, delays, retries and pauses.
    Task,
    /// Only while a chunk runs.
    Chunk,
}

/// The concurrency key of a task, resolved: identity is (tenant, key), shared by all actions that name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Concurrency {
    /// The key with its placeholders filled, 1–255 bytes.
    pub key: String,
    /// How many tasks may hold the key at once, ≥ 1.
    pub limit: u32,
    /// How long the slot is held.
    pub hold: Hold,
}

/// Why no chunk of an unfinished task runs at this moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WaitReason {
    /// Due; every place is taken.
    Capacity,
    /// A planned gap between two chunks.
    Delay,
    /// The last attempt failed.
    Retry,
    /// `runAt` lies ahead.
    Scheduled,
    /// The concurrency key is full.
    Concurrency,
    /// Somebody paused it.
    Paused,
    /// No node knows a handler for the action.
    NoHandler,
    /// Its pack is switched off.
    PackDisabled,
    /// Its children have not all ended.
    Children,
}

impl WaitReason {
    /// The word used in JSON and SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Delay => "delay",
            Self::Retry => "retry",
            Self::Scheduled => "scheduled",
            Self::Concurrency => "concurrency",
            Self::Paused => "paused",
            Self::NoHandler => "no-handler",
            Self::PackDisabled => "pack-disabled",
            Self::Children => "children",
        }
    }

    /// Reads the word back; an unknown one counts as capacity.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        use WaitReason::{Capacity, Children, Concurrency, Delay, NoHandler, PackDisabled, Paused, Retry, Scheduled};
        [Delay, Retry, Scheduled, Concurrency, Paused, NoHandler, PackDisabled, Children]
            .into_iter()
            .find(|r| r.as_str() == text)
            .unwrap_or(Capacity)
    }
}

/// The class of a failure; stable, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The handler said so, or threw, and the attempts are used up.
    Handler,
    /// The handler said that trying again is useless.
    Permanent,
    /// A chunk ran over its timeout.
    Timeout,
    /// The whole task ran over its deadline.
    Deadline,
    /// A script hit a budget (memory, output).
    Budget,
    /// The outcome could not be understood or broke a limit.
    BadOutcome,
    /// A thousand chunks in a row moved neither checkpoint nor current.
    NoProgress,
    /// The node died again and again.
    LeaseLost,
    /// A fault of taskbell itself.
    Internal,
}

/// Why a task failed, or why its last attempt did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskError {
    /// The class.
    pub kind: ErrorKind,
    /// The handler's own code, or one of ours; at most 100 characters.
    pub code: String,
    /// Safe to show to the user; at most 2,000 characters, marked when cut.
    pub message: String,
    /// For operators only: what was under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Whether another attempt follows or would have made sense.
    pub retryable: bool,
    /// When it happened.
    pub at: Millis,
}

/// Row counts that the handler reports, summed over committed chunks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Rows {
    /// Rows done.
    #[serde(default)]
    pub ok: i64,
    /// Rows left out on purpose.
    #[serde(default)]
    pub skipped: i64,
    /// Rows that failed.
    #[serde(default)]
    pub failed: i64,
}

/// A stop that somebody asked for and that the running chunk has not confirmed yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StopRequest {
    /// Who asked.
    pub actor: String,
    /// Why, as given; at most 500 characters.
    pub reason: Option<String>,
    /// When.
    pub at: Millis,
}

/// One accepted request with all that taskbell knows of it but its documents (params, checkpoint, result), which are kept
/// apart so that a change of state never rewrites them. Its JSON is for other nodes only: it holds what no caller may see.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// Identity.
    pub id: TaskId,
    /// Whose; nothing of another tenant is ever visible.
    pub tenant: String,
    /// The declared button.
    pub action: String,
    /// The pack that declared the button when it was clicked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pack: Option<String>,
    /// As given by the caller; absent = the action's own title in the viewer's language.
    pub title: Option<String>,
    /// The user the task belongs to.
    pub owner: String,
    /// Who started it: the owner, or the key that submitted for the owner.
    pub started_by: String,
    /// What a person sees.
    pub state: State,
    /// + 1 with every visible change.
    pub revision: Revision,
    /// The owner's head at the last visible change.
    pub head: Head,
    /// The business record.
    pub record: Option<RecordRef>,
    /// The caller's idempotency key.
    pub idempotency_key: Option<String>,
    /// Clicks that were answered with this task instead of a new one.
    pub suppressed: i64,
    /// A newer task has taken over one of its idempotency keys, the caller's or the one from `fields`: it ended without
    /// success and must not go on beside the newer one.
    pub superseded: bool,
    /// The concurrency key.
    pub concurrency: Option<Concurrency>,
    /// Holds a slot of its key.
    pub slot_held: bool,
    /// Waits for a slot of its key.
    pub gated: bool,
    /// −100…100; higher first.
    pub priority: i32,
    /// When it was accepted.
    pub created_at: Millis,
    /// When it was to start at the earliest.
    pub run_at: Millis,
    /// When the next chunk may be claimed.
    pub due_at: Millis,
    /// First claim.
    pub started_at: Option<Millis>,
    /// The end.
    pub finished_at: Option<Millis>,
    /// Last visible change.
    pub updated_at: Millis,
    /// Failed attempts since the last committed chunk.
    pub attempts: u32,
    /// Attempts allowed for one chunk.
    pub max_attempts: u32,
    /// Failed attempts over the task's life (a budget of 10 × `max_attempts`).
    pub failures: u32,
    /// Committed chunks.
    pub chunks: i64,
    /// Chunks in a row that moved neither checkpoint nor current.
    pub idle_chunks: i64,
    /// Hash of the stored checkpoint, to tell whether a chunk moved it.
    pub checkpoint_hash: Option<i64>,
    /// Leases lost since the last committed chunk.
    pub reclaims: i64,
    /// Leases lost over the task's life.
    pub takeovers: i64,
    /// Newest token; only grows.
    pub fencing_token: FencingToken,
    /// The node that runs a chunk.
    pub lease_owner: Option<String>,
    /// Until when, by the database's clock; present = a chunk is under way.
    pub lease_until: Option<Millis>,
    /// Until when the chunk under way may take, where a worker outside runs it: its lease never goes beyond. Absent where a
    /// node runs it, for a node stops its chunks itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chunk_until: Option<Millis>,
    /// Length of life allowed from the first claim on, ms.
    pub timeout_ms: Option<i64>,
    /// End of the allowed life; set by the first claim.
    pub deadline: Option<Millis>,
    /// Why it waits, where the state alone does not tell.
    pub wait: Option<WaitReason>,
    /// The task ahead of it under its concurrency key, when it was blocked.
    pub blocked_by: Option<TaskId>,
    /// The stop that was asked for.
    pub stop: Option<StopRequest>,
    /// Absolute progress.
    pub progress: Progress,
    /// What the ETA is read from.
    pub estimator: Estimator,
    /// Row counts.
    pub rows: Rows,
    /// Standing warnings such as `no-progress`.
    pub warnings: Vec<String>,
    /// The last failure since the last committed chunk; outlives a resume, for the handler to know.
    pub error: Option<TaskError>,
    /// A result document is stored.
    pub has_result: bool,
    /// The task this one starts over.
    pub retry_of: Option<TaskId>,
    /// The owner saw the end in an open panel.
    pub seen_at: Option<Millis>,
    /// The owner opened it.
    pub read_at: Option<Millis>,
    /// The owner put it away.
    pub archived_at: Option<Millis>,
    /// Timeline entries written so far.
    pub event_count: i64,
    /// The task whose chunk submitted it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// No chunk runs until its children have ended, and what one that does not succeed means. Outlives a pause, a failure and
    /// a cancel, so that a resume waits on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub awaits: Option<OnFailure>,
    /// What it knows of its children; present once it has submitted some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<Family>,
}

impl Task {
    /// A chunk is under way: somebody holds the lease.
    #[must_use]
    pub fn under_way(&self) -> bool {
        self.lease_until.is_some()
    }

    /// Whether the last failure is still the truth about the task, and not one that somebody resumed it from.
    #[must_use]
    pub fn error_stands(&self) -> bool {
        self.state == State::Failed || self.attempts > 0
    }

    /// May be claimed once it is due: queued or running, lease free, waiting neither for a slot nor for its children.
    #[must_use]
    pub fn claimable(&self) -> bool {
        let free = !self.under_way() && !self.gated && self.awaits.is_none();
        free && matches!(self.state, State::Queued | State::Running)
    }

    /// Whether those who claim have to hear of a change of it at once. What is due later than [`WAKES_WITHIN_MS`] after it is
    /// found in time by everybody's own poll, and a wake-up for it would be a claim that finds nothing.
    #[must_use]
    pub fn wakes(&self) -> bool {
        self.claimable() && self.due_at.since(self.updated_at) < WAKES_WITHIN_MS
    }

    /// The order of claims, smaller first: the due instant moved by one minute per priority step. Since a waiting task's
    /// rank stands still while those of newer ones grow, waiting a minute is worth one step, and nothing starves.
    #[must_use]
    pub fn rank(&self) -> i64 {
        self.due_at.0 - i64::from(self.priority) * RANK_STEP_MS
    }
}

/// Longer than any node lets pass between two looks of its own, ms.
pub const WAKES_WITHIN_MS: i64 = 900_000;

/// One priority step is worth this much waiting, ms.
pub const RANK_STEP_MS: i64 = 60_000;

/// One line of a task's timeline, as stored. `seq` starts at 1 in each task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TimelineEvent {
    /// Whose.
    #[serde(skip_serializing)]
    pub task: TaskId,
    /// Position in the task's timeline.
    pub seq: i64,
    /// When.
    pub at: Millis,
    /// State before; absent for the first.
    pub from: Option<State>,
    /// State after.
    pub to: State,
    /// Why: a stable word such as `submitted`, `retry`, `lease-lost`, `total-revised`, with facts after a colon where there are some.
    pub reason: String,
    /// The person or key that caused it.
    pub actor: Option<String>,
    /// The node that caused it.
    pub node: Option<String>,
    /// The attempt it happened in, from 1.
    pub attempt: u32,
    /// Committed chunks at that moment.
    pub chunk: i64,
    /// What failed, where an attempt ended so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<FailedAttempt>,
}

/// Why an attempt failed, as its line in the timeline keeps it when the task itself has long gone on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FailedAttempt {
    /// The class.
    pub kind: ErrorKind,
    /// The handler's own code, or one of ours.
    pub code: String,
    /// Safe to show to the user; at most 500 characters, marked when cut.
    pub message: String,
    /// How long the next attempt waits, ms; absent when none follows.
    pub delay_ms: Option<i64>,
}

/// Size limits of what callers and handlers send. At the cap accepted, one above refused.
pub mod limits {
    /// Request body, bytes.
    pub const BODY_BYTES: usize = 1024 * 1024;
    /// Params as compact JSON, bytes.
    pub const PARAMS_BYTES: usize = 256 * 1024;
    /// Checkpoint as compact JSON, bytes.
    pub const CHECKPOINT_BYTES: usize = 256 * 1024;
    /// Result as compact JSON, bytes.
    pub const RESULT_BYTES: usize = 1024 * 1024;
    /// Title, characters.
    pub const TITLE_CHARS: usize = 200;
    /// Progress and error messages, characters.
    pub const MESSAGE_CHARS: usize = 2_000;
    /// One log line, bytes.
    pub const LOG_LINE_BYTES: usize = 16 * 1024;
    /// Nesting of params, checkpoint and result; the value itself is depth 1.
    pub const JSON_DEPTH: usize = 64;
    /// Idempotency and concurrency keys, record types and ids, bytes.
    pub const KEY_BYTES: usize = 255;
    /// Reason of a cancel, characters.
    pub const REASON_CHARS: usize = 500;
    /// Codes of failures, characters.
    pub const WORD_CHARS: usize = 100;
    /// Delay between two chunks, seconds.
    pub const DELAY_SECONDS: f64 = 86_400.0;
    /// Leases that a task may lose between two committed chunks before it fails.
    pub const RECLAIMS: i64 = 10;
    /// Idle chunks after which a task is flagged.
    pub const IDLE_CHUNKS_WARN: i64 = 5;
    /// Idle chunks after which a task fails.
    pub const IDLE_CHUNKS_FAIL: i64 = 1_000;
}
