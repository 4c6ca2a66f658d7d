//! Where calls of ours may go: the list of hosts, and which addresses a name may lead to.
//!
//! Nothing is reached that is not listed. A listed *name* may lead to public addresses only: whoever rules over its zone
//! could point it into our own network otherwise. An address that is not public has to be listed itself, alone, with a
//! port, or as a network. Ports are 80 and 443, and others where they are listed.
//!
//! Hosts are compared as [`Url`] writes them: in lower case, in ASCII, an IPv4 address in its one usual form however it was
//! written (decimal, octal, hexadecimal, shortened). Must never resolve a name: see `outbound`.

mod address;

pub use address::is_public;

use ipnet::IpNet;
use std::net::IpAddr;
use url::{Host, Url};

/// The ports that an entry without a port stands for.
const WEB_PORTS: [u16; 2] = [80, 443];

/// Why a call may not be made. Trying again changes nothing until somebody changes the list or the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not http or https, or without a host.
    #[error("only http and https addresses with a host are called")]
    Address,
    /// `user:password@host`.
    #[error("an address with a user or a password in it is not called")]
    Credentials,
    /// The host is not listed, or not with this port.
    #[error("{host}:{port} is not listed in outbound.allow")]
    NotListed {
        /// The host, as it was compared.
        host: String,
        /// The port.
        port: u16,
    },
    /// The name is listed, but leads to an address that is not public and not listed.
    #[error("{host} leads to {address}, which is no public address and not listed in outbound.allow")]
    NotPublic {
        /// The name.
        host: String,
        /// Where it leads.
        address: IpAddr,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Name(String),
    Net(IpNet),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    place: Place,
    port: Option<u16>,
}

/// The hosts that may be reached. The empty list lets nothing pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowList(Vec<Entry>);

impl AllowList {
    /// Reads entries: `erp.example.com`, `erp.example.com:8443`, `127.0.0.1:9000`, `[::1]:9000`, `10.0.0.0/8`.
    ///
    /// # Errors
    /// The entries that are none of these.
    pub fn parse<T: AsRef<str>>(entries: &[T]) -> Result<Self, Vec<String>> {
        let read = entries.iter().map(|text| entry(text.as_ref()).ok_or_else(|| text.as_ref().to_owned()));
        let (good, bad): (Vec<_>, Vec<_>) = read.partition(Result::is_ok);
        if bad.is_empty() {
            return Ok(Self(good.into_iter().flatten().collect()));
        }
        Err(bad.into_iter().filter_map(Result::err).collect())
    }

    /// Whether an address may be called at all, before any name is resolved.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, url: &Url) -> Result<(), Refusal> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Refusal::Address);
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Refusal::Credentials);
        }
        let (Some(host), Some(port)) = (url.host(), url.port_or_known_default()) else {
            return Err(Refusal::Address);
        };
        let listed = match host {
            Host::Domain(name) => self.lists_name(without_dot(name), port),
            Host::Ipv4(v4) => self.lists_address(v4.into(), |of| fits(of, port)),
            Host::Ipv6(v6) => self.lists_address(v6.into(), |of| fits(of, port)),
        };
        if listed { Ok(()) } else { Err(Refusal::NotListed { host: host.to_string(), port }) }
    }

    /// Of the addresses that a listed name leads to, those that may be connected to on this port.
    ///
    /// # Errors
    /// None of them may.
    pub fn choose(&self, name: &str, port: u16, addresses: &[IpAddr]) -> Result<Vec<IpAddr>, Refusal> {
        let name = without_dot(name);
        let own = name == "localhost" || name.ends_with(".localhost");
        let may = |address: &&IpAddr| {
            is_public(**address)
                || (own && address.is_loopback())
                || self.lists_address(**address, |of| of.is_none_or(|of| of == port))
        };
        let chosen: Vec<IpAddr> = addresses.iter().filter(may).copied().collect();
        match addresses.first() {
            Some(first) if chosen.is_empty() => Err(Refusal::NotPublic { host: name.to_owned(), address: *first }),
            _ => Ok(chosen),
        }
    }

    fn lists_name(&self, name: &str, port: u16) -> bool {
        self.0.iter().any(|e| matches!(&e.place, Place::Name(listed) if listed == name) && fits(e.port, port))
    }

    fn lists_address(&self, address: IpAddr, port_fits: impl Fn(Option<u16>) -> bool) -> bool {
        self.0.iter().any(|e| matches!(&e.place, Place::Net(net) if net.contains(&address)) && port_fits(e.port))
    }
}

/// Whether the port of an entry covers the port that is called.
fn fits(of: Option<u16>, port: u16) -> bool {
    of.map_or(WEB_PORTS.contains(&port), |of| of == port)
}

/// A name with a dot at its end is the same name.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

fn entry(text: &str) -> Option<Entry> {
    if text.contains('/') {
        return text.parse().ok().map(|net| Entry { place: Place::Net(net), port: None });
    }
    if text.contains(['@', '*', '?', '#', '\\']) || text.contains(char::is_whitespace) {
        return None;
    }
    // Each scheme hides its own usual port, so both are asked.
    let (plain, secure) = (Url::parse(&format!("http://{text}")).ok()?, Url::parse(&format!("https://{text}")).ok()?);
    let place = match plain.host()? {
        Host::Domain(name) => Place::Name(without_dot(name).to_owned()),
        Host::Ipv4(v4) => Place::Net(IpNet::from(IpAddr::from(v4))),
        Host::Ipv6(v6) => Place::Net(IpNet::from(IpAddr::from(v6))),
    };
    let port = plain.port().or(secure.port());
    // What follows the host, such as a colon without a port, was meant to be something.
    let written = match port {
        Some(port) => text.ends_with(&format!(":{port}")),
        None => !text.ends_with(':'),
    };
    written.then_some(Entry { place, port })
}

#[cfg(test)]
mod tests;
