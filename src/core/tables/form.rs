//! The calls of `V8.FormEngine`: what a call asks of a table, and what the script gets for an answer.
//!
//! Answers are `{Code, Data, DataCount, Msg}`. Code 1: it was done. Code 2, with `Data` null: the row is not there. Code 0:
//! it was refused, and `Msg` says why. A change by `_Where` that finds no row is Code 1 with `DataCount` 0, for a fence in
//! the condition has to be seen. Changes and removals without any condition are refused: no slip may empty a table.

use super::cell::cell;
use super::clause;
use super::{Act, Ask, Cell, Filter, Found, MAX_ROWS, Refused, Row, column, key, table};
use crate::core::pack::{Column, ColumnKind, Table};
use serde_json::{Map, Value, json};

/// The calls that there are; a script finds no others.
pub const METHODS: [&str; 7] = [
    "GetFormData",
    "GetTableData",
    "GetTableDataCount",
    "AddFormData",
    "UptFormData",
    "UptFormDataByWhere",
    "DelFormData",
];

/// Fields of a call that name where it goes and belong to no row.
const ADDRESS: [&str; 3] = ["FormEngineKey", "OsClient", "ApiEngineKey"];

/// A call that was understood.
#[derive(Clone, Debug, PartialEq)]
pub enum Call<'t> {
    /// One row.
    One(Ask<'t>),
    /// A page of rows, and how many there are in all.
    Page(Ask<'t>, Ask<'t>),
    /// How many rows.
    Count(Ask<'t>),
    /// A new row.
    Add(Ask<'t>),
    /// A change of rows that the call names; where none is found, the other question instead, if there is one.
    Change(Ask<'t>, Option<Ask<'t>>),
    /// A change of all rows of a condition.
    ChangeAll(Ask<'t>),
    /// A removal.
    Remove(Ask<'t>),
}

/// Reads a call. `new_id` is what a new row is called whose key is text and was not given.
pub fn read<'t>(tables: &'t [Table], method: &str, args: &[Value], new_id: &str) -> Result<Call<'t>, Refused> {
    let nothing = Map::new();
    let (name, options) = match (args.first(), args.get(1)) {
        (Some(Value::String(name)), Some(Value::Object(options))) => (name.as_str(), options),
        (Some(Value::String(name)), None | Some(Value::Null)) => (name.as_str(), &nothing),
        (Some(Value::Object(options)), _) => {
            (options.get("FormEngineKey").and_then(Value::as_str).unwrap_or_default(), options)
        }
        _ => return Refused::new(format!("{method} takes the name of a table and an object")),
    };
    Form { table: table(tables, name)?, options }.call(method, new_id)
}

/// The table of a call, and its object.
struct Form<'t, 'a> {
    table: &'t Table,
    options: &'a Map<String, Value>,
}

impl<'t> Form<'t, '_> {
    fn call(&self, method: &str, new_id: &str) -> Result<Call<'t>, Refused> {
        let ask = |act| Ask { table: self.table, act };
        Ok(match method {
            "GetFormData" => Call::One(ask(self.rows(self.closed(method)?, 1, 0)?)),
            "GetTableData" => {
                let (limit, offset) = self.page()?;
                Call::Page(ask(self.rows(self.filter()?, limit, offset)?), ask(Act::Count(self.filter()?)))
            }
            "GetTableDataCount" => Call::Count(ask(Act::Count(self.filter()?))),
            "AddFormData" => Call::Add(ask(self.insert(new_id)?)),
            "UptFormData" => {
                let add = if self.is_set("_NoLineForAdd") { Some(ask(self.insert(new_id)?)) } else { None };
                Call::Change(ask(self.update(method)?), add)
            }
            "UptFormDataByWhere" => Call::ChangeAll(ask(self.update(method)?)),
            "DelFormData" => Call::Remove(ask(Act::Delete(self.closed(method)?))),
            _ => return Refused::new(format!("there is no {method}")),
        })
    }

    fn rows(&self, filter: Filter<'t>, limit: u32, offset: u64) -> Result<Act<'t>, Refused> {
        Ok(Act::Read { columns: self.columns()?, filter, order: self.order()?, limit, offset })
    }

    fn insert(&self, new_id: &str) -> Result<Act<'t>, Refused> {
        let mut cells = self.cells()?;
        let key = key(self.table)?;
        let given = self.id().filter(|id| !id.is_null() && **id != "");
        match given {
            Some(id) => cells.insert(0, (key, cell(key, id)?)),
            None if key.kind == ColumnKind::Text => cells.insert(0, (key, Cell::Text(new_id.to_owned()))),
            None => {}
        }
        Ok(Act::Insert(cells))
    }

    /// With nothing to change it is asked how many rows there are, which is what a change of nothing would find.
    fn update(&self, method: &str) -> Result<Act<'t>, Refused> {
        let (filter, cells) = (self.closed(method)?, self.cells()?);
        Ok(if cells.is_empty() { Act::Count(filter) } else { Act::Update(filter, cells) })
    }

    /// `Id`, `Ids` and `_Where`, all of which must hold.
    fn filter(&self) -> Result<Filter<'t>, Refused> {
        let mut all = vec![clause::read(self.table, self.options.get("_Where"))?];
        if let Some(id) = self.id() {
            all.push(match cell(key(self.table)?, id)? {
                Cell::Null => Filter::Any(Vec::new()),
                id => Filter::Compare(key(self.table)?, super::Op::Equal, id),
            });
        }
        if let Some(ids) = self.options.get("Ids") {
            all.push(clause::one_of(key(self.table)?, ids, true)?);
        }
        Ok(Filter::All(all))
    }

    /// A filter that leaves something out.
    fn closed(&self, method: &str) -> Result<Filter<'t>, Refused> {
        let filter = self.filter()?;
        if filter.is_open() {
            return Refused::new(format!("{method} needs an Id, Ids or a _Where that leaves something out"));
        }
        Ok(filter)
    }

    fn id(&self) -> Option<&Value> {
        self.options.get("Id").or_else(|| self.options.get(&self.table.key))
    }

    /// What is to be written: every field that is no option, in columns of the table.
    fn cells(&self) -> Result<Vec<(&'t Column, Cell)>, Refused> {
        let left_out = self.options.get("_NotSaveField").and_then(Value::as_array);
        let is_left_out = |name: &str| left_out.is_some_and(|names| names.iter().any(|n| n == name));
        let mut cells: Vec<(&Column, Cell)> = Vec::new();
        for (name, value) in self.options {
            let known = self.table.column(name);
            let option = name.starts_with('_') || ADDRESS.contains(&name.as_str()) || name == "Ids" || name == "Id";
            if (option && known.is_none()) || is_left_out(name) {
                continue;
            }
            let column = column(self.table, name)?;
            if column.name == self.table.key {
                continue;
            }
            if cells.iter().any(|(other, _)| other.name == column.name) {
                return Refused::new(format!("the column {} is given twice", column.name));
            }
            cells.push((column, cell(column, value)?));
        }
        Ok(cells)
    }

    fn columns(&self) -> Result<Vec<&'t Column>, Refused> {
        match self.options.get("_SelectFields") {
            None | Some(Value::Null) => Ok(self.table.columns.iter().collect()),
            Some(Value::Array(names)) if !names.is_empty() => {
                names.iter().map(|name| column(self.table, name.as_str().unwrap_or_default())).collect()
            }
            Some(Value::String(names)) => names.split(',').map(|name| column(self.table, name.trim())).collect(),
            Some(_) => Refused::new("_SelectFields must be a list of columns"),
        }
    }

    /// `_OrderBy` with `_OrderByType`, or `_OrderBys` as columns with their directions.
    fn order(&self) -> Result<Vec<(&'t Column, bool)>, Refused> {
        let mut order = Vec::new();
        match self.options.get("_OrderBy").and_then(Value::as_str).filter(|name| !name.trim().is_empty()) {
            Some(name) => order.push((column(self.table, name.trim())?, falls(self.options.get("_OrderByType"))?)),
            None => {
                if let Some(Value::Object(columns)) = self.options.get("_OrderBys") {
                    for (name, direction) in columns {
                        order.push((column(self.table, name)?, falls(Some(direction))?));
                    }
                }
            }
        }
        Ok(order)
    }

    /// At most how many rows, after how many. Without a page it is all of them, up to one more than may be.
    fn page(&self) -> Result<(u32, u64), Refused> {
        let number = |name: &str| match self.options.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), |text| text.trim().to_owned());
                let number = text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && *n >= 1.0 && *n <= 1e9);
                number
                    .map(|n| Some(n as u64))
                    .ok_or_else(|| Refused(format!("{name} must be a whole number from 1 on")))
            }
        };
        let (index, size) = (number("_PageIndex")?, number("_PageSize")?);
        match size {
            None if index.is_some_and(|index| index > 1) => Refused::new("_PageIndex needs a _PageSize"),
            None => Ok((MAX_ROWS + 1, 0)),
            Some(size) if size <= u64::from(MAX_ROWS) => {
                let limit = u32::try_from(size).expect("the limit fits");
                Ok((limit, (index.unwrap_or(1) - 1) * size))
            }
            Some(_) => Refused::new(format!("_PageSize must be at most {MAX_ROWS}")),
        }
    }

    fn is_set(&self, name: &str) -> bool {
        self.options.get(name).is_some_and(|value| *value == true || *value == 1)
    }
}

fn falls(direction: Option<&Value>) -> Result<bool, Refused> {
    let word = direction.and_then(Value::as_str).map_or("", str::trim);
    match word.to_ascii_lowercase().as_str() {
        "" | "asc" => Ok(false),
        "desc" => Ok(true),
        _ => Refused::new("an order is ASC or DESC"),
    }
}

/// What a script gets for a row that it asked for.
#[must_use]
pub fn one(row: Option<Row>) -> Value {
    match row {
        Some(row) => json!({"Code": 1, "Data": row, "Msg": ""}),
        None => missing(),
    }
}

/// What it gets for a page: the rows, and how many there are in all. `None` = more than one answer may hold.
#[must_use]
pub fn page(rows: Vec<Row>, in_all: u64) -> Value {
    if rows.len() > MAX_ROWS as usize {
        return refused(&format!("there are more than {MAX_ROWS} rows; ask for pages with _PageIndex and _PageSize"));
    }
    json!({"Code": 1, "Data": rows, "DataCount": in_all, "Msg": ""})
}

/// What it gets for a number of rows.
#[must_use]
pub fn counted(count: u64) -> Value {
    json!({"Code": 1, "Data": count, "DataCount": count, "Msg": ""})
}

/// What it gets for rows that were changed or removed; none is an answer like any other.
#[must_use]
pub fn touched(found: &Found) -> Value {
    json!({"Code": 1, "Data": null, "DataCount": found.count(), "Msg": ""})
}

/// What it gets when a row is not there.
#[must_use]
pub fn missing() -> Value {
    json!({"Code": 2, "Data": null, "DataCount": 0, "Msg": "The row does not exist."})
}

/// What it gets when it was refused.
#[must_use]
pub fn refused(why: &str) -> Value {
    json!({"Code": 0, "Data": null, "DataCount": 0, "Msg": why})
}
