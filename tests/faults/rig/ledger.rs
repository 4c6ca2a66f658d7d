//! The handler of the fault tests: every item it works on leaves a trace, and a trace too many is seen.
//!
//! Of the items of a chunk every other one is a row in the table `ledger`, written in the commit of the chunk; the table has no
//! key, so a doubled effect is a second row. The others are calls to a receiver, with a key that names task and item. A chunk
//! that is given another checkpoint than the one that was acknowledged before it fails for good (invariant 9). Each
//! row tells how many tasks held the key of `bounded` at the instant of its commit (invariant 6).

use async_trait::async_trait;
use serde_json::json;
use std::sync::LazyLock;
use std::time::Duration;
use taskbell::core::chunk::Outcome;
use taskbell::handler::native::NativeHandlers;
use taskbell::handler::{ChunkContext, Handler, HandlerError};

/// The table of the ledger.
pub const TABLE: &str =
    "CREATE TABLE ledger (task TEXT NOT NULL, item BIGINT NOT NULL, token BIGINT NOT NULL, holders BIGINT NOT NULL)";
const WRITE: &str = "INSERT INTO ledger (task, item, token, holders)
    SELECT CAST($1 AS TEXT), CAST($2 AS BIGINT), CAST($3 AS BIGINT), COUNT(*) FROM taskbell_tasks t
    WHERE t.slot_held = 1 AND t.tenant = 'default' AND t.concurrency_key = 'bounded'";
/// The actions of the tests.
pub const ACTION: &str = r#"
[[actions]]
key = "ledger"
title = "Ledger"
handler = { native = "ledger" }
retry = { max_attempts = 10, base = "100ms", cap = "1s" }

[[actions]]
key = "bounded"
title = "Ledger, a few at once"
handler = { native = "ledger" }
retry = { max_attempts = 10, base = "100ms", cap = "1s" }
concurrency = { key = "bounded", limit = 3, policy = "wait", hold = "task" }
"#;
/// How many tasks of `bounded` there may be at once.
pub const AT_ONCE: i64 = 3;

// To make one reads the certificates of the machine, which takes long without optimisation.
static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(reqwest::Client::new);

/// `params`: `chunks`, `items` in each, `pauseMs` that a chunk takes, the `receiver`'s port (none: all items are rows).
struct Ledger;

#[async_trait]
impl Handler for Ledger {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let number = |name: &str| cx.params()[name].as_i64().unwrap_or(0);
        let (items, total) = (number("items"), number("items") * number("chunks"));
        let from = cx.checkpoint().map_or(0, |place| place["next"].as_i64().unwrap_or(0));
        if from != (cx.chunk_in().chunk - 1) * items {
            let told = format!("chunk {} begins at {from}, and the one before ended elsewhere", cx.chunk_in().chunk);
            return Err(HandlerError::permanent("checkpoint", told));
        }
        let (task, token) = (cx.task().id.to_string(), cx.fencing_token().0);
        cx.progress(from, Some(total), Some("a chunk begins"));
        for item in from..from + items {
            let port = number("receiver");
            if port == 0 || item % 2 == 0 {
                cx.execute(WRITE, vec![task.as_str().into(), item.into(), token.into()]);
            } else {
                let sent = CLIENT.post(format!("http://127.0.0.1:{port}/{task}/{item}")).send().await;
                sent.map_err(|e| HandlerError::retry("receiver", e.to_string()))?;
            }
        }
        tokio::time::sleep(Duration::from_millis(number("pauseMs").unsigned_abs())).await;
        let next = from + items;
        let outcome = match next >= total {
            true => Outcome::done(json!({"written": total})),
            false => Outcome::more(json!({"next": next})),
        };
        Ok(outcome.counted(next, Some(total), "items"))
    }
}

/// The handlers of a node of the tests.
pub fn handlers() -> NativeHandlers {
    NativeHandlers::new().with("ledger", Ledger)
}
