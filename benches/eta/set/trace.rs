//! What happened to one task, as far as an estimate hears of it. Times in ms since its first claim.

/// One thing that is told to an estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    /// A report with the absolute count. It may be the same as before: then only a message was told.
    Report(i64),
    /// The total as it is from now on; none = nobody knows.
    Total(Option<i64>),
    /// The chunk asked for the next one after so many ms.
    Gap(i64),
    /// The work stopped for a reason that is not its own rhythm.
    Stop,
    /// The next chunk started.
    Go,
}

/// A task from its first claim to its success. Invariants: instants do not fall; the last event is the report that ended
/// it.
#[derive(Clone, Debug)]
pub struct Trace {
    pub events: Vec<(i64, Event)>,
}

impl Trace {
    /// When the work was done.
    pub fn end_ms(&self) -> i64 {
        self.events.last().expect("a trace has an end").0
    }

    /// What was done in all.
    pub fn all(&self) -> i64 {
        let counts = self.events.iter().filter_map(|(_, event)| match event {
            Event::Report(count) => Some(*count),
            _ => None,
        });
        counts.max().expect("a trace has reports")
    }

    /// For how long the work stood still, by [`Event::Stop`], after an instant: no estimate is asked to know that.
    pub fn stopped_after_ms(&self, at: i64) -> i64 {
        let (mut stopped_at, mut stopped) = (None, 0);
        for (ms, event) in &self.events {
            match (event, stopped_at) {
                (Event::Stop, None) => stopped_at = Some(*ms),
                (Event::Go, Some(since)) => {
                    stopped += (ms - since.max(at)).max(0);
                    stopped_at = None;
                }
                _ => {}
            }
        }
        stopped
    }
}
