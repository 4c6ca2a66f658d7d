//! The proxies of docs/operations.md before two nodes: nginx is run with the very text, but for addresses and certificates.

use super::page::Page;
use crate::support::eventually;
use crate::support::ground::Ground;
use crate::support::server::{Client, Server, Spec, free_port};
use serde_json::json;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;
use tokio::process::{Child, Command};

const SOON: Duration = Duration::from_secs(30);
const END: Duration = Duration::from_secs(120);

/// The only block of a language in the docs.
fn block(language: &str) -> String {
    let docs = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/operations.md")).unwrap();
    let begin = format!("```{language}\n");
    assert_eq!(docs.matches(&begin).count(), 1, "one block of {language}");
    docs.split(&begin).nth(1).unwrap().split("```").next().unwrap().to_owned()
}

/// The text of the docs with ports of this machine, without TLS.
fn nginx_for(folder: &Path, port: u16, nodes: [u16; 2]) -> String {
    let mut http = block("nginx");
    let replaced = [
        ("listen 443 ssl;", format!("listen 127.0.0.1:{port};")),
        ("listen 80;", format!("listen 127.0.0.1:{};", free_port())),
        ("10.0.0.11:8080", format!("127.0.0.1:{}", nodes[0])),
        ("10.0.0.12:8080", format!("127.0.0.1:{}", nodes[1])),
    ];
    for (from, to) in replaced {
        assert!(http.contains(from), "{from}");
        http = http.replace(from, &to);
    }
    let http: Vec<&str> = http.lines().filter(|line| !line.trim_start().starts_with("ssl_certificate")).collect();
    let folder = folder.display();
    let places =
        ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(|of| format!("{of}_temp_path {folder}/{of};"));
    format!(
        "daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log {folder}/errors;\nevents {{}}\nhttp {{\naccess_log off;\n{}\n{}\n}}\n",
        places.concat(),
        http.join("\n")
    )
}

async fn start_nginx(folder: &Path, port: u16, nodes: [u16; 2]) -> Child {
    let file = folder.join("nginx.conf");
    std::fs::write(&file, nginx_for(folder, port, nodes)).unwrap();
    let program = ["/usr/sbin/nginx", "/usr/local/sbin/nginx"].into_iter().find(|path| Path::new(path).exists());
    let program = program.expect("nginx is installed: apt-get install nginx-light, or run everything with tests/run");
    let nginx = |more: &[&str]| {
        let mut command = Command::new(program);
        command.arg("-p").arg(folder).arg("-c").arg(&file).arg("-e").arg(folder.join("errors")).args(more);
        command.stdin(Stdio::null()).kill_on_drop(true);
        command
    };
    let checked = nginx(&["-t"]).output().await.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
    nginx(&[]).spawn().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_behind_the_nginx_of_the_docs_serve_requests_and_sockets_and_go_one_by_one() {
    let ground = Arc::new(Ground::postgres().await);
    let node = || Spec::demo().env("TASKBELL__SERVER__TRUSTED_PROXIES", "127.0.0.1");
    let (mut first, second): (Server, Server) =
        (node().start_on(ground.clone()).await, node().start_on(ground.clone()).await);
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let _nginx = start_nginx(folder.path(), port, [first.port(), second.port()]).await;
    let key = first.client("user", "user").await.key;
    let client = Client::new(&format!("http://127.0.0.1:{port}"), &key);
    let listens = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.ok();
    eventually("nginx listens", SOON, listens).await;
    let before: Vec<Page> = vec![Page::open_by(port, &key).await, Page::open_by(port, &key).await];
    let submit =
        async || client.submit(json!({"action": "recalculate-totals"})).await["id"].as_str().unwrap().to_owned();
    let task = submit().await;
    eventually("both pages show it", SOON, async || before.iter().all(|p| p.state(&task).is_some()).then_some(()))
        .await;
    first.terminate().await;
    let after = Page::open_by(port, &key).await;
    let task = submit().await;
    client.until(&task, END, |task| task["state"] == "succeeded").await;
    eventually("a page shows its end", SOON, async || {
        (after.state(&task).as_deref() == Some("succeeded")).then_some(())
    })
    .await;
}

#[test]
fn the_caddyfile_of_the_docs_names_both_nodes_and_is_well_formed() {
    let text = block("caddyfile");
    let (mut depth, mut words) = (0_i32, Vec::new());
    for line in text.lines() {
        let line = line.trim();
        depth += i32::from(line.ends_with('{')) - i32::from(line == "}");
        assert!(depth >= 0 && !line.ends_with(';'), "{line}");
        words.extend(line.split(' ').map(str::to_owned));
    }
    assert_eq!(depth, 0);
    for word in ["10.0.0.11:8080", "10.0.0.12:8080", "reverse_proxy", "/readyz", "stream_close_delay"] {
        assert!(words.iter().any(|w| w == word), "{word}");
    }
}
