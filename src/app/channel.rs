//! Lends the notifications of the database to the bus, which knows no database.

use crate::bus::listen::{Channel, Listener};
use crate::store::postgres::{PostgresChannel, PostgresListener};
use async_trait::async_trait;

/// The notifications of a PostgreSQL database.
pub(super) struct Lent(pub PostgresChannel);

struct LentListener(PostgresListener);

#[async_trait]
impl Channel for Lent {
    async fn listen(&self) -> Result<Box<dyn Listener>, String> {
        let listener = self.0.listen().await.map_err(|e| e.to_string())?;
        Ok(Box::new(LentListener(listener)))
    }

    async fn tell(&self, message: &str) -> Result<(), String> {
        self.0.tell(message).await.map_err(|e| e.to_string())
    }
}

#[async_trait]
impl Listener for LentListener {
    async fn next(&mut self) -> Result<String, String> {
        self.0.next().await.map_err(|e| e.to_string())
    }
}
