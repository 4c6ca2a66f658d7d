//! What a manifest may say, and how a bad one is told.

use super::*;
use std::fs;
use tempfile::TempDir;

const WHOLE: &str = r#"
name = "stock"
version = "1.2.0"
permissions = ["tasks:submit"]
hosts = ["erp.example.com:8443"]
serial = true

[database]
url = { env = "STOCK_URL" }

[[tables]]
name = "item"
columns = { Id = "text", Code = "text", Amount = "integer", Price = "number", Active = "boolean" }
unique = ["Code", ["Active", "Price"]]

[[actions]]
key = "stock.import"
title = { en = "Import stock", zh-CN = "导入库存" }
handler = { script = "import/rows.js" }
"#;

fn folder(manifest: &str) -> (TempDir, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("stock");
    fs::create_dir_all(folder.join("import")).unwrap();
    fs::create_dir_all(folder.join(".git")).unwrap();
    fs::write(folder.join("pack.toml"), manifest).unwrap();
    fs::write(folder.join("import/rows.js"), "export default () => ({ hasMore: false });").unwrap();
    fs::write(folder.join("check.js"), "return 1;").unwrap();
    fs::write(folder.join(".git/hook.js"), "no script").unwrap();
    (dir, folder)
}

fn read(manifest: &str) -> Result<Manifest, PackFaults> {
    let (_dir, folder) = folder(manifest);
    let url = "postgres://stock:s3cret@db/stock".to_owned();
    Manifest::read(&folder, &BTreeMap::from([("STOCK_URL".to_owned(), url)]))
}

fn faults(manifest: &str) -> String {
    read(manifest).expect_err("the manifest is at fault").to_string()
}

#[test]
fn a_whole_manifest_is_read_with_its_scripts() {
    let (_dir, folder) = folder(WHOLE);
    let read = read(WHOLE).unwrap();
    let pack = &read.pack;
    assert_eq!((pack.name.as_str(), pack.version.as_str(), pack.serial), ("stock", "1.2.0", true));
    assert!(pack.may(Permission::SubmitTasks));
    assert_eq!(pack.hosts, ["erp.example.com:8443"]);
    assert_eq!(pack.scripts.keys().collect::<Vec<_>>(), ["check", "import/rows"]);
    let table = pack.table("item").unwrap();
    assert_eq!((table.key.as_str(), table.columns[1].name.as_str()), ("Id", "Code"));
    assert_eq!(table.column("Amount").unwrap().kind, ColumnKind::Integer);
    assert_eq!(table.unique, [vec!["Code"], vec!["Active", "Price"]]);
    assert!(matches!(read.database, Some(DatabaseUrl::Postgres(_))));
    assert!(read.secrets.iter().any(|secret| secret.expose() == "s3cret"), "its password is masked in logs");
    assert!(!format!("{read:?}").contains("s3cret"));
    let action = &read.actions[0];
    assert_eq!(action.key, "stock.import");
    let again = Manifest::read(&folder, &BTreeMap::from([("STOCK_URL".to_owned(), "sqlite://own.db".to_owned())]));
    let again = again.unwrap();
    assert_eq!(again.script_of(&again.actions[0], &folder), Some("import/rows"));
    assert_eq!(again.database, Some(DatabaseUrl::Sqlite(folder.join("own.db"))), "a path counts from the folder");
}

#[test]
fn each_fault_has_its_file_its_line_and_its_key() {
    let text = faults(
        &WHOLE.replace("1.2.0", "").replace("\"Import stock\"", "5").replace("Code = \"text\"", "Code = \"date\""),
    );
    for told in [
        "stock/pack.toml:3: version: must not be empty",
        "stock/pack.toml:13: tables[0].columns.Code: must be text, integer, number or boolean",
        "stock/pack.toml:14: tables[0].unique: `Code` is no column of the table",
        "stock/pack.toml:18: actions[0].title: ",
    ] {
        assert!(text.contains(told), "{told} in\n{text}");
    }
}

#[test]
fn what_does_not_exist_and_what_reaches_out_is_refused() {
    for (from, to, told) in [
        ("serial = true", "serail = true", "serail: does not exist; did you mean `serial`?"),
        ("\"stock\"", "\"stocks\"", "name: must be the name of the folder"),
        ("tasks:submit", "tasks:all", "permissions: must be one of tasks:submit"),
        ("erp.example.com:8443", "http://erp", "hosts: `http://erp` is no host"),
        ("import/rows.js", "../other/rows.js", "actions[0].handler: must name a file of the pack"),
        ("import/rows.js", "import/none.js", "actions[0].handler: must name a file of the pack"),
        ("script = \"import/rows.js\"", "native = \"import\"", "actions[0].handler: must be a script of the pack"),
        ("url = { env = \"STOCK_URL\" }", "url = { env = \"NONE\" }", "database.url: the environment variable NONE"),
        ("url = { env = \"STOCK_URL\" }", "", "database.url: is missing"),
        ("\"item\"", "\"item; drop\"", "tables[0].name: must be a plain identifier"),
        ("serial = true", "serial = ", "is not valid TOML"),
    ] {
        let text = faults(&WHOLE.replace(from, to));
        assert!(text.contains(told), "{told} in\n{text}");
    }
    assert!(faults(&WHOLE.replace("serial = true", "serial = ")).starts_with("stock/pack.toml:6: "));
}
