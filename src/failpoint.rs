//! Named points where a process of the tests can be made to die or to wait: between what is decided and its commit, and
//! between the commit and whoever is told. Without the feature `failpoints` every `failpoint!` is nothing, and a release
//! carries none of this.
//!
//! `TASKBELL_FAILPOINTS` names them: `claim.after=abort@3` ends the process, as `kill -9` does, at the third time that the point is
//! passed; `checkpoint.before=wait@1:2000` waits there for 2,000 ms. Several stand apart by `;`. What cannot be read ends the
//! process at the first point: a test must not pass because its fault never came.

/// Passes a point; for asynchronous code.
#[cfg(feature = "failpoints")]
macro_rules! failpoint {
    ($name:expr) => {
        $crate::failpoint::pass($name).await
    };
}

/// Passes a point; for asynchronous code. Without the feature it is nothing.
#[cfg(not(feature = "failpoints"))]
macro_rules! failpoint {
    ($name:expr) => {};
}

#[cfg(feature = "failpoints")]
pub(crate) use armed::pass;

#[cfg(feature = "failpoints")]
mod armed {
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};
    use std::time::Duration;

    enum Act {
        Abort,
        Wait(Duration),
    }

    struct Point {
        name: String,
        act: Act,
        at: u64,
        passed: AtomicU64,
    }

    static POINTS: LazyLock<Vec<Point>> = LazyLock::new(|| {
        let text = std::env::var("TASKBELL_FAILPOINTS").unwrap_or_default();
        text.split(';')
            .filter(|part| !part.is_empty())
            .map(|part| {
                read(part).unwrap_or_else(|| {
                    eprintln!("TASKBELL_FAILPOINTS: {part} is not NAME=abort@COUNT or NAME=wait@COUNT:MS");
                    std::process::abort()
                })
            })
            .collect()
    });

    fn read(text: &str) -> Option<Point> {
        let (name, act) = text.split_once('=')?;
        let (act, at) = match act.split_once('@')? {
            ("abort", at) => (Act::Abort, at),
            ("wait", rest) => {
                let (at, ms) = rest.split_once(':')?;
                (Act::Wait(Duration::from_millis(ms.parse().ok()?)), at)
            }
            _ => return None,
        };
        Some(Point { name: name.to_owned(), act, at: at.parse().ok()?, passed: AtomicU64::new(0) })
    }

    /// What `failpoint!` is.
    pub(crate) async fn pass(name: &str) {
        for point in POINTS.iter().filter(|point| point.name == name) {
            if point.passed.fetch_add(1, Ordering::AcqRel) + 1 != point.at {
                continue;
            }
            match point.act {
                Act::Abort => {
                    eprintln!("failpoint {name}: the process ends here");
                    std::process::abort();
                }
                Act::Wait(time) => {
                    eprintln!("failpoint {name}: waiting {time:?}");
                    tokio::time::sleep(time).await;
                    eprintln!("failpoint {name}: going on");
                }
            }
        }
    }
}
