//! How far the request of a connection has come: so that a service that stops can tell who has stopped in the middle of one from
//! a request that is under way.
//!
//! The rest is waited for while hyper waits for the head, and while whoever reads the body has read all that is there. Must
//! never count a request as half sent because nobody has looked at it yet: it may be here as a whole.

use axum::body::Bytes;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

/// What is known of the requests of one connection. A new one waits for its first head.
#[derive(Debug)]
pub struct Arriving {
    waits: AtomicBool,
    pieces: AtomicU64,
}

impl Default for Arriving {
    fn default() -> Self {
        Self { waits: AtomicBool::new(true), pieces: AtomicU64::new(0) }
    }
}

impl Arriving {
    /// The head of a request is here, and with it whatever follows until somebody waits for that.
    pub fn head_came(&self) {
        self.piece_came();
    }

    fn piece_came(&self) {
        self.pieces.fetch_add(1, Ordering::Relaxed);
        self.waits.store(false, Ordering::Relaxed);
    }

    /// Ends when the rest of a request was waited for so long without a piece of it.
    pub async fn silent(&self, limit: Duration) {
        loop {
            let (waited, pieces) = (self.waits.load(Ordering::Relaxed), self.pieces.load(Ordering::Relaxed));
            tokio::time::sleep(limit).await;
            let waits = waited && self.waits.load(Ordering::Relaxed);
            if waits && pieces == self.pieces.load(Ordering::Relaxed) {
                return;
            }
        }
    }
}

/// The body of a request, which tells how far it has come.
#[derive(Debug)]
pub struct Watched<B = Incoming> {
    body: B,
    arriving: Arc<Arriving>,
}

impl<B> Watched<B> {
    /// The body of a request of this connection.
    pub fn new(body: B, arriving: Arc<Arriving>) -> Self {
        Self { body, arriving }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let piece = Pin::new(&mut self.body).poll_frame(cx);
        match &piece {
            Poll::Pending => self.arriving.waits.store(true, Ordering::Relaxed),
            Poll::Ready(_) => self.arriving.piece_came(),
        }
        piece
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        // Nobody waits for the rest any more, whether it has come or not.
        self.arriving.piece_came();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt as _;
    use http_body_util::{BodyExt as _, StreamBody};

    const LIMIT: Duration = Duration::from_millis(50);

    /// Whether a connection counts as silent within ten times the limit.
    async fn is_silent(arriving: &Arriving) -> bool {
        tokio::time::timeout(10 * LIMIT, arriving.silent(LIMIT)).await.is_ok()
    }

    #[tokio::test]
    async fn a_request_is_half_sent_while_somebody_waits_for_the_rest_and_at_no_other_time() {
        let arriving = Arc::new(Arriving::default());
        assert!(is_silent(&arriving).await, "it never said anything");
        arriving.head_came();
        assert!(!is_silent(&arriving).await, "it is under way");
        let (sends, comes) = tokio::sync::mpsc::channel::<Result<Frame<Bytes>, std::io::Error>>(1);
        let stream =
            futures_util::stream::unfold(comes, async |mut comes| comes.recv().await.map(|next| (next, comes)));
        let mut body = Watched::new(StreamBody::new(Box::pin(stream)), arriving.clone());
        let piece = || sends.send(Ok(Frame::data(Bytes::from_static(b" "))));
        piece().await.unwrap();
        assert!(!is_silent(&arriving).await, "nobody has asked for its body yet");
        assert!(body.frame().now_or_never().is_some());
        assert!(body.frame().now_or_never().is_none());
        assert!(is_silent(&arriving).await, "the rest does not come");
        let coming = async {
            loop {
                piece().await.unwrap();
                tokio::task::yield_now().await;
            }
        };
        let read = async { while body.frame().await.is_some() {} };
        tokio::select! {
            // A piece is there and read whenever the time is looked at, however slow the machine is.
            biased;
            () = coming => unreachable!("it does not end"),
            () = read => unreachable!("its sender is there"),
            () = tokio::time::sleep(10 * LIMIT) => {}
            () = arriving.silent(LIMIT) => panic!("it keeps coming"),
        }
        while body.frame().now_or_never().is_some() {}
        assert!(is_silent(&arriving).await);
        drop(body);
        assert!(!is_silent(&arriving).await, "it is answered without the rest");
    }
}
