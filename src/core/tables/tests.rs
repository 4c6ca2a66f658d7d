//! What calls become, and what is refused. Filters are judged by what they hold of a row, not by how they are built.

use super::*;
use crate::core::pack::ColumnKind;
use serde_json::json;

fn tables() -> Vec<Table> {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    vec![Table {
        name: "Rows".into(),
        key: "Id".into(),
        columns: vec![
            column("Id", ColumnKind::Text),
            column("Status", ColumnKind::Text),
            column("RowNo", ColumnKind::Integer),
            column("Fence", ColumnKind::Integer),
            column("Price", ColumnKind::Number),
            column("Open", ColumnKind::Boolean),
        ],
        unique: Vec::new(),
    }]
}

/// Whether a row is one of a filter, by SQL's rules.
fn holds(filter: &Filter<'_>, row: &Value) -> bool {
    let cell = |column: &Column| cell::cell(column, &row[&column.name]).unwrap();
    match filter {
        Filter::All(parts) => parts.iter().all(|part| holds(part, row)),
        Filter::Any(parts) => parts.iter().any(|part| holds(part, row)),
        Filter::Null(column, is_null) => (cell(column) == Cell::Null) == *is_null,
        Filter::OneOf(column, cells, wanted) => cell(column) != Cell::Null && cells.contains(&cell(column)) == *wanted,
        Filter::Compare(column, op, value) => match (cell(column), value) {
            (Cell::Null, _) => false,
            (Cell::Int(a), Cell::Int(b)) => match op {
                Op::Equal => a == *b,
                Op::Differs => a != *b,
                Op::Less => a < *b,
                Op::AtMost => a <= *b,
                Op::Greater => a > *b,
                Op::AtLeast => a >= *b,
                Op::Like | Op::Unlike => panic!("a pattern on a number"),
            },
            (a, b) => match op {
                Op::Equal => a == *b,
                Op::Differs => a != *b,
                other => panic!("{other:?} is not judged here"),
            },
        },
    }
}

fn filter_of(list: Value) -> Result<bool, Refused> {
    let tables = tables();
    let row = json!({"Id": "r1", "Status": "Pending", "RowNo": 7, "Fence": null, "Price": 1.5, "Open": true});
    let args = [json!("Rows"), json!({"_Where": list})];
    let Ok(form::Call::Count(Ask { act: Act::Count(filter), .. })) =
        form::read(&tables, "GetTableDataCount", &args, "new")
    else {
        return Err(form::read(&tables, "GetTableDataCount", &args, "new").unwrap_err());
    };
    Ok(holds(&filter, &row))
}

#[test]
fn conditions_are_joined_and_grouped_as_they_are_written() {
    for (list, expected) in [
        (json!([]), true),
        (json!([["Id", "=", "r1"], ["AND", "Status", "=", "Pending"]]), true),
        (json!([["Id", "=", "r2"], ["AND", "Status", "=", "Pending"]]), false),
        (json!([["Id", "=", "r2"], ["OR", "Status", "=", "Pending"]]), true),
        // AND binds closer: true OR (false AND false).
        (json!([["Id", "=", "r1"], ["OR", "Id", "=", "r2"], ["AND", "Id", "=", "r3"]]), true),
        (json!([["Id", "=", "r2"], ["AND", "Id", "=", "r1"], ["OR", "RowNo", "=", 7]]), true),
        // A fence: (Fence is null OR Fence <= 3).
        (json!([["Id", "=", "r1"], ["AND", "(", "Fence", "=", null], ["OR", "Fence", "<=", 3, ")"]]), true),
        (json!([["Id", "=", "r2"], ["AND", "(", "Fence", "=", null], ["OR", "Fence", "<=", 3, ")"]]), false),
        (json!([["(", "Id", "=", "r2"], ["OR", "Id", "=", "r1", ")"], ["AND", "RowNo", ">", 7]]), false),
        (json!([["((", "Id", "=", "r2"], ["OR", "Id", "=", "r1", ")"], ["AND", "RowNo", ">=", 7, ")"]]), true),
        (json!([["Id", "=", "r2"], ["OR", "(", "RowNo", "=", 7], ["AND", "Status", "=", "Done", ")"]]), false),
        (json!([["Status", "In", ["Pending", "Done"]]]), true),
        (json!([["Status", "in", "[\"Done\"]"]]), false),
        (json!([["Status", "NotIn", ["Done"]]]), true),
        (json!([["Status", "In", []]]), false),
        (json!([["RowNo", "In", ["7", 8, null]]]), true),
        (json!([["Fence", "<>", null]]), false),
        (json!([["Fence", "Is", null]]), true),
        (json!([["Fence", "IsNull"]]), true),
        (json!([["Fence", "<", 5]]), false),
        (json!([["RowNo", "<", null]]), false),
        (json!([["rowno", "=", "7"]]), true),
        (json!([["Open", "=", 1], ["and", "RowNo", "!=", 8]]), true),
        (
            json!([{"Name": "Id", "Value": "r1", "Type": "="}, {"Name": "RowNo", "Type": ">", "Value": 7, "AndOr": "OR"}]),
            true,
        ),
        (
            json!([{"Name": "Id", "Value": "r2", "Type": "=", "GroupStart": true}, {"Name": "RowNo", "Value": 7, "AndOr": "OR", "GroupEnd": true}]),
            true,
        ),
    ] {
        assert_eq!(filter_of(list.clone()), Ok(expected), "{list}");
    }
}

#[test]
fn a_condition_that_is_not_understood_is_refused_and_never_dropped() {
    for (list, why) in [
        (json!("Id = 1"), "list"),
        (json!([1]), "list such as"),
        (json!([[]]), "names no field"),
        (json!([["AND"]]), "names no field"),
        (json!([["Id"]]), "says no comparison"),
        (json!([["Nope", "=", 1]]), "`Nope`"),
        (json!([["Id\" OR 1=1 --", "=", 1]]), "no column"),
        (json!([["Id", "= 1 OR 1 =", 1]]), "compares with"),
        (json!([["Id", "=", 1, "x"]]), "goes on after"),
        (json!([["(", "Id", "=", 1]]), "opens a group"),
        (json!([["Id", "=", 1, ")"]]), "closes a group"),
        (json!([["RowNo", "=", "seven"]]), "RowNo"),
        (json!([["RowNo", "=", 1.5]]), "whole number"),
        (json!([["Open", "=", 2]]), "true or false"),
        (json!([["Id", "=", "a\0b"]]), "U+0000"),
        (json!([{"Type": "="}]), "no Name"),
        (json!(vec![json!(["Id", "=", 1]); 201]), "limit"),
    ] {
        let refused = filter_of(list.clone()).unwrap_err().0;
        assert!(refused.contains(why), "{list}: {refused}");
        assert!(!refused.contains("seven"), "{refused}");
    }
    let deep = json!(vec![json!(["(", "Id", "=", 1]); 40]);
    assert!(filter_of(deep).unwrap_err().0.contains("groups"));
}

#[test]
fn a_change_without_a_condition_is_refused_by_either_surface() {
    let tables = tables();
    for options in [json!({"Status": "x"}), json!({"Status": "x", "_Where": []})] {
        for method in ["UptFormData", "UptFormDataByWhere", "DelFormData", "GetFormData"] {
            let refused = form::read(&tables, method, &[json!("Rows"), options.clone()], "new").unwrap_err();
            assert!(refused.0.contains("leaves something out"), "{method}: {refused}");
        }
    }
    for (method, argument) in [
        ("update", json!({"set": {"Status": "x"}})),
        ("update", json!({"where": [{}], "set": {"Status": "x"}})),
        ("delete", json!({})),
        ("delete", json!({"where": {}})),
    ] {
        assert!(plain::read(&tables, method, "Rows", &argument, "new").is_err(), "{method} {argument}");
    }
    // Of no rows is a condition like any other.
    assert!(form::read(&tables, "DelFormData", &[json!("Rows"), json!({"Ids": []})], "new").is_ok());
}

#[test]
fn a_call_writes_its_fields_into_columns_of_the_manifest_and_nothing_else() {
    let tables = tables();
    let cells = |method: &str, options: Value| match form::read(&tables, method, &[json!("rows"), options], "new")? {
        form::Call::Add(Ask { act: Act::Insert(cells), .. })
        | form::Call::Change(Ask { act: Act::Update(_, cells), .. }, _)
        | form::Call::ChangeAll(Ask { act: Act::Update(_, cells), .. }) => {
            Ok::<_, Refused>(cells.into_iter().map(|(column, cell)| (column.name.clone(), cell)).collect::<Vec<_>>())
        }
        other => panic!("{other:?}"),
    };
    let text = |text: &str| Cell::Text(text.into());
    let given = json!({"Id": "a", "Status": {"deep": [1]}, "RowNo": "12", "Price": "", "Open": "true", "_InvokeType": "Client"});
    let written = vec![
        ("Id".to_owned(), text("a")),
        ("Status".to_owned(), text("{\"deep\":[1]}")),
        ("RowNo".to_owned(), Cell::Int(12)),
        ("Price".to_owned(), Cell::Null),
        ("Open".to_owned(), Cell::Bool(true)),
    ];
    assert_eq!(cells("AddFormData", given.clone()), Ok(written.clone()));
    assert_eq!(cells("UptFormData", given), Ok(written[1..].to_vec()));
    assert_eq!(cells("AddFormData", json!({"Status": "x"})).unwrap()[0], ("Id".to_owned(), text("new")));
    assert_eq!(cells("AddFormData", json!({"Id": null})).unwrap(), [("Id".to_owned(), text("new"))]);
    let left_out = json!({"Id": "a", "Status": "x", "RowNo": 1, "_NotSaveField": ["Status"]});
    assert_eq!(cells("UptFormData", left_out).unwrap(), [("RowNo".to_owned(), Cell::Int(1))]);
    for (options, why) in [
        (json!({"Id": "a", "Statuss": "x"}), "`Statuss`"),
        (json!({"Id": "a", "RowNo": "many"}), "RowNo"),
        (json!({"Id": "a", "Status": "x", "status": "y"}), "twice"),
    ] {
        assert!(cells("AddFormData", options).unwrap_err().0.contains(why));
    }
    assert!(form::read(&tables, "AddFormData", &[json!("taskbell_chunks"), json!({})], "new").is_err());
    assert!(form::read(&tables, "FromSql", &[json!("Rows"), json!({})], "new").is_err());
}

#[test]
fn pages_begin_at_1_and_more_rows_than_one_answer_holds_are_refused_and_not_cut() {
    let tables = tables();
    let page = |options: Value| match form::read(&tables, "GetTableData", &[json!("Rows"), options], "")? {
        form::Call::Page(Ask { act: Act::Read { limit, offset, order, columns, .. }, .. }, _) => {
            let order: Vec<_> = order.into_iter().map(|(column, falls)| (column.name.clone(), falls)).collect();
            Ok::<_, Refused>((limit, offset, order, columns.len()))
        }
        other => panic!("{other:?}"),
    };
    assert_eq!(page(json!({})), Ok((MAX_ROWS + 1, 0, vec![], 6)));
    assert_eq!(page(json!({"_PageIndex": 3, "_PageSize": "20"})), Ok((20, 40, vec![], 6)));
    let ordered = json!({"_OrderBy": "RowNo", "_OrderByType": "DESC", "_SelectFields": ["Id", "RowNo"]});
    assert_eq!(page(ordered), Ok((MAX_ROWS + 1, 0, vec![("RowNo".into(), true)], 2)));
    let two = json!({"_OrderBys": {"Status": "desc", "RowNo": "asc"}});
    assert_eq!(page(two), Ok((MAX_ROWS + 1, 0, vec![("Status".into(), true), ("RowNo".into(), false)], 6)));
    for options in [
        json!({"_PageIndex": 2}),
        json!({"_PageSize": 10_001}),
        json!({"_PageSize": 0}),
        json!({"_PageIndex": -1, "_PageSize": 5}),
        json!({"_OrderBy": "RowNo; DROP TABLE x"}),
        json!({"_OrderBy": "RowNo", "_OrderByType": "sideways"}),
        json!({"_SelectFields": ["*"]}),
        json!({"_SelectFields": []}),
    ] {
        assert!(page(options.clone()).is_err(), "{options}");
    }
    assert_eq!(form::page(vec![Row::new(); MAX_ROWS as usize + 1], 20_000)["Code"], 0);
    assert_eq!(form::page(vec![Row::new()], 20_000)["DataCount"], 20_000);
}

#[test]
fn the_plain_surface_says_the_same_in_its_own_words() {
    let tables = tables();
    let row = json!({"Id": "r1", "Status": "a_b", "RowNo": 7, "Fence": null, "Price": 1.5, "Open": true});
    for (wanted, expected) in [
        (json!({}), true),
        (json!({"Id": "r1", "RowNo": 7}), true),
        (json!({"Fence": null}), true),
        (json!({"RowNo": {"gt": 6, "lte": 7}}), true),
        (json!({"RowNo": {"gt": 7}}), false),
        (json!({"RowNo": [6, 7]}), true),
        (json!({"RowNo": {"notIn": [7]}}), false),
        (json!([{"Id": "r2"}, {"RowNo": {"ne": 8}}]), true),
        (json!([]), false),
    ] {
        let Ask { act: Act::Count(filter), .. } =
            plain::read(&tables, "count", "Rows", &json!({"where": wanted}), "").unwrap()
        else {
            panic!("no count");
        };
        assert_eq!(holds(&filter, &row), expected, "{wanted}");
    }
    for (method, argument) in [
        ("find", json!({"were": {}})),
        ("find", json!({"where": {"Nope": 1}})),
        ("find", json!({"where": {"RowNo": {"above": 1}}})),
        ("find", json!({"limit": 10_001})),
        ("find", json!({"orderBy": "--RowNo"})),
        ("update", json!({"where": {"Id": "a"}, "set": {}})),
        ("insert", json!(null)),
        ("truncate", json!({})),
    ] {
        assert!(plain::read(&tables, method, "Rows", &argument, "").is_err(), "{method} {argument}");
    }
    let contains = json!({"where": {"Status": {"contains": "50%_\\"}}});
    let Ask { act: Act::Count(Filter::All(all)), .. } = plain::read(&tables, "count", "Rows", &contains, "").unwrap()
    else {
        panic!("no count");
    };
    let pattern = Cell::Text("%50\\%\\_\\\\%".into());
    assert!(
        matches!(&all[0], Filter::All(tests) if matches!(&tests[0], Filter::Compare(_, Op::Like, cell) if *cell == pattern))
    );
}
