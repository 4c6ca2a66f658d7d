//! What was measured, and the table of it. A figure of several rounds is told by its median; its ratio is the median of
//! the ratios of the rounds, each to the plain commits just before it, so that a busy machine spoils both alike.

use crate::plain::{Plain, Rates};
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
    /// (value, plain commits before it).
    rounds: Vec<(f64, Rates)>,
}

/// One of the rates, where it was taken.
type Of = fn(&Rates) -> Option<f64>;

/// All figures of one run.
pub struct Figures {
    plain: Plain,
    rates: Vec<Rates>,
    figures: Vec<Figure>,
}

impl Figures {
    /// An empty table beside plain commits.
    pub fn new(plain: Plain) -> Self {
        Self { plain, rates: Vec::new(), figures: Vec::new() }
    }

    /// Measures the plain commits anew, for the figures that are told next.
    pub async fn before_each(&mut self) {
        let rates = self.plain.measure().await;
        self.rates.push(rates);
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
        eprintln!("{name}: {value:.3} (plain commits: {:.0}/s)", plain.one);
        match self.figures.iter_mut().find(|f| f.name == name) {
            Some(figure) => figure.rounds.push((value, plain)),
            None => self.figures.push(Figure { name: name.to_owned(), unit, rounds: vec![(value, plain)] }),
        }
    }

    /// Prints the table: each figure beside one client (P1), and on a server beside 32 of them (P32).
    pub fn print(&self, of: &str, took: Duration) {
        let server = self.rates.iter().any(|r| r.of_server.is_some());
        let mut text = String::from(if server {
            "| figure | value | beside P1 | beside P32 |\n|---|---:|---:|---:|\n"
        } else {
            "| figure | value | beside a plain commit |\n|---|---:|---:|\n"
        });
        let mut row = |name: &str, value: String, ratios: [String; 2]| {
            let [one, all] = ratios;
            text += &format!("| {name} | {value} | {one} |");
            text += &if server { format!(" {all} |\n") } else { "\n".to_owned() };
        };
        let plain = |of: Of| {
            let values: Vec<f64> = self.rates.iter().filter_map(of).collect();
            (!values.is_empty()).then(|| quantile(&values, 0.5))
        };
        let measures: [(&str, Of); 3] = [
            ("plain one-row INSERT commits by one client (P1)", |r| Some(r.one)),
            ("by 32 clients (P32)", |r| Some(r.of_server?.0)),
            ("500-row INSERT commits by one client (P500), rows", |r| Some(r.of_server?.1)),
        ];
        for (name, of) in measures {
            if let Some(value) = plain(of) {
                row(name, format!("{value:.0} /s"), [String::new(), String::new()]);
            }
        }
        for Figure { name, unit, rounds } in &self.figures {
            let values: Vec<f64> = rounds.iter().map(|(value, _)| *value).collect();
            let beside = |of: Of| {
                let ratios: Option<Vec<f64>> = rounds.iter().map(|(v, r)| Some(unit.ratio(*v, of(r)?))).collect();
                ratios.map_or_else(String::new, |ratios| unit.told(quantile(&ratios, 0.5)))
            };
            let ratios = [beside(|r| Some(r.one)), beside(|r| Some(r.of_server?.0))];
            row(name, unit.value(quantile(&values, 0.5)), ratios);
        }
        text.insert_str(0, &format!("\n{of}\n\n"));
        text += &format!("\nTook {:.0} s.\n", took.as_secs_f64());
        std::io::stdout().write_all(text.as_bytes()).unwrap();
    }
}

impl Unit {
    fn value(self, value: f64) -> String {
        match self {
            Self::PerSecond => format!("{value:.0} /s"),
            Self::Ms => format!("{value:.2} ms"),
            Self::KiB => format!("{value:.1} KiB"),
        }
    }

    fn told(self, ratio: f64) -> String {
        match self {
            Self::PerSecond => format!("{ratio:.2} ×"),
            Self::Ms => format!("{ratio:.1} commits"),
            Self::KiB => String::new(),
        }
    }

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
