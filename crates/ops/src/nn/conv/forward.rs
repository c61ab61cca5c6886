//! `conv`: filters laid on every window of an image, channels last. What most people call a convolution: filters are
//! not flipped.
//!
//! Padding is zeros.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, TensorType};

use super::filter_grad::CONV_FILTER_GRAD;
use super::transpose::CONV_TRANSPOSE;
use super::{ConvSizes, channels, divides, filter_lengths, floats, image_is_input, mismatch};
use crate::OpId;
use crate::infer::{along, inputs, joined};

/// The op's name, for errors.
pub const NAME: &str = "conv";

/// `(image [batch, ..., c], filters [..., c / groups, o]) -> [batch, ..., o]`; the rest as [`Attrs::Conv`].
pub static CONV: OpDef = OpDef {
    id: OpId::Conv as u16,
    name: NAME,
    doc: "Filters laid on every window of an image of one to three axes, channels last.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Costly,
    cost: |call| super::costs(call, known(call), &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0], &[1]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(dtype, image, filter, conv)| super::sample(dtype, &image, &filter, conv);
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image, filter] = inputs(NAME, call)?;
    floats(NAME, image, filter)?;
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    image_is_input(NAME, conv)?;
    let lengths = window.lengths(NAME, image)?;
    filter_lengths(NAME, &window, filter)?;
    let (depth, outputs) = (&filter.shape[window.spatial], channels(filter));
    if depth.times(&conv.groups.into()) != *channels(image) {
        let help = format!(
            "the image has {} channels, the filters take {depth} in each of {} groups",
            channels(image),
            conv.groups
        );
        mismatch(NAME, image, filter, help)?;
    }
    divides(NAME, conv.groups, outputs, "result")?;
    let made = window.slide(NAME, lengths)?;
    let shape = joined(&[&image.shape[..1], &made, std::slice::from_ref(outputs)]);
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((conv, window)) = super::attrs(NAME, call.attrs) else { return AxisMap::default() };
    let last = window.spatial + 1;
    let mut axes = vec![AxisOf::Mixed; last + 1];
    axes[0] = along(&[(0, 0)]);
    let mut summed = Vec::new();
    if conv.groups == 1 {
        axes[last] = along(&[(1, last)]);
        summed.push(smallvec![(0, last), (1, last - 1)]);
    }
    AxisMap { outputs: vec![axes], summed }
}

/// The sizes of a call, where they are known.
pub fn known(call: &Call) -> Option<ConvSizes> {
    ConvSizes::of(call, call.inputs.first()?, infer(call).ok()?.first()?)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    let mut grads = vec![None, None];
    if call.needs[0] {
        let mut conv = conv.clone();
        conv.image = window.lengths(NAME, &call.inputs[0])?.iter().cloned().collect();
        let inputs = vec![call.grad()?, call.input(1)?];
        let made = e.apply(&CONV_TRANSPOSE, inputs, Attrs::Conv(Box::new(conv)))?;
        grads[0] = crate::emit::dense(made);
    }
    if call.needs[1] {
        let inputs = vec![call.input(0)?, call.grad()?];
        let made = e.apply(&CONV_FILTER_GRAD, inputs, call.attrs.clone())?;
        grads[1] = crate::emit::dense(made);
    }
    Ok(grads)
}
