//! Parts of a node at work together.

mod logbook;
