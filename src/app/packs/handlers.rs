//! The handlers of a pack: its scripts with what its manifest lets them reach, and with nothing of whoever clicked.

use super::{Build, HandlersByAction, ScriptProcesses};
use crate::app::pack_tables::PackTables;
use crate::app::user_level;
use crate::config::{DatabaseUrl, Manifest};
use crate::core::action::Action;
use crate::core::hosts::AllowList;
use crate::core::pack::Permission;
use crate::handler::Handler;
use crate::handler::script::{Library, ScriptHandler};
use crate::handler::tables::TableData;
use crate::outbound::Outbound;
use crate::store::pack;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// What makes the handlers of packs on this node.
pub(in crate::app) fn builder(processes: Arc<ScriptProcesses>, outbound: Arc<Outbound>) -> Box<Build> {
    Box::new(move |manifest, actions, database| build(&processes, &outbound, manifest, actions, database))
}

fn build(
    processes: &ScriptProcesses,
    outbound: &Arc<Outbound>,
    manifest: &Manifest,
    actions: &[(Arc<Action>, String)],
    database: &DatabaseUrl,
) -> Result<HandlersByAction, String> {
    let pack = &manifest.pack;
    let library = Arc::new(Library::of_pack(pack));
    let hosts = AllowList::parse(&pack.hosts).map_err(|bad| format!("hosts: {} is no host", bad.join(", ")))?;
    let tables = tables(manifest, database)?;
    let mut handlers = BTreeMap::new();
    for (action, script) in actions {
        let pool = processes.pool().map_err(|error| format!("its scripts cannot be run: {error}"))?;
        let timeout = Duration::from_millis(action.chunk_timeout_ms.unsigned_abs());
        let handler = ScriptHandler::of_library(&library, script, action.budgets, timeout, pool)
            .ok_or_else(|| format!("there is no script `{script}`"))?
            .with_outbound(outbound.clone())
            .with_hosts(hosts.clone())
            .with_user_level(user_level(action));
        let handler = if pack.may(Permission::SubmitTasks) { handler } else { handler.without_children() };
        let handler = match &tables {
            Some(tables) => handler.with_tables(tables.clone()),
            None => handler,
        };
        handlers.insert(action.key.clone(), Arc::new(handler) as Arc<dyn Handler>);
    }
    Ok(handlers)
}

/// The tables of a pack in its database, which is asked with the first question; none where the manifest names none.
fn tables(manifest: &Manifest, database: &DatabaseUrl) -> Result<Option<Arc<dyn TableData>>, String> {
    let of = &manifest.pack;
    if of.tables.is_empty() {
        return Ok(None);
    }
    let opened = match database {
        DatabaseUrl::Sqlite(path) => pack::sqlite(path),
        DatabaseUrl::Postgres(url) => pack::postgres(url.expose()),
        DatabaseUrl::MySql(_) => return Err("database.url must start with sqlite: or postgres:".to_owned()),
    };
    let opened = opened.map_err(|error| format!("its database: {error}"))?;
    Ok(Some(Arc::new(PackTables::new(&of.name, of.tables.clone(), opened))))
}
