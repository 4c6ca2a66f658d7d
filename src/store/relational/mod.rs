//! The port over SQL, written once. What differs between databases is the text of some statements (`sql/<db>/`) and a
//! [`driver`]: how it connects, binds values, tells faults, and locks.

mod accounts;
pub(crate) mod cells;
pub(crate) mod driver;
mod nodes;
mod read;
mod recall;
mod rows;
mod tx;

use driver::Driver;
use recall::Recall;

/// A store on a database that speaks SQL.
#[derive(Debug)]
pub struct SqlStore<D> {
    driver: D,
    epoch: String,
    recall: Recall,
}

impl<D: Driver> SqlStore<D> {
    /// A store over a database that is up to date and is named by this epoch.
    pub(in crate::store) fn new(driver: D, epoch: String) -> Self {
        Self { driver, epoch, recall: Recall::default() }
    }
}
