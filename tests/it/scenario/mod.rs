//! Parts of a node at work together.

mod engine;
mod logbook;
