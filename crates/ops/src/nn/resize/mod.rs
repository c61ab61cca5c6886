//! Images of another size: the nearest pixel, or straight lines between pixels, along each of one to three spatial axes.
//!
//! Pixels are areas with their values in the middle, so that an image and its enlargement cover the same.

pub mod forward;
pub mod grad;

use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::window::{Between, Resize};
use tonnage_core::{Attrs, DType, Dim, Shape, Sizes, TensorType};

use crate::infer::{bad_attrs, dtype, joined};

/// What the attributes say.
pub fn resize<'a>(op: &'static str, attrs: &'a Attrs) -> Result<&'a Resize> {
    match attrs {
        Attrs::Resize(resize) => Ok(resize),
        _ => Err(bad_attrs(op, attrs, "the lengths of an image")),
    }
}

/// An image with other spatial lengths; refuses what is none, and lengths of 0 of what there is something of.
fn with_lengths(op: &'static str, image: &TensorType, lengths: &Shape) -> Result<TensorType> {
    dtype(op, image, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
    let rank = image.shape.rank();
    if !(3..=5).contains(&rank) || lengths.rank() != rank - 2 {
        let expected = format!("{} ([batch, ..., channels])", lengths.rank() + 2);
        return Err(ErrorKind::RankMismatch { op, shape: image.shape.clone(), expected }.into());
    }
    let nothing = |dim: &Dim| dim.is(0);
    if lengths.iter().chain(&image.shape[1..rank - 1]).any(nothing) {
        let what = format!("from {} to {lengths}", image.shape);
        return Err(bad_argument(op, what, "use images that have pixels"));
    }
    let shape = joined(&[&image.shape[..1], lengths, &image.shape[rank - 1..]]);
    Ok(TensorType { dtype: image.dtype, shape })
}

/// Images to test with, and what they become.
fn cases() -> Vec<(TensorType, Resize)> {
    use Between::*;
    use DType::*;
    let of = |dtype, image: &[usize], to: &[usize], between| {
        let to = Shape::from(to);
        (TensorType::new(dtype, image), Resize { to, between, image: Shape::scalar() })
    };
    vec![
        of(F64, &[2, 3, 4, 2], &[5, 7], Linear),
        of(F64, &[1, 6, 5, 3], &[2, 3], Linear),
        of(F64, &[1, 3, 4, 2], &[5, 7], Nearest),
        of(F32, &[2, 7, 6, 2], &[3, 2], Nearest),
        of(F32, &[1, 3, 4, 70], &[6, 4], LinearCorners),
        of(F32, &[1, 4, 1, 3], &[1, 3], LinearCorners),
        of(F16, &[1, 2, 3, 2], &[4, 6], Linear),
        of(BF16, &[1, 2, 3, 2], &[4, 6], Nearest),
        of(F32, &[2, 5, 3], &[9], Linear),
        of(F32, &[1, 2, 3, 2, 2], &[3, 2, 4], Linear),
        of(F32, &[0, 2, 3, 2], &[3, 2], Linear),
    ]
}

/// The lengths of a type that has no open ones.
fn sizes(ty: &TensorType) -> Sizes {
    ty.shape.sizes().unwrap_or_default()
}
