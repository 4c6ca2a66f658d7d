//! The world that one chunk of a script runs in: a runtime with nothing in it but the language.
//!
//! No module loader, no host object. Made anew for each chunk; no value passes from one to the next. The interpreter asks
//! the [`Bridge`] every so often whether it must stop; that does not happen inside of native loops, which is why the server
//! kills the process when it does not stop by itself.

use super::bridge::Bridge;
use rquickjs::context::intrinsic::{
    Date, Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler, TypedArrays, WeakRef,
};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Context, Ctx, Error, Exception, Module, Runtime};
use std::rc::Rc;

/// Stack of a realm before it is given a script's budget, bytes.
const STACK_BYTES: usize = 1024 * 1024;

type Language = (Date, Eval, RegExpCompiler, RegExp, Json, Proxy, MapSet, TypedArrays, Promise, WeakRef);

/// A runtime and its only context.
pub(super) struct Realm {
    pub runtime: Runtime,
    pub context: Context,
}

impl Realm {
    /// A fresh one that stops when the bridge says so. How much memory and stack it has is set by whoever runs a script in it.
    pub fn new(bridge: &Rc<Bridge>) -> Result<Self, Error> {
        let realm = Self::bare()?;
        let bridge = Rc::clone(bridge);
        realm.runtime.set_interrupt_handler(Some(Box::new(move || bridge.tick())));
        Ok(realm)
    }

    fn bare() -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_loader(NoImports, NoImports);
        let context = Context::custom::<Language>(&runtime)?;
        Ok(Self { runtime, context })
    }
}

/// Refuses every import, in words.
struct NoImports;

impl Resolver for NoImports {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String, Error> {
        let refused = Exception::from_message(ctx.clone(), &format!("a script cannot import anything, not `{name}`"))?;
        refused.as_object().set("permanent", true)?;
        Err(refused.throw())
    }
}

impl Loader for NoImports {
    fn load<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>, Error> {
        Err(Error::new_loading(name))
    }
}

/// Whether a text is a script, without running any of it; if not, the line and what is wrong there.
pub fn parse(name: &str, source: Vec<u8>) -> Result<(), String> {
    let realm = Realm::bare().map_err(|error| error.to_string())?;
    realm.context.with(|ctx| {
        let Err(error) = Module::declare(ctx.clone(), name, source) else { return Ok(()) };
        let exception = ctx.catch().into_object().and_then(Exception::from_object);
        Err(exception.map_or_else(
            || error.to_string(),
            |exception| {
                syntax_fault(name, &exception.message().unwrap_or_default(), &exception.stack().unwrap_or_default())
            },
        ))
    })
}

/// `name:line:column: what is wrong`, from what a syntax error tells.
pub(super) fn syntax_fault(name: &str, message: &str, stack: &str) -> String {
    let place = stack.lines().find_map(|line| line.trim().strip_prefix("at ")).filter(|place| place.starts_with(name));
    format!("{}: {message}", place.unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_parses_without_running() {
        let text = "export default async function (task, cx) { return { hasMore: false } }\nwhile (true) {}";
        assert_eq!(parse("a.js", text.into()), Ok(()));
    }

    #[test]
    fn a_syntax_error_is_told_with_file_line_and_column() {
        let fault = parse("a.js", "export default 1;\nlet a = ;\n".into()).unwrap_err();
        assert!(fault.starts_with("a.js:2:9: "), "{fault}");
        assert!(parse("a.js", "return 1".into()).unwrap_err().starts_with("a.js:1:"), "not a module");
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
