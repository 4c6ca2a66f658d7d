//! The pages: what a person sees, written by the server and taken over by the scripts of `static/`.
//!
//! Every page works without a script and without a socket: rows, links for filters and paging, plain forms with a CSRF
//! token. A page is a template filled from a view; the words come from [`words`], times from [`when`], sentences about a
//! task from [`row`]. Must never decide what a caller may see or do: the view is already cut to the caller's rights.

pub mod buttons;
pub mod error;
pub mod form;
mod left;
pub mod login;
pub mod notifications;
pub mod record;
pub mod row;
mod say;
pub mod shell;
pub mod task;
#[cfg(test)]
mod tests;
pub mod when;
pub mod words;
