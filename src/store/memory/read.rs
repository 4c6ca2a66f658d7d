//! What memory answers to reading verbs, and the small writes that concern no task. Lists are plain scans: this is the
//! model that says what is right, not how to be quick with a million rows.

use super::super::tx::{DocumentKind, Tx};
use super::super::{
    Aged, Capabilities, Center, Counts, FileRow, ListParams, MARKS_AT_ONCE, Mark, MarkParams, OwnerHeads, Page, Reach,
    Result, Store, StoreError, TEXT_CHARS, Usual,
};
use super::MemoryStore;
use super::tables::Tables;
use super::tx::documents_of;
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::picture::Point;
use crate::core::retention::End;
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use crate::store::row::sort_value;
use async_trait::async_trait;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// The most items of a snapshot.
const CENTER_ITEMS: usize = 100;
/// Places beyond this are not counted.
const FAR: usize = 1_000;

/// Tasks inside a reach; of one owner without a look at the others.
fn within<'a>(tables: &'a Tables, reach: &'a Reach) -> Box<dyn Iterator<Item = &'a Task> + Send + 'a> {
    match (&reach.tenant, &reach.owner) {
        (Some(tenant), Some(owner)) => {
            let ids = tables.owned.get(&(tenant.clone(), owner.clone())).into_iter().flatten();
            Box::new(ids.filter_map(|id| tables.task(*id)))
        }
        _ => Box::new(tables.tasks().filter(|t| reach.holds(t))),
    }
}

fn unseen(task: &Task) -> bool {
    task.state.is_final() && task.seen_at.is_none() && task.archived_at.is_none()
}

fn counts_of(tables: &Tables, reach: &Reach, ended: bool) -> Counts {
    let mut counts = Counts::default();
    for task in within(tables, reach) {
        if ended || !task.state.is_final() {
            *counts.by_state.entry(task.state).or_default() += 1;
        }
        counts.unseen += i64::from(unseen(task));
        let unread = task.state == State::Failed && task.read_at.is_none() && task.archived_at.is_none();
        counts.attention += i64::from(unread);
    }
    counts
}

fn wanted(task: &Task, params: &ListParams, text: &str) -> bool {
    (params.states.is_empty() || params.states.contains(&task.state))
        && params.action.as_ref().is_none_or(|a| *a == task.action)
        && (params.pack.is_none() || params.pack == task.pack)
        && params.owner.as_ref().is_none_or(|o| *o == task.owner)
        && (params.record.is_none() || params.record == task.record)
        && (params.parent.is_none() || params.parent == task.parent.map(|parent| parent.id))
        && params.from.is_none_or(|from| task.created_at >= from)
        && params.to.is_none_or(|to| task.created_at < to)
        && (params.archived || task.archived_at.is_none())
        && has_text(task, text)
}

/// Whether title, action, id or the record's id hold a text that is in small letters.
fn has_text(task: &Task, text: &str) -> bool {
    let holds = |part: &str| part.to_ascii_lowercase().contains(text);
    text.is_empty()
        || task.title.as_deref().is_some_and(holds)
        || holds(&task.action)
        || holds(&task.id.to_string())
        || task.record.as_ref().is_some_and(|r| holds(&r.id))
}

/// Tasks that a mark is meant for and that do not carry it yet, by id.
pub(super) fn markable<'a>(tables: &'a Tables, params: &'a MarkParams) -> impl Iterator<Item = &'a Task> {
    let owner = (params.tenant.clone(), params.owner.clone());
    let owned = tables.owned.get(&owner).into_iter().flatten().filter_map(|id| tables.task(*id));
    let text = params.filter.text.as_deref().unwrap_or_default().to_ascii_lowercase();
    owned.filter(move |task| {
        let marked = match params.mark {
            Mark::Seen => task.seen_at,
            Mark::Read => task.read_at,
            Mark::Archived => task.archived_at,
        };
        let filter = &params.filter;
        let named = || {
            task.state.is_final()
                && params.up_to.is_none_or(|head| task.head <= head)
                && (filter.states.is_empty() || filter.states.contains(&task.state))
                && filter.action.as_ref().is_none_or(|a| *a == task.action)
                && (filter.record.is_none() || filter.record == task.record)
                && filter.from.is_none_or(|from| task.created_at >= from)
                && filter.to.is_none_or(|to| task.created_at < to)
                && has_text(task, &text)
        };
        marked.is_none() && if params.ids.is_empty() { named() } else { params.ids.contains(&task.id) }
    })
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { effects: false, single_process: true }
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    async fn now(&self) -> Result<Millis> {
        Ok(self.database_now())
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        Ok(self.begin_write().await)
    }

    async fn tasks(&self, reach: &Reach, ids: &[TaskId]) -> Result<Vec<Task>> {
        let tables = self.tables.lock().await;
        let ids: BTreeSet<TaskId> = ids.iter().copied().collect();
        Ok(ids.into_iter().filter_map(|id| tables.task(id)).filter(|t| reach.holds(t)).cloned().collect())
    }

    async fn documents(&self, id: TaskId) -> Result<Documents> {
        Ok(documents_of(&*self.tables.lock().await, id, true))
    }

    async fn list(&self, params: ListParams) -> Result<Page<Task, (i64, TaskId)>> {
        let text = params.text.as_deref().unwrap_or_default().to_ascii_lowercase();
        if text.chars().count() > TEXT_CHARS {
            return Err(StoreError::Limit(format!("a search text may have {TEXT_CHARS} characters")));
        }
        let tables = self.tables.lock().await;
        let mut found: Vec<((i64, TaskId), &Task)> = within(&tables, &params.reach)
            .filter(|t| wanted(t, &params, &text))
            .map(|t| ((sort_value(t, params.sort), t.id), t))
            .filter(|(at, _)| {
                params.after.is_none_or(|after| if params.descending { *at < after } else { *at > after })
            })
            .collect();
        if params.descending {
            found.sort_unstable_by_key(|(at, _)| Reverse(*at));
        } else {
            found.sort_unstable_by_key(|(at, _)| *at);
        }
        let more = found.len() > params.limit;
        found.truncate(params.limit);
        let next = found.last().filter(|_| more).map(|(at, _)| *at);
        Ok(Page { items: found.into_iter().map(|(_, t)| t.clone()).collect(), next })
    }

    async fn markable(&self, params: &MarkParams) -> Result<usize> {
        Ok(markable(&*self.tables.lock().await, params).take(MARKS_AT_ONCE).count())
    }

    async fn counts(&self, reach: &Reach, ended: bool) -> Result<Counts> {
        Ok(counts_of(&*self.tables.lock().await, reach, ended))
    }

    async fn center(&self, tenant: &str, owner: &str) -> Result<Center> {
        let tables = self.tables.lock().await;
        let reach = Reach { tenant: Some(tenant.to_owned()), owner: Some(owner.to_owned()) };
        let own: Vec<&Task> = within(&tables, &reach).collect();
        let newest_first = |t: &&Task| Reverse((t.created_at, t.id));
        let mut active: Vec<&Task> = own.iter().copied().filter(|t| !t.state.is_final()).collect();
        active.sort_by_key(newest_first);
        let mut ended: Vec<&Task> = own.iter().copied().filter(|t| unseen(t)).collect();
        ended.sort_by_key(|t| Reverse((t.finished_at, t.id)));
        let mut newest: Vec<&Task> = own.iter().copied().filter(|t| t.archived_at.is_none()).collect();
        newest.sort_by_key(newest_first);
        let mut seen = BTreeSet::new();
        let mut found: Vec<&Task> =
            active.into_iter().chain(ended).chain(newest).filter(|t| seen.insert(t.id)).collect();
        let more = found.len() > CENTER_ITEMS;
        found.truncate(CENTER_ITEMS);
        Ok(Center {
            head: tables.heads.get(&(tenant.to_owned(), owner.to_owned())).copied().unwrap_or_default().head,
            tasks: found.into_iter().cloned().collect(),
            more,
            counts: counts_of(&tables, &reach, false),
            as_of: self.database_now(),
        })
    }

    async fn head(&self, tenant: &str, owner: &str) -> Result<Head> {
        let owner = (tenant.to_owned(), owner.to_owned());
        Ok(self.tables.lock().await.heads.get(&owner).copied().unwrap_or_default().head)
    }

    async fn heads(&self, owners: &[(String, String)]) -> Result<Vec<OwnerHeads>> {
        let tables = self.tables.lock().await;
        Ok(owners.iter().map(|owner| tables.heads.get(owner).copied().unwrap_or_default()).collect())
    }

    async fn changed(&self, since: &[((String, String), Head)], most: usize) -> Result<Vec<Task>> {
        let tables = self.tables.lock().await;
        let of = |(owner, head): &(_, Head)| {
            let ids = tables.owned.get(owner).into_iter().flatten();
            let mut found: Vec<&Task> = ids.filter_map(|id| tables.task(*id)).filter(|t| t.head > *head).collect();
            found.sort_by_key(|t| t.head);
            found.into_iter().take(most).cloned().collect::<Vec<Task>>()
        };
        Ok(since.iter().flat_map(of).collect())
    }

    async fn revisions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Revision>> {
        let tables = self.tables.lock().await;
        Ok(ids.iter().filter_map(|id| Some((*id, tables.task(*id)?.revision))).collect())
    }

    async fn events(&self, id: TaskId, after: i64, limit: usize) -> Result<Vec<TimelineEvent>> {
        let tables = self.tables.lock().await;
        let timeline = tables.events.get(&id).into_iter().flatten();
        Ok(timeline.filter(|e| e.seq > after).take(limit).cloned().collect())
    }

    async fn points(&self, id: TaskId) -> Result<Vec<Point>> {
        Ok(self.tables.lock().await.picture(id))
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        let tables = self.tables.lock().await;
        let ahead = |task: &Task| match &task.concurrency {
            Some(c) if task.gated => {
                let turn = (-task.priority, task.due_at, task.id);
                let waiters = tables.waiters.get(&(task.tenant.clone(), c.key.clone()));
                waiters.map(|w| w.range(..turn).take(FAR + 1).count())
            }
            _ if task.claimable() && task.state == State::Queued => {
                tables.claimable.get(&task.tenant).map(|q| q.range(..(task.rank(), task.id)).take(FAR + 1).count())
            }
            _ => None,
        };
        let tasks = ids.iter().filter_map(|id| tables.task(*id));
        Ok(tasks.filter_map(|t| Some((t.id, ahead(t).filter(|n| *n <= FAR)? as i64 + 1))).collect())
    }

    async fn usual(&self, tenant: &str, action: &str) -> Result<Usual> {
        Ok(self.tables.lock().await.usual(tenant, action))
    }

    async fn children(&self, parent: TaskId, after: Option<TaskId>, limit: usize) -> Result<Vec<Task>> {
        let tables = self.tables.lock().await;
        let later = |t: &&Task| after.is_none_or(|after| t.id > after);
        Ok(tables.children_of(parent).filter(later).take(limit).cloned().collect())
    }

    async fn family_counts(&self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, BTreeMap<State, i64>>> {
        let tables = self.tables.lock().await;
        let mut found: BTreeMap<TaskId, BTreeMap<State, i64>> = BTreeMap::new();
        for child in parents.iter().flat_map(|id| tables.children_of(*id)) {
            if let Some(parent) = child.parent {
                *found.entry(parent.id).or_default().entry(child.state).or_default() += 1;
            }
        }
        Ok(found)
    }

    async fn results(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, serde_json::Value>> {
        let tables = self.tables.lock().await;
        let result = |id: &TaskId| Some((*id, tables.documents.get(&(*id, DocumentKind::Result))?.clone()));
        Ok(ids.iter().filter_map(result).collect())
    }

    async fn aged(&self, after: Option<TaskId>, limit: usize) -> Result<Vec<Aged>> {
        let tables = self.tables.lock().await;
        let key_ms = |id: TaskId| tables.keys.values().filter(|k| k.task == id).map(|k| k.keep_ms).max();
        let later = tables.tasks().filter(|t| after.is_none_or(|after| t.id > after));
        let aged = |t: &Task| {
            let end = t.finished_at.filter(|_| t.state.is_final()).map(|at| End { state: t.state, at });
            Aged { id: t.id, created_at: t.created_at, end, key_ms: key_ms(t.id).unwrap_or_default() }
        };
        Ok(later.take(limit).map(aged).collect())
    }

    async fn next_due(&self) -> Result<Option<Millis>> {
        let tables = self.tables.lock().await;
        let waiting = tables.claimable.values().flatten().filter_map(|(_, id)| tables.task(*id));
        Ok(waiting.map(|t| t.due_at).min())
    }

    async fn note_asks(&self, asks: &[(String, String)]) -> Result<()> {
        let now = self.database_now();
        self.tables.lock().await.asks.extend(asks.iter().map(|ask| (ask.clone(), now)));
        Ok(())
    }

    async fn last_asks(&self, actions: &[String]) -> Result<BTreeMap<(String, String), Millis>> {
        let tables = self.tables.lock().await;
        let asked = tables.asks.iter().filter(|((_, action), _)| actions.contains(action));
        Ok(asked.map(|(name, at)| (name.clone(), *at)).collect())
    }

    async fn put_file(&self, file: FileRow) -> Result<()> {
        let files = &mut self.tables.lock().await.files;
        if files.contains_key(&file.id) {
            return Err(StoreError::Limit("the id of a file is taken".into()));
        }
        files.insert(file.id.clone(), file);
        Ok(())
    }

    async fn keep_uploads(&self, tenant: &str, ids: &[String], until: Millis) -> Result<()> {
        let files = &mut self.tables.lock().await.files;
        for id in ids {
            if let Some(file) = files.get_mut(id).filter(|f| f.tenant == tenant && f.task.is_none()) {
                file.expires_at = file.expires_at.map(|at| at.max(until));
            }
        }
        Ok(())
    }

    async fn file(&self, id: &str) -> Result<Option<FileRow>> {
        Ok(self.tables.lock().await.files.get(id).cloned())
    }

    async fn artifacts(&self, tasks: &[TaskId]) -> Result<Vec<FileRow>> {
        let tables = self.tables.lock().await;
        Ok(tables.files.values().filter(|f| f.task.is_some_and(|t| tasks.contains(&t))).cloned().collect())
    }

    async fn expire_files(&self, limit: usize) -> Result<Vec<FileRow>> {
        let now = self.database_now();
        let files = &mut self.tables.lock().await.files;
        let mut over: Vec<FileRow> =
            files.values().filter(|f| f.expires_at.is_some_and(|at| at <= now)).cloned().collect();
        over.sort_by_key(|f| f.expires_at);
        over.truncate(limit);
        for file in &over {
            files.remove(&file.id);
        }
        Ok(over)
    }

    async fn query(&self, _sql: &'static str, _values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        Err(StoreError::Unsupported("business tables"))
    }

    async fn execute(&self, _statements: Vec<Effect>) -> Result<()> {
        Err(StoreError::Unsupported("business tables"))
    }
}
