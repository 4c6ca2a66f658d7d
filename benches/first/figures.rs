//! What was measured, and the table of it. A figure of several rounds is told by its median; its ratio is the median of
//! the ratios of the rounds, each to the plain commits just before it, so that a busy machine spoils both alike.

use crate::plain::Plain;
use std::io::Write as _;
use std::time::Duration;

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things a second; its ratio is to plain commits a second.
    PerSecond,
    /// Milliseconds; its ratio is to the time of one plain commit.
    Ms,
    /// KiB; has no ratio.
    KiB,
}

struct Figure {
    name: String,
    unit: Unit,
    /// (value, plain commits a second before it).
    rounds: Vec<(f64, f64)>,
}

/// All figures of one run.
pub struct Figures {
    plain: Plain,
    rates: Vec<f64>,
    figures: Vec<Figure>,
}

impl Figures {
    /// An empty table beside plain commits.
    pub fn new(plain: Plain) -> Self {
        Self { plain, rates: Vec::new(), figures: Vec::new() }
    }

    /// Measures the plain commits anew, for the figures that are told next.
    pub async fn before_each(&mut self) {
        let rate = self.plain.commits_per_second().await;
        self.rates.push(rate);
    }

    /// Measures plain commits and then a figure.
    pub async fn take(&mut self, name: &str, unit: Unit, measure: impl AsyncFnOnce() -> f64) {
        self.before_each().await;
        let value = measure().await;
        self.tell(name, unit, value);
    }

    /// Puts a value of a figure down.
    pub fn tell(&mut self, name: &str, unit: Unit, value: f64) {
        let plain = *self.rates.last().expect("plain commits are measured before a figure is told");
        eprintln!("{name}: {value:.3} (plain commits: {plain:.0}/s)");
        match self.figures.iter_mut().find(|f| f.name == name) {
            Some(figure) => figure.rounds.push((value, plain)),
            None => self.figures.push(Figure { name: name.to_owned(), unit, rounds: vec![(value, plain)] }),
        }
    }

    /// Prints the table.
    pub fn print(&self, took: Duration) {
        let mut text = String::from("| figure | value | beside a plain commit |\n|---|---:|---:|\n");
        text += &format!("| plain one-row INSERT commits (P1) | {:.0} /s | 1 |\n", quantile(&self.rates, 0.5));
        for figure in &self.figures {
            let values: Vec<f64> = figure.rounds.iter().map(|(value, _)| *value).collect();
            let ratios: Vec<f64> =
                figure.rounds.iter().map(|(value, plain)| figure.unit.ratio(*value, *plain)).collect();
            let (value, ratio) = (quantile(&values, 0.5), quantile(&ratios, 0.5));
            text += &match figure.unit {
                Unit::PerSecond => format!("| {} | {value:.0} /s | {ratio:.2} × |\n", figure.name),
                Unit::Ms => format!("| {} | {value:.2} ms | {ratio:.1} commits |\n", figure.name),
                Unit::KiB => format!("| {} | {value:.1} KiB | |\n", figure.name),
            };
        }
        text += &format!("\nTook {:.0} s.\n", took.as_secs_f64());
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    }
}

impl Unit {
    fn ratio(self, value: f64, plain: f64) -> f64 {
        match self {
            Self::PerSecond => value / plain,
            Self::Ms => value * plain / 1_000.0,
            Self::KiB => 0.0,
        }
    }
}

/// A quantile of values in any order.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}
