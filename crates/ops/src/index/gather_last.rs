//! `gather_last`: rows of a table by index, where of equal indices only the last gets the row and the
//! others get zeros. The transpose of `scatter_update`, and its gradient.
//!
//! Scratch is a bit for every row of the table (is it taken?) and one for every index (did it take it?).

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Bytes, Call, Element, Emit, OpDef, Scalar, TensorType, Workers};

use super::indices::Indices;
use super::rows::{axis, rows_shape};
use super::scatter_add;
use super::scatter_update::SCATTER_UPDATE;
use crate::infer::{along, cost, elements, inputs, number};
use crate::number::with_width;
use crate::parallel::rows_at_once;
use crate::strided::{self, Positions};

/// `(table, indices) -> rows`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static GATHER_LAST: OpDef = OpDef {
    name: "gather_last",
    doc: "Rows of a tensor by index; of equal indices the last gets the row, the others zeros.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples: || {
        let tables_and_indices = |mut sample: Sample| {
            sample.inputs.truncate(2);
            sample
        };
        scatter_add::samples().into_iter().map(tables_and_indices).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [table, indices] = inputs("gather_last", call)?;
    number("gather_last", table)?;
    let shape = rows_shape("gather_last", table, indices, call.attrs)?;
    Ok(smallvec![TensorType { dtype: table.dtype, shape }])
}

/// The axes of the indices cannot be cut: which of equal ones is the last takes them all.
fn axes(call: &Call) -> AxisMap {
    let at = axis("gather_last", call.attrs).unwrap_or(0);
    let (rank, between) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let axes = (0..at)
        .map(|a| along(&[(0, a)]))
        .chain((0..between).map(|_| AxisOf::Mixed))
        .chain((at + 1..rank).map(|a| along(&[(0, a)])))
        .collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn scratch(call: &Call, _: usize) -> Bytes {
    let [table, indices] = call.inputs else { return Bytes::ZERO };
    let at = axis("gather_last", call.attrs).unwrap_or(0);
    let rows = table.shape.get(at).and_then(|d| d.most()).unwrap_or(0) as u64;
    Bytes::new(rows.div_ceil(8) + elements(indices).div_ceil(8))
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let rows = vec![zeros, call.input(1)?, call.grad()?];
    let table = emit.apply(&SCATTER_UPDATE, rows, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(table)), None])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let axis = axis("gather_last", k.attrs)?;
    let table = &k.inputs[0];
    let size = table.layout.sizes[axis];
    let indices = Indices::checked("gather_last", &k.inputs[1], size)?;
    let (taken, last) = k.scratch.split_at_mut(size.div_ceil(8));
    taken.fill(0);
    last.fill(0);
    for i in (0..indices.count()).rev() {
        let index = indices.get(i);
        if !bit(taken, index) {
            taken[index / 8] |= 1 << (index % 8);
            last[i / 8] |= 1 << (i % 8);
        }
    }
    let pick = Pick { table, axis, indices: &indices, last };
    // All zero bits are zero in every dtype that is a number.
    with_width!(table.dtype, T => pick.fill::<T>(k.outputs[0].slice(), 0, k.workers))
}

fn bit(bits: &[u8], i: usize) -> bool {
    bits[i / 8] >> (i % 8) & 1 == 1
}

struct Pick<'a> {
    table: &'a In<'a>,
    axis: usize,
    indices: &'a Indices<'a>,
    /// Which indices are the last of their kind.
    last: &'a [u8],
}

impl Pick<'_> {
    fn fill<T: Element>(&self, out: &mut [T], zero: T, workers: &dyn Workers) -> Result<()> {
        let (layout, data) = (&self.table.layout, self.table.slice::<T>());
        let outer = strided::axes(layout, 0..self.axis);
        let inner = strided::axes(layout, self.axis + 1..layout.sizes.len());
        let (blocks, step) = (Positions::of(outer), layout.strides[self.axis]);
        let (row, count) = (inner.count(), self.indices.count());
        let at_once = rows_at_once(row);
        for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
            let mut from = inner;
            for (i, to) in rows.chunks_mut(row).enumerate() {
                let (block, i) = ((chunk * at_once + i) / count, (chunk * at_once + i) % count);
                if !bit(self.last, i) {
                    to.fill(zero);
                    continue;
                }
                let index = self.indices.get(i) as isize;
                from.offset = (blocks.at(block) as isize + index * step) as usize;
                strided::copy(from, data, 0, to);
            }
        })
    }
}
