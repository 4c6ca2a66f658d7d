//! What handlers ask for before they run: who calls, in which language, which task.
//!
//! Rights come first: a caller that is not known gets 401 before anything else is looked at, and an id that is no id gets
//! the same 404 as a task that is not the caller's.

use super::auth::{self, Caller};
use super::error::{ApiError, Code};
use super::origin;
use super::state::AppState;
use crate::core::ids::TaskId;
use crate::core::principal::{Principal, Role, Scope};
use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::convert::Infallible;

/// A caller who may read.
#[derive(Clone, Debug)]
pub struct Reader(pub Principal);

/// A caller who may submit and control.
#[derive(Clone, Debug)]
pub struct Writer(pub Principal);

/// A caller who may use the admin API.
#[derive(Clone, Debug)]
pub struct Administrator(pub Principal);

/// A caller who may look at the platform.
#[derive(Clone, Debug)]
pub struct PlatformCaller(pub Principal);

/// Whoever calls, known or not.
#[derive(Clone, Debug)]
pub struct MaybeCaller(pub Option<Caller>);

/// A worker outside.
#[derive(Clone, Debug)]
pub struct WorkerCaller(pub Caller);

impl FromRequestParts<AppState> for MaybeCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let own_page = origin::of(&parts.headers, &state.settings) != origin::From::Listed;
        auth::caller(state, &parts.headers, own_page).await.map(Self)
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let MaybeCaller(caller) = MaybeCaller::from_request_parts(parts, state).await?;
        caller.ok_or_else(|| ApiError::new(Code::Unauthenticated))
    }
}

impl FromRequestParts<AppState> for Reader {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        with_scope(parts, state, Scope::TasksRead).await.map(Self)
    }
}

impl FromRequestParts<AppState> for Writer {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        with_scope(parts, state, Scope::TasksWrite).await.map(Self)
    }
}

impl FromRequestParts<AppState> for WorkerCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        caller_with(parts, state, Scope::Worker).await.map(Self)
    }
}

impl FromRequestParts<AppState> for Administrator {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let who = with_scope(parts, state, Scope::Admin).await?;
        if who.role < Role::Admin {
            return Err(ApiError::new(Code::Forbidden).detail("This takes the role admin."));
        }
        Ok(Self(who))
    }
}

impl FromRequestParts<AppState> for PlatformCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let who = with_scope(parts, state, Scope::Admin).await?;
        if who.role < Role::Platform {
            return Err(ApiError::new(Code::Forbidden).detail("This takes the role platform."));
        }
        Ok(Self(who))
    }
}

async fn with_scope(parts: &mut Parts, state: &AppState, scope: Scope) -> Result<Principal, ApiError> {
    caller_with(parts, state, scope).await.map(|caller| caller.principal)
}

async fn caller_with(parts: &mut Parts, state: &AppState, scope: Scope) -> Result<Caller, ApiError> {
    let caller = Caller::from_request_parts(parts, state).await?;
    if !caller.principal.has(scope) {
        let why = format!("The key does not carry the scope {}.", scope.as_str());
        return Err(ApiError::new(Code::Forbidden).detail(why));
    }
    Ok(caller)
}

/// The task that an address names.
#[derive(Clone, Copy, Debug)]
pub struct TaskPath(pub TaskId);

impl FromRequestParts<AppState> for TaskPath {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        let path = Path::<String>::from_request_parts(parts, state).await;
        let id = path.ok().filter(|Path(text)| text.len() == 36).and_then(|Path(text)| text.parse().ok());
        id.map(Self).ok_or_else(|| ApiError::new(Code::NotFound))
    }
}

/// The caller's language: one in which something is said here. `lang=` in the address, else `Accept-Language`, else English.
#[derive(Clone, Debug)]
pub struct Lang(pub String);

impl FromRequestParts<AppState> for Lang {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let query = parts.uri.query().unwrap_or_default();
        let asked = url::form_urlencoded::parse(query.as_bytes()).find(|(k, v)| k == "lang" && !v.is_empty());
        let wanted = match asked {
            Some((_, lang)) => vec![lang.into_owned()],
            None => accepted(&parts.headers),
        };
        Ok(Self(choose(&wanted, &state.languages)))
    }
}

/// The tags of `Accept-Language`, most wanted first.
fn accepted(headers: &HeaderMap) -> Vec<String> {
    let text = headers.get(header::ACCEPT_LANGUAGE).and_then(|v| v.to_str().ok()).unwrap_or_default();
    let mut tags: Vec<(f32, String)> = text
        .split(',')
        .take(20)
        .filter_map(|part| {
            let (tag, rest) = part.split_once(';').unwrap_or((part, "q=1"));
            let weight = rest.trim().strip_prefix("q=").and_then(|q| q.trim().parse().ok()).unwrap_or(0.0);
            (weight > 0.0).then(|| (weight, tag.trim().to_owned()))
        })
        .collect();
    tags.sort_by(|a, b| b.0.total_cmp(&a.0));
    tags.into_iter().map(|(_, tag)| tag).collect()
}

/// The first wanted language that is there, by tag or by base language; else English.
fn choose(wanted: &[String], have: &[String]) -> String {
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let find = |tag: &String| {
        have.iter().find(|h| h.eq_ignore_ascii_case(tag)).or_else(|| have.iter().find(|h| base(h) == base(tag)))
    };
    wanted.iter().find_map(find).cloned().unwrap_or_else(|| "en".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_the_most_wanted_one_that_is_there() {
        let have = ["en".to_owned(), "zh-CN".to_owned()];
        for (sent, lang) in [
            ("", "en"),
            ("zh", "zh-CN"),
            ("zh-TW,en;q=0.5", "zh-CN"),
            ("fr, zh-cn;q=0.9, en;q=0.8", "zh-CN"),
            ("en-GB, zh;q=0.9", "en"),
            ("zh;q=0, en;q=0.1", "en"),
            (";;;q=x,,*", "en"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, sent.parse().unwrap());
            assert_eq!(choose(&accepted(&headers), &have), lang, "{sent}");
        }
    }
}
