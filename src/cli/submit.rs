//! `taskbell submit`: one task, from the arguments to its id on standard output.
//!
//! The id stands alone on standard output, so that a script can take it; what there is to say about it goes to standard
//! error. Nothing is submitted before all arguments make sense and all files are uploaded.

use super::client::{Client, ClientError};
use super::terminal_text::plain;
use super::{SubmitArgs, watch};
use reqwest::{Body, Method};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tokio_util::io::ReaderStream;

/// Runs the command.
pub fn run(args: &SubmitArgs) -> ExitCode {
    super::exit(async {
        let params = args.params.iter().map(|text| parse_param(text)).collect::<Result<Vec<_>, _>>()?;
        let record = args.record.as_deref().map(parse_record).transpose()?;
        let client = Client::new(&args.server)?;
        let mut values = Map::new();
        for (name, value) in params {
            let value = match value {
                Param::Value(value) => value,
                Param::File(path) => upload(&client, &path).await?.into(),
            };
            if values.insert(name.clone(), value).is_some() {
                return Err(ClientError::Usage(format!("the parameter {name} is given twice")));
            }
        }
        let mut body = json!({"action": args.action, "params": values});
        if let Some(record) = record {
            body["record"] = record;
        }
        if let Some(key) = &args.idempotency_key {
            body["idempotencyKey"] = key.as_str().into();
        }
        let url = client.address(&["api", "v1", "tasks"]);
        let answer: Answer = client.send(client.request(Method::POST, url).json(&body)).await?;
        writeln!(io::stdout(), "{}", answer.id)
            .map_err(|error| ClientError::Usage(format!("cannot write: {error}")))?;
        if let Some(told) = answer.told() {
            eprintln!("{told}");
        }
        if args.watch { watch::follow(&client, &answer.id).await.map(watch::code) } else { Ok(0) }
    })
}

/// A parameter as given.
#[derive(Debug, PartialEq)]
pub(super) enum Param {
    Value(Value),
    File(PathBuf),
}

pub(super) fn parse_param(text: &str) -> Result<(String, Param), ClientError> {
    let (name, value) = text
        .split_once('=')
        .filter(|(name, _)| !name.is_empty())
        .ok_or_else(|| ClientError::Usage(format!("--param takes NAME=VALUE or NAME=@FILE, not {text:?}")))?;
    let value = match value.strip_prefix('@') {
        Some("") => return Err(ClientError::Usage(format!("--param {name}=@ names no file"))),
        Some(path) => Param::File(PathBuf::from(path)),
        None => Param::Value(serde_json::from_str(value).unwrap_or_else(|_| value.into())),
    };
    Ok((name.to_owned(), value))
}

fn parse_record(text: &str) -> Result<Value, ClientError> {
    match text.split_once(':') {
        Some((kind, id)) if !kind.is_empty() && !id.is_empty() => Ok(json!({"type": kind, "id": id})),
        _ => Err(ClientError::Usage(format!("--record takes TYPE:ID, not {text:?}"))),
    }
}

#[derive(Deserialize)]
struct Uploaded {
    id: String,
}

/// Uploads a file as it is read, without holding it whole; its id.
async fn upload(client: &Client, path: &Path) -> Result<String, ClientError> {
    let unreadable = |error: io::Error| ClientError::Usage(format!("{} cannot be read: {error}", path.display()));
    let file = tokio::fs::File::open(path).await.map_err(unreadable)?;
    let size = file.metadata().await.map_err(unreadable)?.len();
    let mut url = client.address(&["api", "v1", "uploads"]);
    let name = path.file_name().map_or_else(|| "file".into(), |name| name.to_string_lossy());
    url.query_pairs_mut().append_pair("name", &name);
    let request = client
        .request(Method::POST, url)
        .header(reqwest::header::CONTENT_TYPE, "application/octet-stream")
        .header(reqwest::header::CONTENT_LENGTH, size)
        .body(Body::wrap_stream(ReaderStream::new(file)));
    client.send::<Uploaded>(request).await.map(|uploaded| uploaded.id)
}

/// The answer to a submit, as far as it is told.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    id: String,
    #[serde(default)]
    state: String,
    #[serde(default)]
    replayed: bool,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    replay: Option<Replay>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Replay {
    #[serde(default)]
    started_by: String,
    #[serde(default)]
    created_at: String,
}

impl Answer {
    /// What is to be said when the task is not a new one.
    fn told(&self) -> Option<String> {
        let state = plain(&self.state);
        match (&self.replay, self.replayed, self.skipped) {
            (Some(replay), true, _) => Some(format!(
                "already submitted by {} at {}, now {state}",
                plain(&replay.started_by),
                plain(&replay.created_at)
            )),
            (None, true, _) => Some(format!("already submitted, now {state}")),
            (_, _, true) => Some(format!("skipped: this task holds the place, now {state}")),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_json_where_it_reads_as_such_else_text_and_at_is_a_file() {
        for (text, name, value) in [
            ("n=3", "n", json!(3)),
            ("on=true", "on", json!(true)),
            ("list=[1,2]", "list", json!([1, 2])),
            ("text=plain words", "text", json!("plain words")),
            ("quoted=\"@3\"", "quoted", json!("@3")),
            ("empty=", "empty", json!("")),
            ("formula=a=b", "formula", json!("a=b")),
        ] {
            assert_eq!(parse_param(text).unwrap(), (name.to_owned(), Param::Value(value)), "{text}");
        }
        assert_eq!(parse_param("f=@data/a.csv").unwrap().1, Param::File("data/a.csv".into()));
        for bad in ["n", "=3", "f=@"] {
            assert!(parse_param(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_record_is_a_type_and_an_id_that_may_hold_colons() {
        assert_eq!(parse_record("order:2026:7").unwrap(), json!({"type": "order", "id": "2026:7"}));
        for bad in ["order", ":7", "order:"] {
            assert!(parse_record(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_replay_says_who_started_it_and_a_new_task_says_nothing() {
        let told = |text: &str| serde_json::from_str::<Answer>(text).unwrap().told();
        assert_eq!(told(r#"{"id":"1","state":"queued"}"#), None);
        let replay = r#"{"id":"1","state":"running","replayed":true,"replay":{"startedBy":"bob","createdAt":"2026-11-29T12:00:00.000Z","suppressed":1}}"#;
        assert_eq!(told(replay).unwrap(), "already submitted by bob at 2026-11-29T12:00:00.000Z, now running");
        assert!(told(r#"{"id":"1","state":"running","skipped":true}"#).unwrap().starts_with("skipped"));
    }
}
