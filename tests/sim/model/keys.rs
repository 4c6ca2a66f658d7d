//! Who holds which idempotency key, by the rule that callers are promised: one task within the retention of a key.

use crate::violation::{Checked, Invariant, must};
use std::collections::BTreeMap;
use taskbell::core::idempotency::holds;
use taskbell::core::ids::TaskId;
use taskbell::core::submit::Submit;
use taskbell::core::task::Task;
use taskbell::core::time::Millis;
use taskbell::store::tx::KeyName;

/// The holders.
#[derive(Default)]
pub struct Keys {
    claims: BTreeMap<TaskId, Vec<(KeyName, i64)>>,
    holders: BTreeMap<KeyName, (TaskId, i64)>,
}

impl Keys {
    /// What a click claims, should it become a task.
    pub fn clicked(&mut self, item: &Submit) {
        let name = |kind, key: &str| KeyName {
            tenant: item.tenant.clone(),
            action: item.action.clone(),
            kind,
            key: key.to_owned(),
        };
        self.claims.insert(item.id, item.keys.iter().map(|c| (name(c.kind, &c.key), c.keep_ms)).collect());
    }

    /// A click became a task: nobody else may hold its keys, unless the same commit has ended it again.
    pub fn took(&mut self, id: TaskId, rows: &BTreeMap<TaskId, Task>, now: Millis) -> Checked {
        for (name, keep_ms) in self.claims.remove(&id).unwrap_or_default() {
            if !rows.get(&id).is_some_and(|t| holds(t, keep_ms, now)) {
                continue;
            }
            if let Some((holder, kept_ms)) = self.holders.insert(name.clone(), (id, keep_ms)) {
                let other = rows.get(&holder).filter(|t| holds(t, kept_ms, now));
                must(other.is_none(), Invariant::OneHolder, || {
                    format!("{id} was made with {name:?}, which {other:?} holds")
                })?;
            }
        }
        Ok(())
    }
}
