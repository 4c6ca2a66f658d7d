//! `taskbell watch`: follows one task until it ends.
//!
//! One read over HTTP tells where the task is and that this caller may see it; from then on the socket tells. A lost socket
//! is taken up again after a random pause, so that a restarted server is not met by everybody at once; each try is preceded
//! by one read, so the end is seen even where a proxy blocks sockets.

use super::WatchArgs;
use super::client::{Client, ClientError, Problem, problem};
use super::follow::{Act, Follow};
use super::frame::{End, LogLine};
use super::screen::Screen;
use crate::core::ids::TaskId;
use futures_util::{SinkExt, StreamExt};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue, header};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long a connection may take to open.
const CONNECT_LIMIT: Duration = Duration::from_secs(10);
/// How long a server may be silent beyond its own ping.
const SILENCE_LIMIT_MS: u64 = 10_000;
/// How long the log of an ended task brings nothing new before it counts as complete; more than twice a server's batch.
const LOG_QUIET: Duration = Duration::from_millis(500);
/// How long lines of an ended task are waited for at most.
const LOG_LIMIT: Duration = Duration::from_secs(3);
/// How long a connection lives before the pauses start over.
const STABLE: Duration = Duration::from_secs(10);

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// Runs the command.
pub fn run(args: &WatchArgs) -> ExitCode {
    super::exit(async {
        if args.task.parse::<TaskId>().is_err() {
            return Err(ClientError::Usage(format!("{:?} is no task id", args.task)));
        }
        let client = Client::new(&args.server)?;
        follow(&client, &args.task.to_lowercase()).await.map(code)
    })
}

/// The exit status that tells how a task ended.
pub(crate) fn code(end: End) -> u8 {
    match end {
        End::Succeeded => 0,
        End::Failed => 1,
        End::Cancelled => 2,
    }
}

/// Follows a task to its end, showing its progress and its log.
pub(crate) async fn follow(client: &Client, id: &str) -> Result<End, ClientError> {
    let screen = Screen::open();
    let mut watch = Watch { client, id, follow: Follow::new(id, screen.lang()), screen };
    watch.read_task().await?;
    // A log that cannot be read now is read when the socket is up, or at the end.
    drop(watch.read_log().await);
    let mut pauses = Pauses::default();
    loop {
        if let Some(end) = watch.follow.task().end() {
            watch.read_last_lines().await;
            watch.screen.end(watch.follow.task(), end);
            return Ok(end);
        }
        let opened_at = Instant::now();
        let asked = watch.session().await?;
        if watch.follow.task().end().is_some() {
            continue;
        }
        watch.screen.reconnecting();
        let pause = pauses.next(opened_at.elapsed(), asked, rand::random());
        tokio::time::sleep(pause).await;
        match watch.read_task().await {
            Err(refused @ ClientError::Refused(_)) if !refused.may_pass() => return Err(refused),
            // Still away: the next try of the socket is due anyway.
            _ => {}
        }
    }
}

/// Pause that a draining server asks for: at least so long, and at most so much longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    retry: Duration,
    spread: Duration,
}

/// The pauses between connections: random within 2 s first, then within 2^n s up to 30 s.
#[derive(Default)]
struct Pauses {
    n: u32,
}

impl Pauses {
    /// The next pause after a connection that lived for `life`; `unit` is random in `[0, 1)`.
    fn next(&mut self, life: Duration, asked: Option<Asked>, unit: f64) -> Duration {
        if life >= STABLE {
            self.n = 0;
        }
        let bound = match self.n {
            0 => 2,
            n => (1_u64 << n.min(5)).min(30),
        };
        self.n += 1;
        match asked {
            Some(Asked { retry, spread }) => retry + spread.mul_f64(unit),
            None => Duration::from_secs(bound).mul_f64(unit),
        }
    }
}

struct Watch<'a> {
    client: &'a Client,
    id: &'a str,
    follow: Follow,
    screen: Screen,
}

#[derive(Deserialize)]
struct LogPage {
    items: Vec<LogLine>,
}

impl Watch<'_> {
    async fn read_task(&mut self) -> Result<(), ClientError> {
        let url = self.client.address(&["api", "v1", "tasks", self.id]);
        let request = self.client.request(Method::GET, url).header(header::ACCEPT_LANGUAGE, self.screen.lang());
        let task: Map<String, Value> = self.client.send(request).await?;
        if self.follow.read(task) {
            self.screen.show(self.follow.task());
        }
        Ok(())
    }

    /// Shows all lines after the last one that was shown.
    async fn read_log(&mut self) -> Result<(), ClientError> {
        loop {
            let mut url = self.client.address(&["api", "v1", "tasks", self.id, "logs"]);
            url.query_pairs_mut().append_pair("after", &self.follow.last_seq.to_string()).append_pair("limit", "200");
            let page: LogPage = self.client.send(self.client.request(Method::GET, url)).await?;
            let lines = self.follow.lines(page.items);
            if lines.is_empty() {
                return Ok(());
            }
            lines.iter().for_each(|line| self.screen.log(line));
        }
    }

    /// Shows what was logged last. A server writes lines in batches beside the task, so they may be later than its end: the
    /// log is at its end when it brings nothing new for a while. A log that fails never changes the result.
    async fn read_last_lines(&mut self) {
        let start = Instant::now();
        let mut grown_at = start;
        while grown_at.elapsed() < LOG_QUIET && start.elapsed() < LOG_LIMIT {
            let shown = self.follow.last_seq;
            if self.read_log().await.is_err() {
                return;
            }
            if self.follow.last_seq > shown {
                grown_at = Instant::now();
            }
            tokio::time::sleep(LOG_QUIET / 4).await;
        }
    }

    /// One life of the socket: up to the end of the task, or until the connection is lost.
    async fn session(&mut self) -> Result<Option<Asked>, ClientError> {
        let Some(mut socket) = self.connect().await? else { return Ok(None) };
        if socket.send(Message::text(self.follow.hello())).await.is_err() {
            return Ok(None);
        }
        loop {
            let silence = Duration::from_millis(self.follow.ping_ms + SILENCE_LIMIT_MS);
            let Ok(Some(Ok(message))) = tokio::time::timeout(silence, socket.next()).await else { return Ok(None) };
            let acts = match message {
                Message::Text(text) => self.follow.frame(&text),
                Message::Close(frame) => {
                    return match frame.and_then(|frame| farewell(frame.code.into())) {
                        Some(problem) => Err(ClientError::Refused(Box::new(problem))),
                        None => Ok(None),
                    };
                }
                _ => Vec::new(),
            };
            for act in acts {
                match act {
                    Act::Send(frame) => {
                        if socket.send(Message::text(frame)).await.is_err() {
                            return Ok(None);
                        }
                    }
                    Act::Show => self.screen.show(self.follow.task()),
                    Act::Delayed => self.screen.delayed(),
                    Act::Log(line) => self.screen.log(&line),
                    // A log that cannot be read now is read at the end; the task itself goes on being followed.
                    Act::ReadLog => drop(self.read_log().await),
                    Act::Gone => return Err(ClientError::Lost("the task was deleted".into())),
                    Act::Refused(code) => {
                        return Err(ClientError::Lost(format!(
                            "the server does not let this caller follow the task ({code})"
                        )));
                    }
                    Act::Leave { retry_ms, spread_ms } => {
                        let [retry, spread] = [retry_ms, spread_ms].map(Duration::from_millis);
                        return Ok(Some(Asked { retry, spread }));
                    }
                }
            }
            if self.follow.task().end().is_some() {
                // The end is known; how the server takes the farewell changes nothing.
                let _ = tokio::time::timeout(Duration::from_secs(1), socket.close(None)).await;
                return Ok(None);
            }
        }
    }

    /// Opens the socket; none when that may work later.
    async fn connect(&self) -> Result<Option<Socket>, ClientError> {
        let address = self.client.socket_address();
        let mut request = address.as_str().into_client_request().map_err(|error| self.client.unreachable(&error))?;
        let mut set = |name: HeaderName, value: &str| {
            HeaderValue::from_str(value)
                .map(|value| request.headers_mut().insert(name, value))
                .map_err(|_| ClientError::Usage("the key holds characters that no key has".into()))
        };
        set(header::SEC_WEBSOCKET_PROTOCOL, "taskbell.v1")?;
        if let Some(bearer) = self.client.bearer() {
            set(header::AUTHORIZATION, &bearer)?;
        }
        match tokio::time::timeout(CONNECT_LIMIT, connect_async(request)).await {
            Ok(Ok((socket, _))) => Ok(Some(socket)),
            Ok(Err(SocketError::Http(answer))) if matches!(answer.status().as_u16(), 401 | 403) => {
                let text = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                let status = reqwest::StatusCode::from_u16(answer.status().as_u16()).unwrap_or_default();
                Err(ClientError::Refused(Box::new(problem(status, &text))))
            }
            _ => Ok(None),
        }
    }
}

/// What a close code says to a person, for those after which coming back is useless.
fn farewell(code: u16) -> Option<Problem> {
    let (title, code) = match code {
        4001 => ("The key is no longer valid", "unauthorized"),
        4403 => ("The server does not allow this connection", "forbidden"),
        4409 => ("The server does not understand this client; the versions are too far apart", "protocol-error"),
        _ => return None,
    };
    Some(Problem { title: title.to_owned(), code: code.to_owned(), status: 403, ..Problem::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_random_grow_to_half_a_minute_and_start_over_after_a_stable_life() {
        let mut pauses = Pauses::default();
        let short = Duration::from_secs(1);
        let bounds: Vec<u64> = (0..8).map(|_| pauses.next(short, None, 1.0).as_secs()).collect();
        assert_eq!(bounds, [2, 2, 4, 8, 16, 30, 30, 30]);
        assert_eq!(pauses.next(STABLE, None, 1.0).as_secs(), 2);
        assert_eq!(pauses.next(short, None, 0.0), Duration::ZERO);
        let asked = Asked { retry: Duration::from_millis(500), spread: Duration::from_secs(4) };
        assert_eq!(pauses.next(short, Some(asked), 0.5).as_millis(), 2_500);
    }

    #[test]
    fn only_a_final_farewell_ends_the_watch() {
        for code in [1000, 1001, 1012, 1013, 4008, 4010, 4429] {
            assert!(farewell(code).is_none(), "{code}");
        }
        for code in [4001, 4403, 4409] {
            assert!(farewell(code).is_some(), "{code}");
        }
    }
}
