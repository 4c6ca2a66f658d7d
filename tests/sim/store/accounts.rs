//! Keys, users and sessions over the connection, as they are: nobody in a simulated world signs in.

use super::FaultyStore;
use async_trait::async_trait;
use taskbell::core::time::Millis;
use taskbell::store::{Accounts, ApiKey, Result, Session, User, UserChange};

#[async_trait]
impl Accounts for FaultyStore {
    async fn put_api_key(&self, key: ApiKey) -> Result<()> {
        self.world.memory.put_api_key(key).await
    }

    async fn known_api_keys(&self, hashes: &[String]) -> Result<Vec<ApiKey>> {
        self.world.memory.known_api_keys(hashes).await
    }

    async fn api_keys(&self) -> Result<Vec<ApiKey>> {
        self.world.memory.api_keys().await
    }

    async fn delete_api_key(&self, hash: &str) -> Result<bool> {
        self.world.memory.delete_api_key(hash).await
    }

    async fn add_user(&self, user: User) -> Result<bool> {
        self.world.memory.add_user(user).await
    }

    async fn user(&self, name: &str) -> Result<Option<User>> {
        self.world.memory.user(name).await
    }

    async fn users(&self) -> Result<Vec<User>> {
        self.world.memory.users().await
    }

    async fn change_user(&self, name: &str, change: UserChange, now: Millis) -> Result<bool> {
        self.world.memory.change_user(name, change, now).await
    }

    async fn remove_user(&self, name: &str) -> Result<bool> {
        self.world.memory.remove_user(name).await
    }

    async fn put_session(&self, session: Session) -> Result<()> {
        self.world.memory.put_session(session).await
    }

    async fn session(&self, hash: &str) -> Result<Option<Session>> {
        self.world.memory.session(hash).await
    }

    async fn touch_session(&self, hash: &str, now: Millis) -> Result<()> {
        self.world.memory.touch_session(hash, now).await
    }

    async fn delete_session(&self, hash: &str) -> Result<()> {
        self.world.memory.delete_session(hash).await
    }

    async fn lost_credentials(&self, hashes: &[String], idle_since: Millis) -> Result<Vec<String>> {
        self.world.memory.lost_credentials(hashes, idle_since).await
    }
}
