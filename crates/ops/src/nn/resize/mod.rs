//! Images of another size: the nearest pixel, or straight lines between pixels, along each of one to three spatial axes.
//!
//! Pixels are areas with their values in the middle, so that an image and its enlargement cover the same. Along an axis each
//! pixel that is made lies between two of the image, found by one division: there is no table.

pub mod forward;
pub mod grad;

use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::window::{Between, Resize};
use tonnage_core::{Attrs, DType, Dim, Shape, Sizes, TensorType};

use crate::infer::{bad_attrs, dtype, joined};

fn resize<'a>(op: &'static str, attrs: &'a Attrs) -> Result<&'a Resize> {
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

/// One axis of the two images.
#[derive(Clone, Copy)]
struct ResizeAxis {
    between: Between,
    from: usize,
    to: usize,
}

impl ResizeAxis {
    /// The two pixels that a pixel of the made image lies between, and how far it is from the first to the second.
    #[inline(always)]
    fn place(&self, at: usize) -> (usize, usize, f64) {
        let ratio = self.from as f64 / self.to as f64;
        let exact = match self.between {
            Between::Nearest => {
                let near = ((at as f64 + 0.5) * ratio) as usize;
                return (near.min(self.from - 1), near.min(self.from - 1), 0.0);
            }
            Between::Linear => (at as f64 + 0.5) * ratio - 0.5,
            Between::LinearCorners if self.to == 1 => 0.0,
            Between::LinearCorners => at as f64 * (self.from - 1) as f64 / (self.to - 1) as f64,
        };
        let exact = exact.clamp(0.0, (self.from - 1) as f64);
        let low = exact as usize;
        (low, (low + 1).min(self.from - 1), exact - low as f64)
    }

    /// How much of a pixel of the image is in one of the made image.
    #[inline(always)]
    fn share(&self, at: usize, of: usize) -> f64 {
        let (low, high, share) = self.place(at);
        (if low == of { 1.0 - share } else { 0.0 }) + (if high == of { share } else { 0.0 })
    }

    /// Pixels of the made image that a pixel of the image may be in.
    fn reached(&self, of: usize) -> std::ops::Range<usize> {
        // Where the second of the two reaches it for the first time, and where the first has passed it.
        let first = |wanted: &dyn Fn(usize) -> bool| {
            let (mut low, mut high) = (0, self.to);
            while low < high {
                let middle = (low + high) / 2;
                if wanted(middle) { high = middle } else { low = middle + 1 }
            }
            low
        };
        first(&|at| self.place(at).1 >= of)..first(&|at| self.place(at).0 > of)
    }
}

/// The axes of images of these sizes, three of them.
fn axes(between: Between, image: &[usize], made: &[usize]) -> [ResizeAxis; 3] {
    let spatial = image.len() - 2;
    let mut axes = [ResizeAxis { between, from: 1, to: 1 }; 3];
    for (i, axis) in axes[3 - spatial..].iter_mut().enumerate() {
        *axis = ResizeAxis { between, from: image[i + 1], to: made[i + 1] };
    }
    axes
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

fn sizes(ty: &TensorType) -> Sizes {
    ty.shape.sizes().unwrap_or_default()
}
