//! The vector layer: all that is special to a vector width, and the loops that everything
//! elementwise runs on.
//!
//! In the order that data flows: [`mod@level`] finds out what the machine has; [`vectorize`] compiles a
//! safe loop for each level and enters the right one; [`float`] holds branch-free functions of one
//! number that such loops are made of; [`philox`] and [`random`] make random numbers; [`prefetch`] asks for bytes before they are needed;
//! [`stream`] writes past the caches; [`product`] has the micro-kernels of products of matrices.
//!
//! Invariants: no kernel allocates; an element's result depends on the element alone, never on its
//! place in the slice or the slice's length; `unsafe` stands in `vectorize`, `prefetch`,
//! `stream` and `product` alone.

pub mod cast;
pub mod elementwise;
pub mod float;
pub mod half;
pub mod level;
pub mod map;
pub mod number;
pub mod philox;
pub mod prefetch;
pub mod prim;
pub mod product;
pub mod random;
pub mod remainder;
pub mod stream;
pub mod vectorize;

pub use level::{Level, level};
pub use vectorize::{Fused, Isa, Plain, SimdKernel};
