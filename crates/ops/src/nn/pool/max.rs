//! `max_pool`: the largest element of each window of an image, channel by channel.
//!
//! Padding counts as less than everything, and never wins. NaN wins, so that it shows; of equal elements the first one,
//! row by row, is the largest, and gets the gradient. For the backward pass the op saves that element's number
//! within its window, in one or two bytes, and neither its input nor its output.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Scalar, TensorType};

use super::max_grad::MAX_POOL_GRAD;
use super::{axes, cases, index_dtype, slid, window};
use crate::OpId;
use crate::infer::{cost, each, inputs, number};

/// The op's name, for errors.
pub const NAME: &str = "max_pool";

/// `image [batch, ..., channels] -> maxima`; the window as [`Attrs::Window`].
pub static MAX_POOL: OpDef = OpDef {
    id: OpId::MaxPool as u16,
    name: NAME,
    doc: "The largest element of each window of an image, channel by channel.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 1),
    mem: Mem::Alloc,
    saves: Saves { alternatives: &[&[Save::Aux(0).always()]], aux },
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = window(NAME, call.attrs).map_or(0, |w| w.area() as u64);
        let flops = each(&made, area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs(NAME, call)?;
    number(NAME, image)?;
    let shape = slid(NAME, &window(NAME, call.attrs)?, image)?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

/// The number of each maximum within its window.
fn aux(call: &Call) -> Result<Types> {
    let dtype = index_dtype(&window(NAME, call.attrs)?);
    Ok(infer(call)?.into_iter().map(|ty| TensorType { dtype, ..ty }).collect())
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let of = call.inputs[0].clone();
    let fill = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
    let zeros = emit.apply(call.ops.fill, Vec::new(), fill)?;
    let parts = vec![zeros, call.aux(0)?, call.grad()?];
    let image = emit.apply(&MAX_POOL_GRAD, parts, call.attrs.clone())?;
    Ok(vec![Some(Cotangent::Dense(image))])
}

/// Shared by the three ops of max pooling.
pub(super) fn samples() -> Vec<Sample> {
    let integers = [
        super::case(DType::I32, &[2, 4, 4, 3], &[[3, 1, 1, 1, 1], [3, 1, 1, 1, 1]]),
        super::case(DType::U8, &[1, 4, 4, 2], &[[2, 2, 0, 0, 1], [2, 2, 0, 0, 1]]),
    ];
    let sample = |(image, window)| Sample::of(&[image], Attrs::Window(Box::new(window)));
    cases().into_iter().chain(integers).map(sample).collect()
}
