//! Scripts whose file is the body of a function: `V8` and what stands beside it.

use super::{Host, MEMORY, Rig, chunk, failure, result, run};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::budget::Budgets;
use taskbell::core::chunk::Outcome;
use taskbell::core::task::ErrorKind;
use taskbell::handler::script::{Library, ScriptHandler};

const TIME: Duration = Duration::from_secs(60);

/// A handler for a script, with others beside it that it may run.
fn beside(rig: &Rig, text: &str, others: &[(&str, &str)], budgets: Budgets) -> ScriptHandler {
    let files = others.iter().map(|(key, text)| {
        let path = rig.path(&format!("{key}.js"));
        std::fs::write(&path, text).unwrap();
        ((*key).to_owned(), path)
    });
    let library = Arc::new(Library::open(files).unwrap());
    rig.bounded("main.js", text, budgets, TIME).with_library(library)
}

async fn answer(rig: &Rig, text: &str, others: &[(&str, &str)]) -> Value {
    let handler = beside(rig, text, others, super::ROOMY);
    result(run(&handler, &Arc::new(Host::new()), chunk()).await)
}

#[tokio::test]
async fn a_function_body_finds_its_task_where_such_scripts_look_for_it() {
    let rig = Rig::new(1);
    let text = "var p = V8.Param;
        return { Code: 1, Data: { id: p._BackgroundTaskId, key: p._BackgroundTaskIdempotencyKey, attempt: p._BackgroundTaskAttempt,
            token: p._BackgroundTaskFencingToken, title: p._BackgroundTaskTitle, checkpoint: p._BackgroundTaskCheckpoint,
            envelope: p._BackgroundTask, trusted: p._TrustedServerInvocation, file: p.file, list: p.nested.list,
            tenant: [V8.OsClient, p.OsClient], user: V8.CurrentUser, limits: V8.Limits.MemoryBytes } };";
    let handler = rig.handler("main.js", text, MEMORY, TIME).with_user_level(9999);
    let told = result(run(&handler, &Arc::new(Host::new()), chunk()).await);
    let id = "01890a5d-ac96-774b-bcce-b302099a8057";
    assert_eq!(
        told,
        json!({
            "id": id, "key": id, "attempt": 2, "token": 3, "title": "Import customers", "checkpoint": {"row": 1200},
            "envelope": {
                "Id": id, "IdempotencyKey": id, "FencingToken": 3, "BusinessTable": "customer-import", "BusinessId": "42",
                "BusinessStatusField": null, "BusinessTaskIdField": null, "BusinessProgressField": null,
                "BusinessEtaField": null, "Progress": 24, "Current": 1200, "Total": 5000
            },
            "trusted": true, "file": "f1", "list": [1, 2], "tenant": ["default", "default"],
            "user": {"Id": "alice", "Account": "alice", "Name": "alice", "Level": 9999}, "limits": MEMORY
        })
    );
}

#[tokio::test]
async fn what_the_server_says_of_a_task_cannot_be_submitted_as_a_param() {
    let rig = Rig::new(1);
    let mut given = chunk();
    given.checkpoint = None;
    given.task.params = json!({
        "_BackgroundTaskCheckpoint": {"row": 9}, "_BackgroundTaskFencingToken": 99, "_TrustedServerInvocation": false,
        "_CurrentUser": {"Level": 9999}, "OsClient": "other", "Plain": 1
    });
    let text = "var p = V8.Param;
        return { Code: 1, Data: [p._BackgroundTaskCheckpoint === undefined, p._BackgroundTaskFencingToken, p.OsClient,
            p._TrustedServerInvocation, p._CurrentUser === undefined, V8.CurrentUser.Level, p.Plain] };";
    let told = rig.run_with(text, &Arc::new(Host::new()), given).await;
    assert_eq!(result(told), json!([true, 3, "default", true, true, 0, 1]));
}

#[tokio::test]
async fn a_host_function_that_is_not_there_is_undefined() {
    let rig = Rig::new(1);
    let text = "var probes = [typeof V8.FormEngine, typeof V8.Http, typeof V8.Db, typeof V8.Cache, typeof V8.Method.Upload,
            typeof V8.Method.QueueChildTask, typeof V8.ApiEngine.RunAsync, typeof cx, typeof task, typeof require];
        var there = [typeof V8.Method.NewGuid, typeof V8.Method.UpdateBackgroundTask, typeof V8.ApiEngine.Run, typeof DateNow,
            typeof console.log];
        return { Code: 1, Data: { absent: probes, there: there } };";
    let told = answer(&rig, text, &[]).await;
    assert_eq!(told, json!({"absent": vec!["undefined"; 10], "there": vec!["function"; 5]}));
    let module = "export default () => ({ hasMore: false, result: [typeof V8, typeof DateNow] })";
    assert_eq!(answer(&rig, module, &[]).await, json!(["undefined", "undefined"]));
}

#[tokio::test]
async fn code_of_the_older_kind_runs_as_it_is() {
    let rig = Rig::new(1);
    let text = "total = 010;
        for (var i = 0; i < 3; i++) { total += i }
        with ({ extra: 1 }) { total += extra }
        V8.Param.nested.list.push(3);
        V8.Note = 'changed';
        var later = await Promise.resolve(total);
        return { Code: 1, Data: [later, V8.Param.nested.list, V8.Note, /^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d$/.test(DateNow()),
            DateNow('yyyyMMdd').length, DateNow('HH:mm').length] };";
    assert_eq!(answer(&rig, text, &[]).await, json!([12, [1, 2, 3], "changed", true, 8, 5]));
    let ids = "var g = V8.Method.NewGuid(), u = V8.Method.NewUlid();
        return { Code: 1, Data: [g.length, u.length, g !== V8.Method.NewGuid(), u !== V8.Method.NewUlid()] };";
    assert_eq!(answer(&rig, ids, &[]).await, json!([36, 26, true, true]));
}

#[tokio::test]
async fn progress_and_lines_are_reported_between_commits() {
    let (rig, host) = (Rig::new(1), Arc::new(Host::new()));
    let text = "V8.Method.UpdateBackgroundTask({ Current: '40', Total: 200, Msg: 'forty', Log: ['a', 'b'] });
        V8.Method.UpdateBackgroundTask({ Current: 60, Message: 'sixty', AppendLog: 'c' });
        var no = V8.Method.UpdateBackgroundTask();
        console.log('d', { n: 1 });
        return { Code: 1, Data: { BackgroundTask: { HasMore: true, Checkpoint: { n: 1 }, Current: 60, NextDelaySeconds: 2 } } };";
    let ended = rig.run_with(text, &host, chunk()).await.unwrap();
    assert!(
        matches!(&ended, Outcome::More { checkpoint: Some(c), delay_ms: 2000, .. } if *c == json!({"n": 1})),
        "{ended:?}"
    );
    assert_eq!(host.counted(), (Some(60), Some(200)));
    assert_eq!(host.texts(), ["a", "b", "c", "d {\"n\":1}"]);
}

#[tokio::test]
async fn a_nested_script_gets_its_params_alone_and_answers_whatever_becomes_of_it() {
    let rig = Rig::new(1);
    let others = [
        (
            "add",
            "return { Code: 1, Data: V8.Param.a + V8.Param.b, Msg: [typeof V8.Param._BackgroundTaskCheckpoint, V8.OsClient] };",
        ),
        ("fails", "return { Code: 0, Msg: 'no' };"),
        ("throws", "throw new Error('broken');"),
        ("module", "export default (task) => ({ hasMore: false, result: task.params });"),
        ("broken", "return {"),
    ];
    let text = "var run = V8.ApiEngine.Run;
        return { Code: 1, Data: [run('add', { a: 1, b: 2 }), run({ ApiEngineKey: 'add', a: 3, b: 4 }).Data, run('fails').Msg,
            run('throws'), run('module', { x: 1 }).result, run('none').Code, run('broken').Code] };";
    let told = answer(&rig, text, &others).await;
    assert_eq!(told[0], json!({"Code": 1, "Data": 3, "Msg": ["undefined", "default"]}));
    assert_eq!((&told[1], &told[2]), (&json!(7), &json!("no")));
    assert_eq!(told[3], json!({"Code": 0, "Data": null, "Msg": "broken"}));
    assert_eq!((&told[4], &told[5], &told[6]), (&json!({"x": 1}), &json!(0), &json!(0)));
}

#[tokio::test]
async fn a_limit_that_a_nested_script_has_hit_is_told_and_can_be_passed_on() {
    let rig = Rig::new(2);
    let budgets = Budgets { nesting: 3, ..super::ROOMY };
    let itself = [("self", "return V8.ApiEngine.Run('self', {});")];
    let text = "var r = V8.ApiEngine.Run('self', {}); return { Code: 1, Data: r };";
    let handler = beside(&rig, text, &itself, budgets);
    let told = result(run(&handler, &Arc::new(Host::new()), chunk()).await);
    assert_eq!((&told["Code"], &told["DataAppend"]["V8Limit"]["Code"]), (&json!(0), &json!("nesting")), "{told}");
    assert_eq!(told["DataAppend"]["V8Limit"]["Limit"], 3);
    assert!(told["DataAppend"]["V8Limit"]["Path"].as_str().unwrap().contains("self.js"), "{told}");
    let passed_on = beside(&rig, "return V8.ApiEngine.Run('self', {});", &itself, budgets);
    let failed = match run(&passed_on, &Arc::new(Host::new()), chunk()).await {
        Ok(Outcome::Fail(failure)) => failure,
        other => panic!("{other:?}"),
    };
    assert_eq!((failed.kind, failed.code.as_str()), (ErrorKind::Budget, "nesting"));
}

#[tokio::test]
async fn an_answer_that_is_no_outcome_a_throw_and_a_text_that_is_no_script_fail_as_in_every_shape() {
    let rig = Rig::new(1);
    for (text, code) in [
        ("V8.Param.x = 1;", "bad-outcome"),
        (" \n", "script-no-function"),
        ("if (V8.Param.none) return 1;", "bad-outcome"),
        ("return 5;", "bad-outcome"),
        ("return { code: 1 };", "bad-outcome"),
        ("throw Object.assign(new Error('closed'), { code: 'period-closed', permanent: true });", "period-closed"),
        ("return {", "script-syntax"),
        ("return V8.Nothing.Here();", "script-error"),
        ("await new Promise(function () {});", "bad-outcome"),
    ] {
        assert_eq!(failure(rig.run(text).await).code, code, "{text}");
    }
}
