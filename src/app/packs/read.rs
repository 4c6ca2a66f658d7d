//! One pack, read and held against everything that can be wrong with it before any of it runs: its manifest, the text of
//! every script, and the actions that others have declared already.

use crate::config::{Manifest, PackFaults};
use crate::core::pack::PackFault;
use crate::handler::script;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Reads the pack of a folder and parses all of its scripts; runs no line of them.
///
/// # Errors
/// All faults, each with its file, its line where one is known, and the reason.
pub(super) fn read(folder: &Path, env: &BTreeMap<String, String>) -> Result<Manifest, PackFaults> {
    let manifest = Manifest::read(folder, env)?;
    let mut faults = Vec::new();
    for script in manifest.pack.scripts.values() {
        let name = format!("{}/{}", manifest.pack.name, script.file);
        if let Err(told) = script::check_text(&name, &script.source) {
            faults.push(placed(&name, &told));
        }
    }
    if faults.is_empty() { Ok(manifest) } else { Err(PackFaults(faults)) }
}

/// `name:line:column: reason` as a fault with its line.
fn placed(name: &str, told: &str) -> PackFault {
    let rest = told.strip_prefix(name).and_then(|rest| rest.strip_prefix(':')).unwrap_or(told);
    let number = rest.split(':').next().and_then(|line| line.trim().parse().ok());
    let reason = match number {
        // Behind the line comes the column, and then the reason.
        Some(_) => rest.splitn(3, ':').nth(2).unwrap_or(rest),
        None => rest,
    };
    PackFault { file: name.to_owned(), line: number, reason: reason.trim().to_owned() }
}

/// What of a pack's actions is declared elsewhere already.
pub(super) fn taken(manifest: &Manifest, others: &BTreeSet<String>) -> Result<(), PackFaults> {
    let faults: Vec<PackFault> = manifest
        .actions
        .iter()
        .enumerate()
        .filter(|(_, action)| others.contains(&action.key))
        .map(|(i, action)| manifest.fault_of_action(i, &format!("`{}` is declared elsewhere already", action.key)))
        .collect();
    if faults.is_empty() { Ok(()) } else { Err(PackFaults(faults)) }
}

/// The folders of packs, by name, in order. A folder of packs that does not exist holds none; names that begin with a dot,
/// and files, are passed over.
pub(super) fn folders(dir: &Path) -> std::io::Result<BTreeMap<String, PathBuf>> {
    let entries = match std::fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(error),
    };
    let mut found = BTreeMap::new();
    for entry in entries {
        let path = entry?.path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        if !name.starts_with('.') && path.is_dir() {
            found.insert(name, path);
        }
    }
    Ok(found)
}

/// Reads every pack of a folder, as a start would, with the actions that the configuration declares. Answers the packs that
/// can be loaded, and every fault of the others.
pub(crate) fn check(
    dir: &Path,
    env: &BTreeMap<String, String>,
    declared: &BTreeSet<String>,
) -> (Vec<Manifest>, Vec<PackFault>) {
    let folders = match folders(dir) {
        Ok(folders) => folders,
        Err(error) => {
            let fault = PackFault::of_file(dir.display().to_string(), format!("cannot be read: {error}"));
            return (Vec::new(), vec![fault]);
        }
    };
    let (mut good, mut faults, mut declared) = (Vec::new(), Vec::new(), declared.clone());
    for folder in folders.values() {
        match read(folder, env).and_then(|manifest| taken(&manifest, &declared).map(|()| manifest)) {
            Ok(manifest) => {
                declared.extend(manifest.actions.iter().map(|action| action.key.clone()));
                good.push(manifest);
            }
            Err(found) => faults.extend(found.0),
        }
    }
    (good, faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_place_of_a_syntax_error_is_taken_apart() {
        let fault = placed("a/b.js", "a/b.js:7:12: unexpected token: ')'");
        assert_eq!(fault.to_string(), "a/b.js:7: unexpected token: ')'");
        assert_eq!(placed("a/b.js", "a/b.js: has 9 bytes").to_string(), "a/b.js: has 9 bytes");
    }
}
