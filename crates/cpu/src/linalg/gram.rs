//! A preconditioner for one-sided Jacobi: an orthogonal matrix that makes the rows of a square matrix nearly orthogonal, so
//! that few rotations are left to `jacobi`.
//!
//! By the eigenvectors of the products of all rows with each other. These products are rounded, and what is small is lost
//! in them, so that the rows are not orthogonal to the last bit; but the matrix that they are multiplied by is, and what it
//! leaves is exact.

use tonnage_core::{DType, Result};
use tonnage_ops::linalg::Size;

use super::field::Field;
use super::gemm::{Matrix, NoEpilogue, RowLayout, Strides, Target, gemm};
use super::householder::HouseholderWorkspace;
use super::sweeps::{self, Rotation, STRIP};
use super::tridiagonal;
use crate::parallel::{cut, cut_bytes, cut_bytes_of};
use crate::workers::Workers;

/// Orders from which it is worth while.
pub const LEAST: usize = 64;

/// Bytes of scratch, besides the workspace for reflections.
pub fn bytes(n: usize, dtype: DType) -> usize {
    if n < LEAST {
        return 0;
    }
    cut_bytes_of(n, dtype) + 2 * cut_bytes::<f64>(n) + cut_bytes_of(2 * sweeps::rotations(n), dtype)
}

/// Where it is worked out: square matrices, and room for what lies in strips, which is `rows` in the end.
pub struct Spare<'a, T> {
    /// For the products.
    pub products: &'a mut [T],
    /// For the vectors of reflections.
    pub reflections: &'a mut [T],
    /// For the orthogonal matrix.
    pub rotation: &'a mut [T],
    /// An element for each row.
    pub order: &'a mut [u32],
}

/// Writes rows of `2 n` elements: those of the matrix multiplied by the orthogonal one, and beside them those of that one.
/// False where none was found.
pub fn precondition<T: Field>(
    matrix: &[T],
    n: usize,
    rows: &mut [T],
    spare: Spare<T>,
    mut scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<bool> {
    let Spare { products, reflections, rotation, order } = spare;
    let factors = cut::<T>(&mut scratch, n);
    let (d, e) = (cut::<f64>(&mut scratch, n), cut::<f64>(&mut scratch, n));
    let rotations = cut::<Rotation<T>>(&mut scratch, sweeps::rotations(n));
    let (size, along) = (Size::single(n, n, n), Strides::rows_of(n));
    let (left, right) = (Matrix::left(matrix, along), Matrix::right(matrix, along.transposed()));
    gemm(size, &left, &right, Target::new(products, size), &NoEpilogue, scratch, workers)?;
    let mut workspace = HouseholderWorkspace::of(&mut *scratch, n, n);
    let diagonals = (&mut *d, &mut *e);
    tridiagonal::reduce(products, n, reflections, factors, diagonals, &mut workspace, workers)?;
    tridiagonal::orthogonal(reflections, factors, rotation, n, &mut workspace, workers)?;
    let strips = &mut rows[..n.div_ceil(STRIP) * STRIP * n];
    sweeps::into_strips(rotation, n, strips);
    if sweeps::rotate(d, e, strips, rotations, workers)?.is_some() {
        return Ok(false);
    }
    // The longest first: then the fewest rotations are left.
    order.iter_mut().enumerate().for_each(|(i, to)| *to = i as u32);
    order.sort_unstable_by(|a, b| d[*b as usize].total_cmp(&d[*a as usize]).then(a.cmp(b)));
    for (to, from) in rotation.chunks_exact_mut(n).zip(&*order) {
        for (to, strip) in to.chunks_mut(STRIP).zip(strips.chunks_exact(n * STRIP)) {
            to.copy_from_slice(&strip[*from as usize * STRIP..][..to.len()]);
        }
    }
    let (left, right) = (Matrix::left(&*rotation, along), Matrix::right(matrix, along));
    let into =
        Target { data: &mut *rows, batch_stride: 0, rows: RowLayout::Every(2 * n), add: false };
    gemm(size, &left, &right, into, &NoEpilogue, scratch, workers)?;
    for (row, rotation) in rows.chunks_exact_mut(2 * n).zip(rotation.chunks_exact(n)) {
        row[n..].copy_from_slice(rotation);
    }
    Ok(true)
}
