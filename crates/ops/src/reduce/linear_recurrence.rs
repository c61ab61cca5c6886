//! `linear_recurrence`: y_i = b_i + a_i * y_(i-1) along an axis, from either end.
//!
//! Exclusive means that a factor stands where the value that it multiplies stands: y_i = b_i + a_(i-1) * y_(i-1).
//! Each form is the transpose of the other, run backwards. It is the gradient of `cumprod`, and what gated linear
//! models are made of.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{DType, OpDef, TensorType};

use super::scan::{self, ScanAttrs};
use crate::{OpId, emit, rules};

/// `(a, b) -> y`
pub static LINEAR_RECURRENCE: OpDef = OpDef {
    id: OpId::LinearRecurrence as u16,
    name: "linear_recurrence",
    doc: "y[i] = b[i] + a[i] * y[i - 1] along an axis, from either end.",
    infer,
    axes,
    mem: Mem::Reuse(&[1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).needed_by(0)]]),
    remat: Remat::Costly,
    cost: |call| rules::cost::elementwise(call, &call.inputs[..1], 2),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    let (a, b) = (&call.inputs[0], &call.inputs[1]);
    rules::infer::float(call, a)?;
    if a.dtype != b.dtype {
        let (op, help) = (call.op, "cast one of them".into());
        return Err(ErrorKind::DTypeMismatch { op, left: a.dtype, right: b.dtype, help }.into());
    }
    if a.shape != b.shape {
        let (left, right) = (a.shape.clone(), b.shape.clone());
        let help = "give each element a factor of its own".into();
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    scan::scan(call)?;
    Ok(smallvec![b.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let Ok(ScanAttrs { axis, .. }) = scan::scan(call) else { return AxisMap::default() };
    let along = |i| match i == axis {
        true => AxisOf::Mixed,
        false => AxisOf::Along(smallvec![(0, i), (1, i)]),
    };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

/// b's gradient s runs back with the same factors; a factor's is s times the value that it multiplied.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let ScanAttrs { axis, exclusive, reverse } = scan::scan(&call.call())?;
    let back = Attrs::Scan { axis, exclusive: !exclusive, reverse: !reverse };
    let s = e.apply(&LINEAR_RECURRENCE, vec![call.input(0)?, call.grad()?], back)?;
    let of_a = match call.needs[0] {
        true => {
            let y = call.output(0)?;
            // The value before stands one place off; where the factor stands with it, s does.
            let (y, s) = match exclusive {
                false => (emit::shift(e, y, axis, !reverse)?, s.clone()),
                true => (y, emit::shift(e, s.clone(), axis, reverse)?),
            };
            emit::dense(emit::mul(e, y, s)?)
        }
        false => None,
    };
    Ok(vec![of_a, if call.needs[1] { emit::dense(s) } else { None }])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, exclusive, reverse| {
        let ty = TensorType::new(dtype, shape);
        let attrs = Attrs::Scan { axis, exclusive, reverse };
        Sample::of(&[ty.clone(), ty], attrs).with(0, Values::Between(-0.9, 0.9))
    };
    let mut all = Vec::new();
    for (exclusive, reverse) in [(false, false), (false, true), (true, false), (true, true)] {
        all.push(of(DType::F64, &[7], 0, exclusive, reverse));
        all.push(of(DType::F32, &[3, 4, 5], 1, exclusive, reverse));
    }
    all.extend([
        of(DType::F16, &[2, 5], 1, false, false),
        of(DType::BF16, &[2, 5], 0, false, false),
        of(DType::F32, &[1], 0, false, false),
        of(DType::F32, &[0], 0, false, false),
        of(DType::F32, &[3, 0], 0, true, false),
        of(DType::F32, &[6, 200], 0, false, true),
        of(DType::F32, &[2, 1025], 1, false, false),
    ]);
    all
}
