//! The writing transaction on SQLite. The writer connection is the lock: `FOR UPDATE` and key locks have nothing to do.

use super::super::row::{self, Bind as _, Columns};
use super::super::sql::{Batched, SQLITE};
use super::super::tx::{CandidateParams, Document, KeyName, KeyRow, SlotKey, Tx, Under};
use super::super::{Mark, MarkParams, RenewParams, Renewed, Result, StoreError};
use super::clock::FileClock;
use super::{Bound, Cells, fault, run_all};
use crate::core::concurrency::KeyUse;
use crate::core::effect::Effect;
use crate::core::ids::{FencingToken, Head, TaskId};
use crate::core::submit::KeyKind;
use crate::core::task::{State, Task, TimelineEvent};
use crate::core::time::Millis;
use crate::core::view::Documents;
use async_trait::async_trait;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;
use sqlx::{Acquire as _, Row as _, Sqlite, Transaction};
use std::collections::BTreeMap;

/// An open transaction.
pub(super) struct SqliteTx {
    tx: Transaction<'static, Sqlite>,
    clock: FileClock,
}

/// The ids of a batch as the JSON array that a statement opens.
pub(super) fn id_list(ids: &[TaskId]) -> String {
    Value::from(ids.iter().map(ToString::to_string).collect::<Vec<_>>()).to_string()
}

/// Rows as tasks.
pub(super) fn tasks(rows: &[SqliteRow]) -> Result<Vec<Task>> {
    rows.iter().map(|r| row::decode(&mut Cells::of(r))).collect()
}

/// Rows of (task, kind, body) as documents.
pub(super) fn documents(rows: &[SqliteRow]) -> Result<BTreeMap<TaskId, Documents>> {
    let mut found: BTreeMap<TaskId, Documents> = BTreeMap::new();
    for r in rows {
        let mut cells = Cells::of(r);
        let (Some(id), Some(kind), Some(body)) = (cells.text()?, cells.text()?, cells.text()?) else { continue };
        let documents = found.entry(row::task_id(&id)?).or_insert_with(no_documents);
        let body: Value = row::from_json(&body, "body")?;
        match kind.as_str() {
            "params" => documents.params = body,
            "checkpoint" => documents.checkpoint = Some(body),
            _ => documents.result = Some(body),
        }
    }
    Ok(found)
}

/// What a task without stored documents has: empty params.
pub(super) fn no_documents() -> Documents {
    Documents { params: json!({}), checkpoint: None, result: None }
}

impl SqliteTx {
    pub(super) fn new(tx: Transaction<'static, Sqlite>, clock: FileClock) -> Self {
        Self { tx, clock }
    }

    /// Runs a batched statement over items, each written by `encode`.
    async fn write<T: Sync>(
        &mut self,
        statement: &'static Batched,
        items: &[T],
        encode: fn(&T, &mut Bound),
    ) -> Result<()> {
        let mut rest = items;
        for (count, sql) in statement.parts(items.len()) {
            let (now, later) = rest.split_at(count);
            let mut bound = Bound::default();
            now.iter().for_each(|item| encode(item, &mut bound));
            sqlx::query_with(sql, bound.0).execute(&mut *self.tx).await.map_err(fault)?;
            rest = later;
        }
        Ok(())
    }

    async fn run(&mut self, sql: &'static str, batch: String) -> Result<()> {
        sqlx::query(sql).bind(batch).execute(&mut *self.tx).await.map_err(fault)?;
        Ok(())
    }
}

#[async_trait]
impl Tx for SqliteTx {
    async fn now(&mut self) -> Result<Millis> {
        Ok(self.clock.now())
    }

    async fn load(&mut self, ids: &[TaskId]) -> Result<Vec<Task>> {
        let query = sqlx::query(SQLITE.tasks_by_id.as_str()).bind(id_list(ids));
        tasks(&query.fetch_all(&mut *self.tx).await.map_err(fault)?)
    }

    async fn insert(&mut self, tasks: &[Task]) -> Result<()> {
        self.write(&SQLITE.insert_tasks, tasks, row::encode_new).await.map_err(|e| match e {
            StoreError::Limit(_) => StoreError::Conflict("the id of a task is taken".into()),
            other => other,
        })
    }

    async fn update(&mut self, tasks: &[Task]) -> Result<()> {
        self.write(&SQLITE.update_tasks, tasks, row::encode_changed).await
    }

    async fn remove(&mut self, ids: &[TaskId]) -> Result<()> {
        let statements: [&'static str; 5] = [
            &SQLITE.remove_tasks,
            &SQLITE.remove_documents,
            &SQLITE.remove_events,
            &SQLITE.remove_keys,
            &SQLITE.expire_artifacts,
        ];
        for statement in statements {
            self.run(statement, id_list(ids)).await?;
        }
        Ok(())
    }

    async fn put_documents(&mut self, documents: &[Document]) -> Result<()> {
        self.write(&SQLITE.put_documents, documents, |document, to| {
            to.text(Some(&document.task.to_string()));
            to.text(Some(document.kind.as_str()));
            to.text(Some(&document.body.to_string()));
        })
        .await
    }

    async fn documents(&mut self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Documents>> {
        let query = sqlx::query(SQLITE.documents.as_str()).bind(id_list(ids)).bind(r#"["params","checkpoint"]"#);
        let mut found = documents(&query.fetch_all(&mut *self.tx).await.map_err(fault)?)?;
        for id in ids {
            found.entry(*id).or_insert_with(no_documents);
        }
        Ok(found)
    }

    async fn append_events(&mut self, events: &[TimelineEvent]) -> Result<()> {
        self.write(&SQLITE.append_events, events, row::encode_event).await
    }

    async fn bump_heads(&mut self, owners: &[(String, String)]) -> Result<Vec<Head>> {
        let query = sqlx::query(SQLITE.bump_heads.as_str()).bind(json!(owners).to_string());
        let mut heads = BTreeMap::new();
        for r in query.fetch_all(&mut *self.tx).await.map_err(fault)? {
            let mut cells = Cells::of(&r);
            heads.insert((cells.text()?, cells.text()?), cells.int()?.unwrap_or_default());
        }
        owners
            .iter()
            .map(|(tenant, owner)| heads.get(&(Some(tenant.clone()), Some(owner.clone()))).copied().map(Head))
            .collect::<Option<_>>()
            .ok_or_else(|| row::corrupt("head"))
    }

    async fn key_rows(&mut self, names: &[KeyName]) -> Result<Vec<KeyRow>> {
        let batch: Vec<Value> = names.iter().map(|n| json!([n.tenant, n.action, n.kind.as_str(), n.key])).collect();
        let query = sqlx::query(SQLITE.key_rows.as_str()).bind(Value::from(batch).to_string());
        query.fetch_all(&mut *self.tx).await.map_err(fault)?.iter().map(key_row).collect()
    }

    async fn put_key_rows(&mut self, rows: &[KeyRow]) -> Result<()> {
        let batch: Vec<Value> = rows
            .iter()
            .map(|r| {
                let n = &r.name;
                json!([n.tenant, n.action, n.kind.as_str(), n.key, r.task.to_string(), r.keep_ms, r.fingerprint])
            })
            .collect();
        self.run(&SQLITE.put_key_rows, Value::from(batch).to_string()).await
    }

    async fn lock_slots(&mut self, _keys: &[SlotKey], _tasks: &[TaskId]) -> Result<()> {
        Ok(())
    }

    async fn key_use(&mut self, key: &SlotKey, waiting_most: u32) -> Result<KeyUse> {
        let query = sqlx::query(SQLITE.key_use.as_str()).bind(&key.0).bind(&key.1).bind(i64::from(waiting_most));
        let row = query.fetch_one(&mut *self.tx).await.map_err(fault)?;
        Ok(KeyUse { held: row.try_get(0).map_err(fault)?, waiting: row.try_get(1).map_err(fault)? })
    }

    async fn key_tasks(&mut self, key: &SlotKey, under: Under, limit: usize) -> Result<Vec<Task>> {
        let statement = match under {
            Under::Holders => SQLITE.key_holders.as_str(),
            Under::Waiters => SQLITE.key_waiters.as_str(),
        };
        let query = sqlx::query(statement).bind(&key.0).bind(&key.1).bind(limit.cast_signed() as i64);
        tasks(&query.fetch_all(&mut *self.tx).await.map_err(fault)?)
    }

    async fn waited_keys(&mut self, limit: usize) -> Result<Vec<SlotKey>> {
        let query = sqlx::query(SQLITE.waited_keys.as_str()).bind(limit.cast_signed() as i64);
        let rows = query.fetch_all(&mut *self.tx).await.map_err(fault)?;
        rows.iter().map(|r| Ok((r.try_get(0).map_err(fault)?, r.try_get(1).map_err(fault)?))).collect()
    }

    async fn waiting_tenants(&mut self, _now: Millis) -> Result<Vec<String>> {
        let rows = sqlx::query(SQLITE.waiting_tenants.as_str()).fetch_all(&mut *self.tx).await.map_err(fault)?;
        rows.iter().map(|r| r.try_get(0).map_err(fault)).collect()
    }

    async fn candidates(&mut self, params: CandidateParams<'_>) -> Result<Vec<Task>> {
        let query = sqlx::query(SQLITE.candidates.as_str())
            .bind(params.tenant.to_owned())
            .bind(params.now.0)
            .bind(json!(params.actions).to_string())
            .bind(params.limit.cast_signed() as i64);
        tasks(&query.fetch_all(&mut *self.tx).await.map_err(fault)?)
    }

    async fn renew(&mut self, params: &RenewParams, until: Millis) -> Result<Vec<Renewed>> {
        let batch: Vec<Value> = params.held.iter().map(|(id, token)| json!([id.to_string(), token.0])).collect();
        let query = sqlx::query(SQLITE.renew.as_str())
            .bind(Value::from(batch).to_string())
            .bind(until.0)
            .bind(params.node.clone());
        let mut renewed = BTreeMap::new();
        for r in query.fetch_all(&mut *self.tx).await.map_err(fault)? {
            let mut cells = Cells::of(&r);
            let id = row::task_id(&cells.text()?.unwrap_or_default())?;
            let token = FencingToken(cells.int()?.unwrap_or_default());
            let state = cells.text()?.as_deref().and_then(State::parse);
            let asked = matches!(state, Some(State::Pausing | State::Cancelling));
            renewed.insert((id, token), if asked { Renewed::Stop } else { Renewed::Ok });
        }
        // By id and token: a node may still hold a chunk of a task that it has lost and claimed anew.
        Ok(params.held.iter().map(|held| renewed.get(held).copied().unwrap_or(Renewed::Stale)).collect())
    }

    async fn overdue(&mut self, now: Millis, all: bool, asked_by: Millis, limit: usize) -> Result<Vec<TaskId>> {
        let query = sqlx::query(SQLITE.overdue.as_str())
            .bind(now.0)
            .bind(i64::from(all))
            .bind(asked_by.0)
            .bind(limit.cast_signed() as i64);
        let rows = query.fetch_all(&mut *self.tx).await.map_err(fault)?;
        rows.iter().map(|r| r.try_get::<String, _>(0).map_err(fault).and_then(|t| row::task_id(&t))).collect()
    }

    async fn markable(&mut self, params: &MarkParams, limit: usize) -> Result<Vec<Task>> {
        let mark = match params.mark {
            Mark::Seen => "seen",
            Mark::Read => "read",
            Mark::Archived => "archived",
        };
        let limit = limit.cast_signed() as i64;
        let query = if params.ids.is_empty() {
            let states: Vec<&str> = params.states.iter().map(|s| s.as_str()).collect();
            let unseen = params.mark == Mark::Seen;
            sqlx::query(if unseen { SQLITE.markable_unseen.as_str() } else { SQLITE.markable_up_to.as_str() })
                .bind(params.tenant.clone())
                .bind(params.owner.clone())
                .bind(params.up_to.map_or(i64::MAX, |h| h.0))
                .bind(mark)
                .bind(json!(states).to_string())
                .bind(params.action.clone())
                .bind(limit)
        } else {
            sqlx::query(SQLITE.markable_by_id.as_str())
                .bind(params.tenant.clone())
                .bind(params.owner.clone())
                .bind(id_list(&params.ids))
                .bind(mark)
                .bind(limit)
        };
        tasks(&query.fetch_all(&mut *self.tx).await.map_err(fault)?)
    }

    async fn run_effects(&mut self, effects: &[Effect]) -> Result<Option<String>> {
        let mut savepoint = self.tx.begin().await.map_err(fault)?;
        match run_all(&mut savepoint, effects).await {
            Ok(()) => {
                savepoint.commit().await.map_err(fault)?;
                Ok(None)
            }
            Err(e) => {
                savepoint.rollback().await.map_err(fault)?;
                match fault(e) {
                    StoreError::Limit(text) | StoreError::Corrupt(text) => Ok(Some(text)),
                    other => Err(other),
                }
            }
        }
    }

    async fn commit(self: Box<Self>) -> Result<()> {
        self.tx.commit().await.map_err(fault)
    }
}

fn key_row(r: &SqliteRow) -> Result<KeyRow> {
    let mut cells = Cells::of(r);
    let mut text = || cells.text()?.ok_or_else(|| row::corrupt("key"));
    let (tenant, action, kind, key, task) = (text()?, text()?, text()?, text()?, text()?);
    let kind = if kind == KeyKind::Fields.as_str() { KeyKind::Fields } else { KeyKind::Caller };
    Ok(KeyRow {
        name: KeyName { tenant, action, kind, key },
        task: row::task_id(&task)?,
        keep_ms: cells.int()?.unwrap_or_default(),
        fingerprint: cells.text()?.unwrap_or_default(),
    })
}
