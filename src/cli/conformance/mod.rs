//! `taskbell conformance`: plays taskbell to a handler that somebody has written, and tells which promises it keeps.
//!
//! One line for each promise on standard output, `ok` or `FAULT` in front. Exit status: 0 when all are kept, 1 when one is
//! not. The handler does real work for the tasks that are played to it, so it belongs before a database of tests.

mod checklist;
mod desk;
mod http;
mod play;
mod pull;

use super::client::ClientError;
use super::exit;
use super::submit::{Param, parse_param};
use crate::config::{Secret, duration_ms};
use crate::core::signing::SigningKeys;
use bytes::Bytes;
use checklist::Checklist;
use clap::Args;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;
use url::Url;

/// `conformance`
#[derive(Debug, Args)]
pub struct ConformanceArgs {
    /// The address of an HTTP handler.
    #[arg(long, value_name = "URL", required_unless_present = "pull", conflicts_with = "pull", requires = "secret")]
    pub url: Option<String>,
    /// Look at a pull worker. It is started by COMMAND, or by somebody else, with TASKBELL_URL and TASKBELL_KEY as they are told.
    #[arg(long)]
    pub pull: bool,
    /// What signs the calls, `whsec_…`; better given by the environment, where no list of processes shows it.
    #[arg(long, value_name = "SECRET", env = "TASKBELL_SECRET", hide_env_values = true, value_parser = super::secret)]
    pub secret: Option<Secret>,
    /// The key of the action that is played.
    #[arg(long, value_name = "KEY", default_value = "conformance")]
    pub action: String,
    /// A parameter of the tasks: NAME=VALUE, where VALUE is JSON if it reads as such and text if not, or NAME=@FILE.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// The longest one chunk may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration_ms)]
    pub timeout: i64,
    /// The length of a lease of a pull worker.
    #[arg(long, value_name = "TIME", default_value = "1500ms", value_parser = duration_ms)]
    pub lease: i64,
    /// The most chunks of one task.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub chunks: u32,
    /// Where callbacks, or the calls of a pull worker, are served while this runs.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// How the handler reaches that, where it is not as it stands.
    #[arg(long, value_name = "URL")]
    pub callback_url: Option<String>,
    /// Starts a pull worker.
    #[arg(last = true, value_name = "COMMAND", requires = "pull")]
    pub command: Vec<String>,
}

/// What is played, read from the arguments.
struct Setup {
    url: Url,
    keys: SigningKeys,
    action: String,
    params: Value,
    files: BTreeMap<String, Bytes>,
    timeout: Duration,
    chunks: u32,
}

/// Runs the command.
#[must_use]
pub fn run(args: &ConformanceArgs) -> ExitCode {
    exit(play(args))
}

async fn play(args: &ConformanceArgs) -> Result<u8, ClientError> {
    let (listen, public) = (args.listen, args.callback_url.clone());
    let busy = |e| ClientError::Usage(format!("cannot listen on {listen}: {e}"));
    let mut list = Checklist::default();
    if args.pull {
        let (params, files) = params(args)?;
        let player = pull::Player {
            service: pull::Service::open(listen, public, files).await.map_err(busy)?,
            action: args.action.clone(),
            params,
            timeout: Duration::from_millis(args.timeout.unsigned_abs()),
            lease: Duration::from_millis(args.lease.unsigned_abs()),
            chunks: args.chunks,
        };
        pull::check(player, &args.command, &mut list).await?;
        return Ok(list.close());
    }
    let setup = Setup::read(args)?;
    let desk = desk::Desk::open(listen, public, setup.files.clone()).await.map_err(busy)?;
    http::check(&setup, &desk, &mut list).await;
    Ok(list.close())
}

impl Setup {
    fn read(args: &ConformanceArgs) -> Result<Self, ClientError> {
        let usage = |text: &str| ClientError::Usage(text.to_owned());
        let url = args.url.as_deref().and_then(|url| Url::parse(url).ok());
        let url = url.filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let keys = args.secret.as_ref().and_then(|secret| SigningKeys::parse([secret.expose()]));
        let (params, files) = params(args)?;
        Ok(Self {
            url: url
                .ok_or_else(|| usage("--url must be an http or https address, such as http://127.0.0.1:8000/run"))?,
            keys: keys.ok_or_else(|| usage("--secret must be whsec_ followed by 24 bytes or more in base64"))?,
            action: args.action.clone(),
            params,
            files,
            timeout: Duration::from_millis(args.timeout.unsigned_abs()),
            chunks: args.chunks,
        })
    }
}

/// The params of the tasks, and the files that they name.
fn params(args: &ConformanceArgs) -> Result<(Value, BTreeMap<String, Bytes>), ClientError> {
    let (mut params, mut files) = (Map::new(), BTreeMap::new());
    for param in &args.params {
        let (name, value) = parse_param(param)?;
        let value = match value {
            Param::Value(value) => value,
            Param::File(path) => {
                let unreadable = |e| ClientError::Usage(format!("{} cannot be read: {e}", path.display()));
                let id = crate::core::ids::fresh().to_string();
                files.insert(id.clone(), std::fs::read(&path).map_err(unreadable)?.into());
                id.into()
            }
        };
        params.insert(name, value);
    }
    Ok((params.into(), files))
}
