//! What a mailbox promises, by itself: latest wins, nothing at or below a snapshot, no head that was not delivered.

use super::*;

const NOW: Mono = Mono(1_000);

fn open_at(head: i64) -> Mailbox {
    let mailbox = Mailbox::new(&Limits::default());
    mailbox.snapshot_sent(Head(head), NOW);
    mailbox
}

fn id(n: u128) -> TaskId {
    uuid::Uuid::from_u128(n).to_string().parse().unwrap()
}

/// A change without a task behind it, which is all that a mailbox looks at.
fn change(task: u128, revision: i64, head: i64, urgent: bool) -> Delivery {
    Delivery { id: id(task), head: Head(head), what: What::Gone(Revision(revision)), urgent }
}

fn deliver(mailbox: &Mailbox, changes: &[Delivery]) {
    let heads: Vec<Head> = changes.iter().map(|change| change.head).collect();
    mailbox.deliver(Lane::Me, changes, &heads, NOW);
}

fn revisions(taken: &Taken) -> Vec<(TaskId, i64)> {
    taken.changes.iter().map(|(_, change)| (change.id, change.revision().0)).collect()
}

#[test]
fn p5_many_changes_of_one_task_are_one_change_and_the_latest_wins() {
    let mailbox = open_at(0);
    for n in 1..=100 {
        deliver(&mailbox, &[change(1, n, n, n == 7)]);
    }
    let taken = mailbox.take(true);
    assert_eq!(revisions(&taken), [(id(1), 100)]);
    assert_eq!(taken.head, Head(100));
    assert!(taken.changes[0].1.urgent, "a changed state is not forgotten in the progress after it");
    assert!(mailbox.take(true).changes.is_empty());
}

#[test]
fn p3_what_a_snapshot_holds_is_dropped_and_what_is_newer_stays() {
    let mailbox = Mailbox::new(&Limits::default());
    deliver(&mailbox, &[change(1, 5, 10, true)]);
    deliver(&mailbox, &[change(2, 1, 11, true)]);
    deliver(&mailbox, &[change(1, 6, 12, true)]);
    mailbox.snapshot_sent(Head(11), NOW);
    let taken = mailbox.take(true);
    assert_eq!(revisions(&taken), [(id(1), 6)]);
    assert_eq!(taken.head, Head(12));
    deliver(&mailbox, &[change(2, 1, 11, true)]);
    assert!(mailbox.take(true).changes.is_empty(), "a late announcement of what was told is no news");
}

#[test]
fn p3_what_a_snapshot_holds_is_no_news_either_while_the_bus_is_distrusted() {
    let mailbox = open_at(10);
    mailbox.stale_all(NOW + 500);
    deliver(&mailbox, &[change(1, 4, 10, true), change(2, 7, 11, true)]);
    assert_eq!(revisions(&mailbox.take(true)), [(id(2), 7)], "only what is newer than the snapshot");
}

#[test]
fn p5_a_hidden_page_is_not_told_a_head_whose_progress_it_did_not_get() {
    let mailbox = open_at(10);
    deliver(&mailbox, &[change(1, 2, 11, false)]);
    deliver(&mailbox, &[change(2, 9, 12, true)]);
    let taken = mailbox.take(false);
    assert_eq!(revisions(&taken), [(id(2), 9)]);
    assert_eq!(taken.head, Head(10), "else it would be answered `same` when it comes back");
    let taken = mailbox.take(true);
    assert_eq!((revisions(&taken), taken.head), (vec![(id(1), 2)], Head(12)));
}

#[test]
fn p4_a_head_that_does_not_arrive_asks_for_a_snapshot() {
    let mailbox = open_at(10);
    deliver(&mailbox, &[change(2, 1, 12, true)]);
    assert_eq!(mailbox.take(true).head, Head(10), "11 may still come");
    let gap_at = mailbox.pending().gap_at.expect("the gap is seen");
    deliver(&mailbox, &[change(1, 1, 11, true)]);
    assert_eq!(mailbox.take(true).head, Head(12));
    assert_eq!(mailbox.pending().gap_at, None, "it was only late");

    deliver(&mailbox, &[change(2, 2, 14, true)]);
    assert!(mailbox.pending().gap_at.is_some_and(|at| at >= gap_at));
    mailbox.give_up_gap(NOW);
    assert!(mailbox.take_stale(NOW, true).all);
    mailbox.take(true);
    mailbox.snapshot_sent(Head(14), NOW);
    deliver(&mailbox, &[change(2, 3, 15, true)]);
    assert_eq!(mailbox.take(true).head, Head(15));
}

#[test]
fn p4_a_head_that_is_said_to_exist_has_to_arrive() {
    let mailbox = open_at(10);
    mailbox.expect(Head(10), NOW);
    assert_eq!(mailbox.pending().gap_at, None);
    mailbox.expect(Head(11), NOW);
    assert!(mailbox.pending().gap_at.is_some());
    deliver(&mailbox, &[change(1, 1, 11, true)]);
    assert_eq!(mailbox.pending().gap_at, None);
}

#[test]
fn p6_a_mailbox_is_bounded_and_falls_back_to_a_snapshot() {
    let limits = Limits { mailbox_count: 10, ..Limits::default() };
    let mailbox = Mailbox::new(&limits);
    mailbox.snapshot_sent(Head(0), NOW);
    for n in 1..=11 {
        deliver(&mailbox, &[change(n as u128, 1, n, true)]);
    }
    assert!(mailbox.take(true).changes.is_empty());
    assert!(mailbox.take_stale(NOW, true).all);
    assert_eq!(mailbox.known(), None, "what was dropped was not told");
}

#[test]
fn changes_of_a_subscribed_task_move_no_head() {
    let mailbox = open_at(10);
    mailbox.deliver(Lane::Task, &[change(1, 3, 99, true)], &[], NOW);
    assert_eq!(mailbox.take(true).head, Head(10));
    mailbox.deliver(Lane::Task, &[change(1, 4, 100, true)], &[], NOW);
    mailbox.task_sent(id(1), Revision(4));
    assert!(mailbox.take(true).changes.is_empty(), "the snapshot of the task holds it");
}
