//! The composition root: puts the layers together into a node. The only place that knows every layer.

pub mod clock;
pub mod lock;
