//! The numbers of the process for Prometheus.
//!
//! They name no tenant, no user and no task, but tell how busy the service is. So they are for programs on the same machine
//! that ask it directly, and elsewhere for callers with the role operator or above. A request that a proxy has passed on is
//! from elsewhere.
//!
//! While the database is away the numbers of the node itself are told all the same, and those that are read from the database are
//! left out: an old one would pass for the truth.

use super::health::PATIENCE;
use crate::core::metric;
use crate::core::task::State as TaskState;
use crate::core::time::{Millis, Mono};
use crate::store::{Counts, Reach};
use crate::web::auth::{Caller, Via, bearer, key_hash};
use crate::web::error::{ApiError, Code};
use crate::web::extract::MaybeCaller;
use crate::web::measure::timed;
use crate::web::origin::is_loopback_host;
use crate::web::state::AppState;
use axum::Extension;
use axum::extract::{ConnectInfo, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use metrics::gauge;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::PoisonError;
use tokio::sync::Mutex;

/// How long counts of tasks are told again, ms.
const KEEP_MS: u64 = 5_000;
/// Keys that are remembered; above it all are forgotten.
const READERS: usize = 64;
/// What proxies add.
const PASSED_ON: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The last counts of tasks, and when they were read.
#[derive(Default)]
pub struct LastCounts(Mutex<Option<(Mono, Counts)>>);

/// The keys by which operators have read the numbers here, by their hash, with their end. These count while the database is away,
/// where no key can be proven: whoever watches the service watches it then above all. Nothing else is told for them.
#[derive(Debug, Default)]
pub struct NumberReaders(std::sync::Mutex<HashMap<String, Option<Millis>>>);

impl NumberReaders {
    /// Remembers a key that was just proven; other proofs need no database, or end with it.
    fn note(&self, caller: Caller) {
        if let (Via::Key, Some(hash)) = (&caller.via, caller.credential) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() >= READERS && !known.contains_key(&hash) {
                known.clear();
            }
            known.insert(hash, caller.expires_at);
        }
    }

    /// Forgets a key that was taken back.
    fn forget(&self, headers: &HeaderMap) {
        if let Some(key) = headers.get(header::AUTHORIZATION).and_then(bearer) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&key_hash(key));
        }
    }

    /// Whether a request carries one of them that is not over.
    fn has(&self, headers: &HeaderMap, now: Millis) -> bool {
        let Some(key) = headers.get(header::AUTHORIZATION).and_then(bearer) else { return false };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&key_hash(key)).is_some_and(|end| end.is_none_or(|end| now < end))
    }
}

/// The numbers of this process, in the text format of Prometheus.
///
/// Open to programs on the same machine that ask it directly, under a name of the machine; elsewhere for callers with the role
/// operator or above. While the database is away, for keys that have read them from this node before, and without what is read
/// from the database.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain", description = "The numbers.")),
    security((), ("key" = []), ("session" = [])), extensions(("x-codes" = json!(["unauthenticated", "forbidden"]))))]
pub async fn read(
    State(state): State<AppState>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    caller: Result<MaybeCaller, ApiError>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let beside_us = peer.is_some_and(|Extension(ConnectInfo(peer))| peer.ip().to_canonical().is_loopback())
        && is_loopback_host(&headers)
        && !PASSED_ON.iter().any(|name| headers.contains_key(*name));
    if !beside_us {
        match caller {
            Ok(MaybeCaller(Some(caller))) if caller.principal.is_operator() => state.number_readers.note(caller),
            Ok(MaybeCaller(Some(_))) => {
                return Err(ApiError::new(Code::Forbidden).detail("Only operators read the numbers of the service."));
            }
            Ok(MaybeCaller(None)) => return Err(ApiError::new(Code::Unauthenticated)),
            Err(e) if e.code == Code::Unavailable && state.number_readers.has(&headers, state.clock.now()) => {}
            Err(e) => {
                if e.code == Code::Unauthenticated {
                    state.number_readers.forget(&headers);
                }
                return Err(e);
            }
        }
    }
    let unread = look(&state).await;
    let text = without(&unread, &state.numbers.render());
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response())
}

/// The text without these numbers.
fn without(names: &[&str], text: &str) -> String {
    let of = |line: &str, name: &str| {
        let line = line.strip_prefix("# HELP ").or_else(|| line.strip_prefix("# TYPE ")).unwrap_or(line);
        line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']))
    };
    text.split_inclusive('\n').filter(|line| !names.iter().any(|name| of(line, name))).collect()
}

/// Takes what is not counted as it happens. A database that is down is told as such and keeps nothing else from being told;
/// answers what could not be read, of which the last value is still kept.
async fn look(state: &AppState) -> Vec<&'static str> {
    let mut unread = Vec::new();
    let (answered, took) = timed(tokio::time::timeout(PATIENCE, state.store.ready())).await;
    let up = matches!(answered, Ok(Ok(())));
    gauge!(metric::DATABASE_UP).set(f64::from(u8::from(up)));
    match up {
        true => gauge!(metric::DATABASE_SECONDS).set(took.as_secs_f64()),
        false => unread.push(metric::DATABASE_SECONDS),
    }
    let counts = async { if up { state.last_counts.read(state).await } else { None } };
    match tokio::time::timeout(PATIENCE, counts).await {
        Ok(Some(counts)) => {
            for word in TaskState::ALL.into_iter().filter(|word| !word.is_final()) {
                let count = counts.by_state.get(&word).copied().unwrap_or(0);
                gauge!(metric::TASKS, "state" => word.as_str()).set(count as f64);
            }
        }
        _ => unread.push(metric::TASKS),
    }
    gauge!(metric::SOCKETS).set(state.hub.connection_count() as f64);
    let reads = state.hub.snapshot_reads();
    gauge!(metric::SNAPSHOT_READS).set(reads.now as f64);
    gauge!(metric::SNAPSHOT_READS_MOST).set(reads.most as f64);
    if let Some(bytes) = resident_bytes() {
        gauge!(metric::MEMORY).set(bytes);
    }
    unread
}

impl LastCounts {
    /// Unfinished tasks by state; `None` when they cannot be read. Many readers at once are one reading.
    async fn read(&self, state: &AppState) -> Option<Counts> {
        let mut last = self.0.lock().await;
        let now = state.clock.mono();
        if let Some((at, counts)) = &*last
            && now - *at < KEEP_MS
        {
            return Some(counts.clone());
        }
        let counts = state.store.counts(&Reach::default(), false).await.ok()?;
        *last = Some((now, counts.clone()));
        Some(counts)
    }
}

/// Memory of this process, where the system tells it as Linux does.
fn resident_bytes() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<f64>().ok().map(|kib| kib * 1_024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_left_out_whole_and_no_other_with_a_name_that_begins_alike() {
        let text = "# HELP taskbell_tasks Tasks.\n# TYPE taskbell_tasks gauge\ntaskbell_tasks{state=\"queued\"} 3\n\n\
            # TYPE taskbell_tasks_more counter\ntaskbell_tasks_more 1\n# TYPE up gauge\nup 1\n";
        let rest = "\n# TYPE taskbell_tasks_more counter\ntaskbell_tasks_more 1\n";
        assert_eq!(without(&["taskbell_tasks", "up"], text), rest);
        assert_eq!(without(&[], text), text);
    }
}
