//! `taskbell check-config`: tells every fault of the configuration with its key, and what is asked for in vain.
//!
//! Reads settings and packs, and parses scripts; runs no line of them, opens no database and writes nothing. Faults are the answer, so they go to
//! standard output. Exit status: 0 it can be served, 1 it cannot.

use crate::app::check_packs;
use crate::config::{self, Faults, HandlerRef, Loaded, Settings};
use crate::core::pack::PackFault;
use crate::handler::script;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// Checks the configuration of `file` and of this process's environment. `natives` are the names of the handlers compiled
/// into the binary.
pub fn run(file: Option<&Path>, natives: &[&str]) -> ExitCode {
    let loaded = Settings::load(file, config::environment(), false);
    let good = report(&mut io::stdout().lock(), loaded, natives);
    ExitCode::from(u8::from(!good.unwrap_or(false)))
}

/// Writes what was found; true when the configuration can be served.
fn report(out: &mut impl Write, loaded: Result<Loaded, Faults>, natives: &[&str]) -> io::Result<bool> {
    let mut packs = Packs::default();
    let (faults, notes, summary) = match loaded {
        // The demo brings its own handlers, and puts its script in place when it is served.
        Ok(loaded) if loaded.demo => (Faults::default(), loaded.not_active(), summary(&loaded)),
        Ok(loaded) => {
            packs = Packs::of(&loaded.settings);
            (unrunnable(&loaded.settings, natives), loaded.not_active(), summary(&loaded))
        }
        Err(faults) => (faults, Faults::default(), String::new()),
    };
    for fault in &faults.0 {
        writeln!(out, "{fault}")?;
    }
    for fault in &packs.faults {
        writeln!(out, "{fault}")?;
    }
    for note in &notes.0 {
        writeln!(out, "note: {note}")?;
    }
    match faults.0.len() + packs.faults.len() {
        0 => writeln!(out, "{summary}{}", packs.told())?,
        1 => writeln!(out, "1 fault")?,
        n => writeln!(out, "{n} faults")?,
    }
    Ok(faults.is_empty() && packs.faults.is_empty())
}

/// What was found in the folder of packs. A pack at fault would not keep `serve` from starting, but it would not run.
#[derive(Default)]
struct Packs {
    good: usize,
    faults: Vec<PackFault>,
}

impl Packs {
    fn of(settings: &Settings) -> Self {
        let declared = settings.actions.iter().map(|action| action.key.clone()).collect();
        let (good, faults) = check_packs(&settings.packs.dir, &config::environment().collect(), &declared);
        Self { good: good.len(), faults }
    }

    fn told(&self) -> String {
        match self.good {
            0 => String::new(),
            1 => ", 1 pack".to_owned(),
            n => format!(", {n} packs"),
        }
    }
}

/// What keeps `serve` from running this configuration, and what is wrong inside of the scripts, which `serve` would tell
/// only with the first chunk. The scripts are read and not run.
pub(super) fn unrunnable(settings: &Settings, natives: &[&str]) -> Faults {
    let mut faults = settings.unrunnable(natives);
    faults.0.extend(settings.not_listed().0);
    for (i, action) in settings.actions.iter().enumerate() {
        let HandlerRef::Script(path) = &action.handler else { continue };
        let key = format!("actions[{i}].handler.script");
        if faults.0.iter().any(|fault| fault.key == key) {
            continue;
        }
        if let Err(fault) = script::check(path) {
            faults.push(key, format!("the script of the action `{}` cannot run: {fault}", action.key));
        }
    }
    faults
}

fn summary(loaded: &Loaded) -> String {
    let settings = &loaded.settings;
    let source = match &loaded.file {
        Some(file) => file.display().to_string(),
        None if loaded.demo => "the demo (no file and no settings)".to_owned(),
        None => "the environment".to_owned(),
    };
    let actions = match settings.actions.len() {
        1 => "1 action".to_owned(),
        n => format!("{n} actions"),
    };
    format!("{source}: valid; listens on {}, {actions}, {}", settings.server.listen, settings.database.url)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(toml: &str) -> (bool, String) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taskbell.toml");
        std::fs::write(&file, toml).unwrap();
        let mut out = Vec::new();
        let good = report(&mut out, Settings::load(Some(&file), std::iter::empty(), false), &["import"]).unwrap();
        (good, String::from_utf8(out).unwrap())
    }

    #[test]
    fn a_good_configuration_is_told_in_one_line() {
        let (good, text) = checked("[[actions]]\nkey = \"a\"\nhandler = { native = \"import\" }");
        assert!(good && text.contains(": valid; listens on 127.0.0.1:8080, 1 action, sqlite://"), "{text}");
        assert_eq!(text.lines().count(), 1);
    }

    #[test]
    fn each_fault_has_a_line_with_its_key_and_a_feature_to_come_has_a_note() {
        let (good, text) = checked("[server]\nlisten = 1\n[loging]\nlevel = \"info\"");
        assert!(!good);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("server.listen: ") && lines[1].starts_with("loging: does not exist"), "{text}");
        assert_eq!(lines[2], "2 faults");

        let http = "[[actions]]\nkey = \"a\"\nhandler = { http = \"https://erp.example.com:8443/run\", secret = \"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\" }";
        let (good, text) = checked(http);
        let told = "actions[0].handler.http: the action `a` cannot run: erp.example.com:8443 is not listed";
        assert!(!good && text.starts_with(told), "{text}");
        assert!(checked(&format!("[outbound]\nallow = [\"erp.example.com:8443\"]\n{http}")).0);
        assert!(checked(&http.replace("\"whsec_", "\"")).1.starts_with("actions[0].handler.secret: "));

        let (good, text) = checked("[redis]\nurl = \"redis://:hidden@127.0.0.1\"");
        assert!(good && !text.contains("redis.url") && !text.contains("hidden"), "{text}");
        let (good, text) = checked("[redis]\nurl = \"redis://:hidden@127.0.0.1/tasks\"\nca = \"no certificate\"");
        assert!(
            !good && text.contains("redis.url: ") && text.contains("redis.ca: ") && !text.contains("hidden"),
            "{text}"
        );

        let (good, text) = checked("[files]\nurl = \"s3://bucket/files\"");
        assert!(!good && text.starts_with("files.url: "), "{text}");
    }

    #[test]
    fn each_fault_of_a_pack_has_a_line_with_its_file_and_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("taskbell.toml");
        std::fs::write(&file, "[[actions]]\nkey = \"a\"\nhandler = { native = \"import\" }").unwrap();
        let pack = |name: &str, script: &str, key: &str| {
            let folder = dir.path().join("packs").join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("run.js"), script).unwrap();
            let text = format!(
                "name = \"{name}\"\nversion = \"1\"\n[[actions]]\nkey = \"{key}\"\nhandler = {{ script = \"run.js\" }}\n"
            );
            std::fs::write(folder.join("pack.toml"), text).unwrap();
        };
        let told = || {
            let mut out = Vec::new();
            let good = report(&mut out, Settings::load(Some(&file), std::iter::empty(), false), &["import"]).unwrap();
            (good, String::from_utf8(out).unwrap())
        };
        pack("fine", "export default () => ({ hasMore: false });", "fine");
        let (good, text) = told();
        assert!(good && text.trim_end().ends_with(", 1 pack"), "{text}");
        pack("taken", "export default () => ({ hasMore: false });", "a");
        pack("torn", "export default () => {\n  oh no\n};", "torn");
        let (good, text) = told();
        assert!(!good && text.ends_with("2 faults\n"), "{text}");
        assert!(text.contains("taken/pack.toml:4: actions[0].key: `a` is declared elsewhere already"), "{text}");
        assert!(text.contains("torn/run.js:2: "), "{text}");
    }
}
