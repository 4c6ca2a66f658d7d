//! Every setting with its default, unit, allowed values and meaning: read by the parser and printed by the README alike.
//!
//! The parser takes defaults and ranges from here and from nowhere else, and panics in tests for a key that has no row, so
//! the table cannot drift from the code. `[]` in a key stands for any entry of a list.

use super::pack_rows::PACK_ROWS;
use std::sync::OnceLock;
use toml::Value;

/// Which values a setting takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// What the meaning says.
    Free,
    /// A whole number, both ends included.
    Range(i64, i64),
    /// A duration, both ends included.
    Duration(&'static str, &'static str),
    /// A size, both ends included.
    Size(&'static str, &'static str),
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// Dotted path, as in the file.
    pub key: &'static str,
    /// The default as written in TOML; empty when there is none.
    pub default: &'static str,
    /// The unit of a number; empty where the value carries it or there is none.
    pub unit: &'static str,
    /// The values it takes.
    pub allowed: Allowed,
    /// What it does, and why the default is what it is.
    pub meaning: &'static str,
}

impl Row {
    pub(super) fn default_value(&self) -> Option<Value> {
        if self.default.is_empty() {
            return None;
        }
        Some(self.default.parse().expect("the default of a row is TOML"))
    }
}

/// The row of a key.
pub(super) fn find(key: &str) -> Option<&'static Row> {
    static SORTED: OnceLock<Vec<&'static Row>> = OnceLock::new();
    let sorted = SORTED.get_or_init(|| {
        let mut rows: Vec<&Row> = ROWS.iter().chain(PACK_ROWS).collect();
        rows.sort_by_key(|row| row.key);
        rows
    });
    sorted.binary_search_by_key(&key, |row| row.key).ok().map(|i| sorted[i])
}

/// The settings as rows of a Markdown table, without its head: key, default, unit or values, meaning.
#[must_use]
pub fn markdown() -> String {
    table(ROWS)
}

/// The same of the keys that only a pack's manifest has.
#[must_use]
pub fn pack_markdown() -> String {
    table(PACK_ROWS)
}

fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    for row in rows {
        let default = if row.default.is_empty() { "–".to_owned() } else { format!("`{}`", row.default) };
        let values = match row.allowed {
            Allowed::Free => row.unit.to_owned(),
            Allowed::Range(least, most) => format!("{least} – {most} {}", row.unit).trim_end().to_owned(),
            Allowed::Duration(least, most) | Allowed::Size(least, most) => {
                format!("{least} – {most}")
            }
            Allowed::OneOf(words) => words.join(", "),
        };
        table.push_str(&format!("| `{}` | {default} | {values} | {} |\n", row.key, row.meaning.replace('|', "\\|")));
    }
    table
}

pub(super) const fn row(
    key: &'static str,
    default: &'static str,
    unit: &'static str,
    allowed: Allowed,
    meaning: &'static str,
) -> Row {
    Row { key, default, unit, allowed, meaning }
}

use Allowed::{Duration, Free, OneOf, Range, Size};

/// All settings, in the order of the file.
#[rustfmt::skip]
pub const ROWS: &[Row] = &[
    row("server.listen", "\"127.0.0.1:8080\"", "address:port", Free, "Where the server listens. Loopback unless said, so that a first start is never public; port 0 takes a free one."),
    row("server.public_url", "", "http(s) address", Free, "How browsers reach the server; decides links, cookies and the own origin. Without it the address of each request counts."),
    row("server.allowed_origins", "[]", "origins", Free, "Other sites whose pages may embed the widgets, call the API and open the WebSocket."),
    row("server.insecure_http", "false", "true, false", Free, "Allows password login over plain http outside loopback. Off, because a password would travel in the clear."),
    row("server.trusted_proxies", "[]", "addresses or networks", Free, "Proxies whose forwarded client address and scheme are believed. None, because anybody can send those headers."),
    row("database.url", "\"sqlite://data/taskbell.db\"", "sqlite:, postgres:, mysql:", Free, "The database that holds everything that counts. A SQLite file needs no server and serves one process."),
    row("database.migrate", "\"auto\"", "", OneOf(&["auto", "check"]), "`auto` brings the tables up to date at start; `check` refuses to start when they are behind."),
    row("database.synchronous", "\"full\"", "", OneOf(&["full", "normal"]), "SQLite only. `full` keeps every accepted task over a power loss; `normal` is faster and keeps it over a crash of the process only."),
    row("database.connections", "10", "connections", Range(2, 1000), "PostgreSQL only. The most connections of this node; its task logs take up to three more. All nodes together must stay below what the server allows."),
    row("redis.url", "", "redis:, rediss:", Free, "Optional fan-out and wake-up between nodes; never the truth."),
    row("redis.ca", "", "secret, PEM", Free, "Who vouches for a `rediss:` server; those that the system trusts where none is given."),
    row("files.url", "\"file://data/files\"", "file:, s3:", Free, "Where uploads and artifacts are kept."),
    row("logs.url", "", "like database.url", Free, "Where task logs are kept. Empty: a file of their own beside a SQLite database, else the same database, so that log writes never hold up tasks."),
    row("engine.parallelism", "16", "chunks", Range(1, 1024), "Chunks that run at once on this node. Handlers wait more than they compute, so it is above the usual number of cores."),
    row("engine.tenants", "[\"*\"]", "tenants", Free, "This node runs tasks of these tenants only; `*` is all."),
    row("engine.lease_ms", "30000", "ms", Range(300, 3_600_000), "How long a claim holds without renewal. Three missed beats: shorter loses tasks to a slow database, longer delays the takeover from a dead node."),
    row("engine.heartbeat_ms", "10000", "ms", Range(50, 1_200_000), "How often leases are renewed. At most a third of `engine.lease_ms`, and a third of it when that is shorter and this is not given."),
    row("engine.poll_ms", "1000", "ms", Range(10, 600_000), "How often due tasks are looked for when no wake-up came; the longest wait when every signal is lost."),
    row("engine.sweep_ms", "5000", "ms", Range(10, 600_000), "How often expired leases are taken back; bounds the takeover together with `engine.lease_ms`."),
    row("engine.drain_grace_ms", "20000", "ms", Range(0, 3_600_000), "How long a stop waits for chunks before it hands them back. Below the 30 s that most supervisors wait."),
    row("engine.cancel_grace_ms", "60000", "ms", Range(0, 3_600_000), "How long a cancel waits for the chunk under way before the task is cancelled without it."),
    row("retention.succeeded", "\"30d\"", "duration", Duration("0s", "3650d"), "How long a task that succeeded is kept after its end, with its timeline, results and log; at least as long as it answers for its idempotency key."),
    row("retention.failed", "\"90d\"", "duration", Duration("0s", "3650d"), "The same of a task that failed. Longer, because it may be looked into and resumed."),
    row("retention.cancelled", "\"90d\"", "duration", Duration("0s", "3650d"), "The same of a task that was cancelled."),
    row("retention.logs", "\"30d\"", "duration", Duration("0s", "3650d"), "How long the log of an ended task is kept, where the task is kept longer. Logs take the most room."),
    row("retention.every", "\"1h\"", "duration", Duration("1s", "1d"), "How often a node looks for what is over. It takes small batches with pauses, so the work beside it goes on."),
    row("push.ping_ms", "25000", "ms", Range(100, 50_000), "How often a quiet WebSocket is pinged. Proxies cut what is quiet for 60 s; two pings fit into that."),
    row("push.pong_ms", "10000", "ms", Range(100, 60_000), "How long the answer to a ping may take. Together with `push.ping_ms` the longest that a dead peer is kept."),
    row("push.hello_ms", "10000", "ms", Range(100, 60_000), "How long a WebSocket may take to say who it is. Enough for a page that has to fetch a token first."),
    row("push.write_ms", "10000", "ms", Range(100, 600_000), "How long one frame may wait to be taken before the peer is closed as too slow. A page that was away for longer gets a snapshot anyway."),
    row("push.commands_per_second", "20", "frames", Range(1, 10_000), "Frames a second that a client may send, and how many in one burst. A page sends a few a minute."),
    row("push.topics_per_connection", "32", "topics", Range(1, 1_000), "Tasks, records and `ops` that one WebSocket may watch beside its own notification center. More than fit on a screen."),
    row("push.connections_per_user", "20", "connections", Range(1, 100_000), "WebSockets of one user on this node. Hidden tabs share one, so it is far above what a person has open."),
    row("push.connections_per_address", "100", "connections", Range(1, 1_000_000), "WebSockets from one client address on this node; of IPv6 from one /64 network. A small office fits. Behind a proxy set `server.trusted_proxies`, else all people share the proxy's address."),
    row("push.connections_per_node", "5000", "connections", Range(1, 1_000_000), "WebSockets on this node. Each is a file handle and some memory; the process needs as many handles and a few hundred more."),
    row("push.frame_bytes", "32768", "bytes", Range(4_096, 1_048_576), "The largest frame that a client may send. Its longest is a token; the rest has a few hundred bytes."),
    row("push.pending_bytes", "262144", "bytes", Range(65_536, 16_777_216), "Bytes that may wait to be written to one WebSocket. No frame is larger than three quarters of it, and one frame waits at a time."),
    row("scheduler.enabled", "true", "true, false", Free, "Whether this node fires schedules. Off during a hand-over leaves due instants to the other nodes."),
    row("packs.dir", "\"packs\"", "folder", Free, "Where packs of scripts are looked for, each in a folder of its own."),
    row("packs.data", "\"data/packs\"", "folder", Free, "Where packs that name no database keep a SQLite file of their own."),
    row("packs.poll_ms", "1000", "ms", Range(50, 600_000), "How often the folders of packs are looked at. A folder that changed is loaded when it has been the same in two looks."),
    row("outbound.timeout_ms", "10000", "ms", Range(100, 600_000), "The longest one webhook delivery may take."),
    row("outbound.first_retry_ms", "5000", "ms", Range(100, 3_600_000), "The wait before the second attempt of a delivery; it doubles from there."),
    row("outbound.allow", "[]", "hosts, host:port, networks", Free, "Where handlers, scripts and webhooks may call: nowhere unless listed, on ports 80 and 443 unless said. A listed name may lead to a private address only where that address, or its network, is listed too."),
    row("log.level", "\"info\"", "", OneOf(&["error", "warn", "info", "debug", "trace"]), "How much of its own doing the process tells on standard error."),
    row("log.format", "\"text\"", "", OneOf(&["text", "json"]), "`text` for people, `json` (one object a line) for collectors."),
    row("auth.jwt", "[]", "issuers", Free, "Issuers whose JWTs are taken as proof of who calls."),
    row("auth.jwt[].issuer", "", "text", Free, "The `iss` that a token must carry."),
    row("auth.jwt[].audience", "\"taskbell\"", "text", Free, "The `aud` that a token must carry, so that a token for another service is refused."),
    row("auth.jwt[].algorithm", "\"HS256\"", "", OneOf(&["HS256", "RS256", "ES256", "EdDSA"]), "The one algorithm taken from this issuer."),
    row("auth.jwt[].kid", "", "text", Free, "The `kid` that a token must carry; without it a token must carry none. Several entries of one issuer with keys of their own let it change its key."),
    row("auth.jwt[].max_role", "\"user\"", "", OneOf(&["user", "operator", "admin", "platform"]), "The highest role that a token of this issuer can give."),
    row("auth.jwt[].secret", "", "secret", Free, "The shared key of HS256, at least 32 bytes."),
    row("auth.jwt[].public_key", "", "secret", Free, "The PEM public key of RS256, ES256 and EdDSA."),
    row("webhooks[].url", "", "http(s) address", Free, "Where events are delivered."),
    row("webhooks[].secret", "", "secret, whsec_…", Free, "The Standard Webhooks key that signs deliveries: `whsec_` and 24 bytes or more in base64; a list of two while it is changed, the new one first."),
    row("webhooks[].events", "[\"task.*\"]", "event names", Free, "Which events are delivered: `task.*`, or `task.` and one of created, started, progressed, succeeded, failed, cancelled, paused, resumed, retried."),
    row("records[].type", "", "text", Free, "The type of business record that this entry is about."),
    row("records[].url", "", "address with {id}", Free, "The way back from a task to its record: http(s), or a path on the own site."),
    row("records[].visibility", "\"owner\"", "", OneOf(&["owner", "tenant"]), "`tenant`: everyone of the tenant sees state, numbers, starter and times of its tasks."),
    row("records[].write_back.table", "", "identifier", Free, "The business table that shows the state of tasks."),
    row("records[].write_back.key", "\"id\"", "identifier", Free, "Its key column, compared with the record id."),
    row("records[].write_back.status", "", "identifier", Free, "The column for the state."),
    row("records[].write_back.task", "", "identifier", Free, "The column for the task id."),
    row("records[].write_back.progress", "", "identifier", Free, "The column for the percentage."),
    row("records[].write_back.eta", "", "identifier", Free, "The column for the expected end."),
    row("records[].write_back.words", "", "state → text", Free, "The text written for each state; the state's own name where none is given."),
    row("actions[].key", "", "[a-z0-9][a-z0-9._-]{0,99}", Free, "The name by which the action is submitted."),
    row("actions[].title", "", "text or { language = text }", Free, "What the button says; the key where none is given."),
    row("actions[].group", "", "text or { language = text }", Free, "The heading under which the button stands."),
    row("actions[].handler.native", "", "name", Free, "A handler compiled into the binary."),
    row("actions[].handler.script", "", "path", Free, "A JavaScript file, relative to the configuration file."),
    row("actions[].handler.http", "", "http(s) address", Free, "An endpoint of your application that runs one chunk per call; its host has to be listed in `outbound.allow`."),
    row("actions[].handler.secret", "", "secret, whsec_…", Free, "The key that signs the calls of an http handler, as for webhooks; a list of two while it is changed, the new one first."),
    row("actions[].handler.pull", "", "true", Free, "Workers of your own fetch the chunks."),
    row("actions[].params", "", "JSON Schema", Free, "What a submit must carry in `params`; becomes the form."),
    row("actions[].record", "", "record type", Free, "The type of record that the button sits on."),
    row("actions[].roles", "[\"user\"]", "", OneOf(&["user", "operator", "admin", "platform"]), "Who may click; a higher role may as well."),
    row("actions[].idempotency.fields", "[]", "paths", Free, "Fields of the submit that make up a key of their own: `record.id`, `record.type`, `params.NAME`."),
    row("actions[].idempotency.keep", "", "duration", Duration("0s", "3650d"), "How long after its success a task answers for its key. 24h for a key that the caller sent, 10s for one made from fields: a double click is caught, a later click runs again."),
    row("actions[].idempotency.conflict", "\"return\"", "", OneOf(&["return", "reject", "replace-pending"]), "What a second submit of a key gets while its holder is unfinished."),
    row("actions[].concurrency.key", "", "template", Free, "Tasks with equal keys share slots. Placeholders: {tenant} {owner} {action} {record.type} {record.id} {request} {params.NAME}; `{request}` lets the caller name it."),
    row("actions[].concurrency.limit", "1", "tasks", Range(1, 10_000), "How many hold the key at once. Equal for all actions that share a key."),
    row("actions[].concurrency.policy", "\"wait\"", "", OneOf(&["wait", "skip", "reject", "replace-pending", "cancel-running"]), "What a submit gets when the key is full."),
    row("actions[].concurrency.hold", "\"task\"", "", OneOf(&["task", "chunk"]), "`task`: the slot is held from the first claim to the end; `chunk`: only while a chunk runs."),
    row("actions[].concurrency.max_waiting", "1000", "tasks", Range(1, 100_000), "How many may wait behind one key before submits are refused."),
    row("actions[].retry.max_attempts", "3", "attempts", Range(1, 1_000), "Failures in a row of one chunk before the task fails."),
    row("actions[].retry.base", "\"5s\"", "duration", Duration("1ms", "1d"), "The wait before the second attempt; it doubles from there, with 10 % jitter."),
    row("actions[].retry.cap", "\"5m\"", "duration", Duration("1ms", "7d"), "The longest such wait."),
    row("actions[].chunk_timeout", "\"30s\"", "duration", Duration("10ms", "600s"), "The longest one chunk may run before it is dropped and tried again. As long as the lease: short chunks keep progress and cancel prompt."),
    row("actions[].timeout", "", "duration", Duration("1s", "3650d"), "The deadline of the whole task, from its first claim. None: it may take as long as it takes."),
    row("actions[].budgets.memory", "\"64MiB\"", "size", Size("4MiB", "4GiB"), "Memory of one chunk of a script."),
    row("actions[].budgets.statements", "50000000", "statements", Range(1_000, 1_000_000_000_000), "Work of one chunk of a script: jumps of loops, calls and steps of regular expressions, as the interpreter counts them, in steps of 10,000."),
    row("actions[].budgets.stack", "\"1MiB\"", "size", Size("64KiB", "8MiB"), "Stack of the calls of one chunk of a script."),
    row("actions[].budgets.nesting", "32", "calls", Range(1, 1_000), "How deep scripts may run scripts."),
    row("actions[].budgets.output", "\"8MiB\"", "size", Size("64KiB", "64MiB"), "JSON that one chunk of a script hands out: its answer, its calls, and what it gives to scripts that it runs."),
    row("actions[].budgets.log", "\"8MiB\"", "size", Size("4KiB", "1GiB"), "Text that one chunk of a script logs. At most 2,000 lines and 1 MiB of it are kept; beyond this budget the chunk ends."),
    row("actions[].undo_window", "\"0s\"", "duration", Duration("0s", "1h"), "How long after the click the task cannot start, and a cancel leaves no trace in the record."),
    row("actions[].cancel", "\"owner\"", "", OneOf(&["owner", "operator", "nobody"]), "Who may cancel, at least."),
];
