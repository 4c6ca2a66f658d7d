//! The database of a pack behind what handlers know of it. Tables are made and looked at with the first question, not at the
//! start: a pack's database that is away holds up nothing but the pack.

use crate::core::pack::Table;
use crate::core::tables::{Ask, Found};
use crate::handler::tables::{ChunkMark, TableData, TableFault, TableWork};
use crate::store::StoreError;
use crate::store::pack::{Marked, PackDatabase, PackWork};
use async_trait::async_trait;
use std::time::Duration;
use tokio::sync::OnceCell;

/// The tables of a pack in its database.
pub struct PackTables {
    pack: String,
    tables: Vec<Table>,
    database: Box<dyn PackDatabase>,
    prepared: OnceCell<()>,
}

impl PackTables {
    /// The tables of a pack, by its name.
    pub fn new(pack: &str, tables: Vec<Table>, database: Box<dyn PackDatabase>) -> Self {
        Self { pack: pack.to_owned(), tables, database, prepared: OnceCell::new() }
    }

    async fn ready(&self) -> Result<&dyn PackDatabase, TableFault> {
        let prepare = || async {
            let made = self.database.prepare(&self.tables).await.map_err(fault)?;
            for table in made {
                tracing::info!(pack = self.pack, table, "made a table that the manifest names and the database lacked");
            }
            Ok(())
        };
        self.prepared.get_or_try_init(prepare).await?;
        Ok(self.database.as_ref())
    }
}

fn fault(error: StoreError) -> TableFault {
    match error {
        StoreError::Limit(why) | StoreError::Corrupt(why) => TableFault::Refused(why),
        other => TableFault::Away(other.to_string()),
    }
}

#[async_trait]
impl TableData for PackTables {
    fn tables(&self) -> &[Table] {
        &self.tables
    }

    async fn marked(&self, task: &str) -> Result<Option<(i64, String)>, TableFault> {
        self.ready().await?.mark(task).await.map_err(fault)
    }

    async fn look(&self, ask: &Ask<'_>) -> Result<Found, TableFault> {
        self.ready().await?.look(ask).await.map_err(fault)
    }

    async fn begin(&self, time: Duration) -> Result<Box<dyn TableWork>, TableFault> {
        let work = self.ready().await?.begin(time).await.map_err(fault)?;
        Ok(Box::new(Changes(work)))
    }
}

struct Changes(Box<dyn PackWork>);

#[async_trait]
impl TableWork for Changes {
    async fn ask(&mut self, ask: &Ask<'_>) -> Result<Found, TableFault> {
        self.0.ask(ask).await.map_err(fault)
    }

    async fn commit(self: Box<Self>, mark: &ChunkMark<'_>) -> Result<bool, TableFault> {
        let &ChunkMark { task, chunk, token, answer } = mark;
        self.0.commit(&Marked { task, chunk, token, outcome: answer }).await.map_err(fault)
    }
}
