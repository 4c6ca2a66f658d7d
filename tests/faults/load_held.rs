//! A load that stays: a long queue, many tasks that have ended long ago, and every second as many new ones as are finished.
//! What a claim takes, what a node and the database's journal hold, and the index that claims are found by are at the end what
//! they were at the start; and everything ends.
//!
//! The short form asserts what no busy machine can change; the full form holds the figures.

use crate::rig::nodes::{Nodes, Work};
use crate::rig::{PATIENCE, long, on_each_database};
use crate::support::crowd;
use crate::support::eventually;
use crate::support::ground::Ground;
use libtest_mimic::Trial;
use sqlx::Connection as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

pub fn tests() -> Vec<Trial> {
    on_each_database("a_load_that_stays_costs_at_its_end_what_it_cost_at_its_start", |ground| {
        a_load_that_stays_costs_at_its_end_what_it_cost_at_its_start(ground)
    })
}

/// Chunks at once on a node while the load is held; what is finished in a second is that many by the time of a chunk.
const AT_ONCE: usize = 20;
const PARALLELISM: &str = "TASKBELL__ENGINE__PARALLELISM";
/// And while the queue is emptied afterwards.
const AT_ONCE_AFTER: &str = "200";
/// Looks at the figures.
const WINDOWS: u32 = 10;
/// Tasks of one request while the queue is filled.
const BATCH: usize = 250;
/// That are copied as those that have ended long ago.
const FIRST: usize = 50;
/// New ones come so often.
const BEAT: Duration = Duration::from_millis(100);
/// Memory that a node may have, bytes, and what it may gain after the first window.
const MOST_BYTES: u64 = 400 << 20;
const MOST_GAINED: u64 = 64 << 20;
/// What the journal of a SQLite file may hold, bytes: some of its checkpoints, since one waits for those who read.
const MOST_JOURNAL: i64 = 256 << 20;

struct Size {
    queued: usize,
    ended: usize,
    per_second: usize,
    time: Duration,
    /// For the queue to be emptied.
    end: Duration,
}

impl Size {
    fn usual(alone: bool) -> Self {
        match (long(), alone) {
            (true, _) => Self {
                queued: 100_000,
                ended: 1_000_000,
                per_second: if alone { 100 } else { 300 },
                time: Duration::from_secs(600),
                end: Duration::from_secs(1_800),
            },
            (false, _) => {
                Self { queued: 600, ended: 5_000, per_second: 40, time: Duration::from_secs(10), end: PATIENCE }
            }
        }
    }
}

/// How it stands at the end of a window. Counts are of the whole run.
#[derive(Clone, Debug, Default)]
struct Look {
    at: Duration,
    /// Claims that took at most so long, seconds as they are written there.
    claims: BTreeMap<String, f64>,
    claimed: f64,
    /// The largest node, bytes.
    memory: u64,
    /// PostgreSQL: bytes that were ever written to the journal. SQLite: bytes of the journal's file.
    journal: i64,
    /// PostgreSQL: bytes of the index that claims are found by, and dead rows of the tasks.
    index: i64,
    dead: i64,
}

impl Look {
    async fn at(nodes: &Nodes, began: Instant) -> Self {
        let mut look = Self { at: began.elapsed(), ..Self::default() };
        for text in nodes.metrics().await {
            for (series, value) in text.lines().filter_map(|line| line.rsplit_once(' ')) {
                let value: f64 = value.parse().unwrap_or_default();
                if let Some(bucket) = series.strip_prefix("taskbell_claim_seconds_bucket{le=\"") {
                    *look.claims.entry(bucket.trim_end_matches("\"}").to_owned()).or_default() += value;
                }
                if series == "taskbell_claims_total" {
                    look.claimed += value;
                }
            }
        }
        look.memory = nodes.memory().await.into_iter().max().unwrap();
        match nodes.ground.database() {
            None => {
                let file = nodes.ground.path().join("data/taskbell.db-wal");
                look.journal = i64::try_from(std::fs::metadata(file).unwrap().len()).unwrap();
            }
            Some(_) => {
                let sql = "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0') AS BIGINT) \
                    UNION ALL SELECT pg_relation_size('taskbell_tasks_claim') \
                    UNION ALL SELECT n_dead_tup FROM pg_stat_user_tables WHERE relname = 'taskbell_tasks'";
                let numbers = nodes.ground.numbers("", sql).await;
                (look.journal, look.index, look.dead) = (numbers[0], numbers[1], numbers[2]);
            }
        }
        look
    }

    /// So many of a hundred claims since another look took at most so long, milliseconds; within a bucket all lengths are taken
    /// for equally frequent.
    fn claim_ms(&self, since: &Self, percent: f64) -> f64 {
        let count = |(end, count): (&String, &f64)| {
            (end.parse().unwrap_or(f64::INFINITY), count - since.claims.get(end).copied().unwrap_or_default())
        };
        let mut buckets: Vec<(f64, f64)> = self.claims.iter().map(count).collect();
        buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
        let wanted = buckets.last().map_or(0.0, |last| last.1) * percent / 100.0;
        let (mut from, mut below) = (0.0, 0.0);
        for (end, count) in buckets {
            if count >= wanted && count > below {
                let part = (wanted - below) / (count - below);
                return 1_000.0 * (from + (end.min(600.0) - from) * part);
            }
            (from, below) = (end, count);
        }
        0.0
    }

    fn told(&self, since: &Self) -> String {
        let (time, claimed) = ((self.at - since.at).as_secs_f64(), self.claimed - since.claimed);
        let (p50, p99) = (self.claim_ms(since, 50.0), self.claim_ms(since, 99.0));
        let part = match self.index {
            0 => format!("journal {} KiB", self.journal >> 10),
            index => format!(
                "{:.1} KiB of journal a task, claim index {} KiB, {} dead rows",
                self.journal_of_one(since) / 1_024.0,
                index >> 10,
                self.dead
            ),
        };
        format!(
            "{:.0} s: {:.0} tasks/s, claim p50 {p50:.1} ms, p99 {p99:.1} ms, {} MiB, {part}",
            self.at.as_secs_f64(),
            claimed / time,
            self.memory >> 20
        )
    }

    /// PostgreSQL: bytes of journal that a task wrote.
    fn journal_of_one(&self, since: &Self) -> f64 {
        (self.journal - since.journal) as f64 / (self.claimed - since.claimed).max(1.0)
    }
}

/// Copies of tasks that have ended, so that there are so many; on a server they are counted too, and written back: laying them
/// out is no part of the load.
async fn fill(ground: &Ground, ended: usize) {
    match ground.database() {
        None => {
            let options = sqlx::sqlite::SqliteConnectOptions::new().filename(ground.path().join("data/taskbell.db"));
            let mut file = sqlx::SqliteConnection::connect_with(&options.busy_timeout(PATIENCE)).await.unwrap();
            crowd::in_sqlite(&mut file, crowd::ENDED, ended).await;
            file.close().await.unwrap();
        }
        Some(database) => {
            crowd::in_postgres(&mut database.connect().await, crowd::ENDED, ended).await;
            database.execute("VACUUM ANALYZE taskbell_tasks").await;
            database.execute("CHECKPOINT").await;
        }
    }
}

/// Takes the copies away again: they have no timeline, and nobody promised them.
const COPIES: &str =
    "DELETE FROM taskbell_tasks WHERE NOT EXISTS (SELECT 1 FROM taskbell_events e WHERE e.task_id = id)";

/// Clicks as many as are due at each beat, whatever it takes; answers how many there were.
async fn submit_for(nodes: &Nodes, size: &Size, work: Work) -> usize {
    let (began, mut submitted, mut beats) = (Instant::now(), 0, tokio::time::interval(BEAT));
    while began.elapsed() < size.time {
        let due = (began.elapsed().as_secs_f64() * size.per_second as f64) as usize;
        if due > submitted {
            nodes.click_many("load", submitted..due.min(submitted + BATCH), work).await;
            submitted = due.min(submitted + BATCH);
        }
        beats.tick().await;
    }
    submitted
}

async fn a_load_that_stays_costs_at_its_end_what_it_cost_at_its_start(ground: Arc<Ground>) {
    let alone = ground.database().is_none();
    let (size, count) = (Size::usual(alone), if alone { 1 } else { 2 });
    // Half as many again can be finished as come, less what it takes to claim and to commit.
    let pause = Duration::from_millis((count * AT_ONCE * 1_000 * 2 / 3 / size.per_second) as u64);
    let work = Work { chunks: 1, items: 1, pause };
    let at_once = AT_ONCE.to_string();
    let nodes = Nodes::start(ground, count, &[("ENGINE__PARALLELISM", &at_once)]).await;
    nodes.click_many("first", 0..FIRST, Work { pause: Duration::ZERO, ..work }).await;
    nodes.all_ended(PATIENCE).await;
    // A file is alone for it: the journal of so large a commit is then taken away with its last connection.
    nodes.end().await;
    fill(&nodes.ground, size.ended).await;
    nodes.start_again_with(PARALLELISM, &at_once).await;
    let before = Instant::now();
    for from in (0..size.queued).step_by(BATCH) {
        nodes.click_many("queued", from..size.queued.min(from + BATCH), work).await;
    }
    println!("{} ended, {} clicked in {:?}", size.ended, size.queued, before.elapsed());

    let began = Instant::now();
    let looks = async {
        let mut looks = vec![Look::at(&nodes, began).await];
        for n in 1..=WINDOWS {
            tokio::time::sleep_until(began + size.time / WINDOWS * n).await;
            let look = Look::at(&nodes, began).await;
            println!("{}", look.told(looks.last().unwrap()));
            looks.push(look);
        }
        looks
    };
    let (looks, submitted) = tokio::join!(looks, submit_for(&nodes, &size, work));
    let finished = looks[looks.len() - 1].claimed - looks[0].claimed;
    let left = (size.queued + submitted) as f64 - finished;
    println!("{submitted} clicked in {:?}, {finished} claimed, {left} are left", began.elapsed());
    assert_held(&size, &looks, alone);

    nodes.end().await;
    nodes.start_again_with(PARALLELISM, AT_ONCE_AFTER).await;
    let all = (FIRST + size.queued + submitted) as i64;
    eventually("all are finished", size.end, async || {
        (nodes.numbers("SELECT COUNT(*) FROM ledger").await == [all]).then_some(())
    })
    .await;
    nodes.all_ended(PATIENCE).await;
    if !long() {
        nodes.execute(COPIES).await;
        nodes.settle(work, false).await;
    }
}

fn assert_held(size: &Size, looks: &[Look], alone: bool) {
    let (start, first, last) = (&looks[0], &looks[1], &looks[looks.len() - 1]);
    let before_last = &looks[looks.len() - 2];
    assert!(looks.iter().all(|look| look.memory < MOST_BYTES), "a node has grown: {last:?}");
    if alone {
        assert!(last.journal < MOST_JOURNAL, "the journal is never taken over into the file: {last:?}");
    }
    if !long() {
        return;
    }
    let rate = (last.claimed - start.claimed) / (last.at - start.at).as_secs_f64();
    assert!(rate >= 0.95 * size.per_second as f64, "{rate} tasks a second");
    let (early, late) = (first.claim_ms(start, 99.0), last.claim_ms(before_last, 99.0));
    assert!(early < 20.0 && late < 20.0, "claim p99 {early} ms, at the end {late} ms");
    assert!(last.memory < first.memory + MOST_GAINED, "{} became {} bytes", first.memory, last.memory);
    if !alone {
        let (early, late) = (first.journal_of_one(start), last.journal_of_one(before_last));
        assert!(late < 2.0 * early, "a task wrote {early} bytes of journal, and writes {late}");
        assert!(last.index < 2 * first.index, "the index of claims: {} became {} bytes", first.index, last.index);
    }
}
