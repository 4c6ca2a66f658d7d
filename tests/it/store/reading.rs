//! Reading verbs: lists by keyset, counts, the notification center and its marks, places in the queue, and what is kept
//! beside tasks: files.

use super::fixture::*;
use super::words::*;
use serde_json::json;
use std::collections::BTreeSet;
use taskbell::core::ids::{Head, TaskId};
use taskbell::core::lifecycle::Ask;
use taskbell::core::principal::Role;
use taskbell::core::submit::Submit;
use taskbell::core::task::{ErrorKind, RecordRef, State};
use taskbell::core::time::Millis;
use taskbell::store::{
    FileRow, ListParams, Mark, MarkFilter, MarkParams, OwnerHeads, Reach, SortBy, StoreError, TEXT_CHARS,
};

store_suite! {
    pages_by_keyset_hold_each_task_once_in_order_both_ways
    each_filter_of_a_list_selects_what_it_says
    a_search_text_means_itself
    a_list_stays_within_its_reach
    a_center_shows_the_unfinished_first_then_the_unseen_then_the_newest
    marks_imply_each_other_and_count_once
    marks_up_to_a_head_leave_later_changes_alone
    marks_touch_only_the_owners_tasks
    an_end_is_unseen_again_after_a_resume
    a_head_moves_with_each_commit_that_changes_a_task_of_its_owner
    the_change_log_of_an_owner_tells_what_changed_after_a_head_and_when_tasks_were_deleted
    places_in_the_queue_follow_the_order_of_claims
    what_an_action_usually_takes_is_the_median_of_its_last_successes
    the_next_due_instant_is_that_of_the_first_waiting_chunk
    a_timeline_is_read_in_parts
    files_are_kept_found_and_forgotten_when_their_time_is_over
}

/// All pages of a list, one after the other.
pub async fn ids_of(f: &Fixture, params: ListParams) -> Vec<TaskId> {
    let (mut ids, mut after) = (Vec::new(), params.after);
    loop {
        let page = f.store.list(ListParams { after, ..params.clone() }).await.unwrap();
        assert!(page.items.len() <= params.limit);
        ids.extend(page.items.iter().map(|t| t.id));
        match page.next {
            Some(next) => after = Some(next),
            None => return ids,
        }
    }
}

async fn pages_by_keyset_hold_each_task_once_in_order_both_ways(f: &Fixture) {
    let mut made = Vec::new();
    for n in 0..23 {
        made.push(f.new_task(Submit { priority: n % 3, ..click() }).await);
        // Several in one millisecond, so that the id has to decide.
        f.pass(i64::from(n % 4 == 0));
    }
    for claimed in f.claim(9).await {
        f.pass(1);
        f.end(&claimed, done()).await;
    }
    for sort in [SortBy::CreatedAt, SortBy::UpdatedAt, SortBy::FinishedAt, SortBy::Priority] {
        let params = ListParams { sort, limit: 5, ..ListParams::default() };
        let up = ids_of(f, params.clone()).await;
        let mut down = ids_of(f, ListParams { descending: true, ..params.clone() }).await;
        assert_eq!(up.iter().collect::<BTreeSet<_>>(), made.iter().collect(), "{sort:?}");
        assert_eq!(up.len(), made.len());
        down.reverse();
        assert_eq!(up, down, "{sort:?}");
        assert_eq!(up, ids_of(f, ListParams { limit: 200, ..params.clone() }).await);
        for odd in [i64::MIN, -1, 0, i64::MAX] {
            let beyond = ListParams { after: Some((odd, TaskId::new())), ..params.clone() };
            assert!(ids_of(f, beyond).await.len() <= made.len());
        }
    }
    assert_eq!(
        ids_of(f, ListParams { limit: 7, ..ListParams::default() }).await,
        made,
        "the default is the order of coming"
    );
}

async fn each_filter_of_a_list_selects_what_it_says(f: &Fixture) {
    let record = |id: &str| Some(RecordRef { kind: "order".into(), id: id.into() });
    let one = f.new_task(Submit { record: record("1"), ..click() }).await;
    f.end(&f.claim_one().await, gives_up()).await;
    f.pass(10);
    let two = f.new_task(Submit { action: "sync".into(), record: record("2"), ..click() }).await;
    f.pass(10);
    let three = f.new_task(by(&alice())).await;
    let mark = MarkParams { mark: Mark::Archived, ids: vec![one], ..marks() };
    f.heard(f.store.mark(mark).await.unwrap());
    let t = f.get(two).await.created_at;
    let base = || ListParams { archived: true, limit: 50, ..ListParams::default() };
    for (params, found) in [
        (base(), vec![one, two, three]),
        (ListParams { archived: false, ..base() }, vec![two, three]),
        (ListParams { states: vec![State::Queued], ..base() }, vec![two, three]),
        (ListParams { states: vec![State::Failed, State::Running], ..base() }, vec![one]),
        (ListParams { action: Some("sync".into()), ..base() }, vec![two]),
        (ListParams { owner: Some("alice".into()), ..base() }, vec![three]),
        (ListParams { record: record("1"), ..base() }, vec![one]),
        (ListParams { record: record("3"), ..base() }, vec![]),
        (ListParams { from: Some(t), ..base() }, vec![two, three]),
        (ListParams { to: Some(t), ..base() }, vec![one]),
        (ListParams { from: Some(t), to: Some(t.plus(1)), ..base() }, vec![two]),
        (ListParams { limit: 0, ..base() }, vec![]),
    ] {
        let page = f.store.list(params.clone()).await.unwrap();
        assert_eq!(page.items.iter().map(|t| t.id).collect::<Vec<_>>(), found, "{params:?}");
    }
}

async fn a_search_text_means_itself(f: &Fixture) {
    let titles = ["50% done", "50 done", "a_b", "axb", r"c:\dir!", "it's", "导入 CAFÉ", "Импорт"];
    let record = RecordRef { kind: "order".into(), id: "Order-77".into() };
    f.new_task(Submit { record: Some(record), ..click() }).await;
    for title in titles {
        f.new_task(Submit { title: Some(title.into()), ..click() }).await;
    }
    let own_id = f.claim_one().await.task.id.to_string();
    for (text, found) in [
        ("%", 1),
        ("_", 1),
        ("!", 1),
        (r"\", 1),
        ("a_b", 1),
        ("A_B", 1),
        ("50%", 1),
        ("'", 1),
        ("导入", 1),
        ("CAFÉ", 1),
        ("Импорт", 1),
        ("order-7", 1),
        ("IMPORT", 9),
        ("", 9),
        ("%_%_", 0),
        (own_id.as_str(), 1),
        (own_id.to_uppercase().as_str(), 1),
    ] {
        let params = ListParams { text: Some(text.into()), limit: 50, ..ListParams::default() };
        assert_eq!(f.store.list(params).await.unwrap().items.len(), found, "{text}");
    }
    let long = |n| ListParams { text: Some("界".repeat(n)), limit: 50, ..ListParams::default() };
    assert!(f.store.list(long(TEXT_CHARS)).await.is_ok());
    assert!(matches!(f.store.list(long(TEXT_CHARS + 1)).await, Err(StoreError::Limit(_))));
}

async fn a_list_stays_within_its_reach(f: &Fixture) {
    let gina = principal("globex", "gina", Role::Admin);
    let (bobs, alices, ginas) =
        (f.new_task(click()).await, f.new_task(by(&alice())).await, f.new_task(by(&gina)).await);
    let platform = principal("*", "root", Role::Platform);
    for (who, seen) in [
        (bob(), vec![bobs]),
        (alice(), vec![alices]),
        (operator(), vec![bobs, alices]),
        (gina, vec![ginas]),
        (platform, vec![bobs, alices, ginas]),
        (principal("globex", "bob", Role::User), vec![]),
    ] {
        let reach = Reach::of(&who);
        let params = ListParams { reach: reach.clone(), limit: 50, ..ListParams::default() };
        assert_eq!(ids_of(f, params.clone()).await, seen, "{who:?}");
        let tasks = f.store.tasks(&reach, &[ginas, alices, bobs]).await.unwrap();
        assert_eq!(tasks.iter().map(|t| t.id).collect::<Vec<_>>(), seen);
        let counted: i64 = f.store.counts(&reach, true).await.unwrap().by_state.values().sum();
        assert_eq!(counted as usize, seen.len());
        let of_alice = ids_of(f, ListParams { owner: Some("alice".into()), ..params }).await;
        assert_eq!(of_alice, seen.into_iter().filter(|id| *id == alices).collect::<Vec<_>>());
    }
}

/// Marks of Bob's tasks.
fn marks() -> MarkParams {
    MarkParams {
        tenant: "acme".into(),
        owner: "bob".into(),
        mark: Mark::Seen,
        ids: Vec::new(),
        up_to: None,
        filter: MarkFilter::default(),
    }
}

fn with(filter: MarkFilter) -> MarkParams {
    MarkParams { filter, ..marks() }
}

async fn mark(f: &Fixture, params: MarkParams) -> usize {
    f.heard(f.store.mark(params).await.unwrap())
}

/// Makes tasks that have succeeded, one after the other.
async fn ended_tasks(f: &Fixture, count: usize) -> Vec<TaskId> {
    let mut ids = Vec::new();
    for _ in 0..count {
        f.pass(1);
        ids.push(f.new_task(click()).await);
        f.end(&f.claim_one().await, done()).await;
    }
    ids
}

async fn a_center_shows_the_unfinished_first_then_the_unseen_then_the_newest(f: &Fixture) {
    let old = ended_tasks(f, 3).await;
    mark(f, MarkParams { ids: old[1..].to_vec(), ..marks() }).await;
    f.pass(1);
    let running = f.new_task(click()).await;
    f.pass(1);
    let waiting = f.new_task(click()).await;
    let archived = ended_tasks_of(f, waiting).await;
    let center = f.store.center("acme", "bob").await.unwrap();
    let shown: Vec<TaskId> = center.tasks.iter().map(|t| t.id).collect();
    assert_eq!(shown, [waiting, running, old[0], old[2], old[1]]);
    assert!(!shown.contains(&archived) && !center.more);
    assert_eq!(center.counts.by_state, [(State::Queued, 1), (State::Running, 1)].into());
    assert_eq!((center.counts.unseen, center.counts.attention), (1, 0));
    assert_eq!((center.as_of, center.head), (f.now(), f.store.head("acme", "bob").await.unwrap()));
    f.submit((0..101).map(|_| click()).collect()).await;
    let center = f.store.center("acme", "bob").await.unwrap();
    assert!(center.more && center.tasks.len() == 100 && center.tasks.iter().all(|t| !t.state.is_final()));
    assert!(f.store.center("acme", "nobody").await.unwrap().tasks.is_empty());
}

/// One that is put away, while another one waits.
async fn ended_tasks_of(f: &Fixture, waiting: TaskId) -> TaskId {
    f.must(waiting, Ask::Pause).await;
    f.claim_one().await;
    let id = ended_tasks(f, 1).await[0];
    mark(f, MarkParams { mark: Mark::Archived, ids: vec![id], ..marks() }).await;
    f.must(waiting, Ask::Resume).await;
    id
}

async fn marks_imply_each_other_and_count_once(f: &Fixture) {
    let ids = ended_tasks(f, 3).await;
    let failed = f.new_task(click()).await;
    f.end(&f.claim_one().await, gives_up()).await;
    for (mark_with, id, set) in [
        (Mark::Seen, ids[0], (true, false, false)),
        (Mark::Read, ids[1], (true, true, false)),
        (Mark::Archived, ids[2], (true, true, true)),
    ] {
        let params = MarkParams { mark: mark_with, ids: vec![id], ..marks() };
        assert_eq!(mark(f, params.clone()).await, 1);
        let task = f.get(id).await;
        assert_eq!((task.seen_at.is_some(), task.read_at.is_some(), task.archived_at.is_some()), set);
        assert_eq!(mark(f, params).await, 0, "it is marked already");
        assert_eq!(f.get(id).await, task);
    }
    let counts = || async { f.store.center("acme", "bob").await.unwrap().counts };
    assert_eq!((counts().await.unseen, counts().await.attention), (1, 1));
    mark(f, marks()).await;
    assert_eq!((counts().await.unseen, counts().await.attention), (0, 1), "to have seen it is not to have read it");
    mark(f, MarkParams { mark: Mark::Read, ids: vec![failed], ..marks() }).await;
    assert_eq!(counts().await.attention, 0);
}

async fn marks_up_to_a_head_leave_later_changes_alone(f: &Fixture) {
    let before = ended_tasks(f, 2).await;
    let head = f.store.head("acme", "bob").await.unwrap();
    let after = ended_tasks(f, 1).await[0];
    let running = f.new_task(click()).await;
    f.claim_one().await;
    for mark_with in [Mark::Seen, Mark::Read, Mark::Archived] {
        let changed = mark(f, MarkParams { mark: mark_with, up_to: Some(head), ..marks() }).await;
        assert_eq!(changed, if mark_with == Mark::Seen { 2 } else { 0 }, "a mark is a change after the head");
    }
    assert!(f.get(before[0]).await.seen_at.is_some() && f.get(after).await.seen_at.is_none());
    let failed = with(MarkFilter { states: vec![State::Failed], ..MarkFilter::default() });
    let synced = with(MarkFilter { action: Some("sync".into()), ..MarkFilter::default() });
    assert_eq!((mark(f, failed).await, mark(f, synced).await), (0, 0));
    let states = vec![State::Succeeded];
    let all = with(MarkFilter { states, action: Some("import".into()), ..MarkFilter::default() });
    assert_eq!(mark(f, MarkParams { mark: Mark::Archived, ..all }).await, 3);
    assert_eq!(f.get(running).await.archived_at, None, "what runs is not put away");
}

async fn marks_touch_only_the_owners_tasks(f: &Fixture) {
    let hers = f.new_task(by(&alice())).await;
    f.end(&f.claim_one().await, done()).await;
    let row = f.get(hers).await;
    assert_eq!(mark(f, MarkParams { ids: vec![hers], ..marks() }).await, 0);
    assert_eq!(mark(f, marks()).await, 0);
    assert_eq!(mark(f, MarkParams { tenant: "globex".into(), owner: "alice".into(), ..marks() }).await, 0);
    assert_eq!(f.get(hers).await, row);
}

async fn an_end_is_unseen_again_after_a_resume(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, gives_up()).await;
    mark(f, MarkParams { mark: Mark::Archived, ids: vec![id], ..marks() }).await;
    f.must(id, Ask::Resume).await;
    assert!(f.store.center("acme", "bob").await.unwrap().tasks.iter().any(|t| t.id == id));
    f.end(&f.claim_one().await, gives_up()).await;
    let counts = f.store.center("acme", "bob").await.unwrap().counts;
    assert_eq!((counts.unseen, counts.attention), (1, 1));
}

async fn a_head_moves_with_each_commit_that_changes_a_task_of_its_owner(f: &Fixture) {
    let heads =
        || async { (f.store.head("acme", "bob").await.unwrap().0, f.store.head("acme", "alice").await.unwrap().0) };
    assert_eq!(heads().await, (0, 0));
    f.submit(vec![click(), click(), by(&alice())]).await;
    assert_eq!(heads().await, (1, 1), "one step a commit, however many tasks");
    let claimed = f.claim_one().await;
    assert_eq!(heads().await, (2, 1));
    f.renew("n1", &[&claimed]).await;
    f.sweep().await;
    f.ask(claimed.task.id, Ask::Resume).await;
    assert_eq!(heads().await, (2, 1), "nothing that anybody sees changed");
    f.end(&claimed, done()).await;
    f.heard(f.store.delete(&bob(), vec![claimed.task.id]).await.unwrap());
    assert_eq!(heads().await, (4, 1));
}

async fn the_change_log_of_an_owner_tells_what_changed_after_a_head_and_when_tasks_were_deleted(f: &Fixture) {
    let owner = |user: &str| ("acme".to_owned(), user.to_owned());
    let heads = async || f.store.heads(&[owner("bob"), owner("nobody")]).await.unwrap();
    let at = |head: i64, deleted: i64| OwnerHeads { head: Head(head), deleted: Head(deleted) };
    let changed = async |since: i64, most: usize| {
        let since = [(owner("bob"), Head(since)), (owner("nobody"), Head(0))];
        f.store.changed(&since, most).await.unwrap().iter().map(|t| t.id).collect::<BTreeSet<_>>()
    };
    let (first, second) = (f.new_task(click()).await, f.new_task(click()).await);
    f.submit(vec![by(&alice())]).await;
    assert_eq!(heads().await, [at(2, 0), at(0, 0)]);
    assert_eq!(changed(0, 9).await, BTreeSet::from([first, second]), "not those of another owner");
    assert_eq!(changed(1, 9).await, BTreeSet::from([second]));
    assert_eq!(changed(0, 1).await, BTreeSet::from([first]), "the earliest change of an owner first");
    f.ask(first, Ask::Cancel).await;
    assert_eq!(changed(2, 9).await, BTreeSet::from([first]), "a later change of it takes the place of the earlier");
    f.heard(f.store.delete(&bob(), vec![first]).await.unwrap());
    assert_eq!(heads().await[0], at(4, 4));
    f.ask(second, Ask::Pause).await;
    assert_eq!((heads().await[0], changed(3, 9).await), (at(5, 4), BTreeSet::from([second])));
    let revisions = f.store.revisions(&[first, second]).await.unwrap();
    assert_eq!(revisions.into_iter().collect::<Vec<_>>(), [(second, f.get(second).await.revision)]);
}

async fn places_in_the_queue_follow_the_order_of_claims(f: &Fixture) {
    let mut ids = Vec::new();
    for priority in [0, 3, 0, 9] {
        ids.push(f.new_task(Submit { priority, ..click() }).await);
        f.pass(1);
    }
    f.new_task(by(&principal("globex", "gina", Role::User))).await;
    let places = f.store.positions(&ids).await.unwrap();
    assert_eq!(ids.iter().map(|id| places[id]).collect::<Vec<_>>(), [3, 2, 4, 1]);
    let running = f.claim_task(ids[3]).await;
    let places = f.store.positions(&ids).await.unwrap();
    assert_eq!((places.get(&running.task.id), places[&ids[1]]), (None, 1), "what runs has no place");
    assert!(f.store.positions(&[TaskId::new()]).await.unwrap().is_empty());
}

async fn what_an_action_usually_takes_is_the_median_of_its_last_successes(f: &Fixture) {
    assert_eq!(f.store.usual("acme", "import").await.unwrap(), taskbell::store::Usual::default());
    for n in 0..25 {
        f.new_task(click()).await;
        let claimed = f.claim_one().await;
        f.report(&claimed, json!({"current": 10})).await;
        f.pass(if n < 5 { 1_000_000 } else { 1_000 * n });
        f.end(&claimed, done()).await;
    }
    let usual = f.store.usual("acme", "import").await.unwrap();
    assert_eq!(usual.duration_ms, Some(15_000), "of the last 20: 5 s to 24 s");
    let prior = usual.prior.unwrap();
    assert_eq!((prior.ms_per_unit, prior.successes), (1_500.0, 20));
    for (tenant, action) in [("globex", "import"), ("acme", "sync")] {
        assert_eq!(f.store.usual(tenant, action).await.unwrap().duration_ms, None);
    }
}

async fn the_next_due_instant_is_that_of_the_first_waiting_chunk(f: &Fixture) {
    assert_eq!(f.store.next_due().await.unwrap(), None);
    let start = f.now();
    f.new_task(Submit { run_at: Some(start.plus(900)), ..click() }).await;
    let first = f.new_task(Submit { run_at: Some(start.plus(500)), priority: -9, ..click() }).await;
    assert_eq!(f.store.next_due().await.unwrap(), Some(start.plus(500)));
    f.must(first, Ask::Pause).await;
    assert_eq!(f.store.next_due().await.unwrap(), Some(start.plus(900)));
    f.pass(900);
    f.claim_one().await;
    assert_eq!(f.store.next_due().await.unwrap(), None);
}

async fn a_timeline_is_read_in_parts(f: &Fixture) {
    let id = f.new_task(click()).await;
    f.end(&f.claim_one().await, throws()).await;
    f.pass(60_000);
    f.end(&f.claim_one().await, done()).await;
    assert_eq!(f.reasons(id).await, ["submitted", "claimed", "retry", "claimed", "done"]);
    let part: Vec<i64> = f.store.events(id, 1, 2).await.unwrap().iter().map(|e| e.seq).collect();
    assert_eq!(part, [2, 3]);
    let whole = f.store.events(id, 0, 100).await.unwrap();
    assert_eq!((whole[1].node.as_deref(), whole[0].actor.as_deref()), (Some("n1"), Some("bob")));
    assert_eq!((whole[2].attempt, whole[4].chunk), (2, 1));
    let failed = whole[2].failure.as_ref().unwrap();
    assert_eq!((failed.kind, failed.code.as_str(), failed.delay_ms), (ErrorKind::Handler, "boom", Some(5_000)));
    assert!(failed.message == "It broke." && whole[4].failure.is_none());
    assert!(f.store.events(id, 5, 100).await.unwrap().is_empty());
    assert!(f.store.events(TaskId::new(), 0, 100).await.unwrap().is_empty());
}

fn file(id: &str, task: Option<TaskId>, expires_at: Option<Millis>) -> FileRow {
    FileRow {
        id: id.into(),
        tenant: "acme".into(),
        owner: "bob".into(),
        task,
        name: "客户 'x'.csv".into(),
        content_type: "text/csv".into(),
        size_bytes: 1 << 40,
        sha256: "ab".into(),
        created_at: Millis(1),
        expires_at,
    }
}

async fn files_are_kept_found_and_forgotten_when_their_time_is_over(f: &Fixture) {
    let (task, other) = (TaskId::new(), TaskId::new());
    let at = f.now();
    let rows =
        [file("a", None, Some(at.plus(20))), file("b", Some(task), Some(at.plus(10))), file("c", Some(other), None)];
    for row in &rows {
        f.store.put_file(row.clone()).await.unwrap();
    }
    assert!(f.store.put_file(rows[0].clone()).await.is_err(), "an id is taken once");
    assert_eq!(f.store.file("a").await.unwrap().as_ref(), Some(&rows[0]));
    assert_eq!(f.store.file("z").await.unwrap(), None);
    assert_eq!(f.store.artifacts(&[task, other, TaskId::new()]).await.unwrap(), rows[1..]);
    f.pass(9);
    assert!(f.store.expire_files(10).await.unwrap().is_empty());
    f.pass(11);
    assert_eq!(f.store.expire_files(1).await.unwrap(), rows[1..2]);
    assert_eq!(f.store.expire_files(10).await.unwrap(), rows[..1]);
    assert_eq!(f.store.file("c").await.unwrap().as_ref(), Some(&rows[2]), "without an end it stays");
}
