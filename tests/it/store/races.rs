//! Races of clicks between two nodes, in which a winner may be rolled back: whoever is next wins in its place, and of one
//! key there is one task in the end.

use super::fixture::*;
use super::invariants::all_tasks;
use super::words::*;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use taskbell::core::ids::TaskId;
use taskbell::core::submit::Submitted;
use taskbell::store::Store;
use tokio::task::JoinSet;

const KEYS: usize = 200;
const RACERS: usize = 50;
/// Tries of one click; each is rolled back with a chance of one in ten.
const TRIES: usize = 50;

database_suite! {
    ten_thousand_clicks_on_two_nodes_make_one_task_a_key_though_a_tenth_of_the_winners_is_rolled_back
}

/// Lets the database undo one new task in ten: on a server as late as it can, when the winner commits.
async fn roll_winners_back(f: &Fixture, on_server: bool) {
    let sql = if on_server {
        "CREATE FUNCTION undo() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                IF random() < 0.1 THEN RAISE EXCEPTION 'undone' USING ERRCODE = '53000'; END IF; RETURN NULL; END $$; \
            CREATE CONSTRAINT TRIGGER undo AFTER INSERT ON taskbell_tasks DEFERRABLE INITIALLY DEFERRED \
                FOR EACH ROW EXECUTE FUNCTION undo()"
    } else {
        "CREATE TRIGGER undo AFTER INSERT ON taskbell_tasks WHEN abs(random() % 10) = 0 \
            BEGIN SELECT RAISE(ABORT, 'undone'); END"
    };
    f.execute(sql).await;
}

/// One click, again and again until it is answered; what came of it, and how often it was undone.
async fn insist(store: Arc<dyn Store>, key: String, undone: Arc<AtomicUsize>) -> Submitted {
    for _ in 0..TRIES {
        match store.submit(vec![keyed(&key)]).await {
            Ok(written) => return written.answer.into_iter().next().unwrap(),
            Err(fault) => {
                assert!(fault.to_string().contains("undone"), "{fault}");
                undone.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
    panic!("{key}: never answered")
}

async fn ten_thousand_clicks_on_two_nodes_make_one_task_a_key_though_a_tenth_of_the_winners_is_rolled_back(
    f: &Fixture,
) {
    roll_winners_back(f, !f.store.capabilities().single_process).await;
    let nodes = [f.store.clone(), f.opened_again().await];
    let (undone, mut made) = (Arc::new(AtomicUsize::new(0)), BTreeSet::<TaskId>::new());
    for round in 0..KEYS {
        let mut racing = JoinSet::new();
        for n in 0..RACERS {
            racing.spawn(insist(nodes[n % 2].clone(), format!("k{round}"), undone.clone()));
        }
        let answers = racing.join_all().await;
        let (new, others): (Vec<_>, Vec<_>) = answers.into_iter().partition(|a| matches!(a, Submitted::Created(_)));
        assert_eq!((new.len(), others.len()), (1, RACERS - 1), "round {round}");
        let id = new[0].task().unwrap().id;
        assert!(others.iter().all(|a| matches!(a, Submitted::Replayed(task) if task.id == id)), "round {round}");
        assert!(made.insert(id));
    }
    let undone = undone.load(Ordering::Relaxed);
    eprintln!("{undone} winners of {} were rolled back", KEYS + undone);
    assert!(undone > 0, "nobody was rolled back");
    let rows = all_tasks(f.store.as_ref()).await;
    assert_eq!(rows.iter().map(|task| task.id).collect::<BTreeSet<_>>(), made);
    assert!(rows.iter().all(|task| task.suppressed == (RACERS - 1) as i64), "every replay counts once");
}
