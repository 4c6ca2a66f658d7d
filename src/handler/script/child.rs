//! One script process, as the server holds it: started with nothing of the server's environment, spoken to in frames, and
//! killed when it is dropped.
//!
//! What it writes to standard error goes to the server's log, and its last words are kept: they tell what it died of.

use super::limits;
use super::protocol::{self, FromChild, MAX_FROM_IDLE_BYTES, ToChild, VERSION};
use bytes::Bytes;
use futures_util::StreamExt;
use std::io;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;
use tokio_util::codec::{FramedRead, LengthDelimitedCodec};

/// Of one line that a child writes to standard error, bytes; longer ones come in pieces.
const WORDS_BYTES: u64 = 4 * 1024;

/// A script process that is ready for a chunk, or runs one.
pub(super) struct Child {
    process: tokio::process::Child,
    to: ChildStdin,
    from: FramedRead<ChildStdout, LengthDelimitedCodec>,
    words: JoinHandle<String>,
    chunks: u32,
    _alive: Alive,
}

/// Counts living children; one is counted for as long as this value is held.
pub(super) struct Alive(Arc<AtomicUsize>);

impl Alive {
    pub fn count(living: &Arc<AtomicUsize>) -> Self {
        living.fetch_add(1, Ordering::AcqRel);
        Self(Arc::clone(living))
    }
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How a child ended.
pub(super) struct LastBreath {
    status: Option<ExitStatus>,
    words: String,
}

impl LastBreath {
    /// Whether it asked the system for memory that it may not have. The interpreter's own limit is told in a frame; this
    /// is for what passes by it.
    pub fn lacked_memory(&self) -> bool {
        ["memory allocation of", "out of memory", "Cannot allocate memory"].iter().any(|text| self.words.contains(text))
    }

    /// For operators.
    pub fn detail(&self) -> String {
        let status = self.status.map_or_else(|| "did not end".to_owned(), |status| status.to_string());
        format!("{status}; last words: {}", if self.words.is_empty() { "none" } else { self.words.trim() })
    }
}

impl Child {
    /// Starts a process and waits until it is ready.
    pub async fn start(exe: &Path, alive: Alive) -> io::Result<Self> {
        let mut command = Command::new(exe);
        command.arg("script-worker").env_clear().current_dir("/").kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Not in the terminal's group: Ctrl-C is for the server, which lets its chunks come to an end.
        #[cfg(unix)]
        command.process_group(0);
        // Whoever starts a process waits until it has taken its own shape, and that takes long where processors are short.
        let start = move || {
            let process = command.spawn()?;
            if let Some(id) = process.id() {
                limits::step_back(id);
            }
            io::Result::Ok(process)
        };
        let mut process = spawn_blocking(start).await.map_err(io::Error::other)??;
        let (Some(to), Some(from), Some(err)) = (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            return Err(io::Error::other("a script process has no pipes"));
        };
        let from = LengthDelimitedCodec::builder().max_frame_length(MAX_FROM_IDLE_BYTES).new_read(from);
        let words = tokio::spawn(listen(err, process.id()));
        let mut child = Self { process, to, from, words, chunks: 0, _alive: alive };
        child.ready().await?;
        Ok(child)
    }

    /// Waits until it can take a chunk.
    pub async fn ready(&mut self) -> io::Result<()> {
        match timeout(limits::START, self.next()).await?? {
            Some((FromChild::Ready { version: VERSION }, _)) => Ok(()),
            Some((FromChild::Ready { version }, _)) => Err(io::Error::other(format!(
                "the script process speaks version {version} of the protocol and not {VERSION}: another binary"
            ))),
            Some(_) => Err(io::Error::other("the script process is not ready and talks")),
            None => Err(io::Error::other("the script process ended before it was ready")),
        }
    }

    /// Sends a frame.
    pub async fn send(&mut self, head: &ToChild, body: &[u8]) -> io::Result<()> {
        if let ToChild::Run(run) = head {
            self.chunks += 1;
            let output = usize::try_from(run.budgets.output_bytes).unwrap_or(usize::MAX);
            self.from.decoder_mut().set_max_frame_length(output.saturating_add(limits::FRAME_BYTES));
        }
        self.to.write_all(&protocol::encode(head, body)).await?;
        self.to.flush().await
    }

    /// The next frame, or none when the child is gone. Nothing is lost when it is not waited for to the end.
    pub async fn next(&mut self) -> io::Result<Option<(FromChild, Bytes)>> {
        let Some(frame) = self.from.next().await.transpose()? else { return Ok(None) };
        let frame = frame.freeze();
        let (head, body_at) = protocol::decode(&frame)?;
        Ok(Some((head, frame.slice(body_at..))))
    }

    /// Whether it has run as many chunks as one child should.
    pub fn is_used_up(&self) -> bool {
        self.chunks >= limits::CHUNKS_PER_CHILD
    }

    /// Whether it is still there.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    /// Its process id, while it is there.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Makes sure that it ends, and tells how it did.
    pub async fn last_breath(mut self) -> LastBreath {
        // A child that closed its pipe is about to end; how it ends by itself says more than our kill.
        let status = match timeout(limits::GRACE, self.process.wait()).await {
            Ok(status) => status.ok(),
            Err(_) => match self.process.kill().await {
                Ok(()) => self.process.wait().await.ok(),
                Err(_) => None,
            },
        };
        let words = timeout(limits::GRACE, &mut self.words).await.ok().and_then(Result::ok).unwrap_or_default();
        LastBreath { status, words }
    }
}

/// Logs what a child says, and answers its last lines when it is gone.
async fn listen(err: ChildStderr, process: Option<u32>) -> String {
    let mut err = BufReader::new(err);
    let mut last = String::new();
    loop {
        let mut line = Vec::new();
        match (&mut err).take(WORDS_BYTES).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return last,
            Ok(_) => {
                let line = String::from_utf8_lossy(&line);
                tracing::warn!(process, words = line.trim_end(), "a script process wrote to standard error");
                if last.len() + line.len() > 2 * WORDS_BYTES as usize {
                    last.clear();
                }
                last.push_str(&line);
            }
        }
    }
}
