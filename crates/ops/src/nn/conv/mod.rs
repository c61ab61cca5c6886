//! Convolutions over one to three spatial axes, channels last: `conv`, its transpose and the gradient of its filters.
//!
//! All three are linear in both of their inputs, and each is the gradient of the others: derivatives of any order
//! come back to these rows.

pub mod filter_grad;
pub mod forward;
pub mod transpose;

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{Cost, Sample};
use tonnage_core::{Attrs, Call, DType, Dim, Shape, Sizes, TensorType, window};

use super::window::WindowGeometry;
use crate::infer::{bad_attrs, cost, dtype, same_dtype};
use crate::linalg::Size;

/// The attributes, checked.
pub fn attrs<'a>(op: &'static str, attrs: &'a Attrs) -> Result<(&'a window::Conv, WindowGeometry)> {
    let Attrs::Conv(conv) = attrs else { return Err(bad_attrs(op, attrs, "a convolution")) };
    if conv.groups == 0 {
        let what = "0 groups";
        return Err(bad_argument(op, what, "use 1, or a number that divides the channels"));
    }
    Ok((conv, WindowGeometry::of(op, &conv.window)?))
}

/// Refuses spatial lengths that mean nothing here.
fn image_is_input(op: &'static str, conv: &window::Conv) -> Result<()> {
    if conv.image.rank() == 0 {
        return Ok(());
    }
    let what = format!("lengths of {} for an image that is given", conv.image);
    Err(bad_argument(op, what, "leave them out"))
}

/// Refuses operands that are not floats of one dtype.
fn floats(op: &'static str, a: &TensorType, b: &TensorType) -> Result<()> {
    dtype(op, a, DType::is_float, "f64, f32, f16 or bf16 (cast first)")?;
    same_dtype(op, a, b)
}

/// The error for shapes that do not fit each other.
fn mismatch(op: &'static str, left: &TensorType, right: &TensorType, help: String) -> Result<()> {
    let (left, right) = (left.shape.clone(), right.shape.clone());
    Err(ErrorKind::ShapeMismatch { op, left, right, help }.into())
}

/// Spatial lengths of filters: those of the window.
fn filter_lengths(op: &'static str, window: &WindowGeometry, filter: &TensorType) -> Result<()> {
    let rank = filter.shape.rank();
    let sizes = &window.sizes()[3 - window.spatial..];
    let same = rank == window.spatial + 2
        && filter.shape[..rank - 2].iter().zip(sizes).all(|(dim, size)| dim.is(*size));
    if same {
        return Ok(());
    }
    let what = format!("filters of shape {} for windows of {sizes:?}", filter.shape);
    let help = "use filters of shape [window..., channels in / groups, channels out]";
    Err(bad_argument(op, what, help))
}

/// Refuses channels that groups do not divide.
fn divides(op: &'static str, groups: usize, channels: &Dim, of: &str) -> Result<()> {
    let even = groups == 1 || channels.known().is_some_and(|n| n.is_multiple_of(groups));
    if even {
        return Ok(());
    }
    let what = format!("{groups} groups do not divide the {channels} channels of the {of}");
    Err(bad_argument(op, what, "use groups that divide both numbers of channels"))
}

/// The last dim.
fn channels(ty: &TensorType) -> &Dim {
    &ty.shape[ty.shape.rank() - 1]
}

/// Sizes of one call, once they are known; those that the data decide at their bound.
#[derive(Debug, Clone, Copy)]
pub struct ConvSizes {
    /// Its windows.
    pub window: WindowGeometry,
    /// Groups of channels.
    pub groups: usize,
    /// Images.
    pub batch: usize,
    /// Spatial lengths of the image.
    pub image: [usize; 3],
    /// Spatial lengths of what its windows give.
    pub made: [usize; 3],
    /// Channels of the image.
    pub inputs: usize,
    /// Channels of what its windows give.
    pub outputs: usize,
}

impl ConvSizes {
    /// From the types of an image and of what its windows give.
    pub fn of(call: &Call, image: &TensorType, made: &TensorType) -> Option<ConvSizes> {
        let (conv, window) = attrs(call.op, call.attrs).ok()?;
        let (image, made) = (image.shape.most()?, made.shape.most()?);
        Some(ConvSizes::from_sizes(window, conv.groups, &image, &made))
    }

    /// From the lengths of an image and of what its windows give.
    pub fn from_sizes(
        window: WindowGeometry,
        groups: usize,
        image: &[usize],
        made: &[usize],
    ) -> ConvSizes {
        let lengths = |sizes: &[usize]| {
            let mut lengths = [1; 3];
            lengths[3 - window.spatial..].copy_from_slice(&sizes[1..sizes.len() - 1]);
            lengths
        };
        ConvSizes {
            window,
            groups,
            batch: image[0],
            image: lengths(image),
            made: lengths(made),
            inputs: image[image.len() - 1],
            outputs: made[made.len() - 1],
        }
    }

    /// Channels of the image and of the result in one group.
    pub fn group(&self) -> (usize, usize) {
        (self.inputs / self.groups, self.outputs / self.groups)
    }

    /// A group for each channel of the image.
    pub fn is_depthwise(&self) -> bool {
        self.groups > 1 && self.groups == self.inputs
    }

    /// How many windows, over all images.
    pub fn windows(&self) -> usize {
        self.made.iter().fold(self.batch, |all, made| all.saturating_mul(*made))
    }

    /// The product that a convolution is.
    pub fn forward(&self) -> Size {
        let (inputs, outputs) = self.group();
        let k = self.window.area().saturating_mul(inputs);
        Size { batch: self.groups, rows: self.windows(), cols: outputs, k }
    }

    fn flops(&self) -> u64 {
        let Size { batch, rows, cols, k } = self.forward();
        [2, batch, rows, cols, k].iter().fold(1, |n, x| n.saturating_mul(*x as u64))
    }
}

/// Multiplications and additions, and everything read and written once.
fn costs(call: &Call, known: Option<ConvSizes>, made: &[TensorType]) -> Cost {
    cost(known.map_or(0, |known| known.flops()), call.inputs.iter().chain(made))
}

/// A call to test with: dtype, image, filters, and the convolution.
type Case = (DType, Sizes, Sizes, window::Conv);

/// Shared by the three rows: images, filters and windows of every kind.
fn cases() -> Vec<Case> {
    let of = |dtype, image: &[usize], filter: &[usize], groups, axes: &[[usize; 4]]| {
        let each = |f: fn(&[usize; 4]) -> usize| axes.iter().map(f).collect::<Sizes>();
        let window = window::Window {
            size: filter[..axes.len()].into(),
            stride: each(|a| a[0]),
            padding: axes.iter().map(|a| [a[1], a[2]]).collect(),
            dilation: each(|a| a[3]),
        };
        let conv = window::Conv { window, groups, image: Shape::scalar() };
        (dtype, Sizes::from(image), Sizes::from(filter), conv)
    };
    // For each spatial axis: stride, padding before and after, dilation.
    let (plain, same) = ([1, 0, 0, 1], [1, 1, 1, 1]);
    use DType::*;
    vec![
        of(F64, &[2, 5, 6, 3], &[3, 3, 3, 4], 1, &[plain, plain]),
        of(F32, &[2, 5, 6, 3], &[3, 3, 3, 4], 1, &[same, same]),
        of(F16, &[1, 4, 4, 2], &[3, 3, 2, 5], 1, &[same, same]),
        of(BF16, &[1, 4, 4, 2], &[3, 3, 2, 5], 1, &[same, same]),
        // Strides, with lengths that they do not divide; more padding than window; dilation.
        of(F32, &[2, 7, 8, 3], &[3, 3, 3, 8], 1, &[[2, 1, 1, 1], [2, 0, 1, 1]]),
        of(F32, &[1, 5, 5, 6], &[2, 2, 6, 5], 1, &[[3, 3, 2, 1], [1, 0, 4, 1]]),
        of(F32, &[1, 8, 9, 2], &[3, 2, 2, 6], 1, &[[1, 1, 2, 2], [2, 3, 0, 3]]),
        of(BF16, &[1, 7, 7, 3], &[3, 3, 3, 6], 1, &[[2, 1, 1, 1], [3, 0, 2, 2]]),
        // A window that is longer than its stride is not, and one that leaves pixels out.
        of(F32, &[2, 6, 6, 3], &[1, 1, 3, 7], 1, &[[2, 0, 0, 1], [3, 0, 0, 1]]),
        of(F32, &[2, 3, 4, 5], &[1, 1, 5, 6], 1, &[plain, plain]),
        // The same with rows of windows that are long enough for a band, in padding too, and over planes.
        of(F32, &[2, 34, 36, 3], &[1, 1, 3, 7], 1, &[[2, 1, 0, 1], [2, 1, 1, 1]]),
        of(F16, &[1, 31, 40, 2], &[1, 1, 2, 5], 1, &[[1, 0, 0, 1], [3, 0, 2, 1]]),
        of(F32, &[1, 3, 14, 25, 2], &[1, 1, 1, 2, 5], 1, &[[2, 1, 1, 1], plain, [2, 0, 1, 1]]),
        // Groups; a channel each; several filters for each channel.
        of(F32, &[2, 4, 5, 4], &[3, 2, 2, 6], 2, &[same, [2, 0, 1, 1]]),
        of(F32, &[2, 5, 4, 10], &[2, 3, 5, 12], 2, &[plain, same]),
        of(F32, &[2, 6, 5, 3], &[3, 3, 1, 3], 3, &[same, [2, 1, 1, 1]]),
        of(F32, &[1, 5, 5, 3], &[2, 3, 1, 6], 3, &[[1, 1, 0, 2], same]),
        of(F64, &[1, 6, 6, 70], &[3, 3, 1, 70], 70, &[same, same]),
        of(BF16, &[1, 4, 4, 5], &[3, 3, 1, 5], 5, &[same, same]),
        of(F32, &[1, 3, 11, 40], &[2, 3, 1, 40], 40, &[same, [2, 1, 1, 1]]),
        of(F16, &[1, 2, 8, 17], &[1, 3, 1, 17], 17, &[plain, same]),
        // More than a tile of rows and columns.
        of(F32, &[1, 5, 7, 20], &[3, 3, 20, 40], 1, &[same, same]),
        // More windows than a band has, across images; taps that lie apart along height; planes of padding.
        of(F32, &[3, 20, 40, 4], &[3, 3, 4, 5], 1, &[same, same]),
        of(F32, &[2, 9, 8, 3], &[3, 3, 3, 5], 1, &[[1, 2, 2, 2], same]),
        of(F32, &[3, 9, 17, 2], &[3, 3, 2, 20], 1, &[[2, 1, 1, 1], [2, 1, 1, 1]]),
        of(F32, &[1, 2, 6, 9, 2], &[1, 3, 2, 2, 6], 1, &[[1, 1, 1, 1], same, same]),
        // A few channels on one side, beside enough on the other for vectors along taps and channels.
        of(F32, &[2, 8, 9, 2], &[3, 3, 2, 7], 1, &[same, same]),
        of(F32, &[1, 9, 13, 4], &[3, 3, 4, 10], 1, &[same, same]),
        of(F32, &[2, 9, 14, 3], &[5, 5, 3, 16], 1, &[[2, 2, 2, 1], [2, 2, 1, 1]]),
        of(F32, &[2, 7, 8, 6], &[3, 3, 6, 1], 1, &[same, same]),
        of(F64, &[1, 5, 9, 8], &[3, 3, 8, 3], 1, &[same, plain]),
        of(F16, &[1, 4, 5, 9], &[3, 3, 9, 2], 1, &[same, same]),
        // One and three spatial axes.
        of(F32, &[2, 9, 4], &[3, 4, 6], 1, &[[2, 1, 1, 2]]),
        of(F32, &[1, 3, 4, 4, 2], &[2, 3, 3, 2, 6], 1, &[plain, same, [2, 1, 1, 1]]),
        of(F32, &[1, 4, 3, 4, 2], &[3, 2, 3, 1, 4], 2, &[[2, 1, 1, 1], plain, same]),
        // Nothing to do, and nothing to add up.
        of(F32, &[0, 4, 4, 2], &[3, 3, 2, 3], 1, &[plain, plain]),
        of(F32, &[1, 4, 4, 0], &[3, 3, 0, 3], 1, &[plain, plain]),
        of(F32, &[1, 4, 4, 2], &[3, 3, 2, 0], 1, &[plain, plain]),
        of(F32, &[1, 0, 3, 2], &[1, 2, 2, 3], 1, &[[1, 1, 1, 1], plain]),
    ]
}

/// What the windows of an image give: the sizes of a case's result.
fn made(case: &Case) -> Sizes {
    let (_, image, filter, conv) = case;
    let spatial: SmallVec<[Dim; 3]> =
        image[1..image.len() - 1].iter().map(|n| Dim::Known(*n)).collect();
    let slid =
        WindowGeometry::of("conv", &conv.window).and_then(|window| window.slide("conv", &spatial));
    let slid = slid.unwrap_or_default();
    let lengths = slid.iter().filter_map(Dim::known);
    [image[0]].into_iter().chain(lengths).chain(filter.last().copied()).collect()
}

fn sample(dtype: DType, a: &Sizes, b: &Sizes, conv: window::Conv) -> Sample {
    let types = [TensorType::new(dtype, &a[..]), TensorType::new(dtype, &b[..])];
    Sample::of(&types, Attrs::Conv(Box::new(conv)))
}
