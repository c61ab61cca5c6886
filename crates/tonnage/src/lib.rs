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
mod deferred;
mod dispatch;
mod display;
mod function;
mod make;
pub mod memory;
pub mod notices;
mod operators;
mod ops;
mod part;
mod read;
mod scope;
mod tape;
mod tensor;
mod trace;
mod tree;
mod variable;
mod window;

pub use control::{Loop, LoopBound, cond, fori_loop, map_fn, scan, switch, while_loop};
pub use convert::{Native, Nested};
pub use deferred::{Graph, Session};
pub use function::{ConcreteFunction, Function, function, run_functions_eagerly};
pub use make::{
    constant, eye, eye_of, full, linspace, ones, positions, random_normal, random_uniform, range,
    set_seed, tensor, zeros,
};
pub use ops::{Elementwise, Lengths, Operand, Scan, concat, stack};
pub use part::{Axes, Part};
pub use scope::{Container, Reuse, forget_variables, get_variable, name_scope};
pub use tape::{Gradient, GradientTape, Watched};
pub use tensor::Tensor;
pub use tonnage_core::attrs::PadMode;
pub use tonnage_core::{
    Bool, Bytes, DType, Dim, Error, ErrorKind, Kind, Result, Scalar, Shape, Source, TensorType,
    bf16, f16,
};
pub use tonnage_plan::Plan;
pub use tonnage_runtime::set_threads;
pub use tree::{Static, Tree};
pub use variable::Variable;
pub use window::{Conv, Padding, PerAxis, Pool};

/// The README's example, which runs with the others.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
