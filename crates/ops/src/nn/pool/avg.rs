//! `avg_pool`: the mean of each window of an image, channel by channel.
//!
//! Padding is left out of the mean, which is then over fewer elements at the edges, unless it is told to count as
//! zeros. A window that lies in padding alone gives 0.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::window::Average;
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, Sizes, TensorType};

use super::avg_grad::AVG_POOL_GRAD;
use super::{axes, cases, slid};
use crate::infer::{bad_attrs, cost, each, inputs};
use crate::nn::window::WindowGeometry;
use crate::{OpId, rules};

/// The op's name, for errors.
pub const NAME: &str = "avg_pool";

/// `image [batch, ..., channels] -> means`; the rest as [`Attrs::Average`].
pub static AVG_POOL: OpDef = OpDef {
    id: OpId::AvgPool as u16,
    name: NAME,
    doc: "The mean of each window of an image, channel by channel.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 1),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = average(NAME, call.attrs).map_or(0, |(_, window)| window.area() as u64);
        let flops = each(&made, area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(image, average)| Sample::of(&[image], Attrs::Average(Box::new(average)));
        averages().into_iter().map(sample).collect()
    },
};

/// The attributes, checked.
pub fn average<'a>(op: &'static str, attrs: &'a Attrs) -> Result<(&'a Average, WindowGeometry)> {
    let Attrs::Average(average) = attrs else { return Err(bad_attrs(op, attrs, "an average")) };
    Ok((average, super::checked(op, &average.window)?))
}

fn infer(call: &Call) -> Result<Types> {
    let [image] = inputs(NAME, call)?;
    rules::infer::float(call, image)?;
    let (average, window) = average(NAME, call.attrs)?;
    if average.image.rank() != 0 {
        let what = format!("lengths of {} for an image that is given", average.image);
        return Err(bad_argument(NAME, what, "leave them out"));
    }
    let shape = slid(NAME, &window, image)?;
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (average, window) = average(NAME, call.attrs)?;
    let mut average = average.clone();
    average.image = window.lengths(NAME, &call.inputs[0])?.iter().cloned().collect();
    let made = e.apply(&AVG_POOL_GRAD, vec![call.grad()?], Attrs::Average(Box::new(average)))?;
    Ok(vec![crate::emit::dense(made)])
}

/// Images and windows of every kind, with padding that counts and that does not.
pub(super) fn averages() -> Vec<(TensorType, Average)> {
    let of = |(number, (ty, window)): (usize, (TensorType, _))| {
        let average = Average { window, counts_padding: number % 2 == 1, image: Shape::scalar() };
        (ty, average)
    };
    let twice = cases().into_iter().take(3).chain(cases());
    twice.enumerate().map(of).collect()
}

/// What the windows of an image give.
pub(super) fn made(image: &TensorType, average: &Average) -> Sizes {
    let window = super::checked(NAME, &average.window);
    let shape = window.and_then(|window| slid(NAME, &window, image));
    shape.ok().and_then(|shape| shape.sizes()).unwrap_or_default()
}
