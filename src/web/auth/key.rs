//! API keys: 32 random bytes, shown once and stored as SHA-256.

use super::key_look_up::KeyLookUp;
use super::{Caller, Via, hash, secret};
use crate::core::account::{check_name, check_tenant};
use crate::core::principal::{Principal, Scope};
use crate::core::time::{Clock, Millis};
use crate::store::{ApiKey, Store, StoreError};
use std::sync::Arc;

/// What every API key begins with.
pub const KEY_PREFIX: &str = "tb_";

/// A new API key: the text to show once, and what is stored of it.
///
/// # Errors
/// In words, when the scopes go beyond the role or the tenant does not fit it.
pub fn new_api_key(principal: Principal, life_ms: Option<i64>, created_at: Millis) -> Result<(String, ApiKey), String> {
    let allowed = Scope::default_for(principal.role);
    let beyond = |s: &&Scope| !allowed.contains(s) && !matches!(s, Scope::SubmitAs | Scope::Worker);
    if let Some(scope) = principal.scopes.iter().find(beyond) {
        return Err(format!("the role {} does not allow the scope {}", principal.role.as_str(), scope.as_str()));
    }
    check_tenant(&principal.tenant, principal.role)?;
    check_name(&principal.user)?;
    if life_ms.is_some_and(|ms| ms <= 0) {
        return Err("a key has to live for a while: its time is over already".into());
    }
    let key = format!("{KEY_PREFIX}{}", secret());
    let expires_at = life_ms.map(|ms| created_at.plus(ms));
    let row = ApiKey { hash: hash(&key), principal, created_at, expires_at };
    Ok((key, row))
}

/// The hash by which a key is stored.
#[must_use]
pub fn key_hash(key: &str) -> String {
    hash(key)
}

/// Whose key it is; `None` for one that is unknown or over.
pub(super) async fn caller_of_key(
    store: &Arc<dyn Store>,
    look_up: &KeyLookUp,
    clock: &Arc<dyn Clock>,
    key: &str,
) -> Result<Option<Caller>, StoreError> {
    let store = store.clone();
    let read = move |hashes: Vec<String>| {
        let store = store.clone();
        async move { store.known_api_keys(&hashes).await }
    };
    let row = look_up.key(clock, hash(key), read).await?;
    Ok(row.filter(|k| k.expires_at.is_none_or(|end| clock.now() < end)).map(|k| Caller {
        principal: k.principal,
        via: Via::Key,
        expires_at: k.expires_at,
        credential: Some(k.hash),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::principal::Role;

    fn principal(tenant: &str, role: Role, scopes: Vec<Scope>) -> Principal {
        Principal { tenant: tenant.into(), user: "u".into(), role, scopes }
    }

    #[test]
    fn a_key_is_stored_as_its_hash_and_never_twice_the_same() {
        let make = || new_api_key(principal("t", Role::User, vec![Scope::TasksRead]), Some(5), Millis(10)).unwrap();
        let ((a, row), (b, _)) = (make(), make());
        assert!(a.starts_with("tb_") && a.len() == 3 + 43 && a != b);
        assert!(row.hash.len() == 64 && !row.hash.contains(&a[3..]));
        assert_eq!((row.created_at, row.expires_at), (Millis(10), Some(Millis(15))));
    }

    #[test]
    fn no_key_goes_beyond_its_role() {
        let make = |tenant: &str, role, scopes| new_api_key(principal(tenant, role, scopes), None, Millis(0));
        assert!(make("t", Role::User, vec![Scope::Admin]).is_err());
        assert!(make("t", Role::Operator, vec![Scope::Schedules]).is_err());
        assert!(make("t", Role::User, vec![Scope::SubmitAs, Scope::Worker]).is_ok());
        assert!(make("*", Role::Admin, vec![]).is_err());
        let over = new_api_key(principal("t", Role::User, vec![]), Some(0), Millis(0));
        assert!(over.unwrap_err().contains("time"), "a key that is over before it is shown");
        let long = Principal { user: "x".repeat(300), ..principal("t", Role::User, vec![]) };
        assert!(new_api_key(long, None, Millis(0)).unwrap_err().contains("name"));
        assert!(make("*", Role::Platform, Scope::default_for(Role::Platform)).is_ok());
    }
}
