//! The words of Tonnage: types, shapes, bytes, errors; the row that describes an op; the graph that
//! ops form; and the walker that differentiates it. No concrete op, no I/O, no threads, no `unsafe`.

pub mod bytes;
pub mod dim;
pub mod dtype;
pub mod error;
pub mod scalar;
pub mod shape;
pub mod source;
pub mod workers;

pub use bytes::Bytes;
pub use dim::{Dim, Symbol};
pub use dtype::{Bool, Class, DType, Element};
pub use error::{Error, ErrorKind, Result};
pub use half::{bf16, f16};
pub use scalar::{FromScalar, Scalar};
pub use shape::{Shape, Sizes, TensorType};
pub use source::Source;
pub use workers::Workers;
