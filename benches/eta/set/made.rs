//! Made traces of the kinds that real tasks show. All random numbers come from the seed.

use super::trace::{Event, Trace};

/// What the traces of a kind have in common. Lengths, sizes, rates of reports, factors and the place of a turn differ from
/// seed to seed.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// Each unit costs the same, but for noise.
    Steady,
    /// The last unit costs two to four times as much as the first one.
    Slowing,
    /// The other way round.
    Speeding,
    /// Chunks at once, planned delays between them that are longer than the work.
    BurstsWithPlannedDelays,
    /// A long silence before the first unit.
    Preparation,
    /// The first seventh is two to four times slower.
    WarmUp,
    /// From a turn in the first half on, two to four times slower or quicker.
    TwoSpeeds,
    /// Between the reports of growth come as many that bring only a message.
    MessagesOnly,
    /// Reports without a beat, over units whose cost differs widely.
    IrregularReports,
    /// After a fifth of the work the total is found to be another one.
    TotalRevised,
}

/// All kinds with their names.
pub const KINDS: [(&str, Kind); 10] = [
    ("steady", Kind::Steady),
    ("slowing", Kind::Slowing),
    ("speeding up", Kind::Speeding),
    ("bursts with planned delays", Kind::BurstsWithPlannedDelays),
    ("long preparation", Kind::Preparation),
    ("warm-up", Kind::WarmUp),
    ("two speeds", Kind::TwoSpeeds),
    ("message-only noise", Kind::MessagesOnly),
    ("irregular reports", Kind::IrregularReports),
    ("total revised", Kind::TotalRevised),
];

/// A small generator (xorshift) for numbers that are the same on every machine.
struct Dice(u64);

impl Dice {
    fn new(kind: Kind, seed: u64) -> Self {
        let mut dice =
            Self((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ (kind as u64 + 1).wrapping_mul(0xD1B5_4A32));
        for _ in 0..8 {
            dice.unit();
        }
        dice
    }

    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn pick(&mut self, of: &[f64]) -> f64 {
        of[(self.unit() * of.len() as f64) as usize]
    }

    /// Around 1, log-normal.
    fn factor(&mut self, spread: f64) -> f64 {
        let normal = (-2.0 * self.unit().max(1e-12).ln()).sqrt() * (std::f64::consts::TAU * self.unit()).cos();
        (spread * normal - spread * spread / 2.0).exp()
    }

    /// Around 1, exponential: the gaps between things that have no beat.
    fn gap(&mut self) -> f64 {
        -self.unit().max(1e-12).ln()
    }
}

/// One trace of a kind.
pub fn trace(kind: Kind, seed: u64) -> Trace {
    let dice = &mut Dice::new(kind, seed);
    let units = dice.pick(&[200.0, 1_000.0, 4_000.0]);
    let reports = dice.pick(&[20.0, 40.0, 100.0, 200.0]);
    let ms = dice.pick(&[60_000.0, 300_000.0, 3_600_000.0]) / units;
    let factor = dice.pick(&[2.0, 3.0, 4.0]);
    let turn = 0.05 + 0.4 * dice.unit();
    let (mut spread, mut before_ms, mut beat) = (0.1, 0.0, true);
    let shape: Box<dyn Fn(f64) -> f64> = match kind {
        Kind::BurstsWithPlannedDelays => return bursts(dice),
        Kind::Slowing => Box::new(move |x| 1.0 + (factor - 1.0) * x),
        Kind::Speeding => Box::new(move |x| 1.0 - (1.0 - 1.0 / factor) * x),
        Kind::WarmUp => Box::new(move |x| 1.0 + (factor - 1.0) * (1.0 - x / 0.15).max(0.0)),
        Kind::TwoSpeeds => {
            let then = if dice.unit() < 0.5 { factor } else { 1.0 / factor };
            Box::new(move |x| if x < turn { 1.0 } else { then })
        }
        _ => Box::new(|_| 1.0),
    };
    match kind {
        Kind::Preparation => before_ms = units * ms * turn,
        Kind::IrregularReports => (spread, beat) = (0.7, false),
        _ => {}
    }
    let (mut at, mut due, mut events) = (before_ms, 0.0, Vec::new());
    for unit in 1..=units as i64 {
        at += ms * shape(unit as f64 / units) * dice.factor(spread);
        due += reports / units;
        if due >= 1.0 || unit == units as i64 {
            due = if beat { 0.0 } else { 1.0 - dice.gap() };
            events.push((at as i64, Event::Report(unit)));
        } else if matches!(kind, Kind::MessagesOnly) && dice.unit() < 0.5 {
            events.push((at as i64, Event::Report(events.last().map_or(0, told))));
        }
    }
    let all = units as i64;
    if matches!(kind, Kind::TotalRevised) {
        let early = events.len() / 5;
        events.insert(early, (events[early].0, Event::Total(Some(all))));
        events.insert(0, (0, Event::Total(Some((units * dice.pick(&[0.6, 0.8, 1.5])) as i64))));
    } else {
        events.insert(0, (0, Event::Total(Some(all))));
    }
    Trace { events }
}

/// The count that an event told.
fn told(event: &(i64, Event)) -> i64 {
    match event.1 {
        Event::Report(count) => count,
        _ => 0,
    }
}

fn bursts(dice: &mut Dice) -> Trace {
    let (chunk, total) = (50, 50 * dice.pick(&[10.0, 20.0, 60.0]) as i64);
    let (work_ms, delay_ms) = (dice.pick(&[1_000.0, 4_000.0]), dice.pick(&[2_000.0, 15_000.0]) as i64);
    let (mut at, mut events) = (0.0, Vec::new());
    for done in (10..=total).step_by(10) {
        at += work_ms / 5.0 * dice.factor(0.2);
        events.push((at as i64, Event::Report(done)));
        if done % chunk == 0 && done < total {
            events.push((at as i64, Event::Gap(delay_ms)));
            at += delay_ms as f64;
            events.push((at as i64, Event::Go));
        }
    }
    events.insert(0, (0, Event::Total(Some(total))));
    Trace { events }
}
