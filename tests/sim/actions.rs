//! The buttons of the simulated world, and the handler behind them: writes the items of its task one after the other, a few
//! in a chunk, with its commit; stumbles, hangs and gives up as the dice say; answers a stop, or does not.

use crate::model::Item;
use crate::node::Node;
use crate::store::{REFUSED, row_of};
use serde_json::json;
use taskbell::core::action::{OnConflict, Policy};
use taskbell::core::chunk::{Failure, Outcome, Told};
use taskbell::core::effect::Effect;
use taskbell::core::lifecycle::ChunkEnd;
use taskbell::core::progress::Reported;
use taskbell::core::retry::RetryPolicy;
use taskbell::core::task::{ErrorKind, Hold, Task};
use taskbell::core::view::Documents;

/// The longest that a chunk may take, ms.
pub const CHUNK_TIMEOUT_MS: i64 = 4_000;
/// How many chunks of children in a thousand fail for good.
const CHILD_FAILS: u32 = 120;
/// The retry rule of all actions.
pub const RETRY: RetryPolicy = RetryPolicy { max_attempts: 3, base_ms: 500, cap_ms: 3_000 };

/// A button.
pub struct Action {
    pub name: &'static str,
    /// Limit, hold and policy of its concurrency key.
    pub slot: Option<(u32, Hold, Policy)>,
    /// What happens while the holder of an idempotency key is unfinished.
    pub conflict: OnConflict,
    /// Whether its params make a key.
    pub fields: bool,
}

const fn action(name: &'static str, slot: Option<(u32, Hold, Policy)>, conflict: OnConflict, fields: bool) -> Action {
    Action { name, slot, conflict, fields }
}

/// All buttons.
pub const ACTIONS: [Action; 8] = [
    action("plain", None, OnConflict::Return, false),
    action("import", Some((1, Hold::Task, Policy::Wait)), OnConflict::Return, true),
    action("recalculate", Some((2, Hold::Chunk, Policy::Wait)), OnConflict::Reject, true),
    action("mail", Some((1, Hold::Chunk, Policy::Wait)), OnConflict::Return, false),
    action("sync", Some((1, Hold::Task, Policy::Skip)), OnConflict::ReplacePending, true),
    action("report", Some((2, Hold::Task, Policy::Reject)), OnConflict::Return, false),
    action("rebuild", Some((1, Hold::Task, Policy::ReplacePending)), OnConflict::ReplacePending, false),
    action("mirror", Some((1, Hold::Task, Policy::CancelRunning)), OnConflict::Return, false),
];

/// The packs, and whether each is serial.
pub const PACKS: [(&str, bool); 2] = [("post", true), ("stock", false)];

/// The pack that declares a button.
pub fn pack_of(action: &str) -> Option<&'static str> {
    match action {
        "mail" => Some("post"),
        "import" | "mirror" => Some("stock"),
        _ => None,
    }
}

/// Their names.
pub fn names() -> Vec<String> {
    ACTIONS.iter().map(|a| a.name.to_owned()).collect()
}

/// One call of the handler.
pub struct Chunk<'a> {
    task: &'a Task,
    from: i64,
    items: i64,
    per: i64,
    counted: bool,
}

impl<'a> Chunk<'a> {
    /// Reads what the handler is given.
    pub fn new(task: &'a Task, documents: &Documents) -> Self {
        let number = |name: &str| documents.params[name].as_i64().unwrap_or(1);
        let from = documents.checkpoint.as_ref().map_or(0, |c| c["next"].as_i64().unwrap_or(0));
        Self { task, from, items: number("items"), per: number("per"), counted: documents.params["counted"] == true }
    }

    /// Works, and answers with what belongs into the commit.
    pub async fn run(
        self,
        node: &Node,
        stopping: impl Fn() -> bool,
        report: impl Fn(Reported),
    ) -> (ChunkEnd, Vec<Effect>) {
        let (world, dice) = (&node.world, &node.world.dice);
        let rate = world.rates.handler;
        if world.fault(rate) {
            node.sleep(2 * CHUNK_TIMEOUT_MS).await;
        }
        let until = (self.from + self.per).min(self.items);
        let mut done = self.from;
        while done < until {
            node.sleep(if world.calm() { 20 } else { dice.between(1..600) }).await;
            if stopping() && !world.fault(300) {
                break;
            }
            done += 1;
            if world.fault(300) {
                report(self.progress(done));
            }
        }
        match () {
            () if world.fault(rate) => (ChunkEnd::HandedBack, Vec::new()),
            () if world.fault(rate) => self.failed(ErrorKind::Permanent),
            () if self.task.parent.is_some() && world.fault(CHILD_FAILS) => self.failed(ErrorKind::Permanent),
            () if world.fault(4 * rate) => self.failed(ErrorKind::Handler),
            () => (self.answer(node, done), self.rows(done, world.fault(rate))),
        }
    }

    fn answer(&self, node: &Node, done: i64) -> ChunkEnd {
        let told = Told { report: self.progress(done), ..Told::default() };
        ChunkEnd::Answered(Box::new(if done == self.items {
            Outcome::Done { result: Some(json!({"items": done})), told }
        } else {
            let delay_ms = if node.world.fault(250) { node.world.dice.between(1..3_000) } else { 0 };
            let checkpoint = (done > self.from || node.world.fault(500)).then(|| json!({"next": done}));
            Outcome::More { checkpoint, delay_ms, told }
        }))
    }

    fn failed(&self, kind: ErrorKind) -> (ChunkEnd, Vec<Effect>) {
        let failure = Failure::new(kind, "simulated", "It failed.");
        (ChunkEnd::Answered(Box::new(Outcome::Fail(failure))), self.rows(self.from + 1, false))
    }

    fn progress(&self, done: i64) -> Reported {
        let total = self.counted.then_some(Some(self.items));
        Reported { current: Some(done), total, ..Reported::default() }
    }

    /// The rows of this chunk; with one that the table refuses, or without.
    fn rows(&self, until: i64, refused: bool) -> Vec<Effect> {
        let item = |number| Item { task: self.task.id, number, of: self.items, token: self.task.fencing_token };
        let rows = (self.from..until).chain(refused.then_some(REFUSED)).map(|n| row_of(item(n))).collect();
        vec![Effect { sql: "INSERT INTO items", rows }]
    }
}
