//! `sort`: each row of the last axis in order, up or down.
//!
//! NaN counts as larger than everything, so it stands at the end, or first where the largest comes first. The
//! elements are sorted as whole numbers in the output itself: no scratch.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, Kernel};
use tonnage_core::row::{
    AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, OpDef, Shape, TensorType, Workers};

use super::along::{leading_axes, one_output};
use super::argsort::{ARGSORT, descending};
use super::order::{Ordered, in_order, with_ordered};
use super::put_along_axis::PUT_ALONG_AXIS;
use crate::infer::{cost, elements, inputs, rank_at_least};
use crate::parallel::{rows_at_once, strides};
use crate::{emit, strided};

/// `x [.., n] -> [.., n]`; whether the largest comes first as [`Attrs::Descending`].
pub static SORT: OpDef = OpDef {
    name: "sort",
    doc: "Each row of the last axis in order; NaN counts as larger than everything.",
    infer,
    axes: |call| one_output(leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed)),
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || samples(&DType::ALL),
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("sort", call)?;
    descending(call)?;
    rank_at_least("sort", x, 1, "it sorts along the last axis")?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let places = e.apply(&ARGSORT, vec![call.input(0)?], call.attrs.clone())?;
    let length: Shape = call.inputs[0].shape.last().cloned().into_iter().collect();
    let put = e.apply(&PUT_ALONG_AXIS, vec![places, call.grad()?], Attrs::Shape(length))?;
    Ok(vec![emit::dense(put)])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Descending(descending) = *k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    let n = out.sizes.last().copied().unwrap_or(0);
    with_ordered!(x.dtype, T, P => {
        // Rows are sorted as keys, whatever else would be packed beside them.
        let _: Option<P> = None;
        let at_once = rows_at_once(16 * n);
        for_each_chunk(k.workers, out.slice::<T>(), (n * at_once).max(1), &|chunk, rows| {
            if let Data::Slice(_) = x.data {
                strided::copy(&x.layout, x.slice::<T>(), chunk * at_once * n, rows);
            }
            for row in rows.chunks_mut(n) {
                if sort_row::<T>(row, descending, k.workers).is_err() {
                    return; // as all other rows do
                }
            }
        })?;
    });
    Ok(())
}

fn sort_row<T: Ordered>(row: &mut [T], descending: bool, workers: &dyn Workers) -> Result<()> {
    for range in strides(workers, 0..row.len(), 1) {
        row[range].iter_mut().for_each(|x| *x = bytemuck::cast(x.key()));
    }
    let keys: &mut [T::Key] = bytemuck::cast_slice_mut(row);
    in_order(keys, workers)?;
    if descending {
        keys.reverse();
    }
    for range in strides(workers, 0..row.len(), 1) {
        row[range].iter_mut().for_each(|x| *x = T::of(bytemuck::cast(*x)));
    }
    Ok(())
}

/// Rows of every kind.
pub(super) fn samples(dtypes: &[DType]) -> Vec<Sample> {
    let of = |dtype, shape: &[usize], descending| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Descending(descending))
    };
    let mut all: Vec<Sample> = dtypes.iter().map(|d| of(*d, &[2, 9], false)).collect();
    all.extend([
        of(DType::F32, &[1], false),
        of(DType::F32, &[7], true),
        of(DType::I32, &[3, 2, 5], true),
        of(DType::F64, &[4, 30], true),
        of(DType::F32, &[2, 1025], false),
        of(DType::F32, &[0], false),
        of(DType::F32, &[0, 3], true),
        of(DType::F32, &[3, 0], false),
    ]);
    all
}
