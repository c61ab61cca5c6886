//! How a CPU runs the ops of Tonnage: kernels over lent slices, the interpreter of tile programs, vector loops for
//! every width, the matmul core. [`kernel_of`] is the table of kernels; [`CpuTarget`] is what they ask of the planner.
//!
//! A kernel allocates nothing: it works in the scratch that it asked for.

mod host;
mod index;
pub mod kernel;
pub mod linalg;
mod nn;
mod number;
mod parallel;
mod random;
mod reduce;
mod shape;
mod signal;
mod state;
mod strided;
mod table;
mod target;
pub mod tile;
pub mod workers;
mod world;

pub use index::rows_in_parts;
pub use table::kernel_of;
pub use target::CpuTarget;
