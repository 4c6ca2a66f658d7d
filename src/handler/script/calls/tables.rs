//! Calls to the tables of the pack: those of `V8.FormEngine`, which answer with a `Code` whatever comes of them, and those of
//! `cx.tables`, which answer with rows and numbers and throw what was refused.
//!
//! A refusal leaves the chunk's other changes as they are. When the database itself is away, both throw: the chunk will not be
//! committed any more, and ends soonest by the throw.

use super::{Called, Caller, Refusal, Reply};
use crate::core::tables::form::{self, Call};
use crate::core::tables::{Act, Ask, Found, MAX_ROWS, plain};
use crate::handler::tables::{ChunkTables, TableFault};
use serde_json::{Value, json};
use uuid::Uuid;

fn tables<'a>(caller: &Caller<'a>) -> Result<&'a ChunkTables, Refusal> {
    caller.tables.ok_or_else(|| Refusal::permanent("no-tables", "the script belongs to no pack with tables"))
}

/// `form`: given `{method, args}`, what `V8.FormEngine` answers.
pub(super) async fn form(caller: &Caller<'_>, asked: &Value) -> Called {
    let tables = tables(caller)?;
    let method = asked.get("method").and_then(Value::as_str).unwrap_or_default();
    let args = asked.get("args").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let answer = match form::read(tables.tables(), method, args, &new_id()) {
        Ok(call) => answer(tables, call).await,
        Err(refused) => Err(TableFault::Refused(refused.0)),
    };
    match answer {
        Ok(answer) => Ok(Reply::Json(answer)),
        Err(TableFault::Refused(why)) => Ok(Reply::Json(form::refused(&why))),
        Err(away @ TableFault::Away(_)) => Err(refusal(away)),
    }
}

async fn answer(tables: &ChunkTables, call: Call<'_>) -> Result<Value, TableFault> {
    Ok(match call {
        Call::One(ask) => form::one(tables.ask(&ask).await?.rows().pop()),
        Call::Page(ask, count) => {
            let rows = tables.ask(&ask).await?.rows();
            // A first page that is not full has told how many there are.
            let whole = matches!(ask.act, Act::Read { limit, offset: 0, .. } if rows.len() < limit as usize);
            let in_all = if whole { rows.len() as u64 } else { tables.ask(&count).await?.count() };
            form::page(rows, in_all)
        }
        Call::Count(ask) => form::counted(tables.ask(&ask).await?.count()),
        Call::Add(ask) => form::one(tables.ask(&ask).await?.rows().pop()),
        Call::Change(ask, instead) => {
            let found = tables.ask(&ask).await?;
            match instead {
                _ if found.count() > 0 => form::touched(&found),
                Some(add) => form::one(tables.ask(&add).await?.rows().pop()),
                None => form::missing(),
            }
        }
        Call::ChangeAll(ask) | Call::Remove(ask) => form::touched(&tables.ask(&ask).await?),
    })
}

/// `table`: given `{method, table, argument}`, what a function of `cx.tables` answers.
pub(super) async fn table(caller: &Caller<'_>, asked: &Value) -> Called {
    let tables = tables(caller)?;
    let text = |key: &str| asked.get(key).and_then(Value::as_str).unwrap_or_default();
    let (method, argument) = (text("method"), asked.get("argument").unwrap_or(&Value::Null));
    let refused = |why: String| Refusal::permanent("refused", why);
    let ask = plain::read(tables.tables(), method, text("table"), argument, &new_id()).map_err(|e| refused(e.0))?;
    let single = method == "get" || matches!(ask.act, Act::Insert(_));
    Ok(Reply::Json(match asked_of(tables, &ask).await? {
        Found::Count(count) => json!(count),
        Found::Rows(mut rows) if single => rows.pop().map_or(Value::Null, Value::Object),
        Found::Rows(rows) if rows.len() > MAX_ROWS as usize => {
            return Err(refused(format!("there are more than {MAX_ROWS} rows; ask for some of them with `limit`")));
        }
        Found::Rows(rows) => json!(rows),
    }))
}

async fn asked_of(tables: &ChunkTables, ask: &Ask<'_>) -> Result<Found, Refusal> {
    tables.ask(ask).await.map_err(refusal)
}

fn refusal(fault: TableFault) -> Refusal {
    match fault {
        TableFault::Refused(why) => Refusal { permanent: false, ..Refusal::permanent("refused", why) },
        TableFault::Away(why) => {
            tracing::warn!(why, "the database of a pack could not be asked");
            Refusal::retry("pack-database", "The database of the pack could not answer.")
        }
    }
}

/// What a new row is called whose key the script leaves to us: sorted by when it was made.
fn new_id() -> String {
    Uuid::now_v7().to_string()
}
