//! What a call lets itself be told: time, head and body have their limits whatever the other side does.

use super::{AMPLE, Names, outbound};
use crate::support::played::{Played, Target};
use std::time::{Duration, Instant};
use taskbell::outbound::{Call, CallFault, Method};

const SHORT: Duration = Duration::from_millis(400);
const CAP: usize = 10_000;

async fn told(play: Played, timeout: Duration) -> Result<usize, CallFault> {
    let target = Target::start(move |_, _| play.clone()).await;
    let outbound = outbound(&[target.address.to_string()], &Names::leading(&[]));
    let began = Instant::now();
    let call = Call::new(Method::GET, target.url("/").parse().unwrap(), timeout);
    let answer = match outbound.send(call).await {
        Ok(reply) => reply.body(CAP).await.map(|body| body.len()),
        Err(fault) => Err(fault),
    };
    assert!(began.elapsed() < AMPLE, "the call came to its end long before its own limit");
    answer
}

/// Proves: G19.
#[tokio::test]
async fn what_never_ends_ends_by_size_or_by_time() {
    let (none, head) = (Duration::ZERO, b"HTTP/1.1 200 OK\r\n".to_vec());
    let endless = |first: &[u8], again: &[u8], pause| Played::Endless(first.to_vec(), again.to_vec(), pause);
    let ample = AMPLE * 2;
    let headers = told(endless(&head, &b"x-more: and more\r\n".repeat(500), none), ample).await;
    assert!(matches!(headers, Err(CallFault::Broken(_))), "many headers: {headers:?}");
    let line = told(endless(&[&head[..], b"x-long: "].concat(), &[b'x'; 4_096], none), ample).await;
    assert!(matches!(line, Err(CallFault::Broken(_))), "one endless header: {line:?}");
    let body = told(endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", &[b'x'; 4_096], none), ample).await;
    assert_eq!(body, Err(CallFault::TooLarge { limit_bytes: CAP }));
    let drip = endless(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n", b"x", Duration::from_millis(20));
    assert_eq!(told(drip, SHORT).await, Err(CallFault::TimedOut));
    let slow_head = endless(&head, b"x", Duration::from_millis(20));
    assert_eq!(told(slow_head, SHORT).await, Err(CallFault::TimedOut));
    let interim = endless(b"", b"HTTP/1.1 102 Processing\r\n\r\n", Duration::from_millis(5));
    assert_eq!(told(interim, SHORT).await, Err(CallFault::TimedOut));
    assert_eq!(told(Played::Silence, SHORT).await, Err(CallFault::TimedOut));
}

#[tokio::test]
async fn a_body_is_taken_at_its_cap_and_refused_one_above_said_or_not() {
    assert_eq!(told(Played::answer("200 OK", "", &"x".repeat(CAP)), AMPLE).await, Ok(CAP));
    let above = Err(CallFault::TooLarge { limit_bytes: CAP });
    assert_eq!(told(Played::answer("200 OK", "", &"x".repeat(CAP + 1)), AMPLE).await, above);
    let claims = Played::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 104857600\r\n\r\nx".to_vec());
    assert_eq!(told(claims, AMPLE).await, above);
    let unsaid = format!("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n{}", "x".repeat(CAP + 1));
    assert_eq!(told(Played::Bytes(unsaid.into()), AMPLE).await, above);
}

#[tokio::test]
async fn what_breaks_off_is_told_from_what_never_answered() {
    for half in [
        Played::Reset,
        Played::Bytes(Vec::new()),
        Played::Bytes(b"SSH-2.0-OpenSSH_9.2\r\n".to_vec()),
        Played::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhalf".to_vec()),
        Played::Bytes(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhal".to_vec()),
    ] {
        let answer = told(half.clone(), AMPLE).await;
        assert!(matches!(&answer, Err(fault @ CallFault::Broken(_)) if fault.may_pass()), "{half:?}: {answer:?}");
    }
    let outbound = outbound(&["127.0.0.1:1".to_owned()], &Names::leading(&[]));
    let call = Call::new(Method::GET, "http://127.0.0.1:1/?token=planted".parse().unwrap(), AMPLE);
    let fault = outbound.send(call).await.unwrap_err();
    assert!(matches!(fault, CallFault::Unreachable(_)) && fault.may_pass(), "{fault:?}");
    assert!(!format!("{fault:?} {fault}").contains("planted"), "{fault:?}");
}
