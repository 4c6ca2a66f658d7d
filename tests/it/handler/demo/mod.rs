//! The demo's handlers on a real store. Each task is killed and repeated on its way ([`Company::run_to_the_end`]), so every
//! count below is also a proof that no row was lost and none was written twice.

mod company;

use company::Company;
use serde_json::{Value, json};
use taskbell::config::Settings;
use taskbell::core::action::{Action, HandlerRef};
use taskbell::core::chunk::Outcome;
use taskbell::core::lifecycle::Ended;
use taskbell::core::task::{ErrorKind, Rows, State};
use taskbell::demo;

const CUSTOMERS: &str =
    "SELECT COUNT(*), COUNT(DISTINCT number), MIN(times_written), MAX(times_written) FROM customers";

/// Proves: G3.
#[tokio::test]
async fn the_import_writes_each_of_the_20_000_shipped_rows_once_whatever_is_killed() {
    let company = Company::open().await;
    let id = company.submit("import-customers", json!({"pause": 0})).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.progress.current, task.progress.total), (20_000, Some(20_000)));
    assert_eq!(task.rows, Rows { ok: 20_000, ..Rows::default() });
    assert_eq!(company.numbers(CUSTOMERS).await, [20_000, 20_000, 1, 1]);
    let result = company.result(id).await;
    assert_eq!(result, json!({"imported": 20_000, "updated": 0, "skipped": 0, "rejected": 0}));
    let chinese = "SELECT COUNT(*) FROM customers WHERE name LIKE '%有限公司' AND email LIKE '%@mail.example'";
    assert!(company.numbers(chinese).await[0] > 50, "names are read as they are written");
}

#[tokio::test]
async fn a_second_import_updates_the_rows_of_the_first() {
    let company = Company::open().await;
    for (text, result) in [
        ("number,name,email\n1,A,a@x.example\n2,B,b@x.example\n", json!({"imported": 2, "updated": 0})),
        ("number,name,email\n2,B2,b@x.example\n3,C,c@x.example\n", json!({"imported": 1, "updated": 1})),
    ] {
        company.upload("file", text);
        let id = company.submit("import-customers", json!({"file": "file", "batch": 1, "pause": 0})).await;
        company.run_to_the_end(id).await;
        let said = company.result(id).await;
        assert_eq!((&said["imported"], &said["updated"]), (&result["imported"], &result["updated"]));
    }
    assert_eq!(company.numbers(CUSTOMERS).await, [3, 3, 1, 2]);
    let renamed = "SELECT COUNT(*) FROM customers WHERE name = 'B2' AND times_written = 2";
    assert_eq!(company.numbers(renamed).await, [1]);
}

#[tokio::test]
async fn bad_rows_are_told_with_line_and_reason_and_handed_out_as_a_file() {
    let company = Company::open().await;
    let text = b"Name,Number,Email\n\"Lin, \"\"Max\"\"\",1,lin@x.example\nB,2,no address\n\nC,1,c@x.example\nD,4\n\xff,5,e@x.example\n";
    company.upload("file", text.to_vec());
    for batch in [1, 100] {
        let id = company.submit("import-customers", json!({"file": "file", "batch": batch, "pause": 0})).await;
        let task = company.run_to_the_end(id).await;
        assert_eq!((task.progress.current, task.progress.total), (5, Some(5)));
        assert_eq!(task.rows, Rows { ok: 1, skipped: 1, failed: 3 }, "of two rows with one number the first counts");
        assert_eq!(company.result(id).await["rejectedFile"], "artifact-1");
        let (name, rejected) = company.artifacts().pop().unwrap();
        assert_eq!(name, "rejected.csv");
        assert_eq!(
            rejected,
            "line,reason,row\n3,email `no address` is no address,\"B,2,no address\"\n\
             6,\"the row has 2 fields, the header has 3\",\"D,4\"\n7,the row is not in UTF-8,\"\u{fffd},5,e@x.example\"\n"
        );
    }
    assert_eq!(company.numbers("SELECT COUNT(*) FROM customers WHERE name = 'Lin, \"Max\"'").await, [1]);
}

#[tokio::test]
async fn a_file_without_a_needed_column_fails_for_good_and_says_which() {
    let company = Company::open().await;
    company.upload("file", "number,name\n1,A\n");
    let id = company.submit("import-customers", json!({"file": "file"})).await;
    let error = company.run_to_the_end(id).await.error.unwrap();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Permanent, "missing-column"));
    assert_eq!(error.message, "File has no column `email`. Choose another file or add the column.");
}

#[tokio::test]
async fn an_empty_file_succeeds_with_a_total_of_nothing() {
    let company = Company::open().await;
    company.upload("file", "");
    let id = company.submit("import-customers", json!({"file": "file"})).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.state, task.progress.current, task.progress.total), (State::Succeeded, 0, Some(0)));
}

#[tokio::test]
async fn totals_of_50_000_orders_come_from_their_lines() {
    let company = Company::open().await;
    let id = company.submit("recalculate-totals", json!({"batch": 2000, "pause": 0, "taxPercent": 10})).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.progress.current, task.progress.total), (50_000, Some(50_000)));
    let from_lines = "SELECT SUM(quantity * price_cents) FROM order_lines";
    let from_orders = "SELECT SUM(net_cents) FROM orders";
    assert_eq!(company.numbers(from_lines).await, company.numbers(from_orders).await);
    let wrong = "SELECT COUNT(*) FROM orders WHERE total_cents <> net_cents + tax_cents OR net_cents = 0 \
        OR ABS(tax_cents * 10 - net_cents) > 5";
    assert_eq!(company.numbers(wrong).await, [0]);
    assert_eq!(company.result(id).await["totalCents"], company.numbers("SELECT SUM(total_cents) FROM orders").await[0]);
}

#[tokio::test]
async fn the_sync_ends_without_ever_naming_a_total() {
    let company = Company::open().await;
    let id = company.submit("sync-catalogue", json!({"pageSize": 500, "pause": 0})).await;
    let first = company.run_chunk().await.unwrap();
    let Outcome::More { told, .. } = &first.outcome else { panic!("there are more pages") };
    assert_eq!(told.report.total, Some(None));
    company.kill().await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.progress.current, task.progress.total), (6_400, None));
    let expected = json!({"products": 6_400, "pages": 13, "new": 2_400, "changed": 1_333, "unchanged": 2_667});
    assert_eq!(company.result(id).await, expected);
    let differ = "SELECT COUNT(*) FROM supplier_feed AS feed LEFT JOIN products AS ours ON ours.sku = feed.sku \
        WHERE ours.price_cents <> feed.price_cents OR ours.sku IS NULL";
    assert_eq!(company.numbers(differ).await, [0]);
}

#[tokio::test]
async fn the_reconciliation_stops_at_the_bad_payment_and_a_resume_puts_it_aside() {
    let company = Company::open().await;
    let id = company.submit("reconcile-payments", json!({"batch": 700, "pause": 0})).await;
    let task = company.run_to_the_end(id).await;
    let error = task.error.unwrap();
    assert_eq!((task.state, error.kind, task.progress.current), (State::Failed, ErrorKind::Permanent, 6_000));
    assert!(error.message.contains("Payment 6001 of") && error.message.contains("Resume to put it aside"));
    let paid = "SELECT (SELECT SUM(paid_cents) FROM orders), (SELECT SUM(amount_cents) FROM payments WHERE id <= 6000)";
    let sums = company.numbers(paid).await;
    assert_eq!(sums[0], sums[1], "what came before the bad payment is matched, once");

    company.resume(id).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.progress.current, task.rows), (12_000, Rows { ok: 11_999, skipped: 1, failed: 0 }));
    let result = company.result(id).await;
    assert_eq!((&result["matched"], &result["setAside"]), (&json!(11_999), &json!(1)));
    let all = "SELECT (SELECT SUM(paid_cents) FROM orders), (SELECT SUM(amount_cents) FROM payments WHERE id <> 6001), \
        (SELECT COUNT(*) FROM payments_set_aside WHERE payment_id = 6001)";
    let sums = company.numbers(all).await;
    assert_eq!((sums[0], sums[2]), (sums[1], 1));
}

#[tokio::test]
async fn a_crash_at_the_bad_payment_is_no_resume() {
    let company = Company::open().await;
    let id = company.submit("reconcile-payments", json!({"batch": 5000, "pause": 0})).await;
    let mut crashes = 0;
    loop {
        let answered = company.run_chunk().await.expect("the task has not ended");
        if matches!(answered.outcome, Outcome::Fail(_)) && crashes < 3 {
            crashes += 1;
            company.kill().await;
            continue;
        }
        company.commit(&answered).await;
        if company.task(id).await.state.is_final() {
            break;
        }
    }
    assert_eq!((crashes, company.task(id).await.state), (3, State::Failed));
    assert_eq!(company.numbers("SELECT COUNT(*) FROM payments_set_aside").await, [0]);
}

#[tokio::test]
async fn a_second_reconciliation_begins_anew() {
    let company = Company::open().await;
    for _ in 0..2 {
        let id = company.submit("reconcile-payments", json!({"batch": 5000, "pause": 0})).await;
        assert_eq!(company.run_to_the_end(id).await.state, State::Failed);
        company.resume(id).await;
        company.run_to_the_end(id).await;
        assert_eq!(company.result(id).await["matched"], 11_999);
    }
    let sums =
        "SELECT (SELECT SUM(paid_cents) FROM orders) - (SELECT SUM(amount_cents) FROM payments WHERE id <> 6001)";
    assert_eq!(company.numbers(sums).await, [0]);
}

#[tokio::test]
async fn the_index_is_swapped_whole() {
    let company = Company::open().await;
    for _ in 0..2 {
        let id = company.submit("rebuild-index", json!({"batch": 1500, "pause": 0})).await;
        let task = company.run_to_the_end(id).await;
        assert_eq!((task.progress.current, task.progress.total), (4_000, Some(4_000)));
        let index = "SELECT COUNT(DISTINCT built_by), COUNT(DISTINCT sku), COUNT(*) FROM search_index";
        assert_eq!(company.numbers(index).await, [1, 4_000, 12_000]);
        assert_eq!(company.result(id).await["entries"], 12_000);
    }
}

#[tokio::test]
async fn the_script_checks_the_contacts_that_it_makes_up_and_goes_on_where_it_was_killed() {
    let company = Company::open().await;
    let id = company.submit("clean-contacts", json!({"pause": 0})).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!((task.progress.current, task.progress.total), (5_000, Some(5_000)), "{:?}", task.error);
    // Every 61st address is none and every 83rd account is wrong; of the 555 that need tidying, 9 and 6 are among those.
    assert_eq!(task.rows, Rows { ok: 5_000 - 81 - 60, skipped: 0, failed: 81 + 60 });
    let result = company.result(id).await;
    assert_eq!((&result["checked"], &result["tidied"], &result["faulty"]), (&json!(5_000), &json!(540), &json!(141)));
}

#[tokio::test]
async fn the_script_reads_the_shipped_file_and_refuses_one_without_addresses() {
    let company = Company::open().await;
    company.upload("file", taskbell::handler::demo::SHIPPED_CUSTOMERS);
    let id = company.submit("clean-contacts", json!({"file": "file", "batch": 5000, "pause": 0})).await;
    let task = company.run_to_the_end(id).await;
    assert_eq!(task.rows, Rows { ok: 20_000, ..Rows::default() }, "{:?}", task.error);
    company.upload("file", "mail\nx@y.example\n");
    let id = company.submit("clean-contacts", json!({"file": "file"})).await;
    let error = company.run_to_the_end(id).await.error.unwrap();
    assert_eq!((error.kind, error.code.as_str()), (ErrorKind::Permanent, "missing-column"));
    assert!(error.message.contains("File has no column `email`"), "{}", error.message);
}

/// Proves: G3.
#[tokio::test]
async fn a_chunk_that_is_committed_twice_counts_once() {
    let company = Company::open().await;
    company.submit("import-customers", json!({"pause": 0})).await;
    let look = company.run_chunk().await.unwrap();
    company.commit(&look).await;
    let batch = company.run_chunk().await.unwrap();
    assert!(matches!(company.commit(&batch).await.ended, Ended::Applied { .. }));
    assert_eq!(company.commit(&batch).await.ended, Ended::Repeated);
    assert_eq!(company.numbers(CUSTOMERS).await, [200, 200, 1, 1]);
}

/// Proves: G3.
#[tokio::test]
async fn what_a_failed_chunk_wrote_never_happened() {
    let company = Company::open().await;
    let id = company.submit("import-customers", json!({"pause": 0})).await;
    let look = company.run_chunk().await.unwrap();
    company.commit(&look).await;
    let batch = company.run_chunk().await.unwrap().but_failed();
    company.commit(&batch).await;
    assert_eq!(company.task(id).await.error.unwrap().code, "late");
    assert_eq!(company.numbers("SELECT COUNT(*) FROM customers").await, [0]);
}

#[tokio::test]
async fn the_form_shows_the_values_that_count_when_none_is_given() {
    let company = Company::open().await;
    let loaded = Settings::load(None, std::iter::empty(), true).unwrap();
    for action in loaded.settings.declared() {
        if !matches!(action.handler, HandlerRef::Native(_)) {
            continue;
        }
        let fields = action.params["properties"].as_object().unwrap();
        let defaults: Value = fields
            .iter()
            .filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())))
            .collect::<serde_json::Map<_, _>>()
            .into();
        let mut paces = Vec::new();
        for params in [json!({}), defaults] {
            let id = company.submit(&action.key, params).await;
            for _ in 0..2 {
                let answered = company.run_chunk().await.unwrap();
                company.commit(&answered).await;
                company.wait(5_000);
            }
            let Outcome::More { delay_ms, told, .. } = company.run_chunk().await.unwrap().outcome else {
                panic!("{}: three steps are not all", action.key)
            };
            paces.push((delay_ms, told.report.current));
            company.cancel(id).await;
        }
        assert!(paces[0].0 > 0 && paces[0] == paces[1], "{}: {paces:?}", action.key);
    }
}

#[tokio::test]
async fn a_filled_company_is_left_as_it_is() {
    let company = Company::open().await;
    let id = company.submit("recalculate-totals", json!({"batch": 5000, "pause": 0})).await;
    company.run_to_the_end(id).await;
    demo::prepare(company.store.as_ref()).await.unwrap();
    let counts = "SELECT COUNT(*), COUNT(CASE WHEN net_cents > 0 THEN 1 END), (SELECT COUNT(*) FROM order_lines), \
        (SELECT COUNT(*) FROM products), (SELECT COUNT(*) FROM payments) FROM orders";
    assert_eq!(company.numbers(counts).await, [50_000, 50_000, 125_000, 4_000, 12_000]);
    assert!(company.store.capabilities().effects);
}

#[test]
fn the_shipped_files_are_laid_out_where_the_actions_look_and_scripts_of_the_user_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let mut actions = Settings::load(None, std::iter::empty(), true).unwrap().settings.declared();
    let script = folder.path().join("data/demo/clean-contacts.js");
    for action in &mut actions {
        if let HandlerRef::Script(path) = &mut action.handler {
            assert!(path.ends_with("data/demo/clean-contacts.js"));
            path.clone_from(&script);
        }
    }
    let own = folder.path().join("own.js");
    std::fs::write(&own, "mine").unwrap();
    let template = actions.iter().find(|action| matches!(action.handler, HandlerRef::Script(_))).unwrap();
    actions.push(Action { handler: HandlerRef::Script(own.clone()), ..template.clone() });
    for _ in 0..2 {
        demo::unpack(&actions).unwrap();
        assert_eq!(std::fs::read_to_string(&own).unwrap(), "mine");
        assert!(std::fs::read_to_string(&script).unwrap().contains("export default async function"));
        std::fs::write(&script, "changed").unwrap();
    }
    let csv = std::fs::read_to_string(folder.path().join("data/demo/customers.csv")).unwrap();
    assert_eq!(csv.lines().count(), 20_001);
    assert_eq!(std::fs::read_dir(folder.path().join("data/demo")).unwrap().count(), 2, "nothing else is left behind");
}
