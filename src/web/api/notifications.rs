//! The notification center over plain HTTP: the snapshot, and the marks that an owner sets.
//!
//! The snapshot is the one that the push sends, for pages whose socket is down. Marks change nothing but marks.

use crate::core::ids::Head;
use crate::core::principal::Principal;
use crate::core::task::{RecordRef, State as TaskState};
use crate::core::time::Millis;
use crate::core::view::TaskSummary;
use crate::push::protocol::CountsView;
use crate::store::{Mark, MarkFilter, MarkParams, Reach};
use crate::web::body::JsonBody;
use crate::web::error::ApiError;
use crate::web::extract::{Lang, Reader};
use crate::web::fields::Fields;
use crate::web::openapi::asked;
use crate::web::query::{Query, SEARCH_CHARS};
use crate::web::state::AppState;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

/// The most ids that one request may mark.
const MAX_IDS: usize = 500;

/// The notification center of the caller.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CenterView {
    /// `snap`, as in the push.
    pub t: &'static str,
    /// `me`.
    pub topic: &'static str,
    /// The incarnation of the database.
    pub epoch: String,
    /// The owner's head.
    pub head: Head,
    /// When it was read.
    pub as_of: Millis,
    /// The unfinished, the unseen, then the newest; at most 100.
    pub items: Vec<TaskSummary>,
    /// There are more.
    pub more: bool,
    /// Counts of all items, whatever the filter says.
    pub counts: CountsView,
}

/// What a mark changed.
#[derive(Debug, Serialize, ToSchema)]
pub struct Marked {
    /// Items that were not so before.
    pub changed: usize,
    /// The counts after it.
    pub counts: CountsView,
}

/// The notification center of the caller: the snapshot of the push.
///
/// The unfinished, the unseen, then the newest; at most 100.
#[utoipa::path(get, path = "/notifications", operation_id = "getCenter", tag = "notifications", params(asked::CenterQuery), responses((status = 200, body = CenterView, description = "The snapshot.")))]
pub async fn center(
    State(state): State<AppState>,
    Reader(who): Reader,
    Lang(lang): Lang,
    mut query: Query,
) -> Result<Json<CenterView>, ApiError> {
    let filter = read_filter(&mut query);
    query.finish()?;
    let center = state.store.center(&who.tenant, &who.user).await?;
    let mut items = state.summaries(&who, &lang, &center.tasks).await?;
    items.retain(|item| filter.is_empty() || filter.iter().any(|f| f.fits(item)));
    Ok(Json(CenterView {
        t: "snap",
        topic: "me",
        epoch: state.store.epoch().to_owned(),
        head: center.head,
        as_of: center.as_of,
        items,
        more: center.more,
        counts: CountsView(center.counts),
    }))
}

/// Marks ended tasks as seen.
#[utoipa::path(post, path = "/notifications/seen", operation_id = "markSeen", tag = "notifications", request_body = asked::MarkBody, responses((status = 200, body = Marked, description = "What changed.")))]
pub async fn seen(state: State<AppState>, who: Reader, body: JsonBody) -> Result<Json<Marked>, ApiError> {
    mark(state, who, body, Mark::Seen).await
}

/// Marks ended tasks as read.
#[utoipa::path(post, path = "/notifications/read", operation_id = "markRead", tag = "notifications", request_body = asked::MarkBody, responses((status = 200, body = Marked, description = "What changed.")))]
pub async fn read(state: State<AppState>, who: Reader, body: JsonBody) -> Result<Json<Marked>, ApiError> {
    mark(state, who, body, Mark::Read).await
}

/// Puts ended tasks away.
#[utoipa::path(post, path = "/notifications/archive", operation_id = "archive", tag = "notifications", request_body = asked::MarkBody, responses((status = 200, body = Marked, description = "What changed.")))]
pub async fn archive(state: State<AppState>, who: Reader, body: JsonBody) -> Result<Json<Marked>, ApiError> {
    mark(state, who, body, Mark::Archived).await
}

async fn mark(
    State(state): State<AppState>,
    Reader(who): Reader,
    JsonBody(fields): JsonBody,
    mark: Mark,
) -> Result<Json<Marked>, ApiError> {
    let changed = match read_marks(&who, mark, fields)? {
        Some(params) => state.commands.mark(params).await?,
        None => 0,
    };
    let counts = state.store.counts(&Reach::own(&who), false).await?;
    Ok(Json(Marked { changed, counts: CountsView(counts) }))
}

/// `{"ids":[…]}`, or `{"upTo":HEAD,"filter":{"state":[…],"action":…,…}}`; `None` = an empty list of ids, which marks nothing.
fn read_marks(who: &Principal, mark: Mark, mut fields: Fields) -> Result<Option<MarkParams>, ApiError> {
    let given = (fields.has("ids"), fields.has("upTo"));
    let texts = fields.texts("ids", MAX_IDS);
    let ids: Option<Vec<_>> = texts.as_ref().map(|t| t.iter().filter_map(|id| id.parse().ok()).collect());
    if ids.as_ref().map(Vec::len) != texts.as_ref().map(Vec::len) {
        fields.fault("ids", "must be ids of tasks");
    }
    let up_to = fields.whole("upTo").map(Head);
    let mut filter = MarkFilter::default();
    if let Some(mut given) = fields.object("filter") {
        filter = read_mark_filter(&mut given);
        fields.absorb(given);
    }
    match given {
        (false, false) => fields.fault("ids", "is needed, or upTo instead of it"),
        (true, true) => fields.fault("ids", "cannot be given together with upTo"),
        _ => {}
    }
    fields.finish()?;
    let (tenant, owner) = (who.tenant.clone(), who.user.clone());
    let params = MarkParams { tenant, owner, mark, ids: ids.unwrap_or_default(), up_to, filter };
    Ok(Some(params).filter(|p| !p.ids.is_empty() || p.up_to.is_some()))
}

/// The filters of the list of tasks that concern what may be marked.
fn read_mark_filter(given: &mut Fields) -> MarkFilter {
    let mut filter = MarkFilter { action: given.text("action"), text: given.text("q"), ..MarkFilter::default() };
    for word in given.text_or_texts("state", TaskState::ALL.len()) {
        match TaskState::named(&word) {
            Some(state) => filter.states.push(state),
            None => given.fault("state", "must name states"),
        }
    }
    if let Some(text) = given.text("record") {
        match text.split_once(':') {
            Some((kind, id)) => filter.record = Some(RecordRef { kind: kind.to_owned(), id: id.to_owned() }),
            None => given.fault("record", "must be type:id"),
        }
    }
    if filter.text.as_ref().is_some_and(|q| q.chars().count() > SEARCH_CHARS) {
        given.fault("q", format!("may have at most {SEARCH_CHARS} characters"));
    }
    (filter.from, filter.to) = (given.instant("from"), given.instant("to"));
    filter
}

/// One part of a filter.
enum Filter {
    Unseen,
    Unread,
    State(TaskState),
}

impl Filter {
    fn fits(&self, item: &TaskSummary) -> bool {
        match self {
            Self::Unseen => item.state.is_final() && !item.seen,
            Self::Unread => item.state.is_final() && !item.read,
            Self::State(state) => item.state == *state,
        }
    }
}

fn read_filter(query: &mut Query) -> Vec<Filter> {
    let mut filter = Vec::new();
    for word in query.words("filter") {
        match (word.as_str(), TaskState::named(&word)) {
            ("unseen", _) => filter.push(Filter::Unseen),
            ("unread", _) => filter.push(Filter::Unread),
            (_, Some(state)) => filter.push(Filter::State(state)),
            _ => query.fault("filter", "must be unseen, unread or states, with commas"),
        }
    }
    filter
}
