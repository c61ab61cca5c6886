//! Running sums and products along an axis: attributes, type rule, axes and samples that `cumsum` and `cumprod` share.
//!
//! Integers wrap around.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{AxisMap, AxisOf, Call, Sample, Types};
use tonnage_core::{DType, TensorType};

use crate::rules;

/// What the attributes say.
#[derive(Clone, Copy)]
pub struct ScanAttrs {
    /// The axis that it runs along.
    pub axis: usize,
    /// Whether an element is left out of its own result.
    pub exclusive: bool,
    /// Whether it begins at the end.
    pub reverse: bool,
}

/// What the attributes say.
pub fn scan(call: &Call) -> Result<ScanAttrs> {
    match *call.attrs {
        Attrs::Scan { axis, exclusive, reverse } => {
            let axis = call.inputs[0].shape.axis(call.op, rules::infer::from_front(axis))?;
            Ok(ScanAttrs { axis, exclusive, reverse })
        }
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// One number in, the same type out.
pub(super) fn infer(call: &Call) -> Result<Types> {
    let made = rules::infer::unary_number(call)?;
    scan(call)?;
    Ok(made)
}

/// All axes but the scanned one run along.
pub(super) fn axes(call: &Call) -> AxisMap {
    let Ok(ScanAttrs { axis, .. }) = scan(call) else { return AxisMap::default() };
    let along = |i| match i == axis {
        true => AxisOf::Mixed,
        false => AxisOf::Along(smallvec![(0, i)]),
    };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, exclusive, reverse| {
        let attrs = Attrs::Scan { axis, exclusive, reverse };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|d| of(d, &[2, 5], 1, false, false)).collect();
    for (exclusive, reverse) in [(false, true), (true, false), (true, true)] {
        all.push(of(DType::F32, &[7], 0, exclusive, reverse));
        all.push(of(DType::F32, &[3, 4, 5], 1, exclusive, reverse));
        all.push(of(DType::F32, &[2, 2050], 1, exclusive, reverse));
    }
    all.extend([
        of(DType::F32, &[1], 0, false, false),
        of(DType::F32, &[0], 0, true, false),
        of(DType::F32, &[3, 0], 0, false, false),
        of(DType::F32, &[5, 300], 0, false, false),
        of(DType::F64, &[70_000], 0, false, true),
        of(DType::F32, &[300, 250], 0, false, false),
        of(DType::F32, &[300, 250], 0, true, true),
        of(DType::I32, &[9, 130], 1, true, false),
        of(DType::F32, &[1025, 2], 1, false, false),
        of(DType::F32, &[700, 3], 1, true, false),
        of(DType::F32, &[5, 4], 1, false, true),
        of(DType::F32, &[90, 8], 1, true, true),
        of(DType::F64, &[50, 31], 1, false, false),
    ]);
    all
}
