//! The address of a database, with the path of a SQLite file made absolute and a password that is never shown.

use super::reader::Section;
use super::secret::Secret;
use std::fmt;
use std::path::PathBuf;
use url::Url;

/// Which database, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseUrl {
    /// A SQLite file, absolute.
    Sqlite(PathBuf),
    /// A PostgreSQL server; the whole address, which may hold a password.
    Postgres(Secret),
    /// A MySQL or MariaDB server; the whole address, which may hold a password.
    MySql(Secret),
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite://{}", path.display()),
            Self::Postgres(url) | Self::MySql(url) => f.write_str(&without_password(url.expose())),
        }
    }
}

/// An address that may be shown: its password, if any, is masked; one that is no address is not shown at all.
#[must_use]
pub fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut url) => {
            if url.password().is_some() {
                // Fails only for addresses without a host, which have no password.
                let _ = url.set_password(Some("***"));
            }
            url.set_query(None);
            url.set_fragment(None);
            url.into()
        }
        Err(_) => "(not an address)".to_owned(),
    }
}

/// Reads a database address; `sqlite:` paths count from the configuration file.
pub(super) fn read(section: &mut Section<'_>, key: &'static str) -> Option<DatabaseUrl> {
    let secret = section.secret(key)?;
    let text = secret.expose();
    let scheme = text.split(':').next().unwrap_or_default();
    match scheme {
        "sqlite" => {
            let path = text["sqlite:".len()..].trim_start_matches("//");
            if path.is_empty() || path.starts_with(":memory:") || path.contains('?') {
                section.fault(key, "must name a file, such as sqlite://data/taskbell.db, without parameters");
                return None;
            }
            Some(DatabaseUrl::Sqlite(section.cx.resolve(path)))
        }
        "postgres" | "postgresql" | "mysql" | "mariadb" => {
            match Url::parse(text) {
                Ok(url) if url.host_str().is_some_and(|host| !host.is_empty()) => {}
                _ => {
                    section.fault(key, format!("must be an address such as {scheme}://user@host/database; in a password write @ as %40, # as %23, / as %2F"));
                    return None;
                }
            }
            section.cx.keep_password(text);
            Some(if scheme.starts_with("postgres") {
                DatabaseUrl::Postgres(secret)
            } else {
                DatabaseUrl::MySql(secret)
            })
        }
        _ => {
            section.fault(key, "must start with sqlite:, postgres: or mysql:");
            None
        }
    }
}
