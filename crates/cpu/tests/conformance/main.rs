//! Conformance: what every row of the table promises, checked for every row and every sample.
//!
//! `exec` runs an op through its row as the runtime will; `reference` says in plain loops what it should give; each
//! other file holds one promise. Nothing here names an op, except where a document does: a new row is tested by
//! being in the table, and fails until it has a reference.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

mod allocations;
mod bad_input;
mod double;
mod draw;
#[path = "../../../simd/tests/exact/mod.rs"]
mod exact;
mod exec;
mod forward;
mod gradients;
mod instructions;
mod memory;
#[path = "../../../tonnage/tests/common/ops.rs"]
mod ops;
mod pieces;
mod plain;
mod recipes;
mod reference;
mod sanity;
mod special;
mod stops;
mod threads;
mod types;
mod values;
mod views;

#[global_allocator]
static ALLOCATOR: tonnage_counting::Counting = tonnage_counting::Counting;
