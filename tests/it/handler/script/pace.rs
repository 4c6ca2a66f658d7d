//! The place of scripts at the processors: behind everybody, and not starved.

use super::{MEMORY, Rig, result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

#[tokio::test]
async fn a_script_gets_its_share_where_others_never_rest() {
    let rig = Rig::new(1);
    let over = Arc::new(AtomicBool::new(false));
    let others: Vec<_> = (0..thread::available_parallelism().unwrap().get())
        .map(|_| {
            let over = Arc::clone(&over);
            thread::spawn(move || while !over.load(Ordering::Relaxed) {})
        })
        .collect();
    let counts = "let sum = 0; for (let i = 0; i < 1e6; i++) sum += i % 7; return { hasMore: false, result: sum };";
    let (ended, took) = rig.body(counts, MEMORY, Duration::from_secs(120)).await;
    over.store(true, Ordering::Relaxed);
    for other in others {
        other.join().unwrap();
    }
    assert_eq!(result(ended), 2_999_997);
    // It needs a tenth of a second of a processor, and would get a three hundredth of one.
    assert!(took < Duration::from_secs(30), "{took:?}");
}
