//! The process's own log: one line an event on standard error, as text or as JSON, with every secret masked.
//!
//! Masking sits in the writer, behind all formatting, so that no field, message, error text or panic goes around it. No
//! colours: an escape code between a name and its value would hide the value from the masking. Must never write to standard
//! output, which belongs to the answers of the command line.

pub mod measures;

use crate::config::{Log, LogFormat};
use crate::core::redact::Redactor;
use std::io::{self, Write};
use std::sync::Arc;
use tracing::{Level, Subscriber};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;

/// Starts logging for the whole process, panics included.
///
/// # Errors
/// When something in the process logs already.
pub fn start(log: &Log, redactor: Arc<Redactor>) -> Result<(), tracing::subscriber::SetGlobalDefaultError> {
    tracing::subscriber::set_global_default(subscriber(log, redactor, io::stderr))?;
    std::panic::set_hook(Box::new(|info| {
        let message = info.payload_as_str().unwrap_or("(no text)");
        let place = info.location().map(ToString::to_string);
        let backtrace = std::backtrace::Backtrace::capture();
        match backtrace.status() {
            std::backtrace::BacktraceStatus::Captured => {
                tracing::error!(place, %backtrace, "panic: {message}");
            }
            _ => tracing::error!(place, "panic: {message}"),
        }
    }));
    Ok(())
}

/// Libraries tell one level less than the service itself; at `info` only what is wrong.
fn filter(level: Level) -> Targets {
    let libraries = match level {
        Level::TRACE => LevelFilter::DEBUG,
        Level::DEBUG => LevelFilter::INFO,
        Level::INFO | Level::WARN => LevelFilter::WARN,
        _ => LevelFilter::ERROR,
    };
    Targets::new().with_default(libraries).with_target("taskbell", level)
}

fn subscriber<W: Write + 'static>(
    log: &Log,
    redactor: Arc<Redactor>,
    out: fn() -> W,
) -> Box<dyn Subscriber + Send + Sync> {
    let writer = Masked { redactor, out };
    let lines = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(writer);
    let base = tracing_subscriber::registry().with(filter(log.level));
    match log.format {
        LogFormat::Text => Box::new(base.with(lines)),
        LogFormat::Json => Box::new(base.with(lines.json().flatten_event(true).with_current_span(false))),
    }
}

/// Makes a writer for each event that masks the whole of it at once: a secret may span two writes.
struct Masked<W> {
    redactor: Arc<Redactor>,
    out: fn() -> W,
}

impl<'a, W: Write + 'static> MakeWriter<'a> for Masked<W> {
    type Writer = Event<'a, W>;

    fn make_writer(&'a self) -> Self::Writer {
        Event { masked: self, bytes: Vec::new() }
    }
}

/// The text of one event, written when it is complete.
struct Event<'a, W: Write + 'static> {
    masked: &'a Masked<W>,
    bytes: Vec<u8>,
}

impl<W: Write> Write for Event<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<W: Write> Drop for Event<'_, W> {
    fn drop(&mut self) {
        let text = String::from_utf8_lossy(&self.bytes);
        // A log that cannot be written has nowhere to say so.
        let _ = (self.masked.out)().write_all(self.masked.redactor.clean(&text).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    thread_local! {
        static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
    }

    struct Kept;

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            WRITTEN.with_borrow_mut(|written| written.extend_from_slice(bytes));
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(level: Level, format: LogFormat, act: impl FnOnce()) -> String {
        let redactor = Arc::new(Redactor::new(["hunter2", "p@sü"]));
        let subscriber = subscriber(&Log { level, format }, redactor, || Kept);
        tracing::subscriber::with_default(subscriber, act);
        WRITTEN.with_borrow_mut(|written| String::from_utf8(std::mem::take(written)).unwrap())
    }

    #[test]
    fn no_configured_secret_and_no_url_password_is_ever_written() {
        for format in [LogFormat::Text, LogFormat::Json] {
            let text = logged(Level::INFO, format, || {
                let span = tracing::info_span!("connect", address = "redis://:p%40s%C3%BC@h");
                let _inside = span.enter();
                tracing::info!(password = "hunter2", "signed in with hunter2");
                tracing::error!(error = ?Some("p@sü refused"), "postgres://bell:other-secret@db/x is gone");
            });
            assert_eq!(text.lines().count(), 2, "{text}");
            for secret in ["hunter2", "p@sü", "p%40s%C3%BC", "other-secret"] {
                assert!(!text.contains(secret), "{secret} in {text}");
            }
            assert!(text.contains("signed in with ***") && text.contains("postgres://bell:***@db/x is gone"), "{text}");
        }
    }

    #[test]
    fn json_stays_one_valid_object_a_line_after_masking() {
        let text = logged(Level::INFO, LogFormat::Json, || {
            tracing::info!(task = 7, "done: hunter2");
        });
        let event: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&event["level"], &event["message"], &event["task"]),
            (&"INFO".into(), &"done: ***".into(), &7.into())
        );
        assert!(event["timestamp"].is_string());
    }

    #[test]
    fn the_level_bounds_what_is_told_and_libraries_tell_less() {
        let act = || {
            tracing::debug!("own debug");
            tracing::info!("own info");
            tracing::info!(target: "hyper::client", "library info");
            tracing::warn!(target: "hyper::client", "library warning");
        };
        let text = logged(Level::INFO, LogFormat::Text, act);
        assert!(text.contains("own info") && text.contains("library warning"), "{text}");
        assert!(!text.contains("own debug") && !text.contains("library info"), "{text}");
        assert!(logged(Level::DEBUG, LogFormat::Text, act).contains("library info"));
    }
}
