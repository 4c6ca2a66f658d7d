//! Users, sessions and keys in a database.

use super::super::account_rows::{self, scope_list};
use super::super::value::{Value, values};
use super::super::{Accounts, ApiKey, Result, Session, User, UserChange};
use super::SqlStore;
use super::driver::Driver;
use crate::core::principal::{Principal, Role};
use crate::core::time::Millis;
use crate::store::row::Columns as _;
use async_trait::async_trait;
use std::collections::BTreeSet;

/// The first five columns of a key or a session.
fn principal_values(hash: String, who: &Principal) -> Vec<Value> {
    values![hash, who.tenant.as_str(), who.user.as_str(), who.role.as_str(), scope_list(who)]
}

#[async_trait]
impl<D: Driver> Accounts for SqlStore<D> {
    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        let mut values = principal_values(key.hash, &key.principal);
        values.extend(values![key.created_at, key.expires_at]);
        self.write(&self.driver.statements().put_api_key, values).await.map(drop)
    }

    async fn known_api_keys(&self, hashes: &[String]) -> Result<Vec<ApiKey>> {
        let rows = self.driver.rows(&self.driver.statements().known_api_keys, values![hashes]).await?;
        rows.into_iter().map(|mut r| account_rows::api_key(&mut r)).collect()
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        let rows = self.driver.rows(&self.driver.statements().api_keys, values![]).await?;
        rows.into_iter().map(|mut r| account_rows::api_key(&mut r)).collect()
    }

    async fn delete_api_key(&self, hash: &str) -> Result<bool> {
        Ok(self.write(&self.driver.statements().delete_api_key, values![hash]).await? > 0)
    }

    async fn add_user(&self, user: User) -> Result<bool> {
        let User { name, tenant, role, password, created_at, updated_at } = user;
        let values = values![name, tenant, role.as_str(), password.0, created_at, updated_at];
        Ok(self.write(&self.driver.statements().add_user, values).await? > 0)
    }

    async fn user(&self, name: &str) -> Result<Option<User>> {
        let rows = self.driver.rows(&self.driver.statements().user, values![name]).await?;
        rows.into_iter().next().map(|mut r| account_rows::user(&mut r)).transpose()
    }

    async fn users(&self) -> Result<Vec<User>> {
        let rows = self.driver.rows(&self.driver.statements().users, values![]).await?;
        rows.into_iter().map(|mut r| account_rows::user(&mut r)).collect()
    }

    async fn change_user(&self, name: &str, change: UserChange, now: Millis) -> Result<bool> {
        let UserChange { password, role } = change;
        let role = role.map(|role: Role| role.as_str().to_owned());
        let values = values![name, password.map(|p| p.0), role, now];
        Ok(self.write(&self.driver.statements().change_user, values).await? > 0)
    }

    async fn remove_user(&self, name: &str) -> Result<bool> {
        Ok(self.write(&self.driver.statements().remove_user, values![name]).await? > 0)
    }

    async fn put_session(&self, session: Session) -> Result<()> {
        let s = self.driver.statements();
        self.write(&s.expired_sessions, values![session.created_at]).await?;
        let mut values = principal_values(session.hash, &session.principal);
        values.extend(values![session.created_at, session.used_at, session.expires_at, session.rests_on]);
        self.write(&s.put_session, values).await.map(drop)
    }

    async fn session(&self, hash: &str) -> Result<Option<Session>> {
        let rows = self.driver.rows(&self.driver.statements().session, values![hash]).await?;
        rows.into_iter().next().map(|mut r| account_rows::session(&mut r)).transpose()
    }

    async fn touch_session(&self, hash: &str, now: Millis) -> Result<()> {
        self.write(&self.driver.statements().touch_session, values![hash, now]).await.map(drop)
    }

    async fn delete_session(&self, hash: &str) -> Result<()> {
        self.write(&self.driver.statements().delete_session, values![hash]).await.map(drop)
    }

    async fn lost_credentials(&self, hashes: &[String], idle_since: Millis) -> Result<Vec<String>> {
        let statement = &self.driver.statements().held_credentials;
        let rows = self.driver.rows(statement, values![hashes, idle_since]).await?;
        let held = rows.into_iter().map(|mut r| Ok(r.text()?.unwrap_or_default()));
        let held: BTreeSet<String> = held.collect::<Result<_>>()?;
        Ok(hashes.iter().filter(|hash| !held.contains(*hash)).cloned().collect())
    }
}
