//! What a view shows that is not in the task's row: its place in the queue, who is ahead of it, its files, and what the
//! action usually takes. Read for many tasks at once, so that a list or a push costs a few reads and not a few per task.
//!
//! Must never show a viewer a task that it may not see: the task ahead is told only where it lies within the viewer's
//! reach. What an action usually takes is kept for [`USUAL_FOR`], since it changes with each success and nobody notices.

use super::{NodeList, Reach, Result, Store, Usual};
use crate::core::action::HandlerRef;
use crate::core::ids::TaskId;
use crate::core::principal::Principal;
use crate::core::task::Task;
use crate::core::time::Millis;
use crate::core::view::{ArtifactView, Beside, Catalogue};
use std::borrow::Borrow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a reading of what an action usually takes is used again.
const USUAL_FOR: Duration = Duration::from_secs(30);
/// How long a reading of what workers asked for, and of which nodes there are, is used again.
const ASKS_FOR: Duration = Duration::from_secs(1);
/// The most readings that are kept; above it all are forgotten.
const USUAL_COUNT: usize = 10_000;

/// Reads what stands beside tasks. Shared by all that show tasks.
pub struct BesideReader {
    store: Arc<dyn Store>,
    catalogue: Arc<Catalogue>,
    usual: Mutex<HashMap<(String, String), (Instant, Usual)>>,
    asks: Brief<Asks>,
    nodes: Brief<NodeList>,
}

/// A reading that is used again for [`ASKS_FOR`].
#[derive(Default)]
struct Brief<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Brief<T> {
    /// What was read last, or what is read now where that is too old.
    async fn or_read(&self, read: impl Future<Output = Result<T>>) -> Result<Arc<T>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((read_at, value)) = kept
            && read_at.elapsed() < ASKS_FOR
        {
            return Ok(value);
        }
        let value = Arc::new(read.await?);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Instant::now(), value.clone()));
        Ok(value)
    }
}

/// When workers last asked, by (tenant, or `*` for all; action).
type Asks = BTreeMap<(String, String), Millis>;

impl BesideReader {
    /// A reader over a store.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, catalogue: Arc<Catalogue>) -> Self {
        Self { store, catalogue, usual: Mutex::default(), asks: Brief::default(), nodes: Brief::default() }
    }

    /// What stands beside these tasks for this viewer, by task; each task has an entry.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn read(&self, viewer: &Principal, tasks: &[impl Borrow<Task>]) -> Result<HashMap<TaskId, Beside>> {
        let tasks: Vec<&Task> = tasks.iter().map(Borrow::borrow).collect();
        let tasks = &tasks[..];
        let mut found: HashMap<TaskId, Beside> = tasks.iter().map(|t| (t.id, Beside::default())).collect();
        self.read_files(tasks, &mut found).await?;
        self.read_places(tasks, &mut found).await?;
        self.read_holders(viewer, tasks, &mut found).await?;
        self.read_asks(tasks, &mut found).await?;
        self.read_nodes(tasks, &mut found).await?;
        self.read_families(tasks, &mut found).await?;
        for task in tasks.iter().filter(|t| t.started_at.is_some() && !t.state.is_final()) {
            let usual = self.usual(&task.tenant, &task.action).await?;
            found.entry(task.id).or_default().prior = usual.prior;
        }
        Ok(found)
    }

    /// What the last successes of an action took; up to [`USUAL_FOR`] old.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn usual(&self, tenant: &str, action: &str) -> Result<Usual> {
        let key = (tenant.to_owned(), action.to_owned());
        let kept = self.usual.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        if let Some((read_at, usual)) = kept
            && read_at.elapsed() < USUAL_FOR
        {
            return Ok(usual);
        }
        let usual = self.store.usual(tenant, action).await?;
        let mut all = self.usual.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() >= USUAL_COUNT {
            all.clear();
        }
        all.insert(key, (Instant::now(), usual));
        Ok(usual)
    }

    async fn read_families(&self, tasks: &[&Task], found: &mut HashMap<TaskId, Beside>) -> Result<()> {
        let waits = |t: &&&Task| t.awaits.is_some() && !t.state.is_final();
        let ids: Vec<TaskId> = tasks.iter().filter(waits).map(|t| t.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for (id, counts) in self.store.family_counts(&ids).await? {
            let open = counts.iter().filter(|(state, _)| !state.is_final()).map(|(_, n)| n).sum();
            found.entry(id).or_default().open_children = Some(open);
        }
        Ok(())
    }

    async fn read_files(&self, tasks: &[&Task], found: &mut HashMap<TaskId, Beside>) -> Result<()> {
        let ids: Vec<TaskId> = tasks.iter().filter(|t| t.started_at.is_some()).map(|t| t.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for file in self.store.artifacts(&ids).await? {
            if let Some(beside) = file.task.and_then(|id| found.get_mut(&id)) {
                beside.artifacts.push(ArtifactView {
                    id: file.id,
                    name: file.name,
                    size: file.size_bytes,
                    content_type: file.content_type,
                    expires_at: file.expires_at,
                });
            }
        }
        Ok(())
    }

    async fn read_places(&self, tasks: &[&Task], found: &mut HashMap<TaskId, Beside>) -> Result<()> {
        let waits = |t: &&&Task| !t.state.is_final() && !t.under_way();
        let ids: Vec<TaskId> = tasks.iter().filter(waits).map(|t| t.id).collect();
        if ids.is_empty() {
            return Ok(());
        }
        for (id, place) in self.store.positions(&ids).await? {
            if let Some(beside) = found.get_mut(&id) {
                beside.position = Some(place);
            }
        }
        Ok(())
    }

    /// Whether somebody asks for what waits for a worker outside.
    async fn read_asks(&self, tasks: &[&Task], found: &mut HashMap<TaskId, Beside>) -> Result<()> {
        let pulled = |task: &&&Task| {
            let action = self.catalogue.actions.get(&task.action).filter(|_| task.claimable());
            action.is_some_and(|action| action.handler == HandlerRef::Pull)
        };
        let waiting: Vec<&&Task> = tasks.iter().filter(pulled).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let asks = self.asks().await?;
        for task in waiting {
            let asked = |tenant: &str| asks.get(&(tenant.to_owned(), task.action.clone())).copied();
            if let Some(beside) = found.get_mut(&task.id) {
                beside.asked_at = asked(&task.tenant).max(asked("*"));
            }
        }
        Ok(())
    }

    /// Whether a node is there that could run what waits. A database in which no node was ever told of says nothing.
    async fn read_nodes(&self, tasks: &[&Task], found: &mut HashMap<TaskId, Beside>) -> Result<()> {
        let waiting: Vec<&&Task> = tasks.iter().filter(|task| task.claimable()).collect();
        if waiting.is_empty() {
            return Ok(());
        }
        let list = self.nodes().await?;
        if list.nodes.is_empty() {
            return Ok(());
        }
        for task in waiting {
            if let Some(beside) = found.get_mut(&task.id) {
                beside.handled = Some(list.living().any(|node| node.can_run(task)));
            }
        }
        Ok(())
    }

    /// The nodes; up to [`ASKS_FOR`] old.
    async fn nodes(&self) -> Result<Arc<NodeList>> {
        self.nodes.or_read(self.store.nodes()).await
    }

    /// What workers asked for; up to [`ASKS_FOR`] old.
    async fn asks(&self) -> Result<Arc<Asks>> {
        let read = async {
            let actions: Vec<String> = self.catalogue.actions.pulled().map(|action| action.key.clone()).collect();
            self.store.last_asks(&actions).await
        };
        self.asks.or_read(read).await
    }

    async fn read_holders(
        &self,
        viewer: &Principal,
        tasks: &[&Task],
        found: &mut HashMap<TaskId, Beside>,
    ) -> Result<()> {
        let ahead: HashSet<TaskId> = tasks.iter().filter_map(|t| t.blocked_by).collect();
        if ahead.is_empty() {
            return Ok(());
        }
        let ahead: Vec<TaskId> = ahead.into_iter().collect();
        let visible: HashSet<TaskId> =
            self.store.tasks(&Reach::of(viewer), &ahead).await?.iter().map(|t| t.id).collect();
        for task in tasks {
            if let Some(beside) = found.get_mut(&task.id) {
                beside.blocked_by = task.blocked_by.filter(|id| visible.contains(id));
            }
        }
        Ok(())
    }
}
