//! `matmul`: the product of matrices, batched and broadcast over leading axes; either operand may be
//! read as its transpose, which takes no copy.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::walk::{LayoutWalk, joined};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType, bf16, f16};

use super::gemm::{
    GemmOutput, Matrix, OutputEpilogue, Reads, Size, Strides, Target, gemm, scratch_bytes,
};
use super::staged::{self, OtherOperand, StoredOperand};
use crate::{emit, rules};

/// The product of matrices.
pub static MATMUL: OpDef = OpDef {
    name: "matmul",
    doc: "The product of matrices, batched over leading axes; either may be read as its transpose.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch,
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Costly,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0], &[1]]),
    fails: Fails::Never,
    lower: Lower::Streaming { kernel, reads, staging, has_epilogue: true },
    samples,
};

fn transposes(call: &Call) -> Result<(bool, bool)> {
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
    let (ta, tb) = transposes(call)?;
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    for ty in [a, b] {
        rules::infer::number(call, ty)?;
        if ty.shape.rank() < 2 {
            let (op, shape) = (call.op, ty.shape.clone());
            let expected = "2 or more (reshape a vector to one row or column)".into();
            return Err(ErrorKind::RankMismatch { op, shape, expected }.into());
        }
    }
    if a.dtype != b.dtype {
        let help = "cast one side".to_string();
        return Err(
            ErrorKind::DTypeMismatch { op: call.op, left: a.dtype, right: b.dtype, help }.into()
        );
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
    let shape = batch.iter().cloned().chain([rows, cols]).collect();
    Ok(smallvec![TensorType { dtype: a.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
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
fn sizes(call: &Call) -> Option<(Size, DType)> {
    let (ta, _) = transposes(call).ok()?;
    let out = infer(call).ok()?.pop()?;
    let all = out.shape.most()?;
    let (rows, cols) = (all[all.len() - 2], all[all.len() - 1]);
    let batch = all[..all.len() - 2].iter().fold(1, |n: usize, size| n.saturating_mul(*size));
    let k = split(&call.inputs[0].shape, ta).2.most()?;
    Some((Size { batch, rows, cols, k }, out.dtype))
}

// The most that any of the ways to run it takes: as one product of all rows, or batch by batch.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some((size, dtype)) = sizes(call) else { return Bytes::ZERO };
    let joined = Size { batch: 1, rows: size.rows.saturating_mul(size.batch), ..size };
    let single = Size { batch: 1, ..size };
    [size, joined, single]
        .into_iter()
        .map(|size| scratch_bytes(size, dtype, threads))
        .max()
        .unwrap_or(Bytes::ZERO)
}

/// The same where an operand comes piece by piece, whichever of the ways it is run in: with room for a piece.
fn staging(call: &Call, stored: &[Option<&Layout>], threads: usize) -> Bytes {
    let least = scratch(call, threads);
    let (Some((size, dtype)), Ok((ta, tb))) = (sizes(call), transposes(call)) else {
        return least;
    };
    let joined = Size { batch: 1, rows: size.rows.saturating_mul(size.batch), ..size };
    let single = Size { batch: 1, ..size };
    let of = |(input, layout): (usize, &Option<&Layout>)| {
        let [.., row, col] = layout.as_ref()?.strides[..] else { return None };
        let k_stride = match (input == 0, if input == 0 { ta } else { tb }) {
            (true, false) | (false, true) => col,
            (true, true) | (false, false) => row,
        };
        let sizes = [size, joined, single].into_iter();
        sizes.map(|size| staged::space(size, input == 0, k_stride != 1, dtype, threads)).max()
    };
    let most = stored.iter().enumerate().filter_map(of).max().unwrap_or(0);
    least.max(Bytes::of(most))
}

fn cost(call: &Call) -> Cost {
    let Some((size, _)) = sizes(call) else { return Cost::default() };
    let flops = [2, size.batch, size.rows, size.cols, size.k]
        .into_iter()
        .fold(1u64, |n, x| n.saturating_mul(x as u64));
    Cost { flops, bytes: rules::cost::moved(call, &infer(call).unwrap_or_default()) }
}

/// What takes less is brought into memory: it may be packed more than once.
const SMALL: usize = 1 << 18;

/// Rows or columns of an operand run along what lies outside of memory, in runs that are worth a read, or one after the other.
fn reads(call: &Call, input: usize, layout: &Layout) -> Option<usize> {
    let ([.., rows, cols], [.., row, col]) = (&layout.sizes[..], &layout.strides[..]) else {
        return None;
    };
    let (inner, apart) = match (*row, *col) {
        (apart, 1) => (*cols, apart),
        (1, apart) => (*rows, apart),
        _ => return None,
    };
    let small = layout.count().saturating_mul(call.inputs[input].dtype.size()) <= SMALL;
    let in_runs = apart >= 1 && (inner >= 256 || apart == inner as isize);
    (!small && in_runs).then(|| layout.count())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    use DType::*;
    match k.outputs[0].dtype {
        F64 => multiply::<f64, f64>(k),
        F32 => multiply::<f32, f32>(k),
        F16 => multiply::<f16, f32>(k),
        BF16 => multiply::<bf16, f32>(k),
        // The low bits of products and sums are the same for both signs.
        I64 | U64 => multiply::<i64, i64>(k),
        I32 | U32 => multiply::<i32, i32>(k),
        I16 | U16 => multiply::<i16, i16>(k),
        I8 | U8 => multiply::<i8, i8>(k),
        Bool => Ok(()), // refused by its type rule
    }
}

fn multiply<'a, T, C>(k: &mut Kernel<'a, '_>) -> Result<()>
where
    T: GemmOutput<Compute = C> + Reads<C>,
    C: super::gemm::Compute,
{
    let Attrs::Matmul { transpose_a, transpose_b } = *k.attrs else { return Ok(()) };
    let inputs: &'a [In<'a>] = k.inputs;
    let (left, right) = (&inputs[0], &inputs[1]);
    let (sizes, out) = k.outputs[0].parts::<T>();
    let [batch @ .., rows, cols] = sizes else { return Ok(()) };
    if out.is_empty() {
        return Ok(());
    }
    let a = MatmulOperand::new(&k.inputs[0].layout, batch, transpose_a);
    let b = MatmulOperand::new(&k.inputs[1].layout, batch, transpose_b);
    let epilogue = k.epilogue;
    let mut run = |size: Size, sa: Strides, sb: Strides, out: &mut [T], start: usize| {
        let (batch, row) = (size.rows * size.cols, size.cols);
        let end = epilogue.map(|epilogue| OutputEpilogue { epilogue, start, batch, row });
        let outside = |input: &'a In<'a>| match input.data {
            Data::Stored(from) if from.mapped().is_none() => Some(from),
            _ => None,
        };
        // Of two that lie outside the larger one comes in pieces, and the other with each of them.
        let larger = left.layout.count() >= right.layout.count();
        let beside = |input: &'a In<'a>, strides| match outside(input) {
            Some(from) => OtherOperand::Stored(from, strides),
            None => OtherOperand::Memory(input.slice::<T>(), strides),
        };
        match (outside(left), outside(right)) {
            (Some(from), other) if other.is_none() || larger => {
                let of = StoredOperand { from, strides: sa, left: true };
                staged::multiply(of, beside(right, sb), size, out, end, k.scratch, k.workers)
            }
            (_, Some(from)) => {
                let of = StoredOperand { from, strides: sb, left: false };
                staged::multiply(of, beside(left, sa), size, out, end, k.scratch, k.workers)
            }
            _ => {
                let (l, r) = (left.slice::<T>(), right.slice::<T>());
                let (l, r) = (Matrix::left(l, sa), Matrix::right(r, sb));
                gemm(size, &l, &r, Target::new(out, size), &end, k.scratch, k.workers)
            }
        }
    };
    let all = Size { batch: batch.iter().product(), rows: *rows, cols: *cols, k: a.cols };
    let single = Size { batch: 1, ..all };
    // One right matrix for all: the rows of all left ones are one tall matrix.
    if all.batch != 1
        && let (Some(0), Some(row)) = (b.step(), a.tall_step())
    {
        let tall = Size { rows: all.batch * all.rows, ..single };
        return run(tall, Strides { row, ..a.strides(0) }, b.strides(0), out, 0);
    }
    if let (Some(step_a), Some(step_b)) = (a.step(), b.step()) {
        return run(all, a.strides(step_a), b.strides(step_b), out, 0);
    }
    // Batches that no single stride walks: one after the other.
    let axis = |axis: usize| (batch[axis], [a.stride(axis), b.stride(axis)]);
    let starts = LayoutWalk::new(batch.len(), [a.layout.offset, b.layout.offset], axis);
    for (i, ([x, y], out)) in starts.zip(out.chunks_mut(rows * cols)).enumerate() {
        let (sa, sb) = (Strides { start: x, ..a.strides(0) }, Strides { start: y, ..b.strides(0) });
        run(single, sa, sb, out, i * rows * cols)?;
    }
    Ok(())
}

/// An operand as it is read, broadcast over the batch.
struct MatmulOperand<'a> {
    layout: &'a Layout,
    batch: &'a [usize],
    rows: usize,
    cols: usize,
    row: isize,
    col: isize,
}

impl<'a> MatmulOperand<'a> {
    fn new(layout: &'a Layout, batch: &'a [usize], transposed: bool) -> MatmulOperand<'a> {
        let last = layout.sizes.len() - 1;
        let (r, c) = if transposed { (last, last - 1) } else { (last - 1, last) };
        MatmulOperand {
            layout,
            batch,
            rows: layout.sizes[r],
            cols: layout.sizes[c],
            row: layout.strides[r],
            col: layout.strides[c],
        }
    }

    /// The step along an axis of the batch: 0 where the operand is broadcast.
    fn stride(&self, axis: usize) -> isize {
        match (axis + self.layout.sizes.len()).checked_sub(self.batch.len() + 2) {
            Some(own) if self.layout.sizes[own] != 1 => self.layout.strides[own],
            _ => 0,
        }
    }

    /// The one step that walks the batch, where there is one; 0 for a batch of one matrix.
    fn step(&self) -> Option<isize> {
        let axis = |axis: usize| (self.batch[axis], self.stride(axis));
        match joined(self.batch.len(), axis) {
            (0, 1, _) => Some(0),
            (0, _, step) => Some(step),
            _ => None,
        }
    }

    /// The one step that walks the rows of all matrices, where there is one.
    fn tall_step(&self) -> Option<isize> {
        let axes = self.batch.len();
        let axis = |axis: usize| match axis == axes {
            true => (self.rows, self.row),
            false => (self.batch[axis], self.stride(axis)),
        };
        let (outer, _, step) = joined(axes + 1, axis);
        (outer == 0).then_some(step)
    }

    fn strides(&self, batch: isize) -> Strides {
        Strides { start: self.layout.offset, batch, row: self.row, col: self.col }
    }
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
