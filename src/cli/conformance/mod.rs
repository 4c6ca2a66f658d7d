//! `taskbell conformance`: plays taskbell to a handler that somebody has written, and tells which promises it keeps.
//!
//! One line for each promise on standard output, `ok` or `FAULT` in front. Exit status: 0 when all are kept, 1 when one is
//! not. The handler does real work for the tasks that are played to it, so it belongs before a database of tests.

mod checklist;
mod desk;
mod http;
mod play;

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
    #[arg(long, value_name = "URL")]
    pub url: String,
    /// What signs the calls, `whsec_…`; better given by the environment, where no list of processes shows it.
    #[arg(long, value_name = "SECRET", env = "TASKBELL_SECRET", hide_env_values = true, value_parser = super::secret)]
    pub secret: Secret,
    /// The key of the action that is played.
    #[arg(long, value_name = "KEY", default_value = "conformance")]
    pub action: String,
    /// A parameter of the tasks: NAME=VALUE, where VALUE is JSON if it reads as such and text if not, or NAME=@FILE.
    #[arg(long = "param", value_name = "NAME=VALUE")]
    pub params: Vec<String>,
    /// The longest one chunk may take.
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = duration_ms)]
    pub timeout: i64,
    /// The most chunks of one task.
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub chunks: u32,
    /// Where callbacks are served while this runs.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// How the handler reaches that, where it is not as it stands.
    #[arg(long, value_name = "URL")]
    pub callback_url: Option<String>,
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
    let setup = Setup::read(args)?;
    let desk = desk::Desk::open(args.listen, args.callback_url.clone(), setup.files.clone()).await;
    let desk = desk.map_err(|e| ClientError::Usage(format!("cannot listen on {}: {e}", args.listen)))?;
    let mut list = Checklist::default();
    http::check(&setup, &desk, &mut list).await;
    Ok(list.close())
}

impl Setup {
    fn read(args: &ConformanceArgs) -> Result<Self, ClientError> {
        let usage = |text: &str| ClientError::Usage(text.to_owned());
        let url = Url::parse(&args.url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
        let keys = SigningKeys::parse([args.secret.expose()]);
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
        Ok(Self {
            url: url
                .ok_or_else(|| usage("--url must be an http or https address, such as http://127.0.0.1:8000/run"))?,
            keys: keys.ok_or_else(|| usage("--secret must be whsec_ followed by 24 bytes or more in base64"))?,
            action: args.action.clone(),
            params: params.into(),
            files,
            timeout: Duration::from_millis(args.timeout.unsigned_abs()),
            chunks: args.chunks,
        })
    }
}
