//! Concurrency keys: who may start, who waits, who is told to go.
//!
//! A slot is held by the task's own row, so the holders are counted and never kept in a counter that could drift. A task
//! with a full key is *gated*: it is no candidate for a claim, costs no token and no attempt, and the statement that frees
//! a slot opens the gate of the next one.

use super::action::Policy;
use super::task::RecordRef;
use serde_json::Value;

/// Tasks under one key at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyUse {
    /// Hold a slot.
    pub held: u32,
    /// Wait for one.
    pub waiting: u32,
}

/// What to do with a click under its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Take a slot.
    Take,
    /// Wait for one.
    Wait,
    /// Answer with the holder.
    Skip,
    /// Refuse.
    Reject,
    /// Cancel those that have not started, then take or wait.
    ReplacePending,
    /// Ask the holders to stop, cancel those that wait, then wait.
    CancelRunning,
    /// Too many wait already.
    QueueFull,
}

/// The verdict.
#[must_use]
pub fn decide(policy: Policy, in_use: KeyUse, limit: u32, max_waiting: u32) -> Verdict {
    if in_use.held < limit {
        return Verdict::Take;
    }
    match policy {
        Policy::Wait if in_use.waiting >= max_waiting => Verdict::QueueFull,
        Policy::Wait => Verdict::Wait,
        Policy::Skip => Verdict::Skip,
        Policy::Reject => Verdict::Reject,
        Policy::ReplacePending => Verdict::ReplacePending,
        Policy::CancelRunning => Verdict::CancelRunning,
    }
}

/// What fills the placeholders of a key.
#[derive(Clone, Copy, Debug)]
pub struct KeyFacts<'a> {
    /// `{tenant}`.
    pub tenant: &'a str,
    /// `{owner}`.
    pub owner: &'a str,
    /// `{action}`.
    pub action: &'a str,
    /// `{record.type}` and `{record.id}`.
    pub record: Option<&'a RecordRef>,
    /// `{params.NAME}`.
    pub params: &'a Value,
    /// `{request}`: the caller's own `concurrencyKey`.
    pub request: Option<&'a str>,
}

/// Fills a key. An error names the placeholder that has no value.
pub fn fill(template: &str, facts: KeyFacts<'_>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let (name, tail) = after.split_once('}').ok_or_else(|| after.to_owned())?;
        let value = match name {
            "tenant" => Some(facts.tenant.to_owned()),
            "owner" => Some(facts.owner.to_owned()),
            "action" => Some(facts.action.to_owned()),
            "record.type" => facts.record.map(|r| r.kind.clone()),
            "record.id" => facts.record.map(|r| r.id.clone()),
            "request" => facts.request.map(str::to_owned),
            _ => name.strip_prefix("params.").and_then(|p| match facts.params.get(p) {
                Some(Value::String(text)) => Some(text.clone()),
                Some(Value::Null) | None => None,
                Some(other) => Some(super::canonical::canonical(other)),
            }),
        };
        out.push_str(&value.ok_or_else(|| name.to_owned())?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_full_key_is_judged_by_its_policy_and_a_free_one_never() {
        let full = KeyUse { held: 1, waiting: 3 };
        for (policy, want) in [
            (Policy::Wait, Verdict::Wait),
            (Policy::Skip, Verdict::Skip),
            (Policy::Reject, Verdict::Reject),
            (Policy::ReplacePending, Verdict::ReplacePending),
            (Policy::CancelRunning, Verdict::CancelRunning),
        ] {
            assert_eq!(decide(policy, full, 1, 10), want);
            assert_eq!(decide(policy, full, 2, 10), Verdict::Take);
        }
        assert_eq!(decide(Policy::Wait, full, 1, 3), Verdict::QueueFull);
    }

    #[test]
    fn a_key_is_filled_from_the_submit_and_a_missing_value_is_named() {
        let params = json!({"site": "north", "n": 3});
        let facts = KeyFacts { tenant: "t", owner: "bob", action: "a", record: None, params: &params, request: None };
        assert_eq!(fill("import:{tenant}:{params.site}:{params.n}", facts).unwrap(), "import:t:north:3");
        assert_eq!(fill("{record.id}", facts).unwrap_err(), "record.id");
        assert_eq!(fill("{request}", facts).unwrap_err(), "request");
    }
}
