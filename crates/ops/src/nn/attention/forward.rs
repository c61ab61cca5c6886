//! `scaled_dot_product_attention`: means of values, weighed by how queries and keys agree.
//!
//! Weights are e to the power of scores, divided by their sum. A query that sees no key gets zeros. NaN in a score that
//! is seen makes its query's result NaN.
//!
//! The gradient recomputes the weights from the logarithm of their sum. Beside a large score, such as one that a mask adds
//! -1e9 to, that logarithm has lost its digits, so what its rounding lost is a result as well.

use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Call, Emit, OpDef, TensorType};

use super::grad::ATTENTION_GRAD;
use super::{attrs, check, check_mask, per_query, quadratic, runs, types_of};
use crate::{OpId, emit, rules};

/// The op's name, for errors.
pub const NAME: &str = "scaled_dot_product_attention";

/// `(q [b, h, t, d], k [b, g, s, d], v [b, g, s, e], mask?) -> (means [b, h, t, e], log-sum-exp of scores [b, h, t], what
/// its rounding lost [b, h, t])`; the rest as `Attrs::Attention`.
pub static ATTENTION: OpDef = OpDef {
    id: OpId::Attention as u16,
    name: NAME,
    doc: "Means of values weighed by how queries and keys agree, and the logarithms of their sums in two parts.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[
        Save::Inputs.always(),
        Save::Output(0).always(),
        Save::Output(1).always(),
        Save::Output(2).always(),
    ]]),
    remat: Remat::Costly,
    cost: |call| super::costs(call, 2, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |case: super::Case| super::sample(&case.types(), case.mask(), case.attrs());
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let (_, _, masked) = attrs(NAME, call.attrs)?;
    rules::infer::count(call, 3 + masked as usize)?;
    let (q, k, v) = (&call.inputs[0], &call.inputs[1], &call.inputs[2]);
    check(NAME, q, k, v)?;
    if masked {
        check_mask(NAME, q, k, &call.inputs[3])?;
    }
    let made = [&q.shape[..3], &v.shape[3..]].concat();
    let means = TensorType { dtype: q.dtype, shape: made.into_iter().collect() };
    types_of([means, per_query(q), per_query(q)])
}

fn axes(call: &Call) -> AxisMap {
    let of = runs(call, &[0], &[1, 2]);
    let along = [of.batch, of.heads, of.queries];
    let values = AxisOf::Along(smallvec::smallvec![(2, 3)]);
    let means = along.iter().cloned().chain([values]).collect();
    super::axes(vec![means, along.to_vec(), along.to_vec()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, _, masked) = attrs(NAME, call.attrs)?;
    let [q, k, v] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (lse, lost) = (call.output(1)?, call.output(2)?);
    let means = &call.outputs[0];
    let g = match &call.grads[0] {
        Some(g) => g.clone(),
        None => emit::zeros(e, means)?,
    };
    // What each query's result has to do with all of its weights.
    let dtype = lse.ty().dtype;
    let wide = [emit::cast(e, g.clone(), dtype)?, emit::cast(e, call.output(0)?, dtype)?];
    let [g_wide, means] = wide;
    let product = emit::mul(e, g_wide, means)?;
    let mut shared = emit::sum(e, product, smallvec::smallvec![3], false)?;
    if let Some(g) = &call.grads[1] {
        shared = emit::sub(e, shared, g.clone())?;
    }
    // What rounding lost has no slope: nothing comes back from it.
    let mut inputs = vec![q, k, v, lse, lost, shared, g];
    if masked {
        inputs.push(call.input(3)?);
    }
    let mut grads = vec![None; call.inputs.len()];
    if masked && call.needs[3] && call.inputs[3].dtype.is_float() {
        let made = quadratic::mask_grad(e, &inputs, call.attrs)?;
        grads[3] = emit::dense(emit::sum_to(e, made, &call.inputs[3])?);
    }
    if call.needs[..3].contains(&true) {
        let made = e.emit(&ATTENTION_GRAD, inputs, call.attrs.clone(), Vec::new(), false)?;
        for (i, made) in made.into_iter().enumerate().filter(|(i, _)| call.needs[*i]) {
            grads[i] = emit::dense(made);
        }
    }
    Ok(grads)
}
