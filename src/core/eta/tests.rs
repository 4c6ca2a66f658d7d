//! Promises of the estimate, one by one.

use super::*;
use proptest::prelude::*;
use serde_json::json;

/// An estimator that is told and read on one clock, in ms since its start.
#[derive(Clone, Default)]
struct Task {
    estimator: Estimator,
    progress: Progress,
}

impl Task {
    fn working(total: i64) -> Self {
        let mut task = Self::default();
        task.progress.total = Some(total);
        task.estimator.resume_clock(at(0));
        task
    }

    /// `count` equal steps of growth, `every_ms` apart, from `from_ms` on.
    fn steps(mut self, from_ms: i64, every_ms: i64, grow: i64, count: i64) -> Self {
        for i in 1..=count {
            self.report(from_ms + i * every_ms, self.progress.current + grow);
        }
        self
    }

    fn report(&mut self, ms: i64, current: i64) {
        self.progress.current = current;
        self.estimator.sample(at(ms), current);
    }

    fn read(&self, ms: i64) -> Eta {
        self.read_as(ms, Activity::Working)
    }

    fn read_as(&self, ms: i64, activity: Activity) -> Eta {
        self.estimator.read(at(ms), &self.progress, activity, None)
    }

    fn seconds(&self, ms: i64) -> i64 {
        self.read(ms).remaining_seconds.expect("estimated")
    }
}

fn at(ms: i64) -> Millis {
    Millis(1_700_000_000_000 + ms)
}

#[test]
fn ten_equal_steps_are_foretold_after_three_and_never_reach_zero() {
    let mut task = Task::working(10);
    let mut before: Option<i64> = None;
    for ms in (0..10_000).step_by(250) {
        if ms > 0 && ms % 1_000 == 0 {
            task.report(ms, ms / 1_000);
        }
        let eta = task.read(ms);
        if ms < 5_000 {
            assert_eq!(eta.state, EtaState::Estimating, "{ms}");
            continue;
        }
        let (seconds, truth) = (eta.remaining_seconds.unwrap(), (10_000 - ms) as f64 / 1_000.0);
        assert!((seconds as f64 - truth).abs() <= (0.3 * truth).max(1.0), "{ms}: {seconds} of {truth}");
        assert!(seconds >= 1);
        if let Some(before) = before {
            assert!((before - seconds).abs() * 2 <= before, "{ms}: {before} then {seconds}");
        }
        before = Some(seconds);
    }
}

#[test]
fn the_same_current_again_and_again_is_no_sample() {
    let mut task = Task::working(100);
    for ms in (0..=10_000).step_by(2_000) {
        task.report(ms, 7);
    }
    let eta = task.read(60_000);
    assert_eq!(eta, Eta { state: EtaState::Estimating, ..Eta::default() });
    assert_eq!(task.estimator.rate_per_second(at(60_000), Activity::Working), None);
    assert_eq!(task.estimator.stalls_at(), None);
}

#[test]
fn there_is_no_estimate_outside_of_work() {
    let task = Task::working(100).steps(0, 1_000, 1, 20);
    for activity in [Activity::NotStarted, Activity::RetryWait, Activity::Paused, Activity::Blocked, Activity::Ended] {
        assert_eq!(task.read_as(20_000, activity), Eta::default(), "{activity:?}");
        assert_eq!(task.estimator.rate_per_second(at(20_000), activity), None);
    }
    let none = json!({"state": "none", "finishAt": null, "remainingSeconds": null, "lowSeconds": null,
        "highSeconds": null, "confidence": null, "basis": null});
    assert_eq!(serde_json::to_value(Eta::default()).unwrap(), none);
}

#[test]
fn without_a_total_that_can_hold_the_end_is_unknown() {
    let mut task = Task::working(100).steps(0, 1_000, 1, 20);
    for total in [None, Some(0), Some(19)] {
        task.progress.total = total;
        assert_eq!(task.read(20_000).state, EtaState::Unknown, "{total:?}");
    }
    assert_eq!(task.estimator.rate_per_second(at(20_000), Activity::Working), Some(1.0));
}

#[test]
fn an_estimate_has_the_shape_of_the_contract() {
    let task = Task::working(100).steps(0, 1_000, 1, 40);
    let eta = serde_json::to_value(task.read(40_000)).unwrap();
    assert_eq!(eta["state"], "estimated");
    assert_eq!(eta["remainingSeconds"], 60);
    assert_eq!(eta["finishAt"], json!(at(100_000)));
    assert_eq!((&eta["confidence"], &eta["basis"]), (&json!("high"), &json!("measured")));
    assert!(eta["lowSeconds"].as_i64() < Some(60) && eta["highSeconds"].as_i64() > Some(60));
}

#[test]
fn messages_alone_change_neither_estimate_nor_confidence() {
    let quiet = Task::working(100).steps(0, 1_000, 1, 20);
    let mut chatty = Task::working(100);
    for ms in (0..=20_400).step_by(100) {
        chatty.report(ms, ms / 1_000);
    }
    assert_eq!(chatty.read(20_500), quiet.read(20_500));
}

#[test]
fn a_pause_and_a_queue_cost_no_speed() {
    let mut task = Task::working(100).steps(0, 1_000, 1, 20);
    let before = task.seconds(20_000);
    task.estimator.pause_clock(at(20_000));
    let later = 20_000 + 86_400_000;
    task.estimator.resume_clock(at(later));
    assert_eq!(task.seconds(later), before);
    assert_eq!(task.estimator.active_ms(), 20_000);
    let task = task.steps(later, 1_000, 1, 10);
    assert_eq!(task.seconds(later + 10_000), 70);
}

#[test]
fn waiting_for_a_place_between_two_chunks_is_no_stall_and_costs_no_speed() {
    let mut task = Task::working(100).steps(0, 1_000, 1, 20);
    task.estimator.plan_gap(at(20_000), 0);
    assert_eq!(task.seconds(320_000), 80);
    task.estimator.resume_clock(at(320_000));
    assert_eq!(task.seconds(320_000), 80);
}

#[test]
fn planned_gaps_count_and_none_follows_the_last_chunk() {
    let (mut task, mut ms) = (Task::working(100), 0);
    for _ in 0..5 {
        for _ in 0..10 {
            ms += 100;
            task.report(ms, task.progress.current + 1);
        }
        task.estimator.plan_gap(at(ms), 9_000);
        let until = at(ms + 9_000);
        if task.progress.current == 50 {
            // 9 s of this gap, then five chunks of 1 s with four gaps of 9 s between them.
            assert_eq!(task.read_as(ms, Activity::PlannedGap { until }).remaining_seconds, Some(50));
            assert_eq!(task.read_as(ms + 6_000, Activity::PlannedGap { until }).remaining_seconds, Some(44));
        }
        ms += 9_000;
        // The queue kept the next chunk waiting for ten minutes: not part of the rhythm.
        ms += 600_000;
        task.estimator.resume_clock(at(ms));
    }
    assert_eq!(task.seconds(ms), 41);
    assert_eq!(task.estimator.rate_per_second(at(ms), Activity::Working), Some(1.0));
    assert!(task.estimator.quiet_limit_ms() >= 27_000);
}

#[test]
fn silence_beyond_three_usual_gaps_withdraws_the_estimate_until_work_moves() {
    let mut task = Task::working(100).steps(0, 4_000, 1, 10);
    assert_eq!(task.estimator.quiet_limit_ms(), 12_000);
    assert_eq!(task.estimator.stalls_at(), Some(at(52_000)));
    assert_eq!(task.read(52_000).state, EtaState::Estimated);
    assert_eq!(task.read(52_001), Eta { state: EtaState::Stalled, ..Eta::default() });
    assert_eq!(task.estimator.rate_per_second(at(52_001), Activity::Working), None);
    // A message, or another chunk that starts at once, is no movement.
    task.report(53_000, 10);
    task.estimator.resume_clock(at(53_000));
    assert_eq!(task.read(53_001).state, EtaState::Stalled);
    task.report(60_000, 11);
    assert_eq!(task.read(60_000).state, EtaState::Estimated);
}

#[test]
fn quick_reports_do_not_make_a_short_silence_a_stall() {
    let task = Task::working(1_000).steps(0, 50, 1, 200);
    assert_eq!(task.estimator.quiet_limit_ms(), 5_000);
}

#[test]
fn within_a_usual_gap_time_runs_down_and_beyond_it_stands_still() {
    let task = Task::working(20).steps(0, 10_000, 1, 10);
    assert_eq!((task.seconds(100_000), task.seconds(105_000), task.seconds(110_000)), (100, 95, 90));
    assert_eq!(task.seconds(125_000), 90);
}

#[test]
fn time_of_a_lost_lease_is_dropped_with_its_work() {
    let mut task = Task::working(100).steps(0, 1_000, 1, 20);
    task.estimator.resume_clock(at(300_000));
    assert_eq!(task.seconds(300_000), 80);
    assert_eq!(task.estimator.active_ms(), 20_000);
}

#[test]
fn a_clock_that_is_set_back_makes_nothing_negative() {
    let mut task = Task::working(100).steps(0, 1_000, 1, 20);
    let back = -7_200_000;
    assert!(task.seconds(back) >= 1);
    task.report(back, 21);
    let task = task.steps(back, 1_000, 1, 9);
    let eta = task.read(back + 9_000);
    assert!(eta.finish_at > Some(at(back + 9_000)) && task.estimator.active_ms() == 29_000);
}

#[test]
fn when_all_is_counted_a_second_is_left_until_the_end() {
    let task = Task::working(20).steps(0, 1_000, 1, 20);
    let eta = task.read(20_000);
    assert_eq!((eta.remaining_seconds, eta.low_seconds), (Some(1), Some(1)));
    assert_eq!(eta.finish_at, Some(at(21_000)));
}

#[test]
fn a_last_growth_that_is_late_leaves_more_than_a_second() {
    // Reports without a beat: the time that the rest was given has passed, and within a usual gap it is still not there.
    let mut task = Task::working(200);
    let mut ms = 0;
    for (i, gap_ms) in [40_000, 400_000, 90_000, 700_000, 20_000, 300_000].into_iter().enumerate() {
        ms += gap_ms;
        task.report(ms, 32 * (i as i64 + 1));
    }
    let before = task.seconds(ms);
    let late = task.seconds(ms + before * 1_000);
    assert!(late * 20 > before && late < before, "{before} s were left, and as much later {late}");
}

#[test]
fn a_lower_current_starts_the_measurement_anew() {
    let mut task = Task::working(100).steps(0, 100, 1, 100);
    task.progress.total = Some(50);
    task.report(10_000, 0);
    assert_eq!(task.read(10_000).state, EtaState::Estimating);
    let task = task.steps(10_000, 2_000, 1, 10);
    assert_eq!(task.seconds(30_000), 80);
}

#[test]
fn history_leads_at_first_and_fades_with_samples() {
    let prior = Some(UnitPrior { ms_per_unit: 3_000.0, successes: 20 });
    let read = |task: &Task, ms| task.estimator.read(at(ms), &task.progress, Activity::Working, prior);
    let early = Task::working(1_000).steps(0, 2_000, 1, 3);
    let eta = read(&early, 6_000);
    assert_eq!(eta.basis, Some(Basis::History));
    let seconds = eta.remaining_seconds.unwrap();
    assert!(seconds > early.seconds(6_000) && seconds < 997 * 3, "{seconds}");
    let late = Task::working(1_000).steps(0, 2_000, 1, 200);
    let eta = read(&late, 400_000);
    assert_eq!((eta.basis, eta.confidence), (Some(Basis::Measured), Some(Confidence::High)));
    assert!((eta.remaining_seconds.unwrap() - late.seconds(400_000)).abs() <= 16);
    for useless in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let prior = Some(UnitPrior { ms_per_unit: useless, successes: 1 });
        assert_eq!(late.estimator.read(at(400_000), &late.progress, Activity::Working, prior), late.read(400_000));
    }
}

#[test]
fn the_state_is_small_and_reads_back_the_same() {
    let mut task = Task::working(10_000_000);
    for i in 1..5_000_i64 {
        task.report(i * 60_000 + i % 7 * 1_000, i * 1_000 + i % 13);
        if i % 10 == 0 {
            task.estimator.plan_gap(at(i * 60_000 + 8_000), 30_000);
            task.estimator.resume_clock(at(i * 60_000 + 38_000));
        }
    }
    let text = serde_json::to_string(&task.estimator).unwrap();
    assert!(text.len() < 800, "{} bytes: {text}", text.len());
    let stored: Estimator = serde_json::from_str(&text).unwrap();
    assert_eq!(stored, task.estimator);
    assert_eq!(serde_json::from_str::<Estimator>("{}").unwrap(), Estimator::default());
}

#[derive(Clone, Debug)]
enum Call {
    Resume,
    Pause,
    Gap(i64),
    Sample(i64),
}

fn any_call() -> impl Strategy<Value = Call> {
    prop_oneof![
        1 => Just(Call::Resume),
        1 => Just(Call::Pause),
        1 => prop_oneof![0..10_000_i64, any::<i64>()].prop_map(Call::Gap),
        8 => prop_oneof![8 => 0..2_000_i64, 1 => any::<i64>()].prop_map(Call::Sample),
    ]
}

#[test]
fn a_history_of_quite_other_work_does_not_hold_the_estimate_down() {
    // Earlier tasks took 5 ms a unit, this one takes a second: the estimate follows what is measured.
    let prior = Some(UnitPrior { ms_per_unit: 5.0, successes: 20 });
    let task = Task::working(10).steps(0, 1_000, 1, 6);
    let eta = task.estimator.read(at(6_000), &task.progress, Activity::Working, prior);
    assert!((3..=6).contains(&eta.remaining_seconds.unwrap()), "{eta:?}");
    assert_eq!(eta.basis, Some(Basis::Measured));
}

proptest! {
    #[test]
    fn no_order_of_calls_makes_an_answer_that_is_negative_past_or_half(
        calls in prop::collection::vec((prop_oneof![9 => -10..5_000_i64, 1 => -1_000_000_000_000..1_000_000_000_000_i64], any_call()), 0..80),
        total in prop_oneof![0..3_000_i64, any::<i64>()],
        ms_per_unit in any::<f64>(),
    ) {
        let (mut estimator, mut now) = (Estimator::default(), Millis(0));
        let mut progress = Progress { total: Some(total), ..Progress::default() };
        for (passed, call) in calls {
            now = now.plus(passed);
            match call {
                Call::Resume => estimator.resume_clock(now),
                Call::Pause => estimator.pause_clock(now),
                Call::Gap(ms) => estimator.plan_gap(now, ms),
                Call::Sample(current) => {
                    progress.current = current.clamp(0, MAX_COUNT);
                    estimator.sample(now, current);
                }
            }
            for prior in [None, Some(UnitPrior { ms_per_unit, successes: 5 })] {
                let eta = estimator.read(now, &progress, Activity::Working, prior);
                let numbers = [eta.remaining_seconds, eta.low_seconds, eta.high_seconds];
                if eta.state == EtaState::Estimated {
                    let [middle, low, high] = numbers.map(Option::unwrap);
                    prop_assert!(1 <= low && low <= middle && middle <= high, "{:?}", eta);
                    prop_assert!(eta.finish_at.unwrap() >= now.plus(1_000));
                    prop_assert!(eta.confidence.is_some() && eta.basis.is_some());
                } else {
                    prop_assert_eq!(eta, Eta { state: eta.state, ..Eta::default() });
                }
            }
            prop_assert!(estimator.rate_per_second(now, Activity::Working).is_none_or(|rate| rate.is_finite() && rate >= 0.0));
            prop_assert!(estimator.quiet_limit_ms() >= 5_000 && estimator.active_ms() >= 0);
            let stored = serde_json::to_string(&estimator).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Estimator>(&stored).unwrap(), &estimator);
        }
    }
}
