//! `taskbell doctor` on real databases: what is well, what is worth knowing, what is at fault, each in a line.

use crate::support::ground::Ground;
use crate::support::on_each_database;
use crate::support::redis::Redis;
use crate::support::server::{Server, Spec};
use std::process::Stdio;
use std::sync::Arc;
use tokio::process::Command;

/// What the doctor says of the installation of a server, with further settings; and whether it found no fault.
async fn asked(server: &Server, more: &[(&str, &str)]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskbell"));
    command.arg("doctor").current_dir(server.folder()).stdin(Stdio::null()).env_remove("TASKBELL_CONFIG");
    command.envs(server.env()).envs(more.iter().copied());
    if server.folder().join("taskbell.toml").exists() {
        command.arg("--config").arg(server.folder().join("taskbell.toml"));
    }
    let told = command.output().await.unwrap();
    let text = String::from_utf8(told.stdout).unwrap();
    assert!(matches!(told.status.code(), Some(0 | 1)), "{text}{}", String::from_utf8_lossy(&told.stderr));
    (told.status.success(), text)
}

/// The line of a grade and a part that holds some words.
fn line<'a>(text: &'a str, grade: &str, part: &str, words: &str) -> &'a str {
    let fits = |line: &&str| line.starts_with(grade) && line.contains(&format!(" {part} ")) && line.contains(words);
    text.lines().find(fits).unwrap_or_else(|| panic!("no line `{grade} {part} … {words}` in\n{text}"))
}

fn spec() -> Spec {
    Spec::with_config("[[records]]\ntype = \"order\"\n")
}

on_each_database! {
    a_sound_installation_has_no_fault_and_a_lost_index_is_named
}

async fn a_sound_installation_has_no_fault_and_a_lost_index_is_named(ground: Arc<Ground>) {
    let server = spec().start_on(ground.clone()).await;
    let (well, text) = asked(&server, &[]).await;
    assert!(well, "{text}");
    line(&text, "ok", "database", "the schema is up to date");
    line(&text, "ok", "database", "indexes are there");
    line(&text, "ok", "redis", "not configured");
    match ground.database() {
        None => {
            line(&text, "ok", "database", "a server is up on the file");
        }
        Some(database) => {
            line(&text, "ok", "database", "answers and takes writes");
            line(&text, "ok", "clock", "of the database");
            line(&text, "ok", "wake-up", "notifications of the database arrive");
            database.execute("DROP INDEX taskbell_tasks_claim").await;
            let (well, text) = asked(&server, &[]).await;
            assert!(!well);
            line(&text, "FAULT", "database", "taskbell_tasks_claim is missing");
        }
    }
    let (well, text) = asked(&server, &[("TASKBELL__ENGINE__HEARTBEAT_MS", "29000")]).await;
    assert!(!well);
    line(&text, "FAULT", "configuration", "engine.heartbeat_ms");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_that_withholds_a_right_and_a_role_that_is_serializable_are_told_in_words() {
    let (ground, redis) = (Arc::new(Ground::postgres().await), Redis::start(&[]).await);
    let server = spec().start_on(ground.clone()).await;
    let url = redis.url();
    let (well, text) = asked(&server, &[("TASKBELL__REDIS__URL", url.as_str())]).await;
    assert!(well, "{text}");
    line(&text, "ok", "redis", "a word over its channel arrives");
    let wrong = url.replacen("redis://", "redis://nobody:wrong@", 1);
    let (well, text) = asked(&server, &[("TASKBELL__REDIS__URL", wrong.as_str())]).await;
    assert!(!well && !text.contains("wrong@"), "{text}");
    line(&text, "FAULT", "redis", "the user or the password in redis.url is wrong");
    let database = ground.database().unwrap();
    let name = database.name();
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'")).await;
    let (well, text) = asked(&server, &[]).await;
    assert!(well, "{text}");
    line(&text, "note", "database", "serializable");
    database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on")).await;
    let (well, text) = asked(&server, &[]).await;
    assert!(!well);
    line(&text, "FAULT", "database", "takes no writes");
}
