//! Arguments of ops: tensors, axes, lengths, dtypes, as users write them.

use std::sync::Arc;

use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use tonnage::strings::{Strings, Value};
use tonnage::{Axes, DType, Dim, Scalar, Shape, Tensor};

use crate::convert::{self, Want};
use crate::dtype::{self, ElementType};
use crate::strings;
use crate::tensor::PyTensor;

/// How many elements an argument has, for the question whether the interpreter's lock is worth giving up.
pub trait Work {
    /// About how many.
    fn work(&self) -> usize {
        0
    }
}

macro_rules! no_work {
    ($($T:ty),*) => {$(impl Work for $T {})*};
}
no_work!(
    bool,
    i64,
    f64,
    usize,
    String,
    u64,
    AxesArg,
    ShapeArg,
    Dt,
    Element,
    FillArg,
    ScalarArg,
    Vec<i64>,
    Vec<usize>
);
no_work!(Vec<[usize; 2]>, Option<f64>, Option<usize>, Option<Dt>, [usize; 2], [[usize; 2]; 2]);

/// An argument that is a tensor, or becomes one.
pub struct TensorArg(pub Tensor);

impl Work for TensorArg {
    fn work(&self) -> usize {
        self.0.shape().count().unwrap_or(0)
    }
}

impl FromPyObject<'_, '_> for TensorArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<TensorArg> {
        convert::tensor(&given, Want::default()).map(TensorArg)
    }
}

/// An argument that is numbers or strings, or becomes that.
pub struct ValueArg(pub Value);

impl Work for ValueArg {
    fn work(&self) -> usize {
        self.0.shape().count().unwrap_or(0)
    }
}

impl FromPyObject<'_, '_> for ValueArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<ValueArg> {
        strings::value(&given, Want::default()).map(ValueArg)
    }
}

/// An argument that is strings, or becomes that.
pub struct StringsArg(pub Strings);

impl Work for StringsArg {
    fn work(&self) -> usize {
        self.0.shape().count().unwrap_or(0)
    }
}

impl FromPyObject<'_, '_> for StringsArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<StringsArg> {
        strings::strings(&given).map(StringsArg)
    }
}

impl Work for Option<TensorArg> {
    fn work(&self) -> usize {
        self.as_ref().map_or(0, TensorArg::work)
    }
}

/// An argument of any kind, in which no number is out of range: a count of -1 is an error that says so.
pub struct InRange<T>(pub T);

impl<'a, 'py, T: FromPyObject<'a, 'py>> FromPyObject<'a, 'py> for InRange<T> {
    type Error = PyErr;
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<InRange<T>> {
        T::extract(given).map(InRange).map_err(|error| {
            let (py, error) = (given.py(), error.into());
            match error.is_instance_of::<PyOverflowError>(py) {
                true => {
                    let text = format!("{}: numbers from 0 to 2^63 are needed here", *given);
                    crate::errors::of_class(py, "InvalidArgumentError", text)
                }
                false => error,
            }
        })
    }
}

/// Several tensors of one dtype.
pub struct Several(pub Vec<Tensor>);

impl Work for Several {
    fn work(&self) -> usize {
        self.0.iter().map(|t| t.shape().count().unwrap_or(0)).sum()
    }
}

impl FromPyObject<'_, '_> for Several {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Several> {
        Several::of(&given.try_iter()?.collect::<PyResult<Vec<_>>>()?)
    }
}

impl Several {
    fn of(items: &[Bound<'_, PyAny>]) -> PyResult<Several> {
        let mut hint = None;
        for item in items {
            if let Ok(tensor) = item.cast::<PyTensor>() {
                hint = hint.or(Some(tensor.get().tensor.dtype()));
            }
        }
        let want = Want { wanted: None, hint };
        items.iter().map(|item| convert::tensor(item, want)).collect::<PyResult<_>>().map(Several)
    }
}

/// Several of numbers of one dtype, or of strings.
pub struct SeveralValues(pub Vec<Value>);

impl Work for SeveralValues {
    fn work(&self) -> usize {
        self.0.iter().map(|value| value.shape().count().unwrap_or(0)).sum()
    }
}

impl FromPyObject<'_, '_> for SeveralValues {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<SeveralValues> {
        let items: Vec<Bound<'_, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
        let is_text = items.iter().any(strings::is_text);
        let several = match is_text {
            true => items.iter().map(|item| strings::value(item, Want::default())).collect(),
            false => Several::of(&items).map(|all| all.0.into_iter().map(Value::Numbers).collect()),
        };
        several.map(SeveralValues)
    }
}

/// Axes: none is all of them.
pub struct AxesArg(pub Axes);

impl FromPyObject<'_, '_> for AxesArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<AxesArg> {
        if given.is_none() {
            return Ok(AxesArg(Axes::ALL));
        }
        Ok(AxesArg(Axes::from(&integers(&given)?[..])))
    }
}

/// One integer or several: numbers, lists, tensors with values, arrays.
pub fn integers(given: &Bound<'_, PyAny>) -> PyResult<Vec<i64>> {
    if let Ok(one) = given.extract::<i64>() {
        return Ok(vec![one]);
    }
    if let Ok(many) = given.extract::<Vec<i64>>() {
        return Ok(many);
    }
    if let Ok(tensor) = given.cast::<PyTensor>()
        && let Some(lengths) = tensor.get().known_lengths()
        && let Some(lengths) = lengths.into_iter().collect::<Option<Vec<_>>>()
    {
        return Ok(lengths.into_iter().map(|n| n as i64).collect());
    }
    let tensor = convert::tensor(given, Want::default())?;
    values(given.py(), &tensor)
}

/// The tensor with its value, while a function is traced where constants alone decide on it.
pub fn known(py: Python<'_>, tensor: &Tensor, what: &str) -> PyResult<Tensor> {
    match tensor.is_symbolic() {
        false => Ok(tensor.clone()),
        true => tonnage::bind::known(tensor).ok_or_else(|| crate::errors::data_decide(py, what)),
    }
}

/// The values of a tensor of integers.
pub fn values(py: Python<'_>, tensor: &Tensor) -> PyResult<Vec<i64>> {
    use tonnage::Elementwise;
    if !tensor.dtype().is_integer() {
        let text = format!("integers are needed, not a tensor of {}", dtype::name(tensor.dtype()));
        return Err(PyTypeError::new_err(text));
    }
    let tensor = known(py, tensor, "a size or a position")?;
    let read = || tensor.cast(DType::I64)?.to_vec::<i64>();
    crate::run::eagerly(read).map_err(|e| crate::errors::raise(py, e))
}

/// Lengths of axes; `None` where one is to be found out.
pub struct ShapeArg(pub Vec<Option<Dim>>);

impl FromPyObject<'_, '_> for ShapeArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<ShapeArg> {
        if let Ok(tensor) = given.cast::<PyTensor>()
            && let Some(dims) = &tensor.get().dims
        {
            return Ok(ShapeArg(dims.iter().cloned().map(Some).collect()));
        }
        if given.cast::<PyTensor>().is_ok() || given.extract::<i64>().is_ok() {
            return integers(&given)?
                .into_iter()
                .map(length)
                .collect::<PyResult<_>>()
                .map(ShapeArg);
        }
        let Ok(items) = given.try_iter() else {
            let all = integers(&given)?;
            return all.into_iter().map(length).collect::<PyResult<_>>().map(ShapeArg);
        };
        items.map(|item| one(&item?)).collect::<PyResult<_>>().map(ShapeArg)
    }
}

/// One length: a number, nothing, or a scalar that is known to be one.
fn one(given: &Bound<'_, PyAny>) -> PyResult<Option<Dim>> {
    if given.is_none() {
        return Ok(None);
    }
    if let Ok(number) = given.extract::<i64>() {
        return length(number);
    }
    if let Ok(tensor) = given.cast::<PyTensor>()
        && let Some(dims) = &tensor.get().dims
        && let [dim] = &dims[..]
    {
        return Ok(Some(dim.clone()));
    }
    // TensorFlow takes scalars of floats here as well.
    if let Ok(tensor) = given.cast::<PyTensor>()
        && tensor.get().tensor.dtype().is_float()
    {
        let tensor = known(given.py(), &tensor.get().tensor, "a size")?;
        let number = scalar_of(given.py(), &tensor)?.to_f64();
        return match number.fract() == 0.0 && number.abs() < 9e15 {
            true => length(number as i64),
            false => {
                Err(PyValueError::new_err(format!("a length is a whole number, not {number}")))
            }
        };
    }
    match &integers(given)?[..] {
        [number] => length(*number),
        _ => Err(PyValueError::new_err("a length is one number")),
    }
}

fn length(number: i64) -> PyResult<Option<Dim>> {
    match usize::try_from(number) {
        Ok(n) => Ok(Some(Dim::Known(n))),
        Err(_) if number == -1 => Ok(None),
        Err(_) => Err(PyValueError::new_err(format!("a length cannot be negative: {number}"))),
    }
}

impl ShapeArg {
    /// As a shape with nothing open.
    pub fn shape(self) -> PyResult<Shape> {
        let all: Option<Vec<Dim>> = self.0.into_iter().collect();
        all.map(Shape::from)
            .ok_or_else(|| PyValueError::new_err("every length of the shape must be known here"))
    }

    /// As a shape for that many elements; one length may be found out.
    pub fn of(self, from: &Shape) -> PyResult<Shape> {
        let unknown = self.0.iter().filter(|d| d.is_none()).count();
        if unknown > 1 {
            return Err(PyValueError::new_err("only one length may be -1"));
        }
        let rest = self.0.iter().flatten().fold(Dim::Known(1), |n, dim| n.times(dim));
        let found = match unknown == 1 && rest.is(0) {
            true => Dim::Known(0),
            false => from.elements().divided_by(&rest),
        };
        Ok(self.0.into_iter().map(|dim| dim.unwrap_or_else(|| found.clone())).collect())
    }

    /// With an unknown first length as the batch, one size wherever it stands: programs compute with such tensors side by side.
    pub fn with_batch(mut self) -> ShapeArg {
        if let Some(first @ None) = self.0.first_mut() {
            *first = Some(Dim::open("batch"));
        }
        self
    }

    /// As a shape whose unknown lengths are open, each by a name of its own.
    pub fn open(self, lead: &str) -> Shape {
        let dims = self.0.into_iter().enumerate();
        dims.map(|(i, dim)| dim.unwrap_or_else(|| Dim::open(&format!("{lead}{i}")))).collect()
    }
}

/// A dtype.
#[derive(Clone, Copy)]
pub struct Dt(pub DType);

impl FromPyObject<'_, '_> for Dt {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Dt> {
        dtype::of(&given).map(Dt)
    }
}

/// A dtype, of strings too.
#[derive(Clone, Copy)]
pub struct Element(pub ElementType);

impl FromPyObject<'_, '_> for Element {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<Element> {
        dtype::element(&given).map(Element)
    }
}

/// A number, or a tensor of one element that has its value.
#[derive(Clone, Copy)]
pub struct ScalarArg(pub Scalar);

impl FromPyObject<'_, '_> for ScalarArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<ScalarArg> {
        if let Some(number) = dtype::number(&given) {
            return Ok(ScalarArg(number));
        }
        let tensor = convert::tensor(&given, Want::default())?;
        scalar_of(given.py(), &known(given.py(), &tensor, "a number")?).map(ScalarArg)
    }
}

/// What fills: a number or a string.
pub enum FillArg {
    /// A number.
    Number(ScalarArg),
    /// A string.
    String(Strings),
}

impl FromPyObject<'_, '_> for FillArg {
    type Error = PyErr;
    fn extract(given: Borrowed<'_, '_, PyAny>) -> PyResult<FillArg> {
        match strings::is_text(&given) {
            true => strings::strings(&given).map(FillArg::String),
            false => ScalarArg::extract(given).map(FillArg::Number),
        }
    }
}

/// The only element of a tensor that has values.
pub fn scalar_of(py: Python<'_>, tensor: &Tensor) -> PyResult<Scalar> {
    use tonnage_core::{FromScalar, with_element};
    let read = || -> tonnage::Result<Vec<Scalar>> {
        let array = bind_array(tensor)?;
        with_element!(tensor.dtype(), T => {
            let values: Vec<T> = array.to_vec()?;
            Ok(values.into_iter().map(|v| v.to_scalar()).collect())
        })
    };
    if tensor.shape().count().is_some_and(|n| n != 1) {
        let text = format!("only a tensor of one element can become a number, not {}", tensor.ty());
        return Err(PyTypeError::new_err(text));
    }
    match read().map_err(|e| crate::errors::raise(py, e))?.first() {
        Some(value) => Ok(*value),
        None => Err(PyTypeError::new_err("an empty tensor is no number")),
    }
}

fn bind_array(tensor: &Tensor) -> tonnage::Result<&tonnage_runtime::Array> {
    tonnage::bind::array(tensor, "reading the value")
}

/// Dims that ride along with a tensor of lengths.
pub type Dims = Option<Arc<[Dim]>>;
