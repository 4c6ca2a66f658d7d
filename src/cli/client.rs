//! The command line's way to a server: addresses, the key, and errors as a person reads them.
//!
//! Must never print the key, nor put it into an address.

use super::ServerArgs;
use super::terminal_text::plain;
use crate::config::Secret;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::fmt;
use std::time::Duration;
use url::Url;

/// Why a command of the client did not come to its end. Shown as it is on standard error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClientError {
    /// What was asked for makes no sense; nothing was sent.
    #[error("{0}")]
    Usage(String),
    /// The server did not answer.
    #[error("cannot reach {server}: {reason}. Is the server running? Another address goes into --url or TASKBELL_URL")]
    Unreachable {
        /// Its address, without a password.
        server: String,
        /// The innermost reason.
        reason: String,
    },
    /// The server refused.
    #[error("{0}")]
    Refused(Box<Problem>),
    /// The task cannot be followed to its end.
    #[error("{0}")]
    Lost(String),
    /// The server answered with something else than the contract says.
    #[error("the server's answer is not understood: {0}")]
    Strange(String),
}

impl ClientError {
    /// Whether the same request may succeed later.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable { .. } => true,
            Self::Refused(problem) => problem.status == 429 || problem.status >= 500,
            Self::Usage(_) | Self::Lost(_) | Self::Strange(_) => false,
        }
    }
}

/// A server's `application/problem+json`, as far as the client shows it.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Problem {
    /// What is wrong, in general.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// The stable code.
    pub code: String,
    /// What is wrong here.
    pub detail: String,
    /// To be told to whoever runs the server.
    pub request_id: String,
    /// Faults of single fields.
    pub errors: Vec<FieldFault>,
}

/// One field that was refused.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FieldFault {
    /// Where it is.
    pub path: String,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.title.is_empty() { "The server refused" } else { &self.title };
        write!(f, "{} ({} {})", plain(title), self.status, plain(&self.code))?;
        if !self.detail.is_empty() && self.detail != self.title {
            write!(f, ": {}", plain(&self.detail))?;
        }
        for fault in &self.errors {
            write!(f, "\n  {}: {}", plain(&fault.path), plain(&fault.message))?;
        }
        if self.status == 401 {
            write!(f, "\n  An API key goes into TASKBELL_KEY; `taskbell key create` makes one.")?;
        }
        if !self.request_id.is_empty() {
            write!(f, "\n  request id: {}", plain(&self.request_id))?;
        }
        Ok(())
    }
}

/// A server and who calls it.
pub(crate) struct Client {
    http: reqwest::Client,
    base: Url,
    key: Option<Secret>,
}

impl Client {
    /// A client for the server that the arguments name.
    pub(crate) fn new(args: &ServerArgs) -> Result<Self, ClientError> {
        let usage =
            || ClientError::Usage("--url must be an http or https address, such as http://127.0.0.1:8080".into());
        let mut base = Url::parse(&args.url).map_err(|_| usage())?;
        if !matches!(base.scheme(), "http" | "https") || !base.has_host() {
            return Err(usage());
        }
        base.set_query(None);
        base.set_fragment(None);
        let key = args.key.clone().filter(|key| !key.expose().is_empty());
        let http = reqwest::Client::builder()
            .user_agent(concat!("taskbell/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(Duration::from_secs(10))
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| ClientError::Usage(format!("no secure connections can be made: {}", innermost(&error))))?;
        Ok(Self { http, base, key })
    }

    /// The address of a path below the server's own, each part percent-encoded.
    pub(crate) fn address(&self, parts: &[&str]) -> Url {
        let mut url = self.base.clone();
        url.path_segments_mut().expect("http addresses have a path").pop_if_empty().extend(parts);
        url
    }

    /// The same for the WebSocket.
    pub(crate) fn socket_address(&self) -> Url {
        let mut url = self.address(&["api", "v1", "ws"]);
        let scheme = if url.scheme() == "https" { "wss" } else { "ws" };
        url.set_scheme(scheme).expect("http and ws are both special schemes");
        url
    }

    /// The value of the `Authorization` header.
    pub(crate) fn bearer(&self) -> Option<String> {
        self.key.as_ref().map(|key| format!("Bearer {}", key.expose()))
    }

    /// Starts a request to the API.
    pub(crate) fn request(&self, method: Method, url: Url) -> RequestBuilder {
        let request = self.http.request(method, url);
        match self.bearer() {
            Some(bearer) => request.header(reqwest::header::AUTHORIZATION, bearer),
            None => request,
        }
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        if !answer.status().is_success() {
            return Err(refusal(answer).await);
        }
        let text = answer.text().await.map_err(|error| self.unreachable(&error))?;
        serde_json::from_str(&text).map_err(|error| ClientError::Strange(error.to_string()))
    }

    /// The fault of a server that cannot be reached.
    pub(crate) fn unreachable(&self, error: &dyn std::error::Error) -> ClientError {
        let server = crate::config::without_password(self.base.as_str());
        ClientError::Unreachable { server, reason: innermost(error) }
    }
}

async fn refusal(answer: Response) -> ClientError {
    let status = answer.status();
    let text = answer.text().await.unwrap_or_default();
    ClientError::Refused(Box::new(problem(status, &text)))
}

/// Reads a refusal; one without a problem document is told by its status.
pub(crate) fn problem(status: StatusCode, text: &str) -> Problem {
    let mut problem: Problem = serde_json::from_str(text).unwrap_or_default();
    if problem.title.is_empty() {
        problem.title = status.canonical_reason().unwrap_or("Refused").to_owned();
    }
    problem.status = status.as_u16();
    problem
}

/// The reason at the bottom of an error; the ones above it only say that a request failed.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    while let Some(inner) = error.source() {
        error = inner;
    }
    error.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(url: &str) -> Result<Client, ClientError> {
        Client::new(&ServerArgs { url: url.to_owned(), key: Some(Secret::new("tb_k")) })
    }

    #[test]
    fn addresses_keep_the_servers_own_path_and_encode_every_part() {
        let client = client("https://erp.example/bell/?x=1").unwrap();
        assert_eq!(
            client.address(&["api", "v1", "tasks", "a/b?c"]).as_str(),
            "https://erp.example/bell/api/v1/tasks/a%2Fb%3Fc"
        );
        assert_eq!(client.socket_address().as_str(), "wss://erp.example/bell/api/v1/ws");
        assert_eq!(client.bearer().as_deref(), Some("Bearer tb_k"));
        for bad in ["erp.example", "ftp://erp.example", ""] {
            assert!(matches!(super::tests::client(bad), Err(ClientError::Usage(_))), "{bad}");
        }
    }

    #[test]
    fn a_problem_reads_as_title_detail_fields_and_request_id() {
        let text = r#"{"type":"about:blank","title":"Invalid","status":422,"code":"invalid","detail":"Two fields are wrong.",
            "requestId":"r-1","errors":[{"path":"params.file","message":"is required"},{"path":"priority","message":"at most \u001b[31m0"}]}"#;
        let shown = problem(StatusCode::UNPROCESSABLE_ENTITY, text).to_string();
        assert_eq!(
            shown,
            "Invalid (422 invalid): Two fields are wrong.\n  params.file: is required\n  priority: at most 0\n  request id: r-1"
        );
    }

    #[test]
    fn a_refusal_without_a_problem_is_told_by_its_status_and_401_says_what_to_do() {
        assert!(problem(StatusCode::BAD_GATEWAY, "<html>").to_string().starts_with("Bad Gateway (502 )"));
        assert!(problem(StatusCode::UNAUTHORIZED, "").to_string().contains("TASKBELL_KEY"));
    }
}
