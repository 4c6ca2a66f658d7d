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

/// Memory of a realm before it is given a script's budget, bytes: what reading the longest text may take.
const MEMORY_BYTES: usize = 256 * 1024 * 1024;

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

    /// One that nothing stops: for parsing alone.
    pub fn bare() -> Result<Self, Error> {
        let runtime = Runtime::new()?;
        runtime.set_max_stack_size(STACK_BYTES);
        runtime.set_memory_limit(MEMORY_BYTES);
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
