//! The port over the faulty connection: writing verbs play out their fate, readings may find the database away.

use super::{FaultyStore, fate};
use async_trait::async_trait;
use std::collections::BTreeMap;
use taskbell::core::effect::{Effect, SqlValue};
use taskbell::core::ids::{Head, Revision, TaskId};
use taskbell::core::picture::Point;
use taskbell::core::principal::Principal;
use taskbell::core::submit::{Submit, Submitted};
use taskbell::core::task::{State, Task, TimelineEvent};
use taskbell::core::time::Millis;
use taskbell::core::view::Documents;
use taskbell::store::tx::Tx;
use taskbell::store::{
    Aged, AskParams, Asked, Capabilities, Center, ChunkCommit, ClaimParams, Claimed, Committed, Counts, FileRow,
    ListParams, MarkParams, OwnerHeads, PackSwitch, Page, Reach, RenewLent, RenewParams, Renewed, Report, Result,
    RetainParams, Store, StoreError, SweepParams, Usual, Written, flow,
};

/// How often a verb begins anew after a conflict.
const TRIES: u32 = 5;

/// Passes a reading on once the database is reached.
macro_rules! read {
    ($self:ident.$verb:ident($($value:expr),*)) => {{
        fate::reach(&$self.world, $self.group).await?;
        $self.world.memory.$verb($($value),*).await
    }};
}

/// Runs a verb, and begins it anew after a conflict, as the port does.
macro_rules! settled {
    ($self:ident, $again:ident, |$tx:ident| $verb:expr) => {
        settled!($self, $again, $self.verb(|$tx| $verb))
    };
    ($self:ident, $again:ident, $verb:expr) => {{
        let mut tries = 0;
        loop {
            let $again = tries > 0;
            match $verb.await {
                Err(StoreError::Conflict(_)) if tries < TRIES => tries += 1,
                settled => break settled,
            }
        }
    }};
}

#[async_trait]
impl Store for FaultyStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities { effects: true, single_process: false }
    }

    fn epoch(&self) -> &str {
        self.world.memory.epoch()
    }

    async fn now(&self) -> Result<Millis> {
        read!(self.now())
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        self.open().await.map(|(tx, _)| tx)
    }

    async fn submit(&self, items: Vec<Submit>) -> Result<Written<Vec<Submitted>>> {
        settled!(self, again, |tx| flow::submit::submit(tx, &items, again))
    }

    async fn submit_again(&self, items: Vec<Submit>) -> Result<Written<Vec<Submitted>>> {
        settled!(self, _again, |tx| flow::submit::submit(tx, &items, true))
    }

    async fn claim(&self, params: ClaimParams) -> Result<Written<Vec<Claimed>>> {
        settled!(self, _again, |tx| flow::claim::claim(tx, &params))
    }

    async fn commit_and_claim(
        &self,
        items: Vec<ChunkCommit>,
        next: Option<ClaimParams>,
    ) -> Result<Written<(Vec<Committed>, Vec<Claimed>)>> {
        let mut written = settled!(self, again, self.commit_chunks(&items, next.as_ref(), again))?;
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }

    async fn report(&self, items: Vec<Report>) -> Result<Written<Vec<bool>>> {
        settled!(self, _again, |tx| flow::chunk::report(tx, &items))
    }

    async fn renew(&self, params: RenewParams) -> Result<Vec<Renewed>> {
        settled!(self, _again, |tx| flow::claim::renew(tx, &params))
    }

    async fn renew_lent(&self, params: RenewLent) -> Result<Vec<Renewed>> {
        settled!(self, _again, |tx| flow::claim::renew_lent(tx, &params))
    }

    async fn sweep(&self, params: SweepParams) -> Result<Written<usize>> {
        let mut written = settled!(self, again, |tx| flow::sweep::sweep(tx, &params, again))?;
        written.changes.extend(self.take_down(Vec::new()).await?.changes);
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }

    async fn take_down(&self, parents: Vec<TaskId>) -> Result<Written<usize>> {
        let asked_at = self.world.now();
        let written = settled!(self, _again, |tx| flow::family::take_down(tx, &parents))?;
        if parents.is_empty() {
            self.world.check(self.world.model.lock().unwrap().taken_down(asked_at));
        }
        Ok(written)
    }

    async fn roll_up(&self, parents: Vec<TaskId>) -> Result<Written<()>> {
        settled!(self, _again, |tx| flow::family::roll_up(tx, &parents))
    }

    async fn ask(&self, items: Vec<AskParams>) -> Result<Written<Vec<Asked>>> {
        let mut written = settled!(self, again, |tx| flow::ask::ask(tx, &items, again))?;
        flow::family::follow(self, &mut written.changes).await;
        Ok(written)
    }

    async fn delete(&self, caller: &Principal, ids: Vec<TaskId>) -> Result<Written<Vec<Option<bool>>>> {
        settled!(self, _again, |tx| flow::remove::delete(tx, caller, &ids))
    }

    async fn switch_pack(&self, params: PackSwitch) -> Result<Option<bool>> {
        settled!(self, _again, |tx| flow::packs::switch(tx, &params))
    }

    async fn settle_packs(&self, limit: usize) -> Result<Written<usize>> {
        settled!(self, _again, |tx| flow::packs::settle(tx, limit))
    }

    async fn mark(&self, params: MarkParams) -> Result<Written<usize>> {
        settled!(self, _again, |tx| flow::ask::mark(tx, &params))
    }

    async fn tasks(&self, reach: &Reach, ids: &[TaskId]) -> Result<Vec<Task>> {
        read!(self.tasks(reach, ids))
    }

    async fn documents(&self, id: TaskId) -> Result<Documents> {
        read!(self.documents(id))
    }

    async fn list(&self, params: ListParams) -> Result<Page<Task, (i64, TaskId)>> {
        read!(self.list(params))
    }

    async fn markable(&self, params: &MarkParams) -> Result<usize> {
        read!(self.markable(params))
    }

    async fn counts(&self, reach: &Reach, ended: bool) -> Result<Counts> {
        read!(self.counts(reach, ended))
    }

    async fn center(&self, tenant: &str, owner: &str) -> Result<Center> {
        read!(self.center(tenant, owner))
    }

    async fn head(&self, tenant: &str, owner: &str) -> Result<Head> {
        read!(self.head(tenant, owner))
    }

    async fn heads(&self, owners: &[(String, String)]) -> Result<Vec<OwnerHeads>> {
        read!(self.heads(owners))
    }

    async fn changed(&self, since: &[((String, String), Head)], most: usize) -> Result<Vec<Task>> {
        read!(self.changed(since, most))
    }

    async fn revisions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, Revision>> {
        read!(self.revisions(ids))
    }

    async fn events(&self, id: TaskId, after: i64, limit: usize) -> Result<Vec<TimelineEvent>> {
        read!(self.events(id, after, limit))
    }

    async fn points(&self, id: TaskId) -> Result<Vec<Point>> {
        read!(self.points(id))
    }

    async fn positions(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, i64>> {
        read!(self.positions(ids))
    }

    async fn usual(&self, tenant: &str, action: &str) -> Result<Usual> {
        read!(self.usual(tenant, action))
    }

    async fn children(&self, parent: TaskId, after: Option<TaskId>, limit: usize) -> Result<Vec<Task>> {
        read!(self.children(parent, after, limit))
    }

    async fn family_counts(&self, parents: &[TaskId]) -> Result<BTreeMap<TaskId, BTreeMap<State, i64>>> {
        read!(self.family_counts(parents))
    }

    async fn results(&self, ids: &[TaskId]) -> Result<BTreeMap<TaskId, serde_json::Value>> {
        read!(self.results(ids))
    }

    async fn retain(&self, params: RetainParams) -> Result<Written<Vec<TaskId>>> {
        settled!(self, _again, |tx| flow::remove::retain(tx, &params))
    }

    async fn aged(&self, after: Option<TaskId>, limit: usize) -> Result<Vec<Aged>> {
        read!(self.aged(after, limit))
    }

    async fn next_due(&self) -> Result<Option<Millis>> {
        read!(self.next_due())
    }

    async fn note_asks(&self, asks: &[(String, String)]) -> Result<()> {
        read!(self.note_asks(asks))
    }

    async fn last_asks(&self, actions: &[String]) -> Result<BTreeMap<(String, String), Millis>> {
        read!(self.last_asks(actions))
    }

    async fn put_file(&self, file: FileRow) -> Result<()> {
        read!(self.put_file(file))
    }

    async fn keep_uploads(&self, tenant: &str, ids: &[String], until: Millis) -> Result<()> {
        read!(self.keep_uploads(tenant, ids, until))
    }

    async fn file(&self, id: &str) -> Result<Option<FileRow>> {
        read!(self.file(id))
    }

    async fn artifacts(&self, tasks: &[TaskId]) -> Result<Vec<FileRow>> {
        read!(self.artifacts(tasks))
    }

    async fn expire_files(&self, limit: usize) -> Result<Vec<FileRow>> {
        read!(self.expire_files(limit))
    }

    async fn query(&self, sql: &'static str, values: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>> {
        read!(self.query(sql, values))
    }

    async fn execute(&self, statements: Vec<Effect>) -> Result<()> {
        read!(self.execute(statements))
    }
}
