//! The promises of a pull worker: how it asks, what it makes of answers that break or come late, of repeats, lost leases and stops.

mod play;
mod service;

pub(super) use play::Player;
pub(super) use service::Service;

use super::checklist::{Checklist, Verdict};
use super::play::{advance, again, same_work, word};
use crate::cli::client::ClientError;
use play::Trouble;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use service::Answer;
use std::process::Stdio;
use std::time::Duration;
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout};

/// How long a worker may take to end that is asked to.
const ENDS_WITHIN: Duration = Duration::from_secs(10);

/// Looks at all of them, in order. `command` starts the worker; empty = somebody else does.
pub(super) async fn check(mut player: Player, command: &[String], list: &mut Checklist) -> Result<(), ClientError> {
    let mut worker = start(&player, command)?;
    let looks = async {
        list.tell("it asks for chunks of the action", &asks(&mut player).await);
        list.tell("it asks again when there is nothing", &asks_again(&mut player).await);
        list.tell("it comes again after Retry-After, and not before", &comes_later(&mut player).await);
        list.tell("it lives through answers that break and ones that are no JSON", &broken(&mut player).await);
        list.tell("a task comes to its end", &whole_task(&mut player).await);
        list.tell(
            "a commit whose answer was lost comes again as it was",
            &committed(&mut player, Trouble::LostAnswer).await,
        );
        list.tell(
            "a commit that is to come later comes again as it was",
            &committed(&mut player, Trouble::Later).await,
        );
        list.tell("a chunk that comes again under a new claim is worked on again", &repeats(&mut player).await);
        list.tell("a chunk whose lease is lost is let go, and the next one taken", &lost(&mut player).await);
        list.tell("a chunk that is asked to stop ends in its time", &stops(&mut player).await);
        list.tell("every request has its right form", &asked_rightly(&player));
    };
    match &mut worker {
        None => looks.await,
        Some(worker) => {
            let ended = tokio::select! {
                () = looks => None,
                ended = worker.wait() => Some(ended),
            };
            if let Some(ended) = ended {
                let how = ended.map_or_else(|e| e.to_string(), |status| status.to_string());
                // A refusal may be why.
                list.tell("every request has its right form", &asked_rightly(&player));
                list.tell("it works on", &Err(format!("it ended meanwhile: {how}")));
            } else {
                list.tell("it ends when it is asked to", &ends(&mut player, worker).await);
            }
        }
    }
    Ok(())
}

fn start(player: &Player, command: &[String]) -> Result<Option<Child>, ClientError> {
    let (url, key) = (&player.service.url, &player.service.key);
    let Some((program, args)) = command.split_first() else {
        eprintln!("start the worker with TASKBELL_URL={url} TASKBELL_KEY={key}");
        return Ok(None);
    };
    let mut command = Command::new(program);
    command.args(args).env("TASKBELL_URL", url).env("TASKBELL_KEY", key);
    command.stdin(Stdio::null()).stdout(Stdio::null()).kill_on_drop(true);
    let child = command.spawn().map_err(|e| ClientError::Usage(format!("cannot start {program}: {e}")))?;
    Ok(Some(child))
}

fn empty() -> Answer {
    Answer::Json(json!({"chunks": []}))
}

async fn asks(player: &mut Player) -> Verdict {
    let claim = player.claim().await?;
    let body = claim.body.to_string();
    claim.answer(empty());
    Ok(body)
}

async fn asks_again(player: &mut Player) -> Verdict {
    for _ in 0..2 {
        player.claim().await?.answer(empty());
    }
    Ok(String::new())
}

async fn comes_later(player: &mut Player) -> Verdict {
    for status in [503, 429] {
        player.claim().await?.answer(Answer::Later(status, 1));
        let began = Instant::now();
        player.claim().await?.answer(empty());
        // The answer takes its way as well.
        if began.elapsed() < Duration::from_millis(900) {
            return Err(format!("{status}: after {:?} of 1 s", began.elapsed()));
        }
    }
    Ok(String::new())
}

async fn broken(player: &mut Player) -> Verdict {
    for answer in [Answer::Break, Answer::Garbage, Answer::Later(502, 0)] {
        player.claim().await?.answer(answer);
    }
    player.claim().await?.answer(empty());
    Ok(String::new())
}

async fn whole_task(player: &mut Player) -> Verdict {
    let mut chunk = player.task();
    let mut renewals = 0;
    for count in 1..=player.chunks {
        let seen = player.play(&chunk, Trouble::None).await.map_err(|fault| format!("chunk {count}: {fault}"))?;
        renewals += seen.renewals;
        let Some(outcome) = seen.outcome else { return Err(format!("chunk {count}: it was let go")) };
        if let crate::core::chunk::Outcome::Fail(_) = outcome {
            return Err(format!("chunk {count}: {}", word(&outcome)));
        }
        let (current, total) = (chunk.progress.current, chunk.progress.total);
        if !advance(&mut chunk, &outcome) {
            return Ok(format!("{count} chunks, {renewals} renewals"));
        }
        if chunk.progress.current < current && chunk.progress.total == total {
            return Err(format!("chunk {count}: current fell from {current} to {}", chunk.progress.current));
        }
        chunk.fencing_token = chunk.fencing_token.next();
    }
    Err(format!("it is not done after {} chunks (--chunks)", player.chunks))
}

async fn committed(player: &mut Player, trouble: Trouble) -> Verdict {
    let chunk = player.task();
    let seen = player.play(&chunk, trouble).await?;
    Ok(format!("{} commits: {}", seen.commits, seen.outcome.as_ref().map(word).unwrap_or_default()))
}

async fn repeats(player: &mut Player) -> Verdict {
    let mut chunk = player.task();
    let first = player.play(&chunk, Trouble::None).await?.outcome;
    again(&mut chunk);
    let second = player.play(&chunk, Trouble::None).await?.outcome;
    match (first, second) {
        (Some(first), Some(second)) if same_work(&first, &second) => Ok(word(&second)),
        (Some(first), Some(second)) => Err(format!("{}, then {}", word(&first), word(&second))),
        _ => Err("it was let go".into()),
    }
}

async fn lost(player: &mut Player) -> Verdict {
    let mut chunk = player.task();
    let seen = player.play(&chunk, Trouble::LostLease).await?;
    again(&mut chunk);
    let next = player.play(&chunk, Trouble::None).await?;
    let how = if seen.commits == 0 { "let go while it ran" } else { "learnt of by its commit" };
    Ok(format!("{how}, then {}", next.outcome.as_ref().map(word).unwrap_or_default()))
}

async fn stops(player: &mut Player) -> Verdict {
    let chunk = player.task();
    let seen = player.play(&chunk, Trouble::Stop).await?;
    let told = if seen.told == 0 {
        "not seen: it was over before it asked".into()
    } else {
        format!("told {} times", seen.told)
    };
    match seen.outcome {
        Some(crate::core::chunk::Outcome::Fail(failure)) => Err(format!("failed with {}", failure.code)),
        Some(outcome) => Ok(format!("{}; {told}", word(&outcome))),
        None => Err("it was let go".into()),
    }
}

fn asked_rightly(player: &Player) -> Verdict {
    let faults = player.service.faults();
    match faults.first() {
        None => Ok(String::new()),
        Some(first) => Err(format!("{first} ({} in all)", faults.len())),
    }
}

async fn ends(player: &mut Player, worker: &mut Child) -> Verdict {
    let pid = worker.id().and_then(|id| Pid::from_raw(id.cast_signed())).ok_or("it has ended already")?;
    kill_process(pid, Signal::TERM).map_err(|e| e.to_string())?;
    let served = async {
        loop {
            let Ok(claim) = player.claim().await else { std::future::pending().await };
            claim.answer(empty());
        }
    };
    tokio::select! {
        ended = timeout(ENDS_WITHIN, worker.wait()) => match ended {
            Ok(Ok(status)) if status.success() => Ok(String::new()),
            Ok(Ok(status)) => Err(status.to_string()),
            Ok(Err(e)) => Err(e.to_string()),
            Err(_) => Err(format!("it runs on after {ENDS_WITHIN:?}")),
        },
        verdict = served => verdict,
    }
}
