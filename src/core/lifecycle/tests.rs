//! The walk over the whole grid of states and events on real tasks: what the table does not list is refused and changes
//! nothing. Then random walks, and what no table can show: budgets, clocks, repetitions.

use super::super::chunk::Told;
use super::super::principal::{Principal, Role, Scope};
use super::super::submit::Submit;
use super::super::task::{Concurrency, ErrorKind, StopRequest, WAKES_WITHIN_MS, limits};
use super::super::transition::TABLE;
use super::*;
use proptest::prelude::*;
use serde_json::json;

const NOW: Millis = Millis(1_000_000);
const LEASE_MS: i64 = 30_000;
const GRACE_MS: i64 = 60_000;

const SWEEP: SweepTerms = SweepTerms {
    all: false,
    cancel_grace_ms: GRACE_MS,
    retry: RetryPolicy { max_attempts: 3, base_ms: 5_000, cap_ms: 300_000 },
    unit_random: 0.5,
};

fn fresh() -> Task {
    let caller = Principal { tenant: "t".into(), user: "bob".into(), role: Role::User, scopes: Scope::ALL.to_vec() };
    let click = Submit::new(caller, "import", json!({}));
    let mut task = click.into_task(&mut Step::at(NOW));
    task.concurrency = Some(Concurrency { key: "k".into(), limit: 1, hold: Hold::Task });
    task
}

/// A task in a state, with or without a chunk under way, whether or not the two go together.
fn task_in(state: State, under_way: bool) -> Task {
    let mut task = fresh();
    task.state = state;
    task.fencing_token = FencingToken(7);
    task.started_at = Some(NOW);
    task.gated = state == State::Blocked;
    task.slot_held = under_way;
    task.wait = Some(WaitReason::Delay);
    task.finished_at = state.is_final().then_some(NOW);
    if under_way {
        task.lease_owner = Some("n1".into());
        task.lease_until = Some(NOW.plus(LEASE_MS));
    }
    if matches!(state, State::Pausing | State::Cancelling) {
        task.stop = Some(StopRequest { actor: "bob".into(), reason: None, at: NOW });
    }
    task
}

fn terms(task: &Task) -> EndTerms {
    EndTerms {
        token: task.fencing_token,
        chunk: task.chunks + 1,
        retry: RetryPolicy::default(),
        unit_random: 0.5,
        continue_for_ms: None,
        checkpoint_hash: Some(1),
        children: 0,
    }
}

fn more(checkpoint: bool, delay_ms: i64) -> ChunkEnd {
    let checkpoint = checkpoint.then(|| json!(1));
    ChunkEnd::Answered(Box::new(Outcome::More { checkpoint, delay_ms, told: Told::default() }))
}

fn done() -> ChunkEnd {
    ChunkEnd::Answered(Box::new(Outcome::Done { result: None, told: Told::default() }))
}

fn fails(kind: ErrorKind) -> ChunkEnd {
    ChunkEnd::Answered(Box::new(Outcome::Fail(Failure::new(kind, "x", "It broke."))))
}

/// Lets an event happen through the function that stands for it; answers whether it did.
fn happens(task: &mut Task, event: Event, step: &mut Step) -> bool {
    let terms = terms(task);
    let ends = |task: &mut Task, end: &ChunkEnd, step: &mut Step| {
        matches!(task.end_chunk(end, &terms, step), Ended::Applied { .. })
    };
    let asks = |task: &mut Task, ask, key_full, step: &mut Step| task.ask(ask, Some("why"), key_full, step) == Ok(true);
    match event {
        Event::SlotFree => task.open_gate(step).is_ok(),
        Event::KeyFull => task.gate(None, step).is_ok(),
        Event::Claim => task.claim("n1", LEASE_MS, step).is_ok(),
        Event::More => ends(task, &more(true, 0), step),
        Event::Done => ends(task, &done(), step),
        Event::Retry => ends(task, &fails(ErrorKind::Handler), step),
        Event::Fail => ends(task, &fails(ErrorKind::Permanent), step),
        Event::Drained => ends(task, &ChunkEnd::HandedBack, step),
        Event::ChildFailed => task.child_failed(&task_in(State::Failed, false), step).is_ok(),
        Event::DeadlineOver => task.end_overdue(step).is_ok(),
        Event::LeaseLost | Event::LeasesUsedUp => {
            let before = task.reclaims;
            task.reclaims = if event == Event::LeasesUsedUp { limits::RECLAIMS } else { 0 };
            let swept = task.sweep(&SweepTerms { all: true, ..SWEEP }, step) == Ok(true);
            if !swept {
                task.reclaims = before;
            }
            swept
        }
        Event::GraceOver => {
            step.now = step.now.max(NOW.plus(GRACE_MS));
            let before = task.lease_until;
            task.lease_until = before.map(|_| step.now.plus(LEASE_MS));
            let swept = task.sweep(&SWEEP, step) == Ok(true);
            if !swept {
                task.lease_until = before;
            }
            swept
        }
        Event::Cancel => asks(task, Ask::Cancel, None, step),
        Event::Pause => asks(task, Ask::Pause, None, step),
        Event::ForceCancel => asks(task, Ask::ForceCancel, None, step),
        Event::Resume => asks(task, Ask::Resume, None, step),
        Event::ResumeBlocked => {
            // Who holds a slot of its own does not have to ask for one.
            task.slot_held = false;
            asks(task, Ask::Resume, Some(None), step)
        }
        Event::PackOff => task.pack_off(step) == Ok(true),
        Event::PackOn => task.pack_on(None, step) == Ok(true),
        Event::PackOnBlocked => {
            task.slot_held = false;
            task.pack_on(Some(None), step) == Ok(true)
        }
    }
}

/// A forced cancel of what has no chunk to wait for is a cancel; a pause that has not happened yet is taken back whether or
/// not the key is full.
fn as_listed(state: State, under_way: bool, event: Event) -> Event {
    let plain = !under_way && matches!(state, State::Queued | State::Blocked | State::Paused);
    match event {
        Event::ForceCancel if plain => Event::Cancel,
        Event::ResumeBlocked if under_way && state == State::Pausing => Event::Resume,
        Event::PackOnBlocked if under_way && state == State::Pausing => Event::PackOn,
        _ => event,
    }
}

#[test]
fn on_real_tasks_every_pair_that_is_not_listed_is_refused_and_changes_nothing() {
    let (mut taken, mut refused) = (0, 0);
    for state in State::ALL {
        for under_way in [false, true] {
            for event in Event::ALL {
                let mut task = task_in(state, under_way);
                task.slot_held &= !matches!(event, Event::ResumeBlocked | Event::PackOnBlocked);
                if matches!(event, Event::PackOn | Event::PackOnBlocked) {
                    task.wait = Some(WaitReason::PackDisabled);
                }
                let (before, mut step) = (task.clone(), Step::at(NOW));
                let happened = happens(&mut task, event, &mut step);
                let case = format!("{state:?}, under way {under_way}, {event:?}");
                match next(state, under_way, as_listed(state, under_way, event)) {
                    Ok(arrow) => {
                        assert!(happened, "{case} is listed");
                        assert_eq!(task.state, arrow.to, "{case}");
                        assert_ne!(task, before, "{case}");
                        let told = step.events.last().is_some_and(|e| e.to == arrow.to && e.from == Some(state));
                        assert!(told || arrow.to == state, "{case}: the timeline does not tell");
                        taken += 1;
                    }
                    Err(_) => {
                        assert!(!happened, "{case} is not listed");
                        assert_eq!(task, before, "{case}");
                        assert!(step.events.is_empty(), "{case}");
                        refused += 1;
                    }
                }
            }
        }
    }
    // What is read as another event comes on top of the table.
    assert_eq!((taken, refused), (TABLE.len() + 5, 9 * 2 * 21 - TABLE.len() - 5));
}

fn assert_columns(task: &Task) {
    let (ended, leased) = (task.state.is_final(), task.under_way());
    assert_eq!(task.finished_at.is_some(), ended, "{task:?}");
    assert_eq!(task.lease_owner.is_some(), leased, "{task:?}");
    assert!(!(ended && (leased || task.slot_held || task.gated)), "{task:?}");
    assert!(!(task.slot_held && task.gated), "{task:?}");
    assert_eq!(task.stop.is_some(), matches!(task.state, State::Pausing | State::Cancelling), "{task:?}");
    assert!(ended || leased || task.wait.is_some(), "{task:?}");
    assert!(
        ended || leased || task.gated || task.claimable() || task.state == State::Paused || task.awaits.is_some(),
        "{task:?}"
    );
    assert!(task.attempts <= task.max_attempts && task.reclaims <= task.takeovers, "{task:?}");
}

proptest! {
    #[test]
    fn no_walk_builds_a_combination_that_must_not_exist(walk in prop::collection::vec((0..Event::ALL.len(), 0..90_000_i64), 0..120)) {
        let mut task = fresh();
        let mut now = NOW;
        for (event, ms) in walk {
            now = now.plus(ms);
            let event = Event::ALL[event];
            // Budgets that the walk did not use up, and claims of what waits, are the callers' affair.
            if event == Event::LeasesUsedUp || (event == Event::Claim && !task.claimable()) || (event == Event::KeyFull && task.slot_held) {
                continue;
            }
            let before = task.clone();
            let mut step = Step::at(now);
            // A full key is laid out for these before they are refused.
            let laid_out = matches!(event, Event::ResumeBlocked | Event::PackOnBlocked);
            if !happens(&mut task, event, &mut step) && !laid_out {
                prop_assert_eq!(&task, &before);
            }
            assert_columns(&task);
            prop_assert!(task.fencing_token >= before.fencing_token && task.chunks >= before.chunks);
            prop_assert!(task.takeovers >= before.takeovers && task.event_count - before.event_count == step.events.len() as i64);
            let arrow = TABLE.iter().any(|a| a.from == before.state && a.to == task.state);
            prop_assert!(before.state == task.state || arrow);
        }
    }
}

#[test]
fn only_the_newest_token_and_the_next_chunk_are_heard() {
    let mut task = task_in(State::Running, true);
    let good = terms(&task);
    for (token, chunk) in [(6, 1), (8, 1), (7, 2), (7, -1)] {
        let (before, mut step) = (task.clone(), Step::at(NOW));
        let wrong = EndTerms { token: FencingToken(token), chunk, ..good };
        assert_eq!(task.end_chunk(&done(), &wrong, &mut step), Ended::Stale, "token {token}, chunk {chunk}");
        assert_eq!(task.report(FencingToken(token), &Reported::default(), &mut step).is_none(), token != 7);
        assert_eq!(task, before);
    }
    assert_eq!(task.end_chunk(&more(true, 0), &good, &mut Step::at(NOW)), Ended::Applied { continues: false });
    let before = task.clone();
    assert_eq!(task.end_chunk(&more(true, 0), &good, &mut Step::at(NOW)), Ended::Repeated);
    assert_eq!(task, before);
}

#[test]
fn whoever_takes_a_lease_away_raises_the_token() {
    for event in [Event::LeaseLost, Event::LeasesUsedUp, Event::DeadlineOver, Event::ForceCancel, Event::GraceOver] {
        for state in [State::Running, State::Pausing, State::Cancelling] {
            let mut task = task_in(state, true);
            if happens(&mut task, event, &mut Step::at(NOW)) {
                assert_eq!(task.fencing_token, FencingToken(8), "{event:?} while {state:?}");
            }
        }
    }
}

#[test]
fn a_resume_gives_budgets_back_and_keeps_what_was_done() {
    for state in [State::Paused, State::Failed, State::Cancelled] {
        let mut task = task_in(state, false);
        (task.attempts, task.failures, task.reclaims, task.takeovers, task.idle_chunks) = (3, 30, 11, 11, 999);
        (task.chunks, task.deadline, task.seen_at) = (5, Some(NOW), Some(NOW));
        task.warnings = vec![NO_PROGRESS.into(), "other".into()];
        assert_eq!(task.ask(Ask::Resume, None, None, &mut Step::at(NOW.plus(9))), Ok(true));
        assert_eq!((task.attempts, task.failures, task.reclaims, task.idle_chunks), (0, 0, 0, 0));
        assert_eq!((task.takeovers, task.chunks, task.due_at), (11, 5, NOW.plus(9)));
        assert_eq!((task.deadline, task.seen_at, task.warnings), (None, None, vec!["other".to_owned()]));
    }
}

#[test]
fn a_step_that_moves_nothing_is_counted_warned_of_at_5_and_the_end_at_1000() {
    let mut task = task_in(State::Running, true);
    for chunk in 1..=limits::IDLE_CHUNKS_FAIL {
        let terms = EndTerms { continue_for_ms: Some(LEASE_MS), checkpoint_hash: None, ..terms(&task) };
        task.end_chunk(&more(false, 0), &terms, &mut Step::at(NOW));
        assert_eq!(task.warnings.len(), usize::from(chunk >= limits::IDLE_CHUNKS_WARN), "{chunk}");
        let state = if chunk < limits::IDLE_CHUNKS_FAIL { State::Running } else { State::Failed };
        assert_eq!(task.state, state, "{chunk}");
    }
    assert_eq!(task.error.unwrap().kind, ErrorKind::NoProgress);
}

#[test]
fn the_eta_counts_neither_a_lost_lease_nor_the_queue_after_a_drain() {
    let mut task = task_in(State::Queued, false);
    task.claim("n1", LEASE_MS, &mut Step::at(NOW)).unwrap();
    let report = Reported::parse(&json!({"current": 1})).unwrap();
    task.report(task.fencing_token, &report, &mut Step::at(NOW.plus(4_000)));
    task.sweep(&SWEEP, &mut Step::at(NOW.plus(LEASE_MS))).unwrap();
    assert_eq!(task.estimator.active_ms(), 4_000, "the time after the last report went with its work");
    let again = NOW.plus(100_000);
    task.claim("n1", LEASE_MS, &mut Step::at(again)).unwrap();
    let drained = terms(&task);
    task.end_chunk(&ChunkEnd::HandedBack, &drained, &mut Step::at(again.plus(1_000)));
    assert_eq!(task.estimator.active_ms(), 5_000);
    assert_eq!(task.estimator.stalls_at(), None, "the clock stands while it waits");
}

#[test]
fn a_pack_lets_go_on_exactly_what_it_has_stopped() {
    let mut step = Step::at(NOW);
    let mut task = task_in(State::Queued, false);
    (task.attempts, task.due_at) = (1, NOW.plus(5_000));
    assert_eq!(task.pack_off(&mut step), Ok(true));
    assert!(task.state == State::Paused && task.held_by_pack());
    let refused = task.ask(Ask::Resume, None, None, &mut step);
    assert!(refused.is_err() && task.held_by_pack(), "a person cannot resume it");
    assert_eq!(task.pack_on(None, &mut step), Ok(true));
    let kept = (task.state, task.attempts, task.due_at, task.wait);
    assert_eq!(kept, (State::Queued, 1, NOW.plus(5_000), Some(WaitReason::Retry)));

    let mut paused = task_in(State::Queued, false);
    paused.ask(Ask::Pause, None, None, &mut step).unwrap();
    assert_eq!(paused.pack_off(&mut step), Ok(false), "a person's pause stays a person's");
    assert_eq!(paused.pack_on(None, &mut step), Ok(false));
    assert_eq!((paused.state, paused.wait), (State::Paused, Some(WaitReason::Paused)));

    task.pack_off(&mut step).unwrap();
    assert_eq!(task.ask(Ask::Pause, None, None, &mut step), Ok(true), "a person takes the pause over");
    assert_eq!(task.pack_on(None, &mut step), Ok(false));
    assert_eq!(task.ask(Ask::Resume, None, None, &mut step), Ok(true));
}

#[test]
fn a_chunk_under_way_ends_and_then_its_pack_holds_the_task() {
    for back_at_once in [true, false] {
        let mut step = Step::at(NOW);
        let mut task = task_in(State::Running, true);
        assert_eq!(task.pack_off(&mut step), Ok(true));
        assert_eq!((task.state, task.under_way()), (State::Pausing, true));
        if back_at_once {
            assert_eq!(task.pack_on(None, &mut step), Ok(true));
            assert_eq!((task.state, task.stop.is_none()), (State::Running, true));
            continue;
        }
        let end = terms(&task);
        assert_eq!(task.end_chunk(&more(true, 0), &end, &mut step), Ended::Applied { continues: false });
        assert!(task.state == State::Paused && task.held_by_pack() && task.chunks == 1);
        assert_eq!(task.pack_on(None, &mut step), Ok(true));
        assert!(task.state == State::Queued && task.claimable());
    }
}

#[test]
fn a_task_that_is_due_long_after_its_change_wakes_nobody_and_one_that_is_due_soon_does() {
    let due_after = |ms| Task { due_at: NOW.plus(ms), ..fresh() };
    assert!(due_after(0).wakes() && due_after(-1).wakes() && due_after(WAKES_WITHIN_MS - 1).wakes());
    assert!(!due_after(WAKES_WITHIN_MS).wakes() && due_after(WAKES_WITHIN_MS).claimable());
    assert!(!task_in(State::Running, true).wakes(), "nobody could claim it");
}
