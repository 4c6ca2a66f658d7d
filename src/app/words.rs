//! The words and times of the pages, for the terminal: one catalogue, so that both say the same.

pub use crate::web::pages::when::{Rounded, Watch};
pub use crate::web::pages::words::{Words, grouped};
