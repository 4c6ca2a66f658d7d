//! The reference: a bare server on the same crates that does nothing but what has to be done. It takes a WebSocket, reads the
//! room that it wants and how large a first frame, answers that frame, and then writes whatever is said in the room. Each
//! frame is encoded once and shared; buffers are as small as they can be; nobody is authenticated, nothing is stored.

use crate::child::{Door, Order, now_us, tell};
use crate::swarm::NEWS;
use futures_util::{SinkExt as _, StreamExt as _};
use std::sync::Arc;
use taskbell::web::server::listen;
use tokio::net::TcpStream;
use tokio::sync::{broadcast, mpsc};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

/// Frames that may wait for a slow socket before it skips some.
const WAITING: usize = 16;

/// Serves until the orders end.
pub async fn serve(rooms: usize, mut orders: mpsc::UnboundedReceiver<Order>) {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let senders: Arc<Vec<broadcast::Sender<Utf8Bytes>>> =
        Arc::new((0..rooms).map(|_| broadcast::Sender::new(WAITING)).collect());
    tell(&Door { port: listener.local_addr().unwrap().port(), keys: Vec::new(), topics: Vec::new() });
    let of_all = senders.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(connection(stream, of_all.clone()));
        }
    });
    while let Some(order) = orders.recv().await {
        let said = match order {
            Order::Round => 0..rooms,
            Order::Report(room) => room..room + 1,
        };
        for room in said {
            // A room without anybody hears nothing.
            let _ = senders[room].send(news());
        }
    }
}

async fn connection(stream: TcpStream, rooms: Arc<Vec<broadcast::Sender<Utf8Bytes>>>) {
    let _ = stream.set_nodelay(true);
    let config = WebSocketConfig::default().read_buffer_size(2_048).write_buffer_size(0);
    let Ok(mut socket) = Box::pin(tokio_tungstenite::accept_async_with_config(stream, Some(config))).await else {
        return;
    };
    let Some(Ok(Message::Text(wish))) = socket.next().await else { return };
    let wish: Vec<usize> = wish.split(' ').filter_map(|number| number.parse().ok()).collect();
    let &[room, bytes] = &wish[..] else { return };
    let mut said = rooms[room].subscribe();
    if socket.send(Message::text(padded(r#"{"t":"snap""#, bytes))).await.is_err() {
        return;
    }
    loop {
        tokio::select! {
            frame = socket.next() => if !matches!(frame, Some(Ok(_))) { return },
            frame = said.recv() => match frame {
                Ok(frame) => if socket.send(Message::Text(frame)).await.is_err() { return },
                Err(broadcast::error::RecvError::Lagged(_)) => {}
                Err(broadcast::error::RecvError::Closed) => return,
            },
        }
    }
}

/// A frame as long as taskbell's own.
fn news() -> Utf8Bytes {
    padded(&format!(r#"{{"t":"delta","current":{}"#, now_us()), NEWS).into()
}

fn padded(begin: &str, bytes: usize) -> String {
    let rest = bytes.saturating_sub(begin.len() + r#","pad":""}"#.len());
    format!(r#"{begin},"pad":"{}"}}"#, "x".repeat(rest))
}
