//! The keys of a pack's manifest, described as those of the configuration are; `[[actions]]` and `database.url` have their
//! rows there.

use super::rows::Allowed::{Free, OneOf};
use super::rows::{Row, row};

/// The keys that only a manifest has, in the order of the file.
#[rustfmt::skip]
pub const PACK_ROWS: &[Row] = &[
    row("name", "", "[a-z0-9][a-z0-9._-]{0,63}", Free, "What the pack is called: the name of its folder."),
    row("version", "", "text", Free, "What its makers call this state of it; shown to administrators."),
    row("permissions", "[]", "", OneOf(&["tasks:submit"]), "What its scripts may do beside computing. `tasks:submit`: submit children."),
    row("hosts", "[]", "hosts or host:port", Free, "Hosts that its scripts may fetch from; `outbound.allow` of the configuration must list them too."),
    row("serial", "false", "true, false", Free, "At most one chunk of the pack runs at any instant, on any node."),
    row("tables[].name", "", "identifier", Free, "A table of the pack's database that its scripts may read and write."),
    row("tables[].key", "\"Id\"", "identifier", Free, "The column that identifies a row."),
    row("tables[].columns", "", "column → text, integer, number or boolean", Free, "The columns that scripts may name, with what each holds."),
    row("tables[].unique", "[]", "columns, or lists of them", Free, "Columns that no two rows may share the values of."),
];
