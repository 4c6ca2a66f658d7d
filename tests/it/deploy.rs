//! The files for containers, held to what they say by reading them: there is no container engine where tests run. The
//! settings in them go through the reader of the configuration, and the commands of the docs make the secrets.

use crate::cli::taskbell;
use crate::support::server::{Spec, free_port};
use regex::Regex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use taskbell::config::{DatabaseUrl, Settings};

const SOON: Duration = Duration::from_secs(30);

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

fn compose() -> Value {
    serde_saphyr::from_str(&read("docker-compose.yml")).unwrap()
}

/// The entries of an object.
fn entries(value: &Value) -> Vec<(&str, &Value)> {
    value.as_object().unwrap_or_else(|| panic!("no mapping: {value}")).iter().map(|(k, v)| (k.as_str(), v)).collect()
}

/// The texts of a list, or none where there is no list.
fn texts(value: &Value) -> Vec<&str> {
    value.as_array().map(|all| all.iter().map(|item| item.as_str().unwrap()).collect()).unwrap_or_default()
}

/// Instructions of the Dockerfile with their arguments, continued lines joined, comments left out.
fn dockerfile() -> Vec<(String, String)> {
    let joined = read("Dockerfile").replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| {
            let (word, rest) = line.split_once(' ').unwrap();
            (word.to_owned(), rest.split_whitespace().collect::<Vec<_>>().join(" "))
        })
        .collect()
}

fn argument(word: &str) -> String {
    let last = dockerfile().into_iter().rfind(|(found, _)| found == word);
    last.unwrap_or_else(|| panic!("the Dockerfile has no {word}")).1
}

/// What the image sets in the environment.
fn image_env() -> BTreeMap<String, String> {
    let pairs = argument("ENV");
    pairs.split(' ').map(|pair| pair.split_once('=').unwrap()).map(|(k, v)| (k.into(), v.into())).collect()
}

#[test]
fn the_image_is_built_in_stages_runs_as_nobody_special_and_tells_its_health() {
    let lines = dockerfile();
    let stages: Vec<&str> = lines.iter().filter(|(word, _)| word == "FROM").map(|(_, rest)| rest.as_str()).collect();
    let [build, image] = stages[..] else { panic!("two stages, not {stages:?}") };
    let rust = Regex::new(r#"rust-version = "(.+)""#).unwrap().captures(&read("Cargo.toml")).unwrap()[1].to_owned();
    assert!(build.starts_with(&format!("rust:{rust}-")) && build.ends_with(" AS build"), "{build}");
    assert!(image.contains("-slim"), "{image}");
    // Everything of the image comes from the build, and no package is installed into it.
    let of_image = lines.iter().skip_while(|(_, rest)| rest != image).skip(1);
    for (word, rest) in of_image {
        assert_ne!(word, "RUN", "{rest}");
        assert!(word != "COPY" || rest.starts_with("--from=build "), "{rest}");
    }
    let user: Vec<u32> = argument("USER").split(':').map(|id| id.parse().expect("ids, not names")).collect();
    assert!(user.iter().all(|id| *id >= 10_000), "{user:?}");
    let port = image_env()["TASKBELL__SERVER__LISTEN"].rsplit(':').next().unwrap().to_owned();
    assert_eq!((argument("EXPOSE"), argument("STOPSIGNAL")), (port.clone(), "SIGTERM".to_owned()));
    assert_eq!((argument("ENTRYPOINT").as_str(), argument("CMD").as_str()), (r#"["taskbell"]"#, r#"["serve"]"#));
    // The health check is a command of this binary, and asks where the image listens unless it is told.
    let check = argument("HEALTHCHECK");
    let command: Vec<String> = serde_json::from_str(check.split_once("CMD ").unwrap().1).unwrap();
    let parsed = <taskbell::cli::Cli as clap::Parser>::try_parse_from(&command).unwrap();
    let (_, taskbell::cli::Command::Ready(server)) = parsed.command() else { panic!("{command:?}") };
    assert_eq!(server.url, format!("http://127.0.0.1:{port}"));
    assert!(root().join("Cargo.lock").exists() && read("Dockerfile").contains("--locked"));
    let kept_out = read(".dockerignore");
    for path in [".git", "target", "data", "deploy/secrets"] {
        assert!(kept_out.lines().any(|line| line == path), "{path} goes into the build");
    }
    for path in ["src", "static", "templates", "migrations", "demo", "benches", "tests", "examples"] {
        assert!(!kept_out.lines().any(|line| line.trim_end_matches('/') == path), "the build needs {path}");
    }
}

#[test]
fn of_the_composed_services_only_the_node_is_published_and_only_here() {
    let compose = compose();
    let names: Vec<&str> = entries(&compose["services"]).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["taskbell", "postgres", "redis"]);
    for (name, service) in entries(&compose["services"]) {
        let networks = texts(&service["networks"]);
        match name {
            "taskbell" => {
                let ports = texts(&service["ports"]);
                assert!(ports.iter().all(|port| port.starts_with("127.0.0.1:")) && ports.len() == 1, "{ports:?}");
                assert!(ports[0].ends_with(&format!(":{}", argument("EXPOSE"))));
                assert!(!argument("HEALTHCHECK").is_empty() && service["healthcheck"].is_null());
                assert_eq!(networks, ["front", "back"]);
                assert_eq!((&service["read_only"], texts(&service["cap_drop"])), (&Value::Bool(true), vec!["ALL"]));
                for (other, needed) in entries(&service["depends_on"]) {
                    assert_eq!(needed["condition"], "service_healthy", "{other}");
                    assert!(!compose["services"][other]["healthcheck"]["test"].is_null(), "{other}");
                }
                assert_eq!(entries(&service["depends_on"]).len(), names.len() - 1);
            }
            _ => {
                assert!(service["ports"].is_null(), "{name} publishes {}", service["ports"]);
                assert_eq!(networks, ["back"], "{name}");
            }
        }
        assert_eq!(service["restart"], "unless-stopped", "{name}");
        for network in networks {
            assert!(compose["networks"].get(network).is_some(), "{network}");
        }
    }
    assert_eq!(compose["networks"]["back"]["internal"], true);
}

#[test]
fn every_file_volume_and_secret_of_the_composition_is_there_and_no_secret_stands_in_it() {
    let compose = compose();
    let (mut volumes, mut secrets) = (BTreeSet::new(), BTreeSet::new());
    let mounted = Regex::new("/run/secrets/([a-z_]+)").unwrap();
    for (name, service) in entries(&compose["services"]) {
        for volume in texts(&service["volumes"]) {
            let from = volume.split(':').next().unwrap();
            if from.starts_with("./") {
                assert!(root().join(from).exists() && volume.ends_with(":ro"), "{name} mounts {volume}");
            } else {
                volumes.insert(from);
            }
        }
        let own = texts(&service["secrets"]);
        for (key, value) in service.get("environment").map(entries).unwrap_or_default() {
            let value = value.as_str().unwrap_or_else(|| panic!("{key} of {name} has to be a text"));
            assert!(!key.contains("PASSWORD") || key.ends_with("_FILE"), "{key} of {name}");
            assert!(!value.contains('@'), "{key} of {name} may hold a password");
            for secret in mounted.captures_iter(value) {
                assert!(own.contains(&secret.get(1).unwrap().as_str()), "{name} is not given {}", &secret[1]);
            }
        }
        secrets.extend(own);
    }
    let declared = |of: &str| entries(&compose[of]).into_iter().map(|(name, _)| name).collect::<BTreeSet<_>>();
    assert_eq!((declared("volumes"), declared("secrets")), (volumes, secrets));
    for (name, secret) in entries(&compose["secrets"]) {
        assert_eq!(secret["file"], format!("./deploy/secrets/{name}"));
    }
    assert!(read(".gitignore").lines().any(|line| line == "/deploy/secrets"));
}

/// The commands of the docs, without those of the container engine, make the secrets in a folder; answers it.
fn with_secrets() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let page = read("docs/operations.md");
    let from = page.find("## In containers").unwrap();
    let block = page[from..].split("```sh\n").nth(1).unwrap().split("```").next().unwrap();
    let commands: Vec<&str> = block.lines().filter(|line| !line.starts_with("docker ")).collect();
    assert!(commands.len() >= 2 && commands.len() < block.lines().count(), "{block}");
    let ran = Command::new("sh").args(["-euc", &commands.join("\n")]).current_dir(folder.path()).status().unwrap();
    assert!(ran.success(), "{commands:?}");
    folder
}

#[tokio::test]
async fn the_settings_of_image_and_composition_are_accepted_and_every_secret_is_read_from_its_file() {
    let (compose, folder) = (compose(), with_secrets());
    let secrets = folder.path().join("deploy/secrets");
    let password = fs::read_to_string(secrets.join("postgres_password")).unwrap();
    assert!(password.len() >= 32 && password.chars().all(|c| c.is_ascii_alphanumeric()), "{password:?}");
    let mut env = image_env();
    for (key, value) in entries(&compose["services"]["taskbell"]["environment"]) {
        let value = value.as_str().unwrap().replace("/run/secrets", secrets.to_str().unwrap());
        env.insert(key.to_owned(), value.replace("/etc/taskbell", root().join("deploy").to_str().unwrap()));
    }
    let file = env.remove("TASKBELL_CONFIG").unwrap();
    let loaded = Settings::load(Some(Path::new(&file)), env.clone().into_iter(), false).unwrap();
    let settings = &loaded.settings;
    let DatabaseUrl::Postgres(url) = &settings.database.url else { panic!("{}", settings.database.url) };
    assert_eq!(url.expose(), format!("postgres://taskbell:{password}@postgres:5432/taskbell"));
    let postgres = &compose["services"]["postgres"]["environment"];
    assert_eq!((&postgres["POSTGRES_USER"], &postgres["POSTGRES_DB"]), (&"taskbell".into(), &"taskbell".into()));
    assert!(!loaded.demo && !settings.server.listen.ip().is_loopback());
    assert_eq!(settings.redis.as_ref().map(taskbell::config::Secret::expose), Some("redis://redis:6379"));
    // The drain has its time before the container is killed.
    let grace = compose["services"]["taskbell"]["stop_grace_period"].as_str().unwrap();
    let grace: u64 = grace.trim_end_matches('s').parse().unwrap();
    assert!(grace * 1_000 > settings.engine.drain_grace_ms);

    // As composed, and by itself on SQLite, it can serve the mounted file and run its script.
    for env in [env, image_env()] {
        let env: Vec<(&str, &str)> = env.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let ran = taskbell(folder.path(), &["check-config", "--config", &file], &env).await;
        assert_eq!((ran.status, ran.err.as_str()), (0, ""), "{}", ran.out);
        assert!(!ran.out.contains(&password), "{}", ran.out);
    }
}

#[tokio::test]
async fn the_health_check_says_by_its_exit_status_whether_the_server_is_ready() {
    // On the configuration that the composition mounts, whose first button works.
    let handlers = root().join("deploy/handlers").display().to_string();
    let server = Spec::with_config(&read("deploy/taskbell.toml").replace("handlers", &handlers)).start().await;
    let client = server.client("alice", "user").await;
    let task = client.submit(json!({"action": "hello", "params": {"times": 20}})).await;
    let done = client.until(task["id"].as_str().unwrap(), SOON, |task| task["state"] == "succeeded").await;
    assert_eq!(done["result"], json!({"greetings": 20}));
    let folder = server.folder();
    let ran = taskbell(folder, &["ready", "--url", &server.url()], &[]).await;
    assert_eq!((ran.status, ran.err.as_str()), (0, ""));
    assert_eq!(ran.out, "ready: database ok, logs ok, node ok, redis off, wake local\n");
    let nobody = format!("http://127.0.0.1:{}", free_port());
    let ran = taskbell(folder, &["ready"], &[("TASKBELL_URL", &nobody)]).await;
    assert_eq!((ran.status, ran.out.as_str()), (3, ""));
    assert!(ran.err.contains("cannot reach"), "{}", ran.err);
}

#[test]
fn no_release_has_points_where_it_can_be_made_to_die() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let features = manifest["features"].as_table().unwrap();
    assert!(features.contains_key("failpoints") && !features.contains_key("default"), "{features:?}");
    let built: Vec<_> = dockerfile().into_iter().filter(|(_, arguments)| arguments.contains("cargo build")).collect();
    assert!(!built.is_empty() && built.iter().all(|(_, arguments)| !arguments.contains("features")), "{built:?}");
}
