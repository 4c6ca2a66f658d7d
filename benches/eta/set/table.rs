//! The table of docs/eta.md.

use super::play::{MARKS, Score};
use super::rules::NAMES;
use std::fmt::Write as _;

/// The scores as a Markdown table: of each rule the median relative errors at the marks, in %; of ours also how often the
/// range held, and the largest factor by which it was ever off.
pub fn table(scores: &[Score]) -> String {
    let mut text = String::from("| traces |");
    for name in NAMES {
        let _ = write!(text, " {name} |");
    }
    text.push_str(" range held | worst |\n|---|");
    text.push_str(&"---|".repeat(NAMES.len() + 2));
    text.push('\n');
    for score in scores.iter().chain([&Score::of_all(scores)]) {
        let _ = write!(text, "| {} ({}) |", score.kind, score.traces());
        for rule in 0..NAMES.len() {
            let cell = |mark| percent(score.median(mark, rule));
            let _ = write!(text, " {} |", each_mark(cell));
        }
        let _ = writeln!(text, " {} | {:.1} |", each_mark(|mark| percent(score.held(mark))), score.worst);
    }
    let _ = write!(text, "| mean of the kinds |");
    let mean = |of: &dyn Fn(&Score) -> f64| scores.iter().map(of).sum::<f64>() / scores.len() as f64;
    for rule in 0..NAMES.len() {
        let _ = write!(text, " {} |", each_mark(|mark| percent(mean(&|score| score.median(mark, rule)))));
    }
    let _ = writeln!(text, " {} | |", each_mark(|mark| percent(mean(&|score| score.held(mark)))));
    text
}

fn each_mark(cell: impl Fn(usize) -> String) -> String {
    (0..MARKS.len()).map(cell).collect::<Vec<_>>().join(" · ")
}

fn percent(share: f64) -> String {
    if share < 0.0995 { format!("{:.1}", share * 100.0) } else { format!("{:.0}", share * 100.0) }
}
