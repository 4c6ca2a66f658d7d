//! From what a handler says of its children to clicks: the same tests as for a person's click, but for roles and priorities,
//! since it is the handler that acts.
//!
//! All or none: the first fault refuses the whole list, and names the child by its place and the field.

use super::{Request, Resolver, or_fault, slot};
use crate::core::canonical;
use crate::core::child::Child;
use crate::core::chunk::Failure;
use crate::core::family::{CHILDREN_PER_CHUNK, CHILDREN_PER_TASK, DEPTH, Parent};
use crate::core::ids::TaskId;
use crate::core::params_check::FieldFault;
use crate::core::principal::{Principal, Role, Scope};
use crate::core::submit::Submit;
use crate::core::task::{ErrorKind, Task};

/// The code of a chunk whose children cannot be taken.
const CODE: &str = "child-invalid";

impl Resolver {
    /// The clicks of a chunk's children, each with the id that it will have.
    ///
    /// # Errors
    /// The failure of the chunk: too many children, too deep, or a field that breaks its rule.
    pub fn children(&self, parent: &Task, children: Vec<(TaskId, Child)>) -> Result<Vec<Submit>, Failure> {
        if children.is_empty() {
            return Ok(Vec::new());
        }
        let refused = |text: String| Err(Failure::new(ErrorKind::BadOutcome, CODE, text));
        if children.len() > CHILDREN_PER_CHUNK {
            let count = children.len();
            return refused(format!("submit: has {count} children, the limit of a chunk is {CHILDREN_PER_CHUNK}"));
        }
        let depth = parent.parent.map_or(0, |p| p.depth) + 1;
        if depth > DEPTH {
            return refused(format!("submit: this task is {DEPTH} levels below its first parent, which is the limit"));
        }
        let before = parent.family.as_ref().map_or(0, |family| family.children);
        if before + children.len() as i64 > CHILDREN_PER_TASK {
            return refused(format!("submit: a task may have {CHILDREN_PER_TASK} children, this one has {before}"));
        }
        let mut clicks = Vec::with_capacity(children.len());
        for (index, (id, child)) in children.into_iter().enumerate() {
            match self.child(parent, depth, id, child) {
                Ok(click) => clicks.push(click),
                Err(fault) => return refused(format!("submit[{index}].{}: {}", fault.path, fault.message)),
            }
        }
        Ok(clicks)
    }

    fn child(&self, parent: &Task, depth: i64, id: TaskId, child: Child) -> Result<Submit, FieldFault> {
        let Some(action) = self.catalogue.actions.get(&child.action) else {
            return Err(FieldFault::new("action", format!("`{}` is no declared action", child.action)));
        };
        if let Some(must) = child.weight_fault() {
            return Err(FieldFault::new("weight", must));
        }
        // The handler acts, for whoever started its task: files that came with the parent belong to that one.
        let who = Principal {
            tenant: parent.tenant.clone(),
            user: parent.started_by.clone(),
            role: Role::Operator,
            scopes: Scope::ALL.to_vec(),
        };
        let request = Request {
            action: child.action,
            params: None,
            record: child.record,
            title: child.title,
            owner: None,
            idempotency_key: child.idempotency_key,
            concurrency_key: child.concurrency_key,
            priority: child.priority,
            run_at: child.run_at,
        };
        let mut faults = self.field_faults(&who, &action, &request, &child.params);
        let keys = or_fault(self.keys(&action, &request, &child.params), &mut faults);
        let slot = or_fault(slot(&who, &parent.owner, &action, &request, &child.params), &mut faults);
        if let Some(fault) = faults.into_iter().next() {
            return Err(fault);
        }
        let record = request.record.as_ref().map(|r| (r.kind.as_str(), r.id.as_str()));
        Ok(Submit {
            id,
            caller: who,
            tenant: parent.tenant.clone(),
            action: action.key.clone(),
            pack: action.pack.clone(),
            title: request.title,
            owner: parent.owner.clone(),
            fingerprint: canonical::fingerprint(&child.params, record),
            params: child.params,
            record: request.record,
            keys: keys.unwrap_or_default(),
            slot: slot.flatten(),
            priority: i32::try_from(request.priority.unwrap_or(0)).expect("−100…100 was checked"),
            run_at: request.run_at,
            undo_window_ms: 0,
            max_attempts: action.retry.max_attempts,
            timeout_ms: action.timeout_ms,
            retry_of: None,
            parent: Some(Parent { id: parent.id, depth, weight: child.weight.unwrap_or(1) }),
        })
    }
}
