//! Text that a database cannot take, as the reason of a failure and in a log: it is cleaned and kept, the attempt counts, and
//! nothing is tried for ever.

use crate::support::ground::Ground;
use crate::support::node::{Node, action, click, closure};
use crate::support::{eventually, on_each_database};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use taskbell::core::task::State;
use taskbell::handler::HandlerError;
use taskbell::store::logs::{LogParams, LogStore as _};

on_each_database! {
    h6_a_reason_that_no_database_takes_is_cleaned_and_its_attempts_are_counted
}

async fn h6_a_reason_that_no_database_takes_is_cleaned_and_its_attempts_are_counted(ground: Arc<Ground>) {
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = runs.clone();
    let fails = closure(move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        async { Err(HandlerError::retry("odd\0code", "a\0b \u{1b}[31mc\u{feff}\u{202e}d \u{fffd}")) }
    });
    let node = Node::start(&ground, vec![(action("fails"), fails)]).await;
    let id = node.click(click("fails", json!({}))).await;
    let task = node.until(id, State::Failed).await;
    assert_eq!(
        (task.attempts, runs.load(Ordering::SeqCst)),
        (3, 3),
        "each attempt counts, and there is no further one"
    );
    let error = task.error.expect("a failed task has its reason");
    assert!(!error.message.contains('\0') && !error.code.contains('\0'), "{error:?}");
    assert!(error.message.starts_with('a'), "{error:?}");
    let params = || LogParams { limit: 100, ..LogParams::default() };
    let kept = eventually("a line for each attempt", Duration::from_secs(20), async || {
        let part = node.logs.part(id, params()).await.unwrap();
        (part.items.len() == 3).then_some(part)
    })
    .await;
    assert_eq!(kept.dropped, 0, "no line was too odd for the store");
    assert!(kept.items.iter().all(|line| !line.message.contains('\0')), "{:?}", kept.items);
}
