//! Rows of keys, sessions and users, decoded once for all databases.

use super::row::{Columns, corrupt};
use super::{ApiKey, PasswordHash, Result, Session, User};
use crate::core::principal::{Principal, Role, Scope};
use crate::core::time::Millis;

/// hash, tenant, user, role, scopes, created, expires.
pub(super) fn api_key(cells: &mut impl Columns) -> Result<ApiKey> {
    Ok(ApiKey {
        hash: text(cells)?,
        principal: principal(cells)?,
        created_at: instant(cells)?,
        expires_at: cells.int()?.map(Millis),
    })
}

/// hash, tenant, user, role, scopes, created, used, expires, what it rests on.
pub(super) fn session(cells: &mut impl Columns) -> Result<Session> {
    let (hash, principal) = (text(cells)?, principal(cells)?);
    let (created_at, used_at, expires_at) = (instant(cells)?, instant(cells)?, instant(cells)?);
    let rests_on = cells.int()?.map(Millis);
    Ok(Session { hash, principal, created_at, used_at: used_at.max(created_at), expires_at, rests_on })
}

/// name, tenant, role, password, created, updated.
pub(super) fn user(cells: &mut impl Columns) -> Result<User> {
    Ok(User {
        name: text(cells)?,
        tenant: text(cells)?,
        role: role(cells)?,
        password: PasswordHash(text(cells)?),
        created_at: instant(cells)?,
        updated_at: instant(cells)?,
    })
}

/// The scopes of a key or session as they are stored.
pub(super) fn scope_list(who: &Principal) -> String {
    who.scopes.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(",")
}

fn principal(cells: &mut impl Columns) -> Result<Principal> {
    let (tenant, user, role, scopes) = (text(cells)?, text(cells)?, role(cells)?, text(cells)?);
    Ok(Principal { tenant, user, role, scopes: scopes.split(',').filter_map(Scope::parse).collect() })
}

fn text(cells: &mut impl Columns) -> Result<String> {
    cells.text()?.ok_or_else(|| corrupt("account"))
}

fn instant(cells: &mut impl Columns) -> Result<Millis> {
    cells.int()?.map(Millis).ok_or_else(|| corrupt("account"))
}

fn role(cells: &mut impl Columns) -> Result<Role> {
    Role::parse(&text(cells)?).ok_or_else(|| corrupt("role"))
}
