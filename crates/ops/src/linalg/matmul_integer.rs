//! `matmul_integer`: the product of matrices of 8-bit integers, of either sign each, with sums of 32 bits.
//!
//! Sums wrap where they leave 32 bits, so that every order of additions gives the same bits: no instruction, no number of threads and no cut shows in the result.
//! A zero point is subtracted outside: `(a - z) b` is `a b` less `z` times the sums of the columns of `b`.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, TensorType};

use super::matmul::{axes, made, sizes};
use crate::{OpId, rules};

/// The product of matrices of 8-bit integers.
pub static MATMUL_INTEGER: OpDef = OpDef {
    id: OpId::MatmulInteger as u16,
    name: "matmul_integer",
    doc: "The product of matrices of 8-bit integers, of either sign each, with sums of 32 bits.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost,
    grad: Grad::Stop("integers have no slope"),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    for ty in call.inputs {
        if !matches!(ty.dtype, DType::U8 | DType::I8) {
            let (op, dtype, supported) = (call.op, ty.dtype, "i8 or u8");
            return Err(ErrorKind::DTypeUnsupported { op, dtype, supported }.into());
        }
    }
    Ok(smallvec![TensorType { dtype: DType::I32, shape: made(call)? }])
}

/// Four products of bytes cost what one of floats does.
fn cost(call: &Call) -> Cost {
    let Some((size, _)) = sizes(call) else { return Cost::default() };
    let all = [size.batch, size.rows, size.cols, size.k];
    let flops = all.into_iter().fold(1u64, |n, x| n.saturating_mul(x as u64)) / 2;
    Cost::local(flops, rules::cost::moved(call, &infer(call).unwrap_or_default()))
}

fn samples() -> Vec<Sample> {
    use DType::{I8, U8};
    let of =
        |(left, a): (DType, &[usize]), (right, b): (DType, &[usize]), transpose_a, transpose_b| {
            let types = [TensorType::new(left, a), TensorType::new(right, b)];
            Sample::of(&types, Attrs::Matmul { transpose_a, transpose_b })
        };
    let mut all = Vec::new();
    for left in [U8, I8] {
        for right in [U8, I8] {
            all.push(of((left, &[3, 4]), (right, &[4, 2]), false, false));
            all.push(of((left, &[13, 70]), (right, &[70, 35]), false, false));
        }
    }
    all.extend([
        of((U8, &[4, 3]), (I8, &[4, 2]), true, false),
        of((U8, &[3, 4]), (I8, &[2, 4]), false, true),
        of((I8, &[4, 3]), (I8, &[2, 4]), true, true),
        of((U8, &[5, 3, 4]), (I8, &[4, 2]), false, false),
        of((I8, &[3, 4]), (U8, &[5, 4, 2]), false, false),
        of((U8, &[2, 1, 3, 4]), (U8, &[5, 4, 2]), false, false),
        of((U8, &[0, 4]), (I8, &[4, 2]), false, false),
        of((U8, &[3, 0]), (I8, &[0, 2]), false, false),
        of((U8, &[1, 1100]), (I8, &[1100, 40]), false, false),
        of((I8, &[2, 9]), (U8, &[9, 300]), false, false),
    ]);
    all
}
