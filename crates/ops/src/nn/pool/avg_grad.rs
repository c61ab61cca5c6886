//! `avg_pool_grad`: the value of each window, spread evenly over the elements that its mean was taken of, and added up
//! where windows overlap. The transpose of `avg_pool`.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, Shape, TensorType};

use super::avg::{AVG_POOL, average, averages, made};
use super::axes;
use crate::infer::{cost, each, inputs, joined, shape};
use crate::{OpId, rules};

/// The op's name, for errors.
pub const NAME: &str = "avg_pool_grad";

/// `values [batch, ..., channels] -> image`; the rest as [`Attrs::Average`], which has the lengths of the image.
pub static AVG_POOL_GRAD: OpDef = OpDef {
    id: OpId::AvgPoolGrad as u16,
    name: NAME,
    doc: "The value of each window spread evenly over its elements: the transpose of avg_pool.",
    infer,
    axes: |call| axes(call.inputs[0].shape.rank(), 1),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let area = average(NAME, call.attrs).map_or(0, |(_, window)| window.area() as u64);
        let flops = each(call.inputs, 2 * area);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |(image, mut average): (TensorType, tonnage_core::window::Average)| {
            let values = TensorType::new(image.dtype, &made(&image, &average)[..]);
            average.image = image.shape[1..image.shape.rank() - 1].iter().cloned().collect();
            Sample::of(&[values], Attrs::Average(Box::new(average)))
        };
        averages().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values] = inputs(NAME, call)?;
    rules::infer::float(call, values)?;
    let (average, window) = average(NAME, call.attrs)?;
    let lengths: Shape = window.lengths(NAME, values)?.iter().cloned().collect();
    if average.image.rank() != window.spatial {
        let what = format!("an image of lengths {}", average.image);
        return Err(bad_argument(NAME, what, "give a length for each spatial axis"));
    }
    let made: Shape = window.slide(NAME, &average.image)?.into_iter().collect();
    shape(NAME, &lengths, &made, "an image of these lengths has another number of windows")?;
    let rank = values.shape.rank();
    let shape = joined(&[&values.shape[..1], &average.image, &values.shape[rank - 1..]]);
    Ok(smallvec![TensorType { dtype: values.dtype, shape }])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut average = average(NAME, call.attrs)?.0.clone();
    average.image = Shape::scalar();
    let made = e.apply(&AVG_POOL, vec![call.grad()?], Attrs::Average(Box::new(average)))?;
    Ok(vec![crate::emit::dense(made)])
}
