//! ONNX models as planned functions: bring the model that you have, and learn before it runs whether it fits.
//!
//! ```no_run
//! use tonnage::{Bytes, DType, Tensor};
//! let model = tonnage_onnx::load("model.onnx")?;
//! let inputs = model.specs(&[("batch", 8)])?;
//! println!("{}", model.plan(&inputs)?.peak()); // reads no weight, runs nothing
//! # Ok::<(), tonnage::Error>(())
//! ```
//!
//! Weights are read when they are first needed, or stay in the file: see [`Model`]. In the order in which a model goes through them: `wire` and `message` read
//! the file, `data` are its tensors, `contents` all of that, `weights` says where they are while it runs, `import` walks its nodes, `call` is a node as a rule sees it, `rules` are the
//! ops, a file a family, `layout` is how images lie between them, `tables` what is computed of rows alone, `ahead` what is computed once, and `convolutions` what normalizations go into; `segments` are the functions that a model becomes, and `model` is what users hold; `outline` is a look at a file.
//!
//! Decision: `docs/decisions/onnx-is-a-crate-of-its-own.md`.

mod ahead;
mod call;
mod contents;
mod convolutions;
mod data;
mod import;
mod layout;
mod message;
mod model;
mod outline;
mod port;
mod rules;
mod segments;
mod tables;
mod value;
mod weights;
mod wire;

pub use model::{Model, load};
pub use outline::{Outline, outline};
pub use port::{Port, PortDim};
pub use value::Value;
