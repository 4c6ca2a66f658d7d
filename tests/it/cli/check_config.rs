//! `check-config` and usage faults.

use super::taskbell;

#[tokio::test]
async fn every_fault_is_printed_with_its_key_and_the_exit_status_tells() {
    let dir = tempfile::tempdir().unwrap();
    let file = "[server]\nlistne = \"x\"\n[[actions]]\nkey = \"a\"\nhandler = { script = \"gone.js\" }\nchunk_timeout = \"11m\"\n";
    std::fs::write(dir.path().join("taskbell.toml"), file).unwrap();
    let ran =
        taskbell(dir.path(), &["check-config", "--config", "taskbell.toml"], &[("TASKBELL__LOG__LEVEL", "loud")]).await;
    assert_eq!(ran.status, 1, "{}", ran.out);
    for line in [
        "server.listne: does not exist; did you mean `listen`?",
        "log.level: must be one of",
        "actions[0].chunk_timeout: must be",
    ] {
        assert!(ran.out.lines().any(|found| found.starts_with(line)), "no {line} in\n{}", ran.out);
    }
}

#[tokio::test]
async fn the_file_may_be_named_by_the_environment_and_a_script_that_is_missing_or_broken_is_a_fault() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("conf");
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("t.toml");
    std::fs::write(&file, "[[actions]]\nkey = \"a\"\nhandler = { script = \"a.js\" }\n").unwrap();
    let named = [("TASKBELL_CONFIG", file.to_str().unwrap())];
    let ran = taskbell(dir.path(), &["check-config"], &named).await;
    assert!(ran.status == 1 && ran.out.starts_with("actions[0].handler.script: "), "{}", ran.out);
    std::fs::write(folder.join("a.js"), "export default async function () {}").unwrap();
    let ran = taskbell(dir.path(), &["check-config"], &named).await;
    assert!(ran.status == 0 && ran.out.contains("valid"), "{}{}", ran.out, ran.err);
    std::fs::write(folder.join("a.js"), "export default async function () {\n  let = 1;\n}").unwrap();
    let ran = taskbell(dir.path(), &["check-config"], &named).await;
    let fault = "actions[0].handler.script: the script of the action `a` cannot run: a.js:2:";
    assert!(ran.status == 1 && ran.out.starts_with(fault), "{}{}", ran.out, ran.err);
}

#[tokio::test]
async fn an_empty_variable_names_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let ran = taskbell(dir.path(), &["check-config"], &[("TASKBELL_CONFIG", "")]).await;
    assert!(ran.status == 0 && ran.out.contains("the demo"), "{}{}", ran.out, ran.err);
    assert!(std::fs::read_dir(dir.path()).unwrap().next().is_none(), "nothing is written");
}

#[tokio::test]
async fn a_usage_fault_leaves_the_statuses_of_ended_tasks_alone() {
    let dir = tempfile::tempdir().unwrap();
    for args in [&["wacth"][..], &["watch"], &["watch", "no-id"], &["submit", "a", "--param", "x"]] {
        let ran = taskbell(dir.path(), args, &[]).await;
        assert!(ran.status == 3 && ran.out.is_empty() && !ran.err.is_empty(), "{args:?}: {} {}", ran.status, ran.err);
    }
    assert_eq!(taskbell(dir.path(), &["--help"], &[]).await.status, 0);
}

#[tokio::test]
async fn no_password_of_an_address_is_ever_printed_however_it_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let cut = ["7/SuperSec", "/SuperSec", "12#SuperSec", "Hidden@SuperSec#x", "7?SuperSec", "x?sslmode=SuperSec"];
    for password in ["p%40ss", "p@ss", "ü", "p#x", "p/x?y"].into_iter().chain(cut) {
        let [database, redis] =
            ["postgres", "redis"].map(|scheme| format!("{scheme}://bell:{password}@host.example/1"));
        let env = [("TASKBELL__DATABASE__URL", database.as_str()), ("TASKBELL__REDIS__URL", redis.as_str())];
        let ran = taskbell(dir.path(), &["check-config"], &env).await;
        // Either the address is refused under its key, or it is told with its password masked.
        let told_of = ["database.url: ", "postgres://bell:***@host.example"].iter().any(|told| ran.out.contains(told));
        assert!(told_of, "{}", ran.out);
        let told = format!("{}{}", ran.out, ran.err);
        assert!(
            ![password, "p@ss", "%C3%BC", "SuperSec"].iter().any(|hidden| told.contains(hidden)),
            "{password} in {told}"
        );
    }
}

#[tokio::test]
async fn a_parameter_that_does_not_exist_is_named_without_its_value() {
    let dir = tempfile::tempdir().unwrap();
    let url = "postgres://bell:secret@host.example/1?sslpasword=KeySecret";
    let ran = taskbell(dir.path(), &["check-config"], &[("TASKBELL__DATABASE__URL", url)]).await;
    assert!(ran.status == 1 && ran.out.contains("database.url: has the parameter `sslpasword`"), "{}", ran.out);
    assert!(!format!("{}{}", ran.out, ran.err).contains("KeySecret"), "{}{}", ran.out, ran.err);
}
