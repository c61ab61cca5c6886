//! Pictures of memory: what a plan will hold and what a recording saw, for the terminal, the browser and the tools that
//! people know.
//!
//! In the order that data flows: [`Picture`] is the one form that plans and timelines are brought into, with
//! addresses of what has none by `stack`; [`chart`] draws it for a terminal; `export` writes it for others
//! ([`Picture::csv`], [`Picture::json`], [`Picture::trace`], [`Picture::pprof`]); [`Report`] is one page of HTML.
//! Nothing here asks a device or touches a file: every number is the plan's or the ledger's, and the caller writes
//! the bytes to a file.

pub mod chart;
mod export;
mod html;
mod picture;
mod stack;

pub use export::csv_row;
pub use html::Report;
pub use picture::{Along, Bar, BufferOwner, Picture, Point, Tick};
