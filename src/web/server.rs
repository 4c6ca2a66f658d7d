//! Serves connections: what a client may take its time for, and how they end.
//!
//! The head of a request has [`HEAD_TIME`] to arrive, from the opening of the connection or the end of the answer before.
//! When the service stops, no new connection is taken, requests under way are answered and idle connections are closed at
//! once. Who has half sent a request, its head or its body, and sends nothing more for [`LAST_WAIT`] is closed: whoever stopped in
//! the middle would hold up the end until the grace is over. Whatever is still open then is cut. Upgraded sockets are not seen
//! here: the push hub ends them.
//!
//! At most [`MOST_CONNECTIONS`] are served at once; further ones wait in the system's queue.

use super::arriving::{Arriving, Watched};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

/// The longest that the head of a request may take.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long the rest of a request is waited for without a byte of it, when the service has begun to stop.
const LAST_WAIT: Duration = Duration::from_secs(1);
/// Connections that are served at once, upgraded ones not counted. Each may hold the head of a request.
const MOST_CONNECTIONS: usize = 8_192;
/// Bytes that the head of a request may have.
const HEAD_BYTES: usize = 64 * 1024;
/// Connections that may wait to be taken, as far as the system allows. What does not fit into it is tried again by the
/// peer's system after 1, 3, 7 and 15 s: in a storm of reconnects that is most of the time.
const BACKLOG: u32 = 8_192;
/// The pause after a connection could not be taken, as when there are no file handles left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Listens on an address.
///
/// # Errors
/// Those of the operating system, such as an address that is in use.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Serves until `stop`, then lets requests under way end within `grace`.
pub async fn serve(listener: TcpListener, app: Router, stop: CancellationToken, grace: Duration) {
    let connections = TaskTracker::new();
    let cut = CancellationToken::new();
    let room = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let next = async {
            let place = room.clone().acquire_owned().await.expect("this semaphore is never closed");
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = stop.cancelled() => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (app, stop, cut) = (app.clone(), stop.clone(), cut.clone());
                connections.spawn(async move {
                    let _place = place;
                    tokio::select! {
                        () = connection(stream, peer, app, stop) => {}
                        () = cut.cancelled() => {}
                    }
                });
            }
            Err(e) => {
                tracing::warn!("a connection could not be taken: {e}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(grace, connections.wait()).await.is_err() {
        tracing::warn!(count = connections.len(), "connections were cut at the end of the grace");
        cut.cancel();
    }
}

async fn connection(stream: TcpStream, peer: SocketAddr, app: Router, stop: CancellationToken) {
    // Frames of the push are small and must not wait to be filled up.
    let _ = stream.set_nodelay(true);
    let (app, arriving) = (Arc::new(app), Arc::new(Arriving::default()));
    let arrives = arriving.clone();
    let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
        arrives.head_came();
        let (app, arriving) = (app.as_ref().clone(), arrives.clone());
        let mut request: Request = request.map(|body| axum::body::Body::new(Watched::new(body, arriving)));
        request.extensions_mut().insert(ConnectInfo(peer));
        app.oneshot(request)
    });
    let mut serving = std::pin::pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIME)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades()
    );
    // How a connection ends is the peer's affair: a reset or a slow head is no fault of ours.
    tokio::select! {
        _ = serving.as_mut() => {}
        () = stop.cancelled() => {
            serving.as_mut().graceful_shutdown();
            tokio::select! {
                _ = serving => {}
                () = arriving.silent(LAST_WAIT) => {}
            }
        }
    }
}
