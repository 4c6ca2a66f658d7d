//! `taskbell key create`: makes an API key and prints it, alone, on standard output. Works while the server runs; only the
//! key's hash is stored, so it can never be shown again.

use super::{EXIT_FAULT, KeyCommand, KeyCreateArgs};
use crate::app::create_api_key;
use crate::config::{Settings, environment};
use crate::core::principal::{Principal, Scope};
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
    let who = Principal {
        tenant: args.tenant.clone(),
        user: args.user.clone(),
        role: args.role,
        scopes: args.scopes.clone().unwrap_or_else(|| Scope::default_for(args.role)),
    };
    runtime.block_on(create_api_key(&loaded.settings, who, args.ttl))
}
