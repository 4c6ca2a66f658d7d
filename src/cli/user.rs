//! `taskbell user …`: people who sign in by password. Works while the server runs.
//!
//! A password is asked for twice where standard input is a terminal, without showing it, and else read from there: its first
//! line. It is never an argument, where a list of processes would show it, and never printed.

use super::{UserAddArgs, UserCommand};
use crate::app::accounts::{Accounts, NewUser, taken};
use crate::config::{Settings, environment};
use crate::core::account::{PASSWORD_BYTES, check_password};
use crate::core::principal::Role;
use std::io::{BufRead, IsTerminal};
use std::path::Path;
use std::process::ExitCode;

/// Runs the command.
#[must_use]
pub fn run(config: Option<&Path>, command: &UserCommand) -> ExitCode {
    super::answered(told(config, command))
}

fn told(config: Option<&Path>, command: &UserCommand) -> Result<String, String> {
    let loaded = Settings::load(config, environment(), false).map_err(|faults| faults.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|e| e.to_string())?;
    if loaded.demo {
        eprintln!(
            "taskbell: these are the users of the demo's database, and the demo signs nobody in by password: name a configuration by --config"
        );
    }
    runtime.block_on(async {
        let open = Accounts::open(&loaded.settings);
        match command {
            UserCommand::Add(args) => add(args, open).await,
            UserCommand::Passwd { name } => {
                let accounts = open.await?;
                if !accounts.has_user(name).await? {
                    return Err(format!("there is no user `{name}`"));
                }
                accounts.set_password(name, &password()?).await?;
                Ok(format!("{name}: the password is changed, and all sessions have ended\n"))
            }
            UserCommand::Role { name, role } => {
                open.await?.set_role(name, *role).await?;
                Ok(format!("{name}: the role is {} now, and all sessions have ended\n", role.as_str()))
            }
            UserCommand::Remove { name } => {
                open.await?.remove_user(name).await?;
                Ok(format!("{name}: removed, and all sessions have ended\n"))
            }
            UserCommand::List => {
                let line = |name: &str, tenant: &str, role: &str, at: &str| format!("{name}\t{tenant}\t{role}\t{at}\n");
                let users = open.await?.users().await?;
                let lines = users.iter().map(|u| line(&u.name, &u.tenant, u.role.as_str(), &u.created_at.to_string()));
                Ok(lines.collect())
            }
        }
    })
}

async fn add(args: &UserAddArgs, open: impl Future<Output = Result<Accounts, String>>) -> Result<String, String> {
    let of_role = if args.role == Role::Platform { "*" } else { "default" };
    let tenant = args.tenant.clone().unwrap_or_else(|| of_role.to_owned());
    let new = NewUser { name: args.name.clone(), role: args.role, tenant };
    new.check()?;
    let accounts = open.await?;
    // Before a password is typed for nothing.
    if accounts.has_user(&new.name).await? {
        return Err(taken(&new.name));
    }
    let said = format!("{}: added with the role {} in the tenant {}\n", new.name, new.role.as_str(), new.tenant);
    accounts.add_user(new, &password()?).await?;
    Ok(said)
}

/// The password: asked for on the terminal, or the first line of standard input.
fn password() -> Result<String, String> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return first_line(stdin.lock());
    }
    let ask = |prompt: &str| rpassword::prompt_password(prompt).map_err(|e| format!("no password could be read: {e}"));
    let first = ask("Password: ")?;
    check_password(&first)?;
    if ask("The same again: ")? != first {
        return Err("the two passwords are not the same".into());
    }
    Ok(first)
}

fn first_line(input: impl BufRead) -> Result<String, String> {
    let mut line = String::new();
    // Enough to see that one is too long, whatever is sent.
    let most = PASSWORD_BYTES as u64 + 3;
    input.take(most).read_line(&mut line).map_err(|e| format!("no password could be read: {e}"))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_is_the_password_with_all_its_spaces() {
        let read = |text: &str| first_line(text.as_bytes()).unwrap();
        assert_eq!(read(" pass word \r\nmore\n"), " pass word ");
        assert_eq!((read("no end"), read("")), ("no end".to_owned(), String::new()));
        assert!(check_password(&read(&"x".repeat(5_000))).is_err(), "what is too long is not cut to fit");
        assert!(check_password(&read(&format!("{}\r\n", "x".repeat(PASSWORD_BYTES)))).is_ok());
        assert!(first_line(&b"\xff\xfe12345678"[..]).is_err());
    }
}
