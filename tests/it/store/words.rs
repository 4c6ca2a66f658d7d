//! The words of the suite: who clicks, what a click asks for, how a chunk ends.

use super::fixture::RETRY;
use serde_json::json;
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::chunk::{Failure, Outcome, Told};
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::progress::Reported;
use taskbell::core::submit::{KeyClaim, KeyKind, SlotClaim, Submit};
use taskbell::core::task::{Concurrency, ErrorKind, Hold};
use taskbell::store::{ChunkCommit, Claimed, Mark, MarkFilter, MarkParams, Result, Store};

pub fn principal(tenant: &str, user: &str, role: Role) -> Principal {
    Principal { tenant: tenant.into(), user: user.into(), role, scopes: Scope::ALL.to_vec() }
}

pub fn bob() -> Principal {
    principal("acme", "bob", Role::User)
}

pub fn alice() -> Principal {
    principal("acme", "alice", Role::User)
}

pub fn operator() -> Principal {
    principal("acme", "olga", Role::Operator)
}

/// A click of Bob on "import".
pub fn click() -> Submit {
    by(&bob())
}

/// A click of somebody on "import".
pub fn by(caller: &Principal) -> Submit {
    Submit {
        fingerprint: "as is".into(),
        max_attempts: RETRY.max_attempts,
        ..Submit::new(caller.clone(), "import", json!({}))
    }
}

/// A caller's key with the default `keep` of a day.
pub fn key(key: &str) -> KeyClaim {
    KeyClaim { kind: KeyKind::Caller, key: key.into(), keep_ms: 86_400_000, on_conflict: OnConflict::Return }
}

/// A key made from `fields`, kept for ten seconds.
pub fn fields_key(key: &str) -> KeyClaim {
    KeyClaim { kind: KeyKind::Fields, key: key.into(), keep_ms: 10_000, on_conflict: OnConflict::Return }
}

/// A click with a caller's key.
pub fn keyed(name: &str) -> Submit {
    Submit { keys: vec![key(name)], ..click() }
}

/// A concurrency key that is held for the whole task.
pub fn slot(key: &str, limit: u32, policy: Policy) -> Option<SlotClaim> {
    let concurrency = Concurrency { key: key.into(), limit, hold: Hold::Task };
    Some(SlotClaim { concurrency, policy, max_waiting: 1_000 })
}

/// A concurrency key that is held while a chunk runs.
pub fn chunk_slot(key: &str, limit: u32) -> Option<SlotClaim> {
    let concurrency = Concurrency { key: key.into(), limit, hold: Hold::Chunk };
    Some(SlotClaim { concurrency, policy: Policy::Wait, max_waiting: 1_000 })
}

/// A click under a concurrency key.
pub fn under(key: &str, limit: u32) -> Submit {
    Submit { slot: slot(key, limit, Policy::Wait), ..click() }
}

/// The commit of a claimed chunk.
pub fn ended(claimed: &Claimed, outcome: Outcome) -> ChunkCommit {
    ChunkCommit {
        task: claimed.task.id,
        token: claimed.task.fencing_token,
        chunk: claimed.task.chunks + 1,
        end: ChunkEnd::Answered(Box::new(outcome)),
        effects: Vec::new(),
        children: Vec::new(),
        retry: RETRY,
        unit_random: 0.5,
        continue_for_ms: None,
    }
}

/// The node gives the chunk back.
pub fn handed_back(claimed: &Claimed) -> ChunkCommit {
    ChunkCommit { end: ChunkEnd::HandedBack, ..ended(claimed, done()) }
}

/// There is more: with a checkpoint and a count.
pub fn more(n: i64) -> Outcome {
    Outcome::More { checkpoint: Some(json!({"n": n})), delay_ms: 0, told: counted(n) }
}

pub fn more_after(delay_ms: i64) -> Outcome {
    Outcome::More { checkpoint: None, delay_ms, told: Told::default() }
}

pub fn done() -> Outcome {
    Outcome::Done { result: None, told: Told::default() }
}

pub fn counted(current: i64) -> Told {
    Told { report: Reported::parse(&json!({"current": current})).unwrap(), ..Told::default() }
}

/// Fails and may be tried again.
pub fn throws() -> Outcome {
    Outcome::Fail(Failure::new(ErrorKind::Handler, "boom", "It broke."))
}

/// Fails for good.
pub fn gives_up() -> Outcome {
    Outcome::Fail(Failure::new(ErrorKind::Permanent, "no-use", "It will never work."))
}

/// Marks all ends of Bob's tasks as seen.
pub async fn mark_all_seen(store: &dyn Store) -> Result<()> {
    let (tenant, owner) = ("acme".to_owned(), "bob".to_owned());
    let params =
        MarkParams { tenant, owner, mark: Mark::Seen, ids: Vec::new(), up_to: None, filter: MarkFilter::default() };
    store.mark(params).await.map(drop)
}
