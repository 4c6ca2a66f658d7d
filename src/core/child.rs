//! What a handler says of a child that it submits, and how that is read where it came as JSON.
//!
//! A child becomes a task of its parent's tenant and owner. Its action has to be declared; who may click that is not asked,
//! for the handler acts and not the person. Whether the fields fit the action is decided by [`super::resolve`], before the
//! chunk is committed.

use super::chunk::{BadOutcome, Failure};
use super::family::MAX_WEIGHT;
use super::submit::SubmitRefusal;
use super::task::{ErrorKind, RecordRef};
use super::time::Millis;
use serde::Serialize;
use serde_json::{Map, Value};

/// A child on its way in: types are right, nothing else is checked.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Child {
    /// The key of the declared action.
    pub action: String,
    /// The params; an object.
    pub params: Value,
    /// A title of its own.
    pub title: Option<String>,
    /// The business record.
    pub record: Option<RecordRef>,
    /// An idempotency key; the same as that of any other click on the action in the tenant.
    pub idempotency_key: Option<String>,
    /// For actions whose concurrency key takes one from the request.
    pub concurrency_key: Option<String>,
    /// −100…100; absent = 0.
    pub priority: Option<i64>,
    /// How much it counts in the parent's progress, 1 to [`MAX_WEIGHT`]; absent = 1.
    pub weight: Option<i64>,
    /// Not before; absent = at once.
    pub run_at: Option<Millis>,
}

impl Child {
    /// A child of an action, with its params.
    pub fn new(action: impl Into<String>, params: Value) -> Self {
        Self {
            action: action.into(),
            params,
            title: None,
            record: None,
            idempotency_key: None,
            concurrency_key: None,
            priority: None,
            weight: None,
            run_at: None,
        }
    }

    /// With a title of its own.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>) -> Self {
        self.title = Some(title.into());
        self
    }

    /// With an idempotency key.
    #[must_use]
    pub fn keyed(mut self, key: impl Into<String>) -> Self {
        self.idempotency_key = Some(key.into());
        self
    }

    /// Counting this much in the parent's progress.
    #[must_use]
    pub fn weighing(mut self, weight: i64) -> Self {
        self.weight = Some(weight);
        self
    }

    /// Reads one; `place` names it in faults, such as `submit[3]`. Unknown fields are ignored.
    ///
    /// # Errors
    /// The field that is of a wrong type, and what it has to be.
    pub fn parse(value: &Value, place: &str) -> Result<Self, BadOutcome> {
        let Some(fields) = value.as_object() else {
            return Err(BadOutcome(format!("{place}: must be an object with `action`")));
        };
        let read = Reader { fields, place };
        let Some(action) = read.text("action")? else { return Err(read.fault("action", "is needed")) };
        let params = match read.given("params") {
            None => Value::Object(Map::new()),
            Some(params) if params.is_object() => params.clone(),
            Some(_) => return Err(read.fault("params", "must be an object")),
        };
        let record = read.given("record").map(|r| serde_json::from_value(r.clone())).transpose();
        let run_at = read.given("runAt").map(|at| serde_json::from_value(at.clone())).transpose();
        Ok(Self {
            params,
            title: read.text("title")?,
            record: record.map_err(|_| read.fault("record", "must be an object with `type` and `id`"))?,
            idempotency_key: read.text("idempotencyKey")?,
            concurrency_key: read.text("concurrencyKey")?,
            priority: read.whole("priority")?,
            weight: read.whole("weight")?,
            run_at: run_at.map_err(|_| read.fault("runAt", "must be an instant such as 2026-11-29T12:00:00.000Z"))?,
            action,
        })
    }

    /// Reads the list of an outcome.
    ///
    /// # Errors
    /// The first child and field that is of a wrong type.
    pub fn parse_all(list: Option<&Value>) -> Result<Vec<Self>, BadOutcome> {
        match list.filter(|list| !list.is_null()) {
            None => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().enumerate().map(|(i, item)| Self::parse(item, &format!("submit[{i}]"))).collect()
            }
            Some(_) => Err(BadOutcome("submit: must be a list of children".into())),
        }
    }

    /// What is wrong with its weight.
    #[must_use]
    pub fn weight_fault(&self) -> Option<String> {
        let fits = self.weight.is_none_or(|weight| (1..=MAX_WEIGHT).contains(&weight));
        (!fits).then(|| format!("must be between 1 and {MAX_WEIGHT}"))
    }
}

/// Why a child did not become a task, and so why nothing of its chunk was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildFault {
    /// Which of the chunk's children, from 0.
    pub index: usize,
    /// In words.
    pub reason: String,
    /// Whether it may be taken later.
    pub retryable: bool,
}

impl ChildFault {
    /// The child that was refused under one of its keys.
    #[must_use]
    pub fn of(index: usize, refusal: &SubmitRefusal) -> Self {
        let (reason, retryable) = match refusal {
            SubmitRefusal::IdempotencyMismatch { task, paths } => {
                (format!("idempotencyKey is that of task {task}, which differs in {}", paths.join(", ")), false)
            }
            SubmitRefusal::IdempotencyConflict => ("idempotencyKey is held by another task".to_owned(), true),
            SubmitRefusal::ConcurrencyConflict { .. } => ("its concurrency key is full".to_owned(), true),
            SubmitRefusal::KeyQueueFull { limit } => {
                (format!("{limit} tasks wait for its concurrency key already, which is the limit"), true)
            }
        };
        Self { index, reason, retryable }
    }

    /// The child whose concurrency key is held by those above it: it would wait for them, and they for it.
    #[must_use]
    pub fn behind_its_parent(index: usize) -> Self {
        let reason = "its concurrency key is held by its parent, or by one above that, until that one ends".to_owned();
        Self { index, reason, retryable: false }
    }

    /// The failure of the chunk.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let text = format!("submit[{}]: {}", self.index, self.reason);
        let mut failure = Failure::new(ErrorKind::Handler, "child-refused", text);
        failure.retryable = self.retryable;
        failure
    }
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    place: &'a str,
}

impl Reader<'_> {
    fn fault(&self, field: &str, must: &str) -> BadOutcome {
        BadOutcome(format!("{}.{field}: {must}", self.place))
    }

    fn given(&self, field: &str) -> Option<&Value> {
        self.fields.get(field).filter(|value| !value.is_null())
    }

    fn text(&self, field: &str) -> Result<Option<String>, BadOutcome> {
        match self.given(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(self.fault(field, "must be a text")),
        }
    }

    fn whole(&self, field: &str) -> Result<Option<i64>, BadOutcome> {
        let Some(value) = self.given(field) else { return Ok(None) };
        let whole = value.as_f64().filter(|n| n.fract() == 0.0 && n.abs() < 1e15);
        whole.map(|n| Some(n as i64)).ok_or_else(|| self.fault(field, "must be a whole number"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_child_is_read_with_all_that_it_may_say() {
        let said = json!({"action": "part", "params": {"n": 1}, "title": "Part 1", "record": {"type": "order", "id": "7"},
            "idempotencyKey": "p1", "concurrencyKey": "k", "priority": -3, "weight": 5.0,
            "runAt": "2026-11-29T12:00:00.000Z", "later": true});
        let child = Child::parse(&said, "submit[0]").unwrap();
        assert_eq!((child.action.as_str(), &child.params), ("part", &json!({"n": 1})));
        assert_eq!((child.priority, child.weight), (Some(-3), Some(5)));
        assert_eq!(child.record.map(|r| r.id), Some("7".into()));
        assert!(child.run_at.is_some() && child.title.is_some() && child.concurrency_key.is_some());
        assert_eq!(Child::parse(&json!({"action": "part"}), ""), Ok(Child::new("part", json!({}))));
        let child = Child::parse(&said, "").unwrap();
        assert_eq!(Child::parse(&serde_json::to_value(&child).unwrap(), ""), Ok(child), "what is written reads back");
    }

    #[test]
    fn a_fault_names_the_child_and_its_field() {
        for (child, field) in [
            (json!({}), "submit[1].action"),
            (json!({"action": 7}), "submit[1].action"),
            (json!({"action": "a", "params": []}), "submit[1].params"),
            (json!({"action": "a", "title": 1}), "submit[1].title"),
            (json!({"action": "a", "record": "x"}), "submit[1].record"),
            (json!({"action": "a", "weight": 1.5}), "submit[1].weight"),
            (json!({"action": "a", "priority": "high"}), "submit[1].priority"),
            (json!({"action": "a", "runAt": "tomorrow"}), "submit[1].runAt"),
            (json!("a"), "submit[1]"),
        ] {
            let fault = Child::parse_all(Some(&json!([{"action": "a"}, child]))).unwrap_err();
            assert!(fault.0.starts_with(&format!("{field}: ")), "{fault}");
        }
        assert!(Child::parse_all(Some(&json!({"action": "a"}))).is_err());
        assert_eq!(Child::parse_all(Some(&Value::Null)), Ok(Vec::new()));
    }

    #[test]
    fn a_weight_is_taken_at_its_ends_and_refused_beyond_them() {
        for (weight, fits) in [(0, false), (1, true), (MAX_WEIGHT, true), (MAX_WEIGHT + 1, false)] {
            assert_eq!(Child::new("a", json!({})).weighing(weight).weight_fault().is_none(), fits, "{weight}");
        }
    }
}
