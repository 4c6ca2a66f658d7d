//! From names to addresses: asked once for a connection, and what is answered is checked before it is connected to.

use crate::core::hosts::AllowList;
use async_trait::async_trait;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Where names are looked up. A value, so that a test can play a name that leads elsewhere the second time.
#[async_trait]
pub trait Resolver: Send + Sync {
    /// The addresses of a name, the best first.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

#[async_trait]
impl Resolver for SystemResolver {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        Ok(tokio::net::lookup_host((name, 0)).await?.map(|found| found.ip()).collect())
    }
}

/// What a client of one port resolves by: the connection is made to what comes out of here and to nothing else.
pub(super) struct Pinned {
    pub allow: Arc<AllowList>,
    pub resolver: Arc<dyn Resolver>,
    pub port: u16,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let (allow, resolver, port) = (self.allow.clone(), self.resolver.clone(), self.port);
        Box::pin(async move {
            let found = resolver.resolve(name.as_str()).await?;
            if found.is_empty() {
                return Err(io::Error::new(io::ErrorKind::NotFound, "the name has no address").into());
            }
            let chosen = allow.choose(name.as_str(), port, &found)?;
            Ok(Box::new(chosen.into_iter().map(move |ip| SocketAddr::new(ip, port))) as Addrs)
        })
    }
}
