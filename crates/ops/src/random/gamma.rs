//! `random_gamma`: numbers of the gamma distribution, one for each shape parameter.
//!
//! By Marsaglia and Tsang, "A simple method for generating gamma variables" (2000): a normal number, cubed, is taken
//! more than nineteen times of twenty. A parameter of 0 gives 0, infinity gives infinity, one below 0 gives NaN.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, FromScalar, OpDef, TensorType, with_element};

use super::draw::{Draw, check_key, read_key};
use crate::infer::{cost, dtype, elements, inputs, no_attrs};
use crate::rules;
use crate::strided::Positions;

/// `(shape [..], key u32 [2]) -> [..]`
pub static RANDOM_GAMMA: OpDef = OpDef {
    name: "random_gamma",
    doc: "Numbers of the gamma distribution with a rate of 1, one for each shape parameter.",
    infer,
    // Each element draws by its number: a piece would draw other numbers.
    axes: |call| AxisMap { ..rules::axes::mixed(&[call.inputs[0].shape.rank()]) },
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(200);
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Stop("a number that was drawn has no slope along its parameter here"),
    jvp: Jvp::Stop("a number that was drawn has no slope along its parameter here"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let op = "random_gamma";
    let [shape, key] = inputs(op, call)?;
    no_attrs(op, call)?;
    dtype(op, shape, DType::is_float, "a float")?;
    check_key(op, key)?;
    Ok([shape.clone()].into_iter().collect())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (shape, key) = (&k.inputs[0], read_key(&k.inputs[1]));
    with_element!(shape.dtype, T => {
        let (data, positions) = (shape.slice::<T>(), Positions::of(&shape.layout));
        for_each_chunk(k.workers, k.outputs[0].slice::<T>(), 256, &|chunk, out| {
            for (i, to) in out.iter_mut().enumerate() {
                let number = chunk * 256 + i;
                let shape = data[positions.at(number)].to_scalar().to_f64();
                let drawn = gamma(shape, &mut Draw::new(key, number as u64));
                *to = T::from_scalar(drawn.into());
            }
        });
    });
    Ok(())
}

fn gamma(shape: f64, draw: &mut Draw) -> f64 {
    if shape.is_nan() || shape < 0.0 {
        return f64::NAN;
    }
    if shape == 0.0 || shape == f64::INFINITY {
        return shape;
    }
    if shape < 1.0 {
        // One more, and made smaller by a power of a uniform number.
        let more = gamma(shape + 1.0, draw);
        return more * draw.uniforms()[0].powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let x = draw.normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 {
            let u = draw.uniforms()[0];
            if u.ln() < 0.5 * x * x + d - d * v + d * v.ln() {
                return d * v;
            }
        }
    }
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], low: f64, high: f64| {
        let types = [TensorType::new(dtype, shape), TensorType::new(DType::U32, [2])];
        Sample::of(&types, Attrs::None).with(0, Values::Between(low, high))
    };
    vec![
        of(DType::F64, &[2, 40], 0.1, 3.0),
        of(DType::F32, &[50], 2.0, 50.0),
        of(DType::F16, &[5], 0.5, 4.0),
        of(DType::BF16, &[5], 0.5, 4.0),
        of(DType::F32, &[], 1.0, 2.0),
        of(DType::F32, &[0, 3], 1.0, 2.0),
        of(DType::F64, &[700], 1.0, 60.0),
    ]
}
