//! The way out of a node: the guarded client, and the handlers that are endpoints of other applications.

use crate::config::Settings;
use crate::core::action::Action;
use crate::core::signing::SigningKeys;
use crate::core::time::Clock;
use crate::handler::Handler;
use crate::handler::http::HttpHandler;
use crate::outbound::{Outbound, SystemResolver};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use url::Url;

/// Where callbacks are served, below the address of the server.
const CALLBACK_PATH: &str = "/api/v1/callback";

/// What a node needs to call others, and to be called back.
pub(super) struct WayOut {
    /// The one client.
    pub outbound: Arc<Outbound>,
    callback_url: Arc<str>,
    clock: Arc<dyn Clock>,
}

impl WayOut {
    /// The way out of a node that listens on an address.
    pub fn of(settings: &Settings, address: SocketAddr, clock: Arc<dyn Clock>) -> Self {
        let public = settings.server.public_url.as_ref().map(|url| url.as_str().trim_end_matches('/').to_owned());
        let base = public.unwrap_or_else(|| format!("http://{}", reachable(address)));
        let outbound = Arc::new(Outbound::new(settings.outbound.allow.clone(), Arc::new(SystemResolver)));
        Self { outbound, callback_url: (base + CALLBACK_PATH).into(), clock }
    }

    /// The handler of an action whose chunks another application runs.
    pub fn handler(&self, action: &Action, url: &Url, keys: &SigningKeys) -> Arc<dyn Handler> {
        Arc::new(HttpHandler {
            url: url.clone(),
            keys: keys.clone(),
            timeout: Duration::from_millis(action.chunk_timeout_ms.unsigned_abs()),
            callback_url: self.callback_url.clone(),
            outbound: self.outbound.clone(),
            clock: self.clock.clone(),
        })
    }
}

/// Whoever listens on all addresses is reached on this machine by loopback; others need `server.public_url`.
fn reachable(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        ip if ip.is_ipv4() => Ipv4Addr::LOCALHOST.into(),
        _ => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}
