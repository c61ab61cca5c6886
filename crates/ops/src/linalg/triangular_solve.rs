//! `triangular_solve`: X with A X = B, or Aᵀ X = B, for lower triangular A; for each pair of a batch.
//!
//! Only the lower triangle of A is read. An upper triangular U needs no case of its own: it is the
//! transpose of a lower one, so U X = B is solved by passing U's transposed view and asking for the
//! transpose. A diagonal element of 0 is an error, found before anything is written.

use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Values};
use tonnage_core::{Attrs, DType, Emit, OpDef, TensorType};

use super::matmul::MATMUL;
use super::system::{self, side, transposed};
use super::tril::TRIL;
use crate::OpId;
use crate::infer::{cost, elements};
use crate::math::neg::NEG;

/// `(a [.., n, n], b [.., n, m]) -> x [.., n, m]`; whether `a` is transposed as [`Attrs::Matmul`], whose
/// other half must be false.
pub static TRIANGULAR_SOLVE: OpDef = OpDef {
    id: OpId::TriangularSolve as u16,
    name: "triangular_solve",
    doc: "The solution of a lower triangular system, or of its transpose.",
    infer: system::infer,
    axes: system::axes,
    mem: Mem::Reuse(&[1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.get(1).map_or(0, elements).saturating_mul(n);
        cost(flops, call.inputs.iter().chain(call.inputs.get(1)))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

/// The right side's gradient H solves the system of the other transpose; the left side's is -H Xᵀ, or
/// -X Hᵀ where it was transposed, of which the op reads the lower triangle alone.
fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let transposed = transposed("triangular_solve", call.attrs)?;
    let (a, x) = (call.input(0)?, call.output(0)?);
    let of_b = emit.apply(&TRIANGULAR_SOLVE, vec![a, call.grad()?], side(!transposed))?;
    let mut grads = vec![None, None];
    if call.needs[0] {
        let (left, right) = if transposed { (x, of_b.clone()) } else { (of_b.clone(), x) };
        let outer = Attrs::Matmul { transpose_a: false, transpose_b: true };
        let outer = emit.apply(&MATMUL, vec![left, right], outer)?;
        let below = emit.apply(&TRIL, vec![outer], Attrs::Diagonal(0))?;
        grads[0] = Some(Cotangent::Dense(emit.apply(&NEG, vec![below], Attrs::None)?));
    }
    grads[1] = Some(Cotangent::Dense(of_b));
    Ok(grads)
}

fn samples() -> Vec<Sample> {
    let of = |dtype, batch: &[usize], n: usize, m: usize, transpose_a| {
        let a = TensorType::new(dtype, [batch, &[n, n]].concat());
        let b = TensorType::new(dtype, [batch, &[n, m]].concat());
        let attrs = side(transpose_a);
        // Their diagonals are far from 0, so the systems are well conditioned.
        Sample::of(&[a, b], attrs).with(0, Values::PositiveDefinite)
    };
    vec![
        of(DType::F64, &[], 3, 2, false),
        of(DType::F64, &[], 3, 2, true),
        of(DType::F64, &[2, 2], 4, 1, false),
        of(DType::F64, &[3], 4, 4, true),
        of(DType::F64, &[2], 32, 21, false),
        of(DType::F64, &[], 17, 6, true),
        of(DType::F64, &[], 100, 3, false),
        of(DType::F64, &[], 97, 5, true),
        of(DType::F32, &[], 48, 1025, false),
        of(DType::F32, &[], 200, 33, true),
        of(DType::F32, &[2], 130, 1, false),
        of(DType::F32, &[1023], 2, 1, true),
        of(DType::F32, &[], 0, 3, false),
        of(DType::F32, &[], 3, 0, true),
        of(DType::F32, &[0], 3, 2, false),
    ]
}
