//! What a request may hold, at each limit and one beyond it.

use super::*;
use crate::core::action::{Actions, CancelRight, HandlerRef, Localized, Policy};
use crate::core::budget::Budgets;
use crate::core::retry::RetryPolicy;
use crate::core::task::Hold;
use serde_json::json;

fn action(key: &str) -> Action {
    Action {
        key: key.into(),
        title: Localized::plain(key),
        group: Localized::default(),
        description: Localized::default(),
        handler: HandlerRef::Native("n".into()),
        pack: None,
        params: json!({}),
        record: None,
        roles: vec![Role::User],
        idempotency: None,
        concurrency: None,
        retry: RetryPolicy::default(),
        chunk_timeout_ms: 30_000,
        timeout_ms: None,
        budgets: Budgets::default(),
        undo_window_ms: 0,
        cancel: CancelRight::Owner,
    }
}

fn concurrency(key: &str) -> Option<ConcurrencyRule> {
    Some(ConcurrencyRule { key: key.into(), limit: 1, policy: Policy::Wait, hold: Hold::Task, max_waiting: 9 })
}

fn resolver() -> Resolver {
    let fields = vec!["record.id".to_owned(), "params.file".to_owned()];
    let rule = IdempotencyRule { fields, keep_ms: None, conflict: OnConflict::Reject };
    let actions = vec![
        action("plain"),
        Action { roles: vec![Role::Admin], ..action("for-admins") },
        Action { record: Some("import".into()), ..action("on-imports") },
        Action { idempotency: Some(rule), ..action("by-fields") },
        Action { concurrency: concurrency("k:{request}"), ..action("named") },
        Action { concurrency: concurrency("{owner}:{params.site}"), ..action("by-site") },
    ];
    let catalogue = Catalogue { actions: Actions::new(actions), ..Catalogue::default() };
    Resolver::new(Arc::new(catalogue)).unwrap()
}

fn who(role: Role) -> Principal {
    Principal { tenant: "t".into(), user: "alice".into(), role, scopes: Scope::default_for(role) }
}

fn request(action: &str) -> Request {
    Request { action: action.into(), ..Request::default() }
}

fn record(kind: &str, id: &str) -> Option<RecordRef> {
    Some(RecordRef { kind: kind.into(), id: id.into() })
}

fn faults(request: Request) -> Vec<String> {
    match resolver().submit(&who(Role::User), request) {
        Ok(_) => Vec::new(),
        Err(NotTaken::Invalid(faults)) => faults.into_iter().map(|f| format!("{}: {}", f.path, f.message)).collect(),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn unknown_and_forbidden_actions_look_the_same() {
    for key in ["nope", "for-admins", ""] {
        assert_eq!(resolver().submit(&who(Role::Operator), request(key)).unwrap_err(), NotTaken::UnknownAction);
    }
    assert!(resolver().submit(&who(Role::Admin), request("for-admins")).is_ok());
}

#[test]
fn submitting_for_another_owner_takes_its_scope() {
    let for_bob = Request { owner: Some("bob".into()), ..request("plain") };
    assert!(matches!(resolver().submit(&who(Role::Admin), for_bob.clone()), Err(NotTaken::Forbidden(_))));
    let mut erp = who(Role::User);
    erp.scopes.push(Scope::SubmitAs);
    assert_eq!(resolver().submit(&erp, for_bob).unwrap().owner, "bob");
    let for_self = Request { owner: Some("alice".into()), ..request("plain") };
    assert!(resolver().submit(&who(Role::User), for_self).is_ok());
    let everywhere = Principal { tenant: "*".into(), ..who(Role::Platform) };
    assert!(matches!(resolver().submit(&everywhere, request("plain")), Err(NotTaken::Forbidden(_))));
}

#[test]
fn sizes_are_taken_at_the_cap_and_refused_above_it() {
    let title = |n: usize| Request { title: Some("字".repeat(n)), ..request("plain") };
    assert!(faults(title(200)).is_empty());
    assert_eq!(faults(title(201)), ["title: must have 1 to 200 characters"]);
    assert_eq!(faults(title(0)), ["title: must have 1 to 200 characters"]);
    let key = |n: usize| Request { idempotency_key: Some("k".repeat(n)), ..request("plain") };
    assert!(faults(key(1)).is_empty() && faults(key(255)).is_empty());
    assert_eq!(faults(key(256)), ["idempotencyKey: must have 1 to 255 bytes"]);
    assert_eq!(faults(key(0)), ["idempotencyKey: must have 1 to 255 bytes"]);
    let id = |n: usize| Request { record: record("invoice", &"é".repeat(n)), ..request("plain") };
    assert!(faults(id(127)).is_empty());
    assert_eq!(faults(id(128)), ["record.id: must have 1 to 255 bytes"]);
    // {"a":"…"} costs eight bytes around the text.
    let params = |n: usize| Request { params: Some(json!({"a": "x".repeat(n - 8)})), ..request("plain") };
    assert!(faults(params(limits::PARAMS_BYTES)).is_empty());
    assert!(faults(params(limits::PARAMS_BYTES + 1))[0].starts_with("params: must be at most 262144 bytes"));
    let nested = |n: usize| (1..n).fold(json!({}), |v, _| json!({"a": v}));
    assert!(faults(Request { params: Some(nested(64)), ..request("plain") }).is_empty());
    assert!(faults(Request { params: Some(nested(65)), ..request("plain") })[0].contains("64 levels"));
    assert_eq!(faults(Request { params: Some(json!([])), ..request("plain") }), ["params: must be an object"]);
}

#[test]
fn users_cannot_raise_their_priority_and_nobody_leaves_the_range() {
    let with = |n: i64| Request { priority: Some(n), ..request("plain") };
    assert!(faults(with(0)).is_empty() && faults(with(-100)).is_empty());
    assert_eq!(faults(with(1)), ["priority: may be at most 0 for users"]);
    for n in [-101, 101, i64::MAX, i64::MIN] {
        assert_eq!(faults(with(n)), ["priority: must be between -100 and 100"]);
    }
    assert_eq!(resolver().submit(&who(Role::Operator), with(100)).unwrap().priority, 100);
}

#[test]
fn a_record_is_of_the_type_that_the_action_sits_on_if_it_names_one() {
    let on = |action: &str, kind: &str| faults(Request { record: record(kind, "1"), ..request(action) });
    assert!(on("plain", "invoice").is_empty() && on("on-imports", "import").is_empty());
    assert!(on("plain", "import").is_empty());
    assert_eq!(on("plain", ""), ["record.type: must have 1 to 255 bytes"]);
    assert_eq!(on("plain", "a:b"), ["record.type: must not contain a colon"]);
    assert_eq!(on("on-imports", "invoice"), ["record.type: must be `import`, the record type of this action"]);
    assert!(faults(request("on-imports")).is_empty());
}

#[test]
fn a_callers_key_comes_first_and_one_from_fields_beside_it() {
    let sent = Request {
        record: record("invoice", "42"),
        params: Some(json!({"file": "f"})),
        idempotency_key: Some(" k ".into()),
        ..request("by-fields")
    };
    let keys = resolver().submit(&who(Role::User), sent).unwrap().keys;
    let told: Vec<_> = keys.iter().map(|k| (k.kind, k.key.as_str(), k.keep_ms, k.on_conflict)).collect();
    assert_eq!(
        told,
        [
            (KeyKind::Caller, " k ", 86_400_000, OnConflict::Reject),
            (KeyKind::Fields, r#"["42","f"]"#, 10_000, OnConflict::Reject)
        ]
    );
    let missing = Request { record: record("invoice", "42"), ..request("by-fields") };
    assert_eq!(faults(missing), ["params.file: is needed: this action tells double clicks apart by it"]);
}

#[test]
fn a_concurrency_key_is_taken_only_where_the_action_asks_for_one() {
    let with = |action: &str, key: &str| Request { concurrency_key: Some(key.into()), ..request(action) };
    assert_eq!(faults(with("plain", "a")), ["concurrencyKey: this action does not take one"]);
    assert_eq!(faults(with("by-site", "a"))[0], "concurrencyKey: this action does not take one");
    let key = |r| resolver().submit(&who(Role::User), r).unwrap().slot.unwrap().concurrency.key;
    assert_eq!(key(with("named", " 42 ")), "k: 42 ");
    assert_eq!(faults(with("named", "")), ["concurrencyKey: must have 1 to 255 bytes"]);
    assert!(faults(request("named"))[0].starts_with("concurrencyKey: is needed"));
    assert!(faults(request("by-site"))[0].starts_with("params.site: is needed"));
    let long = Request { params: Some(json!({"site": "s".repeat(300)})), ..request("by-site") };
    assert!(key(long).starts_with("sha256:"));
}

#[test]
fn all_faults_are_told_at_once() {
    let wrong = Request { title: Some(String::new()), priority: Some(7), params: Some(json!(1)), ..request("plain") };
    assert_eq!(faults(wrong).len(), 3);
}
