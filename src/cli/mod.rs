//! The command line: what can be asked of the binary, and one file for each thing that it does.
//!
//! Answers go to standard output, everything else to standard error. Exit status: 0 done; for `watch` and `submit --watch`
//! 0, 1 and 2 tell how the task ended (succeeded, failed, cancelled), so every other failure of any command is
//! [`EXIT_FAULT`], usage errors included.

pub mod check_config;
mod client;
pub mod conformance;
pub mod doctor;
mod follow;
mod frame;
pub mod key;
pub mod migrate;
pub mod ready;
mod screen;
pub mod script_worker;
pub mod serve;
pub mod submit;
mod terminal_text;
pub mod user;
pub mod watch;
mod words;

use crate::app::NativeHandlers;
use crate::config::{Secret, duration_ms};
use crate::core::principal::{Role, Scope};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use client::ClientError;
use std::convert::Infallible;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit status of whatever went wrong outside the task itself.
pub const EXIT_FAULT: u8 = 3;

/// Durable, chunked background tasks with true progress, beside your business application.
#[derive(Debug, Parser)]
#[command(name = "taskbell", version)]
pub struct Cli {
    /// The configuration file [env: TASKBELL_CONFIG]; without one and without TASKBELL__ variables it is the demo.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    serve: ServeArgs,

    #[command(subcommand)]
    command: Option<Command>,
}

/// The whole binary: reads the arguments and does what they ask. A binary of one's own hands its native handlers in:
///
/// ```ignore
/// fn main() -> std::process::ExitCode {
///     taskbell::cli::main(taskbell::app::NativeHandlers::new().with("import", Import))
/// }
/// ```
#[must_use]
pub fn main(natives: NativeHandlers) -> ExitCode {
    let (config, command) = match Cli::read() {
        Ok(cli) => cli.command(),
        Err(status) => return status,
    };
    let config = config.as_deref();
    match command {
        Command::Serve(args) => serve::run(config, &args, natives),
        Command::Migrate => migrate::run(config),
        Command::CheckConfig => {
            check_config::run(config, &natives.names().iter().map(String::as_str).collect::<Vec<_>>())
        }
        Command::Key(command) => key::run(config, &command),
        Command::User(command) => user::run(config, &command),
        Command::Submit(args) => submit::run(&args),
        Command::Watch(args) => watch::run(&args),
        Command::Doctor => doctor::run(config, &natives.names().iter().map(String::as_str).collect::<Vec<_>>()),
        Command::Ready(server) => ready::run(&server),
        Command::Conformance(args) => conformance::run(&args),
        Command::ScriptWorker => script_worker::run(),
    }
}

impl Cli {
    /// Reads the arguments of this process. What they say wrong is told on standard error; help and version are answers.
    ///
    /// # Errors
    /// The exit status to leave with.
    pub fn read() -> Result<Self, ExitCode> {
        Self::try_parse().map_err(|told| {
            // With standard error gone there is nobody left to tell.
            let _ = told.print();
            ExitCode::from(if told.use_stderr() { EXIT_FAULT } else { 0 })
        })
    }

    /// What was asked for: `taskbell` alone is `taskbell serve`.
    #[must_use]
    pub fn command(self) -> (Option<PathBuf>, Command) {
        let outer = self.serve;
        let command = match self.command {
            None => Command::Serve(outer),
            Some(Command::Serve(inner)) => {
                Command::Serve(ServeArgs { role: inner.role.or(outer.role), demo: inner.demo || outer.demo })
            }
            Some(other) => other,
        };
        // An empty variable is an unset one: compose files and units set it so.
        let set = || std::env::var_os("TASKBELL_CONFIG").filter(|path| !path.is_empty()).map(PathBuf::from);
        (self.config.or_else(set), command)
    }
}

/// One thing to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the server; what happens without a command.
    Serve(ServeArgs),
    /// Bring the database up to date.
    Migrate,
    /// Check the configuration and every handler, and tell each fault with its key.
    CheckConfig,
    /// Look the installation over: configuration, database, clock, wake-ups, Redis, files, disks, the public address; a line
    /// each. Exit status: 0 no fault, 1 a fault.
    Doctor,
    /// API keys.
    #[command(subcommand)]
    Key(KeyCommand),
    /// People who sign in by password.
    #[command(subcommand)]
    User(UserCommand),
    /// Submit a task to a server; prints its id.
    Submit(SubmitArgs),
    /// Follow a task: its progress and its log. Exit status: 0 succeeded, 1 failed, 2 cancelled.
    Watch(WatchArgs),
    /// Ask a server whether it can work. Exit status: 0 it can, 3 it cannot.
    Ready(ServerArgs),
    /// Play taskbell to a handler and tell which promises it keeps. Exit status: 0 all of them, 1 not all.
    Conformance(conformance::ConformanceArgs),
    /// Run chunks of scripts for a server, by frames on standard input and output.
    #[command(hide = true)]
    ScriptWorker,
}

/// `serve`
#[derive(Clone, Debug, Default, Args)]
pub struct ServeArgs {
    /// Which parts of the server run in this process [default: all].
    #[arg(long, value_enum)]
    pub role: Option<ServeRole>,
    /// The demo: sample data, two users without a password, loopback only.
    #[arg(long)]
    pub demo: bool,
}

/// Which parts of the server run in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ServeRole {
    /// Pages, API, engine and scheduler.
    All,
    /// Pages and API, no engine.
    Web,
    /// Engine and scheduler, no pages.
    Work,
}

/// `key …`
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make an API key and print it, alone, on standard output. It is stored as a hash only.
    Create(KeyCreateArgs),
    /// List all keys: id, tenant, user, role, scopes, since, until; with tabs between.
    List,
    /// Take a key back. It works for at most five seconds more.
    Revoke {
        /// The key itself, or its id from the list.
        key: String,
    },
}

/// `user …`
#[derive(Debug, Subcommand)]
pub enum UserCommand {
    /// Add a user. The password is asked for, or read from standard input where that is no terminal.
    Add(UserAddArgs),
    /// Set a new password, asked for or read in the same way. Ends all sessions of the user.
    Passwd {
        /// The user.
        name: String,
    },
    /// Set the role. Ends all sessions of the user.
    Role {
        /// The user.
        name: String,
        /// What the user may do.
        #[arg(value_parser = role_words())]
        role: Role,
    },
    /// Remove a user. Ends all sessions; what the user has started stays.
    Remove {
        /// The user.
        name: String,
    },
    /// List all users: name, tenant, role, since; with tabs between.
    List,
}

/// `user add`
#[derive(Debug, Args)]
pub struct UserAddArgs {
    /// The name to sign in with; unique over all tenants.
    pub name: String,
    /// What the user may do.
    #[arg(long, value_name = "R", value_parser = role_words())]
    pub role: Role,
    /// The tenant [default: `default`; `*` for the role platform].
    #[arg(long, value_name = "T")]
    pub tenant: Option<String>,
}

/// `key create`
#[derive(Debug, Args)]
pub struct KeyCreateArgs {
    /// The tenant whose tasks it reaches; `*` for the role platform.
    #[arg(long, value_name = "T", default_value = "default")]
    pub tenant: String,
    /// The user it acts as.
    #[arg(long, value_name = "U")]
    pub user: String,
    /// What it may do at most.
    #[arg(long, value_name = "R", value_parser = role_words())]
    pub role: Role,
    /// Its rights, with commas [default: all that the role allows, but tasks:submit-as and worker].
    #[arg(long, value_name = "S", value_delimiter = ',', value_parser = scope_words())]
    pub scopes: Option<Vec<Scope>>,
    /// How long it is valid, such as 90d [default: without an end].
    #[arg(long, value_name = "TTL", value_parser = duration_ms)]
    pub ttl: Option<i64>,
}

/// Which server, and as whom.
#[derive(Clone, Debug, Args)]
pub struct ServerArgs {
    /// The server.
    #[arg(long, value_name = "URL", env = "TASKBELL_URL", default_value = "http://127.0.0.1:8080")]
    pub url: String,
    /// The API key; better given by the environment, where no list of processes shows it.
    #[arg(long, value_name = "KEY", env = "TASKBELL_KEY", hide_env_values = true, value_parser = secret)]
    pub key: Option<Secret>,
}

/// `submit`
#[derive(Debug, Args)]
pub struct SubmitArgs {
    /// The key of the action.
    pub action: String,
    /// A parameter: NAME=VALUE, where VALUE is JSON if it reads as such and text if not, or NAME=@FILE to upload a file.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// The business record it is about.
    #[arg(long, value_name = "TYPE:ID")]
    pub record: Option<String>,
    /// Submitting the same key again returns the same task.
    #[arg(long, value_name = "K")]
    pub idempotency_key: Option<String>,
    /// Follow the task until it ends.
    #[arg(long)]
    pub watch: bool,
    /// Which server, and as whom.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// `watch`
#[derive(Debug, Args)]
pub struct WatchArgs {
    /// The id of the task.
    pub task: String,
    /// Which server, and as whom.
    #[command(flatten)]
    pub server: ServerArgs,
}

/// Runs a command of the client to its exit status; what went wrong is told on standard error.
fn exit(command: impl Future<Output = Result<u8, ClientError>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let ended = match runtime {
        Ok(runtime) => runtime.block_on(command),
        Err(error) => Err(ClientError::Usage(format!("cannot start: {error}"))),
    };
    ExitCode::from(ended.unwrap_or_else(|error| {
        eprintln!("taskbell: {error}");
        EXIT_FAULT
    }))
}

/// Prints what a command on the database answers, or tells what went wrong on standard error.
fn answered(answer: Result<String, String>) -> ExitCode {
    let printed = answer.and_then(|text| std::io::stdout().write_all(text.as_bytes()).map_err(|e| e.to_string()));
    match printed {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("taskbell: {what}");
            ExitCode::from(EXIT_FAULT)
        }
    }
}

fn role_words() -> impl TypedValueParser<Value = Role> {
    PossibleValuesParser::new(Role::ALL.map(Role::as_str))
        .map(|word| Role::parse(&word).expect("the possible values are the words of roles"))
}

fn scope_words() -> impl TypedValueParser<Value = Scope> {
    PossibleValuesParser::new(Scope::ALL.map(Scope::as_str))
        .map(|word| Scope::parse(&word).expect("the possible values are the words of scopes"))
}

fn secret(text: &str) -> Result<Secret, Infallible> {
    Ok(Secret::new(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> (Option<PathBuf>, Command) {
        Cli::try_parse_from(line.split(' ')).unwrap().command()
    }

    #[test]
    fn the_definitions_are_sound() {
        <Cli as CommandFactory>::command().debug_assert();
    }

    #[test]
    fn no_command_is_serve_and_flags_count_before_and_after_it() {
        for (line, role, demo) in [
            ("taskbell", None, false),
            ("taskbell --demo", None, true),
            ("taskbell serve --demo", None, true),
            ("taskbell --demo serve --role web", Some(ServeRole::Web), true),
            ("taskbell serve --role work", Some(ServeRole::Work), false),
        ] {
            let Command::Serve(args) = parse(line).1 else { panic!("{line} is serve") };
            assert_eq!((args.role, args.demo), (role, demo), "{line}");
        }
        let (file, command) = parse("taskbell check-config --config a.toml");
        assert_eq!(file, Some(PathBuf::from("a.toml")));
        assert!(matches!(command, Command::CheckConfig));
    }

    #[test]
    fn a_key_is_asked_for_with_role_scopes_and_length_of_life() {
        let line = "taskbell key create --tenant t --user u --role operator --scopes tasks:read,worker --ttl 90d";
        let Command::Key(KeyCommand::Create(args)) = parse(line).1 else { panic!("key create") };
        assert_eq!((args.tenant.as_str(), args.user.as_str(), args.role), ("t", "u", Role::Operator));
        assert_eq!(args.scopes, Some(vec![Scope::TasksRead, Scope::Worker]));
        assert_eq!(args.ttl, Some(90 * 86_400_000));
        for bad in [
            "--role king --user u",
            "--role user",
            "--role user --user u --ttl 90",
            "--role user --user u --scopes all",
        ] {
            let line = format!("taskbell key create {bad}");
            assert!(Cli::try_parse_from(line.split(' ')).is_err(), "{bad}");
        }
    }
}
