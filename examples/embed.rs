//! A binary of one's own: all of taskbell, and a handler written in Rust. Try it:
//!
//! ```sh
//! cargo run --example embed -- --config examples/embed.toml
//! ```

use async_trait::async_trait;
use serde_json::json;
use taskbell::core::chunk::Outcome;
use taskbell::handler::native::NativeHandlers;
use taskbell::handler::{ChunkContext, Handler, HandlerError};

const TABLE: &str = "CREATE TABLE IF NOT EXISTS invoices (task TEXT, number INTEGER, PRIMARY KEY (task, number))";
const WRITE: &str = "INSERT INTO invoices (task, number) VALUES ($1, $2)";

/// Writes `count` invoices, a hundred in each chunk.
pub struct WriteInvoices;

#[async_trait]
impl Handler for WriteInvoices {
    async fn run(&self, cx: &ChunkContext) -> Result<Outcome, HandlerError> {
        let total = cx.params()["count"].as_i64().unwrap_or(1_000);
        let from = cx.checkpoint().map_or(1, |place| place["next"].as_i64().unwrap_or(1));
        let next = (from + 100).min(total + 1);
        // Written in the commit of the checkpoint: exactly once, or not at all.
        cx.execute(TABLE, Vec::new());
        let task = cx.task().id.to_string();
        cx.execute_many(WRITE, (from..next).map(|number| vec![task.as_str().into(), number.into()]).collect());
        let outcome = match next > total {
            true => Outcome::done(json!({"written": total})),
            false => Outcome::more(json!({"next": next})),
        };
        Ok(outcome.counted(next - 1, Some(total), "invoices"))
    }
}

fn main() -> std::process::ExitCode {
    taskbell::cli::main(NativeHandlers::new().with("write-invoices", WriteInvoices))
}
