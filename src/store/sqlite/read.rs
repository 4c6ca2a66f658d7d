//! What SQLite answers to reading verbs, and the small writes that concern no task: keys, sessions, files.

use super::super::sql::{SQLITE, like};
use super::super::tx::Tx;
use super::super::{
    ApiKey, Capabilities, Center, Counts, FileRow, ListParams, Page, Reach, Result, Session, Store, Took, Usual, row,
};
use super::tx::{documents, id_list, no_documents, tasks};
use super::{Cells, SqliteStore, bound, fault, run_all, values};
use crate::core::effect::{Effect, SqlValue};
use crate::core::eta::Estimator;
use crate::core::ids::{Head, TaskId};
use crate::core::principal::{Principal, Role, Scope};
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use crate::store::row::Columns as _;
use async_trait::async_trait;
use serde_json::json;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row as _, Sqlite};
use std::collections::{BTreeMap, BTreeSet};

/// The most items of a snapshot.
const CENTER_ITEMS: i64 = 100;

impl SqliteStore {
    async fn rows(
        &self,
        query: sqlx::query::Query<'_, Sqlite, sqlx::sqlite::SqliteArguments>,
    ) -> Result<Vec<SqliteRow>> {
        query.fetch_all(&self.readers).await.map_err(fault)
    }

    async fn write(&self, query: sqlx::query::Query<'_, Sqlite, sqlx::sqlite::SqliteArguments>) -> Result<()> {
        query.execute(&self.writer).await.map(|_| ()).map_err(fault)
    }
}

async fn counts_of(c: &mut SqliteConnection, reach: &Reach, ended: bool) -> Result<Counts> {
    let statement = if ended { SQLITE.counts_all.within(reach) } else { SQLITE.counts_active.within(reach) };
    let mut counts = Counts::default();
    let query = sqlx::query(statement).bind(reach.tenant.clone()).bind(reach.owner.clone());
    for r in query.fetch_all(&mut *c).await.map_err(fault)? {
        let state: String = r.try_get(0).map_err(fault)?;
        if let Some(state) = State::parse(&state) {
            counts.by_state.insert(state, r.try_get(1).map_err(fault)?);
        }
    }
    let marks = sqlx::query(SQLITE.counts_marks.within(reach)).bind(reach.tenant.clone()).bind(reach.owner.clone());
    let r = marks.fetch_one(&mut *c).await.map_err(fault)?;
    counts.unseen = r.try_get(0).map_err(fault)?;
    counts.attention = r.try_get(1).map_err(fault)?;
    Ok(counts)
}

async fn head_of(c: &mut SqliteConnection, tenant: &str, owner: &str) -> Result<Head> {
    let query = sqlx::query(SQLITE.head.as_str()).bind(tenant.to_owned()).bind(owner.to_owned());
    let row = query.fetch_optional(&mut *c).await.map_err(fault)?;
    row.map_or(Ok(Head(0)), |r| r.try_get(0).map(Head).map_err(fault))
}

/// tenant, user, role, scopes.
fn principal(cells: &mut Cells<'_>) -> Result<Principal> {
    let mut text = || cells.text()?.ok_or_else(|| row::corrupt("principal"));
    let (tenant, user, role, scopes) = (text()?, text()?, text()?, text()?);
    Ok(Principal {
        tenant,
        user,
        role: Role::parse(&role).ok_or_else(|| row::corrupt("role"))?,
        scopes: scopes.split(',').filter_map(Scope::parse).collect(),
    })
}

fn scope_list(who: &Principal) -> String {
    who.scopes.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(",")
}

fn file_row(r: &SqliteRow) -> Result<FileRow> {
    let mut cells = Cells::of(r);
    let (id, tenant, owner, task) = (cells.text()?, cells.text()?, cells.text()?, cells.text()?);
    Ok(FileRow {
        id: id.unwrap_or_default(),
        tenant: tenant.unwrap_or_default(),
        owner: owner.unwrap_or_default(),
        task: task.as_deref().map(row::task_id).transpose()?,
        name: cells.text()?.unwrap_or_default(),
        content_type: cells.text()?.unwrap_or_default(),
        size_bytes: cells.int()?.unwrap_or_default(),
        sha256: cells.text()?.unwrap_or_default(),
        created_at: Millis(cells.int()?.unwrap_or_default()),
        expires_at: cells.int()?.map(Millis),
    })
}

#[async_trait]
impl Store for SqliteStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { effects: true, single_process: true }
    }

    fn epoch(&self) -> &str {
        &self.epoch
    }

    async fn now(&self) -> Result<Millis> {
        // What SQLite reads is not taken, for the clock of the file never goes back; that it answers is the proof.
        sqlx::query(SQLITE.now.as_str()).fetch_one(&self.readers).await.map_err(fault)?;
        Ok(self.clock.now())
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        self.begin_write().await
    }

    async fn tasks(&self, reach: &Reach, ids: &[TaskId]) -> Result<Vec<Task>> {
        let mut found = tasks(&self.rows(sqlx::query(SQLITE.tasks_by_id.as_str()).bind(id_list(ids))).await?)?;
        found.retain(|t| reach.holds(t));
        Ok(found)
    }

    async fn documents(&self, id: TaskId) -> Result<Documents> {
        let query =
            sqlx::query(SQLITE.documents.as_str()).bind(id_list(&[id])).bind(r#"["params","checkpoint","result"]"#);
        Ok(documents(&self.rows(query).await?)?.remove(&id).unwrap_or_else(no_documents))
    }

    async fn list(&self, params: ListParams) -> Result<Page<Task, (i64, TaskId)>> {
        let states: Vec<&str> = params.states.iter().map(|s| s.as_str()).collect();
        // A reach of one owner wins over the filter: another owner's name finds nothing there.
        let owner = params.reach.owner.clone().or_else(|| params.owner.clone());
        if params.owner.is_some() && params.owner != owner {
            return Ok(Page { items: Vec::new(), next: None });
        }
        let text = params.text.as_deref().map(like).transpose()?;
        let query = sqlx::query(SQLITE.list(&params, owner.as_ref()))
            .bind(params.reach.tenant)
            .bind(owner)
            .bind(json!(states).to_string())
            .bind(params.action)
            .bind(params.record.as_ref().map(|r| r.kind.clone()))
            .bind(params.record.map(|r| r.id))
            .bind(text)
            .bind(params.from.map(|m| m.0))
            .bind(params.to.map(|m| m.0))
            .bind(i64::from(params.archived))
            .bind(params.after.map(|a| a.0))
            .bind(params.after.map(|a| a.1.to_string()))
            .bind(params.limit as i64 + 1);
        let mut items = tasks(&self.rows(query).await?)?;
        let more = items.len() > params.limit;
        items.truncate(params.limit);
        let next = items.last().filter(|_| more).map(|t| (row::sort_value(t, params.sort), t.id));
        Ok(Page { items, next })
    }

    async fn counts(&self, reach: &Reach, ended: bool) -> Result<Counts> {
        let mut c = self.readers.acquire().await.map_err(fault)?;
        counts_of(&mut c, reach, ended).await
    }

    async fn center(&self, tenant: &str, owner: &str) -> Result<Center> {
        let mut tx = self.readers.begin().await.map_err(fault)?;
        let head = head_of(&mut tx, tenant, owner).await?;
        let mut found: Vec<Task> = Vec::new();
        let mut seen = BTreeSet::new();
        for statement in [&SQLITE.center_active, &SQLITE.center_unseen, &SQLITE.center_newest] {
            let query =
                sqlx::query(statement.as_str()).bind(tenant.to_owned()).bind(owner.to_owned()).bind(CENTER_ITEMS + 1);
            for task in tasks(&query.fetch_all(&mut *tx).await.map_err(fault)?)? {
                if seen.insert(task.id) {
                    found.push(task);
                }
            }
        }
        let reach = Reach { tenant: Some(tenant.to_owned()), owner: Some(owner.to_owned()) };
        let counts = counts_of(&mut tx, &reach, false).await?;
        drop(tx);
        let more = found.len() > CENTER_ITEMS as usize;
        found.truncate(CENTER_ITEMS as usize);
        Ok(Center { head, tasks: found, more, counts, as_of: self.now().await? })
    }

    async fn head(&self, tenant: &str, owner: &str) -> Result<Head> {
        let mut c = self.readers.acquire().await.map_err(fault)?;
        head_of(&mut c, tenant, owner).await
    }

    async fn events(&self, id: TaskId, after: i64, limit: usize) -> Result<Vec<TimelineEvent>> {
        let query = sqlx::query(SQLITE.events.as_str()).bind(id.to_string()).bind(after).bind(limit as i64);
        self.rows(query).await?.iter().map(|r| row::decode_event(&mut Cells::of(r))).collect()
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        const FAR: i64 = 1_000;
        let mut places = BTreeMap::new();
        for r in self.rows(sqlx::query(SQLITE.positions.as_str()).bind(id_list(ids))).await? {
            let mut cells = Cells::of(&r);
            let id = row::task_id(&cells.text()?.unwrap_or_default())?;
            if let Some(ahead) = cells.int()?.filter(|n| *n <= FAR) {
                places.insert(id, ahead + 1);
            }
        }
        Ok(places)
    }

    async fn usual(&self, tenant: &str, action: &str) -> Result<Usual> {
        let query = sqlx::query(SQLITE.usual.as_str()).bind(tenant.to_owned()).bind(action.to_owned());
        let took = self.rows(query).await?;
        let took: Vec<Took> = took
            .iter()
            .map(|r| {
                let mut cells = Cells::of(r);
                let duration_ms = cells.int()?.unwrap_or_default();
                let units = cells.int()?.unwrap_or_default();
                let estimator: Estimator = row::from_json(cells.text()?.as_deref().unwrap_or("{}"), "estimator")?;
                Ok(Took { duration_ms, active_ms: estimator.active_ms(), units })
            })
            .collect::<Result<_>>()?;
        Ok(Usual::of(&took))
    }

    async fn next_due(&self) -> Result<Option<Millis>> {
        let row = sqlx::query(SQLITE.next_due.as_str()).fetch_one(&self.readers).await.map_err(fault)?;
        Ok(row.try_get::<Option<i64>, _>(0).map_err(fault)?.map(Millis))
    }

    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        let query = sqlx::query(SQLITE.put_api_key.as_str())
            .bind(key.hash)
            .bind(key.principal.tenant.clone())
            .bind(key.principal.user.clone())
            .bind(key.principal.role.as_str())
            .bind(scope_list(&key.principal))
            .bind(key.created_at.0)
            .bind(key.expires_at.map(|m| m.0));
        self.write(query).await
    }

    async fn api_key(&self, hash: &str) -> Result<Option<ApiKey>> {
        let rows = self.rows(sqlx::query(SQLITE.api_key.as_str()).bind(hash.to_owned())).await?;
        let Some(r) = rows.first() else { return Ok(None) };
        let mut cells = Cells::of(r);
        let principal = principal(&mut cells)?;
        let created_at = Millis(cells.int()?.unwrap_or_default());
        let expires_at = cells.int()?.map(Millis);
        Ok(Some(ApiKey { hash: hash.to_owned(), principal, created_at, expires_at }))
    }

    async fn put_session(&self, session: Session) -> Result<()> {
        self.write(sqlx::query(SQLITE.expired_sessions.as_str()).bind(session.created_at.0)).await?;
        let query = sqlx::query(SQLITE.put_session.as_str())
            .bind(session.hash)
            .bind(session.principal.tenant.clone())
            .bind(session.principal.user.clone())
            .bind(session.principal.role.as_str())
            .bind(scope_list(&session.principal))
            .bind(session.created_at.0)
            .bind(session.expires_at.0);
        self.write(query).await
    }

    async fn session(&self, hash: &str) -> Result<Option<Session>> {
        let rows = self.rows(sqlx::query(SQLITE.session.as_str()).bind(hash.to_owned())).await?;
        let Some(r) = rows.first() else { return Ok(None) };
        let mut cells = Cells::of(r);
        let principal = principal(&mut cells)?;
        let created_at = Millis(cells.int()?.unwrap_or_default());
        let expires_at = Millis(cells.int()?.unwrap_or_default());
        Ok(Some(Session { hash: hash.to_owned(), principal, created_at, expires_at }))
    }

    async fn delete_session(&self, hash: &str) -> Result<()> {
        self.write(sqlx::query(SQLITE.delete_session.as_str()).bind(hash.to_owned())).await
    }

    async fn put_file(&self, file: FileRow) -> Result<()> {
        let query = sqlx::query(SQLITE.put_file.as_str())
            .bind(file.id)
            .bind(file.tenant)
            .bind(file.owner)
            .bind(file.task.map(|t| t.to_string()))
            .bind(file.name)
            .bind(file.content_type)
            .bind(file.size_bytes)
            .bind(file.sha256)
            .bind(file.created_at.0)
            .bind(file.expires_at.map(|m| m.0));
        self.write(query).await
    }

    async fn keep_uploads(&self, tenant: &str, ids: &[String], until: Millis) -> Result<()> {
        let query = sqlx::query(SQLITE.keep_uploads.as_str()).bind(tenant.to_owned());
        self.write(query.bind(json!(ids).to_string()).bind(until.0)).await
    }

    async fn file(&self, id: &str) -> Result<Option<FileRow>> {
        self.rows(sqlx::query(SQLITE.file.as_str()).bind(id.to_owned())).await?.first().map(file_row).transpose()
    }

    async fn artifacts(&self, tasks: &[TaskId]) -> Result<Vec<FileRow>> {
        let query = sqlx::query(SQLITE.artifacts.as_str()).bind(id_list(tasks));
        self.rows(query).await?.iter().map(file_row).collect()
    }

    async fn expire_files(&self, limit: usize) -> Result<Vec<FileRow>> {
        let now = self.now().await?;
        let query = sqlx::query(SQLITE.expired_files.as_str()).bind(now.0).bind(limit as i64);
        let files: Vec<FileRow> = self.rows(query).await?.iter().map(file_row).collect::<Result<_>>()?;
        if !files.is_empty() {
            let ids: Vec<&str> = files.iter().map(|f| f.id.as_str()).collect();
            self.write(sqlx::query(SQLITE.delete_files.as_str()).bind(json!(ids).to_string())).await?;
        }
        Ok(files)
    }

    async fn query(&self, sql: &'static str, bind: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        let rows = bound(sql, &bind).fetch_all(&self.readers).await.map_err(fault)?;
        rows.iter().map(values).collect()
    }

    async fn execute(&self, statements: Vec<Effect>) -> Result<()> {
        let mut tx = self.begin_immediate().await?;
        run_all(&mut tx, &statements).await.map_err(fault)?;
        tx.commit().await.map_err(fault)
    }
}
