//! A click on its way in: checked, resolved, not yet a task.

use super::action::{OnConflict, Policy};
use super::canonical::fingerprint;
use super::family::Parent;
use super::ids::{Head, Revision, TaskId};
use super::lifecycle::Step;
use super::principal::Principal;
use super::progress::Progress;
use super::task::{Concurrency, RecordRef, Rows, State, Task, WaitReason};
use super::time::Millis;
use serde_json::Value;

/// Where an idempotency key comes from. The two kinds are key spaces of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// Sent by the caller.
    Caller,
    /// Made on the server from the action's `fields`.
    Fields,
}

impl KeyKind {
    /// The word in SQL.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Fields => "fields",
        }
    }
}

/// One idempotency key that a click claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyClaim {
    /// Where it comes from.
    pub kind: KeyKind,
    /// 1–255 bytes, compared byte by byte.
    pub key: String,
    /// How long a success goes on holding it, ms after its end.
    pub keep_ms: i64,
    /// What happens while the holder is unfinished.
    pub on_conflict: OnConflict,
}

/// The concurrency key that a click asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotClaim {
    /// Key, limit, hold.
    pub concurrency: Concurrency,
    /// What happens when it is full.
    pub policy: Policy,
    /// How many may wait behind it.
    pub max_waiting: u32,
}

/// A click, checked and resolved.
#[derive(Clone, Debug)]
pub struct Submit {
    /// The id the task gets if it becomes one.
    pub id: TaskId,
    /// Who asks; decides what may be told of a holder.
    pub caller: Principal,
    /// Whose tenant.
    pub tenant: String,
    /// The declared button.
    pub action: String,
    /// The pack that declares it.
    pub pack: Option<String>,
    /// As given.
    pub title: Option<String>,
    /// Whose task it becomes.
    pub owner: String,
    /// The params, checked against the schema.
    pub params: Value,
    /// The business record.
    pub record: Option<RecordRef>,
    /// SHA-256 of canonical params and record.
    pub fingerprint: String,
    /// A caller's key first, then one from `fields`.
    pub keys: Vec<KeyClaim>,
    /// The concurrency key.
    pub slot: Option<SlotClaim>,
    /// −100…100.
    pub priority: i32,
    /// Not before; absent = at once by the database's clock.
    pub run_at: Option<Millis>,
    /// Unclaimable this long, ms.
    pub undo_window_ms: i64,
    /// Attempts for one chunk.
    pub max_attempts: u32,
    /// Limit of the whole task from its first claim, ms.
    pub timeout_ms: Option<i64>,
    /// The task it starts over.
    pub retry_of: Option<TaskId>,
    /// The task whose chunk submits it.
    pub parent: Option<Parent>,
}

impl Submit {
    /// A bare click of a caller, for itself: at once, three attempts, without record, keys, slot or limit.
    #[must_use]
    pub fn new(caller: Principal, action: &str, params: Value) -> Self {
        Self {
            id: TaskId::new(),
            tenant: caller.tenant.clone(),
            action: action.to_owned(),
            pack: None,
            title: None,
            owner: caller.user.clone(),
            fingerprint: fingerprint(&params, None),
            params,
            record: None,
            keys: Vec::new(),
            slot: None,
            priority: 0,
            run_at: None,
            undo_window_ms: 0,
            max_attempts: 3,
            timeout_ms: None,
            retry_of: None,
            parent: None,
            caller,
        }
    }

    /// Whether it is to start later by its own wish; such a task asks for its slot when it is due.
    #[must_use]
    pub fn starts_later(&self, now: Millis) -> bool {
        self.run_at.is_some_and(|at| at > now)
    }

    /// The task it becomes: queued. Its slot, if it has a concurrency key, is the caller's affair.
    #[must_use]
    pub fn into_task(&self, step: &mut Step) -> Task {
        let now = step.now;
        let run_at = self.run_at.unwrap_or(now).max(now).plus(self.undo_window_ms);
        let mut task = Task {
            id: self.id,
            tenant: self.tenant.clone(),
            action: self.action.clone(),
            pack: self.pack.clone(),
            title: self.title.clone(),
            owner: self.owner.clone(),
            started_by: self.caller.user.clone(),
            state: State::Queued,
            revision: Revision(0),
            head: Head(0),
            record: self.record.clone(),
            idempotency_key: self.keys.iter().find(|k| k.kind == KeyKind::Caller).map(|k| k.key.clone()),
            suppressed: 0,
            superseded: false,
            concurrency: self.slot.as_ref().map(|s| s.concurrency.clone()),
            slot_held: false,
            gated: false,
            priority: self.priority,
            created_at: now,
            run_at,
            due_at: run_at,
            started_at: None,
            finished_at: None,
            updated_at: now,
            attempts: 0,
            max_attempts: self.max_attempts,
            failures: 0,
            chunks: 0,
            idle_chunks: 0,
            checkpoint_hash: None,
            reclaims: 0,
            takeovers: 0,
            fencing_token: super::ids::FencingToken(0),
            lease_owner: None,
            lease_until: None,
            chunk_until: None,
            timeout_ms: self.timeout_ms,
            deadline: None,
            wait: Some(if run_at > now { WaitReason::Scheduled } else { WaitReason::Capacity }),
            blocked_by: None,
            stop: None,
            progress: Progress::default(),
            estimator: super::eta::Estimator::default(),
            rows: Rows::default(),
            warnings: Vec::new(),
            error: None,
            has_result: false,
            retry_of: self.retry_of,
            seen_at: None,
            read_at: None,
            archived_at: None,
            event_count: 0,
            parent: self.parent,
            awaits: None,
            family: None,
        };
        step.actor = Some(self.caller.user.clone());
        task.note(None, "submitted".to_owned(), step);
        task
    }
}

/// Why a click did not become a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitRefusal {
    /// The key is held by a task with other params or record; the paths that differ, never values.
    IdempotencyMismatch {
        /// The holder, which the caller may see.
        task: TaskId,
        /// Which paths differ, at most 20.
        paths: Vec<String>,
    },
    /// The key is held, and the policy or the holder's invisibility forbids to answer with it.
    IdempotencyConflict,
    /// The concurrency key is full and the policy is to reject, or the holder is invisible.
    ConcurrencyConflict {
        /// The holder, if the caller may see it.
        task: Option<TaskId>,
    },
    /// Too many wait behind the concurrency key already.
    KeyQueueFull {
        /// The limit.
        limit: u32,
    },
}

/// What a click became.
#[derive(Clone, Debug, PartialEq)]
pub enum Submitted {
    /// A new task.
    Created(Box<Task>),
    /// The holder of its idempotency key.
    Replayed(Box<Task>),
    /// The holder of its concurrency key.
    Skipped(Box<Task>),
    /// Nothing.
    Refused(SubmitRefusal),
}

impl Submitted {
    /// The task that is the answer, if there is one.
    #[must_use]
    pub fn task(&self) -> Option<&Task> {
        match self {
            Self::Created(t) | Self::Replayed(t) | Self::Skipped(t) => Some(t),
            Self::Refused(_) => None,
        }
    }
}
