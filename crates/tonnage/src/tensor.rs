//! The tensor: a cheap handle, concrete or symbolic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::{DType, Error, ErrorKind, Result, Shape, TensorType, Value};
use tonnage_runtime::Array;

use crate::trace::Trace;

/// A tensor: values, or a description of a few bytes that gives them, or (while a function is traced)
/// a symbol for values to come. Cloning shares; moving it into an op gives its bytes up.
///
/// ```
/// use tonnage::tensor;
/// let x = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let y = ((&x * &x)? + 1.0)?;
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 5.0, 10.0, 17.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Clone)]
pub struct Tensor {
    repr: Repr,
    id: u64,
}

#[derive(Clone)]
pub(crate) enum Repr {
    Array(Array),
    Symbol(Arc<Symbol>),
}

/// A value of a graph in the making.
pub(crate) struct Symbol {
    pub value: Value,
    pub trace: Trace,
}

impl Tensor {
    pub(crate) fn from_array(array: Array) -> Tensor {
        Tensor { repr: Repr::Array(array), id: next_id() }
    }

    pub(crate) fn from_symbol(value: Value, trace: Trace) -> Tensor {
        let id = symbol_key(&trace, &value);
        Tensor { repr: Repr::Symbol(Arc::new(Symbol { value, trace })), id }
    }

    /// The same bytes under an identity of its own: a variable keeps its identity from read to read.
    pub(crate) fn with_id(array: Array, id: u64) -> Tensor {
        Tensor { repr: Repr::Array(array), id }
    }

    pub(crate) fn repr(&self) -> &Repr {
        &self.repr
    }

    pub(crate) fn into_repr(self) -> Repr {
        self.repr
    }

    /// Who it is to a tape.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Dtype of its elements.
    pub fn dtype(&self) -> DType {
        match &self.repr {
            Repr::Array(array) => array.dtype(),
            Repr::Symbol(symbol) => symbol.value.ty().dtype,
        }
    }

    /// Its shape; while a function is traced, dims may be open.
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// Dtype and shape.
    pub fn ty(&self) -> TensorType {
        match &self.repr {
            Repr::Array(array) => array.ty(),
            Repr::Symbol(symbol) => symbol.value.ty().clone(),
        }
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        match &self.repr {
            Repr::Array(array) => array.sizes().len(),
            Repr::Symbol(symbol) => symbol.value.ty().shape.rank(),
        }
    }

    /// Whether it is a description that takes no bytes.
    pub fn is_recipe(&self) -> bool {
        matches!(&self.repr, Repr::Array(array) if array.as_recipe().is_some())
    }

    /// Whether it stands for values to come: inside of a function that is traced.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.repr, Repr::Symbol(_))
    }

    pub(crate) fn array(&self, what: &'static str) -> Result<&Array> {
        match &self.repr {
            Repr::Array(array) => Ok(array),
            Repr::Symbol(_) => Err(Error::from(ErrorKind::Symbolic { what })),
        }
    }
}

/// An identity that no tensor had before.
pub(crate) fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The key of a graph's value: never that of a concrete tensor.
pub(crate) fn symbol_key(trace: &Trace, value: &Value) -> u64 {
    let index = value.id().map_or(0, |id| id.index() as u64);
    1 << 63 | trace.number() << 32 | index
}
