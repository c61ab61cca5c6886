//! The ops of Tonnage: one file a row, with its type rule, gradient rule, kernel and samples.
//!
//! A kernel borrows what it reads, what it writes and its scratch; it allocates nothing. What rows
//! share stands beside them: `infer` for type rules, `strided` and `parallel` for walking lent memory,
//! `number` for what kernels ask of an element.

pub mod index;
pub mod linalg;
pub mod nn;

mod infer;
mod number;
mod parallel;
mod strided;
#[cfg(test)]
mod testing;
