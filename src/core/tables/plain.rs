//! The calls of `cx.tables`: `find`, `get`, `count`, `insert`, `update` and `delete` on one table.
//!
//! Which rows is said by `where`: an object whose columns must all fit, `{state: "new", row: {gt: 10}}`, or a list of such
//! objects of which one must. A value alone must be equal; null looks for NULL; a list for one of its values.

use super::cell::cell;
use super::clause::one_of;
use super::{Act, Ask, Cell, Filter, MAX_ROWS, Op, Refused, column, key, table};
use crate::core::pack::{Column, ColumnKind, Table};
use serde_json::{Map, Value};

/// The calls that there are.
pub const METHODS: [&str; 6] = ["find", "get", "count", "insert", "update", "delete"];

/// Objects in one list of `where`.
const MAX_ALTERNATIVES: usize = 200;

/// Reads a call: its method, the table, and the only argument. `new_id` is what a new row is called whose key is text and
/// was not given.
pub fn read<'t>(
    tables: &'t [Table],
    method: &str,
    name: &str,
    argument: &Value,
    new_id: &str,
) -> Result<Ask<'t>, Refused> {
    let table = table(tables, name)?;
    let nothing = Map::new();
    let fields = match argument {
        Value::Object(fields) => fields,
        Value::Null if matches!(method, "find" | "count") => &nothing,
        _ if method == "get" => &nothing,
        _ => return Refused::new(format!("{method} takes an object")),
    };
    let known: &[&str] = match method {
        "find" => &["where", "select", "orderBy", "limit", "offset"],
        "count" | "delete" => &["where"],
        "update" => &["where", "set"],
        _ => &[],
    };
    if let Some(other) =
        fields.keys().find(|name| method != "insert" && method != "get" && !known.contains(&name.as_str()))
    {
        return Refused::new(format!("{method} knows no {}", super::shown(other)));
    }
    let filter = || filter(table, fields.get("where"));
    let closed = || {
        let filter = filter()?;
        let open = || Refused(format!("{method} needs a `where` that leaves something out"));
        if filter.is_open() { Err(open()) } else { Ok(filter) }
    };
    let act = match method {
        "find" => Act::Read {
            columns: select(table, fields.get("select"))?,
            filter: filter()?,
            order: order(table, fields.get("orderBy"))?,
            // Without a limit it is all of them, up to one more than may be.
            limit: match number("limit", fields.get("limit"), u64::from(MAX_ROWS))? {
                None => MAX_ROWS + 1,
                Some(limit) => u32::try_from(limit).expect("the limit fits"),
            },
            offset: number("offset", fields.get("offset"), 1_000_000_000)?.unwrap_or(0),
        },
        "get" => Act::Read {
            columns: table.columns.iter().collect(),
            filter: equal(key(table)?, argument)?,
            order: Vec::new(),
            limit: 1,
            offset: 0,
        },
        "count" => Act::Count(filter()?),
        "insert" => insert(table, fields, new_id)?,
        "update" => match fields.get("set") {
            Some(Value::Object(set)) if !set.is_empty() => Act::Update(closed()?, cells(table, set)?),
            _ => return Refused::new("update needs a `set` with at least one column"),
        },
        "delete" => Act::Delete(closed()?),
        _ => return Refused::new(format!("there is no {method}")),
    };
    Ok(Ask { table, act })
}

fn insert<'t>(table: &'t Table, fields: &Map<String, Value>, new_id: &str) -> Result<Act<'t>, Refused> {
    let (key, mut cells) = (key(table)?, cells(table, fields)?);
    let given = cells.iter().any(|(column, cell)| column.name == key.name && *cell != Cell::Null);
    if !given {
        cells.retain(|(column, _)| column.name != key.name);
        if key.kind == ColumnKind::Text {
            cells.insert(0, (key, Cell::Text(new_id.to_owned())));
        }
    }
    Ok(Act::Insert(cells))
}

fn cells<'t>(table: &'t Table, fields: &Map<String, Value>) -> Result<Vec<(&'t Column, Cell)>, Refused> {
    let mut cells: Vec<(&Column, Cell)> = Vec::new();
    for (name, value) in fields {
        let column = column(table, name)?;
        if cells.iter().any(|(other, _)| other.name == column.name) {
            return Refused::new(format!("the column {} is given twice", column.name));
        }
        cells.push((column, cell(column, value)?));
    }
    Ok(cells)
}

fn filter<'t>(table: &'t Table, given: Option<&Value>) -> Result<Filter<'t>, Refused> {
    match given {
        None | Some(Value::Null) => Ok(Filter::All(Vec::new())),
        Some(Value::Object(columns)) => {
            let all = columns.iter().map(|(name, wanted)| wanted_of(column(table, name)?, wanted));
            Ok(Filter::All(all.collect::<Result<_, _>>()?))
        }
        Some(Value::Array(any)) if any.len() > MAX_ALTERNATIVES => {
            Refused::new(format!("`where` has {} alternatives, the limit is {MAX_ALTERNATIVES}", any.len()))
        }
        Some(Value::Array(any)) => {
            Ok(Filter::Any(any.iter().map(|one| filter(table, Some(one))).collect::<Result<_, _>>()?))
        }
        Some(_) => Refused::new("`where` must be an object, or a list of objects of which one must fit"),
    }
}

fn equal<'t>(column: &'t Column, value: &Value) -> Result<Filter<'t>, Refused> {
    Ok(match cell(column, value)? {
        Cell::Null => Filter::Null(column, true),
        cell => Filter::Compare(column, Op::Equal, cell),
    })
}

fn wanted_of<'t>(column: &'t Column, wanted: &Value) -> Result<Filter<'t>, Refused> {
    match wanted {
        Value::Array(_) => one_of(column, wanted, true),
        Value::Object(tests) => {
            let all = tests.iter().map(|(word, value)| test(column, word, value));
            Ok(Filter::All(all.collect::<Result<_, _>>()?))
        }
        value => equal(column, value),
    }
}

fn test<'t>(column: &'t Column, word: &str, value: &Value) -> Result<Filter<'t>, Refused> {
    let op = match word {
        "eq" => return equal(column, value),
        "in" => return one_of(column, value, true),
        "notIn" => return one_of(column, value, false),
        "contains" => return literal(column, "%", value, "%"),
        "startsWith" => return literal(column, "", value, "%"),
        "ne" => Op::Differs,
        "lt" => Op::Less,
        "lte" => Op::AtMost,
        "gt" => Op::Greater,
        "gte" => Op::AtLeast,
        _ => {
            return Refused::new(format!(
                "the condition on {} knows no {}; known are eq, ne, lt, lte, gt, gte, in, notIn, contains and startsWith",
                column.name,
                super::shown(word)
            ));
        }
    };
    Ok(match (op, cell(column, value)?) {
        (Op::Differs, Cell::Null) => Filter::Null(column, false),
        (_, Cell::Null) => Filter::Any(Vec::new()),
        (op, cell) => Filter::Compare(column, op, cell),
    })
}

/// A text that means itself, whatever it holds.
fn literal<'t>(column: &'t Column, before: &str, value: &Value, after: &str) -> Result<Filter<'t>, Refused> {
    let Some(text) = value.as_str().filter(|text| !text.contains('\0')) else {
        return Refused::new(format!("the condition on {} looks for something that is no text", column.name));
    };
    let text = text.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    Ok(Filter::Compare(column, Op::Like, Cell::Text(format!("{before}{text}{after}"))))
}

fn select<'t>(table: &'t Table, names: Option<&Value>) -> Result<Vec<&'t Column>, Refused> {
    match names {
        None | Some(Value::Null) => Ok(table.columns.iter().collect()),
        Some(Value::Array(names)) if !names.is_empty() => {
            names.iter().map(|name| column(table, name.as_str().unwrap_or_default())).collect()
        }
        Some(_) => Refused::new("`select` must be a list of columns"),
    }
}

/// Columns to order by, each with a `-` before it to begin with the last.
fn order<'t>(table: &'t Table, names: Option<&Value>) -> Result<Vec<(&'t Column, bool)>, Refused> {
    let names = match names {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(names)) => names.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let ordered = names.iter().map(|name| {
        let name = name.as_str().unwrap_or_default();
        Ok((column(table, name.strip_prefix('-').unwrap_or(name))?, name.starts_with('-')))
    });
    ordered.collect()
}

fn number(name: &str, value: Option<&Value>, most: u64) -> Result<Option<u64>, Refused> {
    match value {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(n) if n.fract() == 0.0 && n >= 0.0 && n <= most as f64 => Ok(Some(n as u64)),
            _ => Refused::new(format!("`{name}` must be a whole number of at most {most}")),
        },
    }
}
