//! The estimate of the time left, on the set of the bench (`benches/eta/`) with fewer seeds: what docs/eta.md claims.

#[path = "../../benches/eta/set/mod.rs"]
mod set;

use set::play::MARKS;
use set::rules::NAMES;
use set::{RECORDED, Score};

/// Traces of each made kind; the table of the page is of 300.
const SEEDS: u64 = 40;
/// The longest factor by which the middle may be off on any trace, at any moment after a quarter of the work. A speed that
/// changes by four after the reading already costs four.
const ABSURD: f64 = 10.0;

/// For each kind the bounds of the median relative error at the marks. A speed that changes after the question can be
/// known to nobody: hence the first bound of two speeds.
const BOUNDS: [(&str, [f64; 3]); 11] = [
    ("steady", [0.02, 0.02, 0.02]),
    ("slowing", [0.08, 0.02, 0.02]),
    ("speeding up", [0.20, 0.04, 0.04]),
    ("bursts with planned delays", [0.02, 0.02, 0.02]),
    ("long preparation", [0.02, 0.02, 0.02]),
    ("warm-up", [0.03, 0.02, 0.02]),
    ("two speeds", [0.75, 0.04, 0.03]),
    ("message-only noise", [0.02, 0.02, 0.02]),
    ("irregular reports", [0.08, 0.07, 0.08]),
    ("total revised", [0.02, 0.02, 0.02]),
    (RECORDED, [0.05, 0.05, 0.05]),
];

fn scores() -> Vec<Score> {
    set::kinds().into_iter().map(|kind| set::measure(kind, &set::traces(kind, SEEDS))).collect()
}

/// Proves: G13.
#[test]
fn the_estimate_is_the_best_on_the_whole_set_never_absurd_and_its_range_holds_8_times_in_10() {
    let scores = scores();
    print!("{}", set::table(&scores));
    let kinds = BOUNDS.map(|(kind, _)| kind);
    assert_eq!(scores.iter().map(|score| score.kind).collect::<Vec<_>>(), kinds, "every kind has its bounds");
    for ((kind, bounds), score) in BOUNDS.into_iter().zip(&scores) {
        for (mark, bound) in bounds.into_iter().enumerate() {
            let ours = score.median(mark, 0);
            assert!(ours <= bound, "{kind} at {}: {ours:.3} is above {bound}", MARKS[mark]);
        }
        assert!(score.worst <= ABSURD, "{kind}: once off by a factor of {:.1}", score.worst);
        assert!(score.answered() * 100 >= score.asked * 94, "{kind}: an estimate is missing too often");
    }
    let all = Score::of_all(&scores);
    let mean = |of: &dyn Fn(&Score) -> f64| scores.iter().map(of).sum::<f64>() / scores.len() as f64;
    for (mark, at) in MARKS.into_iter().enumerate() {
        for (rule, name) in NAMES.into_iter().enumerate().skip(1) {
            let (ours, theirs) = (all.median(mark, 0), all.median(mark, rule));
            assert!(ours < theirs, "all traces at {at}: ours {ours:.3}, {name} {theirs:.3}");
            let (ours, theirs) = (mean(&|score| score.median(mark, 0)), mean(&|score| score.median(mark, rule)));
            assert!(ours * 2.0 < theirs, "the mean of the kinds at {at}: ours {ours:.3}, {name} {theirs:.3}");
        }
        assert!(all.held(mark) >= 0.8, "at {at} the range held {:.2} of the time", all.held(mark));
        assert!(mean(&|score| score.held(mark)) >= 0.8, "at {at} the range does not hold on the mean of the kinds");
    }
}

#[test]
fn the_page_about_the_estimate_shows_the_table_of_the_bench() {
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/eta.md")).unwrap();
    assert!(page.contains("cargo bench --bench eta --profile dev"), "the command that prints it");
    let kinds: Vec<Score> = set::kinds().into_iter().map(|kind| set::measure(kind, &set::traces(kind, 4))).collect();
    let table = set::table(&kinds);
    assert!(page.contains(table.lines().next().unwrap()), "the page's table has other columns than the bench prints");
    // The figures are those of more seeds; the recorded traces are the same.
    for line in table.lines().skip(2) {
        let name = line.split(['(', '|']).nth(1).unwrap().trim();
        let shown = page.lines().find(|shown| shown.starts_with(&format!("| {name}")));
        let shown = shown.unwrap_or_else(|| panic!("the page's table has no row for {name}"));
        assert!(name != RECORDED || shown == line, "the page shows {shown}, the bench prints {line}");
    }
}
