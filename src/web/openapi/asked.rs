//! What requests may carry, as the description tells it. The readers are beside the handlers in `api/`: they take fields one
//! by one, so that all faults are told at once. A test sends every field and every key that stands here and sees none refused
//! as unknown.

#![allow(dead_code, reason = "fields that only the derived description reads")]

use crate::core::ids::TaskId;
use crate::core::resolve::Request;
use crate::core::task::State;
use crate::core::time::Millis;
use crate::store::logs::Level;
use utoipa::{IntoParams, ToSchema};

/// Keys of `GET /tasks`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// States, with commas or repeated.
    state: Option<Vec<State>>,
    /// The key of an action.
    action: Option<String>,
    /// A pack.
    pack: Option<String>,
    /// An owner.
    owner: Option<String>,
    /// A business record, as `type:id`.
    record: Option<String>,
    /// The id of a task: its children.
    parent: Option<TaskId>,
    /// The key of a schedule.
    schedule: Option<String>,
    /// Literal text of at most 100 characters, looked for in title, action, id and record id.
    q: Option<String>,
    /// Created at or after this instant.
    from: Option<Millis>,
    /// Created before this instant.
    to: Option<Millis>,
    /// `createdAt`, `updatedAt`, `finishedAt` or `priority`, with `-` in front for the largest first.
    #[param(default = "-createdAt")]
    sort: Option<String>,
    /// `own`, or for operators `tenant`.
    #[param(default = "own")]
    scope: Option<String>,
    /// Tasks of a page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Keys of a list that has no filters.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// Tasks of a page.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<i64>,
    /// `next` of the page before.
    cursor: Option<String>,
}

/// Keys of `GET /tasks/{id}/events`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct EventQuery {
    /// Events after this `seq`.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// Events of a part.
    #[param(minimum = 1, maximum = 200, default = 200)]
    limit: Option<i64>,
}

/// Keys of `GET /tasks/{id}/logs`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct LogQuery {
    /// Lines after this `seq`.
    #[param(minimum = 0)]
    after: Option<i64>,
    /// The lines before this `seq`.
    #[param(minimum = 0)]
    before: Option<i64>,
    /// The least level.
    level: Option<Level>,
    /// Literal text in the message.
    q: Option<String>,
    /// Lines of a part.
    #[param(minimum = 1, maximum = 200, default = 200)]
    limit: Option<i64>,
}

/// Keys of `POST /uploads`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct UploadQuery {
    /// The name of the file, at most 255 characters; folders and control characters are cut off.
    name: String,
}

/// Keys of `GET /notifications`.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub struct CenterQuery {
    /// `unseen`, `unread` or states, with commas.
    filter: Option<Vec<String>>,
}

/// Why.
#[derive(ToSchema)]
pub struct ReasonBody {
    /// For the timeline; at most 500 characters.
    reason: Option<String>,
}

/// Why, and how hard.
#[derive(ToSchema)]
pub struct StopBody {
    /// For the timeline; at most 500 characters.
    reason: Option<String>,
    /// Do not wait for the chunk under way; for operators.
    force: Option<bool>,
}

/// Nothing to say.
#[derive(ToSchema)]
pub struct EmptyBody {}

/// Many submits.
#[derive(ToSchema)]
pub struct BatchBody {
    /// At most 500.
    #[schema(max_items = 500)]
    items: Vec<Request>,
}

/// One act on many tasks.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct BulkBody {
    /// What to do.
    r#do: Act,
    /// On which tasks; `{}` names all of the tenant.
    filter: BulkFilter,
    /// Only count them.
    dry_run: Option<bool>,
}

/// What can be done with many tasks.
#[derive(ToSchema)]
#[schema(rename_all = "lowercase")]
pub enum Act {
    /// Cancel them.
    Cancel,
    /// Go on from their checkpoints.
    Resume,
    /// Start them over as new tasks.
    Retry,
    /// Delete them, with logs and files.
    Delete,
}

/// Which tasks.
#[derive(ToSchema)]
pub struct BulkFilter {
    /// In any of these states.
    state: Option<Vec<State>>,
    /// Of an action.
    action: Option<String>,
    /// Of an owner.
    owner: Option<String>,
    /// Of a business record, as `type:id`.
    record: Option<String>,
    /// With this text in title, action, id or record id.
    q: Option<String>,
    /// Created at or after this instant.
    from: Option<Millis>,
    /// Created before this instant.
    to: Option<Millis>,
}

/// Which items to mark: by their ids, or all that ended and did not change after a head.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct MarkBody {
    /// At most 500 tasks.
    #[schema(max_items = 500)]
    ids: Option<Vec<TaskId>>,
    /// The head that the caller has seen; instead of `ids`.
    up_to: Option<i64>,
    /// Only these, with `upTo`.
    filter: Option<MarkFilter>,
}

/// Which items.
#[derive(ToSchema)]
pub struct MarkFilter {
    /// In any of these states.
    state: Option<Vec<State>>,
    /// Of an action.
    action: Option<String>,
    /// Of a business record, as `type:id`.
    record: Option<String>,
    /// With this text in title, action, id or record id.
    q: Option<String>,
    /// Created at or after this instant.
    from: Option<Millis>,
    /// Created before this instant.
    to: Option<Millis>,
}

/// Body of `POST /callback/progress`.
#[derive(ToSchema)]
pub struct ReportBody {
    /// Units done, absolute.
    current: Option<f64>,
    /// Units in all; null withdraws it.
    total: Option<f64>,
    /// The name of a unit.
    unit: Option<String>,
    /// What is being done.
    phase: Option<String>,
    /// A sentence for people.
    message: Option<String>,
}

/// Body of `POST /callback/log`.
#[derive(ToSchema)]
pub struct LinesBody {
    /// At most 2,000.
    lines: Vec<LogLine>,
}

/// A line, alone or with its level.
#[derive(ToSchema)]
#[serde(untagged)]
pub enum LogLine {
    /// A line of the level `info`.
    Text(String),
    /// A line of a level.
    Levelled {
        /// `debug`, `info`, `warn` or `error`.
        level: Option<String>,
        /// The line.
        message: String,
    },
}

/// What a worker asks for.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ClaimBody {
    /// The actions that it can run; each with `handler = { pull = true }`.
    #[schema(min_items = 1, max_items = 1000)]
    actions: Vec<String>,
    /// At most so many chunks.
    #[schema(minimum = 1, maximum = 100, default = 1)]
    max: Option<i64>,
    /// How long to wait for the first one.
    #[schema(minimum = 0, maximum = 60000, default = 20000)]
    wait_ms: Option<i64>,
    /// Its name, for people, at most 100 characters; else that of the key's user.
    worker: Option<String>,
}

/// Outcomes of chunks.
#[derive(ToSchema)]
pub struct CommitBody {
    /// At most 500.
    #[schema(max_items = 500)]
    items: Vec<CommitItem>,
}

/// The outcome of one chunk.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct CommitItem {
    /// The task.
    task: TaskId,
    /// As it came with the chunk.
    fencing_token: i64,
    /// The number of the chunk.
    chunk: i64,
    /// The outcome, as every handler's.
    outcome: serde_json::Value,
}

/// Progress of chunks under way.
#[derive(ToSchema)]
pub struct ProgressBody {
    /// At most 500.
    #[schema(max_items = 500)]
    items: Vec<ProgressItem>,
}

/// Progress of one chunk.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct ProgressItem {
    /// The task.
    task: TaskId,
    /// As it came with the chunk.
    fencing_token: i64,
    /// The number of the chunk.
    chunk: Option<i64>,
    /// `current`, `total`, `unit`, `phase`, `message`: what is left out stays as it is.
    progress: serde_json::Value,
}

/// Log lines of chunks under way.
#[derive(ToSchema)]
pub struct WorkerLogBody {
    /// At most 500.
    #[schema(max_items = 500)]
    items: Vec<WorkerLogItem>,
}

/// Log lines of one chunk.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct WorkerLogItem {
    /// The task.
    task: TaskId,
    /// As it came with the chunk.
    fencing_token: i64,
    /// The number of the chunk.
    chunk: Option<i64>,
    /// At most 1,000: texts, or objects with `message` and `level`.
    lines: Vec<serde_json::Value>,
}

/// Leases to lengthen.
#[derive(ToSchema)]
pub struct RenewBody {
    /// At most 500.
    #[schema(max_items = 500)]
    items: Vec<RenewItem>,
}

/// One lease.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub struct RenewItem {
    /// The task.
    task: TaskId,
    /// As it came with the chunk.
    fencing_token: i64,
    /// The number of the chunk.
    chunk: Option<i64>,
}
