//! Reductions: tile programs that close with a fold, over any axes.

pub mod max;
pub mod sum;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Sample};
use tonnage_core::tile::{Fold, TileProgram};
use tonnage_core::{DType, Shape, TensorType};

use crate::{emit, rules};

/// Loads the only input and folds it over the axes of the attributes.
pub(crate) fn folding(call: &Call, fold: Fold) -> Result<TileProgram> {
    let Attrs::Reduce { axes, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype]);
    program.store(0, dtype);
    program.fold(fold, axes);
    Ok(program)
}

/// A reduced value stretched back over the axes that it lost.
pub(crate) fn stretch_back(
    e: &mut dyn Emit,
    reduced: Value,
    attrs: &Attrs,
    to: &Shape,
) -> Result<Value> {
    let Attrs::Reduce { axes, .. } = attrs else { return Ok(reduced) };
    let kept: Shape = to
        .iter()
        .enumerate()
        .map(|(i, d)| if axes.contains(&i) { 1.into() } else { d.clone() })
        .collect();
    let reduced = emit::reshape(e, reduced, &kept)?;
    emit::broadcast_to(e, reduced, to)
}

/// Every dtype that fits, every kind of axis set, sizes around a tile's edge.
pub(crate) fn samples(dtypes: &[DType]) -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axes: &[usize], keep_dims| {
        let attrs = Attrs::Reduce { axes: axes.into(), keep_dims };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let mut all: Vec<Sample> = dtypes.iter().map(|d| of(*d, &[2, 3], &[1], false)).collect();
    for (shape, axes, keep_dims) in [
        (&[][..], &[][..], false),
        (&[3, 4], &[], false),
        (&[3, 4], &[0], false),
        (&[3, 4], &[0, 1], true),
        (&[2, 3, 4], &[1], true),
        (&[2, 3, 4], &[0, 2], false),
        (&[0, 3], &[0], false),
        (&[3, 0], &[0], false),
        (&[3, 0], &[1], false),
        (&[2, 0, 3], &[0, 1], true),
        (&[1023], &[0], false),
        (&[1025], &[0], false),
        (&[3, 1025], &[1], false),
        (&[1025, 3], &[0], false),
        (&[40_000], &[0], false),
        (&[5, 3, 700], &[0, 2], true),
    ] {
        all.push(of(DType::F32, shape, axes, keep_dims));
    }
    all
}
