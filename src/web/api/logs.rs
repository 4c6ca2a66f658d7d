//! The log of a task: pages, and all of it as a text file.

use super::events::place;
use super::list::MAX_PAGE;
use crate::core::ids::TaskId;
use crate::store::StoreError;
use crate::store::logs::{Level, LogLine, LogParams, LogPart, LogStore};
use crate::web::error::ApiError;
use crate::web::extract::{Reader, TaskPath};
use crate::web::openapi::asked;
use crate::web::query::{Query, SEARCH_CHARS};
use crate::web::state::AppState;
use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use std::fmt::Write;
use std::sync::Arc;
use utoipa::ToSchema;

/// Lines that a download reads at once.
const DOWNLOAD_LINES: usize = 1_000;

/// A part of a log.
#[derive(Debug, Serialize, ToSchema)]
pub struct LogPage {
    /// In order.
    pub items: Vec<LogLine>,
    /// Go on with `after=` this (or `before=` this, when going back); null at the end.
    pub next: Option<i64>,
    /// Lines of the task that were dropped by a cap or lost by a fault.
    pub dropped: i64,
}

/// Lines of the log of a task.
///
/// Forward from `after`, or with `before` back from there.
#[utoipa::path(get, path = "/tasks/{id}/logs", operation_id = "taskLogs", tag = "tasks", params(("id" = TaskId, Path, description = "The task."), asked::LogQuery), responses((status = 200, body = LogPage, description = "A part of the log.")), extensions(("x-codes" = json!(["bad-cursor"]))))]
pub async fn page(
    State(state): State<AppState>,
    Reader(who): Reader,
    TaskPath(id): TaskPath,
    mut query: Query,
) -> Result<Json<LogPage>, ApiError> {
    let (after, before) = (place(&mut query, "after")?, place(&mut query, "before")?);
    let level = query.choice("level", read_level, "debug, info, warn, error");
    let text = query.text("q", SEARCH_CHARS);
    let limit = query.whole("limit", 1..=MAX_PAGE).unwrap_or(MAX_PAGE);
    query.finish()?;
    state.task(&who, id).await?;
    let limit = usize::try_from(limit).expect("1…200 was checked");
    let params = LogParams { after, before, level, text, limit: limit + 1 };
    Ok(Json(cut(state.logs.part(id, params).await?, limit, before.is_some())))
}

/// One line more was read than asked for: it tells that there is more.
fn cut(part: LogPart, limit: usize, backward: bool) -> LogPage {
    let LogPart { mut items, dropped, .. } = part;
    let more = items.len() > limit;
    if more && backward {
        items.remove(0);
    }
    items.truncate(limit);
    let edge = if backward { items.first() } else { items.last() };
    LogPage { next: edge.map(|l| l.seq).filter(|_| more), items, dropped }
}

fn read_level(word: &str) -> Option<Level> {
    Some(Level::parse(word)).filter(|level| level.as_str() == word)
}

/// The whole log of a task as a text file.
#[utoipa::path(get, path = "/tasks/{id}/logs/download", operation_id = "downloadTaskLogs", tag = "tasks", params(("id" = TaskId, Path, description = "The task.")), responses((status = 200, body = String, content_type = "text/plain", description = "The text, as an attachment.")))]
pub async fn download(
    State(state): State<AppState>,
    Reader(who): Reader,
    TaskPath(id): TaskPath,
) -> Result<Response, ApiError> {
    state.task(&who, id).await?;
    let name = format!("attachment; filename=\"task-{id}.log\"");
    let headers = [(header::CONTENT_TYPE, "text/plain; charset=utf-8".to_owned()), (header::CONTENT_DISPOSITION, name)];
    Ok((headers, Body::from_stream(lines(state.logs.clone(), id))).into_response())
}

/// The whole log, a part at a time; lines that are missing leave a mark.
fn lines(logs: Arc<dyn LogStore>, id: TaskId) -> impl futures_util::Stream<Item = Result<String, StoreError>> {
    stream::try_unfold(Some(0), move |after| {
        let logs = logs.clone();
        async move {
            let Some(after) = after else { return Ok(None) };
            let params = LogParams { after: Some(after), limit: DOWNLOAD_LINES, ..LogParams::default() };
            let part = logs.part(id, params).await?;
            let next = part.items.last().map(|l| l.seq).filter(|_| part.items.len() == DOWNLOAD_LINES);
            let newest = if next.is_none() { part.newest } else { 0 };
            Ok(Some((written(after, &part.items, newest), next)))
        }
    })
}

/// The text of a part; of the last one `newest` is the last number that was given out, so that lines missing at the very end
/// leave a mark too, and 0 of every other.
fn written(after: i64, items: &[LogLine], newest: i64) -> String {
    let (mut out, mut last) = (String::new(), after);
    let mark = |out: &mut String, missing: i64| {
        let _ = match missing {
            ..=0 => Ok(()),
            1 => writeln!(out, "… 1 line is missing here …"),
            _ => writeln!(out, "… {missing} lines are missing here …"),
        };
    };
    for line in items {
        mark(&mut out, line.seq - last - 1);
        let (level, chunk) = (line.level.as_str(), line.chunk);
        let _ = writeln!(out, "{} {level:<5} {} #{chunk} {}", line.at, line.source, line.message);
        last = line.seq;
    }
    mark(&mut out, newest - last);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::time::Millis;

    fn line(seq: i64) -> LogLine {
        let (at, level) = (Millis(0), Level::Warn);
        LogLine { seq, at, level, source: "handler".into(), chunk: 2, message: format!("m{seq}") }
    }

    #[test]
    fn a_page_tells_whether_there_is_more_in_its_own_direction() {
        let part = |seqs: &[i64]| LogPart { items: seqs.iter().map(|s| line(*s)).collect(), dropped: 0, newest: 9 };
        let seqs = |page: &LogPage| page.items.iter().map(|l| l.seq).collect::<Vec<_>>();
        let page = cut(part(&[1, 2, 3]), 2, false);
        assert_eq!((seqs(&page), page.next), (vec![1, 2], Some(2)));
        let page = cut(part(&[1, 2, 3]), 2, true);
        assert_eq!((seqs(&page), page.next), (vec![2, 3], Some(2)));
        assert_eq!(cut(part(&[1, 2]), 2, true).next, None);
    }

    #[test]
    fn a_download_marks_what_is_missing() {
        let (m1, m4) =
            ("1970-01-01T00:00:00.000Z warn  handler #2 m1\n", "1970-01-01T00:00:00.000Z warn  handler #2 m4\n");
        let two = "… 2 lines are missing here …\n";
        assert_eq!(written(0, &[line(1), line(4)], 0), format!("{m1}{two}{m4}"));
        assert_eq!(written(0, &[line(1), line(4)], 4), format!("{m1}{two}{m4}"), "nothing is missing at its end");
        assert_eq!(written(0, &[line(1), line(4)], 6), format!("{m1}{two}{m4}{two}"));
        assert_eq!(written(4, &[], 5), "… 1 line is missing here …\n");
    }
}
