//! Where a request comes from, as far as it can be believed: the address of the client, and whether its way here is private.
//!
//! Headers about it are believed only from the proxies of `server.trusted_proxies`, since anybody can send them. Of a chain
//! of addresses the last one that is no such proxy counts: what stands before it was written by the client.

use super::origin::{is_loopback_host, is_public_host};
use super::state::{AppState, WebSettings};
use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The address; absent when the connection has none.
    pub address: Option<IpAddr>,
    /// Whether it came over https, as far as can be known here.
    pub https: bool,
    /// Whether it was sent to a name of this machine.
    pub loopback: bool,
}

impl FromRequestParts<AppState> for Client {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Infallible> {
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_canonical());
        Ok(Self::of(peer, &parts.headers, &state.settings))
    }
}

impl Client {
    fn of(peer: Option<IpAddr>, headers: &HeaderMap, settings: &WebSettings) -> Self {
        let trusted = |ip: &IpAddr| settings.trusted_proxies.iter().any(|net| net.contains(ip));
        let by_proxy = peer.is_some_and(|ip| trusted(&ip));
        let mut address = peer;
        if by_proxy {
            for hop in listed(headers, "x-forwarded-for").iter().rev() {
                let Some(ip) = ip_of(hop) else { break };
                address = Some(ip);
                if !trusted(&ip) {
                    break;
                }
            }
        }
        let told = listed(headers, "x-forwarded-proto").pop().filter(|_| by_proxy);
        let https = match (told, headers.get(header::ORIGIN)) {
            (Some(scheme), _) => scheme.eq_ignore_ascii_case("https"),
            (None, Some(origin)) => origin.as_bytes().starts_with(b"https://"),
            (None, None) => is_public_host(headers, settings, "https://"),
        };
        Self { address, https, loopback: is_loopback_host(headers) }
    }
}

/// What counts as one address where something is counted by address: of IPv6 the /64 network, which is what one household has.
#[must_use]
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        four @ IpAddr::V4(_) => four,
        IpAddr::V6(six) => {
            let [a, b, c, d, ..] = six.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
    }
}

/// The parts of a header that may come several times and be a list.
fn listed<'h>(headers: &'h HeaderMap, name: &str) -> Vec<&'h str> {
    let values = headers.get_all(name).iter().filter_map(|v| v.to_str().ok());
    values.flat_map(|v| v.split(',')).map(str::trim).filter(|part| !part.is_empty()).collect()
}

/// An address, with or without a port.
fn ip_of(text: &str) -> Option<IpAddr> {
    let bare = text.trim_start_matches('[').trim_end_matches(']').parse();
    bare.ok().or_else(|| text.parse::<SocketAddr>().ok().map(|s| s.ip())).map(|ip| ip.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, lines: &[(&'static str, &str)]) -> Client {
        let settings = WebSettings {
            public_origin: Some("https://tasks.example.com".into()),
            trusted_proxies: vec!["10.0.0.0/8".parse().unwrap(), "::1/128".parse().unwrap()],
            ..WebSettings::default()
        };
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        Client::of(peer.parse().ok(), &headers, &settings)
    }

    #[test]
    fn a_forwarded_address_counts_from_a_trusted_proxy_only_and_only_its_last_part() {
        let address = |peer, value| client(peer, &[("x-forwarded-for", value)]).address.unwrap().to_string();
        assert_eq!(address("203.0.113.7", "198.51.100.1"), "203.0.113.7");
        assert_eq!(address("10.1.1.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(address("10.1.1.1", "1.1.1.1, 198.51.100.1, 10.2.2.2"), "198.51.100.1");
        assert_eq!(address("10.1.1.1", "198.51.100.1:4711"), "198.51.100.1");
        assert_eq!(address("::1", "[2001:db8::1]:443"), "2001:db8::1");
        assert_eq!(address("10.1.1.1", "198.51.100.1, unknown"), "10.1.1.1");
        assert_eq!(client("10.1.1.1", &[]).address.unwrap().to_string(), "10.1.1.1");
    }

    #[test]
    fn https_is_told_by_a_trusted_proxy_then_by_the_origin_then_by_the_public_name() {
        let https = |peer, lines: &[(&'static str, &str)]| client(peer, lines).https;
        assert!(https("10.1.1.1", &[("x-forwarded-proto", "https"), ("origin", "http://tasks.example.com")]));
        assert!(!https("203.0.113.7", &[("x-forwarded-proto", "https"), ("host", "other.example.com")]));
        assert!(!https("10.1.1.1", &[("x-forwarded-proto", "http"), ("host", "tasks.example.com")]));
        assert!(https("203.0.113.7", &[("origin", "https://tasks.example.com")]));
        assert!(!https("203.0.113.7", &[("origin", "http://tasks.example.com"), ("host", "tasks.example.com")]));
        assert!(https("203.0.113.7", &[("host", "tasks.example.com")]));
        assert!(!https("203.0.113.7", &[("host", "192.0.2.5:8080")]));
    }
}
