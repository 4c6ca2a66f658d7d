//! The promises of an HTTP handler: whom it believes, and what it makes of repeats, stale claims, stops and calls that are
//! given up.

use super::Setup;
use super::checklist::{Checklist, Verdict};
use super::desk::Desk;
use super::play::{Player, advance, again, same_work, shown, word};
use crate::core::chunk::Outcome;
use crate::core::ids::FencingToken;
use crate::core::signing::{SigningKeys, TOLERANCE_SECONDS};
use crate::handler::ChunkIn;
use crate::handler::http::call;
use crate::outbound::Call;
use serde_json::Value;
use std::time::Duration;

/// A secret that no handler has.
const STRANGER: &str = "whsec_c3RyYW5nZXIgc3RyYW5nZXIgc3RyYW5nZXI=";
/// A call that is given up after this has hardly begun.
const GIVEN_UP: Duration = Duration::from_millis(20);

/// Looks at all of them, in order.
pub(super) async fn check(setup: &Setup, desk: &Desk, list: &mut Checklist) {
    let player = Player::new(setup, desk);
    for (promise, call) in impostors(&player) {
        list.tell(promise, &refused(&player, call).await);
    }
    list.tell("one right signature of two is enough", &either_signature(&player).await);
    list.tell("a body that is no chunk is refused, also when it is signed", &refused(&player, no_chunk(&player)).await);
    list.tell("fields that are not known are ignored", &unknown_fields(&player).await);
    list.tell("a task comes to its end", &whole_task(&player).await);
    list.tell("a repeated chunk is answered again with the same outcome", &repeats(&player).await);
    list.tell("a chunk that arrives twice at once is worked on once", &at_once(&player).await);
    list.tell("a call of an older claim changes nothing", &stale(&player).await);
    list.tell("a chunk that is asked to stop ends in its time", &stops(&player).await);
    list.tell("a chunk that was given up is answered when it comes again", &given_up(&player).await);
    list.tell("a chunk whose callbacks are dead ends in its time", &dead_callbacks(&player).await);
    list.tell("callbacks are asked in their right form", &asked_rightly(desk));
}

/// Calls that prove nothing.
fn impostors(player: &Player<'_>) -> Vec<(&'static str, Call)> {
    let stranger = SigningKeys::parse([STRANGER]).expect("the stranger's secret is one");
    let sealed = |keys: &SigningKeys, off_seconds: i64| {
        let (chunk, setup) = (player.task(), player.setup);
        let body = call::body(&chunk, player.desk.dead());
        call::signed(&setup.url, keys, &chunk, body, player.now_seconds() + off_seconds, setup.timeout)
    };
    let keys = &player.setup.keys;
    let (mut bare, mut changed, mut moved) = (sealed(keys, 0), sealed(keys, 0), sealed(keys, 0));
    bare.headers.remove(call::SIGNATURE);
    changed.body = [&changed.body[..], b" "].concat().into();
    let later = (player.now_seconds() + 1).to_string();
    moved.headers.insert(call::TIMESTAMP, later.parse().expect("a number is a header value"));
    vec![
        ("a call without a signature is refused", bare),
        ("a call signed with another secret is refused", sealed(&stranger, 0)),
        ("a call whose body was changed is refused", changed),
        ("a call whose timestamp was changed is refused", moved),
        ("a call that is more than five minutes old is refused", sealed(keys, -TOLERANCE_SECONDS - 60)),
        ("a call from more than five minutes ahead is refused", sealed(keys, TOLERANCE_SECONDS + 60)),
    ]
}

/// Refused for good: 4xx, but for those that mean "later".
async fn refused(player: &Player<'_>, call: Call) -> Verdict {
    let status = player.send(call).await.map_err(|fault| format!("it was not answered: {fault}"))?.status().as_u16();
    match status {
        408 | 425 | 429 => Err(format!("answered {status}, which says that it may come again")),
        400..=499 => Ok(status.to_string()),
        _ => Err(format!("answered {status}, where 401 would be right")),
    }
}

async fn either_signature(player: &Player<'_>) -> Verdict {
    let chunk = player.task();
    let mut call = player.call(&chunk, player.desk.enter());
    let stranger = SigningKeys::parse([STRANGER]).expect("the stranger's secret is one");
    let foreign = stranger.sign("other", player.now_seconds(), b"other");
    let right = call.headers[call::SIGNATURE].to_str().expect("a signature is text").to_owned();
    let both = format!("{foreign} {right}");
    call.headers.insert(call::SIGNATURE, both.parse().expect("base64 is a header value"));
    accepted(player, call).await
}

async fn accepted(player: &Player<'_>, call: Call) -> Verdict {
    match player.told(call).await {
        Ok((outcome, _)) => Ok(word(&outcome)),
        Err(failure) => Err(shown(&failure)),
    }
}

fn no_chunk(player: &Player<'_>) -> Call {
    let setup = player.setup;
    call::signed(&setup.url, &setup.keys, &player.task(), b"no chunk".to_vec(), player.now_seconds(), setup.timeout)
}

async fn unknown_fields(player: &Player<'_>) -> Verdict {
    let (chunk, setup) = (player.task(), player.setup);
    let read = serde_json::from_slice::<Value>(&call::body(&chunk, player.desk.enter()));
    let mut body = read.expect("a body is JSON");
    body["later"] = serde_json::json!({"version": 2});
    body["task"]["later"] = true.into();
    let call =
        call::signed(&setup.url, &setup.keys, &chunk, body.to_string().into(), player.now_seconds(), setup.timeout);
    accepted(player, call).await
}

async fn whole_task(player: &Player<'_>) -> Verdict {
    let mut chunk = player.task();
    for count in 1..=player.setup.chunks {
        let outcome = player.settle(&mut chunk).await?;
        let (current, total) = (chunk.progress.current, chunk.progress.total);
        if !advance(&mut chunk, &outcome) {
            return Ok(format!("{count} chunks"));
        }
        if chunk.progress.current < current && chunk.progress.total == total {
            return Err(format!("chunk {count}: current fell from {current} to {}", chunk.progress.current));
        }
    }
    Err(format!("it is not done after {} chunks (--chunks)", player.setup.chunks))
}

async fn repeats(player: &Player<'_>) -> Verdict {
    let mut chunk = player.task();
    let mut count = 0;
    // The first two: whatever holds for the second holds for those after it.
    for _ in 0..2 {
        let first = player.settle(&mut chunk).await?;
        again(&mut chunk);
        let second = player.settle(&mut chunk).await?;
        count += 1;
        if !same_work(&first, &second) {
            return Err(format!("chunk {}: {}, then {}", chunk.chunk, word(&first), word(&second)));
        }
        if !advance(&mut chunk, &first) {
            break;
        }
    }
    Ok(format!("{count} chunks, twice each"))
}

async fn at_once(player: &Player<'_>) -> Verdict {
    let older = player.task();
    let mut newer = older.clone();
    again(&mut newer);
    let callback = player.desk.enter();
    let calls = [player.call(&older, callback.clone()), player.call(&newer, callback)];
    let [older, newer_told] = calls.map(|call| player.told(call));
    let (older, newer_told) = tokio::join!(older, newer_told);
    // Either may be told to come again; what counts is that both saw one and the same work.
    again(&mut newer);
    let settled = player.settle(&mut newer).await?;
    for told in [older, newer_told] {
        match told {
            Ok((outcome, _)) if same_work(&outcome, &settled) => {}
            Ok((outcome, _)) => return Err(format!("{}, then {}", word(&outcome), word(&settled))),
            Err(failure) if failure.code.starts_with("http-4") || failure.retryable => {}
            Err(failure) => return Err(shown(&failure)),
        }
    }
    Ok(word(&settled))
}

async fn stale(player: &Player<'_>) -> Verdict {
    let mut chunk = player.task();
    chunk.fencing_token = FencingToken(5);
    let first = player.settle(&mut chunk).await?;
    if !advance(&mut chunk, &first) {
        return Ok("not seen: the task has one chunk".into());
    }
    let stale = ChunkIn { fencing_token: FencingToken(chunk.fencing_token.0 - 1), ..chunk.clone() };
    let seen = refused(player, player.call(&stale, player.desk.dead())).await?;
    chunk.fencing_token = chunk.fencing_token.next();
    let after = player.settle(&mut chunk).await?;
    Ok(format!("{seen}, and the newer claim goes on: {}", word(&after)))
}

async fn stops(player: &Player<'_>) -> Verdict {
    let chunk = player.task();
    let before = {
        let mut asked = player.desk.asked();
        asked.stop = true;
        asked.leases
    };
    let told = player.attempt(&chunk).await;
    let asked = {
        let mut asked = player.desk.asked();
        asked.stop = false;
        asked.leases - before
    };
    match told {
        Ok((outcome @ (Outcome::More { .. } | Outcome::Done { .. }), _)) => {
            Ok(format!("{}; it asked {asked} times", word(&outcome)))
        }
        Ok((Outcome::Fail(failure), _)) | Err(failure) => Err(shown(&failure)),
    }
}

async fn given_up(player: &Player<'_>) -> Verdict {
    let mut chunk = player.task();
    let mut call = player.call(&chunk, player.desk.enter());
    call.timeout = GIVEN_UP;
    // Whether it was faster than that does not matter.
    drop(player.told(call).await);
    again(&mut chunk);
    player.settle(&mut chunk).await.map(|outcome| word(&outcome))
}

async fn dead_callbacks(player: &Player<'_>) -> Verdict {
    let mut chunk = player.task();
    let told = player.told(player.call(&chunk, player.desk.dead())).await;
    if let Err(failure) = &told
        && !failure.code.starts_with("http-4")
        && !failure.code.starts_with("http-5")
    {
        return Err(shown(failure));
    }
    again(&mut chunk);
    player.settle(&mut chunk).await.map(|outcome| format!("and comes to its outcome later: {}", word(&outcome)))
}

fn asked_rightly(desk: &Desk) -> Verdict {
    let asked = desk.asked();
    match asked.faults.first() {
        None => Ok(format!("{} leases, {} reports and logs", asked.leases, asked.told)),
        Some(first) => Err(format!("{first} ({} in all)", asked.faults.len())),
    }
}
