//! `resize`: an image of other lengths.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::window::Resize;
use tonnage_core::{Attrs, Call, Emit, OpDef, TensorType};

use super::grad::RESIZE_GRAD;
use super::{cases, resize, with_lengths};
use crate::OpId;
use crate::infer::{along, cost, each, inputs};

/// The op's name, for errors.
pub const NAME: &str = "resize";

/// `image [batch, ..., channels] -> [batch, ..., channels]`; lengths and manner as [`Attrs::Resize`].
pub static RESIZE: OpDef = OpDef {
    id: OpId::Resize as u16,
    name: NAME,
    doc: "An image of other lengths: the nearest pixel, or straight lines between pixels.",
    infer,
    axes: image_axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(image, resize): (TensorType, Resize)| {
            Sample::of(&[image], Attrs::Resize(Box::new(resize)))
        };
        cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs(NAME, call)?;
    let resize = resize(NAME, call.attrs)?;
    if resize.image.rank() != 0 {
        let what = format!("lengths of {} for an image that is given", resize.image);
        return Err(bad_argument(NAME, what, "leave them out"));
    }
    Ok(smallvec![with_lengths(NAME, image, &resize.to)?])
}

/// Batch and channels run along those of the input.
pub(super) fn image_axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes = vec![AxisOf::Mixed; rank];
    axes[0] = along(&[(0, 0)]);
    axes[rank - 1] = along(&[(0, rank - 1)]);
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut resize = resize(NAME, call.attrs)?.clone();
    let of = &call.inputs[0].shape;
    resize.image = of[1..of.rank() - 1].iter().cloned().collect();
    let made = e.apply(&RESIZE_GRAD, vec![call.grad()?], Attrs::Resize(Box::new(resize)))?;
    Ok(vec![crate::emit::dense(made)])
}
