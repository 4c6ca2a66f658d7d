//! PostgreSQL for tests: a database for each of them, copied from one that was migrated once, and a server of their own for
//! those that take it down.
//!
//! The databases are made on the server that `TASKBELL_TEST_POSTGRES` names, which `tests/run` starts. Without it a test
//! fails with the command that starts one: none is left out in silence. A database goes with the value that stands for it;
//! what a killed run left behind is swept by the next one, by its name and its age.

use super::{eventually, script};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection as _, Executor as _};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taskbell::store::logs::{LogLimits, PostgresLogs};
use taskbell::store::migrate::Mode;
use taskbell::store::postgres::{PostgresOptions, PostgresStore};
use tempfile::TempDir;
use tokio::sync::OnceCell;
use url::Url;

/// The name of every database of ours begins with it; then come the second it was made in, the process and a number.
const PREFIX: &str = "taskbell_test_";
/// Older ones are nobody's any more.
const LEFT_OVER_SECONDS: u64 = 2 * 3600;
/// Connections of one store: enough to be several at once, few enough for many tests at once.
const CONNECTIONS: u32 = 8;
/// How long one is waited for: on a machine that is busy with tests the two seconds of a service say nothing.
const PATIENCE: Duration = Duration::from_secs(10);

/// The database that the others are copied from.
static TEMPLATE: OnceCell<String> = OnceCell::const_new();

/// The address of the server that all tests share, as its superuser.
pub fn shared_server() -> String {
    std::env::var("TASKBELL_TEST_POSTGRES").unwrap_or_else(|_| {
        panic!(
            "this test needs a PostgreSQL server: run everything with tests/run, or start one for cargo test by hand: \
             export TASKBELL_TEST_POSTGRES=$(tests/postgres start)"
        )
    })
}

/// Settings of a store over a database.
pub fn options(url: &str) -> PostgresOptions {
    PostgresOptions { connections: CONNECTIONS, acquire_timeout: PATIENCE, ..PostgresOptions::new(url) }
}

/// A database.
pub struct Database {
    server: String,
    name: String,
}

impl Database {
    /// One with nothing in it.
    pub async fn empty() -> Self {
        Self::empty_on(&shared_server()).await
    }

    /// One with nothing in it, on a server.
    pub async fn empty_on(server: &str) -> Self {
        sweep(server).await;
        let database = Self::named(server);
        database.execute_beside(&format!("CREATE DATABASE {}", database.name)).await;
        database
    }

    /// One that is up to date and has no rows.
    pub async fn migrated() -> Self {
        let server = shared_server();
        let template = TEMPLATE.get_or_init(async || Self::make_template(&server).await).await;
        let database = Self::named(&server);
        database.execute_beside(&format!("CREATE DATABASE {} TEMPLATE {template}", database.name)).await;
        database
    }

    async fn make_template(server: &str) -> String {
        let database = Self::empty_on(server).await;
        let (options, mut told) = (options(&database.url()), |_: usize, _: usize, _: &str| {});
        drop(PostgresStore::open(options.clone(), Mode::Apply, &mut told).await.unwrap());
        drop(PostgresLogs::open(options, LogLimits::default(), Mode::Apply, &mut told).await.unwrap());
        // Nobody may be connected to a database while it is copied, and a pool takes its time to close.
        database.execute_beside(&format!("ALTER DATABASE {} ALLOW_CONNECTIONS false", database.name)).await;
        database.terminate_all().await;
        let name = database.name.clone();
        // It stays for the whole run.
        std::mem::forget(database);
        name
    }

    fn named(server: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let (made, n) = (seconds(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { server: server.to_owned(), name: format!("{PREFIX}{made}_{}_{n}", std::process::id()) }
    }

    /// Its name on the server.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its address, as the superuser.
    pub fn url(&self) -> String {
        self.changed(|_| ()).into()
    }

    /// Its address with another port, such as that of a proxy before the server.
    pub fn url_by_port(&self, port: u16) -> String {
        self.changed(|url| url.set_port(Some(port)).unwrap()).into()
    }

    /// Its address as another user.
    pub fn url_as(&self, user: &str, password: &str) -> String {
        let change = |url: &mut Url| url.set_username(user).and_then(|()| url.set_password(Some(password))).unwrap();
        self.changed(change).into()
    }

    fn changed(&self, change: impl FnOnce(&mut Url)) -> Url {
        let mut url = Url::parse(&self.server).unwrap();
        url.set_path(&self.name);
        change(&mut url);
        url
    }

    /// The port of its server.
    pub fn port(&self) -> u16 {
        Url::parse(&self.server).unwrap().port().unwrap()
    }

    /// A connection of the superuser.
    pub async fn connect(&self) -> PgConnection {
        PgConnection::connect(&self.url()).await.unwrap()
    }

    /// Runs statements in it, as the superuser.
    pub async fn execute(&self, sql: &str) {
        execute(&mut self.connect().await, sql).await;
    }

    /// Runs a statement on its server, in another database.
    pub async fn execute_beside(&self, sql: &str) {
        execute(&mut PgConnection::connect(&self.server).await.unwrap(), sql).await;
    }

    /// Ends every connection to it.
    pub async fn terminate_all(&self) {
        let name = &self.name;
        let others = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'");
        self.execute_beside(&others).await;
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        let (server, name) = (self.server.clone(), self.name.clone());
        // Nobody waits for it: a connection that the test was just opening stays half open while the test's own runtime
        // stands still, and the server waits for it. Whatever goes wrong: the next run sweeps.
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                if let Ok(mut c) = PgConnection::connect(&server).await {
                    let _ = c.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await;
                }
            });
        });
    }
}

async fn execute(c: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(c).await.unwrap_or_else(|e| panic!("{sql}: {e}"));
}

/// Takes away what earlier runs left, once a process.
async fn sweep(server: &str) {
    static SWEPT: OnceCell<()> = OnceCell::const_new();
    let once = async || {
        let mut c = PgConnection::connect(server).await.unwrap_or_else(|e| {
            panic!("the PostgreSQL server of the tests does not answer ({e}); start one: tests/postgres start")
        });
        let names: Vec<(String,)> =
            sqlx::query_as("SELECT datname::text FROM pg_database").fetch_all(&mut c).await.unwrap();
        for (name,) in names {
            let made = name.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next()?.parse::<u64>().ok());
            if made.is_some_and(|made| made + LEFT_OVER_SECONDS < seconds()) {
                // Another process may be sweeping too.
                let _ = c.execute(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"))).await;
            }
        }
    };
    SWEPT.get_or_init(once).await;
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

/// A server of one test, which may take it down. It ends with the value, or with the process.
pub struct Server {
    url: String,
    folder: TempDir,
}

impl Server {
    /// Starts one.
    pub async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let pid = std::process::id().to_string();
        let url = script::tell("postgres", folder.path(), "start", &[&pid]).await;
        Self { url, folder }
    }

    /// Its address, as its superuser.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Ends it at once, as a crash does, and starts it again on the same port with the same data.
    pub async fn restart(&self) {
        script::tell("postgres", self.folder.path(), "restart", &[]).await;
    }

    /// Starts it again as one that only reads.
    pub async fn become_standby(&self) {
        script::tell("postgres", self.folder.path(), "standby", &[]).await;
    }

    /// Lets it take writes again, without ending a connection.
    pub async fn promote(&self) {
        script::tell("postgres", self.folder.path(), "promote", &[]).await;
    }

    /// Starts one that follows it, change by change, and only reads; from now on a commit is answered when both have it.
    pub async fn follower(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (note, pid) = (self.folder.path().join("note"), std::process::id().to_string());
        let url = script::tell("postgres", folder.path(), "follow", &[note.to_str().unwrap(), &pid]).await;
        let mut c = PgConnection::connect(&self.url).await.unwrap();
        execute(&mut c, "ALTER SYSTEM SET synchronous_standby_names = '*'").await;
        execute(&mut c, "SELECT pg_reload_conf()").await;
        let sql = "SELECT COUNT(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'";
        eventually("the follower is heard of", PATIENCE, async || {
            let mut c = PgConnection::connect(&self.url).await.unwrap();
            let (count,): (i64,) = sqlx::query_as(sql).fetch_one(&mut c).await.unwrap();
            (count == 1).then_some(())
        })
        .await;
        Self { url, folder }
    }

    /// The port it listens on.
    pub fn port(&self) -> u16 {
        Url::parse(&self.url).unwrap().port().unwrap()
    }

    /// Ends it at once, and keeps its data for `restart`.
    pub async fn pause(&self) {
        script::tell("postgres", self.folder.path(), "pause", &[]).await;
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = script::command("postgres", self.folder.path(), "stop", &[]).status();
    }
}
