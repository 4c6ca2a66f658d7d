//! The numbers of the process for Prometheus.
//!
//! They name no tenant, no user and no task, but tell how busy the service is. So they are for programs on the same machine
//! that ask it directly, and elsewhere for callers with the role operator or above. A request that a proxy has passed on is
//! from elsewhere.

use super::health::PATIENCE;
use crate::core::metric;
use crate::core::task::State as TaskState;
use crate::core::time::Mono;
use crate::store::{Counts, Reach};
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
use std::net::SocketAddr;
use tokio::sync::Mutex;

/// How long counts of tasks are told again, ms.
const KEEP_MS: u64 = 5_000;
/// What proxies add.
const PASSED_ON: [&str; 4] = ["forwarded", "x-forwarded-for", "x-real-ip", "via"];

/// The last counts of tasks, and when they were read.
#[derive(Default)]
pub struct LastCounts(Mutex<Option<(Mono, Counts)>>);

/// The numbers of this process, in the text format of Prometheus.
///
/// Open to programs on the same machine that ask it directly, under a name of the machine; elsewhere for callers with the role
/// operator or above.
#[utoipa::path(get, path = "/metrics", operation_id = "metrics", tag = "operations",
    responses((status = 200, body = String, content_type = "text/plain", description = "The numbers.")),
    security((), ("key" = []), ("session" = [])), extensions(("x-codes" = json!(["unauthenticated", "forbidden"]))))]
pub async fn read(
    State(state): State<AppState>,
    peer: Option<Extension<ConnectInfo<SocketAddr>>>,
    MaybeCaller(caller): MaybeCaller,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let beside_us = peer.is_some_and(|Extension(ConnectInfo(peer))| peer.ip().to_canonical().is_loopback())
        && is_loopback_host(&headers)
        && !PASSED_ON.iter().any(|name| headers.contains_key(*name));
    match caller {
        Some(caller) if caller.principal.is_operator() => {}
        _ if beside_us => {}
        Some(_) => return Err(ApiError::new(Code::Forbidden).detail("Only operators read the numbers of the service.")),
        None => return Err(ApiError::new(Code::Unauthenticated)),
    }
    look(&state).await;
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], state.numbers.render()).into_response())
}

/// Takes what is not counted as it happens. A database that is down is told as such and keeps nothing else from being told.
async fn look(state: &AppState) {
    let (answered, took) = timed(tokio::time::timeout(PATIENCE, state.store.ready())).await;
    let up = matches!(answered, Ok(Ok(())));
    gauge!(metric::DATABASE_UP).set(f64::from(u8::from(up)));
    gauge!(metric::DATABASE_SECONDS).set(took.as_secs_f64());
    if up && let Ok(Some(counts)) = tokio::time::timeout(PATIENCE, state.last_counts.read(state)).await {
        for word in TaskState::ALL.into_iter().filter(|word| !word.is_final()) {
            let count = counts.by_state.get(&word).copied().unwrap_or(0);
            gauge!(metric::TASKS, "state" => word.as_str()).set(count as f64);
        }
    }
    gauge!(metric::SOCKETS).set(state.hub.connection_count() as f64);
    let reads = state.hub.snapshot_reads();
    gauge!(metric::SNAPSHOT_READS).set(reads.now as f64);
    gauge!(metric::SNAPSHOT_READS_MOST).set(reads.most as f64);
    if let Some(bytes) = resident_bytes() {
        gauge!(metric::MEMORY).set(bytes);
    }
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
