//! A line to PostgreSQL that goes silent without a word: whatever was on its way, the pool is whole when there is a line again.

use crate::support::eventually;
use crate::support::postgres::{self, Database};
use crate::support::proxy::{Line, Proxy};
use futures_util::future::join_all;
use std::future::Future;
use std::time::Duration;
use taskbell::store::Store as _;
use taskbell::store::migrate::Mode;
use taskbell::store::pack;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use tokio::time::timeout;

/// Long beside what giving a connection up takes, and no measure of it.
const LIMIT: Duration = Duration::from_secs(60);
/// What the line takes one way, so that a test can act before what was sent has arrived.
const SLOW: Duration = Duration::from_millis(500);
/// Somebody who waits for an answer no longer than this.
const HURRY: Duration = Duration::from_millis(200);

/// A store with one connection, over a line of its own.
async fn over_a_line() -> (Database, Proxy, PostgresStore) {
    let database = Database::migrated().await;
    let proxy = Proxy::before(database.port()).await;
    let url = database.url_by_port(proxy.port());
    let options = PostgresOptions { connections: 1, ..postgres::options(&url) };
    let store = PostgresStore::open(options, Mode::Check, &mut |_, _, _| {}).await.unwrap();
    (database, proxy, store)
}

/// The line is whole again: so is the pool, soon.
async fn assert_answers(proxy: &Proxy, store: &PostgresStore, what: &str) {
    proxy.delay(Duration::ZERO);
    proxy.mend();
    eventually(what, LIMIT, async || store.now().await.ok()).await;
}

/// What is asked on a slow line while it goes silent, and given up by who asked.
async fn asked_in_vain<T>(proxy: &Proxy, line: Line, question: impl Future<Output = T>) {
    proxy.delay(SLOW);
    let asked = async {
        assert!(timeout(HURRY, question).await.is_err(), "{line:?}: the line is slower");
    };
    let cut = async {
        tokio::task::yield_now().await;
        proxy.becomes(line);
    };
    tokio::join!(asked, cut);
    // All that was under way is lost.
    tokio::time::sleep(2 * SLOW).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_goes_silent_under_a_question_costs_the_pool_no_place() {
    let (_database, proxy, store) = over_a_line().await;
    for line in [Line::Lost, Line::RequestsLost, Line::RepliesLost] {
        store.now().await.unwrap();
        asked_in_vain(&proxy, line, store.now()).await;
        assert_answers(&proxy, &store, &format!("{line:?}: a read that was given up leaves its place")).await;
        asked_in_vain(&proxy, line, store.ready()).await;
        assert_answers(&proxy, &store, &format!("{line:?}: a write that was given up leaves its place")).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_goes_silent_as_a_connection_is_given_back_costs_the_pool_no_place() {
    let (_database, proxy, store) = over_a_line().await;
    for line in [Line::Lost, Line::RequestsLost, Line::RepliesLost] {
        proxy.delay(SLOW);
        // Answered, while the pool still asks whether the connection lives.
        eventually("the slow line answers", LIMIT, async || store.now().await.ok()).await;
        proxy.becomes(line);
        tokio::time::sleep(2 * SLOW).await;
        assert_answers(&proxy, &store, &format!("{line:?}: a connection that was given back leaves its place")).await;
    }
}

/// As many as the pool of a pack has connections.
const OF_A_PACK: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_line_that_goes_silent_as_chunks_of_a_pack_end_costs_its_own_pool_no_place() {
    let database = Database::migrated().await;
    let proxy = Proxy::before(database.port()).await;
    let pack = pack::postgres(&database.url_by_port(proxy.port())).unwrap();
    let all = async || {
        let begun = (0..OF_A_PACK).map(|_| pack.begin(LIMIT));
        join_all(begun).await.into_iter().collect::<Result<Vec<_>, _>>().ok()
    };
    let mut held = eventually("every place is there at first", LIMIT, &all).await;
    for line in [Line::Lost, Line::RepliesLost] {
        // Each is undone and asked whether it lives as it goes back, and nobody answers.
        proxy.delay(SLOW);
        drop(held);
        proxy.becomes(line);
        tokio::time::sleep(2 * SLOW).await;
        proxy.delay(Duration::ZERO);
        proxy.mend();
        held = eventually(&format!("{line:?}: every place is there again"), LIMIT, &all).await;
    }
}
