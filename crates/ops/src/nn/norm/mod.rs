//! Normalization. `layer_norm` brings each row to a mean of 0 and a deviation of 1 (`rms_norm`: to a mean square of 1);
//! `group_norm` each group of channels of each image, which is `batch_norm` where a batch is one image.
//!
//! A row is read into cache once, so that its statistics are recomputed in the backward pass rather than saved. Those of an
//! image are too far from its end for that, and are saved: two numbers a group.
//!
//! Variances are those of the numbers at hand (divided by their count).

mod formula;
pub mod group;
pub mod group_grad;
pub mod layer;
pub mod layer_grad;

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Attrs, DType, Scalar, Shape, TensorType};

use crate::infer::{bad_attrs, dtype, same_dtype, shape};

/// What a variance gets added, whether the mean is taken away, and how many groups there are.
#[derive(Debug, Clone, Copy)]
pub struct NormSpec {
    /// Added to the variance.
    pub epsilon: f64,
    /// Whether the mean is subtracted.
    pub centered: bool,
    /// Groups of channels.
    pub groups: usize,
}

/// What the attributes say.
pub fn how(op: &'static str, attrs: &Attrs) -> Result<NormSpec> {
    let Attrs::Normalize { epsilon, centered, groups } = attrs else {
        return Err(bad_attrs(op, attrs, "those of a normalization"));
    };
    let epsilon = epsilon.to_f64();
    if !(epsilon >= 0.0 && epsilon.is_finite()) {
        let what = format!("an epsilon of {epsilon}");
        return Err(bad_argument(op, what, "use a small number of at least 0"));
    }
    Ok(NormSpec { epsilon, centered: *centered, groups: *groups })
}

fn attrs(epsilon: f64, centered: bool, groups: usize) -> Attrs {
    Attrs::Normalize { epsilon: Scalar::Float(epsilon), centered, groups }
}

/// What statistics are computed and held in.
pub fn computed(dtype: DType) -> DType {
    if dtype == DType::F64 { DType::F64 } else { DType::F32 }
}

/// Refuses what is no float with at least one axis, or a scale or bias that has not one number for each of its last.
fn check(op: &'static str, x: &TensorType, each: &[&TensorType]) -> Result<()> {
    dtype(op, x, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
    crate::infer::rank_at_least(op, x, 1, "the last is normalized or holds channels")?;
    let last: Shape = x.shape[x.shape.rank() - 1..].iter().cloned().collect();
    for ty in each {
        same_dtype(op, x, ty)?;
        shape(op, &ty.shape, &last, "use one number for each of the last axis")?;
    }
    Ok(())
}

/// Images and their groups, epsilon and whether they are centered, to test rows with.
fn rows_to_test() -> Vec<(TensorType, Attrs)> {
    use DType::*;
    let of = |dtype, shape: &[usize], centered| {
        (TensorType::new(dtype, shape), attrs(0.01, centered, 1))
    };
    vec![
        of(F64, &[2, 3, 5], true),
        of(F64, &[4, 6], false),
        of(F32, &[3, 70], true),
        of(F32, &[7], false),
        of(F16, &[2, 9], true),
        of(BF16, &[2, 9], false),
        of(F32, &[40, 1025], true),
        of(F32, &[2, 1], false),
        of(F32, &[0, 4], true),
        of(F32, &[3, 0], true),
    ]
}
