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

pub mod bind;
mod calibrate;
mod control;
mod convert;
pub mod data;
mod deferred;
mod delta;
pub mod device;
mod dispatch;
mod display;
mod doctor;
mod effects;
mod function;
mod grad;
#[cfg(doctest)]
mod guide;
pub mod io;
mod make;
pub mod memory;
pub mod metrics;
pub mod nn;
pub mod notices;
mod operators;
mod ops;
pub mod optim;
mod part;
mod random;
mod read;
pub mod report;
mod scope;
mod sharded;
pub mod strings;
mod tape;
mod tensor;
mod trace;
pub mod train;
mod tree;
mod variable;
mod window;
pub mod world;

pub use calibrate::{SavedFigures, calibrate, calibrate_across, machine};
pub use control::{Loop, LoopBound, cond, fori_loop, map_fn, scan, switch, while_loop};
pub use convert::{Native, Nested};
pub use deferred::{Graph, Session};
pub use delta::Delta;
pub use doctor::{Doctor, FoundMpi, Missing, doctor};
pub use effects::{
    Lent, assert_all, assert_equal, assert_greater, assert_greater_equal, assert_less,
    assert_less_equal, assert_shape, host_callback, host_effect, print, prints, pure_callback,
};
pub use function::{
    Budget, ConcreteFunction, Function, Ran, budgeted, function, largest_that_fits,
    run_functions_eagerly,
};
pub use grad::{
    Check, Vjp, check_gradients, checkpoint, custom_gradient, grad, grad_wrt, hvp, jvp,
    value_and_grad, value_and_grad_wrt, vjp,
};
pub use make::{constant, eye, eye_of, full, linspace, ones, positions, range, tensor, zeros};
pub use ops::{
    Attention, BatchNormOutput, Elementwise, Index, Lengths, Operand, Scan, concat, einsum,
    meshgrid, stack,
};
pub use part::{Axes, Part};
pub use random::{
    RandomKey, RandomSeed, random_bernoulli, random_bits, random_categorical, random_gamma,
    random_int, random_normal, random_permutation, random_poisson, random_shuffle,
    random_truncated_normal, random_uniform, random_uniform_between, set_seed,
};
pub use scope::{Container, Reuse, forget_variables, get_variable, name_scope};
pub use sharded::{Chunk, ChunkRows, Sharded};
pub use tape::{
    Gradient, GradientTape, IndexedSlices, SavedByOp, SavedForBackward, Sources, Watched,
    clip_by_global_norm, global_norm,
};
pub use tensor::Tensor;
pub use tonnage_core::attrs::PadMode;
pub use tonnage_core::window::Between;
pub use tonnage_core::{
    Bool, Bytes, DType, Dim, Error, ErrorKind, Kind, Result, Scalar, Shape, Source, TensorType,
    bf16, f16,
};
pub use tonnage_plan::{
    Change, Explanation, Fitted, Machine, Plan, Price, Share, StepLine, Suggestion,
};
pub use tonnage_runtime::{Context, Entered, set_threads};
pub use tree::{Static, Tree};
pub use variable::{Variable, variables_in_files};
pub use window::{Conv, Padding, PerAxis, Pool};
