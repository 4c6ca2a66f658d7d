//! Promises of the configuration as a whole.

use super::*;
use crate::core::action::{CancelRight, OnConflict};
use crate::core::budget::Budgets;
use crate::core::principal::Role;
use crate::core::retry::RetryPolicy;
use crate::core::task::WAKES_WITHIN_MS;
use std::collections::BTreeSet;

/// A configuration that sets every key there is; what it sets is compared with the rows.
const EVERYTHING: &str = include_str!("everything.toml");

fn load(toml: &str, env: &[(&str, &str)]) -> Result<Loaded, Faults> {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("taskbell.toml");
    std::fs::write(&file, toml).unwrap();
    std::fs::write(dir.path().join("erp.pem"), include_str!("../../tests/keys/ed.public.pem")).unwrap();
    Settings::load(Some(&file), pairs(env), false)
}

fn pairs(env: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect::<Vec<_>>().into_iter()
}

fn everything() -> Loaded {
    let hook = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    load(EVERYTHING, &[("ERP_SECRET", "erp-signing-key-of-at-least-32-bytes"), ("HOOK_SECRET", hook)]).unwrap()
}

fn faults(toml: &str) -> String {
    load(toml, &[]).expect_err("the configuration has faults").to_string()
}

/// The shapes of all keys below a value: list entries as `[]`, free tables (schemas, texts by language, words) as one key.
fn shapes(path: &str, value: &toml::Value, into: &mut BTreeSet<String>) {
    let free = ["params", "title", "group", "words", "secret", "public_key"];
    match value {
        toml::Value::Table(table) if !free.iter().any(|key| path.ends_with(key)) => {
            for (key, value) in table {
                shapes(&format!("{path}{}{key}", if path.is_empty() { "" } else { "." }), value, into);
            }
        }
        toml::Value::Array(items) if items.iter().any(toml::Value::is_table) => {
            if path == "auth.jwt" {
                into.insert(path.to_owned());
            }
            for item in items {
                shapes(&format!("{path}[]"), item, into);
            }
        }
        _ => {
            into.insert(path.to_owned());
        }
    }
}

#[test]
fn every_setting_has_its_row_and_every_row_is_a_setting() {
    everything();
    let mut set = BTreeSet::new();
    shapes("", &toml::Value::Table(EVERYTHING.parse().unwrap()), &mut set);
    let rows: BTreeSet<String> = ROWS.iter().map(|row| row.key.to_owned()).collect();
    assert_eq!(rows, set);
    assert_eq!(rows.len(), ROWS.len(), "no key has two rows");
    assert_eq!(markdown().lines().count(), ROWS.len());
}

#[test]
fn every_row_says_what_it_means_and_its_default_is_within_its_range() {
    for row in ROWS {
        assert!(row.meaning.len() > 20 && row.meaning.ends_with('.'), "{}", row.key);
        let Some(default) = row.default_value() else {
            continue;
        };
        let text = default.as_str().unwrap_or_default().to_owned();
        match row.allowed {
            Allowed::Range(least, most) => {
                assert!((least..=most).contains(&default.as_integer().unwrap()), "{}", row.key)
            }
            Allowed::Duration(least, most) => {
                let [least, text, most] = [least, &text, most].map(|text| quantity::duration_ms(text).unwrap());
                assert!(least <= text && text <= most, "{}", row.key);
            }
            Allowed::Size(least, most) => {
                let [least, text, most] = [least, &text, most].map(|text| quantity::size_bytes(text).unwrap());
                assert!(least <= text && text <= most, "{}", row.key);
            }
            Allowed::OneOf(words) => {
                assert!(words.contains(&text.as_str()) || default.as_array().is_some(), "{}", row.key);
            }
            Allowed::Free => {}
        }
    }
}

#[test]
fn without_a_file_and_without_settings_it_is_the_demo() {
    let loaded = Settings::load(None, pairs(&[("PATH", "/bin"), ("TASKBELL_URL", "http://x")]), false).unwrap();
    assert!(loaded.demo);
    assert_eq!(loaded.settings.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(loaded.settings.engine.heartbeat_ms, 10_000);
    let DatabaseUrl::Sqlite(path) = &loaded.settings.database.url else { panic!("the default is SQLite") };
    assert!(path.is_absolute() && path.ends_with("data/taskbell.db"));
    let other = [("TASKBELL__SERVER__LISTEN", "127.0.0.1:9")];
    assert!(!Settings::load(None, pairs(&other), false).unwrap().demo);
    assert!(Settings::load(None, pairs(&other), true).unwrap().demo);
    assert!(!load("", &[]).unwrap().demo);
}

#[test]
fn the_demo_has_its_own_buttons_in_two_languages_and_takes_settings_like_any_other() {
    let loaded = Settings::load(None, pairs(&[("TASKBELL__ACTIONS__0__CANCEL", "operator")]), true).unwrap();
    let actions = loaded.settings.declared();
    assert_eq!(actions.len(), 6);
    for action in &actions {
        for text in [&action.title, &action.group, &action.description] {
            let other = text.get("zh-CN");
            assert!(!other.is_empty() && other != text.get("en"), "{}: {text:?}", action.key);
        }
        for (name, field) in action.params["properties"].as_object().unwrap() {
            let named = crate::core::schema::schema_text(field, "title");
            assert!(named.get("zh-CN") != named.get("en"), "{}: {name}", action.key);
        }
    }
    assert_eq!(loaded.settings.action("import-customers").unwrap().cancel, CancelRight::Operator);
    assert!(loaded.not_active().is_empty());
    let own = Settings::load(None, pairs(&[("TASKBELL__LOG__LEVEL", "warn")]), false).unwrap();
    assert!(own.settings.actions.is_empty(), "with settings of one's own there are no buttons of the demo");
}

#[test]
fn the_demo_is_refused_off_loopback_and_with_a_file() {
    let public = Settings::load(None, pairs(&[("TASKBELL__SERVER__LISTEN", "0.0.0.0:8080")]), true).unwrap_err();
    assert!(public.to_string().starts_with("server.listen: must be a loopback address in demo mode"), "{public}");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.toml");
    std::fs::write(&file, "").unwrap();
    assert!(
        Settings::load(Some(&file), pairs(&[]), true)
            .unwrap_err()
            .to_string()
            .contains("no demo with a configuration file")
    );
}

#[test]
fn the_whole_contract_is_read() {
    let loaded = everything();
    let settings = &loaded.settings;
    assert_eq!(settings.server.allowed_origins, ["https://erp.example.com"]);
    assert_eq!(settings.database.synchronous, Synchronous::Normal);
    assert_eq!(settings.log.level, tracing::Level::DEBUG);
    assert_eq!(settings.jwt[0].key.expose(), "erp-signing-key-of-at-least-32-bytes");
    assert_eq!(settings.records[0].write_back.as_ref().unwrap().words["running"], "后台处理中");
    let action = settings.action("import-customers").unwrap();
    assert_eq!(action.title.get("zh-CN"), "导入客户");
    assert_eq!(action.title.get("zh"), "导入客户");
    assert_eq!(action.title.get("fr"), "Import customers");
    assert_eq!(action.idempotency.as_ref().unwrap().keep_ms, Some(10_000));
    assert_eq!(action.budgets.memory_bytes, 64 << 20);
    assert_eq!(action.timeout_ms, Some(6 * 3_600_000));
    assert_eq!(action.concurrency.as_ref().unwrap().max_waiting, 50);
    let told: Vec<String> = loaded.not_active().0.into_iter().map(|note| note.key).collect();
    assert_eq!(told, ["scheduler", "webhooks", "records[0].write_back"]);
}

#[test]
fn an_action_has_the_defaults_of_the_contract() {
    let loaded = load("[[actions]]\nkey = \"a\"\nhandler = { native = \"n\" }", &[]).unwrap();
    let action = loaded.settings.action("a").unwrap();
    assert_eq!(action.title.get("en"), "a");
    assert_eq!(action.retry, RetryPolicy::default());
    assert_eq!((action.chunk_timeout_ms, action.timeout_ms, action.undo_window_ms), (30_000, None, 0));
    assert_eq!((action.roles.as_slice(), action.cancel), (&[Role::User][..], CancelRight::Owner));
    assert_eq!(action.budgets, Budgets::default());
    assert_eq!(
        (action.budgets.memory_bytes, action.budgets.statements, action.budgets.nesting),
        (64 << 20, 50_000_000, 32)
    );
    assert!(action.concurrency.is_none() && action.idempotency.is_none());
    assert_eq!(action.params, serde_json::json!({}));
    assert_eq!(loaded.settings.declared()[0].key, "a");
    assert!(loaded.not_active().is_empty(), "defaults ask for nothing");
}

#[test]
fn all_faults_are_told_at_once_each_with_its_key() {
    let text = faults(
        r#"
        colour = "red"
        [server]
        lisen = "127.0.0.1:1"
        public_url = "ftp://x"
        [database]
        url = "oracle://x"
        migrate = "chek"
        [engine]
        parallelism = 0
        lease_ms = 9000
        heartbeat_ms = 3001
        [log]
        level = 7
        [[actions]]
        key = "Upper"
        handler = { native = "n", script = "s.js" }
        chunk_timeout = "601s"
        retry = { base = "10m" }
        concurrency = { key = "x:{tennant}" }
        roles = ["usr"]
        [[actions]]
        handler = { natve = "n" }
        "#,
    );
    for line in [
        "server.lisen: does not exist; did you mean `listen`?",
        "server.public_url: must be an http or https address",
        "database.url: must start with sqlite:, postgres: or mysql:",
        "database.migrate: must be one of auto, check, not `chek`; did you mean `check`?",
        "engine.parallelism: must be 1 to 1024 chunks, not 0",
        "engine.heartbeat_ms: must be at most a third of engine.lease_ms (9000), so at most 3000, not 3001",
        "log.level: must be a text, not a whole number",
        "actions[0].key: must be [a-z0-9]",
        "actions[0].handler: must name exactly one of",
        "actions[0].chunk_timeout: must be 10ms to 600s, not 601s",
        "actions[0].retry.base: must not be longer than `cap`",
        "actions[0].concurrency.key: has no placeholder {tennant}; did you mean {tenant}?",
        "actions[0].roles: must be one of user, operator, admin, platform, not `usr`; did you mean `user`?",
        "actions[1].key: is missing",
        "actions[1].handler.natve: does not exist; did you mean `native`?",
        "colour: does not exist",
    ] {
        assert!(text.lines().any(|found| found.starts_with(line)), "no line {line} in\n{text}");
    }
}

#[test]
fn a_key_of_fields_has_the_defaults_of_the_contract() {
    let action = "[[actions]]\nkey = \"a\"\nhandler = { native = \"n\" }\nidempotency = { fields = [\"record.id\"] }";
    let loaded = load(action, &[]).unwrap();
    let rule = loaded.settings.actions[0].idempotency.as_ref().unwrap();
    assert_eq!((rule.conflict, rule.keep_ms), (OnConflict::Return, None));
    assert!(faults(&action.replace("record.id", "record.name")).starts_with("actions[0].idempotency.fields: "));
}

#[test]
fn a_shorter_lease_brings_a_shorter_heartbeat() {
    let loaded = load("[engine]\nlease_ms = 3000", &[]).unwrap();
    assert_eq!(loaded.settings.engine.heartbeat_ms, 1000);
    assert!(load("[engine]\nlease_ms = 3000\nheartbeat_ms = 1000", &[]).is_ok());
}

#[test]
fn the_environment_reaches_every_key_and_wins() {
    let loaded = load(
        "[engine]\nlease_ms = 40000\n[[actions]]\nkey = \"a\"\nhandler = { native = \"n\" }",
        &[
            ("TASKBELL__ENGINE__LEASE_MS", "60000"),
            ("TASKBELL__ENGINE__TENANTS", "a, b"),
            ("TASKBELL__SERVER__ALLOWED_ORIGINS", "[\"https://a.example\", \"http://b.example:80\"]"),
            ("TASKBELL__LOG__FORMAT", "json"),
            ("TASKBELL__ACTIONS__0__RETRY__MAX_ATTEMPTS", "7"),
            ("TASKBELL__ACTIONS__1__KEY", "1234"),
            ("TASKBELL__ACTIONS__1__HANDLER", "{ native = \"m\" }"),
            ("TASKBELL__DATABASE__URL", "sqlite://elsewhere.db"),
        ],
    )
    .unwrap();
    let settings = &loaded.settings;
    assert_eq!((settings.engine.lease_ms, settings.log.format), (60_000, LogFormat::Json));
    assert_eq!(settings.engine.tenants, ["a", "b"]);
    assert_eq!(settings.server.allowed_origins, ["https://a.example", "http://b.example"]);
    assert_eq!(settings.actions[0].retry.max_attempts, 7);
    assert_eq!(settings.actions[1].key, "1234", "digits stay a text where a text is wanted");
    assert_eq!(settings.actions[1].handler, HandlerRef::Native("m".to_owned()));
    let DatabaseUrl::Sqlite(path) = &settings.database.url else { panic!("SQLite") };
    assert_eq!(path.parent(), loaded.file.as_deref().and_then(Path::parent), "paths count from the file");
}

#[test]
fn an_environment_variable_that_names_no_setting_is_a_fault() {
    let text = load("", &[("TASKBELL__DATABASE__URI", "sqlite://x")]).unwrap_err().to_string();
    assert_eq!(text, "database.uri: does not exist; did you mean `url`?");
    assert!(load("", &[("TASKBELL__", "1")]).is_err());
    assert!(load("[server]\nlisten = \"127.0.0.1:1\"", &[("TASKBELL__SERVER__LISTEN__X", "1")]).is_err());
}

#[test]
fn secrets_come_from_text_environment_or_file_and_are_never_shown() {
    let toml = r#"
        [database]
        url = "postgres://bell:p%40s%C3%BC@db.example/bell?application_name=deep"
        [redis]
        url = { env = "REDIS" }
        [auth]
        jwt = [{ issuer = "erp", secret = { file = "key.txt" } }]
    "#;
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("t.toml");
    std::fs::write(&file, toml).unwrap();
    std::fs::write(dir.path().join("key.txt"), "from-a-file-of-at-least-32-bytes\n").unwrap();
    let loaded = Settings::load(Some(&file), pairs(&[("REDIS", "redis://:p#x@127.0.0.1:6379")]), false);
    assert!(
        loaded.unwrap_err().to_string().starts_with("redis.url: must be an address"),
        "a raw # in a password is no address"
    );
    let loaded = Settings::load(Some(&file), pairs(&[("REDIS", "redis://:p%23x@127.0.0.1:6379")]), false).unwrap();
    assert_eq!(loaded.settings.jwt[0].key.expose(), "from-a-file-of-at-least-32-bytes");
    let shown = format!("{loaded:?} {} {}", loaded.settings.database.url, loaded.settings.unrunnable(&[]));
    for hidden in ["p%40s%C3%BC", "p@sü", "p#x", "p%23x", "from-a-file", "deep"] {
        assert!(!shown.contains(hidden), "{hidden} in {shown}");
    }
    let masked: Vec<&str> = loaded.secrets.iter().map(Secret::expose).collect();
    for kept in ["p@sü", "p%40s%C3%BC", "p#x", "from-a-file-of-at-least-32-bytes"] {
        assert!(masked.contains(&kept), "{kept}");
    }
}

#[test]
fn a_secret_that_cannot_be_read_is_a_fault_that_names_where_it_should_be() {
    let text = faults(
        "[redis]\nurl = { env = \"NOWHERE\" }\n[auth]\njwt = [{ issuer = \"e\", secret = { file = \"gone\" } }]",
    );
    assert!(text.contains("redis.url: the environment variable NOWHERE is not set"), "{text}");
    assert!(text.contains("auth.jwt[0].secret: the file "), "{text}");
}

#[test]
fn a_file_that_is_no_toml_tells_the_line_and_never_the_text() {
    let text = faults("[redis]\nurl = \"redis://:hunter2@host\n");
    assert!(text.contains("line 2 is not valid TOML") && !text.contains("hunter2"), "{text}");
}

#[test]
fn one_concurrency_key_has_one_limit() {
    let action = |key: &str, template: &str, limit: u32| {
        format!(
            "[[actions]]\nkey = \"{key}\"\nhandler = {{ native = \"n\" }}\nconcurrency = {{ key = \"{template}\", limit = {limit} }}\n"
        )
    };
    let text = faults(&(action("a", "x:{tenant}", 1) + &action("b", "x:{tenant}", 2)));
    assert_eq!(
        text,
        "actions[1].concurrency.limit: actions that share a concurrency key must agree on its limit; `a` has another one"
    );
    assert!(load(&(action("a", "x", 2) + &action("b", "x", 2)), &[]).is_ok());
    assert!(load(&(action("a", "{action}", 1) + &action("b", "{action}", 2)), &[]).is_ok());
    assert!(faults(&(action("a", "x", 1) + &action("a", "y", 1))).contains("actions[1].key: `a` is declared twice"));
}

#[test]
fn params_are_a_schema_that_compiles() {
    let schema = |text: &str| format!("[[actions]]\nkey = \"a\"\nhandler = {{ native = \"n\" }}\nparams = {text}");
    assert!(
        load(&schema("{ type = \"object\", properties = { n = { type = \"integer\", minimum = 1 } } }"), &[]).is_ok()
    );
    for bad in [
        "\"object\"",
        "{ type = \"string\" }",
        "{ type = \"object\", properties = { n = { type = \"intger\" } } }",
        "{ type = \"object\", required = \"n\" }",
        "{ \"$ref\" = \"https://elsewhere.example/schema.json\" }",
        "{ properties = { n = { pattern = \"(\" } } }",
    ] {
        assert!(faults(&schema(bad)).starts_with("actions[0].params: "), "{bad}");
    }
}

#[test]
fn the_fields_of_a_form_stand_in_the_order_of_the_file() {
    let params = "{ type = 'object', properties = { name = {}, email = { type = 'string' }, age = {} } }";
    let loaded =
        load(&format!("[[actions]]\nkey = 'a'\nhandler = {{ native = 'n' }}\nparams = {params}"), &[]).unwrap();
    let fields: Vec<String> =
        loaded.settings.actions[0].params["properties"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(fields, ["name", "email", "age"]);
}

#[test]
fn what_cannot_be_served_is_told_with_its_key() {
    let loaded = load(
        r#"
        [database]
        url = "mysql://u:secret@db/x"
        [files]
        url = "s3://bucket/x"
        [[actions]]
        key = "a"
        handler = { native = "demo-imprt" }
        [[actions]]
        key = "b"
        handler = { script = "handlers/none.js" }
        [[actions]]
        key = "c"
        handler = { http = "https://erp.example.com/run", secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw" }
        [[actions]]
        key = "d"
        handler = { pull = true }
        "#,
        &[],
    )
    .unwrap();
    let faults = loaded.settings.unrunnable(&["demo-import"]);
    let keys: Vec<&str> = faults.0.iter().map(|fault| fault.key.as_str()).collect();
    assert_eq!(keys, ["actions[0].handler.native", "actions[1].handler.script", "database.url", "files.url"]);
    let text = faults.to_string();
    assert!(text.contains("did you mean `demo-import`?"), "{text}");
    let unlisted = loaded.settings.not_listed().to_string();
    assert!(unlisted.starts_with("actions[2].handler.http: the action `c` cannot run: "), "{unlisted}");
    assert!(!text.contains("secret"), "{text}");
}

/// Every place in a tree: the path of keys and indices that leads to it.
fn places(value: &toml::Value, here: &[String], into: &mut Vec<Vec<String>>) {
    let inner: Vec<(String, &toml::Value)> = match value {
        toml::Value::Table(table) => table.iter().map(|(key, value)| (key.clone(), value)).collect(),
        toml::Value::Array(items) => (0..).map(|i: usize| i.to_string()).zip(items).collect(),
        _ => return,
    };
    for (key, value) in inner {
        let path = [here, &[key]].concat();
        places(value, &path, into);
        into.push(path);
    }
}

#[test]
fn no_value_anywhere_makes_it_panic_and_a_refusal_always_names_a_key() {
    let whole = toml::Value::Table(EVERYTHING.parse().unwrap());
    let mut all = Vec::new();
    places(&whole, &[], &mut all);
    assert!(all.len() > 100);
    let odd = [
        "0",
        "-1",
        "9223372036854775807",
        "nan",
        "true",
        "''",
        "'x'",
        "'\u{fc}'",
        "\"\\u0000\"",
        "1979-05-27",
        "[]",
        "[1]",
        "['']",
        "{}",
        "{ x = 1 }",
    ];
    for path in all {
        for text in odd {
            let mut changed = whole.clone();
            let mut place = &mut changed;
            for key in &path {
                place = match place {
                    toml::Value::Array(items) => &mut items[key.parse::<usize>().unwrap()],
                    other => &mut other[key.as_str()],
                };
            }
            *place = text.parse().unwrap();
            if let Err(faults) = load(&changed.to_string(), &[("ERP_SECRET", "s"), ("HOOK_SECRET", "h")]) {
                assert!(
                    faults.0.iter().all(|fault| !fault.key.is_empty() && !fault.message.is_empty()),
                    "{path:?} = {text}"
                );
            }
        }
    }
}

#[test]
fn every_poll_that_can_be_set_comes_before_a_task_that_wakes_nobody_is_due() {
    let Allowed::Range(_, most_ms) = rows::find("engine.poll_ms").unwrap().allowed else { panic!("a range") };
    // A poll has a jitter of a quarter.
    assert!(most_ms * 5 / 4 < WAKES_WITHIN_MS);
}
