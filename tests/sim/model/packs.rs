//! The switches of packs, and the chunks that they allow.

use crate::actions::PACKS;
use crate::violation::{Checked, Invariant, must};
use std::collections::BTreeSet;
use taskbell::core::task::Task;
use taskbell::store::PackRow;

/// Packs that are switched off.
#[derive(Default)]
pub struct Packs(BTreeSet<String>);

impl Packs {
    /// A chunk that starts is of no pack that is off.
    pub fn starts(&self, before: Option<&Task>, after: &Task) -> Checked {
        let claimed = after.under_way() && before.is_none_or(|before| !before.under_way());
        let off = after.pack.as_ref().is_some_and(|pack| self.0.contains(pack));
        must(!(claimed && off), Invariant::Packs, || format!("a chunk of a pack that is off started: {after:?}"))
    }

    /// Packs were switched.
    pub fn switched(&mut self, rows: Vec<PackRow>) {
        for row in rows {
            if row.paused {
                self.0.insert(row.name);
            } else {
                self.0.remove(&row.name);
            }
        }
    }

    /// A serial pack has one lease.
    pub fn one_at_a_time<'a>(&self, rows: impl Iterator<Item = &'a Task>) -> Checked {
        let leased: Vec<&Task> = rows.filter(|task| task.pack.is_some() && task.under_way()).collect();
        for (name, _) in PACKS.iter().filter(|(_, serial)| *serial) {
            let count = leased.iter().filter(|task| task.pack.as_deref() == Some(*name)).count();
            must(count <= 1, Invariant::Packs, || format!("{count} chunks of the serial pack {name}: {leased:?}"))?;
        }
        Ok(())
    }
}
