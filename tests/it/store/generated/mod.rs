//! Generated sequences of operations: the reference model and each database must give equal answers, changes, rows, order and
//! errors, whatever is asked of them in whatever order. A sequence that fails is shrunk and printed.
//!
//! Families, packs and workers outside are among the operations; so are stale tokens, repeated chunks and strangers.

mod steps;

use super::fixture::{ACTIONS, Fixture};
use super::invariants::all_tasks;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fmt::{Debug, Write as _};
use steps::{KINDS, Known, Step, people};
use taskbell::core::ids::TaskId;
use taskbell::store::{ListParams, PackLoaded, Reach, SortBy, Written};

/// How long the longest sequence is.
const LONGEST: usize = 60;

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
        Step::CommitAndClaim(items, params) => {
            let written = f.store.commit_and_claim(items, Some(params)).await;
            if let (Some(known), Ok(written)) = (known, &written) {
                known.claimed.extend(written.answer.1.iter().cloned());
            }
            shown(f, written)
        }
        Step::Commit(items) => shown(f, f.store.commit(items).await),
        Step::Report(items) => shown(f, f.store.report(items).await),
        Step::Renew(params) => format!("{:?}", f.store.renew(params).await),
        Step::RenewLent(params) => format!("{:?}", f.store.renew_lent(params).await),
        Step::RollUp(parents) => shown(f, f.store.roll_up(parents).await),
        Step::RegisterPacks(loaded) => format!("{:?}", f.store.register_packs(loaded).await),
        Step::SwitchPack(params) => format!("{:?}", f.store.switch_pack(params).await),
        Step::SettlePacks(limit) => shown(f, f.store.settle_packs(limit).await),
        Step::NoteAsks(asks) => format!("{:?}", f.store.note_asks(&asks).await),
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
        let children = f.store.children(task.id, None, 100).await;
        writeln!(all, "{children:?}").unwrap();
    }
    let (kin, results) = (f.store.family_counts(ids).await, f.store.results(ids).await);
    let asked = f.store.last_asks(&ACTIONS.map(str::to_owned)).await;
    writeln!(all, "{kin:?} {results:?} {asked:?} {:?}", f.store.packs(None).await).unwrap();
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
    for f in [&model, &database] {
        let loaded = PackLoaded { name: "stock".into(), version: "1.0.0".into(), serial: true };
        f.store.register_packs(vec![loaded]).await.unwrap();
    }
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
    let steps = prop::collection::vec((0..KINDS, any::<u64>()), 1..=LONGEST);
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
