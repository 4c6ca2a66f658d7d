//! Migrations: a fresh database is the schema of the dump beside this file, the databases agree in their tables and columns,
//! and a database that does not fit is refused in words and left as it is.

use super::fixture::claim_params;
use super::words::{click, done, ended};
use crate::support::postgres::{self, Database};
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{AssertSqlSafe, Connection as _, Row as _};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use taskbell::core::task::State;
use taskbell::store::migrate::{CONTRACTS, Migration, Migrations, Mode, Told};
use taskbell::store::postgres::PostgresStore;
use taskbell::store::sqlite::{SqliteOptions, SqliteStore};
use taskbell::store::{Reach, Store, StoreError};
use tempfile::TempDir;
use tokio::task::JoinSet;

/// An empty database of a kind.
enum Place {
    Sqlite(TempDir),
    Postgres(Database),
}

/// The tables of a database, each with its columns in order, and whether one may be empty.
type Tables = BTreeMap<String, Vec<(String, bool)>>;

impl Place {
    fn sqlite() -> Self {
        Self::Sqlite(tempfile::tempdir().unwrap())
    }

    async fn postgres() -> Self {
        Self::Postgres(Database::empty().await)
    }

    async fn another(&self) -> Self {
        match self {
            Self::Sqlite(_) => Self::sqlite(),
            Self::Postgres(_) => Self::postgres().await,
        }
    }

    fn file(folder: &TempDir) -> PathBuf {
        folder.path().join("a/b/taskbell.db")
    }

    async fn open(&self, mode: Mode) -> Result<Arc<dyn Store>, StoreError> {
        self.open_telling(mode, &mut |_, _, _| {}).await
    }

    async fn open_telling(&self, mode: Mode, told: &mut Told<'_>) -> Result<Arc<dyn Store>, StoreError> {
        Ok(match self {
            Self::Sqlite(folder) => {
                Arc::new(SqliteStore::open(SqliteOptions::new(Self::file(folder)), mode, told).await?)
            }
            Self::Postgres(database) => {
                Arc::new(PostgresStore::open(postgres::options(&database.url()), mode, told).await?)
            }
        })
    }

    async fn raw(folder: &TempDir) -> SqliteConnection {
        let file = Self::file(folder);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        SqliteConnection::connect_with(&SqliteConnectOptions::new().filename(file).create_if_missing(true))
            .await
            .unwrap()
    }

    async fn run(&self, sql: &str) {
        match self {
            Self::Sqlite(folder) => {
                sqlx::query(AssertSqlSafe(sql.to_owned())).execute(&mut Self::raw(folder).await).await.unwrap();
            }
            Self::Postgres(database) => database.execute(sql).await,
        }
    }

    /// The file of the dump, and who tells what is in it.
    fn dump(&self) -> (&'static str, &'static str) {
        match self {
            Self::Sqlite(_) => ("tests/it/store/schema.sqlite.sql", "SQLite"),
            Self::Postgres(_) => ("tests/it/store/schema.postgres.sql", "PostgreSQL"),
        }
    }

    /// What is in it, as the database tells it.
    async fn schema(&self) -> String {
        match self {
            Self::Sqlite(folder) => {
                let listed = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY tbl_name, type DESC, name";
                let rows = sqlx::query(listed).fetch_all(&mut Self::raw(folder).await).await.unwrap();
                rows.iter().map(|r| r.get::<String, _>(0) + ";\n").collect::<Vec<_>>().join("\n")
            }
            Self::Postgres(database) => {
                let mut text = String::new();
                for (_, part) in sqlx::query_as::<_, (String, String)>(POSTGRES_SCHEMA)
                    .fetch_all(&mut database.connect().await)
                    .await
                    .unwrap()
                {
                    text += &format!("{part};\n\n");
                }
                text.trim_end().to_owned() + "\n"
            }
        }
    }

    async fn tables(&self) -> Tables {
        let rows: Vec<(String, String, i64)> = match self {
            Self::Sqlite(folder) => {
                let listed = "SELECT t.name, c.name, c.\"notnull\" FROM sqlite_schema t, pragma_table_info(t.name) c \
                    WHERE t.type = 'table' ORDER BY t.name, c.cid";
                sqlx::query_as(listed).fetch_all(&mut Self::raw(folder).await).await.unwrap()
            }
            Self::Postgres(database) => {
                let listed = "SELECT CAST(c.relname AS TEXT), CAST(a.attname AS TEXT), \
                    CAST(CASE WHEN a.attnotnull THEN 1 ELSE 0 END AS BIGINT) \
                    FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid \
                    WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace AND a.attnum > 0 \
                    AND NOT a.attisdropped ORDER BY c.relname, a.attnum";
                sqlx::query_as(listed).fetch_all(&mut database.connect().await).await.unwrap()
            }
        };
        let mut tables = Tables::new();
        for (table, column, filled) in rows {
            tables.entry(table).or_default().push((column, filled == 0));
        }
        tables
    }
}

/// Each table with its columns, checks and storage, then each index; in order of the names.
const POSTGRES_SCHEMA: &str = "SELECT CAST(c.relname AS TEXT), CONCAT('CREATE TABLE ', c.relname, E' (\\n', \
    (SELECT STRING_AGG(CONCAT('    ', a.attname, ' ', FORMAT_TYPE(a.atttypid, a.atttypmod), \
        CASE WHEN a.attcollation <> 0 AND a.attcollation <> t.typcollation \
            THEN CONCAT(' COLLATE ', (SELECT collname FROM pg_collation WHERE oid = a.attcollation)) END, \
        CASE WHEN a.attnotnull THEN ' NOT NULL' END), E',\\n' ORDER BY a.attnum) \
     FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
     WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped), \
    (SELECT STRING_AGG(CONCAT(E',\\n    ', PG_GET_CONSTRAINTDEF(k.oid)), '' ORDER BY k.contype DESC, k.conname) \
     FROM pg_constraint k WHERE k.conrelid = c.oid), E'\\n)', \
    CASE WHEN c.reloptions IS NOT NULL THEN CONCAT(' WITH (', ARRAY_TO_STRING(c.reloptions, ', '), ')') END) \
    FROM pg_class c WHERE c.relkind = 'r' AND c.relnamespace = 'public'::regnamespace \
    UNION ALL SELECT CONCAT(i.tablename, ' ', i.indexname), i.indexdef FROM pg_indexes i \
    WHERE i.schemaname = 'public' AND NOT EXISTS (SELECT 1 FROM pg_constraint k WHERE k.conname = i.indexname) \
    ORDER BY 1";

macro_rules! migration_suite {
    ($($name:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() { super::$name(super::Place::sqlite()).await; })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
            async fn $name() { super::$name(super::Place::postgres().await).await; })*
        }
    };
}

migration_suite! {
    a_fresh_database_has_the_schema_of_the_dump
    each_step_is_told_once_and_opening_again_changes_nothing
    a_database_that_a_newer_version_has_expanded_is_opened_as_it_is
    a_database_that_a_newer_version_has_contracted_is_refused_in_words
    a_migration_with_another_text_is_refused_in_words
    a_database_that_is_behind_is_refused_when_it_is_only_checked
    processes_that_migrate_at_once_do_not_hurt_each_other
    a_step_that_breaks_off_leaves_nothing_behind
}

async fn a_fresh_database_has_the_schema_of_the_dump(place: Place) {
    place.open(Mode::Apply).await.unwrap();
    let (dump, teller) = place.dump();
    let found = format!(
        "-- The schema of a fresh database, as {teller} tells it: a migration shows as a difference here.\n\
         -- Written anew by: TASKBELL_WRITE_SCHEMA=1 cargo test --test it fresh_database\n\n{}",
        place.schema().await
    );
    if std::env::var_os("TASKBELL_WRITE_SCHEMA").is_some() {
        std::fs::write(dump, &found).unwrap();
    }
    let kept = std::fs::read_to_string(dump).unwrap_or_default();
    assert!(found == kept, "the schema is not that of {dump}; it is now:\n{found}");
}

async fn each_step_is_told_once_and_opening_again_changes_nothing(place: Place) {
    let mut told = Vec::new();
    let mut tell = |i: usize, n: usize, name: &str| told.push(format!("{i}/{n} {name}"));
    let first = place.open_telling(Mode::Apply, &mut tell).await.unwrap();
    assert_eq!(told[0], format!("1/{} tasks", told.len()));
    let (epoch, before) = (first.epoch().to_owned(), place.schema().await);
    for mode in [Mode::Apply, Mode::Check] {
        let mut told_again = 0;
        let again = place.open_telling(mode, &mut |_, _, _| told_again += 1).await.unwrap();
        assert_eq!(again.epoch(), epoch, "the same database has the same epoch");
        assert_eq!(told_again, 0);
    }
    assert_eq!(place.schema().await, before);
    let other = place.another().await;
    assert_ne!(other.open(Mode::Apply).await.unwrap().epoch(), epoch, "another database is another incarnation");
}

/// Why a place is not opened.
async fn refusal(place: &Place, mode: Mode) -> String {
    place.open(mode).await.err().expect("it is refused").to_string()
}

async fn a_database_that_a_newer_version_has_expanded_is_opened_as_it_is(place: Place) {
    place.open(Mode::Apply).await.unwrap();
    for sql in [
        "INSERT INTO taskbell_migrations (number, checksum) VALUES (999, '0a1b2c')",
        "CREATE TABLE taskbell_zz (id TEXT)",
        "ALTER TABLE taskbell_tasks ADD COLUMN zz_text TEXT",
        "ALTER TABLE taskbell_tasks ADD COLUMN zz_count BIGINT NOT NULL DEFAULT 7",
        "ALTER TABLE taskbell_events ADD COLUMN zz_text TEXT",
        "CREATE INDEX taskbell_zz_tasks ON taskbell_tasks (zz_count, zz_text)",
    ] {
        place.run(sql).await;
    }
    let before = place.schema().await;
    for mode in [Mode::Apply, Mode::Check] {
        let mut told = 0;
        place.open_telling(mode, &mut |_, _, _| told += 1).await.unwrap();
        assert_eq!(told, 0);
    }
    assert_eq!(place.schema().await, before, "an older version takes nothing back");
    let store = place.open(Mode::Check).await.unwrap();
    let item = click();
    let id = item.id;
    store.submit(vec![item]).await.unwrap();
    let claimed = store.claim(claim_params("a", 1)).await.unwrap().answer;
    assert_eq!((claimed.len(), claimed[0].task.id), (1, id));
    store.commit(vec![ended(&claimed[0], done())]).await.unwrap();
    assert_eq!(store.tasks(&Reach::default(), &[id]).await.unwrap()[0].state, State::Succeeded);
    assert_eq!(store.events(id, 0, 10).await.unwrap().len(), 3);
}

async fn a_database_that_a_newer_version_has_contracted_is_refused_in_words(place: Place) {
    place.open(Mode::Apply).await.unwrap();
    let text = format!("{CONTRACTS} nobody reads zz any more\nDROP TABLE taskbell_zz");
    let checksum = Migration { number: 999, name: "zz", text: text.leak() }.checksum();
    assert_eq!(checksum.len(), 64, "the column has room for so much");
    place.run(&format!("INSERT INTO taskbell_migrations (number, checksum) VALUES (999, '{checksum}')")).await;
    for mode in [Mode::Apply, Mode::Check] {
        let refused = refusal(&place, mode).await;
        assert!(refused.contains("migration 999") && refused.contains("newer taskbell"), "{refused}");
    }
}

/// The statements of a text, without comments, in capitals, spaces drawn together.
fn statements(text: &str) -> Vec<String> {
    let lines = text.lines().map(|line| line.split("--").next().unwrap_or_default());
    let plain = lines.collect::<Vec<_>>().join(" ").to_uppercase();
    let drawn = |s: &str| s.split_whitespace().collect::<Vec<_>>().join(" ");
    plain.split(';').map(drawn).filter(|s| !s.is_empty()).collect()
}

/// Why the version before could not work on with what a statement leaves.
fn takes_away(statement: &str) -> Option<&'static str> {
    const TAKES: [(&str, &str); 6] = [
        ("DROP TABLE", "a table goes"),
        (" DROP COLUMN", "a column goes"),
        (" RENAME ", "a name changes"),
        (" ALTER COLUMN", "a column changes"),
        (" ADD CONSTRAINT", "what was allowed is refused"),
        ("CREATE UNIQUE INDEX", "what was allowed is refused"),
    ];
    if let Some((_, why)) = TAKES.iter().find(|(words, _)| statement.contains(words)) {
        return Some(why);
    }
    let adds = statement.starts_with("ALTER TABLE") && statement.contains(" ADD ");
    let filled = statement.contains("NOT NULL") && !statement.contains("DEFAULT");
    (adds && filled).then_some("a new column has to be filled by whoever does not know it")
}

#[test]
fn a_migration_takes_nothing_away_unless_it_says_so() {
    for migrations in [Migrations::of_sqlite(), Migrations::of_postgres(), Migrations::of_postgres_logs()] {
        for step in migrations.steps().iter().filter(|step| !step.contracts()) {
            for statement in statements(step.text) {
                let taken = takes_away(&statement);
                assert!(taken.is_none(), "migration {} ({}): {}: {statement}", step.number, step.name, taken.unwrap());
            }
        }
    }
    for (statement, fits) in [
        ("ALTER TABLE t ADD COLUMN a TEXT", true),
        ("ALTER TABLE t ADD COLUMN a BIGINT NOT NULL DEFAULT 0", true),
        ("CREATE INDEX i ON t (a)", true),
        ("DROP INDEX i", true),
        ("ALTER TABLE t ADD COLUMN a TEXT NOT NULL", false),
        ("ALTER TABLE t DROP COLUMN a", false),
        ("ALTER TABLE t RENAME COLUMN a TO b", false),
        ("ALTER TABLE t ALTER COLUMN a TYPE TEXT", false),
        ("DROP TABLE t", false),
        ("CREATE UNIQUE INDEX i ON t (a)", false),
    ] {
        assert_eq!(takes_away(statement).is_none(), fits, "{statement}");
    }
}

#[test]
fn the_databases_have_the_same_migrations_without_gaps() {
    let of = |migrations: Migrations| migrations.steps().iter().map(|s| (s.number, s.name)).collect::<Vec<_>>();
    let steps = of(Migrations::of_sqlite());
    assert_eq!(steps, of(Migrations::of_postgres()));
    assert!(steps.iter().map(|(number, _)| *number).eq(1..=steps.len() as i64), "{steps:?}");
}

async fn a_migration_with_another_text_is_refused_in_words(place: Place) {
    place.open(Mode::Apply).await.unwrap();
    place.run("UPDATE taskbell_migrations SET checksum = 'other' WHERE number = 1").await;
    let refused = refusal(&place, Mode::Apply).await;
    assert!(refused.contains("migration 1 (tasks)") && refused.contains("another text"), "{refused}");
}

async fn a_database_that_is_behind_is_refused_when_it_is_only_checked(place: Place) {
    let refused = refusal(&place, Mode::Check).await;
    assert!(refused.contains("behind") && refused.contains("taskbell migrate"), "{refused}");
    assert!(!place.schema().await.contains("taskbell_tasks"), "a look changes nothing");
    place.open(Mode::Apply).await.unwrap();
    place.open(Mode::Check).await.unwrap();
}

async fn processes_that_migrate_at_once_do_not_hurt_each_other(place: Place) {
    let first = Arc::new(place);
    for _ in 0..5 {
        let place = Arc::new(first.another().await);
        let mut opening = JoinSet::new();
        for _ in 0..6 {
            let place = place.clone();
            opening.spawn(async move { place.open(Mode::Apply).await.map(|s| s.epoch().to_owned()) });
        }
        let mut epochs: Vec<String> = opening.join_all().await.into_iter().map(Result::unwrap).collect();
        epochs.dedup();
        assert_eq!(epochs.len(), 1, "one database");
    }
}

async fn a_step_that_breaks_off_leaves_nothing_behind(place: Place) {
    place.run("CREATE TABLE taskbell_files (id TEXT)").await;
    assert!(place.open(Mode::Apply).await.is_err(), "the step makes a table of that name");
    let left = place.schema().await;
    assert!(!left.contains("taskbell_tasks "), "half a step stayed: {left}");
    place.run("DROP TABLE taskbell_files").await;
    place.open(Mode::Apply).await.unwrap();
}

#[tokio::test]
async fn the_databases_agree_in_their_tables_and_columns() {
    let (file, server) = (Place::sqlite(), Place::postgres().await);
    for place in [&file, &server] {
        place.open(Mode::Apply).await.unwrap();
    }
    let (file, server) = (file.tables().await, server.tables().await);
    assert!(file.len() > 5, "{file:#?}");
    for (table, columns) in &file {
        assert_eq!(server.get(table), Some(columns), "{table}");
    }
    let only: Vec<&String> = server.keys().filter(|t| !file.contains_key(*t)).collect();
    assert!(only.is_empty(), "PostgreSQL alone has {only:?}");
}
