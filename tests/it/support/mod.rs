//! What tests of all kinds stand on: waiting for a condition, time that stands still, real server processes, databases.

pub mod api;
pub mod clock;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod crowd;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod ground;
pub mod node;
#[allow(dead_code, reason = "benches share these parts too")]
pub mod played;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod postgres;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod proxy;
#[allow(dead_code, reason = "each binary uses a part of it")]
pub mod redis;
#[allow(dead_code, reason = "each binary uses a part of it")]
pub mod script;
#[allow(dead_code, reason = "the browser tests use it too, and each binary a part of it")]
pub mod server;
pub mod socket;
pub mod waiting;

pub use waiting::eventually;

/// Runs each body on each database that keeps; a body gets its ground.
#[allow(unused_macros, reason = "benches share these parts too")]
macro_rules! on_each_database {
    ($($name:ident)*) => {
        mod on_sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(std::sync::Arc::new(crate::support::ground::Ground::sqlite().await)).await;
            })*
        }
        mod on_postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                super::$name(std::sync::Arc::new(crate::support::ground::Ground::postgres().await)).await;
            })*
        }
    };
}
#[allow(unused_imports, reason = "benches share these parts too")]
pub(crate) use on_each_database;
