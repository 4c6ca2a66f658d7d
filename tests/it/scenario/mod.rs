//! Parts of a node at work together.

mod children;
mod engine;
mod full_disk;
mod logbook;
mod nodes;
mod outage;
mod retention;
mod scripts;
