//! Traces of the demo's actions, as `cargo bench --bench eta -- --record` wrote them.
//!
//! A file is one task. Its first line says what was clicked, the second names the columns: ms since the first claim, the
//! count, the total (empty where the action never tells one: then the bench tells what it came to in the end, so that the
//! rhythm can be measured), and what came then: `wait 250` for a planned delay of 250 ms, `stop` and `go` for a failure
//! and its resume.

use super::trace::{Event, Trace};
use std::path::Path;

/// Where they are.
pub fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/eta/recorded")
}

/// All of them, by name.
pub fn all() -> Vec<Trace> {
    let folder = folder();
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut files: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "csv"));
    files.sort();
    files.iter().map(|path| read(&std::fs::read_to_string(path).unwrap())).collect()
}

fn read(text: &str) -> Trace {
    let (mut events, mut told, mut current) = (Vec::new(), None, 0);
    for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
        let cells: Vec<&str> = line.split(',').collect();
        let [ms, count, total, then] = cells[..] else { panic!("four cells, not {line:?}") };
        let (at, count): (i64, i64) = (ms.parse().unwrap(), count.parse().unwrap());
        let total = (!total.is_empty()).then(|| total.parse::<i64>().unwrap());
        if total.is_some() && total != told {
            events.push((at, Event::Total(total)));
            told = total;
        }
        if count > current || events.is_empty() {
            events.push((at, Event::Report(count)));
            current = count;
        }
        match then.split_once(' ') {
            Some(("wait", ms)) => {
                let ms: i64 = ms.parse().unwrap();
                events.extend([(at, Event::Gap(ms)), (at + ms, Event::Go)]);
            }
            _ if then == "stop" => events.push((at, Event::Stop)),
            _ if then == "go" => events.push((at, Event::Go)),
            _ => events.push((at, Event::Report(count))),
        }
    }
    let mut trace = Trace { events };
    if told.is_none() {
        trace.events.insert(0, (0, Event::Total(Some(trace.all()))));
    }
    trace
}
