//! What a page of another application loads: every module behind `taskbell.js` as one script, and the words it uses.
//!
//! The sources stay plain modules, and our own pages load them as they are. Over a network that is not ours a chain of
//! twenty small requests would be slow, so the server puts them together: each module becomes a function that gives what it
//! exports, in the order of their imports, without comments and white space. The words are the catalogue's entries that
//! this script can ask for. Must never change what a module does; it relies on the form that the modules have: imports are
//! one line each and named, exports stand before their declaration, and no two modules import each other.

use super::squeeze;
use regex::Regex;
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The module that a host page names.
pub const ENTRY: &str = "taskbell";

static IMPORT: LazyLock<Regex> = LazyLock::new(|| regex(r"(?m)^import (?:\{([^}]*)\} from )?'\./(\w+)\.js';\n"));
static EXPORT: LazyLock<Regex> =
    LazyLock::new(|| regex(r"(?m)^export ((?:async function|function|class|const) (\w+))"));
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
    /// The module as a function whose answer has its exports.
    fn enclosed(&self) -> String {
        let exports: Vec<&str> =
            EXPORT.captures_iter(&self.text).map(|export| export.get(2).map_or("", |name| name.as_str())).collect();
        let body = IMPORT.replace_all(&self.text, |import: &regex::Captures<'_>| match import.get(1) {
            Some(names) => format!("const {{{}}} = ${};\n", names.as_str().replace(" as ", ": "), &import[2]),
            None => String::new(),
        });
        let body = EXPORT.replace_all(&body, "$1");
        format!("const ${} = (() => {{\n{body}\nreturn {{ {} }};\n}})();\n", self.name, exports.join(", "))
    }
}

/// The one script.
///
/// # Panics
/// See [`graph`].
pub fn script(read: &dyn Fn(&str) -> Option<String>) -> String {
    let mut whole: String = graph(ENTRY, read).iter().map(Module::enclosed).collect();
    whole.push_str(&format!("export const {{ connect }} = ${ENTRY};\n"));
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
                "/** A note: import { x } from './x.js'; */\nimport { one } from './a.js';\n\nconst own = one; // 'not.this'\n"
            }
            "a.js" => {
                "export const one = t('say.one');\nexport async function two() {\n  return /\\/\\*'/.test('//') ? `a  ${one}  b` : null;\n}\n"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    #[test]
    fn modules_become_one_script_in_the_order_of_their_imports() {
        let script = script(&read);
        let at = |word: &str| script.find(word).unwrap_or_else(|| panic!("{word} in {script}"));
        assert!(at("const $a=") < at("const $b=") && at("const $b=") < at("const $taskbell="), "{script}");
        assert!(script.contains("const{one:uno,two}=$a;") && script.contains("return{one,two}"), "{script}");
        assert!(script.contains("return/\\/\\*'/.test('//')?`a  ${one}  b`:null"), "{script}");
        assert!(!script.contains("A note") && !script.contains("import "), "{script}");
        assert!(script.trim_end().trim_end_matches(';').ends_with("export const{connect}=$taskbell"), "{script}");
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
