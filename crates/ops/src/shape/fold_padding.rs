//! `fold_padding`: what a mirror shows around a tensor, added back to what it shows: the transpose of `pad`
//! with a mirror, and its gradient.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::{Attrs, PadMode};
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Dim, OpDef, TensorType, Workers};

use super::pad::{self, PAD};
use crate::number::{Number, with_number};
use crate::parallel::{rows_at_once, strides};
use crate::{emit, rules};

/// What a mirror shows around a tensor, added back to what it shows.
pub static FOLD_PADDING: OpDef = OpDef {
    name: "fold_padding",
    doc: "What a mirror shows around a tensor, added back to what it shows.",
    infer,
    axes: pad::axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, crate::infer::elements);
        Cost { flops, bytes: rules::cost::moved(call, &outputs) }
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let ty = &call.inputs[0];
    rules::infer::number(call, ty)?;
    let (widths, padding) = pad::padding(call)?;
    let fits =
        |(d, w): (&Dim, &[usize; 2])| d.known().is_none_or(|n| n >= w[0].saturating_add(w[1]));
    let known = widths.len() == ty.shape.rank() && ty.shape.iter().zip(widths).all(fits);
    if !known || matches!(padding, PadMode::Constant(_)) {
        let what = format!("{widths:?} elements around {ty}, {padding:?}");
        return Err(bad_argument(call.op, what, "give what `pad` with a mirror was given"));
    }
    let shorter = |(d, w): (&Dim, &[usize; 2])| d.minus(&Dim::Known(w[0])).minus(&Dim::Known(w[1]));
    let shape = ty.shape.iter().zip(widths).map(shorter).collect();
    let made = TensorType { dtype: ty.dtype, shape };
    pad::check(call, &made)?;
    Ok(smallvec![made])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&PAD, vec![g], call.attrs.clone())?)])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Pad { widths, padding } = k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    with_number!("fold_padding", x.dtype, T => {
        let (sizes, out) = out.parts::<T>();
        fold::<T>(x, widths, *padding, sizes, out, k.workers)
    })
}

/// Where a padded axis shows element `at` of `n`: once in the middle, and once on either side.
fn shown(at: usize, n: usize, [before, behind]: [usize; 2], padding: PadMode) -> Shown {
    let beside = matches!(padding, PadMode::Symmetric) as usize;
    let mut all: Shown = smallvec![before + at];
    if (at + beside).checked_sub(1).is_some_and(|d| d < before) {
        all.push(before - at - beside);
    }
    // As far from the last element as the mirror shows it beyond.
    let distance = n - 1 - at + beside;
    if (1..=behind).contains(&distance) {
        all.push(before + n - 1 + distance);
    }
    all
}

type Shown = SmallVec<[usize; 3]>;

fn fold<T: Number>(
    x: &In,
    widths: &[[usize; 2]],
    padding: PadMode,
    sizes: &[usize],
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, data) = (&x.layout, x.slice::<T>());
    let Some(last) = sizes.len().checked_sub(1) else {
        out[0] = data[layout.offset];
        return Ok(());
    };
    let (row, step) = (sizes[last], layout.strides[last]);
    let shown_at = |axis: usize, at: usize| shown(at, sizes[axis], widths[axis], padding);
    let at_once = rows_at_once(row);
    for_each_chunk(workers, out, (row * at_once).max(1), &|chunk, rows| {
        for (i, to) in rows.chunks_mut(row).enumerate() {
            // The rows that are added up here: up to three for every outer axis, the last axis fastest.
            let number = chunk * at_once + i;
            let outer = |each: &mut dyn FnMut(usize, Shown)| {
                let mut rest = number;
                for axis in (0..last).rev() {
                    each(axis, shown_at(axis, rest % sizes[axis]));
                    rest /= sizes[axis];
                }
            };
            let mut combinations = 1;
            outer(&mut |_, shown| combinations *= shown.len());
            to.fill(T::ZERO);
            for which in 0..combinations {
                let (mut start, mut which) = (layout.offset as isize, which);
                outer(&mut |axis, shown| {
                    start += shown[which % shown.len()] as isize * layout.strides[axis];
                    which /= shown.len();
                });
                for range in strides(workers, 0..row, 1) {
                    for (at, to) in range.clone().zip(&mut to[range]) {
                        for at in shown_at(last, at) {
                            *to = to.plus(data[(start + at as isize * step) as usize]);
                        }
                    }
                }
            }
        }
    })
}

fn samples() -> Vec<Sample> {
    let longer = |(dtype, shape, widths, padding): (_, &[usize], &[[usize; 2]], PadMode)| {
        let padded: Vec<usize> = shape.iter().zip(widths).map(|(n, w)| n + w[0] + w[1]).collect();
        let attrs = Attrs::Pad { widths: widths.to_vec(), padding };
        Sample::of(&[TensorType::new(dtype, padded)], attrs)
    };
    pad::mirror_samples().into_iter().map(longer).collect()
}
