//! Tasks in numbers: rows that are there already, copied by the database itself, so that a hundred thousand that wait and a
//! million that have ended take seconds. A copy differs from its row by its id, and on a server by its owner. It has no
//! documents and no timeline of its own, so a copy may be found, counted and claimed, and is never opened.

use sqlx::postgres::PgConnection;
use sqlx::sqlite::SqliteConnection;
use sqlx::{AssertSqlSafe, Row as _};

/// That have ended.
pub const ENDED: &str = "t.active = 0";
/// That may be claimed.
pub const WAITING: &str = "t.claimable = 1";
/// That wait for their key.
pub const BLOCKED: &str = "t.gated = 1";

/// How often each row is copied that there are `rows` at least.
fn times(rows: usize, there: i64) -> usize {
    rows.div_ceil(usize::try_from(there).unwrap())
}

/// Copies rows of one kind until there are at least so many.
pub async fn in_sqlite(c: &mut SqliteConnection, which: &str, rows: usize) {
    let columns = sqlx::query("SELECT name FROM pragma_table_info('taskbell_tasks') WHERE name <> 'id'");
    let columns: Vec<String> = columns.fetch_all(&mut *c).await.unwrap().iter().map(|r| r.get(0)).collect();
    let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM taskbell_tasks t WHERE {which}"));
    let there: i64 = sqlx::query_scalar(count).fetch_one(&mut *c).await.unwrap();
    let copies = format!(
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {})
         INSERT OR IGNORE INTO taskbell_tasks (id, {columns})
         SELECT substr(t.id, 1, 30) || printf('%06d', n.i), {columns} FROM taskbell_tasks t, n WHERE {which}",
        times(rows, there),
        columns = columns.join(", "),
    );
    let added = sqlx::query(AssertSqlSafe(copies)).execute(&mut *c).await.unwrap().rows_affected();
    // Now and then a copy would get the id of a row that is there.
    assert!(added + 100 >= rows as u64, "{added} of {rows}");
}

/// The same on a server, where each copy is one of forty owners'.
pub async fn in_postgres(c: &mut PgConnection, which: &str, rows: usize) {
    let listed = "SELECT STRING_AGG(CAST(attname AS TEXT), ', ' ORDER BY attnum) FROM pg_attribute \
        WHERE attrelid = CAST('taskbell_tasks' AS regclass) AND attnum > 0 AND attname NOT IN ('id', 'owner') AND NOT attisdropped";
    let columns: String = sqlx::query_scalar(listed).fetch_one(&mut *c).await.unwrap();
    let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM taskbell_tasks t WHERE {which}"));
    let there: i64 = sqlx::query_scalar(count).fetch_one(&mut *c).await.unwrap();
    let copies = format!(
        "INSERT INTO taskbell_tasks (id, owner, {columns})
         SELECT substr(t.id, 1, 30) || lpad(CAST(n.i AS TEXT), 6, '0'), 'u' || ((n.i + row_number() OVER ()) % 40), {columns}
         FROM taskbell_tasks t, generate_series(1, {}) AS n (i) WHERE {which} ON CONFLICT DO NOTHING",
        times(rows, there),
    );
    let added = sqlx::query(AssertSqlSafe(copies)).execute(&mut *c).await.unwrap().rows_affected();
    assert!(added + 100 >= rows as u64, "{added} of {rows}");
}
