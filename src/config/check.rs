//! What a valid configuration still cannot have in this version or on this machine: handlers that do not exist, features
//! that are not active yet.
//!
//! A feature that would be ignored is told, never passed over in silence; an action that could not run is refused.

use super::action::{Action, HandlerRef};
use super::database::DatabaseUrl;
use super::fault::{Faults, nearest};
use super::sections::FilesUrl;
use super::{Loaded, Settings};

impl Settings {
    /// The actions that this version can run, as the core knows them.
    #[must_use]
    pub fn declared(&self) -> Vec<crate::core::action::Action> {
        self.actions.iter().map(Action::declared).collect()
    }

    /// What keeps `serve` from running this configuration: unknown native handlers, missing scripts, kinds of handlers and
    /// storage that this version has not got. `natives` are the names compiled into the binary.
    #[must_use]
    pub fn unrunnable(&self, natives: &[&str]) -> Faults {
        let mut faults = Faults::default();
        for (i, action) in self.actions.iter().enumerate() {
            let key = |kind: &str| format!("actions[{i}].handler.{kind}");
            match &action.handler {
                HandlerRef::Native(name) if !natives.contains(&name.as_str()) => {
                    let guess = nearest(name, natives.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
                    faults.push(
                        key("native"),
                        format!(
                            "this binary has no native handler `{name}`, which the action `{}` names{}",
                            action.key,
                            guess.unwrap_or_default()
                        ),
                    );
                }
                HandlerRef::Script(path) => {
                    if let Err(error) = std::fs::read_to_string(path) {
                        faults.push(
                            key("script"),
                            format!(
                                "the script {} of the action `{}` cannot be read: {error}",
                                path.display(),
                                action.key
                            ),
                        );
                    }
                }
                HandlerRef::Native(_) | HandlerRef::Http { .. } | HandlerRef::Pull => {}
            }
        }
        for (key, url) in [("database.url", Some(&self.database.url)), ("logs.url", self.logs.as_ref())] {
            if let Some(url @ DatabaseUrl::MySql(_)) = url {
                faults.push(key, format!("{url}: only sqlite: and postgres: are available in this version"));
            }
        }
        if let FilesUrl::S3(_) = self.files {
            faults.push("files.url", "only file:// is available in this version");
        }
        faults
    }

    /// Handlers of other applications that may not be called, so that their tasks would fail. `check-config` tells them as
    /// faults; `serve` says so and starts, for the other actions are in order.
    #[must_use]
    pub fn not_listed(&self) -> Faults {
        let mut faults = Faults::default();
        for (i, action) in self.actions.iter().enumerate() {
            if let HandlerRef::Http { url, .. } = &action.handler
                && let Err(refusal) = self.outbound.allow.check(url)
            {
                let text = format!("the action `{}` cannot run: {refusal}", action.key);
                faults.push(format!("actions[{i}].handler.http"), text);
            }
        }
        faults
    }
}

impl Loaded {
    /// Features that the configuration asks for and that this version does not act on yet: one sentence each, with the key.
    #[must_use]
    pub fn not_active(&self) -> Faults {
        let settings = &self.settings;
        let mut notes = Faults::default();
        let mut note = |asked: bool, key: &str, what: &str| {
            if asked {
                notes.push(
                    key,
                    format!("{what} not active yet in this version; the setting is valid and has no effect"),
                );
            }
        };
        note(self.given.contains("scheduler"), "scheduler", "schedules are");
        note(!settings.webhooks.is_empty(), "webhooks", "webhooks are");
        for (i, record) in settings.records.iter().enumerate() {
            note(
                record.write_back.is_some(),
                &format!("records[{i}].write_back"),
                "writing back to business tables is",
            );
        }
        notes
    }
}
