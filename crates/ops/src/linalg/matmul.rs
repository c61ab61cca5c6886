//! `matmul`: the product of matrices, batched and broadcast over leading axes; either operand may be
//! read as its transpose, which takes no copy.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::Size;
use crate::{OpId, emit, rules};

/// The product of matrices.
pub static MATMUL: OpDef = OpDef {
    id: OpId::Matmul as u16,
    name: "matmul",
    doc: "The product of matrices, batched over leading axes; either may be read as its transpose.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Costly,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0], &[1]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// Which operands are read as their transposes.
pub fn transposes(call: &Call) -> Result<(bool, bool)> {
    match call.attrs {
        Attrs::Matmul { transpose_a, transpose_b } => Ok((*transpose_a, *transpose_b)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Batch, rows and columns of an operand as it is read.
fn split(shape: &Shape, transposed: bool) -> (Shape, Dim, Dim) {
    let rank = shape.rank();
    let batch = shape[..rank - 2].iter().cloned().collect();
    let (rows, cols) = (shape[rank - 2].clone(), shape[rank - 1].clone());
    if transposed { (batch, cols, rows) } else { (batch, rows, cols) }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    rules::infer::number(call, a)?;
    rules::infer::number(call, b)?;
    let shape = made(call)?;
    if a.dtype != b.dtype {
        let help = "cast one side".to_string();
        return Err(
            ErrorKind::DTypeMismatch { op: call.op, left: a.dtype, right: b.dtype, help }.into()
        );
    }
    Ok(smallvec![TensorType { dtype: a.dtype, shape }])
}

/// The shape of the product of two operands.
pub(super) fn made(call: &Call) -> Result<Shape> {
    let (ta, tb) = transposes(call)?;
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    for ty in [a, b] {
        if ty.shape.rank() < 2 {
            let (op, shape) = (call.op, ty.shape.clone());
            let expected = "2 or more (reshape a vector to one row or column)".into();
            return Err(ErrorKind::RankMismatch { op, shape, expected }.into());
        }
    }
    let ((batch_a, rows, k_a), (batch_b, k_b, cols)) = (split(&a.shape, ta), split(&b.shape, tb));
    if k_a != k_b {
        let of = |t| if t { " transposed" } else { "" };
        let help = format!(
            "columns of the left{} ({k_a}) must equal rows of the right{} ({k_b})",
            of(ta),
            of(tb)
        );
        let (left, right) = (a.shape.clone(), b.shape.clone());
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    let batch = batch_a.broadcast(&batch_b, call.op)?;
    Ok(batch.iter().cloned().chain([rows, cols]).collect())
}

/// How the axes run.
pub(super) fn axes(call: &Call) -> AxisMap {
    let Ok((ta, tb)) = transposes(call) else { return AxisMap::default() };
    let ranks = [call.inputs[0].shape.rank(), call.inputs[1].shape.rank()];
    let rank = ranks[0].max(ranks[1]);
    let mut out: Vec<AxisOf> = (0..rank - 2)
        .map(|axis| {
            let along: SmallVec<[(usize, usize); 2]> = (0..2)
                .filter_map(|input| {
                    let own = (axis + ranks[input]).checked_sub(rank)?;
                    (!call.inputs[input].shape[own].is(1)).then_some((input, own))
                })
                .collect();
            if along.is_empty() { AxisOf::Mixed } else { AxisOf::Along(along) }
        })
        .collect();
    let row = ranks[0] - 2 + ta as usize;
    let col = ranks[1] - 1 - tb as usize;
    out.push(AxisOf::Along(smallvec![(0, row)]));
    out.push(AxisOf::Along(smallvec![(1, col)]));
    let k = smallvec![(0, ranks[0] - 1 - ta as usize), (1, ranks[1] - 2 + tb as usize)];
    AxisMap { outputs: vec![out], summed: vec![k] }
}

/// Sizes of one product of the batch, where they are known.
pub fn sizes(call: &Call) -> Option<(Size, DType)> {
    let (ta, _) = transposes(call).ok()?;
    let all = made(call).ok()?.most()?;
    let (rows, cols) = (all[all.len() - 2], all[all.len() - 1]);
    let batch = all[..all.len() - 2].iter().fold(1, |n: usize, size| n.saturating_mul(*size));
    let k = split(&call.inputs[0].shape, ta).2.most()?;
    Some((Size { batch, rows, cols, k }, call.inputs[0].dtype))
}

fn cost(call: &Call) -> Cost {
    let Some((size, _)) = sizes(call) else { return Cost::default() };
    let flops = [2, size.batch, size.rows, size.cols, size.k]
        .into_iter()
        .fold(1u64, |n, x| n.saturating_mul(x as u64));
    Cost::local(flops, rules::cost::moved(call, &infer(call).unwrap_or_default()))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (ta, tb) = transposes(&call.call())?;
    let mut grads = vec![None, None];
    if call.needs[0] {
        let (g, b) = (call.grad()?, call.input(1)?);
        let made = match ta {
            false => emit::matmul(e, g, b, false, !tb)?,
            true => emit::matmul(e, b, g, tb, true)?,
        };
        grads[0] = emit::dense(emit::sum_to(e, made, &call.inputs[0])?);
    }
    if call.needs[1] {
        let (mut g, mut a) = (call.grad()?, call.input(0)?);
        if call.inputs[1].shape.rank() == 2 && !ta {
            // One right matrix for a batch of left ones: all rows as one tall matrix, so that the
            // products are never there batch by batch, only their sum.
            (a, g) = (as_rows(e, a)?, as_rows(e, g)?);
        }
        let made = match tb {
            false => emit::matmul(e, a, g, !ta, false)?,
            true => emit::matmul(e, g, a, true, ta)?,
        };
        grads[1] = emit::dense(emit::sum_to(e, made, &call.inputs[1])?);
    }
    Ok(grads)
}

fn as_rows(e: &mut dyn Emit, value: Value) -> Result<Value> {
    let shape = value.ty().shape.clone();
    let Some((cols, rows)) = shape.split_last() else { return Ok(value) };
    let rows = rows.iter().fold(Dim::Known(1), |n, d| n.times(d));
    emit::reshape(e, value, &[rows, cols.clone()].into_iter().collect())
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize], b: &[usize], transpose_a, transpose_b| {
        let types = [TensorType::new(dtype, a), TensorType::new(dtype, b)];
        Sample::of(&types, Attrs::Matmul { transpose_a, transpose_b })
    };
    let mut all: Vec<Sample> = DType::ALL
        .into_iter()
        .filter(|d| *d != DType::Bool)
        .map(|dtype| of(dtype, &[3, 4], &[4, 2], false, false))
        .collect();
    all.extend([
        of(DType::F32, &[4, 3], &[4, 2], true, false),
        of(DType::F32, &[3, 4], &[2, 4], false, true),
        of(DType::F32, &[4, 3], &[2, 4], true, true),
        of(DType::F32, &[5, 3, 4], &[4, 2], false, false),
        of(DType::F32, &[3, 4], &[5, 4, 2], false, false),
        of(DType::F32, &[2, 1, 3, 4], &[5, 4, 2], false, false),
        of(DType::F32, &[2, 4, 3], &[2, 2, 4], true, true),
        of(DType::F32, &[0, 4], &[4, 2], false, false),
        of(DType::F32, &[3, 0], &[0, 2], false, false),
        of(DType::F32, &[17, 33], &[33, 65], false, false),
        of(DType::F32, &[1, 70], &[70, 40], false, false),
    ]);
    all
}
