//! `GET /api/v1/ws`: who may open the push.
//!
//! Proof comes from the session cookie on our own or a listed page, from an `Authorization` header, or from the first frame;
//! never from the address. A cookie without an Origin proves nothing, since no page of ours sends it so. What
//! the request was made of is gone before the connection lives on: an idle one keeps what `socket` and the hub need.

use super::auth::{self, Caller};
use super::client::{self, Client};
use super::error::{ApiError, Code};
use super::origin::{self, From};
use super::socket::Wire;
use super::state::AppState;
use crate::core::principal::Scope;
use crate::push::protocol::SUBPROTOCOL;
use crate::push::{Authenticate, Identity, Opening};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;
use hyper::upgrade::OnUpgrade;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// Opens the push, a WebSocket.
///
/// Its subprotocol is `taskbell.v1`. Who connects is proven by the session cookie with the own or a listed `Origin`, by the `Authorization` header, or by the token of
/// the first frame. The frames are in docs/push.md.
#[utoipa::path(get, path = "/ws", operation_id = "connect", tag = "push", responses((status = 101, description = "The push begins.")), extensions(("x-codes" = json!(["bad-request"]))))]
pub async fn connect(
    State(state): State<AppState>,
    client: Client,
    mut request: Request,
) -> Result<Response, ApiError> {
    let mut response = create_response_with_body(&request, Body::empty)
        .map_err(|e| ApiError::new(Code::BadRequest).detail(e.to_string()))?;
    let upgrade = request.extensions_mut().remove::<OnUpgrade>();
    let upgrade =
        upgrade.ok_or_else(|| ApiError::new(Code::BadRequest).detail("This connection cannot be upgraded."))?;
    let headers = request.headers();
    let from_page = origin::of(headers, &state.settings) != From::Nowhere;
    let cookie = auth::cookie(headers, state.settings.insecure_http).is_some();
    if cookie && !from_page && !headers.contains_key(header::AUTHORIZATION) {
        return Err(ApiError::new(Code::OriginRefused).detail("A session needs the Origin of a page that may connect."));
    }
    let caller = auth::caller(&state, headers, from_page).await?;
    if caller.as_ref().is_some_and(|c| !c.principal.has(Scope::TasksRead)) {
        return Err(ApiError::new(Code::Forbidden).detail("The key does not carry the scope tasks:read."));
    }
    let opening = Opening {
        identity: caller.map(identity),
        address: client.address.map(client::network),
        authenticate: authenticate(state.clone()),
    };
    if offers(headers, SUBPROTOCOL) {
        let chosen = HeaderValue::from_static(SUBPROTOCOL);
        response.headers_mut().insert(header::SEC_WEBSOCKET_PROTOCOL, chosen);
    }
    let hub = state.hub.clone();
    // What the beginning needs goes with it, and the rest has its own size.
    let begun = Box::pin(async move {
        let upgraded = upgrade.await.ok()?;
        let wire = Wire::over(upgraded, hub.limits()).await?;
        Some(hub.serve(wire, opening))
    });
    tokio::spawn(async move {
        let session = begun.await;
        if let Some(session) = session {
            session.await;
        }
    });
    Ok(response)
}

/// Whether the client offers a subprotocol.
fn offers(headers: &HeaderMap, name: &str) -> bool {
    let offered = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).into_iter();
    offered.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).any(|one| one.trim() == name)
}

fn identity(caller: Caller) -> Identity {
    Identity { principal: caller.principal, expires_at: caller.expires_at, credential: caller.credential }
}

/// What a token in a frame proves, if it may read.
fn authenticate(state: AppState) -> Authenticate {
    Arc::new(move |token| {
        let state = state.clone();
        Box::pin(async move {
            let found = auth::caller_of_token(&state, &token).await;
            if let Err(e) = &found
                && e.code != Code::Unauthenticated
            {
                tracing::warn!(code = e.code.as_str(), cause = e.cause, "a token could not be looked up");
            }
            found.ok().filter(|c| c.principal.has(Scope::TasksRead)).map(identity)
        })
    })
}
