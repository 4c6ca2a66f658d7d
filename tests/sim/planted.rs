//! The proof that the simulator can fail: with a protection taken away it finds the promise that this breaks.

use crate::plant::Plant;
use crate::run::run;
use crate::seen::Seen;
use crate::violation::Invariant;

/// So many seeds have to be enough.
const SEEDS: u64 = 100;

fn turns_red(plant: Plant, broken: Invariant) {
    let failure = (0..SEEDS).find_map(|seed| run(seed, crate::STEPS, Some(plant), &Seen::default()).err());
    let failure = failure.unwrap_or_else(|| panic!("{plant:?} went unnoticed for {SEEDS} seeds"));
    assert_eq!(failure.violation.invariant, broken, "{plant:?} was found as something else:\n{failure}");
    assert!(!failure.events.is_empty() && failure.to_string().contains("SIM_SEED="), "it tells how to see it again");
}

/// Proves: G2.
#[test]
fn a_chunk_taken_without_a_test_of_its_token_turns_the_simulator_red() {
    turns_red(Plant::NoTokenTest, Invariant::Tokens);
}

/// Proves: G5.
#[test]
fn keys_without_a_unique_index_turn_the_simulator_red() {
    turns_red(Plant::NoUniqueIndex, Invariant::OneHolder);
}

/// Proves: G8.
#[test]
fn a_page_that_reads_nothing_anew_on_reconnect_turns_the_simulator_red() {
    turns_red(Plant::NoRereadOnReconnect, Invariant::Push);
}

/// Proves: G11.
#[test]
fn a_slot_that_is_freed_twice_turns_the_simulator_red() {
    turns_red(Plant::SlotFreedTwice, Invariant::Slots);
}

#[test]
fn a_claim_that_does_not_look_at_packs_turns_the_simulator_red() {
    turns_red(Plant::BlindToPacks, Invariant::Packs);
}

#[test]
fn a_parent_that_does_not_hear_its_last_child_end_turns_the_simulator_red() {
    turns_red(Plant::DeafParents, Invariant::Families);
}

#[test]
fn children_that_outlive_a_stopped_parent_turn_the_simulator_red() {
    turns_red(Plant::ForsakenChildren, Invariant::Families);
}
