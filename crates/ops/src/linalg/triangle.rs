//! One side of a diagonal of matrices, zeros on the other: what `tril` and `triu` share.
//!
//! One elementwise pass over the matrix and two counters, so it works in place, fuses, and leaves a recipe a
//! recipe: a mask of ones takes no bytes.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Cost, Sample, Types};
use tonnage_core::tile::Prim;
use tonnage_core::{DType, Dim, Scalar, Shape, TensorType};

use super::matrix::matrices;
use crate::shape::range::RANGE;
use crate::tile::{Ending, pass};
use crate::{emit, rules};

fn diagonal(call: &Call) -> Result<i64> {
    match *call.attrs {
        Attrs::Diagonal(diagonal) => Ok(diagonal),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

pub(super) fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    diagonal(call)?;
    matrices(call.op, &call.inputs[0])?;
    Ok(smallvec![call.inputs[0].clone()])
}

pub(super) fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 3)
}

/// The matrix where `keeps(column, row + diagonal)`, zeros elsewhere.
pub(super) fn expand(
    e: &mut dyn Emit,
    call: &Call,
    mut inputs: Vec<Value>,
    keeps: Prim,
) -> Result<Vec<Value>> {
    let (diagonal, x) = (diagonal(call)?, inputs.swap_remove(0));
    let dtype = x.ty().dtype;
    let rank = x.ty().shape.rank();
    let lengths = [x.ty().shape[rank - 2].clone(), x.ty().shape[rank - 1].clone()];
    let counts = count_in(&lengths);
    let [rows, columns] = lengths;
    let most = if counts == DType::I32 { I32_LIMIT } else { 1 << 62 };
    let first = diagonal.clamp(-most, most);
    let rows = counting(e, rows, first, counts, true)?;
    let columns = counting(e, columns, 0, counts, false)?;
    let made = pass(e, [x, rows, columns], Ending::Store(dtype), |p, [x, row, column]| {
        let kept = p.two(keeps, column, row);
        p.or_zero(kept, x)
    })?;
    Ok(vec![made])
}

/// Lengths up to this are counted in 32 bits, which is half the work; a diagonal as far out is none.
const I32_LIMIT: i64 = 1 << 30;

fn count_in(lengths: &[Dim]) -> DType {
    let fits_i32 = |len: &Dim| len.known().is_some_and(|len| len < I32_LIMIT as usize);
    if lengths.iter().all(fits_i32) { DType::I32 } else { DType::I64 }
}

/// Numbers along an axis: down the rows, or along them.
fn counting(e: &mut dyn Emit, len: Dim, first: i64, dtype: DType, down: bool) -> Result<Value> {
    let (start, step) = (Scalar::Int(first.into()), Scalar::Int(1));
    let attrs = Attrs::Range { start, step, len: len.clone(), dtype };
    let counted = e.apply(&RANGE, Vec::new(), attrs)?;
    match down {
        true => {
            let column: Shape = [len, 1.into()].into_iter().collect();
            emit::reshape(e, counted, &column)
        }
        false => Ok(counted),
    }
}

pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize], diagonal| {
        Sample::of(&[TensorType::new(dtype, x)], Attrs::Diagonal(diagonal))
    };
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, &[3, 3], 0)).collect();
    all.extend([
        of(DType::F64, &[2, 3, 4, 2], 0),
        of(DType::F64, &[2, 5], 1),
        of(DType::F32, &[3, 1025], -1),
        of(DType::F32, &[1023, 3], 2),
        of(DType::F32, &[130, 12, 12], 0),
        of(DType::F32, &[3, 3], 9),
        of(DType::F32, &[3, 3], -9),
        of(DType::F32, &[3, 3], i64::MAX),
        of(DType::F32, &[3, 3], i64::MIN),
        of(DType::F32, &[0, 3], 0),
        of(DType::F32, &[2, 3, 0], 0),
    ]);
    all
}
