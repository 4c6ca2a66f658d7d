//! What a follower of one task knows, and what each frame of the socket makes of it. Pure: no socket, no terminal, no clock.
//!
//! A snapshot of the task's topic replaces, everything else merges by revision: at or below the known one it is dropped, so
//! a late or repeated frame never takes progress back. A new epoch means a restored database, where revisions start over.
//! Log lines are in order and without repetition by their sequence number; a gap is filled from the HTTP API, not guessed.

use super::frame::{Frame, LogLine, TaskLine};
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// What a frame asks of whoever holds the socket and the terminal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Act {
    /// Send this frame.
    Send(String),
    /// The task changed: show it.
    Show,
    /// What is shown may be old.
    Delayed,
    /// Show a line of the log.
    Log(LogLine),
    /// Read the log after the last known line from the API.
    ReadLog,
    /// The task was deleted, or is no longer visible.
    Gone,
    /// Leave, and come back after so many ms and at most so many ms more.
    Leave { retry_ms: u64, spread_ms: u64 },
    /// The server will not let this caller follow the task.
    Refused(String),
}

/// What is known of the task that is followed.
pub(crate) struct Follow {
    id: String,
    known: Map<String, Value>,
    task: TaskLine,
    lang: &'static str,
    epoch: Option<String>,
    /// The head up to which this client was told everything; never that of a welcome, which only says what there is.
    head: Option<i64>,
    /// A sync was asked for and is not answered yet.
    syncing: bool,
    subscribed: bool,
    /// The last line of the log that was shown.
    pub(crate) last_seq: i64,
    /// The longest silence that a living server allows itself, ms.
    pub(crate) ping_ms: u64,
}

impl Follow {
    /// A follower of one task, that knows nothing yet.
    pub(crate) fn new(id: &str, lang: &'static str) -> Self {
        Self {
            id: id.to_owned(),
            lang,
            known: Map::new(),
            task: TaskLine::default(),
            epoch: None,
            head: None,
            syncing: false,
            subscribed: false,
            last_seq: 0,
            ping_ms: 25_000,
        }
    }

    /// The task as known.
    pub(crate) fn task(&self) -> &TaskLine {
        &self.task
    }

    /// The first frame of a connection.
    pub(crate) fn hello(&mut self) -> String {
        (self.subscribed, self.syncing) = (false, false);
        json!({"t": "hello", "token": null, "have": self.have(), "lang": self.lang}).to_string()
    }

    /// What is known of the notification center already; null before the first answer.
    fn have(&self) -> Option<Value> {
        self.epoch.as_ref().zip(self.head).map(|(epoch, head)| json!({"epoch": epoch, "head": head}))
    }

    fn told(&mut self, head: i64) {
        (self.head, self.syncing) = (Some(head), false);
    }

    /// Takes an answer of the API as the truth if it is not older than what is known.
    pub(crate) fn read(&mut self, task: Map<String, Value>) -> bool {
        self.merge(task)
    }

    /// Takes one frame.
    pub(crate) fn frame(&mut self, text: &str) -> Vec<Act> {
        match serde_json::from_str(text) {
            Ok(frame) => self.take(frame),
            // A frame of a newer server that this client cannot read; the next snapshot makes up for it.
            Err(_) => Vec::new(),
        }
    }

    fn take(&mut self, frame: Frame) -> Vec<Act> {
        match frame {
            Frame::Welcome { epoch, head, ping_ms } => {
                // A head that has fallen means a restored database, whatever its epoch says.
                let fallen = self.head.is_some_and(|known| head < known);
                if fallen || self.epoch.as_ref().is_some_and(|known| *known != epoch) {
                    self.known.remove("revision");
                    self.head = None;
                }
                self.epoch = Some(epoch);
                self.ping_ms = ping_ms.unwrap_or(self.ping_ms);
                let topic = format!("task:{}", self.id);
                vec![Act::Send(json!({"t": "sub", "topic": topic, "after": self.last_seq}).to_string())]
            }
            Frame::Snap { topic, head, items } => {
                let own = topic.strip_prefix("task:") == Some(self.id.as_str());
                if topic == "me" {
                    self.told(head);
                }
                match items.into_iter().find(|item| self.is_mine(item)) {
                    Some(item) if own => {
                        self.subscribed = true;
                        self.known.clear();
                        self.merge(item);
                        vec![Act::Show]
                    }
                    Some(item) => self.changed(item),
                    None if own => vec![Act::Gone],
                    None => Vec::new(),
                }
            }
            Frame::Same { topic, head } => {
                if topic == "me" {
                    self.told(head);
                }
                Vec::new()
            }
            Frame::Delta { topic, head, items } => {
                if topic == "me" {
                    self.head = self.head.map(|known| known.max(head));
                }
                items.into_iter().find(|item| self.is_mine(item)).map_or(Vec::new(), |item| self.changed(item))
            }
            Frame::Gone { id } if id == self.id => vec![Act::Gone],
            Frame::Log { task, from, lines } if task == self.id => self.log(from, lines),
            Frame::Ping { head } => {
                let mut acts = vec![Act::Send(json!({"t": "pong"}).to_string())];
                if !self.syncing && self.head.is_some_and(|known| head > known) {
                    self.syncing = true;
                    acts.push(Act::Send(json!({"t": "sync", "have": self.have()}).to_string()));
                }
                acts
            }
            Frame::Drain { retry_ms, spread_ms } => vec![Act::Leave { retry_ms, spread_ms }],
            Frame::Status { live } => vec![if live == "degraded" { Act::Delayed } else { Act::Show }],
            Frame::Err { code, retryable: false, .. } if !self.subscribed => vec![Act::Refused(code)],
            // Rights have changed, or the task went while nobody told.
            Frame::Err { retryable: false, topic: Some(topic), .. }
                if topic.strip_prefix("task:") == Some(self.id.as_str()) =>
            {
                vec![Act::Gone]
            }
            Frame::Err { .. } | Frame::Gone { .. } | Frame::Log { .. } | Frame::Other => Vec::new(),
        }
    }

    /// Takes lines of the log; those already shown are dropped.
    pub(crate) fn lines(&mut self, lines: Vec<LogLine>) -> Vec<LogLine> {
        let new: Vec<LogLine> = lines.into_iter().filter(|line| line.seq > self.last_seq).collect();
        self.last_seq = new.iter().map(|line| line.seq).fold(self.last_seq, i64::max);
        new
    }

    fn log(&mut self, from: i64, mut lines: Vec<LogLine>) -> Vec<Act> {
        for (offset, line) in (0..).zip(&mut lines) {
            if line.seq == 0 {
                line.seq = from + offset;
            }
        }
        match lines.first() {
            Some(first) if first.seq > self.last_seq + 1 => vec![Act::ReadLog],
            _ => self.lines(lines).into_iter().map(Act::Log).collect(),
        }
    }

    fn is_mine(&self, item: &Map<String, Value>) -> bool {
        item.get("id").and_then(Value::as_str) == Some(self.id.as_str())
    }

    fn changed(&mut self, item: Map<String, Value>) -> Vec<Act> {
        if self.merge(item) { vec![Act::Show] } else { Vec::new() }
    }

    /// Lays the fields of `item` over what is known; false when it is not newer.
    fn merge(&mut self, item: Map<String, Value>) -> bool {
        let revision = |map: &Map<String, Value>| map.get("revision").and_then(Value::as_i64);
        if let (Some(known), Some(new)) = (revision(&self.known), revision(&item))
            && new <= known
        {
            return false;
        }
        self.known.extend(item);
        if let Ok(task) = TaskLine::deserialize(&self.known) {
            self.task = task;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::End;
    use super::*;

    fn followed() -> Follow {
        let mut follow = Follow::new("t1", "zh-CN");
        follow.hello();
        let acts = follow.frame(r#"{"t":"welcome","epoch":"e1","head":4,"serverTime":"x","pingMs":20000,"new":1}"#);
        assert_eq!(acts, [Act::Send(json!({"t": "sub", "topic": "task:t1", "after": 0}).to_string())]);
        follow
    }

    fn delta(follow: &mut Follow, revision: i64, current: u64) -> Vec<Act> {
        let item = json!({"id": "t1", "revision": revision, "state": "running", "progress": {"current": current}});
        follow.frame(&json!({"t": "delta", "topic": "task:t1", "head": 5, "items": [item]}).to_string())
    }

    #[test]
    fn a_snapshot_replaces_and_deltas_merge_by_revision() {
        let mut follow = followed();
        assert_eq!(follow.ping_ms, 20_000);
        let snap = r#"{"t":"snap","topic":"task:t1","epoch":"e1","head":4,"items":[{"id":"t1","revision":7,"title":"T","state":"running"}]}"#;
        assert_eq!(follow.frame(snap), [Act::Show]);
        assert_eq!(delta(&mut follow, 8, 10), [Act::Show]);
        assert_eq!(delta(&mut follow, 8, 5), [], "a repeated revision is dropped");
        assert_eq!(delta(&mut follow, 7, 5), [], "an older one too");
        assert_eq!((follow.task().progress.current, follow.task().title.as_str()), (10, "T"), "fields not sent stay");
        assert_eq!(follow.frame(snap), [Act::Show]);
        assert_eq!(follow.task().progress.current, 0, "a snapshot is the whole truth");
    }

    #[test]
    fn a_new_epoch_lets_lower_revisions_in() {
        let mut follow = followed();
        delta(&mut follow, 90, 10);
        follow.frame(r#"{"t":"welcome","epoch":"e2","head":1}"#);
        assert_eq!(delta(&mut follow, 2, 3), [Act::Show]);
        assert_eq!(follow.task().progress.current, 3);
    }

    #[test]
    fn other_tasks_and_frames_of_newer_servers_change_nothing() {
        let mut follow = followed();
        for frame in [
            r#"{"t":"delta","topic":"me","head":9,"items":[{"id":"t2","revision":99,"state":"failed"}]}"#,
            r#"{"t":"gone","id":"t2","revision":3}"#,
            r#"{"t":"log","task":"t2","from":1,"to":1,"lines":[{"seq":1,"message":"x"}]}"#,
            r#"{"t":"snap","topic":"me","head":9,"items":[]}"#,
            r#"{"t":"zz-new","x":[1]}"#,
            "null",
            "[]",
            "not json",
        ] {
            assert_eq!(follow.frame(frame), [], "{frame}");
        }
        assert_eq!(follow.task(), &TaskLine::default());
    }

    #[test]
    fn a_ping_is_answered_and_a_head_that_ran_ahead_asks_one_sync() {
        let mut follow = followed();
        let pong = || Act::Send(r#"{"t":"pong"}"#.into());
        let sync = |head: i64| Act::Send(json!({"t": "sync", "have": {"epoch": "e1", "head": head}}).to_string());
        assert_eq!(follow.frame(r#"{"t":"ping","head":4}"#), [pong()], "the first answer is on its way");
        follow.frame(r#"{"t":"snap","topic":"me","epoch":"e1","head":4,"items":[]}"#);
        assert_eq!(follow.frame(r#"{"t":"ping","head":4}"#), [pong()]);
        assert_eq!(follow.frame(r#"{"t":"ping","head":6}"#), [pong(), sync(4)]);
        assert_eq!(
            follow.frame(r#"{"t":"ping","head":7}"#),
            [pong()],
            "one that is not answered yet is not asked again"
        );
        follow.frame(r#"{"t":"same","topic":"me","head":7}"#);
        assert_eq!(follow.frame(r#"{"t":"ping","head":7}"#), [pong()]);
        assert_eq!(follow.frame(r#"{"t":"ping","head":8}"#), [pong(), sync(7)]);
    }

    #[test]
    fn a_hello_tells_what_was_told_before_and_a_head_that_has_fallen_is_a_new_epoch() {
        let mut follow = Follow::new("t1", "zh-CN");
        let hello = |follow: &mut Follow| serde_json::from_str::<Value>(&follow.hello()).unwrap();
        let first = hello(&mut follow);
        assert_eq!(first, json!({"t": "hello", "token": null, "have": null, "lang": "zh-CN"}));
        follow.frame(r#"{"t":"welcome","epoch":"e1","head":9}"#);
        assert_eq!(hello(&mut follow)["have"], Value::Null, "a welcome tells nothing yet");
        follow.frame(r#"{"t":"snap","topic":"me","epoch":"e1","head":9,"items":[]}"#);
        delta(&mut follow, 90, 10);
        assert_eq!(hello(&mut follow)["have"], json!({"epoch": "e1", "head": 9}));
        follow.frame(r#"{"t":"welcome","epoch":"e1","head":3}"#);
        assert_eq!(delta(&mut follow, 2, 3), [Act::Show], "what was known of the other database counts no more");
        assert_eq!(hello(&mut follow)["have"], Value::Null);
    }

    #[test]
    fn log_lines_come_once_in_order_and_a_gap_is_read_from_the_api() {
        let mut follow = followed();
        let line = |seq: i64| LogLine { seq, message: format!("m{seq}"), ..LogLine::default() };
        assert_eq!(follow.lines(vec![line(1), line(2)]).len(), 2);
        let frame = |from: i64, seqs: &[i64]| {
            let lines: Vec<Value> = seqs.iter().map(|seq| json!({"seq": seq, "message": format!("m{seq}")})).collect();
            json!({"t": "log", "task": "t1", "from": from, "to": seqs[seqs.len() - 1], "lines": lines}).to_string()
        };
        assert_eq!(follow.frame(&frame(2, &[2, 3])), [Act::Log(line(3))]);
        assert_eq!(follow.frame(&frame(6, &[6])), [Act::ReadLog]);
        assert_eq!(follow.last_seq, 3, "nothing after a gap counts as shown");
        let unnumbered = r#"{"t":"log","task":"t1","from":4,"to":5,"lines":[{"message":"m4"},{"message":"m5"}]}"#;
        assert_eq!(follow.frame(unnumbered), [Act::Log(line(4)), Act::Log(line(5))]);
    }

    #[test]
    fn a_task_that_is_gone_or_refused_ends_the_follower_and_a_drain_sends_it_away() {
        let mut follow = followed();
        assert_eq!(
            follow.frame(r#"{"t":"err","code":"not-found","retryable":false}"#),
            [Act::Refused("not-found".into())]
        );
        assert_eq!(follow.frame(r#"{"t":"err","code":"busy","retryable":true}"#), []);
        assert_eq!(follow.frame(r#"{"t":"status","live":"degraded"}"#), [Act::Delayed]);
        assert_eq!(follow.frame(r#"{"t":"status","live":"ok"}"#), [Act::Show]);
        assert_eq!(
            follow.frame(r#"{"t":"snap","topic":"task:t1","head":1,"items":[{"id":"t1","revision":1}]}"#),
            [Act::Show]
        );
        let lost =
            |topic: &str| json!({"t": "err", "code": "not-found", "retryable": false, "topic": topic}).to_string();
        assert_eq!(follow.frame(&lost("task:t2")), []);
        assert_eq!(follow.frame(&lost("task:t1")), [Act::Gone], "rights may change");
        assert_eq!(follow.frame(r#"{"t":"snap","topic":"task:t1","head":1,"items":[]}"#), [Act::Gone]);
        assert_eq!(follow.frame(r#"{"t":"gone","id":"t1","revision":3}"#), [Act::Gone]);
        let leave = Act::Leave { retry_ms: 500, spread_ms: 5000 };
        assert_eq!(follow.frame(r#"{"t":"drain","retryMs":500,"spreadMs":5000}"#), [leave]);
    }

    #[test]
    fn only_a_final_state_is_an_end() {
        let mut follow = followed();
        for (revision, state, end) in [
            (1, "queued", None),
            (2, "cancelling", None),
            (3, "zz_new", None),
            (4, "succeeded", Some(End::Succeeded)),
            (5, "failed", Some(End::Failed)),
            (6, "cancelled", Some(End::Cancelled)),
        ] {
            let item = json!({"id": "t1", "revision": revision, "state": state});
            follow.frame(&json!({"t": "delta", "topic": "me", "head": 5, "items": [item]}).to_string());
            assert_eq!(follow.task().end(), end, "{state}");
        }
    }
}
