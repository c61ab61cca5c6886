//! The operands of a convolution's products: one type for all of them, so that the matmul core is compiled once a
//! dtype for all three rows.

use std::ops::Range;

use tonnage_core::Result;
use tonnage_core::lent::In;
use tonnage_ops::nn::conv::ConvSizes;

use super::band;
use super::filter::{Filter, Taps};
use super::slide::Slide;
use super::windows::{ImageWindows, packs};
use crate::linalg::gemm::{
    Band, Compute, DirectMatrix, GemmOperand, Matrix, Packs, Reads, Strides, Strip,
};
use crate::nn::float::Float;
use crate::nn::window::Pixels;

/// One side of a product.
pub(super) enum ConvOperand<'a, T> {
    /// Pixels by channels, where they lie as a matrix.
    Matrix(Matrix<'a, T>),
    /// A row for each window, along its taps and their channels; and how that is packed.
    Windows(ImageWindows<'a, T>, Packs),
    /// A row for each tap and channel, along all windows; and how that is packed.
    Transposed(ImageWindows<'a, T>, Packs),
    /// Filters.
    Filter(Filter<'a, T>),
}

impl<'a, T: Float> ConvOperand<'a, T> {
    /// The windows of an image, as the rows of a left operand.
    pub fn windows_of(image: &'a In, known: &ConvSizes) -> ConvOperand<'a, T> {
        let (pixels, data) = (Pixels::of(&image.layout), image.slice::<T>());
        let group = known.group().0;
        match rows_of(image, known.groups).filter(|_| known.window.is_trivial()) {
            Some(rows) => ConvOperand::Matrix(Matrix::left(data, rows)),
            None => {
                let slides = slides(known);
                let packs = packs(&slides, known.batch, known.group(), size_of::<T>());
                ConvOperand::Windows(ImageWindows::new(data, pixels, slides, group), packs)
            }
        }
    }

    /// The windows of an image, as the columns of a left operand.
    pub fn taps_of(image: &'a In, known: &ConvSizes) -> ConvOperand<'a, T> {
        let (pixels, data) = (Pixels::of(&image.layout), image.slice::<T>());
        let group = known.group().0;
        let packs = transposed(known, size_of::<T>());
        // A band of windows of one pixel is a copy in the order of memory. The matrix would be read where it lies, some
        // channels of a pixel at a time, from pages that no prefetching follows.
        let banded = matches!(packs, Packs::Band { .. });
        match rows_of(image, known.groups).filter(|_| known.window.is_trivial() && !banded) {
            Some(rows) => ConvOperand::Matrix(Matrix::left(data, rows.transposed())),
            None => ConvOperand::Transposed(
                ImageWindows::new(data, pixels, slides(known), group),
                packs,
            ),
        }
    }

    /// What windows gave, pixels by channels, as a right operand.
    pub fn pixels_of(made: &'a In, known: &ConvSizes) -> ConvOperand<'a, T> {
        let (pixels, data) = (Pixels::of(&made.layout), made.slice::<T>());
        match rows_of(made, known.groups) {
            Some(rows) => ConvOperand::Matrix(Matrix::right(data, rows)),
            None => {
                let slides = pixels.lengths.map(Slide::pixels);
                let windows = ImageWindows::new(data, pixels, slides, known.group().1);
                ConvOperand::Transposed(windows, Packs::Blocks)
            }
        }
    }

    /// Filters as a right operand, taps and channels of the image by channels of the result.
    pub fn filters(filter: &'a In, known: &ConvSizes) -> ConvOperand<'a, T> {
        let all = known.window.sizes().map(|count| Taps { first: 0, count, step: 1 });
        ConvOperand::Filter(Filter::forward(filter, known, all))
    }
}

/// The windows of an image along each axis.
pub(super) fn slides(known: &ConvSizes) -> [Slide; 3] {
    std::array::from_fn(|i| {
        let axis = &known.window.axes[i];
        Slide {
            windows: known.made[i],
            step: axis.stride,
            taps: axis.size,
            first: -(axis.padding[0] as isize),
            tap: axis.dilation as isize,
        }
    })
}

/// How the taps and channels of an image are packed along its windows.
pub(super) fn transposed(known: &ConvSizes, element: usize) -> Packs {
    // 16-bit floats are widened.
    band::transposed(&slides(known), known.batch, known.group(), element.max(size_of::<f32>()))
}

/// All pixels as rows and channels as columns, by group, where they lie evenly.
pub(super) fn rows_of(image: &In, groups: usize) -> Option<Strides> {
    let layout = &image.layout;
    let channels = *layout.sizes.last()?;
    let pixels: usize = layout.sizes[..layout.sizes.len() - 1].iter().product();
    let flat = layout.reshape(&[pixels, channels])?;
    let (row, col) = (flat.strides[0], flat.strides[1]);
    let batch = (channels / groups) as isize * col;
    Some(Strides { start: flat.offset, batch, row, col })
}

impl<C: Compute, T: Reads<C>> GemmOperand<C> for ConvOperand<'_, T> {
    fn pack(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        match self {
            ConvOperand::Matrix(matrix) => matrix.pack(batch, lines, depth, width, out),
            ConvOperand::Windows(windows, _) => windows.pack(batch, lines, depth, width, out),
            ConvOperand::Transposed(windows, _) => {
                windows.pack_transposed(batch, lines, depth, width, out)
            }
            ConvOperand::Filter(filter) => filter.pack(batch, lines, depth, width, out),
        }
    }

    fn direct(&self, batch: usize) -> Option<DirectMatrix<'_, C>> {
        match self {
            ConvOperand::Matrix(matrix) => matrix.direct(batch),
            ConvOperand::Filter(filter) => filter.direct(batch),
            ConvOperand::Windows(..) | ConvOperand::Transposed(..) => None,
        }
    }

    fn is_k_major(&self) -> bool {
        match self {
            ConvOperand::Matrix(matrix) => GemmOperand::<C>::is_k_major(matrix),
            ConvOperand::Windows(..) => true,
            ConvOperand::Transposed(..) | ConvOperand::Filter(_) => false,
        }
    }

    fn packs(&self) -> Packs {
        match self {
            ConvOperand::Matrix(_) | ConvOperand::Filter(_) => Packs::Blocks,
            ConvOperand::Windows(_, packs) | ConvOperand::Transposed(_, packs) => *packs,
        }
    }

    fn strip(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        out: &mut [C],
    ) -> Strip {
        match self {
            ConvOperand::Windows(windows, _) => windows.strip(batch, lines, depth, out),
            _ => {
                let (count, deep) = (lines.len(), depth.len());
                self.pack(batch, lines, depth, count, out);
                Strip { mn_stride: 1, k_stride: count, run: deep.max(1), jump: 0 }
            }
        }
    }

    fn band(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        out: &mut [C],
    ) -> Option<Band> {
        match self {
            ConvOperand::Windows(windows, _) => windows.band(batch, lines, depth, out),
            ConvOperand::Transposed(windows, _) => {
                windows.band_transposed(batch, lines, depth, out)
            }
            _ => None,
        }
    }

    fn check(&self, batch: usize, lines: usize, depth: usize) -> Result<()> {
        match self {
            ConvOperand::Matrix(matrix) => GemmOperand::<C>::check(matrix, batch, lines, depth),
            // Slices are indexed, and positions follow from the layout: there is nothing to promise.
            ConvOperand::Windows(..) | ConvOperand::Transposed(..) | ConvOperand::Filter(_) => {
                Ok(())
            }
        }
    }
}
