//! Looks over what a configuration names, part by part, for `taskbell doctor`: the database, the way between nodes, Redis,
//! the folders and the room on their disks.
//!
//! Must never change what it looks at, nor tell a secret. Every part is looked at, whatever is wrong with the others.

use super::channel::Lent;
use super::clock::SystemClock;
use super::lock::{LockFault, ServeLock};
use crate::bus::listen::Channel as _;
use crate::bus::redis::Server;
use crate::config::{DatabaseUrl, FilesUrl, Settings};
use crate::core::finding::Finding;
use crate::store::checkup;
use crate::store::logs::beside;
use crate::store::postgres::{PostgresChannel, PostgresOptions};
use std::path::Path;
use std::time::Duration;

/// How long a word over the database may take until it counts as lost.
const WORD_TAKES: Duration = Duration::from_secs(3);
/// Room on a disk below which it is told of, and below which it is at fault, bytes.
const ROOM_NOTE: u64 = 1 << 30;
const ROOM_FAULT: u64 = 100 << 20;

/// Everything that was found, in the order in which it was looked at.
pub async fn examine(settings: &Settings) -> Vec<Finding> {
    let mut found = Vec::new();
    match &settings.database.url {
        DatabaseUrl::Sqlite(path) => {
            found.extend(checkup::of_file(path).await);
            found.extend(path.exists().then(|| server_of(path)));
            found.push(room("database", path));
        }
        DatabaseUrl::Postgres(url) => {
            found.extend(checkup::of_server(url.expose(), &SystemClock::default()).await);
            found.push(word_between_nodes(url.expose(), settings.redis.is_some()).await);
        }
        DatabaseUrl::MySql(_) => found.push(Finding::fault("database", "only sqlite: and postgres: are available")),
    }
    match (&settings.logs, &settings.database.url) {
        (Some(DatabaseUrl::Sqlite(path)), _) => found.push(room("logs", path)),
        (None, DatabaseUrl::Sqlite(path)) => found.push(room("logs", &beside(path))),
        (Some(DatabaseUrl::Postgres(url)), _) => {
            let there = PostgresOptions::new(url.expose());
            found.push(match PostgresChannel::new(there).answers().await {
                Ok(()) => Finding::good("logs", "the database of the task logs answers"),
                Err(e) => Finding::fault("logs", format!("{e}; tasks would run on and lose their lines")),
            });
        }
        _ => found.push(Finding::good("logs", "the task logs are in the database")),
    }
    found.push(redis(settings).await);
    match &settings.files {
        FilesUrl::Folder(folder) => found.extend([writable(folder), room("files", folder)]),
        FilesUrl::S3(_) => found.push(Finding::fault("files", "only file:// is available in this version")),
    }
    found
}

/// Whether a server has the file at this moment.
fn server_of(path: &Path) -> Finding {
    match ServeLock::take(path) {
        Ok(_) => Finding::good("database", "no server has the file at this moment"),
        Err(LockFault::Taken(_)) => Finding::good("database", "a server is up on the file"),
        Err(fault) => Finding::fault("database", fault.to_string()),
    }
}

/// Sends a word over the database, as nodes do to wake one another, and waits for it.
async fn word_between_nodes(url: &str, redis: bool) -> Finding {
    const PART: &str = "wake-up";
    let channel = Lent(PostgresChannel::new(PostgresOptions::new(url)));
    let without =
        if redis { "Redis wakes nodes for the work of others" } else { "nodes find the work of others by their poll" };
    let proof = format!("doctor {}", std::process::id());
    let heard = async {
        let mut listener = channel.listen().await?;
        channel.tell(&proof).await?;
        while listener.next().await? != proof {}
        Ok::<(), String>(())
    };
    match tokio::time::timeout(WORD_TAKES, heard).await {
        Ok(Ok(())) => Finding::good(PART, "notifications of the database arrive"),
        Ok(Err(e)) => Finding::note(PART, format!("the database gives no notifications ({e}): {without}")),
        Err(_) => Finding::note(
            PART,
            format!("notifications of the database do not arrive (is a pooler before it?): {without}"),
        ),
    }
}

async fn redis(settings: &Settings) -> Finding {
    const PART: &str = "redis";
    let Some(url) = &settings.redis else { return Finding::good(PART, "not configured, and not needed") };
    let ca = settings.redis_ca.as_ref().map(|ca| ca.expose().as_bytes().to_vec());
    let server = match Server::at(url.expose(), ca) {
        Ok(server) => server,
        Err(why) => return Finding::fault(PART, why),
    };
    match server.carries_a_word().await {
        Ok(()) => Finding::good(PART, "it answers, and a word over its channel arrives"),
        Err(why) => Finding::fault(PART, format!("{why}; until then changes of other nodes come a little later")),
    }
}

fn writable(folder: &Path) -> Finding {
    const PART: &str = "files";
    if !folder.exists() {
        return Finding::note(PART, format!("{} is not there yet; `serve` makes it", folder.display()));
    }
    let trial = folder.join(format!(".doctor-{}", std::process::id()));
    match std::fs::write(&trial, b"").and_then(|()| std::fs::remove_file(&trial)) {
        Ok(()) => Finding::good(PART, format!("{} can be written", folder.display())),
        Err(e) => Finding::fault(PART, format!("{} cannot be written: {e}", folder.display())),
    }
}

/// How much room the disk of a file or a folder has, be it there yet or not.
fn room(part: &'static str, path: &Path) -> Finding {
    let there = path.ancestors().find(|folder| folder.exists()).unwrap_or(Path::new("/"));
    match rustix::fs::statvfs(there) {
        Ok(disk) => of_room(part, disk.f_bavail.saturating_mul(disk.f_frsize), there),
        Err(e) => Finding::note(part, format!("the room on the disk of {} is not known: {e}", there.display())),
    }
}

fn of_room(part: &'static str, bytes: u64, place: &Path) -> Finding {
    let text = format!("{:.1} GiB are free on the disk of {}", bytes as f64 / (1u64 << 30) as f64, place.display());
    match bytes {
        few if few < ROOM_FAULT => Finding::fault(part, format!("{text}: make room")),
        few if few < ROOM_NOTE => Finding::note(part, text),
        _ => Finding::good(part, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::finding::Grade;

    #[test]
    fn a_disk_that_is_nearly_full_is_told_of_before_it_is_at_fault() {
        let grade = |bytes| of_room("files", bytes, Path::new("/x")).grade;
        assert_eq!(grade(ROOM_NOTE), Grade::Good);
        assert_eq!(grade(ROOM_NOTE - 1), Grade::Note);
        assert_eq!(grade(ROOM_FAULT - 1), Grade::Fault);
    }
}
