//! `max_pool_grad`: an image with the gradient of each window's maximum added where that maximum was.
//!
//! Windows overlap, so an element may be the maximum of several.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Fails, Grad, Jvp, Lower, Mem, Remat, Sample, SampleInput, Save, Saves, Types, Values,
};
use tonnage_core::{Call, Emit, OpDef, TensorType};

use super::max_pick::MAX_POOL_PICK;
use super::{axes, index_dtype, max, slid, window};
use crate::OpId;
use crate::infer::{cost, dtype, elements, inputs, number, same_dtype, shape};

/// The op's name, for errors.
pub const NAME: &str = "max_pool_grad";

/// `(into, numbers, g) -> into + g at the maxima`; numbers as the aux output of `max_pool`, the window as
/// [`Attrs::Window`](tonnage_core::Attrs::Window).
pub static MAX_POOL_GRAD: OpDef = OpDef {
    id: OpId::MaxPoolGrad as u16,
    name: NAME,
    doc: "An image with values added where each window has its maximum.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 3),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        cost(call.inputs.get(2).map_or(0, elements), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0, 2]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || max::samples().into_iter().map(sample).collect(),
};

fn infer(call: &Call) -> Result<Types> {
    let [into, numbers, g] = inputs(NAME, call)?;
    number(NAME, into)?;
    same_dtype(NAME, into, g)?;
    let window = window(NAME, call.attrs)?;
    dtype(NAME, numbers, |d| d == index_dtype(&window), "the dtype that `max_pool` gave")?;
    let made = slid(NAME, &window, into)?;
    shape(NAME, &numbers.shape, &made, "pass the numbers that `max_pool` gave for this image")?;
    shape(NAME, &g.shape, &made, "pass one value for each window")?;
    Ok(smallvec![into.clone()])
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    let picked = match call.needs[2] {
        true => {
            let inputs = vec![g.clone(), call.input(1)?];
            Some(Cotangent::Dense(emit.apply(&MAX_POOL_PICK, inputs, call.attrs.clone())?))
        }
        false => None,
    };
    Ok(vec![Some(Cotangent::Dense(g)), None, picked])
}

/// The sample of `max_pool` with any numbers that a window has, those of padding too.
fn sample(of: Sample) -> Sample {
    let image = of.inputs[0].ty.clone();
    let (Ok(window), attrs) = (window(NAME, &of.attrs), of.attrs.clone()) else {
        return of;
    };
    let made = slid(NAME, &window, &image).unwrap_or_default();
    let values = TensorType::new(image.dtype, &made);
    let numbers = SampleInput {
        ty: TensorType::new(index_dtype(&window), made),
        values: Values::Below(window.area()),
    };
    let mut sample = Sample::of(&[image.clone(), image, values], attrs);
    sample.inputs[1] = numbers;
    sample
}
