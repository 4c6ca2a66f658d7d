//! The documentation, held to the truth: what it shows is what is there, and the commands of the README do what it says.
//!
//! A comment with a name before a block (`<!-- examples/embed.toml -->`) says what file the block shows: a file of the
//! checkout has to have that text, any other one is what a reader is asked to write. A `text` block is what the `sh` block
//! before it prints; `…` in it stands for anything.

use crate::architecture::files;
use crate::support::server::{Client, Spec, free_port};
use regex::Regex;
use serde_json::json;
use sqlx::AssertSqlSafe;
use sqlx::sqlite::{SqliteConnectOptions, SqlitePool};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use taskbell::app::{Node, Role, Setup};
use taskbell::config::{Settings, markdown, pack_markdown};
use taskbell::handler::native::NativeHandlers;
use tempfile::TempDir;
use tokio::process::Command;

#[path = "../../examples/embed.rs"]
#[allow(dead_code, reason = "its `main` is that of a binary")]
mod embed;

/// The longest that the commands of one section may take; the import of the tour takes half a minute.
const LIMIT_SECONDS: u64 = 300;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// All Markdown files, with their paths.
fn pages() -> Vec<(String, String)> {
    let docs = files(&["docs"]).into_iter().filter(|(path, _)| path.ends_with(".md"));
    docs.chain([("README.md".to_owned(), read("README.md"))]).collect()
}

/// From a heading to the next one of its rank.
fn section<'a>(text: &'a str, heading: &str) -> &'a str {
    let from = text.find(&format!("{heading}\n")).unwrap_or_else(|| panic!("there is no {heading:?}"));
    let rank = heading.split(' ').next().unwrap();
    let rest = &text[from + heading.len()..];
    &rest[..rest.find(&format!("\n{rank} ")).unwrap_or(rest.len())]
}

/// A fenced block.
#[derive(Debug)]
struct Block {
    language: String,
    /// What the comment before it says.
    name: Option<String>,
    text: String,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let fence = Regex::new(r"(?m)^(?:<!-- (.+) -->\n)?```(\w+)\n([\s\S]*?)^```$").unwrap();
    let all = fence.captures_iter(markdown);
    all.map(|found| Block {
        language: found[2].to_owned(),
        name: found.get(1).map(|name| name.as_str().to_owned()),
        text: found[3].to_owned(),
    })
    .collect()
}

/// The text of a block that a page shows under a name.
pub(crate) fn shown(page: &str, name: &str) -> String {
    let found = blocks(&read(page)).into_iter().find(|block| block.name.as_deref() == Some(name));
    found.unwrap_or_else(|| panic!("{page} shows no {name}")).text
}

#[test]
fn every_link_leads_to_a_file_that_is_there() {
    let link = Regex::new(r"\]\(([^)#\s]+)").unwrap();
    for (path, text) in pages() {
        let folder = root().join(&path).parent().unwrap().to_owned();
        for target in link.captures_iter(&text).map(|found| found[1].to_owned()).filter(|t| !t.contains("://")) {
            assert!(folder.join(&target).exists(), "{path} links to {target}");
        }
    }
}

#[test]
fn what_is_shown_of_a_file_of_the_checkout_is_its_text() {
    let mut compared = 0;
    for (page, text) in pages() {
        for block in blocks(&text) {
            let Some(name) = block.name else { continue };
            if let Some(path) = name.strip_prefix("part of ") {
                assert!(read(path).contains(&block.text), "{page} shows what is not in {path}:\n{}", block.text);
            } else if root().join(&name).exists() {
                assert!(read(&name) == block.text, "{page} shows another {name} than there is");
            } else {
                continue;
            }
            compared += 1;
        }
    }
    assert!(compared >= 3, "the README and docs/handlers.md show the example");
}

#[test]
fn every_configuration_that_is_shown_is_valid() {
    let mut shown = 0;
    for (page, text) in pages() {
        for block in blocks(&text).into_iter().filter(|block| block.language == "toml") {
            // A manifest, compared with its file, which a test loads.
            if block.name.as_ref().is_some_and(|name| name.ends_with("pack.toml")) {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let file = folder.path().join("taskbell.toml");
            fs::write(&file, &block.text).unwrap();
            fs::write(folder.path().join("sso.pem"), read("tests/keys/ed.public.pem")).unwrap();
            let env = [("ERP_SECRET".to_owned(), "0123456789abcdef0123456789abcdef".to_owned())];
            let loaded = Settings::load(Some(&file), env.into_iter(), false);
            assert!(loaded.is_ok(), "{page}: {}\n{}", loaded.unwrap_err(), block.text);
            shown += 1;
        }
    }
    assert!(shown >= 3, "{shown} blocks");
}

#[test]
fn the_readme_lists_every_setting_as_it_is() {
    let table = format!("| setting | default | values | what it does |\n|---|---|---|---|\n{}", markdown());
    assert!(read("README.md").contains(&table), "the table of settings in README.md has to be\n{table}");
}

#[test]
fn the_docs_list_every_key_of_a_manifest_as_it_is() {
    let table = format!("| key | default | values | what it says |\n|---|---|---|---|\n{}", pack_markdown());
    assert!(read("docs/handlers.md").contains(&table), "the table of keys in docs/handlers.md has to be\n{table}");
}

#[test]
fn the_readme_names_exactly_the_settings_that_have_no_effect_yet() {
    let readme = read("README.md");
    let from = readme.find("without effect in this version:").unwrap();
    let sentence = readme[from..].split(".\n").next().unwrap();
    let told: BTreeSet<String> = sentence.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    let env =
        [("HOOK_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"), ("ERP_SECRET", "0123456789abcdef0123456789abcdef")];
    let everything = read("src/config/everything.toml");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("erp.pem"), read("tests/keys/ed.public.pem")).unwrap();
    let file = folder.path().join("taskbell.toml");
    fs::write(&file, everything.replace("nesting = 32", "nesting = 8")).unwrap();
    let loaded =
        Settings::load(Some(&file), env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())), false).unwrap();
    let index = Regex::new(r"\[\d+\]").unwrap();
    let notes = loaded.not_active().0;
    let there = notes.iter().map(|note| index.replace_all(&note.key, "[]").into_owned()).collect();
    assert_eq!(told, there);
}

#[test]
fn every_promise_of_the_center_names_tests_that_are_there() {
    let (text, sources) = (read("docs/center.md"), files(&["tests", "src"]));
    let row = Regex::new(r"(?m)^\| (\d+) \| [^|]+ \| ([^|]+) \|$").unwrap();
    let rows: Vec<_> =
        row.captures_iter(&text).map(|row| (row[1].parse::<usize>().unwrap(), row[2].to_owned())).collect();
    assert_eq!(rows.iter().map(|(n, _)| *n).collect::<Vec<_>>(), (1..=60).collect::<Vec<_>>());
    let name = Regex::new(r"`(?:\w+::)*(\w+)`").unwrap();
    for (n, shown) in rows {
        let names: Vec<_> = name.captures_iter(&shown).map(|found| found[1].to_owned()).collect();
        assert!(!names.is_empty(), "promise {n} names no test: {shown}");
        for name in names {
            let is_there = sources.iter().any(|(_, text)| text.contains(&format!("fn {name}(")));
            assert!(is_there, "promise {n} names {name}, which is not there");
        }
    }
}

#[tokio::test]
async fn the_example_of_a_binary_of_ones_own_writes_each_invoice_once() {
    let folder = tempfile::tempdir().unwrap();
    let inside = |name: &str| folder.path().join(name).display().to_string();
    let env = [
        ("TASKBELL__SERVER__LISTEN", "127.0.0.1:0".to_owned()),
        ("TASKBELL__DATABASE__URL", format!("sqlite://{}", inside("taskbell.db"))),
        ("TASKBELL__FILES__URL", format!("file://{}", inside("files"))),
    ];
    let config = root().join("examples/embed.toml");
    let given = env.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let loaded = Settings::load(Some(&config), given, false).unwrap();
    let natives = NativeHandlers::new().with("write-invoices", embed::WriteInvoices);
    let node = Node::start(Setup { loaded: &loaded, natives, script_exe: None, role: Role::All }).await.unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskbell"));
    command.envs(env.iter().cloned()).arg("--config").arg(&config);
    let made = command.args(["key", "create", "--user", "alice", "--role", "user"]).output().await.unwrap();
    let key = String::from_utf8(made.stdout).unwrap().trim().to_owned();
    let client = Client::new(&format!("http://{}", node.address()), &key);
    let task = client.submit(json!({"action": "write-invoices", "params": {"count": 250}})).await;
    let id = task["id"].as_str().unwrap();
    let task = client.until(id, Duration::from_secs(30), |task| task["state"] == "succeeded").await;
    assert_eq!((&task["result"], &task["progress"]["total"]), (&json!({"written": 250}), &json!(250)));
    let file = SqliteConnectOptions::new().filename(inside("taskbell.db")).read_only(true);
    let pool = SqlitePool::connect_with(file).await.unwrap();
    let sums = "SELECT COUNT(*), MIN(number), MAX(number) FROM invoices WHERE task = $1";
    let found: (i64, i64, i64) = sqlx::query_as(sums).bind(id).fetch_one(&pool).await.unwrap();
    assert_eq!(found, (250, 1, 250));
    node.drain().await;
}

#[tokio::test]
async fn the_statements_for_operators_do_what_they_say_beside_a_server_that_is_up() {
    let page = read("docs/operations.md");
    let statement = |start: &str| page.lines().map(str::trim).find(|line| line.starts_with(start)).unwrap().to_owned();
    let server = Spec::demo().start().await;
    let user = server.client("user", "user").await;
    user.submit(json!({"action": "sync-catalogue"})).await;
    let copy = server.folder().join("copy.db");
    let pool = |file: PathBuf| SqlitePool::connect_with(SqliteConnectOptions::new().filename(file));
    let live = pool(server.folder().join("data/taskbell.db")).await.unwrap();
    let backup = statement("VACUUM INTO").replace("backup.db", copy.to_str().unwrap());
    sqlx::raw_sql(AssertSqlSafe(backup)).execute(&live).await.unwrap();
    let copied = pool(copy).await.unwrap();
    let (count,): (i64,) = sqlx::query_as("SELECT COUNT(*) FROM taskbell_tasks").fetch_one(&copied).await.unwrap();
    assert_eq!(count, 1);
    let epoch = "SELECT value FROM taskbell_meta WHERE name = 'epoch'";
    let (before,): (String,) = sqlx::query_as(epoch).fetch_one(&copied).await.unwrap();
    sqlx::raw_sql(AssertSqlSafe(statement("UPDATE taskbell_meta"))).execute(&copied).await.unwrap();
    let (after,): (String,) = sqlx::query_as(epoch).fetch_one(&copied).await.unwrap();
    assert!(before != after && after.len() == before.len(), "{before} {after}");
}

/// A checkout as a reader of the README has it after the first command, with a server on a port of its own.
struct Reader {
    folder: TempDir,
    port: u16,
}

impl Reader {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let binary = PathBuf::from(env!("CARGO_BIN_EXE_taskbell"));
        fs::create_dir(folder.path().join("target")).unwrap();
        std::os::unix::fs::symlink(binary.parent().unwrap(), folder.path().join("target/debug")).unwrap();
        std::os::unix::fs::symlink(root().join("demo"), folder.path().join("demo")).unwrap();
        Self { folder, port: free_port() }
    }

    /// The text with the reader's port instead of those that the README uses.
    fn here(&self, text: &str) -> String {
        let port = self.port.to_string();
        ["8080", "8081"].iter().fold(text.to_owned(), |text, known| text.replace(known, &port))
    }

    /// Writes the files that a section asks for, types its commands one after the other, and holds what each block prints
    /// against the block that shows it.
    async fn follow(&self, section: &str, first: &str) {
        let blocks = blocks(section);
        for block in &blocks {
            if let Some(name) = block.name.as_ref().filter(|name| !root().join(name).exists() && !name.contains(' ')) {
                let path = self.folder.path().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, self.here(&block.text)).unwrap();
            }
        }
        let typed: Vec<&Block> = blocks.iter().filter(|block| block.language == "sh").collect();
        let mut script = PREAMBLE.replace("PORT", &self.port.to_string());
        script.push_str(first);
        for block in &typed {
            script.push_str(&self.here(&served(&block.text)));
            script.push_str("echo @@end\n");
        }
        let said = self.run(&script).await;
        let parts: Vec<&str> = said.split("@@end\n").collect();
        assert_eq!(parts.len(), typed.len() + 1, "the commands broke off:\n{said}\n{}", self.log());
        let shown = blocks.iter().filter(|block| block.language == "sh" || block.language == "text");
        let mut typed_count = 0;
        for block in shown {
            if block.language == "sh" {
                typed_count += 1;
                continue;
            }
            let printed = parts[typed_count - 1];
            assert!(is_like(printed, &block.text), "printed:\n{printed}\nshown:\n{}", block.text);
        }
    }

    async fn run(&self, script: &str) -> String {
        let file = self.folder.path().join("typed.sh");
        fs::write(&file, script).unwrap();
        // `timeout` ends the server that the commands started, too: it is of the same process group.
        let mut command = Command::new("timeout");
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TASKBELL")) {
            command.env_remove(name);
        }
        command.args(["--kill-after=20", &LIMIT_SECONDS.to_string(), "bash"]).arg(&file);
        command.env("TASKBELL_URL", format!("http://127.0.0.1:{}", self.port));
        let ran = command.current_dir(self.folder.path()).stdin(Stdio::null()).output().await.unwrap();
        String::from_utf8_lossy(&ran.stdout).into_owned()
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("server.log")).unwrap_or_default()
    }
}

/// How a server is started in the background where a reader has a terminal of its own for it.
const PREAMBLE: &str = "set -euo pipefail
exec 2>&1
serve() {
    \"$PWD/target/debug/taskbell\" \"$@\" >>server.log 2>&1 &
    server=$!
    until curl -fs http://127.0.0.1:PORT/readyz >/dev/null; do kill -0 $server; sleep 0.05; done
}
demo() { TASKBELL__SERVER__LISTEN=127.0.0.1:PORT serve --demo; }
trap 'kill -9 $server' EXIT
";

/// Commands that take the other terminal.
fn served(text: &str) -> String {
    text.replace("pkill -9 -x taskbell\n", "kill -9 $server; wait $server || true; demo\n")
        .replace("\ntaskbell --config ", "\nserve --config ")
}

/// Whether `printed` has all that `shown` has, in its order.
fn is_like(printed: &str, shown: &str) -> bool {
    let mut rest = printed;
    shown.split(['…', '\n']).filter(|part| !part.is_empty()).all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

#[test]
fn what_is_printed_is_compared_in_its_order() {
    assert!(is_like("{\"id\":\"7\",\"state\":\"queued\"}\n", "{\"id\":\"…\",\"state\":\"queued\"…\n"));
    assert!(!is_like("b a", "a…b"));
}

#[tokio::test]
async fn the_tour_of_the_readme_goes_as_it_says() {
    let readme = read("README.md");
    Reader::new().follow(section(&readme, "## Five minutes with curl"), "demo\n").await;
}

#[tokio::test]
async fn the_script_of_the_readme_runs_to_its_end() {
    let readme = read("README.md");
    let reader = Reader::new();
    let path = "export PATH=\"$PWD/target/debug:$PATH\"\n";
    reader.follow(section(&readme, "### As a script"), path).await;
}
