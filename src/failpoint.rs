//! Named points where a process of the tests can be made to die or to wait: between what is decided and its commit, and
//! between the commit and whoever is told. Without the feature `failpoints` every `failpoint!` is nothing, and a release
//! carries none of this.
//!
//! `TASKBELL_FAILPOINTS` names them: `claim.after=abort@3` ends the process, as `kill -9` does, at the third time that the point is
//! passed; `checkpoint.before=wait@1:2000` waits there for 2,000 ms; `submit.before=error@2` lets what is under way fail there, as
//! when the database cannot be reached: before a commit it never happens, after one its answer is lost. Several stand apart by
//! `;`. What cannot be read, and an error where none can be, end the process: a test must not pass because its fault never came.

/// Passes a point; for asynchronous code. With a second part, which makes an error of a text, the function can be made to fail
/// there.
#[cfg(feature = "failpoints")]
macro_rules! failpoint {
    ($name:expr) => {
        let _ = $crate::failpoint::pass($name, false).await;
    };
    ($name:expr, $error:expr) => {
        if $crate::failpoint::pass($name, true).await {
            return Err($error("a failpoint".into()));
        }
    };
}

/// Passes a point; for asynchronous code. Without the feature it is nothing.
#[cfg(not(feature = "failpoints"))]
macro_rules! failpoint {
    ($name:expr $(, $error:expr)?) => {};
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
        Error,
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
                    eprintln!(
                        "TASKBELL_FAILPOINTS: {part} is not NAME=abort@COUNT, NAME=error@COUNT or NAME=wait@COUNT:MS"
                    );
                    std::process::abort()
                })
            })
            .collect()
    });

    fn read(text: &str) -> Option<Point> {
        let (name, act) = text.split_once('=')?;
        let (act, at) = match act.split_once('@')? {
            ("abort", at) => (Act::Abort, at),
            ("error", at) => (Act::Error, at),
            ("wait", rest) => {
                let (at, ms) = rest.split_once(':')?;
                (Act::Wait(Duration::from_millis(ms.parse().ok()?)), at)
            }
            _ => return None,
        };
        Some(Point { name: name.to_owned(), act, at: at.parse().ok()?, passed: AtomicU64::new(0) })
    }

    /// What `failpoint!` is. Whether an error is to come of it, where one can.
    pub(crate) async fn pass(name: &str, can_fail: bool) -> bool {
        let mut fails = false;
        for point in POINTS.iter().filter(|point| point.name == name) {
            if point.passed.fetch_add(1, Ordering::AcqRel) + 1 != point.at {
                continue;
            }
            match point.act {
                Act::Error if can_fail => {
                    eprintln!("failpoint {name}: an error");
                    fails = true;
                }
                Act::Abort | Act::Error => {
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
        fails
    }
}
