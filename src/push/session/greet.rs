//! The first frame: who it is, in which language, and what it has already.
//!
//! Nothing is told before the identity is proven, and why it is not proven is told by a code alone.

use super::super::hub::Hub;
use super::super::item::Viewer;
use super::super::protocol::{ClientFrame, ErrorCode, Have, Hello, Live, ServerFrame, close};
use super::super::registry::NotTaken;
use super::super::socket::{Incoming, Socket};
use super::rate::Rate;
use super::wire::Wire;
use super::{End, Identity, Opening, Session};
use crate::core::principal::Scope;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The longest language tag that is looked at, bytes.
const LANG_BYTES: usize = 35;

/// Takes the hello, registers the connection and welcomes it.
pub(super) async fn greet<'w, S: Socket>(
    hub: &Arc<Hub>,
    wire: &'w mut Wire<S>,
    opening: &Opening,
) -> Result<(Session<'w, S>, Option<Have>), End> {
    let hello = hello(hub, wire).await?;
    let identity = identify(wire, opening, hello.token).await?;
    let place = match hub.register(&identity.principal, identity.credential) {
        Ok(place) => place,
        Err(NotTaken::Draining) => return Err(End::Close(close::RESTART, "the node goes")),
        Err(NotTaken::TooMany) => {
            wire.refuse(ErrorCode::TooManyConnections, None).await?;
            return Err(End::Close(close::TOO_MANY, "too many connections of this user"));
        }
    };
    let Ok(head) = hub.store.head(&place.key.0, &place.key.1).await else {
        wire.refuse(ErrorCode::Unavailable, None).await?;
        return Err(End::Close(close::OVERLOAD, "the database does not answer"));
    };
    let (server_time, ping_ms) = (hub.clock.now(), hub.limits.ping_ms);
    let (epoch, (tenant, user)) = (hub.store.epoch(), (place.key.0.as_str(), place.key.1.as_str()));
    wire.send(&ServerFrame::Welcome { epoch, head, server_time, ping_ms, tenant, user }).await?;
    let lang = hello.lang.filter(|lang| lang.len() <= LANG_BYTES).unwrap_or_default();
    let now = hub.clock.mono();
    let session = Session {
        hub: hub.clone(),
        wire,
        authenticate: opening.authenticate.clone(),
        place,
        viewer: Viewer { principal: identity.principal, lang: lang.into() },
        expires_at: identity.expires_at,
        expiry_told: false,
        visible: true,
        live: Live::Ok,
        store_down: false,
        told: None,
        owed: false,
        topics: BTreeMap::new(),
        rate: Rate::new(&hub.limits, now),
        flushed_at: None,
        progress_wait_ms: hub.limits.progress_ms,
        phase_ms: (hub.rng.unit() * hub.limits.progress_ms as f64) as u64,
        ping_at: now + hub.limits.ping_ms,
        pong_by: None,
        stall_told_at: None,
    };
    Ok((session, hello.have))
}

async fn hello<S: Socket>(hub: &Hub, wire: &mut Wire<S>) -> Result<Hello, End> {
    let mut draining = hub.draining();
    let first = async {
        // Whoever has said nothing yet has little to ping for.
        for _ in 0..hub.limits.commands_per_second {
            match wire.receive().await {
                Some(Incoming::Control) => {}
                other => return other,
            }
        }
        Some(Incoming::Control)
    };
    let limit = Duration::from_millis(hub.limits.hello_ms);
    let frame = tokio::select! {
        frame = tokio::time::timeout(limit, first) => frame,
        _ = draining.wait_for(|draining| *draining) => return Err(End::Close(close::RESTART, "the node goes")),
    };
    match frame {
        Err(_) => return Err(End::Close(close::PROTOCOL, "no hello in time")),
        Ok(None) => return Err(End::Lost),
        Ok(Some(Incoming::Text(text))) if text.len() <= hub.limits.incoming_bytes => {
            if let Ok(ClientFrame::Hello(hello)) = ClientFrame::read(&text) {
                return Ok(hello);
            }
        }
        Ok(Some(_)) => {}
    }
    wire.refuse(ErrorCode::HelloExpected, None).await?;
    Err(End::Close(close::PROTOCOL, "the first frame is hello"))
}

/// A token speaks before the cookie: whoever sends one means it.
async fn identify<S: Socket>(wire: &mut Wire<S>, opening: &Opening, token: Option<String>) -> Result<Identity, End> {
    let identity = match token {
        Some(token) => (opening.authenticate)(token).await,
        None => opening.identity.clone(),
    };
    match identity {
        None => {
            wire.refuse(ErrorCode::Unauthorized, None).await?;
            Err(End::Close(close::NEW_TOKEN, "no valid identity"))
        }
        Some(identity) if !identity.principal.has(Scope::TasksRead) => {
            wire.refuse(ErrorCode::Forbidden, None).await?;
            Err(End::Close(close::FORBIDDEN, "the identity may not read tasks"))
        }
        Some(identity) => Ok(identity),
    }
}
