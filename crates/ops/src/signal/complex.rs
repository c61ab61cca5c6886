//! What `fft` and `ifft` share: type rule, axes, cost, gradient and samples. One is the other with real and imaginary
//! parts exchanged, over the length.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Call, Cost, Sample, Types};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use crate::emit;
use crate::infer::{
    along, cost, elements, inputs, no_attrs, rank_at_least, real, same_dtype, shape,
};

/// Real and imaginary parts of the same type, with something along their last axis.
pub fn parts<'a>(op: &'static str, call: &Call<'a>) -> Result<&'a TensorType> {
    let [re, im] = inputs(op, call)?;
    real(op, re)?;
    same_dtype(op, re, im)?;
    shape(op, &im.shape, &re.shape, "pass imaginary parts of the shape of the real ones")?;
    rank_at_least(op, re, 1, "transforms run along the last axis")?;
    something(op, re)?;
    Ok(re)
}

/// Refuses a last axis of no length.
pub fn something(op: &'static str, ty: &TensorType) -> Result<()> {
    match ty.shape.last() {
        Some(last) if last.is(0) => {
            let what = format!("the last axis of {ty} is empty");
            Err(bad_argument(op, what, "a transform takes at least one element"))
        }
        _ => Ok(()),
    }
}

/// The type rule.
pub fn infer(call: &Call) -> Result<Types> {
    no_attrs(call.op, call)?;
    let part = parts(call.op, call)?;
    Ok(smallvec![part.clone(), part.clone()])
}

/// All axes but the last, of all outputs, run along those of the inputs.
pub fn rows(call: &Call, outputs: usize) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let own = |axis| along(&(0..call.inputs.len()).map(|i| (i, axis)).collect::<Vec<_>>());
    let axes: Vec<AxisOf> = (0..rank.saturating_sub(1)).map(own).chain([AxisOf::Mixed]).collect();
    AxisMap { outputs: vec![axes; outputs], summed: Vec::new() }
}

/// How the axes run.
pub fn axes(call: &Call) -> AxisMap {
    rows(call, 2)
}

/// Five operations an element for each doubling of the length.
pub fn weight(call: &Call, length: &Dim, made: &Types) -> Cost {
    let n = length.most().unwrap_or(1).max(2) as u64;
    let rows = made.iter().chain(call.inputs).map(elements).max().unwrap_or(0);
    let flops = rows.saturating_mul(5 * u64::from(n.ilog2() + 1));
    cost(flops, made.iter().chain(call.inputs))
}

/// What a transform costs.
pub fn weigh(call: &Call) -> Cost {
    let length = call.inputs.first().and_then(|ty| ty.shape.last().cloned());
    weight(call, &length.unwrap_or(Dim::Known(1)), &infer(call).unwrap_or_default())
}

/// A gradient that is there, or zeros of that type.
pub fn given(e: &mut dyn Emit, call: &GradCall, i: usize, of: &TensorType) -> Result<Value> {
    match call.grads.get(i) {
        Some(Some(g)) => Ok(g.clone()),
        _ => emit::zeros(e, of),
    }
}

/// The other way, times or over the length: what rows are multiplied by is a symmetric matrix, and the other way its
/// conjugate over the length.
pub fn grad(
    e: &mut dyn Emit,
    call: &GradCall,
    other: &'static OpDef,
    over: bool,
) -> Result<Vec<Option<Cotangent>>> {
    let ty = &call.inputs[0];
    let inputs = vec![given(e, call, 0, ty)?, given(e, call, 1, ty)?];
    let made = e.emit(other, inputs, Attrs::None, Vec::new(), false)?;
    let count = emit::size(e, &ty.shape[ty.shape.rank() - 1], ty.dtype)?;
    let scaled = |e: &mut dyn Emit, x: Value| match over {
        true => emit::div(e, x, count.clone()),
        false => emit::mul(e, x, count.clone()),
    };
    made.into_iter().map(|x| Ok(emit::dense(scaled(e, x)?))).collect()
}

/// Types to test with.
pub fn samples() -> Vec<Sample> {
    let of = |dtype, sizes: &[usize]| {
        let ty = TensorType::new(dtype, sizes);
        Sample::of(&[ty.clone(), ty], Attrs::None)
    };
    vec![
        of(DType::F64, &[2, 8]),
        of(DType::F64, &[3, 1]),
        of(DType::F64, &[2, 2]),
        of(DType::F64, &[15]),
        of(DType::F64, &[2, 2, 7]),
        of(DType::F64, &[17]),
        of(DType::F64, &[1001]),
        of(DType::F32, &[1024]),
        of(DType::F32, &[5, 360]),
        of(DType::F32, &[3, 74]),
        of(DType::F32, &[70, 12]),
        of(DType::F32, &[0, 6]),
    ]
}
