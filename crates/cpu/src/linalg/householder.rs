//! Reflections by Householder: QR factorizations in blocks, and products with what they make orthogonal.
//!
//! A block of reflections is one matrix I - V T Vᵀ with T triangular (the compact WY form of Schreiber and Van Loan,
//! 1989), so that all but the narrow panels is products, which the matmul core runs. Written here rather than taken
//! from a library for the reason that `factor` gives: a kernel may not allocate.

use tonnage_core::{DType, Result};
use tonnage_ops::linalg::Size;

use super::field::{Field, add_in, dot, largest};
use super::gemm::{Matrix, NoEpilogue, RowLayout, Strides, Target, gemm, scratch_bytes_within};
use crate::parallel::{cut, cut_bytes_of};
use crate::workers::Workers;
use tonnage_simd::{Isa, SimdKernel, level};

/// Reflections of a block.
pub const BLOCK: usize = 32;

/// What blocks of reflections are worked with.
pub struct HouseholderWorkspace<'a, T> {
    /// A vector a row.
    pub vectors: &'a mut [T],
    /// The triangle, less than 0.
    triangle: &'a mut [T],
    /// Products on the way.
    first: &'a mut [T],
    second: &'a mut [T],
    /// Lent to the matmul core.
    packing: &'a mut [u8],
}

fn counts(len: usize, cols: usize) -> [usize; 4] {
    [BLOCK * len, BLOCK * BLOCK, BLOCK * cols, BLOCK * cols]
}

/// Bytes of the workspace for vectors of `len` elements and matrices of `cols` columns, on that many threads.
pub fn workspace_bytes(len: usize, cols: usize, dtype: DType, threads: usize) -> usize {
    let size = Size::single(len.max(BLOCK), cols.max(1), len.max(BLOCK));
    let packing = scratch_bytes_within(size, dtype, threads.max(1)).as_usize();
    let parts: usize = counts(len, cols).iter().map(|count| cut_bytes_of(*count, dtype)).sum();
    parts + packing.next_multiple_of(64)
}

impl<'a, T: Field> HouseholderWorkspace<'a, T> {
    /// Cut off the front of scratch, all of whose rest is for packing.
    pub fn of(mut scratch: &'a mut [u8], len: usize, cols: usize) -> HouseholderWorkspace<'a, T> {
        let [vectors, triangle, first, second] =
            counts(len, cols).map(|count| cut::<T>(&mut scratch, count));
        HouseholderWorkspace { vectors, triangle, first, second, packing: scratch }
    }

    /// Multiplies `c`, rows of `cols` elements that lie `stride` apart, from the left by a block of reflections, or by
    /// its transpose. `vectors` has one of them a row, each with a 1 in front and zeros before that.
    pub fn apply(
        &mut self,
        vectors: &[T],
        factors: &[T],
        transposed: bool,
        c: &mut [T],
        [cols, stride]: [usize; 2],
        workers: &dyn Workers,
    ) -> Result<()> {
        let count = factors.len();
        let len = vectors.len() / count.max(1);
        if cols == 0 || count == 0 {
            return Ok(());
        }
        triangle(vectors, len, factors, self.triangle);
        let mut product = |size, left: Matrix<T>, right: Matrix<T>, into: Target<T>| {
            gemm(size, &left, &right, into, &NoEpilogue, self.packing, workers)
        };
        let rows = |strides: Strides, transpose: bool| {
            if transpose { strides.transposed() } else { strides }
        };
        let along = Strides { row: stride as isize, ..Strides::rows_of(cols) };
        let size = Size::single(count, cols, len);
        let left = Matrix::left(vectors, Strides::rows_of(len));
        product(size, left, Matrix::right(c, along), Target::new(self.first, size))?;
        let size = Size::single(count, cols, count);
        let left = Matrix::left(self.triangle, rows(Strides::rows_of(count), transposed));
        let right = Matrix::right(self.first, Strides::rows_of(cols));
        product(size, left, right, Target::new(self.second, size))?;
        let size = Size::single(len, cols, count);
        let left = Matrix::left(vectors, rows(Strides::rows_of(len), true));
        let right = Matrix::right(self.second, Strides::rows_of(cols));
        let into = Target { data: c, batch_stride: 0, rows: RowLayout::Every(stride), add: true };
        product(size, left, right, into)
    }
}

impl<T: Field> HouseholderWorkspace<'_, T> {
    /// Adds Xᵀ Y + Yᵀ X to a square of that side whose rows lie `n` apart. X has `count` rows of `n` elements and Y, the
    /// vectors of the workspace, too; they are read from column `from` on.
    pub fn add_both(
        &mut self,
        x: &[T],
        [count, n, from]: [usize; 3],
        c: &mut [T],
        side: usize,
        workers: &dyn Workers,
    ) -> Result<()> {
        let size = Size::single(side, side, count);
        let along = Strides { start: from, ..Strides::rows_of(n) };
        for (x, y) in [(x, &*self.vectors), (&*self.vectors, x)] {
            let (left, right) = (Matrix::left(x, along.transposed()), Matrix::right(y, along));
            let into =
                Target { data: &mut *c, batch_stride: 0, rows: RowLayout::Every(n), add: true };
            gemm(size, &left, &right, into, &NoEpilogue, self.packing, workers)?;
        }
        Ok(())
    }
}

/// The triangle of a block, less than 0, so that products with it are added.
fn triangle<T: Field>(vectors: &[T], len: usize, factors: &[T], out: &mut [T]) {
    let count = factors.len();
    let out = &mut out[..count * count];
    out.fill(T::ZERO);
    for (j, factor) in factors.iter().enumerate() {
        let own = &vectors[j * len..(j + 1) * len];
        let mut products = [T::ZERO; BLOCK];
        for (i, product) in products[..j].iter_mut().enumerate() {
            *product = dot(&vectors[i * len..(i + 1) * len], own);
        }
        for i in 0..j {
            let row = &out[i * count..i * count + j];
            let terms = row.iter().zip(&products).skip(i);
            let sum = terms.fold(T::ZERO, |sum, (t, product)| sum + *t * *product);
            out[i * count + j] = -(*factor * sum);
        }
        out[j * count + j] = -*factor;
    }
}

/// Makes the vector of a reflection of `x`, from its first element on, in place: 1, then the rest. Gives its factor, and
/// what the reflection leaves of the first element; of the others it leaves nothing.
pub fn reflect<T: Field>(x: &mut [T]) -> (T, T) {
    let Some((first, rest)) = x.split_first_mut() else { return (T::ZERO, T::ZERO) };
    let alpha = first.wide();
    *first = T::ONE;
    let most = largest(rest);
    if most == 0.0 {
        return (T::ZERO, T::of(alpha));
    }
    // Scaled, so that no square overflows.
    let scale = most.max(alpha.abs());
    let sum = rest.iter().fold((alpha / scale).powi(2), |sum, x| sum + (x.wide() / scale).powi(2));
    let beta = -(scale * sum.sqrt()).copysign(alpha);
    let by = alpha - beta;
    rest.iter_mut().for_each(|x| *x = T::of(x.wide() / by));
    (T::of((beta - alpha) / beta), T::of(beta))
}

/// Replaces a matrix of `n` columns by R, and under its diagonal the vectors of the reflections that make it; `factors`
/// has one number for each.
pub fn factorize<T: Field>(
    matrix: &mut [T],
    n: usize,
    factors: &mut [T],
    workspace: &mut HouseholderWorkspace<T>,
    workers: &dyn Workers,
) -> Result<()> {
    let rows = matrix.len() / n.max(1);
    for start in (0..factors.len()).step_by(BLOCK) {
        let end = factors.len().min(start + BLOCK);
        let (len, own) = (rows - start, &mut factors[start..end]);
        let vectors = std::mem::take(&mut workspace.vectors);
        let block = &mut vectors[..own.len() * len];
        let rows = &mut matrix[start * n..];
        level().run(QrPanel { rows, n, start, factors: &mut *own, block: &mut *block });
        if end < n {
            let right = &mut matrix[start * n + end..];
            workspace.apply(block, own, true, right, [n - end, n], workers)?;
        }
        workspace.vectors = vectors;
    }
    Ok(())
}

/// The reflections of some columns.
struct QrPanel<'a, T> {
    /// From the block's first row on.
    rows: &'a mut [T],
    n: usize,
    start: usize,
    factors: &'a mut [T],
    block: &'a mut [T],
}

impl<T: Field> SimdKernel for QrPanel<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let QrPanel { rows, n, start, factors, block } = self;
        let (count, len) = (factors.len(), rows.len() / n);
        for j in 0..count {
            let column = start + j;
            let own = &mut block[j * len..(j + 1) * len];
            own[..j].fill(T::ZERO);
            for (x, row) in own.iter_mut().zip(rows.chunks_exact(n)).skip(j) {
                *x = row[column];
            }
            let (factor, left) = reflect(&mut own[j..]);
            factors[j] = factor;
            // Columns of the panel to the right: sums of products with the vector, then as much is taken away.
            let mut sums = [T::ZERO; BLOCK];
            let sums = &mut sums[..count - j - 1];
            for (x, row) in own.iter().zip(rows.chunks_exact(n)).skip(j) {
                add_in::<I, T>(sums, *x, &row[column + 1..start + count]);
            }
            for (x, row) in own.iter().zip(rows.chunks_exact_mut(n)).skip(j) {
                add_in::<I, T>(&mut row[column + 1..start + count], -(factor * *x), sums);
                row[column] = *x;
            }
            rows[j * n + column] = left;
        }
    }
}

/// Writes the orthogonal factor of a matrix that was factorized: as many columns as there are reflections.
pub fn orthogonal<T: Field>(
    matrix: &[T],
    n: usize,
    factors: &[T],
    q: &mut [T],
    workspace: &mut HouseholderWorkspace<T>,
    workers: &dyn Workers,
) -> Result<()> {
    let (rows, k) = (matrix.len() / n.max(1), factors.len());
    q.fill(T::ZERO);
    q.chunks_exact_mut(k.max(1)).take(k).enumerate().for_each(|(i, row)| row[i] = T::ONE);
    for start in (0..k).step_by(BLOCK).rev() {
        let end = k.min(start + BLOCK);
        let (len, own) = (rows - start, &factors[start..end]);
        let vectors = std::mem::take(&mut workspace.vectors);
        let block = &mut vectors[..own.len() * len];
        for (j, vector) in block.chunks_exact_mut(len).enumerate() {
            vector[..j].fill(T::ZERO);
            vector[j] = T::ONE;
            for (i, x) in vector.iter_mut().enumerate().skip(j + 1) {
                *x = matrix[(start + i) * n + start + j];
            }
        }
        let part = &mut q[start * k + start..];
        workspace.apply(block, own, false, part, [k - start, k], workers)?;
        workspace.vectors = vectors;
    }
    Ok(())
}
