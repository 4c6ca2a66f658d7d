//! `taskbell key create`: makes an API key and prints it, alone, on standard output. Works while the server runs; only the
//! key's hash is stored, so it can never be shown again.

use super::{EXIT_FAULT, KeyCommand, KeyCreateArgs};
use crate::app::open_store;
use crate::config::{Settings, environment};
use crate::core::principal::{Principal, Scope};
use crate::web::auth::new_api_key;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
#[must_use]
pub fn run(config: Option<&Path>, command: &KeyCommand) -> ExitCode {
    let KeyCommand::Create(args) = command;
    match create(config, args) {
        Ok(key) => {
            let shown = writeln!(std::io::stdout(), "{key}");
            if shown.is_ok() { ExitCode::SUCCESS } else { ExitCode::from(EXIT_FAULT) }
        }
        Err(what) => {
            eprintln!("taskbell: {what}");
            ExitCode::from(EXIT_FAULT)
        }
    }
}

fn create(config: Option<&Path>, args: &KeyCreateArgs) -> Result<String, String> {
    let loaded = Settings::load(config, environment(), false).map_err(|faults| faults.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let store = open_store(&loaded.settings).await.map_err(|e| e.to_string())?.store;
        let principal = Principal {
            tenant: args.tenant.clone(),
            user: args.user.clone(),
            role: args.role,
            scopes: args.scopes.clone().unwrap_or_else(|| Scope::default_for(args.role)),
        };
        let now = store.now().await.map_err(|e| e.to_string())?;
        let (key, row) = new_api_key(principal, args.ttl, now)?;
        store.put_api_key(row).await.map_err(|e| e.to_string())?;
        Ok(key)
    })
}
