//! `conv_filter_grad`: for every tap of a filter, the products of what it saw in all windows with what the windows
//! gave, added up. The gradient of `conv` for its filters.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Dim, Emit, OpDef, Shape, TensorType};

use super::forward::CONV;
use super::transpose::CONV_TRANSPOSE;
use super::{ConvSizes, channels, divides, floats, image_is_input};
use crate::OpId;
use crate::infer::{along, inputs, joined, shape};

/// The op's name, for errors.
pub const NAME: &str = "conv_filter_grad";

/// `(image [batch, ..., c], values [batch, ..., o]) -> filters [..., c / groups, o]`; the rest as [`Attrs::Conv`].
pub static CONV_FILTER_GRAD: OpDef = OpDef {
    id: OpId::ConvFilterGrad as u16,
    name: NAME,
    doc: "Products of an image's windows with their values, added up to filters.",
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
            let (dtype, image, _, conv) = case;
            super::sample(dtype, &image, &made, conv)
        };
        super::cases().into_iter().map(sample).collect()
    },
};

/// The type rule.
pub fn infer(call: &Call) -> Result<Types> {
    let [image, values] = inputs(NAME, call)?;
    floats(NAME, image, values)?;
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    image_is_input(NAME, conv)?;
    divides(NAME, conv.groups, channels(image), "image")?;
    let made = window.slide(NAME, window.lengths(NAME, image)?)?;
    divides(NAME, conv.groups, channels(values), "values")?;
    let expected: Shape =
        joined(&[&image.shape[..1], &made, std::slice::from_ref(channels(values))]);
    shape(NAME, &values.shape, &expected, "pass values for every window of the image")?;
    let taps = conv.window.size.iter().map(|n| Dim::Known(*n));
    let inner = channels(image).divided_by(&conv.groups.into());
    let shape = taps.chain([inner, channels(values).clone()]).collect();
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((conv, window)) = super::attrs(NAME, call.attrs) else { return AxisMap::default() };
    let last = window.spatial + 1;
    let mut axes = vec![AxisOf::Mixed; last + 1];
    if conv.groups == 1 {
        axes[last - 1] = along(&[(0, last)]);
        axes[last] = along(&[(1, last)]);
    }
    AxisMap { outputs: vec![axes], summed: vec![smallvec![(0, 0), (1, 0)]] }
}

/// The sizes of a call, where they are known.
pub fn known(call: &Call) -> Option<ConvSizes> {
    ConvSizes::of(call, call.inputs.first()?, call.inputs.get(1)?)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    let mut grads = vec![None, None];
    if call.needs[0] {
        let mut conv = conv.clone();
        conv.image = window.lengths(NAME, &call.inputs[0])?.iter().cloned().collect();
        let inputs = vec![call.input(1)?, call.grad()?];
        let made = e.apply(&CONV_TRANSPOSE, inputs, Attrs::Conv(Box::new(conv)))?;
        grads[0] = crate::emit::dense(made);
    }
    if call.needs[1] {
        let made = e.apply(&CONV, vec![call.input(0)?, call.grad()?], call.attrs.clone())?;
        grads[1] = crate::emit::dense(made);
    }
    Ok(grads)
}
