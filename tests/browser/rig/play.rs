//! A handler that does what a test wants: the demo's script, written anew; and a look into the page's own modules.
//!
//! A play is a list of outcomes, one a chunk (the last one stays); a list in a list is one outcome an attempt. `hold` keeps
//! its chunk under way: `ms` at most, with a report each `every` ms where `total` says how far; a stop ends it, unless it
//! is `deaf`.

use super::stage::Stage;
use serde_json::{Value, json};
use std::fs;

const SCRIPT: &str = r"
export default async function (task, cx) {
  const play = PLAYS[task.params.count];
  const tries = play[Math.min(cx.chunk, play.length) - 1];
  const { hold, ...outcome } = Array.isArray(tries) ? tries[Math.min(cx.attempt, tries.length) - 1] : tries;
  if (!hold) return outcome;
  const end = Date.now() + hold.ms;
  for (let current = 1; Date.now() < end; current += 1) {
    if (hold.total) cx.progress({ current: Math.min(current, hold.total), total: hold.total, unit: 'rows' });
    if (hold.deaf) await cx.leaseIsCurrent();
    else if (await cx.stopRequested()) break;
    await cx.sleep(hold.every ?? 50);
  }
  return outcome;
}
";

impl Stage {
    /// From now on the action `clean-contacts` plays `plays[n]` for the parameter `count` n.
    pub async fn plays(&self, plays: Value) {
        let script = format!("const PLAYS = {plays};\n{SCRIPT}");
        fs::write(self.folder().await.join("data/demo/clean-contacts.js"), script).unwrap();
    }

    /// What an async script answers, in the page; it may import the page's modules.
    pub async fn ask(&self, script: &str) -> Value {
        let wrapped = format!(
            "const done = arguments[arguments.length - 1]; (async () => {{ {script} }})().then(done, (e) => done({{ fault: String(e.stack ?? e) }}));"
        );
        let answer = self.driver().execute_async(wrapped, Vec::new()).await.unwrap().json().clone();
        assert!(answer.get("fault").is_none(), "{script}: {answer}");
        answer
    }

    /// Moves the mouse to a place of the window, in CSS pixels.
    pub async fn point_at(&self, x: f64, y: f64) {
        self.browser.devtools("Input.dispatchMouseEvent", json!({"type": "mouseMoved", "x": x, "y": y})).await;
    }

    /// What the browser counted of its own work so far, by name.
    pub async fn work_done(&self, name: &str) -> f64 {
        let told = self.browser.devtools("Performance.getMetrics", json!({})).await;
        let metrics = told["value"]["metrics"].as_array().cloned().unwrap_or_default();
        metrics.iter().find(|m| m["name"] == name).and_then(|m| m["value"].as_f64()).expect("the browser counts it")
    }
}

/// A task that plays.
pub fn playing(play: u32, title: &str) -> Value {
    json!({"action": "clean-contacts", "params": {"count": play}, "title": title})
}
