//! What one chunk has used of its budgets, and whether it may go on.
//!
//! Nested runs are counted on the same meter. A budget that cannot come back (time, statements, output, log) is *over* once it
//! is hit, for the whole chunk: the interpreter is stopped where it looks next, the host answers no more, and whatever the
//! script still answers does not count. So a script that catches everything gains nothing. Memory, stack and nesting come
//! back when a run has ended; a script may catch such a hit and go on with what it has.

use super::super::limits::STATEMENTS_PER_LOOK;
use super::super::protocol::Run;
use crate::core::budget::{Budget, Budgets, Spent};
use std::cell::{Cell, RefCell};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Meter {
    budgets: Cell<Budgets>,
    time: Cell<Duration>,
    began_at: Cell<Instant>,
    until: Cell<Instant>,
    looks: Cell<u64>,
    output_bytes: Cell<u64>,
    log_bytes: Cell<u64>,
    /// The scripts that run, the outermost first.
    path: RefCell<Vec<String>>,
    over: RefCell<Option<Spent>>,
}

impl Meter {
    pub fn new() -> Self {
        let now = Instant::now();
        Self {
            budgets: Cell::default(),
            time: Cell::default(),
            began_at: Cell::new(now),
            until: Cell::new(now),
            looks: Cell::default(),
            output_bytes: Cell::default(),
            log_bytes: Cell::default(),
            path: RefCell::default(),
            over: RefCell::default(),
        }
    }

    /// Starts the clock of a chunk and forgets the one before.
    pub fn begin(&self, run: &Run) {
        let now = Instant::now();
        let time = Duration::from_millis(run.time_ms);
        self.budgets.set(run.budgets);
        self.time.set(time);
        self.began_at.set(now);
        // Beyond what the clock can hold is as good as never; the server's own limit is what ends it.
        self.until.set(now.checked_add(time).unwrap_or(now + Duration::from_hours(24)));
        self.looks.set(0);
        self.output_bytes.set(0);
        self.log_bytes.set(0);
        *self.path.borrow_mut() = vec![run.name.clone()];
        *self.over.borrow_mut() = None;
    }

    pub fn budgets(&self) -> Budgets {
        self.budgets.get()
    }

    /// When the time of the chunk ends.
    pub fn until(&self) -> Instant {
        self.until.get()
    }

    /// Called by the interpreter every [`STATEMENTS_PER_LOOK`]; whether it must stop.
    pub fn look(&self) -> bool {
        self.looks.set(self.looks.get() + 1);
        let (limit, used) = (self.budgets.get().statements, self.looks.get() * STATEMENTS_PER_LOOK);
        if used > limit {
            self.end(Budget::Statements, limit, used);
        }
        self.is_over()
    }

    /// Whether a budget that cannot come back is used up. Once it is, it stays so.
    pub fn is_over(&self) -> bool {
        if self.over.borrow().is_none() && Instant::now() >= self.until.get() {
            let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            self.end(Budget::Timeout, millis(self.time.get()), millis(self.began_at.get().elapsed()));
        }
        self.over.borrow().is_some()
    }

    /// Which one, if any.
    pub fn over(&self) -> Option<Spent> {
        self.is_over();
        self.over.borrow().clone()
    }

    /// Counts JSON that is handed out; false when the budget does not allow it.
    pub fn hand_out(&self, bytes: usize) -> bool {
        self.count(&self.output_bytes, bytes, Budget::Output, self.budgets.get().output_bytes)
    }

    /// Counts text that is logged; false when the budget does not allow it.
    pub fn log(&self, bytes: usize) -> bool {
        self.count(&self.log_bytes, bytes, Budget::Log, self.budgets.get().log_bytes)
    }

    fn count(&self, counter: &Cell<u64>, bytes: usize, budget: Budget, limit: u64) -> bool {
        counter.set(counter.get().saturating_add(bytes as u64));
        if counter.get() > limit {
            self.end(budget, limit, counter.get());
        }
        !self.is_over()
    }

    fn end(&self, budget: Budget, limit: u64, used: u64) {
        let spent = self.spent(budget, limit, used, "");
        self.over.borrow_mut().get_or_insert(spent);
    }

    /// A budget that was hit by the script that runs now.
    pub fn spent(&self, budget: Budget, limit: u64, used: u64, at: &str) -> Spent {
        Spent::new(budget, limit, used, &self.path.borrow(), at)
    }

    /// Begins a nested run; refused when there are as many already as the budget allows.
    pub fn enter(&self, name: &str) -> Result<(), Spent> {
        let depth = u64::try_from(self.path.borrow().len()).unwrap_or(u64::MAX);
        let limit = u64::from(self.budgets.get().nesting);
        self.path.borrow_mut().push(name.to_owned());
        if depth <= limit {
            return Ok(());
        }
        let spent = self.spent(Budget::Nesting, limit, depth, "");
        self.leave();
        Err(spent)
    }

    /// Ends a nested run.
    pub fn leave(&self) {
        self.path.borrow_mut().pop();
    }

    /// How many runs are nested in the chunk's own at this moment.
    pub fn depth(&self) -> usize {
        self.path.borrow().len().saturating_sub(1)
    }
}
