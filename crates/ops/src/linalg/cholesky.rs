//! `cholesky`: the lower triangular matrix L with L Lᵀ = A, for each matrix of a batch.
//!
//! A stands for (A + Aᵀ) / 2, so that the op is a function of all its input and its gradient is
//! symmetric; for a symmetric matrix that is the matrix itself. A matrix that is not positive definite
//! is an error that names it and the column where it showed.

use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types, Values, no_scratch,
};
use tonnage_core::{Attrs, Call, DType, OpDef, TensorType};

use super::matrix::{batch_axes, dims, each_matrix, square};
use super::{factor, symmetrize};
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::number::{Real, with_real};

/// `a [.., n, n] -> l [.., n, n]`
pub static CHOLESKY: OpDef = OpDef {
    name: "cholesky",
    doc: "The lower triangular factor of a symmetric positive definite matrix.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Output(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(n) / 3;
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Stop("its rule needs matmul, which is not in the table yet"),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("cholesky", call)?;
    no_attrs("cholesky", call)?;
    real("cholesky", a)?;
    square("cholesky", a)?;
    Ok(smallvec![a.clone()])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_real!("cholesky", k.outputs[0].dtype, T => factorize::<T>(k))
}

fn factorize<T: Real>(k: &mut Kernel) -> Result<()> {
    let (_, n, _) = dims("cholesky", &k.outputs[0].sizes)?;
    let workers = k.workers;
    // The first matrix that fails, and its column: the same at any number of threads.
    let failed = AtomicU64::new(u64::MAX);
    each_matrix::<T>("cholesky", k, 0, &|number, matrix| {
        symmetrize::lower(matrix, n);
        match factor::cholesky(matrix, n, workers) {
            Ok(()) => {
                let rows = matrix.chunks_mut(n).enumerate();
                rows.for_each(|(i, row)| row[i + 1..].fill(T::ZERO));
            }
            Err(column) => {
                failed.fetch_min((number * n + column) as u64, Ordering::Relaxed);
            }
        }
    })?;
    match failed.into_inner() {
        u64::MAX => Ok(()),
        at => Err(ErrorKind::Singular {
            op: "cholesky",
            matrix: at as usize / n,
            column: at as usize % n,
            needed: "positive definite",
            help: "add a small number to the diagonal, or check what made it".into(),
        }
        .into()),
    }
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize]| {
        Sample::of(&[TensorType::new(dtype, a)], Attrs::None).with(0, Values::PositiveDefinite)
    };
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 2, 5, 5]),
        of(DType::F64, &[49, 49]),
        of(DType::F64, &[1, 1]),
        of(DType::F64, &[130, 130]),
        of(DType::F32, &[3, 48, 48]),
        of(DType::F32, &[97, 97]),
        of(DType::F32, &[1025, 2, 2]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[0, 4, 4]),
        of(DType::F64, &[2, 0, 0]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Array, check_samples, run};

    fn reference(inputs: &[Array], _: &Attrs) -> Vec<Array> {
        let sizes = inputs[0].sizes();
        let n = sizes[sizes.len() - 1];
        let mut data = inputs[0].data.clone();
        for m in data.chunks_mut((n * n).max(1)) {
            for i in 0..n {
                for j in 0..n {
                    let sum: f64 = (0..j.min(i)).map(|k| m[i * n + k] * m[j * n + k]).sum();
                    m[i * n + j] = match j {
                        j if j < i => (m[i * n + j] - sum) / m[j * n + j],
                        j if j == i => (m[i * n + i] - sum).sqrt(),
                        _ => 0.0,
                    };
                }
            }
        }
        vec![Array::new(inputs[0].ty.dtype, &sizes, data)]
    }

    #[test]
    fn gives_the_lower_factor_of_every_matrix_of_a_batch() {
        check_samples(&CHOLESKY, reference);
    }

    #[test]
    fn a_matrix_stands_for_its_symmetric_part() {
        let skew = Array::new(DType::F64, &[2, 2], vec![4.0, 3.0, 1.0, 9.0]);
        let even = Array::new(DType::F64, &[2, 2], vec![4.0, 2.0, 2.0, 9.0]);
        let of = |a| run(&CHOLESKY, &[a], &Attrs::None).unwrap().remove(0).data;
        assert_eq!(of(skew), of(even));
    }

    #[test]
    fn a_matrix_that_is_not_positive_definite_is_named_with_its_column() {
        let id = [1.0, 0.0, 0.0, 1.0];
        for bad in [[1.0, 2.0, 2.0, 1.0], [1.0, 0.0, 0.0, f64::NAN], [1.0, 0.0, 0.0, 0.0]] {
            let a = Array::new(DType::F32, &[4, 2, 2], [id, id, bad, bad].concat());
            let error = run(&CHOLESKY, &[a], &Attrs::None).unwrap_err();
            let ErrorKind::Singular { matrix, column, .. } = error.kind() else {
                panic!("{error}")
            };
            assert_eq!((*matrix, *column), (2, 1));
        }
    }

    #[test]
    fn types_that_have_no_factor_are_refused() {
        let kind = |ty| infer(&Call::new(&[ty], &Attrs::None)).unwrap_err().kind().clone();
        let half = kind(TensorType::new(DType::F16, [2, 2]));
        assert!(matches!(half, ErrorKind::DTypeUnsupported { .. }));
        let vector = kind(TensorType::new(DType::F32, [2]));
        assert!(matches!(vector, ErrorKind::RankMismatch { .. }));
        let wide = kind(TensorType::new(DType::F32, [2, 3]));
        assert!(matches!(wide, ErrorKind::BadArgument { .. }));
    }
}
