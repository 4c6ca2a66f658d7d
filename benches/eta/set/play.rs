//! Plays traces to all rules at once and sums up how they did.

use super::rules::{NAMES, Ours, Range, others};
use super::trace::{Event, Trace};

/// Where the rules are asked, in shares of the work.
pub const MARKS: [f64; 3] = [0.25, 0.5, 0.75];

/// What the rules said at one mark. Seconds.
struct Asked {
    truth: f64,
    range: Range,
    others: [Option<f64>; NAMES.len() - 1],
}

/// What came of one trace.
struct Played {
    asked: [Option<Asked>; MARKS.len()],
    /// By how much our middle was ever off after the first mark: the larger by the smaller, both a second longer, so that
    /// the rounding of the last seconds is no factor.
    worst: f64,
}

fn play(trace: &Trace) -> Played {
    let (mut ours, mut others) = (Ours::start(), others());
    let (mut asked, mut worst) = ([const { None }; MARKS.len()], 1.0_f64);
    let (mut next, mut total, mut current) = (0, None, 0);
    let all = trace.all() as f64;
    let truth_at = |ms: i64| (trace.end_ms() - ms - trace.stopped_after_ms(ms)) as f64 / 1_000.0;
    for (i, (ms, event)) in trace.events.iter().enumerate() {
        match event {
            Event::Report(count) => {
                current = *count;
                ours.report(*ms, current);
                others.iter_mut().for_each(|rule| rule.report(*ms as f64, current as f64));
            }
            Event::Total(known) => {
                total = *known;
                ours.total(total);
            }
            Event::Gap(delay_ms) => ours.gap(*ms, *delay_ms),
            Event::Stop => ours.stop(*ms),
            Event::Go => ours.go(*ms),
        }
        let Some(left) = total.map(|total| (total - current) as f64) else { continue };
        let share = current as f64 / all;
        if next < MARKS.len() && share >= MARKS[next] {
            asked[next] = ours.left_seconds(*ms).map(|range| Asked {
                truth: truth_at(*ms),
                range,
                others: std::array::from_fn(|rule| others[rule].left_seconds(*ms as f64, left)),
            });
            next += 1;
        }
        let until = trace.events.get(i + 1).map_or(*ms, |event| event.0);
        if share >= MARKS[0] {
            // Also half-way to what comes next: a page is looked at between reports too.
            for at in [*ms, ms.midpoint(until)] {
                if let Some([_, middle, _]) = ours.left_seconds(at) {
                    let off = (middle + 1.0) / (truth_at(at) + 1.0);
                    worst = worst.max(off).max(1.0 / off);
                }
            }
        }
    }
    Played { asked, worst }
}

/// How the rules did on some traces.
#[derive(Clone, Debug)]
pub struct Score {
    /// The kind of the traces.
    pub kind: &'static str,
    /// At each mark, for each rule of [`NAMES`]: the relative errors of all traces, sorted.
    errors: [[Vec<f64>; NAMES.len()]; MARKS.len()],
    /// At each mark: how many ranges held the truth, of how many.
    held: [(usize, usize); MARKS.len()],
    /// How many marks were asked in all; where we had no estimate, nobody is counted.
    pub asked: usize,
    /// The largest factor by which our middle was ever off after the first mark.
    pub worst: f64,
}

impl Score {
    /// The median relative error of a rule at a mark.
    pub fn median(&self, mark: usize, rule: usize) -> f64 {
        let errors = &self.errors[mark][rule];
        errors[errors.len() / 2]
    }

    /// The share of our ranges at a mark that held the truth.
    pub fn held(&self, mark: usize) -> f64 {
        self.held[mark].0 as f64 / self.held[mark].1.max(1) as f64
    }

    /// How many marks were answered, of those [`Self::asked`].
    pub fn answered(&self) -> usize {
        self.held.iter().map(|mark| mark.1).sum()
    }

    /// How many traces.
    pub fn traces(&self) -> usize {
        self.asked / MARKS.len()
    }

    /// All traces of several kinds as one.
    pub fn of_all(scores: &[Self]) -> Self {
        let mut all = Self::empty("all traces");
        for score in scores {
            for (mark, errors) in score.errors.iter().enumerate() {
                for (into, from) in all.errors[mark].iter_mut().zip(errors) {
                    into.extend(from);
                }
                all.held[mark].0 += score.held[mark].0;
                all.held[mark].1 += score.held[mark].1;
            }
            all.asked += score.asked;
            all.worst = all.worst.max(score.worst);
        }
        all.sorted()
    }

    fn empty(kind: &'static str) -> Self {
        Self { kind, errors: Default::default(), held: Default::default(), asked: 0, worst: 1.0 }
    }

    fn sorted(mut self) -> Self {
        self.errors.iter_mut().flatten().for_each(|errors| errors.sort_by(f64::total_cmp));
        self
    }

    fn add(&mut self, played: &Played) {
        self.worst = self.worst.max(played.worst);
        for (mark, asked) in played.asked.iter().enumerate() {
            self.asked += 1;
            let Some(Asked { truth, range: [low, middle, high], others }) = asked else { continue };
            let answers = std::iter::once(Some(*middle)).chain(others.iter().copied());
            for (errors, answer) in self.errors[mark].iter_mut().zip(answers) {
                // No answer is as wrong as one that is off by all.
                errors.push(answer.map_or(1.0, |answer| (answer - truth).abs() / truth));
            }
            self.held[mark].0 += usize::from(low <= truth && truth <= high);
            self.held[mark].1 += 1;
        }
    }
}

/// How the rules did on the traces of a kind.
pub fn measure(kind: &'static str, traces: &[Trace]) -> Score {
    let mut score = Score::empty(kind);
    traces.iter().for_each(|trace| score.add(&play(trace)));
    score.sorted()
}
