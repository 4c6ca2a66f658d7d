//! What stores are asked, drawn from numbers: clicks and children, claims of nodes and of workers outside, ends of chunks that
//! are new, repeated or stale, what people ask, switches of packs, and time.

use crate::store::fixture::{ACTIONS, Fixture, GRACE_MS, LEASE_MS, PACKS, claim_params};
use crate::store::words::*;
use serde_json::json;
use std::collections::BTreeSet;
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::chunk::{Outcome, Told};
use taskbell::core::family::{OnFailure, Parent};
use taskbell::core::ids::{FencingToken, Head, TaskId};
use taskbell::core::lifecycle::{Ask, ChunkEnd};
use taskbell::core::principal::{Principal, Role};
use taskbell::core::progress::Reported;
use taskbell::core::submit::{KeyClaim, KeyKind, SlotClaim, Submit};
use taskbell::core::task::{Concurrency, Hold, RecordRef, Rows, State, Task};
use taskbell::core::time::Millis;
use taskbell::store::{
    AskParams, ChunkCommit, ClaimParams, Claimed, Mark, MarkFilter, MarkParams, PackLoaded, PackSwitch, RenewLent,
    RenewParams, Report, Seats, SweepParams,
};

/// How many kinds of steps there are.
pub const KINDS: u8 = 20;

/// Choices out of one drawn number, so that a shrunk sequence keeps what its remaining steps do.
pub struct Dice(pub u64);

impl Dice {
    pub fn of(&mut self, count: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % count
    }

    pub fn one<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[self.of(choices.len() as u64) as usize].clone()
    }

    fn often(&mut self) -> bool {
        self.of(4) > 0
    }
}

/// What both stores are asked.
#[derive(Clone, Debug)]
pub enum Step {
    Submit(Vec<Submit>),
    SubmitAgain(Vec<Submit>),
    Claim(ClaimParams),
    Commit(Vec<ChunkCommit>),
    CommitAndClaim(Vec<ChunkCommit>, ClaimParams),
    Report(Vec<Report>),
    Renew(RenewParams),
    RenewLent(RenewLent),
    RollUp(Vec<TaskId>),
    RegisterPacks(Vec<PackLoaded>),
    SwitchPack(PackSwitch),
    SettlePacks(usize),
    NoteAsks(Vec<(String, String)>),
    Sweep(SweepParams),
    Ask(Vec<AskParams>),
    Delete(Principal, Vec<TaskId>),
    Mark(MarkParams),
    Pass(i64),
}

/// What the steps so far have made, to draw from.
#[derive(Default)]
pub struct Known {
    /// Every id that was given away, whether it became a task or not.
    pub ids: Vec<TaskId>,
    /// The last batch of clicks.
    clicks: Vec<Submit>,
    pub claimed: Vec<Claimed>,
}

pub fn people() -> Vec<Principal> {
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

/// What a node asks for, or workers outside.
fn claim(dice: &mut Dice, several: u64) -> ClaimParams {
    ClaimParams {
        tenants: dice.one(&[Vec::new(), Vec::new(), vec!["acme".to_owned()]]),
        actions: ACTIONS[..2 + dice.of(2) as usize].iter().map(ToString::to_string).collect(),
        packs: dice.one(&[Vec::new(), vec!["stock".to_owned()], PACKS.map(str::to_owned).to_vec()]),
        seats: (dice.of(3) == 0).then(|| Seats {
            holders: (0..several).map(|n| format!("worker:{n}")).collect(),
            chunk_ms: ACTIONS.map(|action| (action.to_owned(), dice.one(&[5_000, 90_000]))).into(),
        }),
        after_tenant: dice.one(&[None, Some("acme".to_owned()), Some("zzz".to_owned())]),
        many_wait: false,
        ..claim_params(dice.one(&["n1", "n2"]), several as usize)
    }
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

    fn click(&mut self, dice: &mut Dice, now: Millis) -> Submit {
        let caller = dice.one(&people()[..6]);
        self.click_of(&caller, dice, now)
    }

    fn click_of(&mut self, caller: &Principal, dice: &mut Dice, now: Millis) -> Submit {
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
            pack: dice.one(&[None, None, Some("stock".to_owned()), Some("till".to_owned())]),
            ..by(caller)
        }
    }

    /// A child of the task that was claimed, as its chunk submits it.
    fn child(&mut self, parent: &Task, dice: &mut Dice, now: Millis) -> Submit {
        let owner = principal(&parent.tenant, &parent.owner, Role::User);
        let depth = parent.parent.map_or(0, |p| p.depth) + 1;
        let weight = dice.one(&[1, 1, 3]);
        Submit { parent: Some(Parent { id: parent.id, depth, weight }), ..self.click_of(&owner, dice, now) }
    }

    fn commit(&mut self, dice: &mut Dice, now: Millis) -> Option<ChunkCommit> {
        let claimed = self.claim(dice)?;
        let report =
            dice.one(&[json!({}), json!({"current": 7}), json!({"current": 3, "total": 9}), json!({"total": 20})]);
        let waits = [None, None, Some(OnFailure::Fail), Some(OnFailure::Ignore), Some(OnFailure::Collect)];
        let told = Told {
            report: Reported::parse(&report).unwrap(),
            rows: Rows { ok: 1, ..Rows::default() },
            wait: dice.one(&waits),
            ..Told::default()
        };
        let checkpoint = dice.one(&[None, Some(json!({"n": 1})), Some(json!({"n": 2}))]);
        let delay_ms = dice.one(&[0, 0, 1_000]);
        let outcome = match dice.of(8) {
            0..4 => Outcome::More { checkpoint, delay_ms, told },
            4 => Outcome::Done { result: checkpoint, told: Told { wait: None, ..told } },
            5 => gives_up(),
            _ => throws(),
        };
        let item = match dice.of(12) {
            0 => handed_back(&claimed),
            1 => ChunkCommit { end: ChunkEnd::Undelivered, ..handed_back(&claimed) },
            _ => ended(&claimed, outcome),
        };
        let count = if matches!(item.end, ChunkEnd::Answered(_)) { dice.one(&[0, 0, 1, 2]) } else { 0 };
        let children = (0..count).map(|_| self.child(&claimed.task, dice, now)).collect();
        Some(ChunkCommit {
            children,
            chunk: item.chunk + dice.one(&[0, 0, 0, 0, 1, -1]),
            continue_for_ms: dice.one(&[None, Some(LEASE_MS)]),
            ..item
        })
    }

    /// The next step of a kind below [`KINDS`].
    pub fn step(&mut self, kind: u8, entropy: u64, f: &Fixture) -> Step {
        let dice = &mut Dice(entropy);
        let several = 1 + dice.of(3);
        match kind {
            1 if !self.clicks.is_empty() && dice.of(3) == 0 => Step::SubmitAgain(self.clicks.clone()),
            0 | 1 => {
                self.clicks = (0..several).map(|_| self.click(dice, f.now())).collect();
                Step::Submit(self.clicks.clone())
            }
            2 | 3 => Step::Claim(claim(dice, several)),
            4..=6 => {
                let items = (0..several).filter_map(|_| self.commit(dice, f.now())).collect();
                if dice.of(3) == 0 { Step::CommitAndClaim(items, claim(dice, several)) } else { Step::Commit(items) }
            }
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
                if dice.of(3) == 0 {
                    let tenant = dice.one(&[None, Some("acme".to_owned()), Some("globex".to_owned())]);
                    return Step::RenewLent(RenewLent { tenant, held, lease_ms: LEASE_MS });
                }
                Step::Renew(RenewParams {
                    node: dice.one(&["n1", "n2"]).into(),
                    held,
                    lease_ms: LEASE_MS,
                    waits: false,
                })
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
                up_to: dice.one(&[None, Some(Head(9))]),
                filter: MarkFilter {
                    states: dice.one(&[Vec::new(), vec![State::Failed, State::Succeeded]]),
                    action: dice.one(&[None, Some("sync".to_owned())]),
                    record: dice.one(&[None, Some(RecordRef { kind: "customer".into(), id: "42".into() })]),
                    text: dice.one(&[None, Some("SYN".to_owned())]),
                    from: dice.one(&[None, Some(Millis(0))]),
                    to: dice.one(&[None, Some(Millis(i64::MAX))]),
                },
            }),
            14 => match dice.of(6) {
                0 => Step::RegisterPacks(vec![PackLoaded {
                    name: dice.one(&PACKS).into(),
                    version: dice.one(&["1.0.0", "1.1.0"]).into(),
                    serial: dice.of(3) == 0,
                }]),
                1..4 => Step::SwitchPack(PackSwitch {
                    name: dice.one(&["stock", "till", "nobody"]).into(),
                    paused: dice.of(2) == 0,
                    by: "olga".into(),
                }),
                _ => Step::SettlePacks(several as usize),
            },
            15 => match dice.of(3) {
                0 => Step::NoteAsks(vec![(dice.one(&["acme", "*"]).into(), dice.one(&ACTIONS).into())]),
                _ => Step::RollUp((0..several).map(|_| self.id(dice)).collect::<BTreeSet<_>>().into_iter().collect()),
            },
            _ => Step::Pass(dice.one(&[1, 500, 1_000, 5_000, 11_000, 31_000, 61_000, 100_000])),
        }
    }
}

/// The n-th id, the same in every run.
fn numbered(n: usize) -> TaskId {
    format!("01930000-0000-7000-8000-{n:012x}").parse().unwrap()
}
