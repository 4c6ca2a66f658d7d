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
        Ok(url) if !is_plain(&url) => "(not an address)".to_owned(),
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

/// The parameters of a PostgreSQL address.
const POSTGRES_PARAMETERS: &[&str] =
    &["application_name", "host", "hostaddr", "options", "port", "sslcert", "sslkey", "sslmode", "sslrootcert"];

/// Whether nothing of a password can have been taken for another part of the address: one with a bare `/`, `?`, `#` or `@`
/// in it leaves an `@` in the path or the query, or a fragment.
pub(super) fn is_plain(url: &Url) -> bool {
    let rest = [Some(url.path()), url.query()];
    url.host_str().is_some_and(|host| !host.is_empty())
        && url.fragment().is_none()
        && !rest.into_iter().flatten().any(|part| part.contains('@'))
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
            let Some(url) = Url::parse(text).ok().filter(is_plain) else {
                section.fault(
                    key,
                    format!(
                        "must be an address such as {scheme}://user@host/database; in a password write @ as %40, # as %23, \
                         / as %2F, ? as %3F"
                    ),
                );
                return None;
            };
            section.cx.keep_password(text);
            let known = if scheme.starts_with("postgres") { POSTGRES_PARAMETERS } else { &[] };
            if let Some((name, _)) = url.query_pairs().find(|(name, _)| !known.contains(&name.as_ref())) {
                // Its value may be a secret under a misspelt name.
                section.fault(
                    key,
                    format!("has the parameter `{name}`, which does not exist; there are: {}", known.join(", ")),
                );
                return None;
            }
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
