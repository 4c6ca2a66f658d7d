//! What reaches a mailbox when announcements come late, twice, or the wrong way round.

use super::*;
use crate::core::ids::Revision;
use crate::core::lifecycle::Step;
use crate::core::principal::{Principal, Role};
use crate::core::submit::Submit;
use crate::core::task::State;

const NOW: Mono = Mono(1_000);

pub(in crate::push) fn task(revision: i64) -> Task {
    let caller = Principal { tenant: "acme".into(), user: "bob".into(), role: Role::User, scopes: Vec::new() };
    let submit = Submit {
        id: "00000000-0000-7000-8000-000000000001".parse().expect("is an id"),
        ..Submit::new(caller, "import", serde_json::json!({}))
    };
    let revision = Revision(revision);
    Task { revision, head: Head(revision.0), ..submit.into_task(&mut Step::at(Millis(0))) }
}

/// A registry with one connection of bob, and its mailbox.
fn watched() -> (Registry, Arc<Mailbox>) {
    let mut registry = Registry::default();
    let owner = ("acme".to_owned(), "bob".to_owned());
    let Ok((_, mailbox, _)) = registry.add(&owner, None, &Limits::default()) else { panic!("there is room") };
    (registry, mailbox)
}

#[test]
fn a_late_announcement_does_not_bring_a_deleted_task_back() {
    let (mut registry, mailbox) = watched();
    let mut gone = task(3);
    registry.watch(gone.id, &mailbox);
    let deleted = Change::Gone {
        tenant: std::mem::take(&mut gone.tenant),
        owner: std::mem::take(&mut gone.owner),
        id: gone.id,
        revision: Revision(4),
        head: Head(4),
        record: None,
    };
    let ended = Task { state: State::Cancelled, ..task(2) };
    registry.dispatch(&[Change::Task(Box::new(ended))], NOW);
    mailbox.take(true);
    registry.dispatch(std::slice::from_ref(&deleted), NOW);
    let told = mailbox.take(false).changes;
    let gone = |told: &Delivery| told.urgent && matches!(told.what, What::Gone(Revision(4)));
    assert!(!told.is_empty() && told.iter().all(|(_, told)| gone(told)), "a deletion is told at once: {told:?}");
    registry.dispatch(&[Change::Task(Box::new(task(3))), deleted], NOW);
    assert!(mailbox.take(true).changes.is_empty(), "what came late or twice is no news");
}
