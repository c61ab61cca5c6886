//! Traced functions: what they take and give, how their graphs are rewritten, ordered and fused, control flow and effects in them, and deferred graphs.

#[path = "../common/mod.rs"]
mod common;

mod bad_plans;
mod bad_trace;
mod data_views;
mod deferred;
mod effects;
mod epilogue;
mod explain;
mod functions;
mod fusion;
mod heads;
mod joined;
mod loops;
mod open_dims;
mod order;
mod parts_of_values;
mod programs;
mod random_loops;
mod random_programs;
mod rewrites;
mod strings;
mod transposed;
