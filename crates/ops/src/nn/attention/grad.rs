//! The gradient of attention for queries, keys and values, from two numbers a query: the logarithm of the sum of its
//! weights and what its rounding lost, from which they are recomputed.

use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Call, Emit, OpDef};

use super::{attrs, check, check_mask, per_query, quadratic, runs, types_of};
use crate::infer::{same_dtype, shape};
use crate::{OpId, rules};

/// The op's name, for errors.
pub const NAME: &str = "attention_grad";

/// `(q, k, v, lse, lost, shared, g, mask?) -> (dq, dk, dv)`: `lse` and `lost` as attention gives them, `g` the gradient of its means, and
/// `shared` for each query the sum of its means times `g`, less the gradient of `lse`.
pub static ATTENTION_GRAD: OpDef = OpDef {
    id: OpId::AttentionGrad as u16,
    name: NAME,
    doc: "Gradients of attention for queries, keys and values.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| super::costs(call, 5, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || {
        let sample = |case: super::Case| {
            let [q, k, v] = case.types();
            let means = q.shape[..3].iter().chain(&v.shape[3..]).cloned().collect();
            let g = tonnage_core::TensorType { dtype: q.dtype, shape: means };
            let [lse, lost, shared] = [(); 3].map(|()| per_query(&q));
            super::sample(&[q, k, v, lse, lost, shared, g], case.mask(), case.attrs())
        };
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let (_, _, masked) = attrs(NAME, call.attrs)?;
    rules::infer::count(call, 7 + masked as usize)?;
    let [q, k, v, lse, lost, shared, g] = &call.inputs[..7] else { return types_of([]) };
    check(NAME, q, k, v)?;
    if masked {
        check_mask(NAME, q, k, &call.inputs[7])?;
    }
    let one = per_query(q);
    for ty in [lse, lost, shared] {
        same_dtype(NAME, ty, &one)?;
        shape(NAME, &ty.shape, &one.shape, "pass one number for each query")?;
    }
    same_dtype(NAME, q, g)?;
    let means = q.shape[..3].iter().chain(&v.shape[3..]).cloned().collect();
    shape(NAME, &g.shape, &means, "pass gradients of the means")?;
    types_of([q.clone(), k.clone(), v.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let of = runs(call, &[0, 3, 4, 5, 6], &[1, 2]);
    let rest = |queries: AxisOf| vec![of.batch.clone(), of.heads.clone(), queries, AxisOf::Mixed];
    super::axes(vec![rest(of.queries.clone()), rest(AxisOf::Mixed), rest(AxisOf::Mixed)])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    quadratic::second(e, call)
}
