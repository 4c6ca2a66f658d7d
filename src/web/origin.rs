//! From which page a request comes, and under which name it reached us.
//!
//! A request with an Origin that is neither our own nor listed is refused whatever else it carries: `null`, look-alikes and
//! other ports included, since whole origins are compared. A cookie counts only for our own pages (and, on the WebSocket,
//! for listed ones). In the demo, whose users have no password, only names of this machine are answered, so that no page
//! elsewhere can reach it by pointing its own name here.

use super::state::WebSettings;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, header};
use std::net::IpAddr;

/// Where a request comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// No browser says where.
    Nowhere,
    /// Our own pages.
    Own,
    /// A page whose origin is listed.
    Listed,
    /// Any other.
    Foreign,
}

/// Where a request comes from, by its Origin.
#[must_use]
pub fn of(headers: &HeaderMap, settings: &WebSettings) -> From {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let Some(origin) = origins.next() else { return From::Nowhere };
    let (Ok(origin), None) = (origin.to_str(), origins.next()) else { return From::Foreign };
    if is_own(origin, headers, settings) {
        From::Own
    } else if settings.allowed_origins.iter().any(|o| o == origin) {
        From::Listed
    } else {
        From::Foreign
    }
}

/// Our own is the public address and, beside it, whatever name the request itself was sent to.
fn is_own(origin: &str, headers: &HeaderMap, settings: &WebSettings) -> bool {
    if settings.public_origin.as_deref() == Some(origin) {
        return true;
    }
    let Some(host) = host(headers) else { return false };
    let authority = settings.public_origin.as_deref().and_then(|o| o.split_once("://")).map(|(_, a)| a);
    // Under the public name, the public scheme counts too.
    authority != Some(&host) && (origin == format!("http://{host}") || origin == format!("https://{host}"))
}

/// The one `Host` of a request, in lower case.
fn host(headers: &HeaderMap) -> Option<String> {
    let mut hosts = headers.get_all(header::HOST).iter();
    let host = hosts.next()?.to_str().ok()?.to_ascii_lowercase();
    (hosts.next().is_none() && !host.is_empty()).then_some(host)
}

/// Whether the request was sent to the name of the public address, and that address is of a scheme such as `https://`.
#[must_use]
pub fn is_public_host(headers: &HeaderMap, settings: &WebSettings, scheme: &str) -> bool {
    let authority = settings.public_origin.as_deref().and_then(|origin| origin.strip_prefix(scheme));
    authority.is_some() && host(headers).as_deref() == authority
}

/// Whether the request was sent to a name of this machine.
#[must_use]
pub fn is_loopback_host(headers: &HeaderMap) -> bool {
    let Some(host) = host(headers) else { return false };
    let Ok(authority) = host.parse::<Authority>() else { return false };
    if host.contains('@') {
        return false;
    }
    let name = authority.host().trim_start_matches('[').trim_end_matches(']');
    name == "localhost" || name.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(host: &str, origins: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(header::HOST, host.parse().unwrap());
        for origin in origins {
            headers.append(header::ORIGIN, axum::http::HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        headers
    }

    #[test]
    fn only_our_own_and_listed_origins_pass_the_table() {
        let settings = WebSettings {
            public_origin: Some("https://tasks.example.com".into()),
            allowed_origins: vec!["https://erp.example.com".into()],
            ..WebSettings::default()
        };
        let of = |host: &str, origins: &[&str]| of(&headers(host, origins), &settings);
        assert_eq!(of("tasks.example.com", &[]), From::Nowhere);
        assert_eq!(of("tasks.example.com", &["https://tasks.example.com"]), From::Own);
        assert_eq!(of("127.0.0.1:8080", &["http://127.0.0.1:8080"]), From::Own);
        assert_eq!(of("tasks.example.com", &["https://erp.example.com"]), From::Listed);
        for origin in [
            "null",
            "",
            "https://evil.test",
            "https://erp.example.com.evil.test",
            "https://evilerp.example.com",
            "https://erp.example.com:8443",
            "http://erp.example.com",
            "https://еrp.example.com",
            "https://erp.example.com/",
            "http://tasks.example.com",
        ] {
            assert_eq!(of("tasks.example.com", &[origin]), From::Foreign, "{origin}");
        }
        assert_eq!(of("tasks.example.com", &["https://tasks.example.com", "https://evil.test"]), From::Foreign);
        assert_eq!(of("127.0.0.1:8080", &["http://127.0.0.1:9090"]), From::Foreign);
    }

    #[test]
    fn names_of_this_machine_are_told_from_others() {
        for name in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.9.9.9:1", "[::1]:8080", "[::1]"] {
            assert!(is_loopback_host(&headers(name, &[])), "{name}");
        }
        for name in ["evil.test", "localhost.evil.test:8080", "127.0.0.1.evil.test", "10.0.0.1", "[::2]", "0.0.0.0"] {
            assert!(!is_loopback_host(&headers(name, &[])), "{name}");
        }
        assert!(!is_loopback_host(&HeaderMap::new()));
    }
}
