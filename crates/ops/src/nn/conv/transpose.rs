//! `conv_transpose`: what a convolution takes from an image, given back to it: each window's values times the filters,
//! added up where windows overlap. The gradient of `conv` for its image, and the layer of that name.
//!
//! A pixel that no window covers is zero.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, TensorType};

use super::filter_grad::CONV_FILTER_GRAD;
use super::forward::CONV;
use super::{ConvSizes, channels, divides, filter_lengths, floats, mismatch};
use crate::OpId;
use crate::infer::{along, inputs, joined, shape};

/// The op's name, for errors.
pub const NAME: &str = "conv_transpose";

/// `(values [batch, ..., o], filters [..., c / groups, o]) -> image [batch, ..., c]`; the rest as [`Attrs::Conv`], which
/// has the lengths of the image.
pub static CONV_TRANSPOSE: OpDef = OpDef {
    id: OpId::ConvTranspose as u16,
    name: NAME,
    doc: "The values of windows times filters, added up to an image: the transpose of conv.",
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
        let sample = |case: super::Case| {
            let made = super::made(&case);
            let (dtype, image, filter, mut conv) = case;
            conv.image = Shape::from(&image[1..image.len() - 1]);
            super::sample(dtype, &made, &filter, conv)
        };
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values, filter] = inputs(NAME, call)?;
    floats(NAME, values, filter)?;
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    let lengths = window.lengths(NAME, values)?;
    filter_lengths(NAME, &window, filter)?;
    if channels(values) != channels(filter) {
        let help = format!(
            "there are {} channels, the filters give {}",
            channels(values),
            channels(filter)
        );
        mismatch(NAME, values, filter, help)?;
    }
    divides(NAME, conv.groups, channels(values), "values")?;
    let image = &conv.image;
    if image.rank() != window.spatial {
        let what = format!("an image of lengths {image} for windows over {} axes", window.spatial);
        return Err(bad_argument(NAME, what, "give a length for each spatial axis"));
    }
    let made: Shape = window.slide(NAME, image)?.into_iter().collect();
    let found: Shape = lengths.iter().cloned().collect();
    shape(NAME, &found, &made, "an image of these lengths has another number of windows")?;
    let inner = filter.shape[window.spatial].times(&conv.groups.into());
    let shape = joined(&[&values.shape[..1], image, &[inner]]);
    Ok(smallvec![TensorType { dtype: values.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((conv, window)) = super::attrs(NAME, call.attrs) else { return AxisMap::default() };
    let last = window.spatial + 1;
    let mut axes = vec![AxisOf::Mixed; last + 1];
    axes[0] = along(&[(0, 0)]);
    let mut summed = Vec::new();
    if conv.groups == 1 {
        axes[last] = along(&[(1, last - 1)]);
        summed.push(smallvec![(0, last), (1, last)]);
    }
    AxisMap { outputs: vec![axes], summed }
}

/// The sizes of a call, where they are known.
pub fn known(call: &Call) -> Option<ConvSizes> {
    ConvSizes::of(call, infer(call).ok()?.first()?, call.inputs.first()?)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (conv, _) = super::attrs(NAME, call.attrs)?;
    let mut conv = conv.clone();
    conv.image = Shape::scalar();
    let attrs = Attrs::Conv(Box::new(conv));
    let mut grads = vec![None, None];
    if call.needs[0] {
        let made = e.apply(&CONV, vec![call.grad()?, call.input(1)?], attrs.clone())?;
        grads[0] = crate::emit::dense(made);
    }
    if call.needs[1] {
        let made = e.apply(&CONV_FILTER_GRAD, vec![call.grad()?, call.input(0)?], attrs)?;
        grads[1] = crate::emit::dense(made);
    }
    Ok(grads)
}
