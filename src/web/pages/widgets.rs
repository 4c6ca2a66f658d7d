//! What a page of another application loads: every module behind `taskbell.js` as one script, and the words it uses.
//!
//! The sources stay plain modules, and our own pages load them as they are. Over a network that is not ours a chain of
//! twenty small requests would be slow, so the server puts them together: one after the other in the order of their imports, without comments and white
//! space; a module whose own names meet those of another one stands in a function. The words are the catalogue's entries that
//! this script can ask for. Must never change what a module does; it relies on the form that the modules have: imports are
//! one line each and named, what a module declares begins its line, no two modules import each other or export the same
//! name, and none declares a name that the browser has (a browser test looks).

use super::squeeze;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::HashSet;
use std::sync::LazyLock;

/// The module that a host page names.
pub const ENTRY: &str = "taskbell";

static IMPORT: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^import (?:\{([^}]*)\} from )?'\./(\w+)\.js';\n"));
static DECLARED: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^(export )?(?:async function|function|class|const|let) (\w+)"));
static TEXT: LazyLock<Regex> = LazyLock::new(|| regex(r#"'([a-z][\w.-]*)'|"([a-z][\w.-]*)"|`([a-z][\w.-]*\.)\$\{"#));

fn regex(form: &str) -> Regex {
    Regex::new(form).expect("the forms are regular expressions")
}

/// A module in the making.
struct Module {
    name: String,
    text: String,
}

/// The modules from which `entry` is made, each after those that it imports. `read` gives a file of the folder.
///
/// # Panics
/// When a module names a file that is not there, or modules import each other: both are faults of the folder, told by its test.
fn graph(entry: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<Module> {
    fn visit(name: &str, read: &dyn Fn(&str) -> Option<String>, open: &mut Vec<String>, done: &mut Vec<Module>) {
        if done.iter().any(|module| module.name == name) {
            return;
        }
        assert!(!open.iter().any(|each| each == name), "{name}.js imports itself by way of {open:?}");
        open.push(name.to_owned());
        let text = read(&format!("{name}.js")).unwrap_or_else(|| panic!("{open:?} imports {name}.js"));
        for import in IMPORT.captures_iter(&text) {
            visit(&import[2], read, open, done);
        }
        open.pop();
        done.push(Module { name: name.to_owned(), text });
    }
    let mut done = Vec::new();
    visit(entry, read, &mut Vec::new(), &mut done);
    done
}

impl Module {
    /// The names that it exports.
    fn exports(&self) -> impl Iterator<Item = &str> {
        self.declared().filter_map(|(exported, name)| exported.then_some(name))
    }

    /// The names that it keeps to itself.
    fn own(&self) -> impl Iterator<Item = &str> {
        self.declared().filter_map(|(exported, name)| (!exported).then_some(name))
    }

    fn declared(&self) -> impl Iterator<Item = (bool, &str)> {
        let all = DECLARED.captures_iter(&self.text);
        all.map(|each| (each.get(1).is_some(), each.get(2).map_or("", |name| name.as_str())))
    }

    /// Its statements. What it imports stands at the top of the script; only another name for it has to be made.
    fn body(&self) -> String {
        let body = IMPORT.replace_all(&self.text, |import: &regex::Captures<'_>| {
            let names = import.get(1).map_or("", |names| names.as_str()).split(',');
            let renamed = names.filter_map(|name| name.trim().split_once(" as "));
            renamed.map(|(name, other)| format!("const {other} = {name};\n")).collect::<String>()
        });
        DECLARED
            .replace_all(&body, |each: &regex::Captures<'_>| each[0].trim_start_matches("export ").to_owned())
            .into()
    }

    /// Its statements in a function, so that what it keeps to itself does not meet the same name of another module.
    fn enclosed(&self) -> String {
        let exports = self.exports().collect::<Vec<_>>().join(", ");
        format!("const {{ {exports} }} = (() => {{\n{}\nreturn {{ {exports} }};\n}})();\n", self.body())
    }
}

/// The one script.
///
/// # Panics
/// See [`graph`]; and when two modules export the same name.
pub fn script(read: &dyn Fn(&str) -> Option<String>) -> String {
    let modules = graph(ENTRY, read);
    let mut taken = HashSet::new();
    for name in modules.iter().flat_map(Module::exports) {
        assert!(taken.insert(name), "two modules export {name}");
    }
    let mut whole = String::new();
    for module in &modules {
        let renames = IMPORT.captures_iter(&module.text).any(|import| import[0].contains(" as "));
        if renames || module.own().any(|name| taken.contains(name)) {
            whole.push_str(&module.enclosed());
        } else {
            taken.extend(module.own());
            whole.push_str(&module.body());
        }
    }
    let exports = modules.iter().filter(|module| module.name == ENTRY).flat_map(Module::exports);
    whole.push_str(&format!("export {{ {} }};\n", exports.collect::<Vec<_>>().join(", ")));
    squeeze::script(&whole)
}

/// The entries of a catalogue that the script can ask for: those it names, and those below a name that it completes.
///
/// # Panics
/// See [`graph`].
pub fn words(catalogue: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<String> {
    let mut all: Map<String, Value> = serde_json::from_str(catalogue).ok()?;
    let (mut names, mut stems) = (Vec::new(), Vec::new());
    let modules = graph(ENTRY, read);
    for text in modules.iter().flat_map(|module| TEXT.captures_iter(&module.text)) {
        match text.get(3) {
            Some(stem) => stems.push(stem.as_str()),
            None => names.extend(text.get(1).or(text.get(2)).map(|name| name.as_str())),
        }
    }
    all.retain(|key, _| names.contains(&key.as_str()) || stems.iter().any(|stem| key.starts_with(stem)));
    serde_json::to_string(&all).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Option<String> {
        let text = match name {
            "taskbell.js" => {
                "import './b.js';\nimport { one as uno, two } from './a.js';\n\nexport function connect() {\n  return uno + two() + t(`state.${two()}`);\n}\n"
            }
            "b.js" => {
                "/** A note: import { x } from './x.js'; */\nimport { one } from './a.js';\n\nconst own = one; // 'not.this'\nexport const b = own;\n"
            }
            "a.js" => {
                "const own = t('say.one');\nexport const one = own;\nexport async function two() {\n  return /\\/\\*'/.test('//') ? `a  ${one}  b` : null;\n}\n"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn modules_become_one_script_in_the_order_of_their_imports() {
        let script = script(&read);
        let parts = [
            "const own=t('say.one');const one=own;async function two(){return/\\/\\*'/.test('//')?`a  ${one}  b`:null;}",
            "const{b}=(()=>{const own=one;const b=own;return{b};})();",
            "const{connect}=(()=>{const uno=one;function connect(){return uno+two()+t(`state.${two()}`);}",
            "return{connect};})();export{connect};",
        ];
        assert_eq!(script.lines().collect::<String>(), parts.concat());
    }

    #[test]
    #[should_panic(expected = "two modules export one")]
    fn modules_that_export_the_same_name_are_told() {
        script(&|name| {
            let text =
                if name == "a.js" { "export const one = 1;\n" } else { "import './a.js';\nexport const one = 2;\n" };
            Some(text.to_owned())
        });
    }

    #[test]
    fn only_words_that_the_script_can_ask_for_are_in_its_catalogue() {
        let all = r#"{"say.one":"1","say.two":"2","state.done":{"one":"a","other":"b"},"other.key":"x"}"#;
        assert_eq!(words(all, &read).unwrap(), r#"{"say.one":"1","state.done":{"one":"a","other":"b"}}"#);
    }

    #[test]
    #[should_panic(expected = "imports itself")]
    fn modules_that_import_each_other_are_told() {
        graph("a", &|name| Some(format!("import './{}.js';\n", if name == "a.js" { "b" } else { "a" })));
    }
}
