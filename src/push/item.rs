//! One changed task on its way to many connections: rendered once per view and shared.
//!
//! The ETA is told from the server's now, so a rendering serves others only for a moment ([`Limits::render_ms`]).

use super::frames::Frames;
use super::limits::Limits;
use super::locked;
use crate::core::ids::{Revision, TaskId};
use crate::core::principal::{Principal, Role, Scope};
use crate::core::task::{State, Task, WaitReason};
use crate::core::time::{Clock, Millis, Mono};
use crate::core::view::{Beside, Catalogue, Lens};
use crate::store::beside::BesideReader;
use crate::store::{Result, Store};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Renderings of one item that are kept; above it all are forgotten.
const RENDERINGS: usize = 8;

/// A task as a commit left it.
#[derive(Debug)]
pub struct Item {
    /// The task.
    pub task: Task,
    rendered: Mutex<Vec<Rendering>>,
    /// Held by whoever reads what stands beside the task; the others wait for that rendering.
    flight: tokio::sync::Mutex<()>,
    /// Deltas that begin with it.
    pub(super) frames: Frames,
}

/// What time alone changes of a task: its estimate is withdrawn, its worker is not heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Aged {
    stalled: bool,
    silent: bool,
}

#[derive(Debug)]
struct Rendering {
    class: ViewClass,
    /// Cut to what a colleague may know.
    cut: bool,
    at: Mono,
    /// What time alone had changed when it was made.
    aged: Aged,
    text: Arc<RawValue>,
}

impl Item {
    /// Not rendered yet.
    pub fn new(task: Task) -> Arc<Self> {
        Arc::new(Self { task, rendered: Mutex::default(), flight: Default::default(), frames: Frames::default() })
    }

    fn aged(&self, now: Millis) -> Aged {
        let over = |at: Option<Millis>| at.is_some_and(|at| now > at);
        Aged { stalled: over(self.task.estimator.stalls_at()), silent: over(self.task.lease_until) }
    }
}

/// All that a view depends on beside the task and whether the viewer may see all of it. Users see all of their own tasks
/// alone, so whose view it is follows from the role.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ViewClass {
    role: Role,
    writes: bool,
    lang: Arc<str>,
}

/// Who looks at a connection's items, and in which language.
#[derive(Clone, Debug)]
pub(super) struct Viewer {
    pub principal: Principal,
    pub lang: Arc<str>,
}

impl Viewer {
    fn class(&self) -> ViewClass {
        let writes = self.principal.has(Scope::TasksWrite);
        ViewClass { role: self.principal.role, writes, lang: self.lang.clone() }
    }
}

/// Renders items for viewers.
pub(super) struct Renderer {
    beside: BesideReader,
    catalogue: Arc<Catalogue>,
    clock: Arc<dyn Clock>,
    keep_ms: u64,
}

impl Renderer {
    pub fn new(store: Arc<dyn Store>, catalogue: Arc<Catalogue>, clock: Arc<dyn Clock>, limits: &Limits) -> Self {
        Self { beside: BesideReader::new(store, catalogue.clone()), catalogue, clock, keep_ms: limits.render_ms }
    }

    /// The items as this viewer sees them, in their order. What stands beside them is read for all at once, and once for all
    /// who are told of the same change at the same moment: they wait at the first item that has no rendering yet.
    pub async fn render(&self, viewer: &Viewer, items: &[Arc<Item>]) -> Result<Vec<Arc<RawValue>>> {
        let class = viewer.class();
        let look = || -> Vec<Option<Arc<RawValue>>> {
            let now = self.clock.mono();
            let kept = |item: &Arc<Item>| self.kept(item, &class, !viewer.principal.sees(&item.task), now);
            items.iter().map(kept).collect()
        };
        let mut texts = look();
        let Some(first) = texts.iter().position(Option::is_none) else {
            return Ok(texts.into_iter().flatten().collect());
        };
        let _flight = items[first].flight.lock().await;
        texts = look();
        let fresh: Vec<&Task> =
            items.iter().zip(&texts).filter(|(_, t)| t.is_none()).map(|(item, _)| &item.task).collect();
        let beside: HashMap<TaskId, Beside> =
            if fresh.is_empty() { HashMap::new() } else { self.beside.read(&viewer.principal, &fresh).await? };
        let nothing = Beside::default();
        for (item, text) in items.iter().zip(&mut texts) {
            if text.is_none() {
                let beside = beside.get(&item.task.id).unwrap_or(&nothing);
                *text = Some(self.fresh(viewer, &class, item, beside));
            }
        }
        Ok(texts.into_iter().flatten().collect())
    }

    /// What actions and records are declared.
    pub fn catalogue(&self) -> &Catalogue {
        &self.catalogue
    }

    fn kept(&self, item: &Item, class: &ViewClass, cut: bool, now: Mono) -> Option<Arc<RawValue>> {
        let aged = item.aged(self.clock.now());
        let fits = |r: &Rendering| r.class == *class && r.cut == cut && r.aged == aged;
        let serves = |r: &&Rendering| fits(r) && now - r.at < self.keep_ms;
        locked(&item.rendered).iter().find(serves).map(|r| r.text.clone())
    }

    fn fresh(&self, viewer: &Viewer, class: &ViewClass, item: &Item, beside: &Beside) -> Arc<RawValue> {
        let now = self.clock.now();
        let lens = Lens { viewer: &viewer.principal, lang: &viewer.lang, now, catalogue: &self.catalogue };
        let mut summary = lens.summary(&item.task, beside);
        let cut = !viewer.principal.sees(&item.task);
        if cut {
            summary.cut_for_passers_by(lens.action_title(&item.task.action));
        }
        let text = serde_json::value::to_raw_value(&summary).expect("a summary holds only texts, numbers and lists");
        let text: Arc<RawValue> = text.into();
        let mut rendered = locked(&item.rendered);
        rendered.retain(|r| r.class != *class || r.cut != cut);
        if rendered.len() >= RENDERINGS {
            rendered.clear();
        }
        let (at, aged) = (self.clock.mono(), item.aged(now));
        rendered.push(Rendering { class: class.clone(), cut, at, aged, text: text.clone() });
        text
    }
}

/// What tells a changed state from mere progress: the parts of a task that a person would want to hear of at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Facts {
    pub revision: Revision,
    /// Absent for a task that is deleted.
    state: Option<State>,
    attempts: u32,
    retrying: bool,
    stopping: bool,
    marks: (bool, bool, bool),
    suppressed: i64,
    pub ended: bool,
}

impl Facts {
    pub fn of(task: &Task) -> Self {
        Self {
            revision: task.revision,
            state: Some(task.state),
            attempts: task.attempts,
            retrying: task.wait == Some(WaitReason::Retry),
            stopping: task.stop.is_some(),
            marks: (task.seen_at.is_some(), task.read_at.is_some(), task.archived_at.is_some()),
            suppressed: task.suppressed,
            ended: task.state.is_final(),
        }
    }

    /// Those of a task that is deleted: kept, so that an announcement that comes late does not bring it back.
    pub fn gone(revision: Revision) -> Self {
        Self {
            revision,
            state: None,
            attempts: 0,
            retrying: false,
            stopping: false,
            marks: (false, false, false),
            suppressed: 0,
            ended: true,
        }
    }

    /// Whether they are those of a task that is deleted.
    pub fn is_gone(&self) -> bool {
        self.state.is_none()
    }

    /// Whether going from `before` to these is progress alone.
    pub fn only_progress_since(&self, before: &Self) -> bool {
        Self { revision: before.revision, ..*self } == *before
    }
}
