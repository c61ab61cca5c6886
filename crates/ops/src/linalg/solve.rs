//! `solve`: X with A X = B, or Aᵀ X = B, for square A; for each pair of a batch.
//!
//! A matrix without an inverse is an error that names it.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Values};
use tonnage_core::{DType, OpDef, TensorType};

use super::matmul::MATMUL;
use super::system::{self, side, transposed};
use crate::infer::{cost, elements};
use crate::{OpId, emit};

/// `(a [.., n, n], b [.., n, m]) -> x [.., n, m]`; whether `a` is transposed as [`Attrs::Matmul`], whose other half
/// must be false.
pub static SOLVE: OpDef = OpDef {
    id: OpId::Solve as u16,
    name: "solve",
    doc: "The solution of a system of linear equations, or of its transpose.",
    infer: system::infer,
    axes: system::axes,
    mem: Mem::Reuse(&[1]),
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).needed_by(0)]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let all: u64 = call.inputs.iter().map(elements).fold(0, u64::saturating_add);
        cost(all.saturating_mul(n), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

/// The right side's gradient H solves the system of the other transpose; the left side's is -H Xᵀ, or -X Hᵀ where it
/// was transposed.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let transposed = transposed("solve", call.attrs)?;
    let of_b = e.apply(&SOLVE, vec![call.input(0)?, call.grad()?], side(!transposed))?;
    let of_a = match call.needs[0] {
        true => {
            let x = call.output(0)?;
            let (left, right) = if transposed { (x, of_b.clone()) } else { (of_b.clone(), x) };
            let outer = Attrs::Matmul { transpose_a: false, transpose_b: true };
            let outer = e.apply(&MATMUL, vec![left, right], outer)?;
            emit::dense(emit::neg(e, outer)?)
        }
        false => None,
    };
    Ok(vec![of_a, if call.needs[1] { emit::dense(of_b) } else { None }])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, batch: &[usize], n: usize, m: usize, transpose_a| {
        let a = TensorType::new(dtype, [batch, &[n, n]].concat());
        let b = TensorType::new(dtype, [batch, &[n, m]].concat());
        let attrs = side(transpose_a);
        Sample::of(&[a, b], attrs).with(0, Values::Invertible)
    };
    vec![
        of(DType::F64, &[], 3, 2, false),
        of(DType::F64, &[], 3, 2, true),
        of(DType::F64, &[2, 2], 4, 1, false),
        of(DType::F64, &[3], 4, 4, true),
        of(DType::F64, &[2], 16, 7, true),
        of(DType::F64, &[], 60, 3, false),
        of(DType::F32, &[], 50, 70, true),
        of(DType::F32, &[], 150, 33, false),
        of(DType::F64, &[2], 70, 5, true),
        of(DType::F32, &[300], 2, 1, false),
        of(DType::F32, &[], 0, 3, false),
        of(DType::F32, &[], 3, 0, true),
        of(DType::F32, &[0], 3, 2, false),
    ]
}
