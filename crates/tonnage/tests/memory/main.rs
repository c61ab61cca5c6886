//! Budgets, limits and the ledger: what is refused, what gives way, what waits in files and runs in pieces, who holds what, and that nothing leaks.

#[path = "../common/mod.rs"]
mod common;
mod data_sizes;

mod bad_budget;
mod budget;
mod budget_sweep;
mod contexts;
mod leaks;
mod levers;
mod limits;
mod longer_storage;
mod ranges;
mod recipes;
mod rows_apart;
mod seeing;
mod segments;
mod segments_of_heads;
mod spill;
mod spill_trouble;
