//! Parts of a node at work together.

mod children;
mod drain;
mod engine;
mod full_disk;
mod hostile_text;
mod logbook;
mod nodes;
mod outage;
mod pressure;
mod retention;
mod scripts;
