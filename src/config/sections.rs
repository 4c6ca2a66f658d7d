//! The sections about the server itself: where it listens, what it stores where, how the engine paces itself.
//!
//! Each is read whole and finished, so that no key in it passes unread. Lengths of time are milliseconds.

use super::database::{self, DatabaseUrl};
use super::reader::{Choice, Section};
use super::secret::Secret;
use crate::core::hosts::AllowList;
use crate::core::retention::Keep;
use ipnet::IpNet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use url::Url;

/// `[server]`
#[derive(Clone, Debug)]
pub struct Server {
    /// Address and port to listen on.
    pub listen: SocketAddr,
    /// How browsers reach the server; without a trailing slash in its path.
    pub public_url: Option<Url>,
    /// Origins (`scheme://host[:port]`, lower case, default port left out) of pages that may embed, call and connect.
    pub allowed_origins: Vec<String>,
    /// Password login over plain http outside loopback.
    pub insecure_http: bool,
    /// Proxies whose forwarded headers are believed.
    pub trusted_proxies: Vec<IpNet>,
}

/// When the tables are brought up to date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Migrate {
    /// At start.
    Auto,
    /// Never: a start refuses when they are behind.
    Check,
}

/// How far SQLite syncs a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Synchronous {
    /// Survives a power loss.
    Full,
    /// Survives a crash of the process.
    Normal,
}

/// `[database]`
#[derive(Clone, Debug)]
pub struct Database {
    /// Which database, and where.
    pub url: DatabaseUrl,
    /// When the tables are brought up to date.
    pub migrate: Migrate,
    /// SQLite only.
    pub synchronous: Synchronous,
    /// PostgreSQL only: the most connections of this node, beside a few for its task logs.
    pub connections: u32,
}

/// Where files are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilesUrl {
    /// A folder, absolute.
    Folder(PathBuf),
    /// An S3 bucket.
    S3(Url),
}

/// `[engine]`; every length in milliseconds.
#[derive(Clone, Debug)]
pub struct Engine {
    /// Chunks at once on this node.
    pub parallelism: usize,
    /// Tenants whose tasks this node runs; `*` is all.
    pub tenants: Vec<String>,
    /// How long a claim holds without renewal.
    pub lease_ms: u64,
    /// How often leases are renewed; at most a third of `lease_ms`.
    pub heartbeat_ms: u64,
    /// How often due tasks are looked for without a wake-up.
    pub poll_ms: u64,
    /// How often expired leases are taken back.
    pub sweep_ms: u64,
    /// How long a stop waits for chunks under way.
    pub drain_grace_ms: u64,
    /// How long a cancel waits for the chunk under way.
    pub cancel_grace_ms: u64,
}

/// `[retention]`
#[derive(Clone, Copy, Debug)]
pub struct Retention {
    /// How long what has ended is kept.
    pub keep: Keep,
    /// How often those are looked for whose time is over, in milliseconds.
    pub every_ms: u64,
}

/// `[packs]`
#[derive(Clone, Debug)]
pub struct Packs {
    /// Where packs are looked for; absolute.
    pub dir: PathBuf,
    /// Where the databases are that packs have to themselves; absolute.
    pub data: PathBuf,
    /// How often the folders are looked at, ms.
    pub poll_ms: u64,
}

/// `[outbound]`
#[derive(Clone, Debug)]
pub struct Outbound {
    /// The longest one delivery may take, in milliseconds.
    pub timeout_ms: u64,
    /// The wait before the second attempt, in milliseconds.
    pub first_retry_ms: u64,
    /// What may be reached.
    pub allow: AllowList,
}

/// How the process writes its own log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One object a line.
    Json,
}

/// `[log]`
#[derive(Clone, Debug)]
pub struct Log {
    /// The least severe level that is written.
    pub level: tracing::Level,
    /// For people or for collectors.
    pub format: LogFormat,
}

impl Choice for Migrate {
    const WORDS: &'static [(&'static str, Self)] = &[("auto", Self::Auto), ("check", Self::Check)];
}

impl Choice for Synchronous {
    const WORDS: &'static [(&'static str, Self)] = &[("full", Self::Full), ("normal", Self::Normal)];
}

impl Choice for LogFormat {
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

impl Choice for tracing::Level {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("error", Self::ERROR),
        ("warn", Self::WARN),
        ("info", Self::INFO),
        ("debug", Self::DEBUG),
        ("trace", Self::TRACE),
    ];
}

pub(super) fn server(mut section: Section<'_>) -> Server {
    let fallback = SocketAddr::from((Ipv4Addr::LOCALHOST, 8080));
    let listen = section.text("listen").map_or(fallback, |text| {
        text.parse().unwrap_or_else(|_| {
            section
                .fault("listen", "must be an address and a port, such as 127.0.0.1:8080, 0.0.0.0:8080 or [::1]:8080");
            fallback
        })
    });
    let public_url = http_url(&mut section, "public_url");
    let mut allowed_origins = Vec::new();
    for text in section.texts("allowed_origins") {
        match Url::parse(&text) {
            Ok(url)
                if is_http(&url)
                    && url.path() == "/"
                    && url.query().is_none()
                    && url.fragment().is_none()
                    && url.username().is_empty() =>
            {
                allowed_origins.push(url.origin().ascii_serialization());
            }
            _ => section.fault(
                "allowed_origins",
                format!("`{text}` is no origin: write scheme, host and port only, such as https://erp.example.com"),
            ),
        }
    }
    let mut trusted_proxies = Vec::new();
    for text in section.texts("trusted_proxies") {
        match text.parse::<IpNet>().or_else(|_| text.parse::<IpAddr>().map(IpNet::from)) {
            Ok(net) => trusted_proxies.push(net),
            Err(_) => {
                section.fault("trusted_proxies", format!("`{text}` is no address or network, such as 10.0.0.0/8"))
            }
        }
    }
    let insecure_http = section.flag("insecure_http");
    section.finish();
    Server { listen, public_url, allowed_origins, insecure_http, trusted_proxies }
}

pub(super) fn database(mut section: Section<'_>) -> Database {
    let url = database::read(&mut section, "url")
        .unwrap_or_else(|| DatabaseUrl::Sqlite(section.cx.resolve("data/taskbell.db")));
    let migrate = section.choice("migrate");
    let synchronous = section.choice("synchronous");
    let connections = u32::try_from(section.int("connections")).expect("the range of connections is small");
    section.finish();
    Database { url, migrate, synchronous, connections }
}

/// The address, and the certificates of those who vouch for the server.
pub(super) fn redis(mut section: Section<'_>) -> (Option<Secret>, Option<Secret>) {
    let (url, ca) = (section.secret("url"), section.secret("ca"));
    if let Some(url) = &url {
        section.cx.keep_password(url.expose());
        if !Url::parse(url.expose()).is_ok_and(|url| {
            matches!(url.scheme(), "redis" | "rediss") && database::is_plain(&url) && is_numbered(&url)
        }) {
            section.fault("url", "must be an address such as redis://127.0.0.1:6379; in a password write @ as %40, # as %23, / as %2F, ? as %3F");
        }
    }
    if ca.as_ref().is_some_and(|ca| !ca.expose().contains("-----BEGIN CERTIFICATE-----")) {
        section.fault("ca", "must hold certificates in PEM, such as { file = \"redis-ca.pem\" }");
    }
    section.finish();
    (url, ca)
}

/// A Redis server has numbered databases and no others.
fn is_numbered(url: &Url) -> bool {
    let number = url.path().trim_start_matches('/');
    number.is_empty() || number.parse::<u32>().is_ok()
}

pub(super) fn files(mut section: Section<'_>) -> FilesUrl {
    let url = section.text("url").unwrap_or_default();
    let read = if let Some(path) = url.strip_prefix("file://").filter(|path| !path.is_empty()) {
        FilesUrl::Folder(section.cx.resolve(path))
    } else if let Some(bucket) = Url::parse(&url).ok().filter(|url| url.scheme() == "s3" && url.has_host()) {
        FilesUrl::S3(bucket)
    } else {
        section.fault("url", "must be file://FOLDER or s3://BUCKET/PREFIX");
        FilesUrl::Folder(section.cx.resolve("data/files"))
    };
    section.finish();
    read
}

pub(super) fn logs(mut section: Section<'_>) -> Option<DatabaseUrl> {
    let url = database::read(&mut section, "url");
    section.finish();
    url
}

pub(super) fn engine(mut section: Section<'_>) -> Engine {
    let ms = |n: i64| u64::try_from(n).expect("the range of a length in a row starts at 0 or above");
    let beat_given = section.given("heartbeat_ms");
    let lease_ms = ms(section.int("lease_ms"));
    let mut heartbeat_ms = ms(section.int("heartbeat_ms"));
    if heartbeat_ms > lease_ms / 3 {
        if beat_given {
            section.fault(
                "heartbeat_ms",
                format!(
                    "must be at most a third of engine.lease_ms ({lease_ms}), so at most {}, not {heartbeat_ms}",
                    lease_ms / 3
                ),
            );
        }
        heartbeat_ms = lease_ms / 3;
    }
    let tenants = section.texts("tenants");
    if tenants.is_empty() {
        section.fault("tenants", "must name at least one tenant, or \"*\" for all");
    }
    let read = Engine {
        parallelism: usize::try_from(section.int("parallelism")).expect("the range of parallelism starts at 1"),
        tenants,
        lease_ms,
        heartbeat_ms,
        poll_ms: ms(section.int("poll_ms")),
        sweep_ms: ms(section.int("sweep_ms")),
        drain_grace_ms: ms(section.int("drain_grace_ms")),
        cancel_grace_ms: ms(section.int("cancel_grace_ms")),
    };
    section.finish();
    read
}

pub(super) fn retention(mut section: Section<'_>) -> Retention {
    // A value of another kind is a fault that has been told, and stops the start.
    let mut length = |key| section.duration_ms(key).unwrap_or_default();
    let keep = Keep {
        succeeded_ms: length("succeeded"),
        failed_ms: length("failed"),
        cancelled_ms: length("cancelled"),
        logs_ms: length("logs"),
    };
    let every_ms = length("every").unsigned_abs();
    section.finish();
    Retention { keep, every_ms }
}

pub(super) fn scheduler(mut section: Section<'_>) -> bool {
    let enabled = section.flag("enabled");
    section.finish();
    enabled
}

pub(super) fn packs(mut section: Section<'_>) -> Packs {
    let dir = section.text("dir").unwrap_or_else(|| "packs".to_owned());
    let data = section.text("data").unwrap_or_else(|| "data/packs".to_owned());
    let read = Packs {
        dir: section.cx.resolve(&dir),
        data: section.cx.resolve(&data),
        poll_ms: u64::try_from(section.int("poll_ms")).expect("the range of a length in a row starts at 0 or above"),
    };
    section.finish();
    read
}

pub(super) fn outbound(mut section: Section<'_>) -> Outbound {
    let ms = |n: i64| u64::try_from(n).expect("the range of a length in a row starts at 0 or above");
    let allow = AllowList::parse(&section.texts("allow")).unwrap_or_else(|bad| {
        for host in bad {
            let like = "erp.example.com, 127.0.0.1:9000, [::1]:9000 or 10.0.0.0/8";
            section.fault("allow", format!("`{host}` is no host, host:port or network, such as {like}"));
        }
        AllowList::default()
    });
    let read = Outbound {
        timeout_ms: ms(section.int("timeout_ms")),
        first_retry_ms: ms(section.int("first_retry_ms")),
        allow,
    };
    section.finish();
    read
}

/// Whether a text is what `outbound.allow` may hold.
pub(super) fn is_host(host: &str) -> bool {
    AllowList::parse(&[host]).is_ok()
}

pub(super) fn log(mut section: Section<'_>) -> Log {
    let read = Log { level: section.choice("level"), format: section.choice("format") };
    section.finish();
    read
}

/// An http or https address with a host.
pub(super) fn http_url(section: &mut Section<'_>, key: &'static str) -> Option<Url> {
    let text = section.text(key)?;
    match Url::parse(&text) {
        Ok(url) if is_http(&url) && url.password().is_none() && url.username().is_empty() => Some(url),
        _ => {
            section.fault(key, "must be an http or https address, without a user or a password");
            None
        }
    }
}

fn is_http(url: &Url) -> bool {
    matches!(url.scheme(), "http" | "https") && url.has_host()
}
