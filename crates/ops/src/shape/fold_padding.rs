//! `fold_padding`: what a mirror shows around a tensor, added back to what it shows: the transpose of `pad`
//! with a mirror, and its gradient.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, PadMode};
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Dim, OpDef, TensorType};

use super::pad::{self, PAD};
use crate::{OpId, emit, rules};

/// What a mirror shows around a tensor, added back to what it shows.
pub static FOLD_PADDING: OpDef = OpDef {
    id: OpId::FoldPadding as u16,
    name: "fold_padding",
    doc: "What a mirror shows around a tensor, added back to what it shows.",
    infer,
    axes: pad::axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, crate::infer::elements);
        Cost::local(flops, rules::cost::moved(call, &outputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
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

fn samples() -> Vec<Sample> {
    let longer = |(dtype, shape, widths, padding): (_, &[usize], &[[usize; 2]], PadMode)| {
        let padded: Vec<usize> = shape.iter().zip(widths).map(|(n, w)| n + w[0] + w[1]).collect();
        let attrs = Attrs::Pad { widths: widths.to_vec(), padding };
        Sample::of(&[TensorType::new(dtype, padded)], attrs)
    };
    pad::mirror_samples().into_iter().map(longer).collect()
}
