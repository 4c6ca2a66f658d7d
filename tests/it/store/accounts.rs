//! Users, sessions and API keys, on every kind of store.

use super::fixture::*;
use std::collections::BTreeSet;
use taskbell::core::ids::Head;
use taskbell::core::principal::{Principal, Role, Scope};
use taskbell::core::time::Millis;
use taskbell::store::accounts::{SESSION_IDLE_MS, idle_since};
use taskbell::store::{ApiKey, PasswordHash, Session, User, UserChange};
use tokio::task::JoinSet;

store_suite! {
    keys_are_kept_by_their_hash_listed_and_taken_back
    sessions_are_kept_by_their_hash_until_they_are_over_or_ended
    a_name_is_given_once
    many_who_sign_in_at_once_get_a_session_each_and_clear_up_what_is_over
    any_change_of_a_user_ends_the_sessions_that_rest_on_it
    a_users_version_grows_even_when_the_clock_falls_back
    the_use_of_a_session_is_noted_only_forward
    credentials_that_count_no_more_are_told_from_those_that_do
}

fn who(role: Role, scopes: &[Scope]) -> Principal {
    Principal { tenant: "租户".into(), user: "o'neil".into(), role, scopes: scopes.to_vec() }
}

fn session(f: &Fixture, hash: &str, life_ms: i64) -> Session {
    let (now, principal) = (f.now(), who(Role::Operator, &Scope::ALL));
    let expires_at = now.plus(life_ms);
    Session { hash: hash.into(), principal, created_at: now, used_at: now, expires_at, rests_on: None }
}

/// A user of the name that all these sessions have.
async fn oneil(f: &Fixture) -> User {
    let user = User {
        name: "o'neil".into(),
        tenant: "租户".into(),
        role: Role::Operator,
        password: PasswordHash("$argon2id$one".into()),
        created_at: f.now(),
        updated_at: f.now(),
    };
    assert!(f.store.add_user(user.clone()).await.unwrap());
    user
}

async fn keys_are_kept_by_their_hash_listed_and_taken_back(f: &Fixture) {
    let mut kept = Vec::new();
    for (hash, role, scopes) in
        [("h1", Role::User, &Scope::ALL[..2]), ("h2", Role::Platform, &Scope::ALL), ("h3", Role::Admin, &[])]
    {
        let key = ApiKey { hash: hash.into(), principal: who(role, scopes), created_at: f.now(), expires_at: None };
        f.store.put_api_key(key.clone()).await.unwrap();
        let known = f.store.known_api_keys(std::slice::from_ref(&key.hash)).await.unwrap();
        assert_eq!(known, std::slice::from_ref(&key));
        assert!(f.store.put_api_key(key.clone()).await.is_err(), "a hash is taken once");
        kept.push(key);
        f.pass(1);
    }
    assert_eq!(f.store.api_keys().await.unwrap(), kept, "the oldest first");
    let known = async |hashes: &[&str]| {
        let hashes: Vec<String> = hashes.iter().map(|hash| (*hash).to_owned()).collect();
        let known = f.store.known_api_keys(&hashes).await.unwrap();
        known.into_iter().map(|key| key.hash).collect::<BTreeSet<String>>()
    };
    assert_eq!(known(&["h3", "h9", "h1", "h3"]).await, BTreeSet::from(["h1", "h3"].map(str::to_owned)));
    assert!(known(&[]).await.is_empty() && known(&["h9"]).await.is_empty());
    assert!(f.store.delete_api_key("h2").await.unwrap());
    assert!(!f.store.delete_api_key("h2").await.unwrap());
    assert!(known(&["h2"]).await.is_empty());
    assert_eq!(f.store.api_keys().await.unwrap().len(), 2);
}

async fn sessions_are_kept_by_their_hash_until_they_are_over_or_ended(f: &Fixture) {
    let (short, long) = (session(f, "s", 10), session(f, "l", 1_000));
    f.store.put_session(short.clone()).await.unwrap();
    f.store.put_session(long.clone()).await.unwrap();
    assert!(f.store.put_session(long.clone()).await.is_err(), "a hash is taken once");
    assert_eq!(f.store.session("s").await.unwrap(), Some(short));
    f.pass(11);
    f.store.put_session(session(f, "new", 10)).await.unwrap();
    assert_eq!(f.store.session("s").await.unwrap(), None, "what is over goes when a new one comes");
    assert_eq!(f.store.session("l").await.unwrap(), Some(long));
    f.store.delete_session("l").await.unwrap();
    f.store.delete_session("never was").await.unwrap();
    assert_eq!(f.store.session("l").await.unwrap(), None);
    assert_eq!(f.store.head("租户", "o'neil").await.unwrap(), Head(0));
}

async fn many_who_sign_in_at_once_get_a_session_each_and_clear_up_what_is_over(f: &Fixture) {
    for n in 0..60 {
        f.store.put_session(session(f, &format!("old-{n}"), 10)).await.unwrap();
    }
    f.pass(20);
    let mut at_once = JoinSet::new();
    for n in 0..20 {
        let (store, new) = (f.store.clone(), session(f, &format!("new-{n}"), 1_000));
        at_once.spawn(async move { store.put_session(new).await });
    }
    assert!(at_once.join_all().await.into_iter().all(|kept| kept.is_ok()));
    for n in 0..20 {
        assert!(f.store.session(&format!("new-{n}")).await.unwrap().is_some(), "{n}");
    }
    assert_eq!(f.store.session("old-7").await.unwrap(), None);
}

async fn a_name_is_given_once(f: &Fixture) {
    let first = oneil(f).await;
    let other = User { tenant: "other".into(), password: PasswordHash("two".into()), ..first.clone() };
    assert!(!f.store.add_user(other).await.unwrap(), "in all tenants together");
    assert_eq!(f.store.user("o'neil").await.unwrap(), Some(first.clone()), "and it stays as it was");
    assert_eq!(f.store.user("O'Neil").await.unwrap(), None, "names are compared byte by byte");
    let more = ["ä", "Z", "a"].map(|name| User { name: name.into(), ..first.clone() });
    for user in &more {
        assert!(f.store.add_user(user.clone()).await.unwrap());
    }
    let names: Vec<String> = f.store.users().await.unwrap().into_iter().map(|u| u.name).collect();
    assert_eq!(names, ["Z", "a", "o'neil", "ä"]);
    assert!(f.store.remove_user("Z").await.unwrap() && !f.store.remove_user("Z").await.unwrap());
    assert_eq!(f.store.user("Z").await.unwrap(), None);
    assert!(!f.store.change_user("Z", UserChange::default(), f.now()).await.unwrap());
}

/// Proves: G22.
async fn any_change_of_a_user_ends_the_sessions_that_rest_on_it(f: &Fixture) {
    let user = oneil(f).await;
    let of_demo = session(f, "demo", 1_000);
    f.store.put_session(of_demo.clone()).await.unwrap();
    let password = UserChange { password: Some(PasswordHash("new".into())), role: None };
    let role = UserChange { password: None, role: Some(Role::User) };
    for change in [password, role] {
        let before = f.store.user(&user.name).await.unwrap().unwrap();
        let hash = format!("{change:?}");
        let resting = Session { rests_on: Some(before.updated_at), ..session(f, &hash, 1_000) };
        f.store.put_session(resting.clone()).await.unwrap();
        assert_eq!(f.store.session(&hash).await.unwrap(), Some(resting));
        f.pass(1);
        assert!(f.store.change_user(&user.name, change.clone(), f.now()).await.unwrap());
        assert_eq!(f.store.session(&hash).await.unwrap(), None, "{hash}");
        let after = f.store.user(&user.name).await.unwrap().unwrap();
        assert_eq!(after.password, change.password.unwrap_or(before.password));
        assert_eq!(after.role, change.role.unwrap_or(before.role));
        assert_eq!((after.created_at, after.updated_at), (user.created_at, f.now()));
    }
    // A sign-in that was proven against the row of before comes to nothing, however late it is written.
    let late = Session { rests_on: Some(user.updated_at), ..session(f, "late", 1_000) };
    f.store.put_session(late).await.unwrap();
    assert_eq!(f.store.session("late").await.unwrap(), None);
    let now = f.store.user(&user.name).await.unwrap().unwrap();
    f.store.put_session(Session { rests_on: Some(now.updated_at), ..session(f, "now", 1_000) }).await.unwrap();
    assert!(f.store.remove_user(&user.name).await.unwrap());
    assert_eq!(f.store.session("now").await.unwrap(), None);
    assert_eq!(f.store.session("demo").await.unwrap(), Some(of_demo), "what rests on no user stays");
}

async fn a_users_version_grows_even_when_the_clock_falls_back(f: &Fixture) {
    let user = oneil(f).await;
    for n in 1..=3 {
        let change = UserChange { password: None, role: Some(Role::User) };
        assert!(f.store.change_user(&user.name, change, Millis(0)).await.unwrap());
        let after = f.store.user(&user.name).await.unwrap().unwrap();
        assert_eq!(after.updated_at, user.updated_at.plus(n));
    }
}

async fn the_use_of_a_session_is_noted_only_forward(f: &Fixture) {
    let made = session(f, "s", 1_000);
    f.store.put_session(made.clone()).await.unwrap();
    for (at, noted) in [(20, 20), (10, 20), (30, 30)] {
        f.store.touch_session("s", made.created_at.plus(at)).await.unwrap();
        assert_eq!(f.store.session("s").await.unwrap().unwrap().used_at, made.created_at.plus(noted));
    }
    f.store.touch_session("never was", f.now()).await.unwrap();
}

async fn credentials_that_count_no_more_are_told_from_those_that_do(f: &Fixture) {
    let user = oneil(f).await;
    let key = ApiKey { hash: "key".into(), principal: who(Role::User, &[]), created_at: f.now(), expires_at: None };
    f.store.put_api_key(key).await.unwrap();
    f.store.put_session(session(f, "demo", i64::MAX / 2)).await.unwrap();
    let resting = Session { rests_on: Some(user.updated_at), ..session(f, "resting", i64::MAX / 2) };
    f.store.put_session(resting).await.unwrap();
    let held = ["demo", "gone", "key", "resting"].map(str::to_owned);
    let lost = async || {
        let mut lost = f.store.lost_credentials(&held, idle_since(f.now())).await.unwrap();
        lost.sort();
        lost
    };
    assert_eq!(lost().await, ["gone"]);
    assert!(f.store.lost_credentials(&[], idle_since(f.now())).await.unwrap().is_empty());
    f.pass(SESSION_IDLE_MS - 1);
    assert_eq!(lost().await, ["gone"]);
    f.store.touch_session("resting", f.now()).await.unwrap();
    f.pass(1);
    assert_eq!(lost().await, ["demo", "gone"], "idle for too long");
    assert!(f.store.delete_api_key("key").await.unwrap());
    let change = UserChange { password: None, role: Some(Role::User) };
    assert!(f.store.change_user(&user.name, change, f.now()).await.unwrap());
    assert_eq!(lost().await, held);
}
