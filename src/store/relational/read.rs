//! What the database answers to reading verbs, and the small writes that concern no task: files.

use super::super::retry::until_settled;
use super::super::row::{self, Columns};
use super::super::sql::like;
use super::super::tx::Tx;
use super::super::value::{Batch, Value, values};
use super::super::{
    Aged, Capabilities, Center, Counts, FileRow, ListParams, MARKS_AT_ONCE, MarkParams, OwnerHeads, Page, Reach,
    Result, Store, StoreError, TEXT_CHARS, Usual,
};
use super::SqlStore;
use super::driver::owner_names;
use super::driver::{Driver, Session as _};
use super::rows::{aged, documents, no_documents, points, shown, shown_events, usual};
use super::tx::{SqlTx, named_by_filter};
use crate::core::effect::{Effect, SqlValue};
use crate::core::ids::{Head, Revision, TaskId};
use crate::core::picture::Point;
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use async_trait::async_trait;
use std::collections::{BTreeMap, BTreeSet};

/// The most items of a snapshot.
const CENTER_ITEMS: usize = 100;

impl<D: Driver> SqlStore<D> {
    /// Runs one writing statement; answers how many rows it touched. Two that clear up at once may lock the same rows in
    /// other orders: the one that the database gave up begins anew.
    pub(super) async fn write(&self, statement: &'static str, values: Vec<Value>) -> Result<u64> {
        until_settled!(budget, self.write_once(statement, values.clone()).await)
    }

    async fn write_once(&self, statement: &'static str, values: Vec<Value>) -> Result<u64> {
        let mut session = self.driver.begin().await?;
        let touched = session.run(statement, values).await?;
        session.commit().await?;
        Ok(touched)
    }

    async fn counts_of(&self, look: &mut D::Session, reach: &Reach, ended: bool) -> Result<Counts> {
        let s = self.driver.statements();
        let states = if ended { s.counts_all.within(reach) } else { s.counts_active.within(reach) };
        let whose = || values![reach.tenant.clone(), reach.owner.clone()];
        let mut counts = Counts::default();
        for mut r in look.rows(states, whose()).await? {
            let state = r.text()?.as_deref().and_then(State::parse).unwrap_or(State::Unknown);
            *counts.by_state.entry(state).or_default() += r.int()?.unwrap_or_default();
        }
        for mut r in look.rows(s.counts_marks.within(reach), whose()).await? {
            counts.unseen = r.int()?.unwrap_or_default();
            counts.attention = r.int()?.unwrap_or_default();
        }
        Ok(counts)
    }
}

/// The head of an owner; one that has no row yet is at 0.
fn head_of(rows: Vec<impl Columns>) -> Result<Head> {
    rows.into_iter().next().map_or(Ok(Head(0)), |mut r| Ok(Head(r.int()?.unwrap_or_default())))
}

/// Words, and whether a state has to be one of them or none. All that this version does not know are asked for by naming what it
/// knows and was not asked for.
fn state_words(asked: &[State]) -> (Vec<&'static str>, bool) {
    if !asked.contains(&State::Unknown) {
        return (asked.iter().map(|s| s.as_str()).collect(), true);
    }
    (State::ALL.into_iter().filter(|s| !asked.contains(s)).map(State::as_str).collect(), false)
}

fn file_row(mut r: impl Columns) -> Result<FileRow> {
    let (id, tenant, owner, task) = (r.text()?, r.text()?, r.text()?, r.text()?);
    Ok(FileRow {
        id: id.unwrap_or_default(),
        tenant: tenant.unwrap_or_default(),
        owner: owner.unwrap_or_default(),
        task: task.as_deref().map(row::task_id).transpose()?,
        name: r.text()?.unwrap_or_default(),
        content_type: r.text()?.unwrap_or_default(),
        size_bytes: r.int()?.unwrap_or_default(),
        sha256: r.text()?.unwrap_or_default(),
        created_at: Millis(r.int()?.unwrap_or_default()),
        expires_at: r.int()?.map(Millis),
    })
}

#[async_trait]
impl<D: Driver> Store for SqlStore<D> {
    fn capabilities(&self) -> Capabilities {
        self.driver.capabilities()
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    async fn now(&self) -> Result<Millis> {
        self.driver.now().await
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        Ok(Box::new(SqlTx::new(self.driver.begin().await?, self.driver.statements(), self.recall.clone())))
    }

    async fn begin_late(&self) -> Result<Box<dyn Tx>> {
        Ok(Box::new(SqlTx::new(self.driver.begin_late().await?, self.driver.statements(), self.recall.clone())))
    }

    async fn tasks(&self, reach: &Reach, ids: &[TaskId]) -> Result<Vec<Task>> {
        let mut found = shown(self.driver.rows(&self.driver.statements().tasks_by_id, values![ids]).await?)?;
        found.retain(|t| reach.holds(t));
        Ok(found)
    }

    async fn documents(&self, id: TaskId) -> Result<Documents> {
        let values = values![&[id][..], ["params", "checkpoint", "result"]];
        let rows = self.driver.rows(&self.driver.statements().documents, values).await?;
        Ok(documents(rows)?.remove(&id).unwrap_or_else(no_documents))
    }

    async fn list(&self, params: ListParams) -> Result<Page<Task, (i64, TaskId)>> {
        let (states, among) = state_words(&params.states);
        // A reach of one owner wins over the filter: another owner's name finds nothing there.
        let owner = params.reach.owner.clone().or_else(|| params.owner.clone());
        if params.owner.is_some() && params.owner != owner {
            return Ok(Page { items: Vec::new(), next: None });
        }
        if params.text.as_ref().is_some_and(|text| text.chars().count() > TEXT_CHARS) {
            return Err(StoreError::Limit(format!("a search text may have {TEXT_CHARS} characters")));
        }
        let text = params.text.as_deref().map(like);
        let statement = self.driver.statements().list(&params, owner.as_ref());
        let record = params.record.as_ref();
        let mut take = params.limit;
        loop {
            let values = values![
                params.reach.tenant.clone(),
                owner.clone(),
                states.clone(),
                params.action.clone(),
                record.map(|r| r.kind.clone()),
                record.map(|r| r.id.clone()),
                text.clone(),
                params.from,
                params.to,
                i64::from(params.archived),
                params.after.map(|a| a.0),
                params.after.map(|a| a.1.to_string()),
                take + 1,
                params.pack.clone(),
                params.parent.map(|id| id.to_string()),
                i64::from(among),
            ];
            let mut rows = self.driver.rows(statement, values).await?;
            let more = rows.len() > take;
            rows.truncate(take);
            let mut items = shown(rows)?;
            // The next page goes on after a task of this one, so there has to be one.
            if items.is_empty() && more && take > 0 {
                take *= 8;
                continue;
            }
            let more = more || items.len() > params.limit;
            items.truncate(params.limit);
            let next = items.last().filter(|_| more).map(|t| (row::sort_value(t, params.sort), t.id));
            return Ok(Page { items, next });
        }
    }

    async fn markable(&self, params: &MarkParams) -> Result<usize> {
        let values = named_by_filter(params, MARKS_AT_ONCE);
        let mut rows = self.driver.rows(&self.driver.statements().markable_count, values).await?;
        let count = rows.first_mut().map(Columns::int).transpose()?.flatten().unwrap_or_default();
        Ok(usize::try_from(count).unwrap_or_default())
    }

    async fn counts(&self, reach: &Reach, ended: bool) -> Result<Counts> {
        self.counts_of(&mut self.driver.look().await?, reach, ended).await
    }

    async fn center(&self, tenant: &str, owner: &str) -> Result<Center> {
        let s = self.driver.statements();
        let mut look = self.driver.look().await?;
        let head = head_of(look.rows(&s.head, values![tenant, owner]).await?)?;
        let mut found: Vec<Task> = Vec::new();
        let mut seen = BTreeSet::new();
        for statement in [&s.center_active, &s.center_unseen, &s.center_newest] {
            let rows = look.rows(statement, values![tenant, owner, CENTER_ITEMS + 1]).await?;
            found.extend(shown(rows)?.into_iter().filter(|t| seen.insert(t.id)));
        }
        let reach = Reach { tenant: Some(tenant.to_owned()), owner: Some(owner.to_owned()) };
        let counts = self.counts_of(&mut look, &reach, false).await?;
        drop(look);
        let more = found.len() > CENTER_ITEMS;
        found.truncate(CENTER_ITEMS);
        Ok(Center { head, tasks: found, more, counts, as_of: self.now().await? })
    }

    async fn head(&self, tenant: &str, owner: &str) -> Result<Head> {
        head_of(self.driver.rows(&self.driver.statements().head, values![tenant, owner]).await?)
    }

    async fn heads(&self, owners: &[(String, String)]) -> Result<Vec<OwnerHeads>> {
        let rows = self.driver.rows(&self.driver.statements().heads, values![owner_names(owners)]).await?;
        let mut heads = BTreeMap::new();
        for mut r in rows {
            let owner = (r.text()?.unwrap_or_default(), r.text()?.unwrap_or_default());
            let (head, deleted) = (r.int()?.unwrap_or_default(), r.int()?.unwrap_or_default());
            heads.insert(owner, OwnerHeads { head: Head(head), deleted: Head(deleted) });
        }
        Ok(owners.iter().map(|owner| heads.get(owner).copied().unwrap_or_default()).collect())
    }

    async fn changed(&self, since: &[((String, String), Head)], most: usize) -> Result<Vec<Task>> {
        let since = Batch::of(since, |((tenant, owner), head), to| {
            to.text(Some(tenant));
            to.text(Some(owner));
            to.int(Some(head.0));
        });
        let rows = self.driver.rows(&self.driver.statements().changed, values![since, most]).await?;
        shown(rows)
    }

    async fn revisions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Revision>> {
        let rows = self.driver.rows(&self.driver.statements().revisions, values![ids]).await?;
        let mut found = BTreeMap::new();
        for mut r in rows {
            found.insert(row::task_id(&r.text()?.unwrap_or_default())?, Revision(r.int()?.unwrap_or_default()));
        }
        Ok(found)
    }

    async fn events(&self, id: TaskId, after: i64, limit: usize) -> Result<Vec<TimelineEvent>> {
        let rows = self.driver.rows(&self.driver.statements().events, values![id, after, limit]).await?;
        shown_events(rows)
    }

    async fn points(&self, id: TaskId) -> Result<Vec<Point>> {
        points(self.driver.rows(&self.driver.statements().points, values![id]).await?)
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        const FAR: i64 = 1_000;
        let mut places = BTreeMap::new();
        for mut r in self.driver.rows(&self.driver.statements().positions, values![ids]).await? {
            let id = row::task_id(&r.text()?.unwrap_or_default())?;
            if let Some(ahead) = r.int()?.filter(|n| *n <= FAR) {
                places.insert(id, ahead + 1);
            }
        }
        Ok(places)
    }

    async fn usual(&self, tenant: &str, action: &str) -> Result<Usual> {
        let rows = self.driver.rows(&self.driver.statements().usual, values![tenant, action]).await?;
        usual(rows)
    }

    async fn children(&self, parent: TaskId, after: Option<TaskId>, limit: usize) -> Result<Vec<Task>> {
        let values = values![parent, after.map(|id| id.to_string()), limit];
        shown(self.driver.rows(&self.driver.statements().children, values).await?)
    }

    async fn family_counts(&self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, BTreeMap<State, i64>>> {
        let mut found: BTreeMap<TaskId, BTreeMap<State, i64>> = BTreeMap::new();
        for mut r in self.driver.rows(&self.driver.statements().family_counts, values![parents]).await? {
            let (parent, state) = (row::task_id(&r.text()?.unwrap_or_default())?, r.text()?);
            let state = state.as_deref().and_then(State::parse).unwrap_or(State::Unknown);
            *found.entry(parent).or_default().entry(state).or_default() += r.int()?.unwrap_or_default();
        }
        Ok(found)
    }

    async fn results(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, serde_json::Value>> {
        let rows = self.driver.rows(&self.driver.statements().documents, values![ids, ["result"]]).await?;
        Ok(documents(rows)?.into_iter().filter_map(|(id, d)| Some((id, d.result?))).collect())
    }

    async fn aged(&self, after: Option<TaskId>, limit: usize) -> Result<Vec<Aged>> {
        // Every id is greater than no text at all.
        let after = after.map(|id| id.to_string()).unwrap_or_default();
        let rows = self.driver.rows(&self.driver.statements().aged, values![after, limit]).await?;
        rows.into_iter().map(|mut r| aged(&mut r)).collect()
    }

    async fn next_due(&self) -> Result<Option<Millis>> {
        let rows = self.driver.rows(&self.driver.statements().next_due, values![]).await?;
        rows.into_iter().next().map_or(Ok(None), |mut r| Ok(r.int()?.map(Millis)))
    }

    async fn note_asks(&self, asks: &[(String, String)]) -> Result<()> {
        let mut asks = asks.to_vec();
        asks.sort();
        asks.dedup();
        if asks.is_empty() {
            return Ok(());
        }
        let mut session = self.driver.begin().await?;
        let now = session.now().await?;
        session.run(&self.driver.statements().note_asks, values![owner_names(&asks), now]).await?;
        session.commit().await
    }

    async fn last_asks(&self, actions: &[String]) -> Result<BTreeMap<(String, String), Millis>> {
        let rows = self.driver.rows(&self.driver.statements().last_asks, values![actions]).await?;
        let mut asks = BTreeMap::new();
        for mut r in rows {
            let name = (r.text()?.unwrap_or_default(), r.text()?.unwrap_or_default());
            asks.insert(name, Millis(r.int()?.unwrap_or_default()));
        }
        Ok(asks)
    }

    async fn put_file(&self, file: FileRow) -> Result<()> {
        let values = values![
            file.id,
            file.tenant,
            file.owner,
            file.task.map(|t| t.to_string()),
            file.name,
            file.content_type,
            file.size_bytes,
            file.sha256,
            file.created_at,
            file.expires_at,
        ];
        self.write(&self.driver.statements().put_file, values).await.map(drop)
    }

    async fn keep_uploads(&self, tenant: &str, ids: &[String], until: Millis) -> Result<()> {
        self.write(&self.driver.statements().keep_uploads, values![tenant, ids, until]).await.map(drop)
    }

    async fn file(&self, id: &str) -> Result<Option<FileRow>> {
        let rows = self.driver.rows(&self.driver.statements().file, values![id]).await?;
        rows.into_iter().next().map(file_row).transpose()
    }

    async fn artifacts(&self, tasks: &[TaskId]) -> Result<Vec<FileRow>> {
        let rows = self.driver.rows(&self.driver.statements().artifacts, values![tasks]).await?;
        rows.into_iter().map(file_row).collect()
    }

    async fn expire_files(&self, limit: usize) -> Result<Vec<FileRow>> {
        let s = self.driver.statements();
        let mut session = self.driver.begin().await?;
        let now = session.now().await?;
        let rows = session.rows(&s.expired_files, values![now, limit]).await?;
        let files: Vec<FileRow> = rows.into_iter().map(file_row).collect::<Result<_>>()?;
        if !files.is_empty() {
            let ids: Vec<String> = files.iter().map(|f| f.id.clone()).collect();
            session.run(&s.delete_files, values![ids.as_slice()]).await?;
        }
        session.commit().await?;
        Ok(files)
    }

    async fn query(&self, sql: &'static str, bind: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        self.driver.query(sql, bind).await
    }

    async fn execute(&self, statements: Vec<Effect>) -> Result<()> {
        let mut session = self.driver.begin().await?;
        session.effects(&statements).await?;
        session.commit().await
    }
}
