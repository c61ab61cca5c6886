//! `triangular_solve`: X with A X = B, or Aᵀ X = B, for lower triangular A; for each pair of a batch.
//!
//! Only the lower triangle of A is read. An upper triangular U needs no case of its own: it is the
//! transpose of a lower one, so U X = B is solved by passing U's transposed view and asking for the
//! transpose. A diagonal element of 0 is an error, found before anything is written.

use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::{Attrs, Call, DType, OpDef, TensorType};

use super::factor::Triangle;
use super::matrix::{dims, each_matrix, matrices, square};
use crate::infer::{along, bad_attrs, cost, elements, inputs, joined, real, same_dtype, shape};
use crate::number::{Real, with_real};
use crate::strided::{self, Positions};

/// `(a [.., n, n], b [.., n, m]) -> x [.., n, m]`; whether `a` is transposed as [`Attrs::Matmul`], whose
/// other half must be false.
pub static TRIANGULAR_SOLVE: OpDef = OpDef {
    name: "triangular_solve",
    doc: "The solution of a lower triangular system, or of its transpose.",
    infer,
    axes,
    mem: Mem::Reuse(&[1]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(0).always(), Keep::Output(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.get(1).map_or(0, elements).saturating_mul(n);
        cost(flops, call.inputs.iter().chain(call.inputs.get(1)))
    },
    grad: Grad::Stop("its rule needs matmul, which is not in the table yet"),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples,
};

fn transposed(attrs: &Attrs) -> Result<bool> {
    match attrs {
        Attrs::Matmul { transpose_a, transpose_b: false } => Ok(*transpose_a),
        other => Err(bad_attrs("triangular_solve", other, "whether the left side is transposed")),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let op = "triangular_solve";
    let [a, b] = inputs(op, call)?;
    transposed(call.attrs)?;
    real(op, a)?;
    same_dtype(op, a, b)?;
    square(op, a)?;
    matrices(op, b)?;
    let columns = &b.shape[b.shape.rank() - 1..];
    let needed = joined(&[&a.shape[..a.shape.rank() - 1], columns]);
    shape(op, &b.shape, &needed, "the right side must have the left side's batch and rows")?;
    Ok(smallvec![b.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[1].shape.rank();
    let batch = (0..rank.saturating_sub(2)).map(|a| along(&[(0, a), (1, a)]));
    let axes = batch.chain([AxisOf::Mixed, along(&[(1, rank.saturating_sub(1))])]).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_real!("triangular_solve", k.outputs[0].dtype, T => solve::<T>(k))
}

fn solve<T: Real>(k: &mut Kernel) -> Result<()> {
    let transposed = transposed(k.attrs)?;
    let (a, workers): (&In, _) = (&k.inputs[0], k.workers);
    let (batch, n, width) = dims("triangular_solve", &k.outputs[0].sizes)?;
    let rank = a.layout.sizes.len();
    let starts = strided::axes(&a.layout, 0..rank - 2);
    let starts = Positions::of(&starts);
    let steps = [a.layout.strides[rank - 2], a.layout.strides[rank - 1]];
    let triangle = |number| {
        let (data, start) = (a.slice::<T>(), starts.at(number));
        Triangle { data, start, steps, n, transposed }
    };
    for matrix in 0..batch {
        if let Some(column) = triangle(matrix).singular() {
            let help = "its diagonal has a 0; check what made it".into();
            let (op, needed) = ("triangular_solve", "invertible");
            return Err(ErrorKind::Singular { op, matrix, column, needed, help }.into());
        }
    }
    each_matrix::<T>("triangular_solve", k, 1, &|number, x| {
        triangle(number).solve(x, width, workers);
    })
}

fn samples() -> Vec<Sample> {
    let of = |dtype, batch: &[usize], n: usize, m: usize, transpose_a| {
        let a = TensorType::new(dtype, [batch, &[n, n]].concat());
        let b = TensorType::new(dtype, [batch, &[n, m]].concat());
        let attrs = Attrs::Matmul { transpose_a, transpose_b: false };
        // Their diagonals are far from 0, so the systems are well conditioned.
        Sample::of(&[a, b], attrs).with(0, Values::PositiveDefinite)
    };
    vec![
        of(DType::F64, &[], 3, 2, false),
        of(DType::F64, &[], 3, 2, true),
        of(DType::F64, &[2, 2], 4, 1, false),
        of(DType::F64, &[3], 4, 4, true),
        of(DType::F64, &[], 100, 3, false),
        of(DType::F64, &[], 97, 5, true),
        of(DType::F32, &[], 48, 1025, false),
        of(DType::F32, &[1023], 2, 1, true),
        of(DType::F32, &[], 0, 3, false),
        of(DType::F32, &[], 3, 0, true),
        of(DType::F32, &[0], 3, 2, false),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, check_samples, run};

    fn reference(inputs: &[Array], attrs: &Attrs) -> Vec<Array> {
        let transposed = transposed(attrs).unwrap();
        let sizes = inputs[1].sizes();
        let (n, m) = (sizes[sizes.len() - 2], sizes[sizes.len() - 1]);
        let mut x = inputs[1].data.clone();
        for batch in 0..sizes[..sizes.len() - 2].iter().product() {
            let (a, x) = (&inputs[0].data[batch * n * n..], &mut x[batch * n * m..]);
            let order: Vec<usize> =
                if transposed { (0..n).rev().collect() } else { (0..n).collect() };
            for (done, &i) in order.iter().enumerate() {
                for c in 0..m {
                    let known = order[..done].iter().map(|&j| {
                        x[j * m + c] * if transposed { a[j * n + i] } else { a[i * n + j] }
                    });
                    x[i * m + c] = (x[i * m + c] - known.sum::<f64>()) / a[i * n + i];
                }
            }
        }
        vec![Array::new(inputs[1].ty.dtype, &sizes, x)]
    }

    #[test]
    fn solves_with_the_lower_triangle_and_with_its_transpose() {
        check_samples(&TRIANGULAR_SOLVE, reference);
    }

    #[test]
    fn a_zero_on_the_diagonal_is_an_error_that_names_it() {
        let a = Array::new(DType::F32, &[2, 2, 2], vec![1.0, 0.0, 0.0, 1.0, 1.0, 5.0, 5.0, 0.0]);
        let b = Array::new(DType::F32, &[2, 2, 1], vec![1.0; 4]);
        let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
        let error = run(&TRIANGULAR_SOLVE, &[a, b], &attrs).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Singular { matrix: 1, column: 1, .. }));
    }

    #[test]
    fn sides_that_do_not_fit_are_refused() {
        let kind = |a: &[usize], b: &[usize], transpose_b| {
            let types = [TensorType::new(DType::F32, a), TensorType::new(DType::F32, b)];
            let attrs = Attrs::Matmul { transpose_a: false, transpose_b };
            infer(&Call::new(&types, &attrs)).unwrap_err().kind().clone()
        };
        assert!(matches!(kind(&[3, 3], &[2, 1], false), ErrorKind::ShapeMismatch { .. }));
        assert!(matches!(kind(&[3, 3], &[3], false), ErrorKind::RankMismatch { .. }));
        assert!(matches!(kind(&[3, 2], &[3, 1], false), ErrorKind::BadArgument { .. }));
        assert!(matches!(kind(&[3, 3], &[3, 1], true), ErrorKind::BadArgument { .. }));
    }
}
