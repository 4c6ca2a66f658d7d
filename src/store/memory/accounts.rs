//! Users, sessions and keys in memory.

use super::super::{Accounts, ApiKey, Result, Session, StoreError, User, UserChange};
use super::MemoryStore;
use super::tables::Tables;
use crate::core::time::Millis;
use async_trait::async_trait;
use std::collections::BTreeSet;

impl Tables {
    /// A session that counts: the user it rests on is as it was.
    fn session(&self, hash: &str) -> Option<&Session> {
        let stands = |s: &&Session| {
            let user = self.users.get(&s.principal.user);
            s.rests_on.is_none_or(|then| user.is_some_and(|u| u.updated_at == then))
        };
        self.sessions.get(hash).filter(stands)
    }
}

#[async_trait]
impl Accounts for MemoryStore {
    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        let keys = &mut self.tables.lock().await.api_keys;
        if keys.contains_key(&key.hash) {
            return Err(StoreError::Limit("the hash of an API key is taken".into()));
        }
        keys.insert(key.hash.clone(), key);
        Ok(())
    }

    async fn known_api_keys(&self, hashes: &[String]) -> Result<Vec<ApiKey>> {
        let hashes: BTreeSet<&String> = hashes.iter().collect();
        let keys = &self.tables.lock().await.api_keys;
        Ok(hashes.into_iter().filter_map(|hash| keys.get(hash)).cloned().collect())
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        let mut keys: Vec<ApiKey> = self.tables.lock().await.api_keys.values().cloned().collect();
        keys.sort_by_key(|k| k.created_at);
        Ok(keys)
    }

    async fn delete_api_key(&self, hash: &str) -> Result<bool> {
        Ok(self.tables.lock().await.api_keys.remove(hash).is_some())
    }

    async fn add_user(&self, user: User) -> Result<bool> {
        let users = &mut self.tables.lock().await.users;
        let free = !users.contains_key(&user.name);
        if free {
            users.insert(user.name.clone(), user);
        }
        Ok(free)
    }

    async fn user(&self, name: &str) -> Result<Option<User>> {
        Ok(self.tables.lock().await.users.get(name).cloned())
    }

    async fn users(&self) -> Result<Vec<User>> {
        Ok(self.tables.lock().await.users.values().cloned().collect())
    }

    async fn change_user(&self, name: &str, change: UserChange, now: Millis) -> Result<bool> {
        let users = &mut self.tables.lock().await.users;
        let Some(user) = users.get_mut(name) else { return Ok(false) };
        user.password = change.password.unwrap_or_else(|| user.password.clone());
        user.role = change.role.unwrap_or(user.role);
        user.updated_at = now.max(user.updated_at.plus(1));
        Ok(true)
    }

    async fn remove_user(&self, name: &str) -> Result<bool> {
        Ok(self.tables.lock().await.users.remove(name).is_some())
    }

    async fn put_session(&self, session: Session) -> Result<()> {
        let sessions = &mut self.tables.lock().await.sessions;
        sessions.retain(|_, s| s.expires_at >= session.created_at);
        if sessions.contains_key(&session.hash) {
            return Err(StoreError::Limit("the hash of a session is taken".into()));
        }
        sessions.insert(session.hash.clone(), session);
        Ok(())
    }

    async fn session(&self, hash: &str) -> Result<Option<Session>> {
        Ok(self.tables.lock().await.session(hash).cloned())
    }

    async fn touch_session(&self, hash: &str, now: Millis) -> Result<()> {
        if let Some(session) = self.tables.lock().await.sessions.get_mut(hash) {
            session.used_at = session.used_at.max(now);
        }
        Ok(())
    }

    async fn delete_session(&self, hash: &str) -> Result<()> {
        self.tables.lock().await.sessions.remove(hash);
        Ok(())
    }

    async fn lost_credentials(&self, hashes: &[String], idle_since: Millis) -> Result<Vec<String>> {
        let tables = self.tables.lock().await;
        let held = |hash: &&String| {
            let session = tables.session(hash).is_some_and(|s| s.used_at > idle_since);
            session || tables.api_keys.contains_key(hash.as_str())
        };
        Ok(hashes.iter().filter(|hash| !held(hash)).cloned().collect())
    }
}
