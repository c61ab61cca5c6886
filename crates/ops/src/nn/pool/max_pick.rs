//! `max_pool_pick`: the element of each window that has a given number. The transpose of
//! `max_pool_grad`; with the numbers of `max_pool` it is that op's forward derivative.
//!
//! A number that points into padding picks 0.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, Scalar, TensorType};

use super::max_grad::MAX_POOL_GRAD;
use super::{axes, index_dtype, slid, window};
use crate::OpId;
use crate::infer::{cost, dtype, inputs, number, shape};

/// The op's name, for errors.
pub const NAME: &str = "max_pool_pick";

/// `(image, numbers) -> elements`; the window as [`Attrs::Window`].
pub static MAX_POOL_PICK: OpDef = OpDef {
    id: OpId::MaxPoolPick as u16,
    name: NAME,
    doc: "The element of each window of an image that has a given number.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 2),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made).chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let image_and_numbers = |mut sample: Sample| {
            sample.inputs.truncate(2);
            sample
        };
        (MAX_POOL_GRAD.samples)().into_iter().map(image_and_numbers).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image, numbers] = inputs(NAME, call)?;
    number(NAME, image)?;
    let window = window(NAME, call.attrs)?;
    dtype(NAME, numbers, |d| d == index_dtype(&window), "the dtype that `max_pool` gave")?;
    let made = slid(NAME, &window, image)?;
    shape(NAME, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape: made }])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let parts = vec![zeros, call.input(1)?, call.grad()?];
    let image = emit.apply(&MAX_POOL_GRAD, parts, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(image)), None])
}
