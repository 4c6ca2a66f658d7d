//! Problems as people see them: a page in their language, or the way to the sign-in.
//!
//! Handlers of pages refuse with the same problems as the API. Where a browser asks for a page, the problem is taken out of
//! the answer here and shown; every other answer passes untouched.

use super::error::ErrorPage;
use super::html;
use super::shell::Shell;
use crate::web::auth;
use crate::web::error::{Code, Problem};
use crate::web::middleware::{RequestId, note};
use crate::web::state::AppState;
use axum::extract::Request;
use axum::http::{HeaderMap, Method, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};

/// Somebody who asks for a page, and would have a problem shown as one.
pub struct Wanted {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    id: Option<RequestId>,
}

impl Wanted {
    /// What a request asks for; none where it is no page.
    #[must_use]
    pub fn of(request: &Request) -> Option<Self> {
        wants_page(request.uri(), request.headers()).then(|| Self {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
            id: request.extensions().get::<RequestId>().cloned(),
        })
    }
}

/// Shows a problem as a page.
pub async fn dress(state: &AppState, wanted: Wanted, mut response: Response) -> Response {
    let Wanted { method, uri, headers, id } = wanted;
    let Some(Problem(error)) = response.extensions_mut().remove::<Problem>() else { return response };
    if let Some(id) = &id {
        note(&error, id, &method, uri.path());
    }
    if error.code == Code::Unauthenticated {
        return to_sign_in(&method, &uri);
    }
    let caller = auth::caller(state, &headers, true).await.ok().flatten();
    let shell = Shell::of(state, &headers, &uri, caller.as_ref());
    let sentence = error.detail.clone().unwrap_or_else(|| error.code.sentence().to_owned());
    let page = ErrorPage::new(&shell, error.code.status().as_u16(), Some(&sentence), id.map(|id| id.0));
    let mut page = (response.status(), html(&page)).into_response();
    if let Some(seconds) = response.headers().get(header::RETRY_AFTER) {
        page.headers_mut().insert(header::RETRY_AFTER, seconds.clone());
    }
    page
}

fn wants_page(uri: &Uri, headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    accept.contains("text/html") && !uri.path().starts_with("/api/")
}

fn to_sign_in(method: &Method, uri: &Uri) -> Response {
    let next = uri.path_and_query().map_or("/", |p| p.as_str());
    if *method != Method::GET || next == "/" {
        return Redirect::to("/login").into_response();
    }
    let query: String = url::form_urlencoded::Serializer::new(String::new()).append_pair("next", next).finish();
    Redirect::to(&format!("/login?{query}")).into_response()
}
