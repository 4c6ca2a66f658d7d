//! Pictures of tasks: points are written in the commits of what they show, stay few, and are read back by whoever opens the
//! database later.

use super::fixture::*;
use super::words::*;
use serde_json::json;
use taskbell::core::ids::TaskId;
use taskbell::core::lifecycle::Ask;
use taskbell::core::picture::{FIRST_MS, MOST, Point};
use taskbell::core::view::activity;
use taskbell::store::Claimed;

store_suite! {
    a_task_of_less_than_two_seconds_has_no_picture
    a_point_holds_what_was_true_and_what_was_told_at_its_instant
    a_stale_writer_draws_nothing
    a_long_picture_keeps_its_first_and_its_last_point_and_never_grows_beyond_its_size
    a_takeover_and_a_resume_go_on_with_the_picture
    a_deleted_task_takes_its_picture_along
}

mod across_processes {
    use super::*;
    database_suite! { whoever_opens_the_database_later_finds_the_same_picture }

    async fn whoever_opens_the_database_later_finds_the_same_picture(f: &Fixture) {
        let (id, claimed) = started(f).await;
        reports(f, &claimed, 30).await;
        let picture = picture(f, id).await;
        assert!(picture.len() > 10, "{picture:?}");
        assert_eq!(f.opened_again().await.points(id).await.unwrap(), picture);
    }
}

async fn started(f: &Fixture) -> (TaskId, Claimed) {
    let id = f.new_task(click()).await;
    (id, f.claim_one().await)
}

/// One report a second, each of ten rows of ten thousand.
async fn reports(f: &Fixture, claimed: &Claimed, count: i64) {
    let before = f.get(claimed.task.id).await.progress.current;
    for n in 1..=count {
        f.pass(1_000);
        assert!(f.report(claimed, json!({"current": before + n * 10, "total": 10_000})).await);
    }
}

async fn picture(f: &Fixture, id: TaskId) -> Vec<Point> {
    f.store.points(id).await.unwrap()
}

async fn a_task_of_less_than_two_seconds_has_no_picture(f: &Fixture) {
    let (id, claimed) = started(f).await;
    f.pass(FIRST_MS / 2);
    f.report(&claimed, json!({"current": 5, "total": 10})).await;
    f.pass(FIRST_MS / 2 - 1);
    f.end(&claimed, done()).await;
    assert_eq!(picture(f, id).await, []);
}

async fn a_point_holds_what_was_true_and_what_was_told_at_its_instant(f: &Fixture) {
    // What an action usually takes is a part of what is told.
    let (_, earlier) = started(f).await;
    reports(f, &earlier, 40).await;
    f.end(&earlier, done()).await;
    let (id, claimed) = started(f).await;
    reports(f, &claimed, 10).await;
    let task = f.get(id).await;
    let prior = f.store.usual("acme", "import").await.unwrap().prior;
    assert!(prior.is_some());
    let told = task.estimator.read(f.now(), &task.progress, activity(&task), prior);
    let drawn = picture(f, id).await;
    let last = drawn.last().unwrap();
    assert_eq!((last.at, last.current, last.total, last.attempt), (f.now(), 100, Some(10_000), 1));
    assert_eq!(last.finish_at, told.finish_at);
    let after = |seconds: Option<i64>| seconds.map(|s| f.now().plus(s * 1_000));
    assert_eq!((last.low_at, last.high_at), (after(told.low_seconds), after(told.high_seconds)));
    assert_eq!(drawn.len(), 5, "one in each cell of two seconds: {drawn:?}");
    assert_eq!(drawn[0].finish_at, None, "nothing was told so early");
}

async fn a_stale_writer_draws_nothing(f: &Fixture) {
    let (id, claimed) = started(f).await;
    reports(f, &claimed, 4).await;
    f.lose_leases().await;
    let before = picture(f, id).await;
    f.pass(10_000);
    assert!(!f.report(&claimed, json!({"current": 9_000, "total": 10_000})).await);
    f.end(&claimed, more(9_500)).await;
    assert_eq!(picture(f, id).await, before);
}

async fn a_long_picture_keeps_its_first_and_its_last_point_and_never_grows_beyond_its_size(f: &Fixture) {
    let (id, mut claimed) = started(f).await;
    reports(f, &claimed, 3).await;
    let first = picture(f, id).await[0].clone();
    for n in 0..300 {
        f.pass(2_000 + n * 20);
        assert!(f.renew("n1", &[&claimed]).await == [taskbell::store::Renewed::Ok]);
        assert!(f.report(&claimed, json!({"current": 100 + n, "total": 10_000})).await);
        if n % 25 == 0 {
            f.must(id, Ask::Pause).await;
            f.end(&claimed, more(101 + n)).await;
            f.must(id, Ask::Resume).await;
            claimed = f.claim_one().await;
        }
        let drawn = picture(f, id).await;
        assert!(drawn.len() <= MOST, "{} points", drawn.len());
        assert_eq!(drawn[0], first);
        assert!(drawn.windows(2).all(|pair| pair[0].at < pair[1].at && pair[0].current <= pair[1].current));
    }
    f.pass(1_000);
    f.end(&claimed, done()).await;
    let drawn = picture(f, id).await;
    assert_eq!(drawn.last().unwrap().at, f.now(), "the end is a point");
    assert!(drawn.len() > MOST / 3, "{} points", drawn.len());
}

async fn a_takeover_and_a_resume_go_on_with_the_picture(f: &Fixture) {
    let (id, claimed) = started(f).await;
    reports(f, &claimed, 4).await;
    f.lose_leases().await;
    let lost = f.now();
    f.pass(3_000);
    let again = f.claim_on("n2", 1).await.pop().unwrap();
    let taken = f.now();
    f.pass(3_000);
    f.must(id, Ask::ForceCancel).await;
    f.pass(60_000);
    f.must(id, Ask::Resume).await;
    let resumed = f.claim_one().await;
    reports(f, &resumed, 4).await;
    let at: Vec<_> = picture(f, id).await.iter().map(|p| (p.at, p.current)).collect();
    assert!(at.contains(&(lost, 40)) && at.contains(&(taken, 40)), "{at:?}");
    assert_eq!(at.last(), Some(&(f.now(), 80)));
    assert_eq!(again.task.id, id);
}

async fn a_deleted_task_takes_its_picture_along(f: &Fixture) {
    let (id, claimed) = started(f).await;
    let (other, beside) = started(f).await;
    reports(f, &claimed, 4).await;
    reports(f, &beside, 4).await;
    f.end(&claimed, done()).await;
    assert!(!picture(f, id).await.is_empty());
    assert_eq!(f.heard(f.store.delete(&bob(), vec![id]).await.unwrap()), [Some(true)]);
    assert_eq!(picture(f, id).await, []);
    assert!(!picture(f, other).await.is_empty());
    assert_eq!(picture(f, TaskId::new()).await, []);
}
