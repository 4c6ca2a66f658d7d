//! `_Where` lists: conditions as lists, `["Field", "=", value]`, joined by a leading "AND" or "OR" and grouped by "(" before
//! the field and ")" after the value; or as objects `{Name, Type, Value, AndOr, GroupStart, GroupEnd}`, the older way.
//!
//! As in SQL, AND binds closer than OR. A condition on null is one on NULL. Names are columns of the table or the whole list
//! is refused; words that are no comparison are refused too, so a condition is never dropped.

use super::cell::cell;
use super::{Cell, Filter, Op, Refused, column};
use crate::core::pack::{Column, Table};
use serde_json::Value;

/// Conditions in one list; what a statement can hold without trouble on every database.
const MAX_CONDITIONS: usize = 200;
/// Values in one list of a condition.
const MAX_VALUES: usize = 5_000;
/// Groups in groups.
const MAX_DEPTH: usize = 32;

/// One condition as it was written.
struct Condition<'t> {
    or: bool,
    opens: usize,
    filter: Filter<'t>,
    closes: usize,
}

/// Reads a list; an absent or empty one leaves out no row.
pub(super) fn read<'t>(table: &'t Table, list: Option<&Value>) -> Result<Filter<'t>, Refused> {
    let list = match list {
        None | Some(Value::Null) => return Ok(Filter::All(Vec::new())),
        Some(Value::Array(list)) => list,
        Some(_) => return Refused::new("_Where must be a list of conditions"),
    };
    if list.len() > MAX_CONDITIONS {
        return Refused::new(format!("_Where has {} conditions, the limit is {MAX_CONDITIONS}", list.len()));
    }
    let conditions = list.iter().map(|written| condition(table, written)).collect::<Result<Vec<_>, _>>()?;
    let mut rest = conditions.into_iter();
    group(&mut rest)
}

/// One level of conditions with the groups in it, kept as alternatives of what has to be so together.
struct Level<'t> {
    any: Vec<Vec<Filter<'t>>>,
    /// How the group as a whole is joined to what stands before it.
    or: bool,
}

impl<'t> Level<'t> {
    fn new(or: bool) -> Self {
        Self { any: vec![Vec::new()], or }
    }

    fn add(&mut self, or: bool, filter: Filter<'t>) {
        let first = self.any.iter().all(Vec::is_empty);
        if or && !first {
            self.any.push(Vec::new());
        }
        self.any.last_mut().expect("a level has an alternative").push(filter);
    }

    fn whole(self) -> Filter<'t> {
        let mut any: Vec<_> = self.any.into_iter().map(Filter::All).collect();
        if any.len() == 1 { any.remove(0) } else { Filter::Any(any) }
    }
}

fn group<'t>(conditions: &mut dyn Iterator<Item = Condition<'t>>) -> Result<Filter<'t>, Refused> {
    let mut open = vec![Level::new(false)];
    for Condition { or, opens, filter, closes } in conditions {
        for step in 0..opens {
            open.push(Level::new(or && step == 0));
        }
        if open.len() > MAX_DEPTH {
            return Refused::new(format!("_Where has more than {MAX_DEPTH} groups in each other"));
        }
        open.last_mut().expect("one level is always open").add(or && opens == 0, filter);
        for _ in 0..closes {
            let closed = open.pop().expect("one level is always open");
            let Some(around) = open.last_mut() else {
                return Refused::new("_Where closes a group that was not opened");
            };
            around.add(closed.or, closed.whole());
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(outermost), true) => Ok(outermost.whole()),
        _ => Refused::new("_Where opens a group and does not close it"),
    }
}

fn condition<'t>(table: &'t Table, written: &Value) -> Result<Condition<'t>, Refused> {
    match written {
        Value::Array(parts) => of_list(table, parts),
        Value::Object(fields) => {
            let text = |name: &str| fields.get(name).and_then(Value::as_str);
            let is_set = |name: &str| usize::from(fields.get(name).is_some_and(|v| *v == true || *v == 1));
            let Some(name) = text("Name") else { return Refused::new("a condition of _Where has no Name") };
            let filter = compare(column(table, name)?, text("Type").unwrap_or("="), fields.get("Value"))?;
            let or = text("AndOr").is_some_and(|word| word.eq_ignore_ascii_case("or"));
            Ok(Condition { or, opens: is_set("GroupStart"), filter, closes: is_set("GroupEnd") })
        }
        _ => Refused::new("a condition of _Where must be a list such as [\"Field\", \"=\", value]"),
    }
}

fn of_list<'t>(table: &'t Table, parts: &[Value]) -> Result<Condition<'t>, Refused> {
    let mut parts = parts.iter().peekable();
    let joined = parts.next_if(|part| is_word(part, "and") || is_word(part, "or"));
    let or = joined.is_some_and(|word| is_word(word, "or"));
    let mut opens = 0;
    while let Some(part) = parts.next_if(|part| brackets(part, '(') > 0) {
        opens += brackets(part, '(');
    }
    let Some(name) = parts.next().and_then(Value::as_str) else {
        return Refused::new("a condition of _Where names no field");
    };
    let column = column(table, name)?;
    let Some(op) = parts.next().and_then(Value::as_str) else {
        return Refused::new(format!("the condition on {} says no comparison", column.name));
    };
    let filter = compare(column, op, parts.next())?;
    let mut closes = 0;
    for part in parts {
        match brackets(part, ')') {
            0 => return Refused::new(format!("the condition on {} goes on after its value", column.name)),
            count => closes += count,
        }
    }
    Ok(Condition { or, opens, filter, closes })
}

fn is_word(part: &Value, word: &str) -> bool {
    part.as_str().is_some_and(|text| text.trim().eq_ignore_ascii_case(word))
}

/// How many brackets a part consists of; 0 when it is something else.
fn brackets(part: &Value, bracket: char) -> usize {
    let text = part.as_str().map_or("", str::trim);
    if text.chars().all(|c| c == bracket) { text.len() } else { 0 }
}

fn compare<'t>(column: &'t Column, op: &str, value: Option<&Value>) -> Result<Filter<'t>, Refused> {
    let value = value.unwrap_or(&Value::Null);
    let word: String = op.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    let op = match word.as_str() {
        "=" | "==" | "equal" => Op::Equal,
        "<>" | "!=" | "notequal" => Op::Differs,
        "<" => Op::Less,
        "<=" => Op::AtMost,
        ">" => Op::Greater,
        ">=" => Op::AtLeast,
        "like" => return like(column, Op::Like, "%", value, "%"),
        "notlike" => return like(column, Op::Unlike, "%", value, "%"),
        "startlike" => return like(column, Op::Like, "", value, "%"),
        "endlike" => return like(column, Op::Like, "%", value, ""),
        "in" => return one_of(column, value, true),
        "notin" => return one_of(column, value, false),
        "isnull" => return Ok(Filter::Null(column, true)),
        "isnotnull" => return Ok(Filter::Null(column, false)),
        "is" if value.is_null() => return Ok(Filter::Null(column, true)),
        "isnot" if value.is_null() => return Ok(Filter::Null(column, false)),
        _ => {
            return Refused::new(format!(
                "the condition on {} compares with {}; known are =, <>, <, <=, >, >=, Like, NotLike, StartLike, EndLike, \
                 In, NotIn, IsNull and IsNotNull",
                column.name,
                super::shown(op)
            ));
        }
    };
    match (op, cell(column, value)?) {
        (Op::Equal, Cell::Null) => Ok(Filter::Null(column, true)),
        (Op::Differs, Cell::Null) => Ok(Filter::Null(column, false)),
        // Nothing is above or below NULL.
        (_, Cell::Null) => Ok(Filter::Any(Vec::new())),
        (op, cell) => Ok(Filter::Compare(column, op, cell)),
    }
}

/// `%` and `_` of the script's own value keep their meaning, as it was where such lists come from.
fn like<'t>(column: &'t Column, op: Op, before: &str, value: &Value, after: &str) -> Result<Filter<'t>, Refused> {
    let text = match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return Refused::new(format!("the condition on {} looks for something that is no text", column.name)),
    };
    if text.contains('\0') {
        return Refused::new(format!("the condition on {} looks for U+0000", column.name));
    }
    Ok(Filter::Compare(column, op, Cell::Text(format!("{before}{}{after}", text.replace('\\', "\\\\")))))
}

/// A list of values for a column; also as JSON text, and one value alone.
pub(super) fn one_of<'t>(column: &'t Column, value: &Value, wanted: bool) -> Result<Filter<'t>, Refused> {
    let parsed =
        value.as_str().filter(|text| text.trim_start().starts_with('[')).and_then(|t| serde_json::from_str(t).ok());
    let values = match parsed.as_ref().unwrap_or(value) {
        Value::Array(values) => values.as_slice(),
        Value::Null => &[],
        one => std::slice::from_ref(one),
    };
    if values.len() > MAX_VALUES {
        return Refused::new(format!(
            "the list for {} has {} values, the limit is {MAX_VALUES}",
            column.name,
            values.len()
        ));
    }
    let cells = values.iter().map(|value| cell(column, value)).collect::<Result<Vec<_>, _>>()?;
    Ok(Filter::OneOf(column, cells.into_iter().filter(|cell| *cell != Cell::Null).collect(), wanted))
}
