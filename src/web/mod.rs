//! HTTP: the API and the pages.

pub mod pages;
