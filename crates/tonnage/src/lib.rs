//! Tonnage: tensors whose every byte is planned and accounted for.
//!
//! Eager ops, traced functions, gradient tapes, variables and loops, in the manner of TensorFlow. The
//! peak of a function is known before it runs ([`Function::plan`]), and running it takes exactly that.
//!
//! ```
//! use tonnage::{Tensor, constant, function, memory};
//! // A tensor is a recipe until someone needs its bytes.
//! let x = constant(1.0f32, [1000, 1000])?;
//! assert_eq!(((&x * 2.0)? + 1.0)?.sum_all()?.to_vec::<f32>()?, [3e6]);
//! # Ok::<(), tonnage::Error>(())
//! ```

mod control;
mod convert;
mod dispatch;
mod display;
mod function;
mod make;
pub mod memory;
mod operators;
mod ops;
mod part;
mod random;
mod read;
mod scope;
mod tape;
mod tensor;
mod trace;
mod tree;
mod variable;

pub use control::{cond, while_loop, while_loop_at_most};
pub use convert::{Native, Nested};
pub use function::{Function, function};
pub use make::{constant, eye, eye_of, full, linspace, ones, range, tensor, zeros};
pub use ops::{Elementwise, Index, Operand, Scan, concat, einsum, meshgrid, stack};
pub use part::{Axes, Part};
pub use random::{
    RandomKey, random_bernoulli, random_bits, random_categorical, random_gamma, random_int,
    random_normal, random_permutation, random_poisson, random_shuffle, random_truncated_normal,
    random_uniform, random_uniform_between, set_seed,
};
pub use scope::{Container, Reuse, forget_variables, get_variable, name_scope};
pub use tape::{Gradient, GradientTape, Watched};
pub use tensor::Tensor;
pub use tonnage_core::attrs::Padding;
pub use tonnage_core::{
    Bool, Bytes, DType, Error, ErrorKind, Kind, Result, Scalar, Shape, Source, TensorType, bf16,
    f16,
};
pub use tonnage_plan::Plan;
pub use tonnage_runtime::set_threads;
pub use tree::Tree;
pub use variable::Variable;

/// The README's example, which runs with the others.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
