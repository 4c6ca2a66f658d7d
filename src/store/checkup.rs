//! Looks a database over for `taskbell doctor`: what it is, whether it takes writes, whether its schema and its indexes are
//! those of this version, and how far its clock is from ours.
//!
//! Changes nothing, not even an empty file: a database that is not there is told of and not made.

use super::migrate::Migrations;
use super::postgres::PostgresOptions;
use crate::core::finding::Finding;
use crate::core::time::{Clock, Millis};
use sqlx::postgres::PgConnection;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _};
use std::collections::BTreeSet;
use std::path::Path;

const PART: &str = "database";
/// A clock that differs by more is told of, and by more than the second is at fault, ms.
const CLOCK_NOTE_MS: i64 = 2_000;
const CLOCK_FAULT_MS: i64 = 30_000;

const APPLIED: &str = "SELECT number, checksum FROM taskbell_migrations ORDER BY number";
const POSTGRES_STANDING: &str = "SELECT current_setting('server_version'), pg_is_in_recovery(), \
    current_setting('default_transaction_read_only'), CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)";
const ROLE_ISOLATION: &str = "SELECT s.setting FROM pg_db_role_setting r, unnest(r.setconfig) AS s (setting) \
    WHERE s.setting LIKE 'default_transaction_isolation=%' AND (r.setrole = 0 OR r.setrole = \
    (SELECT oid FROM pg_roles WHERE rolname = current_user)) AND (r.setdatabase = 0 OR r.setdatabase = \
    (SELECT oid FROM pg_database WHERE datname = current_database()))";
const POSTGRES_INDEXES: &str = "SELECT CAST(c.relname AS TEXT), i.indisvalid FROM pg_index i \
    JOIN pg_class c ON c.oid = i.indexrelid WHERE c.relname LIKE 'taskbell%'";
const SQLITE_INDEXES: &str = "SELECT name FROM sqlite_schema WHERE type = 'index'";

/// Looks a database of a server over.
pub async fn of_server(url: &str, clock: &dyn Clock) -> Vec<Finding> {
    let mut options = PostgresOptions::new(url);
    let mut connection = match options.one().await {
        Ok(connection) => connection,
        Err(e) => return vec![Finding::fault(PART, e.to_string())],
    };
    let mut found = standing(&mut connection, clock).await.unwrap_or_else(unreadable);
    if options.pooled {
        let text = "a pooler gives its connections to others after each transaction: statements are not kept prepared, \
            and this node finds the work of others by its poll or by Redis";
        found.push(Finding::note(PART, text));
    }
    let applied = sqlx::query_as(APPLIED).persistent(false).fetch_all(&mut connection).await.unwrap_or_default();
    found.push(schema(Migrations::of_postgres(), applied));
    let indexes = sqlx::query_as::<_, (String, bool)>(POSTGRES_INDEXES).persistent(false);
    match indexes.fetch_all(&mut connection).await {
        Ok(indexes) => {
            let broken = indexes.iter().filter(|(_, valid)| !valid);
            found.extend(broken.map(|(name, _)| {
                Finding::fault(PART, format!("the index {name} is broken off half-way: REINDEX INDEX {name}"))
            }));
            found.extend(indexes_of(Migrations::of_postgres(), &indexes.into_iter().map(|(name, _)| name).collect()));
        }
        Err(e) => found.extend(unreadable(e)),
    }
    found
}

fn unreadable(e: sqlx::Error) -> Vec<Finding> {
    vec![Finding::fault(PART, format!("it cannot be looked over: {e}"))]
}

async fn standing(connection: &mut PgConnection, clock: &dyn Clock) -> Result<Vec<Finding>, sqlx::Error> {
    let began = clock.mono();
    let standing = sqlx::query_as::<_, (String, bool, String, i64)>(POSTGRES_STANDING).persistent(false);
    let (version, standby, read_only, now) = standing.fetch_one(&mut *connection).await?;
    let half_way_ms = ((clock.mono() - began) / 2).cast_signed();
    let mut found = vec![match (standby, read_only.as_str()) {
        (true, _) => Finding::fault(PART, format!("PostgreSQL {version} is a standby and takes no writes")),
        (_, "on") => Finding::fault(PART, format!("PostgreSQL {version} is set to read only and takes no writes")),
        _ => Finding::good(PART, format!("PostgreSQL {version} answers and takes writes")),
    }];
    found.push(clocks(clock.now(), now + half_way_ms));
    let levels: Vec<(String,)> = sqlx::query_as(ROLE_ISOLATION).persistent(false).fetch_all(&mut *connection).await?;
    found.extend(levels.into_iter().filter_map(|(setting,)| {
        let level = setting.split_once('=').map(|(_, level)| level.to_owned())?;
        let text = format!("the default isolation is {level}; taskbell asks for read committed by itself");
        (level != "read committed").then(|| Finding::note(PART, text))
    }));
    Ok(found)
}

/// How far our clock is from the database's now.
fn clocks(ours: Millis, database_ms: i64) -> Finding {
    let ahead = ours.0.saturating_sub(database_ms);
    let text = format!(
        "the clock of this machine is {:.1} s {} that of the database",
        ahead.abs() as f64 / 1_000.0,
        if ahead < 0 { "behind" } else { "ahead of" }
    );
    match ahead.abs() {
        far if far > CLOCK_FAULT_MS => Finding::fault("clock", format!("{text}: set it by a time server")),
        off if off > CLOCK_NOTE_MS => Finding::note("clock", format!("{text}; leases go by the database's")),
        _ => Finding::good("clock", text),
    }
}

/// Looks a SQLite file over.
pub async fn of_file(path: &Path) -> Vec<Finding> {
    if !path.exists() {
        return vec![Finding::note(PART, format!("{} is not there yet; `serve` makes it", path.display()))];
    }
    match examine_file(path).await {
        Ok(found) => found,
        Err(e) => unreadable(e),
    }
}

async fn examine_file(path: &Path) -> Result<Vec<Finding>, sqlx::Error> {
    let options = SqliteConnectOptions::new().filename(path).read_only(true);
    let mut file = SqliteConnection::connect_with(&options).await?;
    let (version,): (String,) = sqlx::query_as("SELECT sqlite_version()").fetch_one(&mut file).await?;
    let (sound,): (String,) = sqlx::query_as("PRAGMA quick_check(1)").fetch_one(&mut file).await?;
    let mut found = vec![match sound.as_str() {
        "ok" => Finding::good(PART, format!("{} is sound (SQLite {version})", path.display())),
        why => Finding::fault(PART, format!("{} is damaged: {why}; restore a backup", path.display())),
    }];
    let applied = sqlx::query_as(APPLIED).fetch_all(&mut file).await.unwrap_or_default();
    found.push(schema(Migrations::of_sqlite(), applied));
    let indexes: Vec<(String,)> = sqlx::query_as(AssertSqlSafe(SQLITE_INDEXES)).fetch_all(&mut file).await?;
    found.extend(indexes_of(Migrations::of_sqlite(), &indexes.into_iter().map(|(name,)| name).collect()));
    Ok(found)
}

/// Where the schema stands against this version.
fn schema(migrations: Migrations, applied: Vec<(i64, String)>) -> Finding {
    match migrations.judge(&applied) {
        Err(e) => Finding::fault(PART, e.to_string()),
        Ok(pending) if !pending.is_empty() => Finding::note(
            PART,
            format!(
                "the schema is {} step(s) behind; `serve` or `taskbell migrate` brings it up to date",
                pending.len()
            ),
        ),
        Ok(_) if applied.len() > migrations.steps().len() => {
            Finding::note(PART, "the schema is of a newer version, and this one works with it")
        }
        Ok(_) => Finding::good(PART, format!("the schema is up to date ({} steps)", applied.len())),
    }
}

/// Indexes that the migrations make and that are not there; none is asked for before there is a schema.
fn indexes_of(migrations: Migrations, there: &BTreeSet<String>) -> Vec<Finding> {
    let wanted = migrations.indexes();
    if there.is_disjoint(&wanted) {
        return Vec::new();
    }
    let missing: Vec<&String> = wanted.difference(there).collect();
    if missing.is_empty() {
        return vec![Finding::good(PART, format!("all {} indexes are there", wanted.len()))];
    }
    let told =
        |name: &&String| Finding::fault(PART, format!("the index {name} is missing: make it as migrations/ says"));
    missing.iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::finding::Grade;

    #[test]
    fn a_missing_index_is_named_and_a_database_that_is_empty_misses_none() {
        for migrations in [Migrations::of_sqlite(), Migrations::of_postgres()] {
            let mut there = migrations.indexes();
            assert!(there.len() > 10);
            assert_eq!(indexes_of(migrations, &there)[0].grade, Grade::Good);
            there.remove("taskbell_tasks_claim");
            let found = indexes_of(migrations, &there);
            assert!(found[0].grade == Grade::Fault && found[0].text.contains("taskbell_tasks_claim"), "{found:?}");
            assert!(indexes_of(migrations, &BTreeSet::new()).is_empty());
        }
    }

    #[test]
    fn a_clock_is_told_of_from_two_seconds_on_and_at_fault_beyond_thirty() {
        let now = 1_800_000_000_000;
        assert_eq!(clocks(Millis(now), now).grade, Grade::Good);
        assert_eq!(clocks(Millis(now), now + 10_000).grade, Grade::Note);
        let far = clocks(Millis(now), now - 3_600_000);
        assert!(far.grade == Grade::Fault && far.text.contains("ahead of"), "{far:?}");
    }
}
