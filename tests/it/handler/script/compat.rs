//! Whole scripts of each shape over the tables of a pack, chunk by chunk, with the losses that a chunk can suffer: its process
//! killed in the middle, and its answer lost after its tables were committed.

use super::{Host, MEMORY, Rig, chunk};
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use taskbell::app::pack_tables::PackTables;
use taskbell::core::chunk::{Failure, Outcome};
use taskbell::core::ids::FencingToken;
use taskbell::core::pack::{Column, ColumnKind, Table};
use taskbell::core::tables::{Found, plain};
use taskbell::handler::script::ScriptHandler;
use taskbell::handler::tables::{ChunkMark, TableData};
use taskbell::handler::{ChunkContext, ChunkHost, Handler as _, HandlerError};

const TIME: Duration = Duration::from_secs(60);
const IMPORT: &str = include_str!("compat/import.js");
const ROLLBACK: &str = include_str!("compat/rollback.js");
const BUILD: &str = include_str!("compat/build.js");

/// What befalls one run of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Well,
    /// Its node dies after the tables were committed: the answer is lost, and the chunk comes again.
    AnswerLost,
    /// It is dropped in its middle.
    Dropped,
}

use Fate::{AnswerLost, Dropped, Well};

fn table(name: &str, key: &str, columns: &[(&str, ColumnKind)], unique: &[&str]) -> Table {
    let column = |(name, kind): &(&str, ColumnKind)| Column { name: (*name).into(), kind: *kind };
    Table {
        name: name.into(),
        key: key.into(),
        columns: columns.iter().map(column).collect(),
        unique: unique.iter().map(|name| vec![(*name).to_owned()]).collect(),
    }
}

fn tables() -> Vec<Table> {
    use ColumnKind::{Integer, Text};
    let imports = [
        ("Id", Text),
        ("State", Text),
        ("Fence", Integer),
        ("TaskId", Text),
        ("StartedAt", Text),
        ("Taken", Integer),
        ("Refused", Integer),
    ];
    let lines = [
        ("Id", Text),
        ("ImportId", Text),
        ("No", Integer),
        ("State", Text),
        ("Json", Text),
        ("CustomerId", Text),
        ("Why", Text),
    ];
    vec![
        table("imports", "Id", &imports, &[]),
        table("import_lines", "Id", &lines, &[]),
        table("customers", "Id", &[("Id", Text), ("Name", Text), ("Mail", Text), ("ImportId", Text)], &["Mail"]),
        table("phases", "id", &[("id", Text), ("build", Text), ("name", Text), ("no", Integer), ("detail", Text)], &[]),
        table("artifacts", "id", &[("id", Text), ("build", Text)], &[]),
    ]
}

/// A pack's database, and a rig that runs its scripts.
struct Shop {
    rig: Rig,
    data: Arc<dyn TableData>,
}

/// How a task ended, and in how many chunks.
#[derive(Debug, PartialEq)]
struct Ended {
    result: Result<Value, Failure>,
    chunks: i64,
}

impl Shop {
    fn open() -> Self {
        let rig = Rig::new(2);
        let database = taskbell::store::pack::sqlite(&rig.path("shop.db")).unwrap();
        Self { data: Arc::new(PackTables::new("shop", tables(), database)), rig }
    }

    fn handler(&self, name: &str, text: &str) -> ScriptHandler {
        self.rig.handler(name, text, MEMORY, TIME).with_tables(self.data.clone())
    }

    /// Asks past any chunk.
    async fn ask(&self, method: &str, name: &str, argument: Value) -> Value {
        let tables = tables();
        let ask = plain::read(&tables, method, name, &argument, "").unwrap();
        if !ask.act.writes() {
            return match self.data.look(&ask).await.unwrap() {
                Found::Rows(rows) => json!(rows),
                Found::Count(count) => json!(count),
            };
        }
        let mut work = self.data.begin(TIME).await.unwrap();
        let found = work.ask(&ask).await.unwrap();
        let task = format!("by hand {method} {name} {argument}");
        let mark = ChunkMark { task: &task, chunk: 1, token: 1, answer: "{}" };
        assert!(work.commit(&mark).await.unwrap());
        json!(found.count())
    }

    /// Runs a task to its end; each run of a chunk meets the next fate, and all is well when there is none left.
    async fn run(&self, name: &str, text: &str, task: &str, params: Value, fates: &[Fate]) -> Ended {
        let handler = Arc::new(self.handler(name, text));
        let mut given = chunk();
        given.task.id = task.parse().unwrap();
        (given.task.params, given.checkpoint, given.chunk) = (params, None, 1);
        let mut fates: VecDeque<Fate> = fates.iter().copied().collect();
        loop {
            // Whoever runs it next has claimed it anew.
            given.fencing_token = FencingToken(given.fencing_token.0 + 1);
            let fate = fates.pop_front().unwrap_or(Well);
            let (handler, host, chunk) = (handler.clone(), Arc::new(Host::new()), given.clone());
            let seen = host.clone();
            let running =
                tokio::spawn(async move { handler.run(&ChunkContext::new(chunk, host as Arc<dyn ChunkHost>)).await });
            if fate == Dropped {
                // Within the chunk where it tells so, else wherever it is.
                let _ = tokio::time::timeout(Duration::from_millis(60), async {
                    while seen.reports().is_empty() {
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                })
                .await;
                running.abort();
                // Where it was over before, its answer is lost.
                let _ = running.await;
                continue;
            }
            let ended = running.await.unwrap();
            if fate == AnswerLost {
                continue;
            }
            match ended {
                Ok(Outcome::More { checkpoint, .. }) => {
                    given.checkpoint = checkpoint.or(given.checkpoint);
                    given.chunk += 1;
                }
                Ok(Outcome::Done { result, .. }) => {
                    return Ended { result: Ok(result.unwrap_or(Value::Null)), chunks: given.chunk };
                }
                Ok(Outcome::Fail(failure)) => return Ended { result: Err(failure), chunks: given.chunk },
                Err(HandlerError::HandedBack) => {}
                Err(error) => return Ended { result: Err(error.into_failure().unwrap()), chunks: given.chunk },
            }
        }
    }

    /// An import of so many lines; every tenth has a mail address that the one before it has too.
    async fn waiting(&self, id: &str, lines: i64) {
        self.ask("insert", "imports", json!({"Id": id, "State": "New"})).await;
        for no in 1..=lines {
            let mail = if no % 10 == 0 { no - 1 } else { no };
            let customer = json!({"Name": format!("Name {no}"), "Mail": format!("{id}.{mail}@example.com")});
            let line =
                json!({"Id": format!("{id}-{no}"), "ImportId": id, "No": no, "State": "Pending", "Json": customer});
            self.ask("insert", "import_lines", line).await;
        }
    }

    /// Everything that the import and its rollback have left, but for tokens and instants.
    async fn left(&self) -> Value {
        let find = |name: &'static str, select: Value| self.ask("find", name, json!({"select": select}));
        json!({
            "imports": find("imports", json!(["Id", "State", "Taken", "Refused"])).await,
            "lines": find("import_lines", json!(["Id", "State", "CustomerId", "Why"])).await,
            "customers": find("customers", json!(["Id", "Name", "Mail"])).await,
        })
    }
}

const TASK: &str = "01890a5d-ac96-774b-bcce-b302099a8057";
const OTHER: &str = "01890a5d-ac96-774b-bcce-b302099a8058";
const THIRD: &str = "01890a5d-ac96-774b-bcce-b302099a8059";

/// Fates of many runs: each kind in each position of a chunk's life, again and again.
const ROUGH: [Fate; 12] =
    [Dropped, AnswerLost, Well, AnswerLost, AnswerLost, Well, Dropped, Dropped, Well, AnswerLost, Dropped, Well];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_with_cursor_and_fence_and_its_rollback_end_the_same_whatever_is_lost_on_the_way() {
    let mut ends = Vec::new();
    for fates in [&[][..], &ROUGH] {
        let shop = Shop::open();
        shop.waiting("i1", 65).await;
        let imported = shop.run("import.js", IMPORT, TASK, json!({"ImportId": "i1"}), fates).await;
        assert_eq!(imported.result, Ok(json!({"ImportId": "i1", "Taken": 59, "Refused": 6})), "{fates:?}");
        assert_eq!(imported.chunks, 4);
        assert_eq!(shop.ask("count", "customers", json!({})).await, 59);
        let again = shop.run("import.js", IMPORT, OTHER, json!({"ImportId": "i1"}), &[]).await;
        assert_eq!((again.result, again.chunks), (Ok(json!({"ImportId": "i1"})), 1), "a second import of it");
        let between = shop.left().await;
        shop.ask("update", "customers", json!({"where": {"Id": "c-i1-33"}, "set": {"Name": "Renamed"}})).await;
        let back = shop.run("rollback.js", ROLLBACK, THIRD, json!({"ImportId": "i1"}), fates).await;
        assert_eq!(back.result, Ok(json!({"TakenBack": 58, "Kept": 1})), "{fates:?}");
        let after = shop.left().await;
        assert_eq!(after["customers"], json!([{"Id": "c-i1-33", "Name": "Renamed", "Mail": "i1.33@example.com"}]));
        ends.push((imported.chunks, back.chunks, between, after));
    }
    assert_eq!(ends[0], ends[1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_build_of_eight_phases_ends_published_or_cleaned_up_whatever_is_lost_on_the_way() {
    for fates in [&[][..], &ROUGH] {
        let shop = Shop::open();
        let built = shop.run("build.js", BUILD, TASK, json!({"build": "b1"}), fates).await;
        assert_eq!(built.result, Ok(json!({"phases": 8, "removed": 28})), "{fates:?}");
        let names = shop.ask("find", "phases", json!({"orderBy": "no", "select": ["name"]})).await;
        let names: Vec<_> = names.as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["plan", "fetch", "unpack", "compile", "bundle", "check", "publish", "clean"]);
        let broken = shop.run("build.js", BUILD, OTHER, json!({"build": "b2", "breaks": "bundle"}), fates).await;
        assert_eq!(broken.result.unwrap_err().code, "build-failed");
        assert_eq!(shop.ask("count", "artifacts", json!({})).await, 0, "nothing is left of either");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_fence_sees_that_a_newer_runner_has_begun_and_nothing_is_written() {
    let shop = Shop::open();
    shop.waiting("i1", 5).await;
    shop.ask("update", "imports", json!({"where": {"Id": "i1"}, "set": {"Fence": 1000, "TaskId": TASK}})).await;
    let late = shop.run("import.js", IMPORT, TASK, json!({"ImportId": "i1"}), &[]).await.result.unwrap_err();
    assert_eq!((late.message.as_str(), late.code.as_str()), ("A newer runner has taken over.", "code-0"));
    assert_eq!(shop.ask("count", "customers", json!({})).await, 0);
    let none = shop.run("import.js", IMPORT, OTHER, json!({"ImportId": "i9"}), &[]).await.result.unwrap_err();
    assert_eq!(none.message, "There is no import i9.");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_chunk_changed_is_undone_unless_it_ends_well() {
    let shop = Shop::open();
    let add =
        |id: &str, end: &str| format!("V8.FormEngine.AddFormData('artifacts', {{ Id: '{id}', build: 'b' }});\n{end}");
    for (n, end) in [
        "return { Code: 0, Msg: 'no', Data: { BackgroundTask: { HasMore: true } } };",
        "throw new Error('broken');",
        "return 7;",
        "return { Code: 1, Data: { BackgroundTask: { HasMore: 'perhaps' } } };",
        "return { fail: { code: 'x', message: 'y' } };",
    ]
    .into_iter()
    .enumerate()
    {
        let text = add(&format!("a{n}"), end);
        assert!(shop.run("undone.js", &text, TASK, json!({}), &[]).await.result.is_err(), "{end}");
        assert_eq!(shop.ask("count", "artifacts", json!({})).await, 0, "{end}");
    }
    let well = shop.run("well.js", &add("a", "return { Code: 1 };"), TASK, json!({}), &[AnswerLost, AnswerLost]).await;
    assert_eq!((well.result, shop.ask("count", "artifacts", json!({})).await), (Ok(Value::Null), json!(1)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_calls_of_the_form_engine_answer_with_their_codes() {
    let shop = Shop::open();
    let text = r#"
        var f = V8.FormEngine, told = {};
        var short = function (r) { return [r.Code, r.Data, r.DataCount]; };
        told.missing = short(f.GetFormData('phases', { Id: 'none' }));
        told.none = short(f.GetTableDataCount('phases', {}));
        told.added = short(f.AddFormData('phases', { Id: 'p1', name: 'one', no: '1' }));
        told.made = f.AddFormData('phases', { name: 'two', no: 2 }).Data.id.length;
        told.twice = f.AddFormData('phases', { Id: 'p1', name: 'again' }).Code;
        told.changed = short(f.UptFormData('phases', { Id: 'p1', detail: 'x', _InvokeType: 'Client' }));
        told.absent = short(f.UptFormData('phases', { Id: 'p9', detail: 'x' }));
        told.instead = f.UptFormData('phases', { Id: 'p3', name: 'three', no: 3, _NoLineForAdd: true }).Code;
        told.where = short(f.UptFormDataByWhere('phases', { _Where: [['no', '>=', 2]], detail: 'later' }));
        told.fence = short(f.UptFormDataByWhere('phases', { _Where: [['no', '=', 99]], detail: 'never' }));
        told.page = f.GetTableData({ FormEngineKey: 'PHASES', _OrderBy: 'no', _OrderByType: 'DESC', _PageIndex: 1, _PageSize: 2,
          _SelectFields: ['name', 'no'] });
        told.ids = f.GetTableData('phases', { Ids: ['p1', 'p3', 'p7'], _SelectFields: ['id'] }).Data;
        told.like = f.GetTableDataCount('phases', { _Where: [['name', 'Like', 'O']] }).Data;
        told.deleted = [f.DelFormData('phases', { Ids: ['p1', 'p3'] }).DataCount, f.DelFormData('phases', { Id: 'p1' }).DataCount];
        told.refused = [f.DelFormData('phases', {}).Code, f.GetFormData('nothing', { Id: 1 }).Code,
          f.GetTableData('phases', { _Where: [['nope', '=', 1]] }).Msg, f.AddFormData('phases', { nope: 1 }).Code];
        return { Code: 1, Data: told };"#;
    let told = shop.run("calls.js", text, TASK, json!({}), &[]).await.result.unwrap();
    let expected = json!({
        "missing": [2, null, 0], "none": [1, 0, 0],
        "added": [1, {"id": "p1", "build": null, "name": "one", "no": 1, "detail": null}, null],
        "made": 36, "twice": 0, "changed": [1, null, 1], "absent": [2, null, 0], "instead": 1, "where": [1, null, 2],
        "fence": [1, null, 0],
        "page": {"Code": 1, "Data": [{"name": "three", "no": 3}, {"name": "two", "no": 2}], "DataCount": 3, "Msg": ""},
        "ids": [{"id": "p1"}, {"id": "p3"}], "like": 2, "deleted": [2, 0],
        "refused": [0, 0, "the manifest names no column `nope` of the table phases", 0]
    });
    for (name, expected) in expected.as_object().unwrap() {
        assert_eq!(&told[name], expected, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_asks_the_same_tables_and_what_is_refused_is_thrown() {
    let shop = Shop::open();
    let text = r#"export default async function (task, cx) {
        const { phases } = cx.tables, told = {};
        told.tables = Object.keys(cx.tables);
        told.row = await phases.insert({ id: "p1", name: "one", no: 1 });
        told.twice = await phases.insert({ id: "p1" }).catch((error) => [error.code, error.permanent]);
        told.got = [(await phases.get("p1")).name, await phases.get("p2")];
        told.counts = [await phases.update({ where: { no: 1 }, set: { detail: "x" } }), await phases.count(), await phases.delete({ where: { no: 5 } })];
        told.found = await phases.find({ where: { detail: { startsWith: "X" } }, select: ["id"] });
        told.wrong = await phases.find({ where: { nope: 1 } }).catch((error) => error.message);
        return { hasMore: false, result: told };
    }"#;
    let told = shop.run("module.js", text, TASK, json!({}), &[]).await.result.unwrap();
    let row = json!({"id": "p1", "build": null, "name": "one", "no": 1, "detail": null});
    assert_eq!(
        told,
        json!({
            "tables": ["imports", "import_lines", "customers", "phases", "artifacts"], "row": row,
            "twice": ["refused", false], "got": ["one", null], "counts": [1, 1, 0], "found": [{"id": "p1"}],
            "wrong": "the manifest names no column `nope` of the table phases"
        })
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_module_that_answers_before_its_tables_have_is_told_so_and_changes_nothing() {
    let shop = Shop::open();
    for call in
        ["phases.insert({ id: 'p1' })", "phases.count()", "phases.update({ where: { no: 1 }, set: { detail: 'x' } })"]
    {
        let text = format!(
            "export default async function (task, cx) {{
                const {{ phases }} = cx.tables;
                await phases.insert({{ id: 'p0' }});
                {call};
                return {{ hasMore: false }};
            }}"
        );
        let failure = shop.run("hasty.js", &text, TASK, json!({}), &[]).await.result.unwrap_err();
        assert_eq!(failure.code, "bad-outcome", "{call}: {failure:?}");
        assert!(failure.message.contains("cx.tables"), "{call}: {failure:?}");
        assert_eq!(shop.ask("count", "phases", json!({})).await, 0, "{call}");
    }
}
