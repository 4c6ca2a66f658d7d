//! `conformance` against handlers that keep the promises, and against ones that break them one at a time.

use super::{Ran, taskbell};
use crate::support::played::{Played, Seen, Target};
use crate::support::server::Spec;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::Stdio;
use std::sync::Mutex;
use std::time::Duration;
use taskbell::core::signing::SigningKeys;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const LIMIT: Duration = Duration::from_secs(30);

/// The handler of docs/handlers.md, as it stands there.
struct Sample {
    port: u16,
    folder: TempDir,
    _process: Child,
}

impl Sample {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new("python3");
        command.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/handler.py")).arg("0").current_dir(folder.path());
        command.env("HANDLER_SECRET", SECRET).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut process = command.spawn().expect("python3 is there");
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let line = lines.next_line().await.unwrap().unwrap();
        let port = line.strip_prefix("listening on ").unwrap().parse().unwrap();
        Self { port, folder, _process: process }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/run", self.port)
    }
}

async fn conformance(url: &str, more: &[&str], env: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let env = [&[("TASKBELL_SECRET", SECRET)], env].concat();
    taskbell(folder.path(), &[&["conformance", "--url", url][..], more].concat(), &env).await
}

/// The promises that were not kept.
fn faults(ran: &Ran) -> Vec<&str> {
    ran.out.lines().filter_map(|line| line.strip_prefix("FAULT ")).map(|line| line.split(':').next().unwrap()).collect()
}

#[tokio::test]
async fn the_handler_of_the_docs_keeps_every_promise_and_no_proxy_of_the_environment_is_asked() {
    let sample = Sample::start().await;
    let nowhere = [
        ("HTTP_PROXY", "http://127.0.0.1:9"),
        ("http_proxy", "http://127.0.0.1:9"),
        ("ALL_PROXY", "http://127.0.0.1:9"),
    ];
    let ran = conformance(&sample.url(), &["--param", "count=450"], &nowhere).await;
    assert_eq!((ran.status, faults(&ran).len()), (0, 0), "{}{}", ran.out, ran.err);
    assert_eq!(ran.out.lines().last().unwrap(), "17 kept, 0 not");
}

#[tokio::test]
async fn the_handler_of_the_docs_writes_each_invoice_of_a_real_task_once() {
    let sample = Sample::start().await;
    let config = format!(
        "[outbound]\nallow = [\"127.0.0.1:{}\"]\n[[actions]]\nkey = \"invoices\"\n\
         handler = {{ http = \"{}\", secret = [{{ env = \"NEW\" }}, {{ env = \"OLD\" }}] }}\n",
        sample.port,
        sample.url()
    );
    let newer = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";
    let server = Spec::with_config(&config).env("OLD", SECRET).env("NEW", newer).start().await;
    let client = server.client("alice", "user").await;
    let task = client.submit(json!({"action": "invoices", "params": {"count": 1_050}})).await;
    let id = task["id"].as_str().unwrap();
    let ended = client.until(id, LIMIT, |task| task["state"] == "succeeded" || task["state"] == "failed").await;
    assert_eq!(
        (&ended["state"], &ended["result"], &ended["chunks"]),
        (&json!("succeeded"), &json!({"written": 1_050}), &json!(11))
    );
    assert_eq!((&ended["progress"]["percent"], &ended["progress"]["unit"]), (&json!(100), &json!("invoices")));
    let count = "import sqlite3; print(*sqlite3.connect('invoices.db').execute('SELECT count(*), max(number) FROM invoices').fetchone())";
    let told = Command::new("python3").args(["-c", count]).current_dir(sample.folder.path()).output().await.unwrap();
    assert_eq!(String::from_utf8(told.stdout).unwrap().trim(), "1050 1050");
}

/// A handler that keeps the promises, but for what a fault turns off.
#[derive(Default)]
struct Careful {
    answers: Mutex<HashMap<String, Value>>,
    tokens: Mutex<HashMap<String, i64>>,
}

impl Careful {
    fn answer(&self, fault: &str, seen: &Seen) -> Played {
        let refusal = |status: &str| Played::answer(status, "", "{}");
        let keys = SigningKeys::parse([SECRET]).unwrap();
        let at = seen.header("webhook-timestamp").parse().unwrap_or(0);
        let now = if fault == "no clock" { at } else { jiff::Timestamp::now().as_second() };
        let proven = keys.verify(&seen.header("webhook-id"), at, &seen.body, &seen.header("webhook-signature"), now);
        if fault != "believes all" && proven.is_err() {
            return refusal("401 Unauthorized");
        }
        let Ok(chunk) = serde_json::from_slice::<Value>(&seen.body) else {
            return refusal(if fault == "believes all" || fault == "breaks" { "500 Oh" } else { "400 Bad" });
        };
        if fault == "strict" && chunk["later"].is_object() {
            return refusal("400 Bad");
        }
        let (task, token) = (chunk["task"]["id"].to_string(), chunk["fencingToken"].as_i64().unwrap());
        let newest = *self.tokens.lock().unwrap().entry(task).and_modify(|t| *t = token.max(*t)).or_insert(token);
        if fault != "no fence" && token < newest {
            return refusal("409 Conflict");
        }
        let n = chunk["chunk"].as_i64().unwrap();
        let mut answers = self.answers.lock().unwrap();
        let fresh = match fault {
            "no end" => json!({"hasMore": true, "checkpoint": n, "current": n}),
            "falls" => json!({"hasMore": n < 3, "checkpoint": n, "current": 3 - n, "total": 3}),
            "text" => json!({"hasMore": n < 3, "checkpoint": n, "current": "three"}),
            "no outcome" => json!({"ok": true}),
            _ => json!({"hasMore": n < 3, "checkpoint": n, "current": n, "total": 3}),
        };
        let kept = answers.entry(seen.header("idempotency-key")).or_insert(fresh);
        if fault == "works twice" {
            kept["current"] = (kept["current"].as_i64().unwrap() + 1).into();
            kept["total"] = 1_000.into();
        }
        Played::json(kept)
    }
}

#[tokio::test]
async fn each_broken_promise_is_told_and_makes_the_exit_status_1() {
    for (fault, told) in [
        ("", ""),
        ("believes all", "a call without a signature is refused"),
        ("no clock", "a call that is more than five minutes old is refused"),
        ("breaks", "a body that is no chunk is refused, also when it is signed"),
        ("strict", "fields that are not known are ignored"),
        ("no end", "a task comes to its end"),
        ("falls", "a task comes to its end"),
        ("text", "a task comes to its end"),
        ("no outcome", "a task comes to its end"),
        ("works twice", "a repeated chunk is answered again with the same outcome"),
        ("no fence", "a call of an older claim changes nothing"),
    ] {
        let careful = Careful::default();
        let target = Target::start(move |_, seen| careful.answer(fault, seen)).await;
        let ran = conformance(&target.url("/run"), &["--chunks", "20"], &[]).await;
        let faults = faults(&ran);
        assert_eq!(ran.status, i32::from(!fault.is_empty()), "{fault}: {}{}", ran.out, ran.err);
        assert!(if told.is_empty() { faults.is_empty() } else { faults.contains(&told) }, "{fault}: {}", ran.out);
    }
    let target = Target::start(|_, _| Played::Silence).await;
    let ran = conformance(&target.url("/run"), &["--timeout", "50ms"], &[]).await;
    assert!(ran.status == 1 && ran.out.ends_with("1 kept, 16 not\n"), "{}", ran.out);
}

#[tokio::test]
async fn what_cannot_be_played_is_told_without_the_secret() {
    for args in [
        &["--url", "ftp://x"][..],
        &["--url", "http://127.0.0.1:1", "--param", "x"],
        &["--url", "http://127.0.0.1:1", "--secret", "whsec_short"],
    ] {
        let folder = tempfile::tempdir().unwrap();
        let ran = taskbell(folder.path(), &[&["conformance"][..], args].concat(), &[("TASKBELL_SECRET", SECRET)]).await;
        assert!(ran.status == 3 && ran.err.starts_with("taskbell: --"), "{args:?}: {} {}", ran.status, ran.err);
        assert!(!ran.err.contains(SECRET) && !ran.err.contains("whsec_short"), "{}", ran.err);
    }
}

/// Looks at a worker that a command starts.
async fn pull(command: &[&str], more: &[&str]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let args = ["conformance", "--pull", "--action", "write-letters", "--param", "count=50", "--lease", "300ms"];
    taskbell(folder.path(), &[&args[..], more, &["--"], command].concat(), &[]).await
}

fn shown(name: &str) -> String {
    format!("{}/examples/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[tokio::test]
async fn the_workers_of_the_docs_keep_every_promise() {
    let folder = tempfile::tempdir().unwrap();
    let compiler = concat!(env!("CARGO_MANIFEST_DIR"), "/target/node/node_modules/.bin/tsc");
    let mut compile = Command::new(compiler);
    compile.args(["--target", "es2022", "--module", "es2022", "--types", "", "--outDir"]).arg(folder.path());
    let compiled = compile.arg(shown("worker.ts")).status().await;
    assert!(compiled.unwrap_or_else(|e| panic!("{compiler}: {e}; `tests/npm` installs it")).success());
    let script = folder.path().join("worker.js");
    for command in [["python3", &shown("worker.py")], ["node", script.to_str().unwrap()], ["bash", &shown("worker.sh")]]
    {
        let ran = pull(&command, &[]).await;
        assert_eq!((ran.status, faults(&ran).len()), (0, 0), "{command:?}\n{}{}", ran.out, ran.err);
        assert_eq!(ran.out.lines().last().unwrap(), "12 kept, 0 not");
    }
}

/// The worker of the docs in Python with a part of it changed.
fn changed(folder: &TempDir, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(shown("worker.py")).unwrap();
    assert!(text.contains(from), "the worker has no {from:?}");
    let file = folder.path().join("worker.py");
    std::fs::write(&file, text.replace(from, to)).unwrap();
    file.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_worker_that_breaks_a_promise_is_told_which() {
    let folder = tempfile::tempdir().unwrap();
    for (from, to, fault) in [
        ("time.sleep(wait)", "time.sleep(0.01)", "it comes again after Retry-After, and not before"),
        ("(OSError, http.client.HTTPException, ValueError)", "ZeroDivisionError", "it works on"),
        ("\"write-letters\"], \"waitMs\"", "\"others\"], \"waitMs\"", "it asks for chunks of the action"),
        ("\"fencingToken\": chunk[\"fencingToken\"]", "\"fencingToken\": 1", "a task comes to its end"),
        ("\"checkpoint\": {\"next\": at}", "\"checkpoint\": {\"next\": start}", "a task comes to its end"),
        ("\"current\": at,", "\"current\": -at,", "a task comes to its end"),
        ("{\"outcome\": outcome}", "{\"outcome\": outcome, \"color\": 1}", "every request has its right form"),
        (
            "signal.signal(signal.SIGTERM, end)",
            "signal.signal(signal.SIGTERM, signal.SIG_IGN)",
            "it ends when it is asked to",
        ),
    ] {
        let file = changed(&folder, from, to);
        let ran = pull(&["python3", &file], &["--timeout", "3s", "--chunks", "10"]).await;
        assert!(ran.status == 1 && faults(&ran).contains(&fault), "{to}: {fault}\n{}{}", ran.out, ran.err);
    }
}
