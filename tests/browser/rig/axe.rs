//! axe-core in the page: the faults of accessibility that a program can find.
//!
//! `tests/npm` puts it into `target/node`; without it a test fails and says so. It is given to the browser as the driver's
//! own script, so the pages' content policy stays as it is.

use super::stage::Stage;
use serde_json::Value;
use std::fs;
use std::path::Path;

/// All rules of axe-core, those of WCAG 2.2 that it leaves out by default too. Answers one line a fault.
const LOOK: &str = r"
    const done = arguments[arguments.length - 1];
    const rules = { 'target-size': { enabled: true } };
    axe.run(document, { resultTypes: ['violations'], rules }).then(
        ({ violations }) => done(violations.flatMap(({ id, nodes }) =>
            nodes.map(({ target, failureSummary }) => `${id}: ${target.flat().join(' ')}: ${failureSummary.split('\n').slice(1).join(' ').trim()}`))),
        (fault) => done([String(fault)]));
";

impl Stage {
    /// What axe-core finds wrong with the page as it stands, widgets and open dialogs included.
    pub async fn axe(&self) -> Vec<String> {
        if self.eval("typeof axe").await != "object" {
            self.driver().execute(source(), Vec::new()).await.unwrap();
        }
        let found = self.driver().execute_async(LOOK, Vec::new()).await.unwrap();
        let Value::Array(found) = found.json().clone() else { panic!("axe answered {:?}", found.json()) };
        found.iter().map(|line| line.as_str().unwrap().to_owned()).collect()
    }
}

fn source() -> String {
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("node/node_modules/axe-core/axe.min.js");
    fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}; `tests/npm` installs it", file.display()))
}
