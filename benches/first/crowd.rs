//! A database before it is measured: empty, or with those in it that must not make anything dearer.

use crate::Kind;
use crate::support::crowd::{BLOCKED, ENDED, WAITING, in_postgres, in_sqlite};
use crate::support::ground::Ground;
use crate::work::{claim_of, lay_out, open};
use sqlx::ConnectOptions as _;
use sqlx::sqlite::SqliteConnectOptions;
use std::sync::Arc;
use taskbell::core::action::Policy;
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::submit::{SlotClaim, Submit};
use taskbell::core::task::{Concurrency, Hold};
use taskbell::store::{ChunkCommit, Claimed, Store};

/// Rows that are made one by one; the database copies them.
const MADE: usize = 500;

/// Who is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// Nobody.
    Nobody,
    /// So many that may be claimed.
    Waiting(usize),
    /// So many that wait for one key.
    Blocked(usize),
    /// So many that have ended.
    Ended(usize),
}

impl Crowd {
    /// Said behind the name of a figure.
    pub fn told(self) -> String {
        match self {
            Self::Nobody => String::new(),
            Self::Waiting(n) => format!(", {n} more waiting"),
            Self::Blocked(n) => format!(", {n} more blocked behind a key"),
            Self::Ended(n) => format!(", {n} more ended"),
        }
    }

    /// A database that has them, opened as service does.
    pub async fn ready(self, kind: Kind) -> (Ground, Arc<dyn Store>) {
        let ground = kind.ground().await;
        let store = open(&ground).await;
        let (which, rows) = match self {
            Self::Nobody => return (ground, store),
            Self::Waiting(rows) => (WAITING, rows),
            Self::Blocked(rows) => (BLOCKED, rows),
            Self::Ended(rows) => (ENDED, rows),
        };
        match self {
            Self::Blocked(_) => {
                lay_out(store.as_ref(), 1, |submit| behind_a_key(submit, rows)).await;
                // An hour until its next chunk, and the key is its own meanwhile.
                commit_all(store.as_ref(), 3_600_000).await;
                lay_out(store.as_ref(), MADE, |submit| behind_a_key(submit, rows)).await;
            }
            _ => lay_out(store.as_ref(), MADE, |submit| submit).await,
        }
        if let Self::Ended(_) = self {
            commit_all(store.as_ref(), 0).await;
        }
        match ground.database() {
            None => {
                let options = SqliteConnectOptions::new().filename(ground.path().join("taskbell.db"));
                in_sqlite(&mut options.connect().await.unwrap(), which, rows).await;
            }
            Some(database) => {
                let mut c = database.connect().await;
                in_postgres(&mut c, which, rows).await;
                // What the server does by itself within a minute.
                sqlx::raw_sql("VACUUM ANALYZE").execute(&mut c).await.unwrap();
            }
        }
        (ground, store)
    }
}

/// Ends a chunk of all that can be claimed: for good, or until its next one after a delay.
async fn commit_all(store: &dyn Store, delay_ms: i64) {
    loop {
        let claimed = store.claim(claim_of(MADE)).await.unwrap().answer;
        if claimed.is_empty() {
            return;
        }
        let outcome = || match delay_ms {
            0 => Outcome::Done { result: None, told: Told::default() },
            delay_ms => Outcome::More { checkpoint: None, delay_ms, told: Told::default() },
        };
        store.commit(claimed.iter().map(|claimed| chunk_end(claimed, outcome())).collect()).await.unwrap();
    }
}

/// The end of a claimed chunk.
pub fn chunk_end(claimed: &Claimed, outcome: Outcome) -> ChunkCommit {
    ChunkCommit {
        task: claimed.task.id,
        token: claimed.task.fencing_token,
        chunk: claimed.task.chunks + 1,
        end: ChunkEnd::Answered(Box::new(outcome)),
        effects: Vec::new(),
        children: Vec::new(),
        retry: taskbell::core::retry::RetryPolicy::default(),
        unit_random: 0.5,
        continue_for_ms: None,
    }
}

/// A click under the one key.
pub fn behind_a_key(mut submit: Submit, others: usize) -> Submit {
    submit.slot = Some(SlotClaim {
        concurrency: Concurrency { key: "month-end".into(), limit: 1, hold: Hold::Task },
        policy: Policy::Wait,
        max_waiting: u32::try_from(others + MADE).unwrap(),
    });
    // Before all others, so that a claim finds it at once when its turn has come.
    submit.priority = 100;
    submit
}
