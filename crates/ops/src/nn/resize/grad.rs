//! `resize_grad`: what each pixel of a resized image was made of, given back to it. The transpose of `resize`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::window::Resize;
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, TensorType};

use super::forward::{RESIZE, image_axes};
use super::{cases, resize, sizes, with_lengths};
use crate::OpId;
use crate::infer::{cost, each, inputs, shape};

/// The op's name, for errors.
pub const NAME: &str = "resize_grad";

/// `values [batch, ..., channels] -> image`; lengths of both and the manner as [`Attrs::Resize`].
pub static RESIZE_GRAD: OpDef = OpDef {
    id: OpId::ResizeGrad as u16,
    name: NAME,
    doc: "What each pixel of a resized image was made of, given back: the transpose of resize.",
    infer,
    axes: image_axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(call.inputs, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(image, mut resize): (TensorType, Resize)| {
            let made = with_lengths(NAME, &image, &resize.to).unwrap_or_else(|_| image.clone());
            let of = sizes(&image);
            resize.image = Shape::from(&of[1..of.len() - 1]);
            Sample::of(&[made], Attrs::Resize(Box::new(resize)))
        };
        cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values] = inputs(NAME, call)?;
    let resize = resize(NAME, call.attrs)?;
    let image = with_lengths(NAME, values, &resize.image)?;
    let made = with_lengths(NAME, &image, &resize.to)?;
    shape(NAME, &values.shape, &made.shape, "pass values of an image of these lengths")?;
    Ok(smallvec![image])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut resize = resize(NAME, call.attrs)?.clone();
    resize.image = Shape::scalar();
    let made = e.apply(&RESIZE, vec![call.grad()?], Attrs::Resize(Box::new(resize)))?;
    Ok(vec![crate::emit::dense(made)])
}
