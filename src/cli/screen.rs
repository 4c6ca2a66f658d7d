//! The terminal: a bar with the log running above it, or plain lines where standard output is no terminal.
//!
//! With a total the bar is the share done; without one it is a spinner and a count. A line is written when the state or the
//! percentage is another, and every ten seconds while only counts move. A reader that has gone away is no fault.

use super::frame::{End, LogLine, TaskLine};
use super::terminal_text;
use super::words::Says;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// The shortest time between two lines of one state and one percentage: what is read later should not be long.
const LINE_PACE: Duration = Duration::from_secs(10);

/// Where progress and log are shown.
pub(crate) struct Screen {
    bar: Option<ProgressBar>,
    bar_has_total: Option<bool>,
    says: Says,
    last: Option<(String, Option<u8>, String)>,
    last_at: Option<Instant>,
}

impl Screen {
    /// A screen on standard output.
    pub(crate) fn open() -> Self {
        let bar = io::stdout().is_terminal().then(|| ProgressBar::with_draw_target(None, ProgressDrawTarget::stdout()));
        Self { bar, bar_has_total: None, says: Says::here(), last: None, last_at: None }
    }

    /// Shows where the task is; its end is told by [`Screen::end`].
    pub(crate) fn show(&mut self, task: &TaskLine) {
        if task.end().is_some() {
            return;
        }
        match self.bar.clone() {
            Some(bar) => self.draw(&bar, task),
            None => self.tell(task),
        }
    }

    fn draw(&mut self, bar: &ProgressBar, task: &TaskLine) {
        let total = task.progress.total.filter(|total| *total > 0);
        bar.set_prefix(terminal_text::plain(&task.title));
        bar.set_message(self.says.line(task));
        if let Some(total) = total {
            bar.set_length(total);
            bar.set_position(task.progress.current.min(total));
        }
        if self.bar_has_total != Some(total.is_some()) {
            self.bar_has_total = Some(total.is_some());
            let template = if total.is_some() { "{prefix} {bar:30} {msg}" } else { "{spinner} {prefix} · {msg}" };
            let style = ProgressStyle::with_template(template).expect("both templates are sound");
            bar.set_style(style.progress_chars("━╸─"));
            bar.enable_steady_tick(Duration::from_millis(120));
        }
    }

    fn tell(&mut self, task: &TaskLine) {
        let line = self.says.line(task);
        let news = match &self.last {
            Some((_, _, last)) if *last == line => false,
            Some((state, percent, _)) if *state == task.state && *percent == task.progress.percent => {
                self.last_at.is_none_or(|at| at.elapsed() >= LINE_PACE)
            }
            _ => true,
        };
        if news {
            write_line(&line);
            self.last = Some((task.state.clone(), task.progress.percent, line));
            self.last_at = Some(Instant::now());
        }
    }

    /// Shows a line of the log.
    pub(crate) fn log(&self, line: &LogLine) {
        self.line(&self.says.log(line));
    }

    /// The language it speaks, as a BCP 47 tag.
    pub(crate) fn lang(&self) -> &'static str {
        self.says.lang()
    }

    /// Says that the connection is lost; on a terminal only, since nothing about the task has changed.
    pub(crate) fn reconnecting(&self) {
        self.connection(self.says.reconnecting());
    }

    /// Says that what is shown may be old; on a terminal only as well.
    pub(crate) fn delayed(&self) {
        self.connection(self.says.delayed());
    }

    fn connection(&self, words: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(words);
        }
    }

    /// Takes the bar away and says how the task ended.
    pub(crate) fn end(self, task: &TaskLine, end: End) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
        write_line(&self.says.ended(task, end));
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => write_line(text),
        }
    }
}

fn write_line(text: &str) {
    let mut out = io::stdout().lock();
    // Nobody is left to tell when the reader has gone.
    let _ = writeln!(out, "{text}").and_then(|()| out.flush());
}
