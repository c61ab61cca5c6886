//! `x[...]`: positions, slices, new axes, the rest, masks, and positions that only the data know.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyEllipsis, PySlice, PyTuple};
use tonnage::{DType, Index, Part, Shape, Tensor};

use crate::args::{Dims, values};
use crate::convert::{self, Want};
use crate::run::{MUCH, run};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;

/// Part of a tensor.
pub fn get(py: Python<'_>, of: &PyTensor, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
    let part = Picked::new(py, &of.tensor.shape(), key)?;
    let work = if matches!(part, Picked::Mask(_)) { MUCH } else { 0 };
    let tensor = run(py, work, || part.of(&of.tensor))?;
    let dims = match &part {
        Picked::Parts(indices, _) => dims(of, indices),
        Picked::Mask(_) => None,
    };
    Ok(PyTensor { dims, tensor })
}

/// What a key picks.
pub enum Picked {
    /// Where a mask is true.
    Mask(Tensor),
    /// Positions and parts of axes; and axes, in the result so far, that a tensor picks from afterwards.
    Parts(Vec<Index>, Vec<(usize, Tensor)>),
}

impl Picked {
    /// What it picks of a tensor.
    pub fn of(&self, tensor: &Tensor) -> tonnage::Result<Tensor> {
        match self {
            Picked::Mask(mask) => tensor.boolean_mask(mask),
            Picked::Parts(indices, picked) => {
                let mut made = tensor.get(indices)?;
                for (axis, at) in picked.iter().rev() {
                    made = made.gather(at, *axis as i64)?;
                }
                Ok(made)
            }
        }
    }

    /// What a key picks of tensors of that shape.
    pub fn new(py: Python<'_>, shape: &Shape, key: &Bound<'_, PyAny>) -> PyResult<Picked> {
        picked(py, shape, key)
    }
}

fn picked(py: Python<'_>, shape: &Shape, key: &Bound<'_, PyAny>) -> PyResult<Picked> {
    let keys: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    let mut indices = Vec::new();
    // Positions of axes, in the result so far, that a tensor picks from afterwards.
    let mut picked: Vec<(usize, Tensor)> = Vec::new();
    let named = keys.iter().filter(|k| !k.is_none() && !k.is_instance_of::<PyEllipsis>()).count();
    let mut axis = 0;
    for key in &keys {
        if key.is_none() {
            indices.push(Index::New);
            axis += 1;
        } else if key.is_instance_of::<PyEllipsis>() {
            indices.push(Index::Rest);
            axis += shape.rank().saturating_sub(named);
        } else if let Ok(slice) = key.cast::<PySlice>() {
            indices.push(Index::Part(part(py, slice)?));
            axis += 1;
        } else if let Some(at) = position(py, key)? {
            indices.push(Index::At(at));
        } else {
            let tensor = convert::maybe(key, Want::default())?;
            if let Some(mask) = tensor.as_ref().filter(|t| t.dtype() == DType::Bool)
                && keys.len() == 1
            {
                return Ok(Picked::Mask(mask.clone()));
            }
            let Some(tensor) = tensor.filter(|t| t.dtype().is_integer()) else {
                let text = "Only integers, slices (`:`), ellipsis (`...`), tf.newaxis (`None`) and scalar tf.int32/tf.int64 tensors are valid indices";
                return Err(PyTypeError::new_err(text));
            };
            indices.push(Index::Part(Part::ALL));
            picked.push((axis, tensor));
            axis += 1;
        }
    }
    check(py, shape, &indices)?;
    Ok(Picked::Parts(indices, picked))
}

/// A position outside ends iteration, and is Python's own error.
fn check(py: Python<'_>, shape: &Shape, indices: &[Index]) -> PyResult<()> {
    if let [Index::At(at)] = indices
        && let Some(Some(n)) = shape.first().map(|d| d.known())
        && (*at >= n as i64 || *at < -(n as i64))
    {
        let text = format!("slice index {at} of dimension 0 out of bounds: its length is {n}");
        return Err(crate::errors::of_class(py, "OutOfBoundsError", text));
    }
    Ok(())
}

/// Lengths among lengths.
fn dims(of: &PyTensor, indices: &[Index]) -> Dims {
    let dims = of.dims.as_ref()?;
    let n = dims.len() as i64;
    match indices {
        [Index::At(at)] => {
            let at = if *at < 0 { at + n } else { *at };
            Some([dims.get(usize::try_from(at).ok()?)?.clone()].into())
        }
        [Index::Part(part)] => {
            let (start, stop) = part.within(dims.len())?;
            Some(dims[start..stop.max(start)].into())
        }
        _ => None,
    }
}

/// A position that is known now.
fn position(py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if key.is_instance_of::<pyo3::types::PyBool>() {
        return Ok(None);
    }
    let tensor = if let Ok(tensor) = key.cast::<PyTensor>() {
        Some(tensor.get().tensor.clone())
    } else if let Ok(variable) = key.cast::<PyVariable>() {
        Some(variable.get().read(py)?)
    } else {
        None
    };
    match tensor {
        None => Ok(key.extract::<i64>().ok()),
        Some(tensor) if tensor.is_symbolic() || tensor.rank() > 0 => Ok(None),
        Some(tensor) if tensor.dtype().is_integer() => Ok(values(py, &tensor)?.first().copied()),
        Some(_) => Ok(None),
    }
}

fn part(py: Python<'_>, slice: &Bound<'_, PySlice>) -> PyResult<Part> {
    let side = |name: &str| -> PyResult<Option<i64>> {
        let given = slice.getattr(name)?;
        if given.is_none() {
            return Ok(None);
        }
        match position(py, &given)? {
            Some(at) => Ok(Some(at)),
            // A length, or of constants alone.
            None => match given.extract::<i64>() {
                Ok(at) => Ok(Some(at)),
                Err(_) => Err(crate::errors::data_decide(py, "the end of a slice")),
            },
        }
    };
    let step = side("step")?.unwrap_or(1);
    let part: Part = match (side("start")?, side("stop")?) {
        (None, None) => Part::ALL,
        (Some(start), None) => (start..).into(),
        (None, Some(stop)) => (..stop).into(),
        (Some(start), Some(stop)) => (start..stop).into(),
    };
    Ok(part.by(step))
}
