//! The two shapes of a script's file: a module with a default export, or the body of a function with `return` at its top.
//!
//! They are told apart by how they parse: `export` stands in no function and `return` at the top of no module, so what is no
//! module may be a body. What parses as both, with neither word in it, runs as a body: only that shape can answer by a throw.
//! When a text is neither, the fault is told that it has as what it looks like.

use super::realm::Realm;
use rquickjs::context::EvalOptions;
use rquickjs::module::Declared;
use rquickjs::{Ctx, Error, Exception, Function, Module, Value};

/// Before and after the body of a function, so that it becomes one. On the first line, for lines to keep their numbers.
const OPEN: &str = "(async function () {";
const CLOSE: &str = "\n})";
/// Before both where nothing may run: the rest of the text is read, and then this ends it.
const NEVER: &str = "throw 0;";

/// A script's text, read and not yet run.
pub(super) enum Shape<'js> {
    Module(Module<'js, Declared>),
    Body(Function<'js>),
    /// There is nothing in it.
    Blank,
}

impl<'js> Shape<'js> {
    /// Reads a text. An error leaves what is wrong as the exception of the context.
    pub fn of(ctx: &Ctx<'js>, name: &str, source: &[u8]) -> Result<Self, Error> {
        if source.trim_ascii().is_empty() {
            return Ok(Self::Blank);
        }
        let exports = source.windows(6).any(|word| word == b"export");
        match either(ctx, source, Module::declare(ctx.clone(), name, source).map(Self::Module), || {
            body(ctx, name, "", source).map(Self::Body)
        })? {
            Self::Module(_) if !exports => body(ctx, name, "", source).map(Self::Body),
            read => Ok(read),
        }
    }
}

/// A text read as a module, or else as a body; when it is neither, the fault that fits its looks.
fn either<'js, T>(
    ctx: &Ctx<'js>,
    source: &[u8],
    module: Result<T, Error>,
    body: impl FnOnce() -> Result<T, Error>,
) -> Result<T, Error> {
    if !matches!(module, Err(Error::Exception)) {
        return module;
    }
    let thrown = ctx.catch();
    if !is_syntax(&thrown) {
        return Err(ctx.throw(thrown));
    }
    match body() {
        Err(Error::Exception) if looks_like_module(source) => {
            ctx.catch();
            Err(ctx.throw(thrown))
        }
        read => read,
    }
}

/// A function with the text as its body, of the older kind of code that need not declare its variables.
fn body<'js>(ctx: &Ctx<'js>, name: &str, before: &str, source: &[u8]) -> Result<Function<'js>, Error> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    let text = [before.as_bytes(), OPEN.as_bytes(), source, CLOSE.as_bytes()].concat();
    ctx.eval_with_options(text, options)
}

/// Whether a line begins as only those of modules do.
fn looks_like_module(source: &[u8]) -> bool {
    let begins = |line: &[u8], word: &str| {
        let rest = line.strip_prefix(word.as_bytes());
        rest.is_some_and(|rest| rest.first().is_some_and(|next| b" {*'\"".contains(next)))
    };
    let mut lines = source.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_start);
    lines.any(|line| begins(line, "export") || begins(line, "import"))
}

fn is_syntax(thrown: &Value<'_>) -> bool {
    let name = thrown.as_object().and_then(|object| object.get::<_, String>("name").ok());
    name.is_some_and(|name| name == "SyntaxError")
}

/// Whether a text is a script, without running any of it; if not, the line and what is wrong there.
pub fn parse(name: &str, source: Vec<u8>) -> Result<(), String> {
    let realm = Realm::bare().map_err(|error| error.to_string())?;
    realm.context.with(|ctx| {
        let module = Module::declare(ctx.clone(), name, source.as_slice()).map(|_| ());
        let read = either(&ctx, &source, module, || match body(&ctx, name, NEVER, &source) {
            Err(Error::Exception) => {
                let thrown = ctx.catch();
                if thrown.as_int() == Some(0) { Ok(()) } else { Err(ctx.throw(thrown)) }
            }
            other => other.map(|_| ()),
        });
        let Err(error) = read else { return Ok(()) };
        let before = if looks_like_module(&source) { 0 } else { NEVER.len() + OPEN.len() };
        let exception = ctx.catch().into_object().and_then(Exception::from_object);
        Err(exception.map_or_else(
            || error.to_string(),
            |exception| {
                let (message, stack) = (exception.message().unwrap_or_default(), exception.stack().unwrap_or_default());
                syntax_fault(name, before, &message, &stack)
            },
        ))
    })
}

/// How many characters a text has before its first line when it is run and a fault of syntax is told.
pub(super) fn before(source: &[u8]) -> usize {
    if looks_like_module(source) { 0 } else { OPEN.len() }
}

/// `name:line:column: what is wrong`, from what a syntax error tells of a text with so many characters before its first line.
pub(super) fn syntax_fault(name: &str, before: usize, message: &str, stack: &str) -> String {
    let place = stack.lines().find_map(|line| line.trim().strip_prefix("at "));
    let place =
        place.and_then(|place| place.strip_prefix(name)?.strip_prefix(":1:")?.parse::<usize>().ok()).map_or_else(
            || place.filter(|place| place.starts_with(name)).unwrap_or(name).to_owned(),
            |column| format!("{name}:1:{}", column.saturating_sub(before).max(1)),
        );
    format!("{place}: {message}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_of_either_shape_parses_without_running() {
        for text in [
            "export default async function (task, cx) { return { hasMore: false } }\nwhile (true) {}",
            "while (true) {}\nreturn 1;",
            "return await V8.ApiEngine.Run('x', {});",
            "total = 0;\nfor (var i in V8.Param) { total += 010 }\nreturn { Code: 1, Data: { export: total } };",
            "if (!V8.Param.Id) { return { Code: 0 } }",
            "// only a remark",
            "}); while (true) {} (function () {",
        ] {
            assert_eq!(parse("a.js", text.into()), Ok(()), "{text}");
        }
    }

    #[test]
    fn a_syntax_error_is_told_with_file_line_and_column_of_the_shape_that_the_text_has() {
        for (text, place) in [
            ("export default 1;\nlet a = ;\n", "a.js:2:9: "),
            ("export default function () { return 1 }\nreturn 2;", "a.js:2:"),
            ("let a = ;\nreturn 1;", "a.js:1:9: "),
            ("var a = 1;\nreturn { Code: 1;", "a.js:2:"),
        ] {
            let fault = parse("a.js", text.into()).unwrap_err();
            assert!(fault.starts_with(place), "{text}: {fault}");
        }
    }

    #[test]
    fn an_import_is_refused_in_words() {
        let fault = parse("a.js", "import fs from 'fs'; export default () => fs;".into()).unwrap_err();
        assert!(fault.contains("cannot import") && fault.contains("`fs`"), "{fault}");
    }

    #[test]
    fn a_source_with_a_nul_or_that_is_nested_without_end_is_refused_and_nothing_breaks() {
        assert!(parse("a.js", "let a = '\0';".into()).is_err());
        assert!(parse("a.js", "[".repeat(500_000).into()).is_err());
    }
}
