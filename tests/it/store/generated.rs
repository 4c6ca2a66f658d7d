//! Generated sequences of operations: the reference model and each database must give equal answers, changes, rows, order and
//! errors, whatever is asked of them in whatever order. A sequence that fails is shrunk and printed.

use super::fixture::{ACTIONS, Fixture, GRACE_MS, LEASE_MS, claim_params};
use super::invariants::all_tasks;
use super::words::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::json;
use std::fmt::{Debug, Write as _};
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::ids::{FencingToken, TaskId};
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::{Principal, Role};
use taskbell::core::progress::Reported;
use taskbell::core::submit::{KeyClaim, KeyKind, SlotClaim, Submit};
use taskbell::core::task::{Concurrency, Hold, Rows, State};
use taskbell::store::{
    AskParams, ChunkCommit, ClaimParams, Claimed, ListParams, Mark, MarkFilter, MarkParams, Reach, RenewParams, Report,
    SortBy, SweepParams, Written,
};

/// How long the longest sequence is.
const LONGEST: usize = 60;

/// Choices out of one drawn number, so that a shrunk sequence keeps what its remaining steps do.
struct Dice(u64);

impl Dice {
    fn of(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    fn one<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.of(choices.len() as u64) as usize].clone()
    }

    fn often(&mut self) -> bool {
        self.of(4) > 0
    }
}

/// What both stores are asked.
#[derive(Clone, Debug)]
enum Step {
    Submit(Vec<Submit>),
    SubmitAgain(Vec<Submit>),
    Claim(ClaimParams),
    Commit(Vec<ChunkCommit>),
    Report(Vec<Report>),
    Renew(RenewParams),
    Sweep(SweepParams),
    Ask(Vec<AskParams>),
    Delete(Principal, Vec<TaskId>),
    Mark(MarkParams),
    Pass(i64),
}

/// What the steps so far have made, to draw from.
#[derive(Default)]
struct Known {
    ids: Vec<TaskId>,
    /// The last batch of clicks.
    clicks: Vec<Submit>,
    claimed: Vec<Claimed>,
}

fn people() -> Vec<Principal> {
    vec![
        bob(),
        bob(),
        alice(),
        operator(),
        principal("globex", "bob", Role::User),
        principal("globex", "gina", Role::Admin),
        principal("*", "root", Role::Platform),
    ]
}

impl Known {
    fn id(&self, dice: &mut Dice) -> TaskId {
        if self.ids.is_empty() { numbered(0) } else { dice.one(&self.ids) }
    }

    /// Mostly the newest claims, sometimes one that is long stale.
    fn claim(&self, dice: &mut Dice) -> Option<Claimed> {
        let recent = self.claimed.len().saturating_sub(if dice.often() { 4 } else { usize::MAX });
        (!self.claimed.is_empty()).then(|| dice.one(&self.claimed[recent..]))
    }

    fn click(&mut self, dice: &mut Dice, now: taskbell::core::time::Millis) -> Submit {
        let caller = dice.one(&people()[..6]);
        let mut keys = Vec::new();
        for kind in [KeyKind::Caller, KeyKind::Fields] {
            if dice.of(3) == 0 {
                let on_conflict = dice.one(&[OnConflict::Return, OnConflict::Reject, OnConflict::ReplacePending]);
                let keep_ms = dice.one(&[10_000, 100_000]);
                keys.push(KeyClaim { kind, key: dice.one(&["k1", "k2"]).into(), keep_ms, on_conflict });
            }
        }
        let policies =
            [Policy::Wait, Policy::Wait, Policy::Skip, Policy::Reject, Policy::ReplacePending, Policy::CancelRunning];
        let slot = dice.one(&[None, Some(("task", 1, Hold::Task)), Some(("chunk", 2, Hold::Chunk))]);
        let slot = slot.map(|(key, limit, hold)| SlotClaim {
            concurrency: Concurrency { key: key.into(), limit, hold },
            policy: dice.one(&policies),
            max_waiting: 3,
        });
        let id = numbered(self.ids.len() + 1);
        self.ids.push(id);
        Submit {
            id,
            action: dice.one(&["import", "import", "sync", "unknown"]).into(),
            params: dice.one(&[json!({}), json!({"n": 1})]),
            fingerprint: dice.one(&["a", "a", "a", "b"]).into(),
            title: dice.one(&[None, Some("Title %".to_owned())]),
            keys,
            slot,
            priority: dice.one(&[0, 0, -1, 5]),
            run_at: dice.one(&[None, None, None, Some(now.plus(1_000)), Some(now.plus(60_000))]),
            undo_window_ms: dice.one(&[0, 0, 0, 5_000]),
            timeout_ms: dice.one(&[None, None, Some(90_000)]),
            ..by(&caller)
        }
    }

    fn commit(&self, dice: &mut Dice) -> Option<ChunkCommit> {
        let claimed = self.claim(dice)?;
        let report =
            dice.one(&[json!({}), json!({"current": 7}), json!({"current": 3, "total": 9}), json!({"total": 20})]);
        let told = Told {
            report: Reported::parse(&report).unwrap(),
            rows: Rows { ok: 1, ..Rows::default() },
            ..Told::default()
        };
        let checkpoint = dice.one(&[None, Some(json!({"n": 1})), Some(json!({"n": 2}))]);
        let delay_ms = dice.one(&[0, 0, 1_000]);
        let outcome = match dice.of(8) {
            0..4 => Outcome::More { checkpoint, delay_ms, told },
            4 => Outcome::Done { result: checkpoint, told },
            5 => gives_up(),
            _ => throws(),
        };
        let item = if dice.of(9) == 0 { handed_back(&claimed) } else { ended(&claimed, outcome) };
        Some(ChunkCommit {
            chunk: item.chunk + dice.one(&[0, 0, 0, 0, 1, -1]),
            continue_for_ms: dice.one(&[None, Some(LEASE_MS)]),
            ..item
        })
    }

    fn step(&mut self, kind: u8, entropy: u64, f: &Fixture) -> Step {
        let dice = &mut Dice(entropy);
        let several = 1 + dice.of(3);
        match kind {
            1 if !self.clicks.is_empty() && dice.of(3) == 0 => Step::SubmitAgain(self.clicks.clone()),
            0 | 1 => {
                self.clicks = (0..several).map(|_| self.click(dice, f.now())).collect();
                Step::Submit(self.clicks.clone())
            }
            2 | 3 => Step::Claim(ClaimParams {
                tenants: dice.one(&[Vec::new(), Vec::new(), vec!["acme".to_owned()]]),
                actions: ACTIONS[..2 + dice.of(2) as usize].iter().map(ToString::to_string).collect(),
                packs: Vec::new(),
                after_tenant: dice.one(&[None, Some("acme".to_owned()), Some("zzz".to_owned())]),
                ..claim_params(dice.one(&["n1", "n2"]), several as usize)
            }),
            4..=6 => Step::Commit((0..several).filter_map(|_| self.commit(dice)).collect()),
            7 => {
                let report = |dice: &mut Dice| {
                    let claimed = self.claim(dice)?;
                    let report =
                        dice.one(&[json!({"current": 5}), json!({"message": "m"}), json!({"total": 30, "current": 1})]);
                    let report = Reported::parse(&report).unwrap();
                    Some(Report { task: claimed.task.id, token: claimed.task.fencing_token, report })
                };
                Step::Report((0..several).filter_map(|_| report(dice)).collect())
            }
            8 => {
                let mut held: Vec<(TaskId, FencingToken)> =
                    (0..several).filter_map(|_| self.claim(dice)).map(|c| (c.task.id, c.task.fencing_token)).collect();
                held.dedup();
                Step::Renew(RenewParams { node: dice.one(&["n1", "n2"]).into(), held, lease_ms: LEASE_MS })
            }
            9 => Step::Sweep(SweepParams {
                limit: 500,
                all: dice.of(5) == 0,
                cancel_grace_ms: GRACE_MS,
                retries: Default::default(),
            }),
            10 | 11 => {
                let asks = [Ask::Cancel, Ask::Pause, Ask::Resume, Ask::Resume, Ask::ForceCancel];
                let ask = |dice: &mut Dice| AskParams {
                    caller: dice.one(&people()),
                    task: self.id(dice),
                    ask: dice.one(&asks),
                    reason: dice.one(&[None, Some("why".to_owned())]),
                };
                Step::Ask((0..several).map(|_| ask(dice)).collect())
            }
            12 => Step::Delete(dice.one(&people()), (0..several).map(|_| self.id(dice)).collect()),
            13 => Step::Mark(MarkParams {
                tenant: "acme".into(),
                owner: dice.one(&["bob", "alice"]).into(),
                mark: dice.one(&[Mark::Seen, Mark::Read, Mark::Archived]),
                ids: (0..dice.of(3)).map(|_| self.id(dice)).collect(),
                up_to: dice.one(&[None, Some(taskbell::core::ids::Head(9))]),
                filter: MarkFilter {
                    states: dice.one(&[Vec::new(), vec![State::Failed, State::Succeeded]]),
                    action: dice.one(&[None, Some("sync".to_owned())]),
                    record: dice.one(&[
                        None,
                        Some(taskbell::core::task::RecordRef { kind: "customer".into(), id: "42".into() }),
                    ]),
                    text: dice.one(&[None, Some("SYN".to_owned())]),
                    from: dice.one(&[None, Some(taskbell::core::time::Millis(0))]),
                    to: dice.one(&[None, Some(taskbell::core::time::Millis(i64::MAX))]),
                },
            }),
            _ => Step::Pass(dice.one(&[1, 500, 1_000, 5_000, 11_000, 31_000, 61_000, 100_000])),
        }
    }
}

/// The n-th id, the same in every run.
fn numbered(n: usize) -> TaskId {
    format!("01930000-0000-7000-8000-{n:012x}").parse().unwrap()
}

fn shown<T: Debug>(f: &Fixture, written: taskbell::store::Result<Written<T>>) -> String {
    match written {
        Ok(written) => {
            let changes = format!("{:?}", written.changes);
            format!("{:?}\n{changes}", f.heard(written))
        }
        Err(e) => format!("{:?}", std::mem::discriminant(&e)),
    }
}

/// Does a step, and answers with all that the store said.
async fn take(f: &Fixture, step: Step, known: Option<&mut Known>) -> String {
    match step {
        Step::Submit(items) => shown(f, f.store.submit(items).await),
        Step::SubmitAgain(items) => shown(f, f.store.submit_again(items).await),
        Step::Claim(params) => {
            let written = f.store.claim(params).await;
            if let (Some(known), Ok(written)) = (known, &written) {
                known.claimed.extend(written.answer.iter().cloned());
            }
            shown(f, written)
        }
        Step::Commit(items) => shown(f, f.store.commit(items).await),
        Step::Report(items) => shown(f, f.store.report(items).await),
        Step::Renew(params) => format!("{:?}", f.store.renew(params).await),
        Step::Sweep(params) => shown(f, f.store.sweep(params).await),
        Step::Ask(items) => shown(f, f.store.ask(items).await),
        Step::Delete(who, ids) => shown(f, f.store.delete(&who, ids).await),
        Step::Mark(params) => shown(f, f.store.mark(params).await),
        Step::Pass(ms) => {
            f.pass(ms);
            String::new()
        }
    }
}

/// All that can be read.
async fn everything(f: &Fixture, ids: &[TaskId]) -> String {
    let mut all = String::new();
    for task in all_tasks(f.store.as_ref()).await {
        let (documents, events) = (f.store.documents(task.id).await, f.store.events(task.id, 0, 1_000).await);
        let points = f.store.points(task.id).await;
        writeln!(all, "{task:?}\n{documents:?}\n{events:?}\n{points:?}").unwrap();
    }
    writeln!(all, "{:?} {:?}", f.store.positions(ids).await, f.store.next_due().await).unwrap();
    for who in people() {
        let center = f.store.center(&who.tenant, &who.user).await;
        writeln!(all, "{center:?} {:?}", f.store.counts(&Reach::of(&who), true).await).unwrap();
        for (sort, descending) in [(SortBy::UpdatedAt, true), (SortBy::FinishedAt, false), (SortBy::Priority, true)] {
            let text = Some("title %".to_owned());
            let params =
                ListParams { reach: Reach::of(&who), text, sort, descending, limit: 7, ..ListParams::default() };
            writeln!(all, "{:?}", f.store.list(params).await).unwrap();
        }
        writeln!(all, "{:?}", f.store.usual(&who.tenant, "import").await).unwrap();
    }
    all
}

async fn both_agree(steps: Vec<(u8, u64)>, database: Fixture) {
    let model = Fixture::memory();
    let mut known = Known::default();
    for (n, (kind, entropy)) in steps.into_iter().enumerate() {
        let step = known.step(kind, entropy, &model);
        let said = take(&model, step.clone(), Some(&mut known)).await;
        assert_eq!(take(&database, step.clone(), None).await, said, "step {n}: {step:#?}");
    }
    assert_eq!(everything(&database, &known.ids).await, everything(&model, &known.ids).await);
    model.check().await;
    database.check().await;
}

fn agrees_on_every_sequence(sequences: u32, open: impl AsyncFn() -> Fixture) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = Config { cases: sequences, failure_persistence: None, max_shrink_iters: 2_000, ..Config::default() };
    let steps = prop::collection::vec((0..17_u8, any::<u64>()), 1..=LONGEST);
    let agreed = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async { both_agree(steps, open().await).await });
        Ok(())
    });
    if let Err(fault) = agreed {
        panic!("{fault}");
    }
}

#[test]
fn the_model_and_sqlite_agree_on_every_sequence_of_operations() {
    agrees_on_every_sequence(200, Fixture::sqlite);
}

#[test]
fn the_model_and_postgres_agree_on_every_sequence_of_operations() {
    // A round trip for each statement takes its time.
    let sequences = if std::env::var("TASKBELL_TEST_LONG").is_ok_and(|v| v == "1") { 200 } else { 25 };
    agrees_on_every_sequence(sequences, Fixture::postgres);
}
