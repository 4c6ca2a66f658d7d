//! Calls to other hosts, for handlers, scripts and webhooks. The one way out: nobody else opens a connection to an address
//! that came from a configuration, a script or a task.
//!
//! What holds for each call. The host and port are listed ([`AllowList`]). A name is resolved once for a connection, by
//! [`Resolver`], and only those of its addresses are connected to that may be; what the name leads to a moment later
//! does not matter. No redirect is followed: its answer is the answer. Proxies of the environment are ignored. The whole
//! call has one time limit, from the look-up to the last byte, so that no slow drip outlives it; the head of an answer
//! has at most 100 headers and some hundred KiB; a body is read up to the limit that its reader gives, as it is sent:
//! nothing is unpacked.
//!
//! Connections are kept for the next call to the same host. One client a port, because what a name may lead to depends on
//! the port, and a resolver is told the name alone.

mod fault;
mod reply;
mod resolver;

pub use crate::core::hosts::{AllowList, Refusal};
pub use fault::CallFault;
pub use reply::Reply;
pub use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
pub use reqwest::{Method, StatusCode};
pub use resolver::{Resolver, SystemResolver};

use bytes::Bytes;
use reqwest::Client;
use resolver::Pinned;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use url::Url;

/// Headers of an answer, at most.
const ANSWER_HEADERS: usize = 100;
/// Connections that are kept for one host.
const IDLE_PER_HOST: usize = 8;
/// How long a connection is kept; below the 60 s after which most servers close it.
const IDLE_TIME: Duration = Duration::from_secs(30);
/// What a caller cannot say: it is about the connection, or would lead the call to another host behind the address.
const NOT_YOURS: [HeaderName; 10] = [
    header::HOST,
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::TE,
    header::TRAILER,
    header::UPGRADE,
    header::EXPECT,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("keep-alive"),
];

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// Where to.
    pub url: Url,
    /// What goes along. Headers about the connection itself are left out.
    pub headers: HeaderMap,
    /// The body, word for word.
    pub body: Bytes,
    /// The longest that all of it may take, the reading of the answer included.
    pub timeout: Duration,
}

impl Call {
    /// A call without headers and body.
    #[must_use]
    pub fn new(method: Method, url: Url, timeout: Duration) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new(), timeout }
    }
}

/// The guarded client. One for a node, shared.
pub struct Outbound {
    allow: Arc<AllowList>,
    resolver: Arc<dyn Resolver>,
    by_port: Mutex<BTreeMap<u16, Client>>,
}

impl Outbound {
    /// A client that reaches what is listed. Opens nothing yet.
    #[must_use]
    pub fn new(allow: AllowList, resolver: Arc<dyn Resolver>) -> Self {
        Self { allow: Arc::new(allow), resolver, by_port: Mutex::default() }
    }

    /// Whether an address is listed; what its name leads to is only known when it is called.
    ///
    /// # Errors
    /// Why it may not be called.
    pub fn check(&self, url: &Url) -> Result<(), Refusal> {
        self.allow.check(url)
    }

    /// Makes a call up to the head of its answer.
    ///
    /// # Errors
    /// See [`CallFault`]. An answer of any status is none.
    pub async fn send(&self, call: Call) -> Result<Reply, CallFault> {
        let Call { method, mut url, mut headers, body, timeout } = call;
        self.allow.check(&url)?;
        if let Some(name) = url.domain().and_then(|name| name.strip_suffix('.')).map(str::to_owned) {
            // For TLS a name is without the dot at its end.
            url.set_host(Some(&name)).map_err(|_| Refusal::Address)?;
        }
        for name in &NOT_YOURS {
            headers.remove(name);
        }
        let port = url.port_or_known_default().ok_or(Refusal::Address)?;
        let mut over = Box::pin(tokio::time::sleep(timeout));
        let sending = self.client(port)?.request(method, url).headers(headers).body(body).send();
        let answered = tokio::select! {
            answered = sending => answered,
            () = &mut over => return Err(CallFault::TimedOut),
        };
        Ok(Reply::new(answered.map_err(CallFault::of)?, over))
    }

    fn client(&self, port: u16) -> Result<Client, CallFault> {
        let mut clients = self.by_port.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(client) = clients.get(&port) {
            return Ok(client.clone());
        }
        let client = Client::builder()
            .user_agent(concat!("taskbell/", env!("CARGO_PKG_VERSION")))
            .dns_resolver(Arc::new(Pinned { allow: self.allow.clone(), resolver: self.resolver.clone(), port }))
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .referer(false)
            .http1_max_headers(ANSWER_HEADERS)
            .pool_max_idle_per_host(IDLE_PER_HOST)
            .pool_idle_timeout(IDLE_TIME)
            .build()
            .map_err(CallFault::of)?;
        clients.insert(port, client.clone());
        Ok(client)
    }
}
