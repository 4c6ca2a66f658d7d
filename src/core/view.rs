//! What a caller may see of a task: the shapes of docs and contract, cut to the caller's rights.
//!
//! A [`TaskSummary`] goes into lists, snapshots and deltas; a [`TaskDetail`] adds params, checkpoint and result. Fields
//! that are for operators only are left out for others; `can` lists what this caller may do now, and buttons are drawn
//! from it and from nothing else. Percent and ETA are derived here and stored nowhere.

use super::action::{Action, Actions, CancelRight, HandlerRef};
use super::eta::{Activity, Eta, UnitPrior};
use super::ids::{FencingToken, Revision, TaskId};
use super::principal::{Principal, Scope};
use super::progress::Stage;
use super::task::{RecordRef, Rows, State, Task, TaskError, WaitReason};
use super::time::Millis;
use serde::Serialize;
use serde_json::Value;
use std::collections::{HashMap, HashSet};
use utoipa::ToSchema;

/// Workers outside that asked for an action not longer ago are there, ms. Those that wait are noted each third of it.
const ATTENDED_MS: i64 = 60_000;

/// What a view needs beside the task.
#[derive(Clone, Copy)]
pub struct Lens<'a> {
    /// Who looks.
    pub viewer: &'a Principal,
    /// In which language.
    pub lang: &'a str,
    /// The server's now.
    pub now: Millis,
    /// What actions are called and who may cancel.
    pub catalogue: &'a Catalogue,
}

/// What is declared and known of actions and records, for titles, links and priors.
#[derive(Clone, Debug, Default)]
pub struct Catalogue {
    /// The declared buttons.
    pub actions: Actions,
    /// Templates of the way back to a record, by record type; `{id}` stands for the id.
    pub record_urls: HashMap<String, String>,
    /// Record types whose tasks everyone of the tenant sees in numbers.
    pub open_records: HashSet<String>,
}

/// A task in lists, snapshots and deltas.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the contract; core::task documents each")]
pub struct TaskSummary {
    pub id: TaskId,
    pub tenant: String,
    pub action: String,
    pub title: String,
    pub owner: String,
    pub started_by: String,
    pub state: State,
    pub revision: Revision,
    pub record: Option<RecordView>,
    pub idempotency_key: Option<String>,
    pub concurrency_key: Option<String>,
    pub priority: i32,
    pub progress: ProgressView,
    pub waiting: Option<Waiting>,
    pub attempt: u32,
    pub max_attempts: u32,
    pub chunks: i64,
    pub reclaims: i64,
    pub takeovers: i64,
    pub suppressed: i64,
    pub fencing_token: FencingToken,
    pub deadline: Option<Millis>,
    pub rows: Rows,
    pub warnings: Vec<String>,
    pub error: Option<ErrorView>,
    pub has_result: bool,
    pub artifacts: Vec<ArtifactView>,
    pub schedule: Option<Value>,
    pub parent: Option<TaskId>,
    pub retry_of: Option<TaskId>,
    pub can: Vec<&'static str>,
    /// A stop that was asked for and not confirmed yet: by whom, why, when.
    pub stop: Option<StopView>,
    /// Set while a chunk should be under way and its lease is over: since when nothing was heard of its worker.
    pub silent_since: Option<Millis>,
    pub seen: bool,
    pub read: bool,
    pub archived: bool,
    pub created_at: Millis,
    pub run_at: Millis,
    pub started_at: Option<Millis>,
    pub finished_at: Option<Millis>,
    pub updated_at: Millis,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_owner: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease_until: Option<Millis>,
}

/// A task with its documents.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskDetail {
    /// All of the summary.
    #[serde(flatten)]
    pub summary: TaskSummary,
    /// As submitted; for the owner and operators.
    pub params: Value,
    /// What the handler left at the end.
    pub result: Option<Value>,
    /// Where the next chunk goes on; for operators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Value>,
}

/// The record with its way back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RecordView {
    /// Type and id.
    #[serde(flatten)]
    pub record: RecordRef,
    /// The way back, if one is configured.
    pub url: Option<String>,
}

/// Progress as shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the fields are those of the contract; core::progress documents each")]
pub struct ProgressView {
    pub current: i64,
    pub total: Option<i64>,
    pub unit: Option<String>,
    pub phase: Option<String>,
    pub message: Option<String>,
    pub percent: Option<u8>,
    /// The total before the one that counts now, where it was revised.
    pub revised_from: Option<i64>,
    pub rate_per_second: Option<f64>,
    pub updated_at: Option<Millis>,
    pub eta: Eta,
}

/// Why no chunk runs at this moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Waiting {
    /// The reason.
    pub reason: WaitReason,
    /// Until when, where that is known.
    pub until: Option<Millis>,
    /// Behind which task, if the viewer may see it.
    pub blocked_by: Option<TaskId>,
    /// Place in the queue, from 1, where it is known.
    pub position: Option<i64>,
    /// How many children are open, where it waits for them.
    pub open: Option<i64>,
}

/// An error as shown.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorView(pub TaskError);

/// A result file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactView {
    /// For `GET /api/v1/artifacts/{id}`.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Bytes.
    pub size: i64,
    /// Its type.
    pub content_type: String,
    /// When it goes.
    pub expires_at: Option<Millis>,
}

/// A stop that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StopView {
    /// Who asked.
    pub actor: String,
    /// Why.
    pub reason: Option<String>,
    /// When.
    pub at: Millis,
}

/// What is known beside the row: documents, files, place in the queue.
#[derive(Clone, Debug, Default)]
pub struct Beside {
    /// Place in the queue, from 1.
    pub position: Option<i64>,
    /// The task ahead of it under its concurrency key, if the viewer may see that one.
    pub blocked_by: Option<TaskId>,
    /// Result files.
    pub artifacts: Vec<ArtifactView>,
    /// What earlier successes of the action took per unit.
    pub prior: Option<UnitPrior>,
    /// When a worker outside last asked for chunks of the action, where such workers run it and the task waits for one.
    pub asked_at: Option<Millis>,
    /// Whether a node is there that could run its next chunk; absent where that is not known.
    pub handled: Option<bool>,
    /// How many of its children are open, if it waits for them.
    pub open_children: Option<i64>,
}

impl TaskSummary {
    /// Cuts it down to what a colleague may know of a task on a shared record: state, numbers, starter and times. `title`
    /// is that of the action, since the task's own may say more.
    pub fn cut_for_passers_by(&mut self, title: String) {
        self.title = title;
        (self.progress.phase, self.progress.message) = (None, None);
        (self.idempotency_key, self.concurrency_key) = (None, None);
        (self.error, self.stop, self.retry_of) = (None, None, None);
        (self.can, self.warnings, self.artifacts) = (Vec::new(), Vec::new(), Vec::new());
        (self.seen, self.read, self.archived) = (false, false, false);
        if let Some(waiting) = &mut self.waiting {
            waiting.blocked_by = None;
        }
    }
}

impl Lens<'_> {
    /// The summary of a task that this viewer may see.
    #[must_use]
    pub fn summary(&self, task: &Task, beside: &Beside) -> TaskSummary {
        let operator = self.viewer.is_operator();
        let action = self.catalogue.actions.get(&task.action);
        TaskSummary {
            id: task.id,
            tenant: task.tenant.clone(),
            action: task.action.clone(),
            title: self.title(task),
            owner: task.owner.clone(),
            started_by: task.started_by.clone(),
            state: task.state,
            revision: task.revision,
            record: task.record.as_ref().map(|r| self.record(r)),
            idempotency_key: task.idempotency_key.clone(),
            concurrency_key: task.concurrency.as_ref().map(|c| c.key.clone()),
            priority: task.priority,
            progress: self.progress(task, beside.prior),
            waiting: self.waiting(task, action.as_deref(), beside),
            attempt: task.attempt(),
            max_attempts: task.max_attempts,
            chunks: task.chunks,
            reclaims: task.reclaims,
            takeovers: task.takeovers,
            suppressed: task.suppressed,
            fencing_token: task.fencing_token,
            deadline: task.deadline,
            rows: task.rows,
            warnings: task.warnings.clone(),
            error: task.error.clone().filter(|_| task.error_stands()).map(|mut e| {
                e.detail = e.detail.filter(|_| operator);
                ErrorView(e)
            }),
            has_result: task.has_result,
            artifacts: beside.artifacts.clone(),
            schedule: None,
            parent: task.parent.map(|p| p.id),
            retry_of: task.retry_of,
            can: can(task, self.viewer, action.as_deref()),
            stop: task.stop.as_ref().map(|s| StopView { actor: s.actor.clone(), reason: s.reason.clone(), at: s.at }),
            silent_since: task.lease_until.filter(|until| task.under_way() && *until < self.now),
            seen: task.seen_at.is_some(),
            read: task.read_at.is_some(),
            archived: task.archived_at.is_some(),
            created_at: task.created_at,
            run_at: task.run_at,
            started_at: task.started_at,
            finished_at: task.finished_at,
            updated_at: task.updated_at,
            lease_owner: task.lease_owner.clone().filter(|_| operator),
            lease_until: task.lease_until.filter(|_| operator),
        }
    }

    /// The detail of a task that this viewer may see.
    #[must_use]
    pub fn detail(&self, task: &Task, beside: &Beside, documents: Documents) -> TaskDetail {
        TaskDetail {
            summary: self.summary(task, beside),
            params: documents.params,
            result: documents.result,
            checkpoint: documents.checkpoint.filter(|_| self.viewer.is_operator()),
        }
    }

    /// The title: as submitted, else the action's own in the viewer's language, else its key.
    #[must_use]
    pub fn title(&self, task: &Task) -> String {
        task.title.clone().unwrap_or_else(|| self.action_title(&task.action))
    }

    /// What an action is called in the viewer's language; its key when it is not declared any more.
    #[must_use]
    pub fn action_title(&self, action: &str) -> String {
        self.catalogue.actions.get(action).map_or_else(|| action.to_owned(), |a| a.title.get(self.lang).to_owned())
    }

    /// A record with its way back. The id is percent-encoded, so it cannot leave its place in the template.
    #[must_use]
    pub fn record(&self, record: &RecordRef) -> RecordView {
        let url = self.catalogue.record_urls.get(&record.kind).map(|template| {
            let id = percent_encoding::utf8_percent_encode(&record.id, percent_encoding::NON_ALPHANUMERIC);
            template.replace("{id}", &id.to_string())
        });
        RecordView { record: record.clone(), url }
    }

    fn progress(&self, task: &Task, prior: Option<UnitPrior>) -> ProgressView {
        let p = &task.progress;
        let stage = match task.state {
            State::Succeeded => Stage::Succeeded,
            State::Failed | State::Cancelled => Stage::Stopped,
            _ => Stage::Active,
        };
        ProgressView {
            current: p.current,
            total: p.total,
            unit: p.unit.clone(),
            phase: p.phase.clone(),
            message: p.message.clone(),
            percent: p.percent(stage),
            revised_from: task.estimator.revised_from(),
            rate_per_second: task.estimator.rate_per_second(self.now, activity(task)),
            updated_at: p.updated_at,
            eta: task.estimator.read(self.now, p, activity(task), prior),
        }
    }

    /// Why a task waits that is due: all places are taken, or there is no node that could run it, or no worker outside has
    /// asked for it lately.
    fn due_reason(&self, task: &Task, action: Option<&Action>, beside: &Beside) -> WaitReason {
        let pulled = action.is_some_and(|action| action.handler == HandlerRef::Pull);
        let attended = match pulled {
            true => beside.asked_at.is_some_and(|at| self.now.since(at) < ATTENDED_MS),
            false => beside.handled.unwrap_or(true),
        };
        if task.claimable() && !attended { WaitReason::NoHandler } else { WaitReason::Capacity }
    }

    fn waiting(&self, task: &Task, action: Option<&Action>, beside: &Beside) -> Option<Waiting> {
        if task.state.is_final() || task.state == State::Unknown || task.under_way() {
            return None;
        }
        let reason = match task.state {
            State::Blocked => WaitReason::Concurrency,
            State::Paused if task.held_by_pack() => WaitReason::PackDisabled,
            State::Paused => WaitReason::Paused,
            // Not declared here, and nobody knows of a node that has it.
            _ if action.is_none() && beside.handled != Some(true) => WaitReason::NoHandler,
            _ => match task.wait.unwrap_or(WaitReason::Capacity) {
                WaitReason::Capacity => self.due_reason(task, action, beside),
                planned => planned,
            },
        };
        let timed = matches!(reason, WaitReason::Delay | WaitReason::Retry | WaitReason::Scheduled);
        if timed && task.due_at <= self.now {
            let reason = self.due_reason(task, action, beside);
            return Some(Waiting { reason, until: None, blocked_by: None, position: beside.position, open: None });
        }
        Some(Waiting {
            reason,
            until: timed.then_some(task.due_at),
            blocked_by: beside.blocked_by.filter(|_| reason == WaitReason::Concurrency),
            position: beside.position,
            open: beside.open_children.filter(|_| reason == WaitReason::Children),
        })
    }
}

/// The documents of a task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Documents {
    /// As submitted.
    pub params: Value,
    /// Where the next chunk goes on.
    pub checkpoint: Option<Value>,
    /// What the handler left at the end.
    pub result: Option<Value>,
}

/// What the ETA has to know of a task's state.
#[must_use]
pub fn activity(task: &Task) -> Activity {
    match task.state {
        State::Blocked => Activity::Blocked,
        // What is asked to stop comes to no finish that could be estimated.
        State::Pausing | State::Paused => Activity::Paused,
        State::Cancelling | State::Unknown => Activity::Ended,
        _ if task.state.is_final() => Activity::Ended,
        _ if task.gated => Activity::Blocked,
        // Its children work for it.
        _ if task.awaits.is_some() => Activity::Working,
        State::Queued if task.wait == Some(WaitReason::Retry) => Activity::RetryWait,
        State::Queued => Activity::NotStarted,
        _ if !task.under_way() && task.wait == Some(WaitReason::Delay) => Activity::PlannedGap { until: task.due_at },
        _ => Activity::Working,
    }
}

/// Whether a caller who sees tasks of an action may cancel them without force.
#[must_use]
pub fn may_cancel(who: &Principal, action: Option<&Action>) -> bool {
    match action.map(|a| a.cancel).unwrap_or_default() {
        CancelRight::Owner => true,
        CancelRight::Operator => who.is_operator(),
        CancelRight::Nobody => false,
    }
}

/// What this caller may do with the task now.
#[must_use]
pub fn can(task: &Task, who: &Principal, action: Option<&Action>) -> Vec<&'static str> {
    if !who.has(Scope::TasksWrite) || !who.sees(task) {
        return Vec::new();
    }
    let may_cancel = may_cancel(who, action);
    let clickable = action.is_some_and(|a| a.clickable_by(who));
    let mut can = Vec::new();
    match task.state {
        State::Queued | State::Blocked | State::Running => {
            if may_cancel {
                can.push("cancel");
            }
            can.push("pause");
        }
        State::Pausing | State::Paused => {
            if may_cancel {
                can.push("cancel");
            }
            if !task.held_by_pack() {
                can.push("resume");
            }
        }
        State::Cancelling | State::Unknown => {}
        State::Failed | State::Cancelled => {
            if clickable && !task.superseded {
                can.push("resume");
            }
            if clickable {
                can.push("retry");
            }
            can.push("delete");
        }
        State::Succeeded => can.push("delete"),
    }
    can
}
