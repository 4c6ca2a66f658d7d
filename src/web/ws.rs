//! `GET /api/v1/ws`: who may open the push, and the little that the hub needs of a WebSocket.
//!
//! Proof comes from the session cookie on our own or a listed page, from an `Authorization` header, or from the first frame;
//! never from the address. A cookie without an Origin proves nothing, since no page of ours sends it so. Buffers are small:
//! the library's own cost 135 KB a connection.

use super::auth::{self, Caller};
use super::client::{self, Client};
use super::error::{ApiError, Code};
use super::origin::{self, From};
use super::state::AppState;
use crate::core::principal::Scope;
use crate::push::protocol::SUBPROTOCOL;
use crate::push::{Authenticate, Identity, Incoming, Lost, Opening, Outgoing, Socket};
use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::http::{HeaderMap, header};
use axum::response::Response;
use std::sync::Arc;

/// Read and write buffers of one connection, bytes.
const BUFFER_BYTES: usize = 4 * 1024;

/// Opens the push, a WebSocket.
///
/// Its subprotocol is `taskbell.v1`. Who connects is proven by the session cookie with the own or a listed `Origin`, by the `Authorization` header, or by the token of
/// the first frame. The frames are in docs/push.md.
#[utoipa::path(get, path = "/ws", operation_id = "connect", tag = "push", responses((status = 101, description = "The push begins.")), extensions(("x-codes" = json!(["bad-request"]))))]
pub async fn connect(
    State(state): State<AppState>,
    client: Client,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, ApiError> {
    let upgrade = upgrade.map_err(|e| ApiError::new(Code::BadRequest).detail(e.body_text()))?;
    let from_page = origin::of(&headers, &state.settings) != From::Nowhere;
    let cookie = auth::cookie(&headers, state.settings.insecure_http).is_some();
    if cookie && !from_page && !headers.contains_key(header::AUTHORIZATION) {
        return Err(ApiError::new(Code::OriginRefused).detail("A session needs the Origin of a page that may connect."));
    }
    let caller = auth::caller(&state, &headers, from_page).await?;
    if caller.as_ref().is_some_and(|c| !c.principal.has(Scope::TasksRead)) {
        return Err(ApiError::new(Code::Forbidden).detail("The key does not carry the scope tasks:read."));
    }
    let opening = Opening {
        identity: caller.map(identity),
        address: client.address.map(client::network),
        authenticate: authenticate(state.clone()),
    };
    let (incoming, pending) = (state.hub.limits().incoming_bytes, state.hub.limits().pending_bytes);
    Ok(upgrade
        .protocols([SUBPROTOCOL])
        .read_buffer_size(BUFFER_BYTES)
        .write_buffer_size(BUFFER_BYTES)
        .max_write_buffer_size(pending)
        .max_message_size(incoming)
        .max_frame_size(incoming)
        .on_upgrade(move |socket| state.hub.serve(Wire(socket), opening)))
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

/// A WebSocket as the hub wants it.
struct Wire(WebSocket);

impl Socket for Wire {
    async fn receive(&mut self) -> Option<Incoming> {
        match self.0.recv().await? {
            Ok(Message::Text(text)) => Some(Incoming::Text(text.to_string())),
            Ok(Message::Binary(_)) => Some(Incoming::Binary),
            Ok(Message::Ping(_) | Message::Pong(_)) => Some(Incoming::Control),
            Ok(Message::Close(_)) => None,
            Err(_) => Some(Incoming::Faulty),
        }
    }

    async fn send(&mut self, frame: Outgoing) -> Result<(), Lost> {
        let message = match frame {
            Outgoing::Text(text) => Message::Text(text.into()),
            Outgoing::Close { code, reason } => Message::Close(Some(CloseFrame { code, reason: reason.into() })),
        };
        self.0.send(message).await.map_err(|_| Lost)
    }
}
