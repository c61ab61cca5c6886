//! The words of Tonnage: types, shapes, bytes, errors; the row that describes an op; the graph that
//! ops form; and the walker that differentiates it. No concrete op, no I/O, no threads, no `unsafe`.

pub mod attrs;
pub mod bytes;
pub mod dim;
pub mod dtype;
pub mod emit;
pub mod error;
pub mod grad;
pub mod graph;
pub mod heap;
pub mod host;
pub mod kind;
mod layer;
pub mod layout;
pub mod lent;
pub mod loop_checkpoints;
pub mod looping;
pub mod philox;
pub mod recipe;
pub mod rounding;
pub mod row;
pub mod save;
pub mod scalar;
pub mod shape;
mod shortage;
pub mod source;
pub mod tile;
pub mod walk;
pub mod window;

pub use attrs::Attrs;
pub use bytes::Bytes;
pub use dim::{Dim, Symbol};
pub use dtype::{Bool, Class, DType, Element};
pub use emit::{Emit, Mark, Value};
pub use error::{Error, ErrorKind, Result};
pub use graph::{Builder, Graph, Node, ValueId};
pub use half::{bf16, f16};
pub use host::HostCall;
pub use kind::Kind;
pub use layout::Layout;
pub use recipe::Recipe;
pub use row::{Call, OpDef};
pub use scalar::{FromScalar, Scalar};
pub use shape::{Shape, Sizes, TensorType};
pub use source::Source;
