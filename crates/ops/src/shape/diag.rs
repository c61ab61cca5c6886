//! `diag`: matrices with a vector on a diagonal and zeros elsewhere.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use super::diag_part::{DIAG_PART, diagonal_length};
use crate::{OpId, emit, infer, rules};

/// `v [.., k] -> [.., rows, columns]`
pub static DIAG: OpDef = OpDef {
    id: OpId::Diag as u16,
    name: "diag",
    doc: "Matrices with a vector on a diagonal and zeros elsewhere.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost::local(0, rules::cost::moved(call, &outputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn asked<'a>(call: &Call<'a>) -> Result<(&'a Dim, &'a Dim, i64)> {
    match call.attrs {
        Attrs::Diag { rows, columns, diagonal } => Ok((rows, columns, *diagonal)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (rows, columns, diagonal) = asked(call)?;
    let ty = &call.inputs[0];
    let needed = diagonal_length(rows, columns, diagonal);
    // What a diagonal of open lengths has is known to the plan, unless the data decide it.
    let by_data = |own: &Dim| own.depends_on_data() || needed.depends_on_data();
    let fits = |own: &Dim| own == &needed || (!by_data(own) && own.may_equal(&needed));
    if !ty.shape.last().is_some_and(fits) {
        let shape = ty.shape.clone();
        let expected = format!(
            "a last axis of {needed} elements: diagonal {diagonal} of {rows} rows, {columns} columns"
        );
        return Err(ErrorKind::RankMismatch { op: call.op, shape, expected }.into());
    }
    let outer = &ty.shape[..ty.shape.rank() - 1];
    let shape = outer.iter().chain([rows, columns]).cloned().collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let outer = call.inputs[0].shape.rank().saturating_sub(1);
    let outer = (0..outer).map(|i| infer::along(&[(0, i)]));
    let axes = outer.chain([AxisOf::Mixed, AxisOf::Mixed]).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, _, diagonal) = asked(&call.call())?;
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&DIAG_PART, vec![g], Attrs::Diagonal(diagonal))?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, outer: &[usize], length: usize, rows: usize, columns: usize, diagonal| {
        let ty = TensorType::new(dtype, [outer, &[length]].concat());
        let (rows, columns) = (rows.into(), columns.into());
        Sample::of(&[ty], Attrs::Diag { rows, columns, diagonal })
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2], 3, 3, 3, 0)).collect();
    all.extend([
        of(DType::F32, &[], 3, 4, 4, 1),
        of(DType::F32, &[], 2, 4, 4, -2),
        of(DType::F32, &[2, 2], 2, 2, 5, 0),
        of(DType::F32, &[2], 2, 5, 2, -1),
        of(DType::F32, &[], 0, 0, 0, 0),
        of(DType::F32, &[], 0, 2, 2, 7),
        of(DType::F32, &[0], 2, 2, 2, 0),
        of(DType::F32, &[130], 12, 12, 12, 0),
    ]);
    all
}
