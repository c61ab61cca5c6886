//! `random_poisson`: whole numbers of the Poisson distribution, one for each rate, as floats.
//!
//! Small rates by counting how many uniform numbers it takes until their product is small; large ones by Hormann's
//! transformed rejection (1993). A rate of 0 gives 0, one below 0 or infinite gives NaN.

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

/// `(rate [..], key u32 [2]) -> [..]`
pub static RANDOM_POISSON: OpDef = OpDef {
    name: "random_poisson",
    doc: "Whole numbers of the Poisson distribution, one for each rate, as floats.",
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
    grad: Grad::Stop("a whole number has no slope"),
    jvp: Jvp::Stop("a whole number has no slope"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let op = "random_poisson";
    let [rate, key] = inputs(op, call)?;
    no_attrs(op, call)?;
    dtype(op, rate, DType::is_float, "a float")?;
    check_key(op, key)?;
    Ok([rate.clone()].into_iter().collect())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (rate, key) = (&k.inputs[0], read_key(&k.inputs[1]));
    with_element!(rate.dtype, T => {
        let (data, positions) = (rate.slice::<T>(), Positions::of(&rate.layout));
        for_each_chunk(k.workers, k.outputs[0].slice::<T>(), 256, &|chunk, out| {
            for (i, to) in out.iter_mut().enumerate() {
                let number = chunk * 256 + i;
                let rate = data[positions.at(number)].to_scalar().to_f64();
                let drawn = poisson(rate, &mut Draw::new(key, number as u64));
                *to = T::from_scalar(drawn.into());
            }
        });
    });
    Ok(())
}

fn poisson(rate: f64, draw: &mut Draw) -> f64 {
    if rate.is_nan() || rate < 0.0 || rate == f64::INFINITY {
        return f64::NAN;
    }
    if rate < 10.0 {
        let least = (-rate).exp();
        let (mut product, mut count) = (1.0, -1.0f64);
        while product > least {
            product *= draw.uniforms()[0];
            count += 1.0;
        }
        return count.max(0.0);
    }
    let b = 0.931 + 2.53 * rate.sqrt();
    let a = -0.059 + 0.02483 * b;
    let inverse = 1.1239 + 1.1328 / (b - 3.4);
    let squeeze = 0.9277 - 3.6224 / (b - 2.0);
    loop {
        let [u, v] = draw.uniforms();
        let u = u - 0.5;
        let us = 0.5 - u.abs();
        let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
        if us >= 0.07 && v <= squeeze {
            return k;
        }
        if k < 0.0 || us < 0.013 && v > us {
            continue;
        }
        let weight = v.ln() + inverse.ln() - (a / (us * us) + b).ln();
        if weight <= k * rate.ln() - rate - log_factorial(k) {
            return k;
        }
    }
}

/// ln k!, by Stirling's series above a table's reach.
fn log_factorial(k: f64) -> f64 {
    if k < 10.0 {
        return (2..=k as u32).map(|i| f64::from(i).ln()).sum();
    }
    let x = k + 1.0;
    let z = 1.0 / (x * x);
    let rest = (1.0 / 12.0 - z * (1.0 / 360.0 - z / 1260.0)) / x;
    (x - 0.5) * x.ln() - x + 0.5 * (2.0 * std::f64::consts::PI).ln() + rest
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], low: f64, high: f64| {
        let types = [TensorType::new(dtype, shape), TensorType::new(DType::U32, [2])];
        Sample::of(&types, Attrs::None).with(0, Values::Between(low, high))
    };
    vec![
        of(DType::F64, &[2, 40], 0.1, 3.0),
        of(DType::F32, &[50], 5.0, 300.0),
        of(DType::F16, &[5], 0.5, 4.0),
        of(DType::BF16, &[5], 0.5, 4.0),
        of(DType::F32, &[], 1.0, 2.0),
        of(DType::F32, &[0, 3], 1.0, 2.0),
        of(DType::F64, &[700], 1.0, 60.0),
    ]
}
