//! How an entry of `[[actions]]` is read, and what must hold between entries.

use super::action::{Action, HandlerRef};
use super::outside::{RECORD_TYPE, is_record_type, signing_keys};
use super::reader::Section;
use super::sections::http_url;
use super::template;
use crate::core::action::{ConcurrencyRule, IdempotencyRule, Localized};
use crate::core::budget::Budgets;
use crate::core::retry::RetryPolicy;
use std::collections::BTreeMap;
use toml::Value;

/// Reads all actions and checks what they share.
pub(super) fn actions(root: &mut Section<'_>) -> Vec<Action> {
    let mut actions: Vec<Action> = Vec::new();
    for section in root.sections("actions") {
        let cx = section.cx;
        let (key_path, limit_path) = (section.path_of("key"), section.path_of("concurrency.limit"));
        let Some(action) = action(section) else {
            continue;
        };
        if actions.iter().any(|other| other.key == action.key) {
            cx.faults.borrow_mut().push(key_path, format!("`{}` is declared twice", action.key));
        }
        if let Some(other) = actions.iter().find(|other| disagree(other, &action)) {
            cx.faults.borrow_mut().push(
                limit_path,
                format!(
                    "actions that share a concurrency key must agree on its limit; `{}` has another one",
                    other.key
                ),
            );
        }
        actions.push(action);
    }
    actions
}

/// Whether two actions fill one key with different limits. A template with `{action}` is never shared.
fn disagree(a: &Action, b: &Action) -> bool {
    match (&a.concurrency, &b.concurrency) {
        (Some(a), Some(b)) => a.key == b.key && !a.key.contains("{action}") && a.limit != b.limit,
        _ => false,
    }
}

fn action(mut section: Section<'_>) -> Option<Action> {
    let key = section.required_text("key").filter(|key| {
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
        let bytes = key.as_bytes();
        let good = bytes.len() <= 100 && plain(bytes[0]) && bytes.iter().all(|&b| plain(b) || b"._-".contains(&b));
        if !good {
            section.fault("key", "must be [a-z0-9][a-z0-9._-]{0,99}: lower case, digits, dots, underscores, dashes");
        }
        good
    });
    let title = local_text(&mut section, "title").or_else(|| key.clone().map(Localized::plain));
    let group = local_text(&mut section, "group").unwrap_or_default();
    let handler = handler(&mut section);
    let params = schema(&mut section).unwrap_or_else(|| serde_json::json!({}));
    let record = section.text("record");
    if record.as_ref().is_some_and(|name| !is_record_type(name)) {
        section.fault("record", RECORD_TYPE);
    }
    let roles = section.choices("roles");
    if roles.is_empty() {
        section.fault("roles", "must name at least one role");
    }
    let idempotency = section.optional_section("idempotency").map(idempotency);
    let concurrency = section.optional_section("concurrency").and_then(concurrency);
    let retry = retry(section.section("retry"));
    let chunk_timeout_ms = section.duration_ms("chunk_timeout");
    let timeout_ms = section.duration_ms("timeout");
    let budgets = budgets(section.section("budgets"));
    let undo_window_ms = section.duration_ms("undo_window");
    let cancel = section.choice("cancel");
    section.finish();
    Some(Action {
        key: key?,
        title: title?,
        group,
        handler: handler?,
        params,
        record,
        roles,
        idempotency,
        concurrency,
        retry,
        chunk_timeout_ms: chunk_timeout_ms?,
        timeout_ms,
        budgets,
        undo_window_ms: undo_window_ms?,
        cancel,
    })
}

fn local_text(section: &mut Section<'_>, key: &'static str) -> Option<Localized> {
    match section.raw(key)? {
        Value::String(text) if !text.is_empty() => Some(Localized::plain(text)),
        Value::Table(table) if !table.is_empty() => {
            let mut texts = BTreeMap::new();
            for (tag, text) in table {
                let is_tag = tag.len() >= 2
                    && tag
                        .split('-')
                        .all(|part| (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric()));
                match text {
                    Value::String(text) if is_tag && !text.is_empty() => {
                        texts.insert(tag, text);
                    }
                    _ => section.fault(key, format!("`{tag}` must be a language tag such as en or zh-CN, with a text")),
                }
            }
            Some(Localized(texts))
        }
        _ => {
            section.fault(key, "must be a text or a table of language = text");
            None
        }
    }
}

fn handler(section: &mut Section<'_>) -> Option<HandlerRef> {
    const ONE: &str = "must name exactly one of script, http, native and pull, such as { native = \"name\" }";
    let Some(mut table) = section.optional_section("handler") else {
        section.fault("handler", "is missing: name a script, an http address, a native handler or pull = true");
        return None;
    };
    let kinds = ["script", "http", "native", "pull"].into_iter().filter(|kind| table.given(kind)).count();
    if kinds != 1 {
        section.fault("handler", ONE);
    }
    let secret_given = table.given("secret");
    let is_http = table.given("http");
    let native = table.text("native").map(HandlerRef::Native);
    let script = table.text("script").map(|path| HandlerRef::Script(table.cx.resolve(&path)));
    let pull = table.given("pull");
    let pull = (table.flag("pull") && pull).then_some(HandlerRef::Pull);
    let url = http_url(&mut table, "http");
    let keys = if is_http { signing_keys(&mut table) } else { table.secrets("secret").and(None) };
    if secret_given && !is_http {
        table.fault("secret", "belongs to an http handler");
    }
    table.finish();
    if kinds != 1 {
        return None;
    }
    let http = url.and_then(|url| Some(HandlerRef::Http { url, keys: keys? }));
    let read = native.or(script).or(http).or(pull);
    if read.is_none() && !is_http {
        section.fault("handler", ONE);
    }
    read
}

fn schema(section: &mut Section<'_>) -> Option<serde_json::Value> {
    let schema = json(section.raw("params")?);
    if !schema.is_object() {
        section.fault("params", "must be a JSON Schema, written as a table");
        return None;
    }
    if schema.get("type").is_some_and(|kind| kind != "object") {
        section.fault("params", "must describe an object: type = \"object\"");
    }
    if let Err(error) = jsonschema::meta::validate(&schema) {
        section.fault("params", format!("is no JSON Schema: at {}: {error}", error.instance_path()));
    } else if let Err(error) = jsonschema::validator_for(&schema) {
        section.fault("params", format!("is a JSON Schema that cannot be used: {error}"));
    }
    Some(schema)
}

/// A TOML value as JSON; dates become texts.
fn json(value: Value) -> serde_json::Value {
    match value {
        Value::String(text) => text.into(),
        Value::Integer(n) => n.into(),
        Value::Float(n) => n.into(),
        Value::Boolean(on) => on.into(),
        Value::Datetime(at) => at.to_string().into(),
        Value::Array(items) => items.into_iter().map(json).collect(),
        Value::Table(table) => {
            table.into_iter().map(|(key, value)| (key, json(value))).collect::<serde_json::Map<_, _>>().into()
        }
    }
}

fn idempotency(mut section: Section<'_>) -> IdempotencyRule {
    let fields = section.texts("fields");
    for field in &fields {
        if !(["record.id", "record.type"].contains(&field.as_str()) || template::is_params_path(field)) {
            section.fault("fields", format!("`{field}` is no field: write record.id, record.type or params.NAME"));
        }
    }
    let read = IdempotencyRule { fields, keep_ms: section.duration_ms("keep"), conflict: section.choice("conflict") };
    section.finish();
    read
}

fn concurrency(mut section: Section<'_>) -> Option<ConcurrencyRule> {
    let key = section.required_text("key");
    if let Some(Err(message)) = key.as_deref().map(template::check) {
        section.fault("key", message);
    }
    let limit = positive(&mut section, "limit");
    let policy = section.choice("policy");
    let hold = section.choice("hold");
    let max_waiting = positive(&mut section, "max_waiting");
    section.finish();
    Some(ConcurrencyRule { key: key?, limit, policy, hold, max_waiting })
}

fn retry(mut section: Section<'_>) -> RetryPolicy {
    let defaults = RetryPolicy::default();
    let max_attempts = positive(&mut section, "max_attempts");
    let base_ms = section.duration_ms("base").unwrap_or(defaults.base_ms);
    let cap_ms = section.duration_ms("cap").unwrap_or(defaults.cap_ms);
    if base_ms > cap_ms {
        section.fault("base", "must not be longer than `cap`");
    }
    section.finish();
    RetryPolicy { max_attempts, base_ms, cap_ms }
}

fn budgets(mut section: Section<'_>) -> Budgets {
    let read = Budgets {
        memory_bytes: section.size_bytes("memory"),
        statements: u64::try_from(section.int("statements")).expect("the range of statements starts above 0"),
        stack_bytes: section.size_bytes("stack"),
        nesting: positive(&mut section, "nesting"),
        output_bytes: section.size_bytes("output"),
        log_bytes: section.size_bytes("log"),
    };
    section.finish();
    read
}

fn positive(section: &mut Section<'_>, key: &'static str) -> u32 {
    u32::try_from(section.int(key)).expect("the range of this row lies within 32 bits")
}
