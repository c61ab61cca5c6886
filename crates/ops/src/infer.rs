//! What type rules share: counting inputs, refusing dtypes and attributes, weighing a call.
//!
//! Every refusal is an error of its own kind that names the op, both sides and what to do. Nothing
//! here needs a dim to be a number: open ones pass through.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{AxisOf, Cost};
use tonnage_core::{Attrs, Call, DType, Dim, Error, Shape, TensorType};

/// The types of exactly `N` inputs.
pub fn inputs<'a, const N: usize>(
    op: &'static str,
    call: &Call<'a>,
) -> Result<[&'a TensorType; N]> {
    if call.inputs.len() != N {
        let (expected, got) = (N.to_string(), call.inputs.len());
        return Err(ErrorKind::InputCount { op, expected, got }.into());
    }
    Ok(std::array::from_fn(|i| &call.inputs[i]))
}

/// Attributes of the wrong kind.
pub fn bad_attrs(op: &'static str, attrs: &Attrs, expected: &str) -> Error {
    bad_argument(op, format!("attributes {attrs:?} mean nothing here"), format!("pass {expected}"))
}

/// No attributes.
pub fn no_attrs(op: &'static str, call: &Call) -> Result<()> {
    match call.attrs {
        Attrs::None => Ok(()),
        other => Err(bad_attrs(op, other, "none")),
    }
}

/// A dtype that the op computes with.
pub fn dtype(
    op: &'static str,
    ty: &TensorType,
    takes: impl Fn(DType) -> bool,
    supported: &'static str,
) -> Result<()> {
    match takes(ty.dtype) {
        true => Ok(()),
        false => Err(ErrorKind::DTypeUnsupported { op, dtype: ty.dtype, supported }.into()),
    }
}

/// Any integer.
pub fn integer(op: &'static str, ty: &TensorType) -> Result<()> {
    dtype(op, ty, DType::is_integer, "an integer dtype for indices")
}

/// Any float or integer.
pub fn number(op: &'static str, ty: &TensorType) -> Result<()> {
    dtype(op, ty, |d| d != DType::Bool, "a float or an integer")
}

/// A float that factorizations compute in.
pub fn real(op: &'static str, ty: &TensorType) -> Result<()> {
    dtype(op, ty, |d| matches!(d, DType::F32 | DType::F64), "f32 or f64")
}

/// The same dtype on both sides.
pub fn same_dtype(op: &'static str, left: &TensorType, right: &TensorType) -> Result<()> {
    if left.dtype == right.dtype {
        return Ok(());
    }
    let (left, right) = (left.dtype, right.dtype);
    Err(ErrorKind::DTypeMismatch { op, left, right, help: "cast one of them".into() }.into())
}

/// The shape that an input must have.
pub fn shape(op: &'static str, found: &Shape, needed: &Shape, help: &str) -> Result<()> {
    if found == needed {
        return Ok(());
    }
    let (left, right) = (found.clone(), needed.clone());
    Err(ErrorKind::ShapeMismatch { op, left, right, help: help.into() }.into())
}

/// At least this many axes.
pub fn rank_at_least(op: &'static str, ty: &TensorType, rank: usize, why: &str) -> Result<()> {
    if ty.shape.rank() >= rank {
        return Ok(());
    }
    let (shape, expected) = (ty.shape.clone(), format!("at least {rank} ({why})"));
    Err(ErrorKind::RankMismatch { op, shape, expected }.into())
}

/// Several runs of dims, one after the other.
pub fn joined(parts: &[&[Dim]]) -> Shape {
    parts.iter().flat_map(|part| part.iter().cloned()).collect()
}

/// Runs along one axis of one or two inputs.
pub fn along(axes: &[(usize, usize)]) -> AxisOf {
    AxisOf::Along(SmallVec::from_slice(axes))
}

/// How many elements, where they are known; sizes that the data decide at their bound.
pub fn elements(ty: &TensorType) -> u64 {
    ty.shape.iter().map(|d| d.most().unwrap_or(0) as u64).fold(1, u64::saturating_mul)
}

/// A number of operations for each element of these tensors.
pub fn each<'a>(types: impl IntoIterator<Item = &'a TensorType>, flops: u64) -> u64 {
    types.into_iter().map(elements).fold(0, u64::saturating_add).saturating_mul(flops)
}

/// A number of operations, and as many bytes as these tensors have.
pub fn cost<'a>(flops: u64, moved: impl IntoIterator<Item = &'a TensorType>) -> Cost {
    let bytes = moved
        .into_iter()
        .map(|ty| elements(ty).saturating_mul(ty.dtype.size() as u64))
        .fold(0, u64::saturating_add);
    Cost::local(flops, bytes)
}

/// The type rule of a mask.
pub fn mask_type(op: &'static str, mask: &TensorType) -> Result<()> {
    dtype(op, mask, |d| d == DType::Bool, "bool for the mask")?;
    rank_at_least(op, mask, 1, "a mask has elements to select by")
}
