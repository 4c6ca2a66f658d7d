//! `taskbell key …`: makes an API key and prints it, alone, on standard output; lists keys; takes one back. Works while the
//! server runs. Only the key's hash is stored, so it can never be shown again.

use super::KeyCommand;
use crate::app::accounts::Accounts;
use crate::config::{Settings, environment};
use crate::core::principal::{Principal, Scope};
use std::path::Path;
use std::process::ExitCode;

/// The characters of a hash that are printed as the id of a key: enough to tell any two apart.
const ID_CHARS: usize = 12;

/// Runs the command.
#[must_use]
pub fn run(config: Option<&Path>, command: &KeyCommand) -> ExitCode {
    super::answered(told(config, command))
}

fn told(config: Option<&Path>, command: &KeyCommand) -> Result<String, String> {
    let loaded = Settings::load(config, environment(), false).map_err(|faults| faults.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let accounts = Accounts::open(&loaded.settings).await?;
        match command {
            KeyCommand::Create(args) => {
                let who = Principal {
                    tenant: args.tenant.clone(),
                    user: args.user.clone(),
                    role: args.role,
                    scopes: args.scopes.clone().unwrap_or_else(|| Scope::default_for(args.role)),
                };
                Ok(format!("{}\n", accounts.create_key(who, args.ttl).await?))
            }
            KeyCommand::List => {
                let lines = accounts.keys().await?.into_iter().map(|key| {
                    let who = key.principal;
                    let scopes = who.scopes.iter().map(|s| s.as_str()).collect::<Vec<_>>().join(",");
                    let until = key.expires_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                    let id = key.hash.get(..ID_CHARS).unwrap_or(&key.hash).to_owned();
                    let (role, since) = (who.role.as_str(), key.created_at);
                    format!("{id}\t{}\t{}\t{role}\t{scopes}\t{since}\t{until}\n", who.tenant, who.user)
                });
                Ok(lines.collect())
            }
            KeyCommand::Revoke { key } => {
                let who = accounts.revoke_key(key).await?;
                Ok(format!("the key of {} in the tenant {} is taken back\n", who.user, who.tenant))
            }
        }
    })
}
