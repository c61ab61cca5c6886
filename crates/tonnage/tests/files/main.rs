//! Tensors and variables in files: read, written, refused where they lie, and used where they are.

#[path = "../common/mod.rs"]
mod common;

mod bad_files;
mod files;
mod lazy_files;
mod loop_files;
mod ranges;
mod sharded;
mod tables_in_files;
mod variables_in_files;
