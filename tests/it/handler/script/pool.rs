//! The processes: kept ready, used again, replaced, and gone with the server.

use super::{Host, MEMORY, ROOMY, Rig, chunk, eventually, failure, function, result, run};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;
use taskbell::core::task::ErrorKind;
use taskbell::handler::script::{PoolSettings, ScriptHandler, ScriptPool};

const MINUTE: Duration = Duration::from_secs(60);

/// What the system says of a process; none when it is gone.
fn told_of(process: u32, file: &str) -> Option<String> {
    let told = std::fs::read(format!("/proc/{process}/{file}")).ok()?;
    Some(String::from_utf8_lossy(&told).into_owned())
}

/// Whether a process is there and not only waiting to be collected. One that is killed ends thread by thread.
fn lives(process: u32) -> bool {
    let ended = |stat: String| stat.rsplit(')').next().unwrap().trim_start().starts_with('Z');
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).map_or(0, Iterator::count);
    threads > 1 || told_of(process, "stat").is_some_and(|stat| !ended(stat))
}

/// What a process holds in memory, bytes; 0 when it is gone.
pub fn resident_bytes(process: u32) -> u64 {
    let told = told_of(process, "status").unwrap_or_default();
    let line = told.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0 kB");
    line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
}

async fn the_ready_one(rig: &Rig) -> u32 {
    eventually("a process is ready", || rig.pool.ready_processes().len() == 1).await;
    rig.pool.ready_processes()[0]
}

#[tokio::test]
async fn processes_are_started_ahead_and_know_nothing_of_the_server() {
    assert!(std::env::var_os("PATH").is_some());
    let (_file, _socket) = (tempfile::tempfile().unwrap(), std::net::TcpListener::bind("127.0.0.1:0").unwrap());
    let rig = Rig::new(2);
    eventually("both are ready", || rig.pool.ready_processes().len() == 2).await;
    for process in rig.pool.ready_processes() {
        assert_eq!(told_of(process, "environ").unwrap(), "");
        for held in std::fs::read_dir(format!("/proc/{process}/fd")).unwrap() {
            let file = std::fs::read_link(held.unwrap().path()).unwrap();
            assert!(file.starts_with("/dev") || file.to_string_lossy().starts_with("pipe:"), "{}", file.display());
        }
        let place = |process| {
            told_of(process, "stat")
                .unwrap()
                .rsplit(')')
                .next()
                .unwrap()
                .split_whitespace()
                .nth(16)
                .unwrap()
                .parse::<i32>()
                .unwrap()
        };
        assert_eq!(place(process), (place(std::process::id()) + 10).min(19), "behind the server");
        let limits = told_of(process, "limits").unwrap();
        let limit = |name: &str| {
            let line = limits.lines().find(|line| line.starts_with(name)).unwrap();
            line[name.len()..].split_whitespace().next().unwrap().to_owned()
        };
        assert_eq!([limit("Max core file size"), limit("Max file size"), limit("Max open files")], ["0", "0", "8"]);
    }
}

#[tokio::test]
async fn a_process_is_bounded_by_the_system_too_while_it_runs_a_chunk() {
    let rig = Rig::new(1);
    let process = the_ready_one(&rig).await;
    rig.run(&function("return { hasMore: true };")).await.unwrap();
    let limits = told_of(process, "limits").unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max address space")).unwrap();
    let soft: u64 = line["Max address space".len()..].split_whitespace().next().unwrap().parse().unwrap();
    assert!((2 * MEMORY..8 * 1024 * 1024 * 1024).contains(&soft), "{soft}");
}

#[tokio::test]
async fn a_process_is_used_again_until_it_is_used_up_or_something_went_wrong() {
    let rig = Rig::new(1);
    let first = the_ready_one(&rig).await;
    let calm = rig.handler("calm.js", &function("return { hasMore: true };"), MEMORY, MINUTE);
    for _ in 0..199 {
        run(&calm, &Arc::new(Host::new()), chunk()).await.unwrap();
        assert_eq!(the_ready_one(&rig).await, first);
    }
    run(&calm, &Arc::new(Host::new()), chunk()).await.unwrap();
    eventually("it makes room after 200 chunks", || !lives(first)).await;
    let mut last = the_ready_one(&rig).await;

    for (body, stays) in [
        ("throw new Error('an ordinary failure');", true),
        ("return 7;", true),
        ("const down = () => down() + 1; down();", false),
        ("const k = []; while (true) k.push('x'.repeat(1e6) + k.length);", false),
        (
            "globalThis.k = 'é'.repeat(2.5e7); return { hasMore: true, checkpoint: { n: k.toUpperCase().length } };",
            false,
        ),
    ] {
        let _ = rig.body(body, 256 * 1024 * 1024, MINUTE).await;
        if !stays {
            eventually("it is gone", || !lives(last)).await;
        }
        let next = the_ready_one(&rig).await;
        assert_eq!(next == last, stays, "{body}");
        last = next;
    }
}

#[tokio::test]
async fn the_memory_of_a_big_chunk_goes_back_to_the_system() {
    let rig = Rig::new(1);
    let before = resident_bytes(the_ready_one(&rig).await);
    for body in [
        "const kept = []; for (let i = 0; i < 1e6; i++) kept.push([i]); return { hasMore: true, current: kept.length };",
        "globalThis.kept = []; while (true) kept.push('x'.repeat(1e5) + kept.length);",
    ] {
        let _ = rig.body(body, 256 * 1024 * 1024, MINUTE).await;
        let after = resident_bytes(the_ready_one(&rig).await);
        assert!(after.abs_diff(before) <= 20 * 1024 * 1024, "{before} bytes, then {after}: {body}");
    }
}

#[tokio::test]
async fn a_chunk_that_is_let_go_in_its_middle_takes_its_process_with_it() {
    let rig = Rig::new(1);
    let process = the_ready_one(&rig).await;
    let host = Arc::new(Host::new());
    let handler = rig.handler("long.js", &function("cx.log('on'); while (true) {}"), MEMORY, MINUTE);
    tokio::select! {
        ended = run(&handler, &host, chunk()) => panic!("{ended:?}"),
        () = eventually("it runs", || !host.log().is_empty()) => {}
    }
    eventually("it is killed", || !lives(process)).await;
    assert_ne!(the_ready_one(&rig).await, process);
}

#[tokio::test]
async fn a_process_that_is_killed_is_worth_another_attempt() {
    let rig = Rig::new(1);
    let process = the_ready_one(&rig).await;
    let host = Arc::new(Host::new());
    let text = function("cx.log('on'); while (true) {}");
    let (ended, ()) = tokio::join!(rig.run_with(&text, &host, chunk()), async {
        eventually("it runs", || !host.log().is_empty()).await;
        assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    });
    let failure = failure(ended);
    assert_eq!(
        (failure.kind, failure.code.as_str(), failure.retryable),
        (ErrorKind::Handler, "script-process-died", true)
    );
    assert!(failure.detail.unwrap().contains("signal: 9"));
}

#[tokio::test]
async fn one_that_dies_while_it_waits_is_not_given_a_chunk() {
    let rig = Rig::new(1);
    let process = the_ready_one(&rig).await;
    assert!(Command::new("kill").args(["-9", &process.to_string()]).status().unwrap().success());
    eventually("it is gone", || !lives(process)).await;
    rig.run(&function("return { hasMore: true };")).await.unwrap();
}

#[tokio::test]
async fn more_chunks_than_processes_run_at_once_and_only_as_many_stay() {
    let rig = Rig::new(1);
    let text = function("cx.log('on'); while (!cx.stopRequested()) await cx.sleep(5); return { hasMore: true };");
    let handler = Arc::new(rig.handler("slow.js", &text, MEMORY, MINUTE));
    let host = Arc::new(Host::new());
    let all: Vec<_> = (0..5)
        .map(|_| {
            let (handler, host) = (Arc::clone(&handler), Arc::clone(&host));
            tokio::spawn(async move { run(&handler, &host, chunk()).await })
        })
        .collect();
    eventually("all run", || host.log().len() == 5).await;
    host.stop.send_replace(true);
    for one in all {
        one.await.unwrap().unwrap();
    }
    eventually("one stays", || rig.pool.living_count() == 1).await;
}

#[tokio::test]
async fn a_binary_that_is_not_there_or_is_another_is_told_as_a_fault_of_the_server() {
    let rig = Rig::new(1);
    std::fs::write(rig.path("a.js"), function("return { hasMore: true };")).unwrap();
    for exe in ["/none/taskbell", "/bin/true"] {
        let pool = ScriptPool::start(PoolSettings { size: 1, exe: exe.into() });
        let handler = ScriptHandler::new(rig.path("a.js"), ROOMY, MINUTE, pool).unwrap();
        let failure = failure(run(&handler, &Arc::new(Host::new()), chunk()).await);
        let told = (failure.kind, failure.code.as_str(), failure.retryable);
        assert_eq!(told, (ErrorKind::Internal, "script-process-unavailable", true), "{exe}");
    }
}

#[tokio::test]
async fn processes_end_with_their_pool() {
    let rig = Rig::new(2);
    eventually("both are ready", || rig.pool.ready_processes().len() == 2).await;
    let processes = rig.pool.ready_processes();
    drop(rig);
    eventually("both are gone", || !processes.iter().any(|process| lives(*process))).await;
}

#[test]
fn a_process_ends_when_its_server_is_gone() {
    let exe = Path::new(env!("CARGO_BIN_EXE_taskbell"));
    let mut child =
        Command::new(exe).arg("script-worker").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

#[tokio::test]
async fn a_chunk_that_waits_for_a_process_is_handed_back_when_a_stop_is_requested() {
    let rig = Rig::new(1);
    let busy = Arc::new(Host::new());
    let spin = function("cx.log('on'); while (!cx.stopRequested()) await cx.sleep(5); return { hasMore: true };");
    let handler = Arc::new(rig.handler("busy.js", &spin, MEMORY, MINUTE));
    let all: Vec<_> = (0..8)
        .map(|_| {
            let (handler, busy) = (Arc::clone(&handler), Arc::clone(&busy));
            tokio::spawn(async move { run(&handler, &busy, chunk()).await })
        })
        .collect();
    eventually("every place is taken", || busy.log().len() == 8).await;
    let host = Arc::new(Host::new());
    host.stop.send_replace(true);
    let ended = rig.run_with(&function("return { hasMore: false, result: 1 };"), &host, chunk()).await;
    assert!(matches!(ended, Err(taskbell::handler::HandlerError::HandedBack)), "{ended:?}");
    busy.stop.send_replace(true);
    for one in all {
        one.await.unwrap().unwrap();
    }
    assert_eq!(result(rig.run(&function("return { hasMore: false, result: 2 };")).await), json!(2));
}
