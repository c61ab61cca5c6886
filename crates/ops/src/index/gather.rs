//! `gather`: rows of a table by index, along any axis.
//!
//! The gradient stays rows and indices where the axis is the first one, so that an optimizer can update
//! those rows alone; along another axis it is added into zeros.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, SparseRows};
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::layout::Layout;
use tonnage_core::row::{
    Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Call, DType, Element, Emit, OpDef, Scalar, TensorType, Workers};

use super::indices::Indices;
use super::rows::{AHEAD, ask_for, axis, gather_axes, rows_shape};
use super::scatter_add::SCATTER_ADD;
use crate::infer::{cost, inputs};
use crate::number::with_width;
use crate::parallel::rows_at_once;
use crate::strided::{self, Positions};

/// `(table, indices) -> rows`; the axis as [`Attrs::Axis`], or none for axis 0.
pub static GATHER: OpDef = OpDef {
    name: "gather",
    doc: "Rows of a tensor by index, along one axis.",
    infer,
    axes: gather_axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::OnData,
    lower: Lower::Streaming {
        kernel,
        reads,
        staging: |call, _, threads| no_scratch(call, threads),
        has_epilogue: false,
    },
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [table, indices] = inputs("gather", call)?;
    let shape = rows_shape("gather", table, indices, call.attrs)?;
    Ok(smallvec![TensorType { dtype: table.dtype, shape }])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (indices, values) = (call.input(1)?, call.grad()?);
    let of = call.inputs[0].clone();
    let of_table = match axis("gather", call.attrs)? {
        0 => Cotangent::Sparse { of, parts: vec![SparseRows { indices, values }] },
        _ => {
            let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
            let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
            let inputs = vec![zeros, indices, values];
            Cotangent::Dense(emit.apply(&SCATTER_ADD, inputs, call.attrs.clone())?)
        }
    };
    Ok(vec![Some(of_table), None])
}

/// What takes less is brought into memory.
const SMALL: usize = 1 << 18;

/// Rows of a table that lies outside of memory are read where they are wanted, where each is a run.
fn reads(call: &Call, input: usize, layout: &Layout) -> Option<usize> {
    let axis = axis("gather", call.attrs).ok().filter(|_| input == 0)?;
    let inner = strided::axes(layout, axis + 1..layout.sizes.len());
    let small = layout.count().saturating_mul(call.inputs[0].dtype.size()) <= SMALL;
    let made = infer(call).ok()?.pop()?.shape.most()?;
    (!small && inner.is_contiguous()).then(|| made.iter().product())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let axis = axis("gather", k.attrs)?;
    let table = &k.inputs[0];
    let indices = Indices::checked("gather", &k.inputs[1], table.layout.sizes[axis])?;
    with_width!(table.dtype, T => gather::<T>(table, axis, &indices, k.outputs[0].slice(), k.workers))
}

fn gather<T: Element>(
    table: &In,
    axis: usize,
    indices: &Indices,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, data) = (&table.layout, table.slice::<T>());
    let outer = strided::axes(layout, 0..axis);
    let inner = strided::axes(layout, axis + 1..layout.sizes.len());
    let (row, blocks, step) = (inner.count(), Positions::of(outer), layout.strides[axis]);
    let (count, at_once) = (indices.count(), rows_at_once(inner.count()));
    let at = |number: usize| {
        let index = indices.get(number % count) as isize;
        (blocks.at(number / count) as isize + index * step) as usize
    };
    let in_runs = inner.is_contiguous();
    let stored = match table.data {
        Data::Stored(elements) => elements.mapped(),
        _ => None,
    };
    for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
        let first = chunk * at_once;
        if let (Data::Stored(elements), None) = (table.data, stored) {
            for (number, to) in (first..).zip(rows.chunks_mut(row)) {
                elements.read(at(number) as u64, bytemuck::cast_slice_mut(to));
            }
            return;
        }
        if row == 1 {
            // Single elements, a run of indices at a time.
            let (mut number, mut rest) = (first, rows);
            while !rest.is_empty() {
                let here = (count - number % count).min(rest.len());
                let (now, later) = rest.split_at_mut(here);
                let base = blocks.at(number / count) as isize;
                indices.each(number % count, here, |i, index| {
                    now[i] = data[(base + index as isize * step) as usize];
                });
                (number, rest) = (number + here, later);
            }
            return;
        }
        if in_runs {
            let last = first + rows.len() / row;
            for (number, to) in (first..).zip(rows.chunks_mut(row)) {
                if number + AHEAD < last {
                    ask_for(data, at(number + AHEAD), row);
                }
                to.copy_from_slice(&data[at(number)..][..row]);
            }
            return;
        }
        let mut from = inner;
        for (number, to) in (first..).zip(rows.chunks_mut(row)) {
            from.offset = at(number);
            strided::copy(from, data, 0, to);
        }
    })
}

fn samples() -> Vec<Sample> {
    let of = |dtype, table: &[usize], index, indices: &[usize], attrs: Attrs| {
        let below = Values::Below(table[axis("gather", &attrs).unwrap_or(0)]);
        let types = [TensorType::new(dtype, table), TensorType::new(index, indices)];
        Sample::of(&types, attrs).with(1, below)
    };
    vec![
        of(DType::F64, &[5, 3], DType::I32, &[4], Attrs::Axis(0)),
        of(DType::F64, &[5, 3], DType::I64, &[2, 3], Attrs::None),
        of(DType::F64, &[3, 4, 5], DType::I64, &[6], Attrs::Axis(1)),
        of(DType::F64, &[3, 2, 4], DType::U8, &[2, 2], Attrs::Axis(2)),
        of(DType::F32, &[7], DType::I32, &[], Attrs::Axis(0)),
        of(DType::F32, &[1025, 3], DType::U16, &[1023], Attrs::Axis(0)),
        of(DType::F32, &[40, 1024], DType::I16, &[33], Attrs::Axis(0)),
        of(DType::F16, &[6, 2], DType::I8, &[3], Attrs::Axis(0)),
        of(DType::BF16, &[2, 6], DType::U32, &[3], Attrs::Axis(1)),
        of(DType::I64, &[4, 2], DType::U64, &[3], Attrs::Axis(0)),
        of(DType::U8, &[4, 2], DType::I32, &[3], Attrs::Axis(1)),
        of(DType::Bool, &[4, 2], DType::I32, &[5], Attrs::Axis(0)),
        of(DType::F32, &[4, 0], DType::I32, &[5], Attrs::Axis(0)),
        of(DType::F32, &[4, 2], DType::I32, &[0], Attrs::Axis(0)),
        of(DType::F32, &[0, 2], DType::I32, &[0], Attrs::Axis(0)),
    ]
}
