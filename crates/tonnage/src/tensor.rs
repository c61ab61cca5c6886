//! The tensor: a cheap handle, concrete or symbolic.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::error::bad_argument;
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
    repr: TensorRepr,
    id: u64,
}

#[derive(Clone)]
pub(crate) enum TensorRepr {
    Array(Array),
    Symbolic(Arc<TracedValue>),
    Spec(Arc<TensorType>),
}

/// A value of a graph that is being traced.
pub(crate) struct TracedValue {
    pub value: Value,
    pub trace: Trace,
}

impl Tensor {
    pub(crate) fn from_array(array: Array) -> Tensor {
        Tensor { repr: TensorRepr::Array(array), id: next_id() }
    }

    pub(crate) fn from_symbol(value: Value, trace: Trace) -> Tensor {
        let id = symbol_key(&trace, &value);
        Tensor { repr: TensorRepr::Symbolic(Arc::new(TracedValue { value, trace })), id }
    }

    /// A tensor of that type without values: what a signature is written in, and what a plan can be asked
    /// for before the real one exists. Dims may be open: see [`Dim::open`](crate::Dim::open).
    ///
    /// ```
    /// use tonnage::{DType, Dim, Tensor, function, tensor};
    /// let rows = Tensor::spec(DType::F32, [Dim::open("rows"), Dim::from(2)]);
    /// let f = function(|x: Tensor| x.sum(1)).signature(rows);
    /// assert_eq!(f.call(tensor([[1.0f32, 2.0]])?)?.to_vec::<f32>()?, [3.0]);
    /// let large = Tensor::spec(DType::F32, [1_000_000, 2]);
    /// assert!((12_000_000..12_010_000).contains(&f.plan(&large)?.peak().get())); // whole pages
    /// assert_eq!(f.traces(), 1);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn spec(dtype: DType, shape: impl Into<Shape>) -> Tensor {
        Tensor::from_spec(TensorType { dtype, shape: shape.into() })
    }

    pub(crate) fn from_spec(ty: TensorType) -> Tensor {
        Tensor { repr: TensorRepr::Spec(Arc::new(ty)), id: next_id() }
    }

    /// The type of a tensor without values.
    pub(crate) fn spec_type(&self) -> Option<&TensorType> {
        match &self.repr {
            TensorRepr::Spec(ty) => Some(ty),
            _ => None,
        }
    }

    /// The same bytes under an identity of its own: a variable keeps its identity from read to read.
    pub(crate) fn with_id(array: Array, id: u64) -> Tensor {
        Tensor { repr: TensorRepr::Array(array), id }
    }

    pub(crate) fn repr(&self) -> &TensorRepr {
        &self.repr
    }

    pub(crate) fn into_repr(self) -> TensorRepr {
        self.repr
    }

    /// Its identity, by which tapes know it.
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Dtype of its elements.
    pub fn dtype(&self) -> DType {
        match &self.repr {
            TensorRepr::Array(array) => array.dtype(),
            TensorRepr::Symbolic(symbol) => symbol.value.ty().dtype,
            TensorRepr::Spec(ty) => ty.dtype,
        }
    }

    /// Its shape; while a function is traced, dims may be open.
    pub fn shape(&self) -> Shape {
        self.ty().shape
    }

    /// Dtype and shape.
    pub fn ty(&self) -> TensorType {
        match &self.repr {
            TensorRepr::Array(array) => array.ty(),
            TensorRepr::Symbolic(symbol) => symbol.value.ty().clone(),
            TensorRepr::Spec(ty) => (**ty).clone(),
        }
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        match &self.repr {
            TensorRepr::Array(array) => array.sizes().len(),
            TensorRepr::Symbolic(symbol) => symbol.value.ty().shape.rank(),
            TensorRepr::Spec(ty) => ty.shape.rank(),
        }
    }

    /// Whether it is a description that takes no bytes.
    pub fn is_recipe(&self) -> bool {
        matches!(&self.repr, TensorRepr::Array(array) if array.as_recipe().is_some())
    }

    /// Whether it stands for values to come: inside of a function that is traced.
    pub fn is_symbolic(&self) -> bool {
        matches!(self.repr, TensorRepr::Symbolic(_))
    }

    /// Whether it has values, or a recipe for them.
    #[inline]
    pub(crate) fn is_concrete(&self) -> bool {
        matches!(self.repr, TensorRepr::Array(_))
    }

    pub(crate) fn array(&self, what: &'static str) -> Result<&Array> {
        match &self.repr {
            TensorRepr::Array(array) => Ok(array),
            TensorRepr::Symbolic(_) => Err(Error::from(ErrorKind::Symbolic { what })),
            TensorRepr::Spec(_) => Err(self.no_values(what)),
        }
    }

    /// The error of using a tensor that is a type alone.
    pub(crate) fn no_values(&self, what: &'static str) -> Error {
        let spec = format!("{} is a type without values (`Tensor::spec`)", self.ty());
        bad_argument(what, spec, "use a tensor of that type")
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
