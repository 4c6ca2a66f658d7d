//! From a request to a click: the declared action with its rules, checked against what the caller sent and may do.
//!
//! The same for every way in (one request, a batch, a schedule, a retry). Reads no database: whether the click becomes a
//! task is decided later, under its keys. All faults of the fields are told at once, each with its path.

use super::action::{Action, ConcurrencyRule, IdempotencyRule, OnConflict};
use super::concurrency::{self, KeyFacts};
use super::idempotency::{KEEP_CALLER_MS, KEEP_FIELDS_MS, key_from_fields};
use super::ids::TaskId;
use super::params_check::{FieldFault, ParamsCheck};
use super::principal::{Principal, Role, Scope};
use super::submit::{KeyClaim, KeyKind, SlotClaim, Submit};
use super::task::{Concurrency, RecordRef, State, Task, limits};
use super::time::Millis;
use super::view::Catalogue;
use super::{canonical, json};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use utoipa::ToSchema;

/// A request as it was sent: types are right, nothing else is checked.
#[derive(Clone, Debug, Default, ToSchema)]
#[schema(as = Submit, rename_all = "camelCase")]
pub struct Request {
    /// The key of the button.
    pub action: String,
    /// The params; absent = `{}`.
    pub params: Option<Value>,
    /// The business record.
    pub record: Option<RecordRef>,
    /// A title of its own.
    pub title: Option<String>,
    /// For whom, if not for the caller.
    pub owner: Option<String>,
    /// The caller's idempotency key.
    pub idempotency_key: Option<String>,
    /// The caller's concurrency key.
    pub concurrency_key: Option<String>,
    /// −100…100; absent = 0.
    pub priority: Option<i64>,
    /// Not before.
    pub run_at: Option<Millis>,
}

/// Why a request is no click.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// No such action, or not for this caller to click.
    UnknownAction,
    /// The caller may not do this; in words.
    Forbidden(&'static str),
    /// Fields that break their rules.
    Invalid(Vec<FieldFault>),
}

/// By action key: what was compiled, and the action that it was compiled for.
type Schemas = HashMap<String, (Arc<Action>, Arc<ParamsCheck>)>;

/// Resolves requests against the declared actions.
#[derive(Debug)]
pub struct Resolver {
    catalogue: Arc<Catalogue>,
    /// One that was declared anew is compiled anew.
    schemas: RwLock<Schemas>,
}

impl Resolver {
    /// Compiles the schemas of all actions.
    ///
    /// # Errors
    /// The key of an action whose schema cannot be used, and why.
    pub fn new(catalogue: Arc<Catalogue>) -> Result<Self, String> {
        let schemas = catalogue
            .actions
            .iter()
            .map(|a| {
                let check = ParamsCheck::new(&a.params).map_err(|e| format!("{}: {e}", a.key))?;
                Ok((a.key.clone(), (a, Arc::new(check))))
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { catalogue, schemas: RwLock::new(schemas) })
    }

    /// The action, if this caller may click it.
    ///
    /// # Errors
    /// [`NotTaken::UnknownAction`] otherwise: unknown and forbidden look the same.
    pub fn clickable(&self, who: &Principal, action: &str) -> Result<Arc<Action>, NotTaken> {
        self.catalogue.actions.get(action).filter(|a| a.clickable_by(who)).ok_or(NotTaken::UnknownAction)
    }

    /// The click that a request means.
    ///
    /// # Errors
    /// Why it means none.
    pub fn submit(&self, who: &Principal, request: Request) -> Result<Submit, NotTaken> {
        let action = self.clickable(who, &request.action)?;
        if who.tenant == "*" {
            return Err(NotTaken::Forbidden("A caller for all tenants belongs to none, so it cannot start tasks."));
        }
        let owner = request.owner.clone().unwrap_or_else(|| who.user.clone());
        if owner != who.user && !who.has(Scope::SubmitAs) {
            return Err(NotTaken::Forbidden("To submit for another owner takes the scope tasks:submit-as."));
        }
        let params = request.params.clone().unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        let mut faults = self.field_faults(who, &action, &request, &params);
        let keys = or_fault(self.keys(&action, &request, &params), &mut faults);
        let slot = or_fault(slot(who, &owner, &action, &request, &params), &mut faults);
        if !faults.is_empty() {
            return Err(NotTaken::Invalid(faults));
        }
        let record = request.record.as_ref().map(|r| (r.kind.as_str(), r.id.as_str()));
        Ok(Submit {
            id: TaskId::new(),
            caller: who.clone(),
            tenant: who.tenant.clone(),
            action: action.key.clone(),
            pack: action.pack.clone(),
            title: request.title,
            owner,
            fingerprint: canonical::fingerprint(&params, record),
            params,
            record: request.record,
            keys: keys.unwrap_or_default(),
            slot: slot.flatten(),
            priority: i32::try_from(request.priority.unwrap_or(0)).expect("−100…100 was checked"),
            run_at: request.run_at,
            undo_window_ms: action.undo_window_ms,
            max_attempts: action.retry.max_attempts,
            timeout_ms: action.timeout_ms,
            retry_of: None,
            parent: None,
        })
    }

    /// The click that starts an ended task over, from the start, with the same params and for the same owner. It has none
    /// of the old idempotency key; a key of its own catches the double click.
    ///
    /// # Errors
    /// When the caller may not click the action any more, or the params do not fit it any more.
    pub fn again(&self, who: &Principal, task: &Task, params: Value) -> Result<Submit, NotTaken> {
        debug_assert!(matches!(task.state, State::Failed | State::Cancelled));
        let action = self.clickable(who, &task.action)?;
        let request = Request {
            action: task.action.clone(),
            params: Some(params.clone()),
            record: task.record.clone(),
            title: task.title.clone(),
            ..Request::default()
        };
        let mut faults = self.params_faults(&action, &params);
        let mut keys = or_fault(self.keys(&action, &request, &params), &mut faults).unwrap_or_default();
        if !faults.is_empty() {
            return Err(NotTaken::Invalid(faults));
        }
        keys.push(KeyClaim {
            kind: KeyKind::Fields,
            key: format!("retry-of:{}", task.id),
            keep_ms: KEEP_FIELDS_MS,
            on_conflict: OnConflict::Return,
        });
        let slot = action.concurrency.as_ref().zip(task.concurrency.as_ref());
        let record = task.record.as_ref().map(|r| (r.kind.as_str(), r.id.as_str()));
        Ok(Submit {
            id: TaskId::new(),
            caller: who.clone(),
            tenant: task.tenant.clone(),
            action: task.action.clone(),
            pack: action.pack.clone(),
            title: task.title.clone(),
            owner: task.owner.clone(),
            fingerprint: canonical::fingerprint(&params, record),
            params,
            record: task.record.clone(),
            keys,
            slot: slot.map(|(rule, held)| claim(rule, held.key.clone())),
            priority: if who.is_operator() { task.priority } else { task.priority.min(0) },
            run_at: None,
            undo_window_ms: action.undo_window_ms,
            max_attempts: action.retry.max_attempts,
            timeout_ms: action.timeout_ms,
            retry_of: Some(task.id),
            parent: None,
        })
    }

    fn field_faults(
        &self,
        who: &Principal,
        action: &Arc<Action>,
        request: &Request,
        params: &Value,
    ) -> Vec<FieldFault> {
        let mut faults = self.params_faults(action, params);
        let mut fault = |path: &str, message: String| faults.push(FieldFault::new(path, message));
        if request.title.as_ref().is_some_and(|t| t.is_empty() || t.chars().count() > limits::TITLE_CHARS) {
            fault("title", format!("must have 1 to {} characters", limits::TITLE_CHARS));
        }
        for (path, text) in [
            ("owner", &request.owner),
            ("idempotencyKey", &request.idempotency_key),
            ("concurrencyKey", &request.concurrency_key),
            ("record.type", &request.record.as_ref().map(|r| r.kind.clone())),
            ("record.id", &request.record.as_ref().map(|r| r.id.clone())),
        ] {
            if text.as_ref().is_some_and(|t| t.is_empty() || t.len() > limits::KEY_BYTES) {
                fault(path, format!("must have 1 to {} bytes", limits::KEY_BYTES));
            }
        }
        // `record=type:id` in a query is cut at the first colon.
        if request.record.as_ref().is_some_and(|r| r.kind.contains(':')) {
            fault("record.type", "must not contain a colon".into());
        }
        match request.priority {
            Some(n) if !(-100..=100).contains(&n) => fault("priority", "must be between -100 and 100".into()),
            Some(n) if n > 0 && who.role == Role::User => fault("priority", "may be at most 0 for users".into()),
            _ => {}
        }
        if let (Some(given), Some(wanted)) = (&request.record, &action.record)
            && given.kind != *wanted
        {
            fault("record.type", format!("must be `{wanted}`, the record type of this action"));
        }
        faults
    }

    fn params_faults(&self, action: &Arc<Action>, params: &Value) -> Vec<FieldFault> {
        if !params.is_object() {
            return vec![FieldFault::new("params", "must be an object")];
        }
        let size_bytes = params.to_string().len();
        if size_bytes > limits::PARAMS_BYTES {
            let text = format!("must be at most {} bytes as compact JSON, not {size_bytes}", limits::PARAMS_BYTES);
            return vec![FieldFault::new("params", text)];
        }
        if json::depth(params) > limits::JSON_DEPTH {
            let text = format!("must not be nested deeper than {} levels", limits::JSON_DEPTH);
            return vec![FieldFault::new("params", text)];
        }
        match self.schema(action) {
            Ok(schema) => schema.faults(params),
            Err(why) => vec![FieldFault::new("params", format!("cannot be checked: {why}"))],
        }
    }

    fn schema(&self, action: &Arc<Action>) -> Result<Arc<ParamsCheck>, String> {
        let known = self.schemas.read().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, check)) = known.get(&action.key).filter(|(of, _)| Arc::ptr_eq(of, action)) {
            return Ok(check.clone());
        }
        drop(known);
        let check = Arc::new(ParamsCheck::new(&action.params)?);
        let entry = (action.clone(), check.clone());
        self.schemas.write().unwrap_or_else(PoisonError::into_inner).insert(action.key.clone(), entry);
        Ok(check)
    }

    /// The idempotency keys: the caller's first, then the one that the action makes from fields.
    fn keys(&self, action: &Action, request: &Request, params: &Value) -> Result<Vec<KeyClaim>, FieldFault> {
        let rule = action.idempotency.as_ref();
        let claim = |kind, key, keep_ms| KeyClaim {
            kind,
            key,
            keep_ms: rule.and_then(|r| r.keep_ms).unwrap_or(keep_ms),
            on_conflict: rule.map(|r| r.conflict).unwrap_or_default(),
        };
        let mut keys = Vec::new();
        if let Some(key) = &request.idempotency_key {
            keys.push(claim(KeyKind::Caller, key.clone(), KEEP_CALLER_MS));
        }
        if let Some(IdempotencyRule { fields, .. }) = rule.filter(|r| !r.fields.is_empty()) {
            let key = key_from_fields(fields, params, request.record.as_ref())
                .map_err(|path| FieldFault::new(path, "is needed: this action tells double clicks apart by it"))?;
            keys.push(claim(KeyKind::Fields, key, KEEP_FIELDS_MS));
        }
        Ok(keys)
    }
}

fn or_fault<T>(result: Result<T, FieldFault>, faults: &mut Vec<FieldFault>) -> Option<T> {
    result
        .map_err(|fault| {
            // A field that is wrong already is told once.
            if !faults.iter().any(|f| f.path == fault.path) {
                faults.push(fault);
            }
        })
        .ok()
}

fn slot(
    who: &Principal,
    owner: &str,
    action: &Action,
    request: &Request,
    params: &Value,
) -> Result<Option<SlotClaim>, FieldFault> {
    let rule = action.concurrency.as_ref();
    let takes_request = rule.is_some_and(|r| r.key.contains("{request}"));
    if request.concurrency_key.is_some() && !takes_request {
        return Err(FieldFault::new("concurrencyKey", "this action does not take one"));
    }
    let Some(rule) = rule else { return Ok(None) };
    let facts = KeyFacts {
        tenant: &who.tenant,
        owner,
        action: &action.key,
        record: request.record.as_ref(),
        params,
        request: request.concurrency_key.as_deref(),
    };
    let key = concurrency::fill(&rule.key, facts).map_err(|name| {
        let path = if name == "request" { "concurrencyKey".to_owned() } else { name };
        FieldFault::new(path, "is needed: this action makes its concurrency key from it")
    })?;
    Ok(Some(claim(rule, key)))
}

/// A key that is too long to be stored as it is stands for itself by its hash.
fn claim(rule: &ConcurrencyRule, key: String) -> SlotClaim {
    let key = match key.len() {
        0..=limits::KEY_BYTES => key,
        _ => format!("sha256:{}", canonical::fingerprint(&key.into(), None)),
    };
    SlotClaim {
        concurrency: Concurrency { key, limit: rule.limit, hold: rule.hold },
        policy: rule.policy,
        max_waiting: rule.max_waiting,
    }
}

mod child;
#[cfg(test)]
mod tests;
