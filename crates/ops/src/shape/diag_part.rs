//! `diag_part`: a diagonal of matrices as a vector; a view.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use super::diag::DIAG;
use crate::{OpId, emit, infer, rules};

/// `x [.., rows, columns] -> [.., k]`
pub static DIAG_PART: OpDef = OpDef {
    id: OpId::DiagPart as u16,
    name: "diag_part",
    doc: "A diagonal of matrices as a vector, without a copy.",
    infer,
    axes,
    mem: Mem::View(0),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::View(view),
    samples,
};

/// How long a diagonal is.
pub(super) fn diagonal_length(rows: &Dim, columns: &Dim, diagonal: i64) -> Dim {
    let skip = Dim::Known(usize::try_from(diagonal.unsigned_abs()).unwrap_or(usize::MAX));
    match diagonal < 0 {
        true => rows.less(&skip).least(columns),
        false => columns.less(&skip).least(rows),
    }
}

fn length(rows: usize, columns: usize, diagonal: i64) -> usize {
    let skip = usize::try_from(diagonal.unsigned_abs()).unwrap_or(usize::MAX);
    match diagonal < 0 {
        true => rows.saturating_sub(skip).min(columns),
        false => columns.saturating_sub(skip).min(rows),
    }
}

fn asked<'a>(call: &Call<'a>) -> Result<(&'a [Dim], &'a Dim, &'a Dim, i64)> {
    rules::infer::count(call, 1)?;
    let Attrs::Diagonal(diagonal) = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    match &call.inputs[0].shape[..] {
        [outer @ .., rows, columns] => Ok((outer, rows, columns, diagonal)),
        _ => {
            let shape = call.inputs[0].shape.clone();
            let expected = "at least 2 (a matrix is the last two axes)".into();
            Err(ErrorKind::RankMismatch { op: call.op, shape, expected }.into())
        }
    }
}

fn infer(call: &Call) -> Result<Types> {
    let (outer, rows, columns, diagonal) = asked(call)?;
    let length = diagonal_length(rows, columns, diagonal);
    let shape = outer.iter().cloned().chain([length]).collect();
    Ok(smallvec![TensorType { dtype: call.inputs[0].dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let outer = call.inputs[0].shape.rank().saturating_sub(2);
    let outer = (0..outer).map(|i| infer::along(&[(0, i)]));
    AxisMap { outputs: vec![outer.chain([AxisOf::Mixed]).collect()], summed: Vec::new() }
}

fn view(call: &Call, layout: &Layout) -> Option<Layout> {
    let Attrs::Diagonal(diagonal) = *call.attrs else { return None };
    let outer = layout.sizes.len().checked_sub(2)?;
    let (rows, columns) = (layout.sizes[outer], layout.sizes[outer + 1]);
    let (down, right) = (layout.strides[outer], layout.strides[outer + 1]);
    let length = length(rows, columns, diagonal);
    let mut made = layout.clone();
    made.sizes.truncate(outer);
    made.strides.truncate(outer);
    made.sizes.push(length);
    made.strides.push(down + right);
    if length > 0 {
        let skip = diagonal.unsigned_abs() as isize * if diagonal < 0 { down } else { right };
        made.offset = (layout.offset as isize + skip) as usize;
    }
    Some(made)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, rows, columns, diagonal) = asked(&call.call())?;
    let attrs = Attrs::Diag { rows: rows.clone(), columns: columns.clone(), diagonal };
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&DIAG, vec![g], attrs)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], diagonal| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Diagonal(diagonal))
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[2, 3, 3], 0)).collect();
    all.extend([
        of(DType::F32, &[3, 4], 1),
        of(DType::F32, &[4, 3], -2),
        of(DType::F32, &[2, 2, 3, 2], 0),
        of(DType::F32, &[2, 2], 9),
        of(DType::F32, &[0, 0], 0),
        of(DType::F32, &[0, 2, 2], 0),
        of(DType::F32, &[40, 40], 0),
    ]);
    all
}
