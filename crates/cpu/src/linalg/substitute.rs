//! Triangular systems, solved in place, and the workspace that blocked factorizations share.
//!
//! Rows are solved for in blocks, some columns at a time, four rows of sums in registers. What a block says of the rows
//! that are still open is a product, which the matmul core runs on all threads. Sums run in an order that depends on the
//! sizes alone.

use tonnage_core::{DType, Result};
use tonnage_ops::linalg::Size;

use super::field::Field;
use super::gemm::{Matrix, NoEpilogue, RowLayout, Strides, Target, gemm, scratch_bytes_within};
use super::small::{self, SMALL};
use crate::parallel::{cut, cut_bytes_of};
use crate::workers::Workers;
use tonnage_simd::{Isa, SimdKernel, level};

/// Rows of a block.
pub const BLOCK: usize = 64;

/// Rows whose sums are kept in registers.
const ROWS: usize = 4;

/// Columns of those sums.
const COLUMNS: usize = 32;

/// What blocks are worked with.
pub struct BlockWorkspace<'a, T> {
    /// The triangle of a block: four rows after the other, in each column by column.
    triangle: &'a mut [T],
    /// Some columns of a block of right sides.
    columns: &'a mut [T],
    /// As many elements as were asked for.
    pub held: &'a mut [T],
    /// Lent to the matmul core.
    packing: &'a mut [u8],
}

fn counts(n: usize, held: usize) -> [usize; 3] {
    let order = if n > SMALL { n.min(BLOCK).next_multiple_of(ROWS) } else { 0 };
    [order * order, order * COLUMNS, held]
}

/// Bytes of the workspace for matrices of order `n`, products of at most `cols` columns and `held` elements besides, on that
/// many threads.
pub fn workspace_bytes(n: usize, cols: usize, held: usize, dtype: DType, threads: usize) -> usize {
    let parts: usize = counts(n, held).iter().map(|count| cut_bytes_of(*count, dtype)).sum();
    if n <= BLOCK {
        return parts;
    }
    let size = Size::single(n, cols.max(1), BLOCK);
    parts + scratch_bytes_within(size, dtype, threads.max(1)).as_usize().next_multiple_of(64)
}

/// Elements that [`Triangle::solve`] wants held, for right sides of that width.
pub fn held_to_solve(n: usize, width: usize) -> usize {
    if n > BLOCK { BLOCK * width } else { 0 }
}

/// From one column to the next of a matrix that lies column by column: apart from powers of 2, so that neighbours do not
/// push each other out of the cache.
pub fn apart(rows: usize) -> usize {
    rows.next_multiple_of(16) + 16
}

impl<'a, T: Field> BlockWorkspace<'a, T> {
    /// Cut off the front of scratch, all of whose rest is for packing.
    pub fn of(mut scratch: &'a mut [u8], n: usize, held: usize) -> BlockWorkspace<'a, T> {
        let [triangle, columns, held] = counts(n, held).map(|count| cut::<T>(&mut scratch, count));
        BlockWorkspace { triangle, columns, held, packing: scratch }
    }

    /// Takes the block of a triangle from row `first` on for the one that [`BlockWorkspace::substitute`] solves with.
    pub fn load(&mut self, triangle: &Triangle<T>, first: usize, count: usize) {
        let order = count.next_multiple_of(ROWS);
        let (groups, _) = self.triangle.as_chunks_mut::<ROWS>();
        for i in 0..order {
            let group = &mut groups[i / ROWS * order..][..order];
            for (j, to) in group.iter_mut().enumerate().take(i / ROWS * ROWS + ROWS) {
                let at =
                    |i: usize| if triangle.transposed { first + count - 1 - i } else { first + i };
                to[i % ROWS] = match j {
                    _ if j > i => T::ZERO,
                    _ if j == i && (i >= count || triangle.unit) => T::ONE,
                    _ if j == i => triangle.at(at(i), at(i)),
                    _ if i >= count => T::ZERO,
                    _ => -triangle.at(at(i), at(j)),
                };
            }
        }
    }

    /// Solves for `count` rows of `cols` elements that lie `stride` apart, with the triangle that was taken; from the last
    /// row up where `up`, as that was read.
    pub fn substitute(&mut self, x: &mut [T], count: usize, [cols, stride]: [usize; 2], up: bool) {
        let (triangle, columns) = (&*self.triangle, &mut *self.columns);
        level().run(Substitute { x, count, cols, stride, up, triangle, columns });
    }

    /// Adds a product to rows of `size.cols` elements that lie `stride` apart.
    pub fn add(
        &mut self,
        size: Size,
        left: Matrix<T>,
        right: Matrix<T>,
        (data, stride): (&mut [T], usize),
        workers: &dyn Workers,
    ) -> Result<()> {
        let into = Target { data, batch_stride: 0, rows: RowLayout::Every(stride), add: true };
        gemm(size, &left, &right, into, &NoEpilogue, self.packing, workers)
    }
}

/// A triangular matrix as it is read: its lower triangle, or that one transposed.
#[derive(Clone, Copy)]
pub struct Triangle<'a, T> {
    /// The bytes that it lies in.
    pub data: &'a [T],
    /// Where its first element lies.
    pub start: usize,
    /// From row to row, and from column to column, of the lower triangle.
    pub steps: [isize; 2],
    /// Its order.
    pub n: usize,
    /// Solve with the transposed matrix.
    pub transposed: bool,
    /// The diagonal is not read: it is 1 everywhere.
    pub unit: bool,
}

impl<T: Field> Triangle<'_, T> {
    /// How the matrix that the system is solved with lies, from an element on.
    pub(super) fn from(&self, row: usize, column: usize) -> Strides {
        let [down, right] = self.steps;
        let (down, right) = if self.transposed { (right, down) } else { (down, right) };
        let start = self.start as isize + row as isize * down + column as isize * right;
        Strides { start: start as usize, batch: 0, row: down, col: right }
    }

    fn at(&self, row: usize, column: usize) -> T {
        self.data[self.from(row, column).start]
    }

    /// The first column whose diagonal element is 0.
    pub fn singular(&self) -> Option<usize> {
        (0..self.n).find(|i| self.at(*i, *i) == T::ZERO)
    }

    /// Replaces `x`, `n` rows of `width` elements, by the solution of `triangle * solution = x`.
    pub fn solve(
        &self,
        x: &mut [T],
        width: usize,
        workspace: &mut BlockWorkspace<T>,
        workers: &dyn Workers,
    ) -> Result<()> {
        if self.n <= SMALL {
            small::solve(self, x, width);
            return Ok(());
        }
        let blocks = if width == 0 { 0 } else { self.n.div_ceil(BLOCK) };
        for number in 0..blocks {
            // The transposed lower triangle is an upper one: from the last row up.
            let up = self.transposed;
            let number = if up { blocks - 1 - number } else { number };
            let (start, end) = (number * BLOCK, self.n.min((number + 1) * BLOCK));
            let (above, rest) = x.split_at_mut(start * width);
            let (block, below) = rest.split_at_mut((end - start) * width);
            workspace.load(self, start, end - start);
            workspace.substitute(block, end - start, [width, width], up);
            let (open, first) = if up { (above, 0) } else { (below, end) };
            if open.is_empty() {
                continue;
            }
            let held = std::mem::take(&mut workspace.held);
            held.iter_mut().zip(&*block).for_each(|(to, x)| *to = -*x);
            let size = Size::single(open.len() / width, width, end - start);
            let left = Matrix::left(self.data, self.from(first, start));
            let right = Matrix::right(&*held, Strides::rows_of(width));
            workspace.add(size, left, right, (open, width), workers)?;
            workspace.held = held;
        }
        Ok(())
    }
}

/// The rows of one block.
struct Substitute<'a, T> {
    x: &'a mut [T],
    count: usize,
    cols: usize,
    stride: usize,
    up: bool,
    triangle: &'a [T],
    columns: &'a mut [T],
}

impl<T: Field> SimdKernel for Substitute<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Substitute { x, count, cols, stride, up, triangle, columns } = self;
        let order = count.next_multiple_of(ROWS);
        let (groups, _) = triangle.as_chunks::<ROWS>();
        let columns = &mut columns.as_chunks_mut::<COLUMNS>().0[..order];
        columns[count..].fill([T::ZERO; COLUMNS]);
        let row_start = |i: usize| if up { (count - 1 - i) * stride } else { i * stride };
        for from in (0..cols).step_by(COLUMNS) {
            let width = COLUMNS.min(cols - from);
            for (i, row) in columns[..count].iter_mut().enumerate() {
                row[..width].copy_from_slice(&x[row_start(i) + from..][..width]);
                row[width..].fill(T::ZERO);
            }
            for first in (0..order).step_by(ROWS) {
                let group = &groups[first / ROWS * order..][..order];
                let (done, own) = columns.split_at_mut(first);
                let Some(own) = own.first_chunk_mut::<ROWS>() else { break };
                let [mut a, mut b, mut c, mut d] = *own;
                for (factors, row) in group.iter().zip(&*done) {
                    for i in 0..COLUMNS {
                        a[i] = factors[0].fma::<I>(row[i], a[i]);
                        b[i] = factors[1].fma::<I>(row[i], b[i]);
                        c[i] = factors[2].fma::<I>(row[i], c[i]);
                        d[i] = factors[3].fma::<I>(row[i], d[i]);
                    }
                }
                let mut sums = [a, b, c, d];
                for r in 0..ROWS {
                    let mut row = sums[r];
                    for q in 0..r {
                        let factor = group[first + q][r];
                        for (sum, x) in row.iter_mut().zip(&sums[q]) {
                            *sum = factor.fma::<I>(*x, *sum);
                        }
                    }
                    let pivot = group[first + r][r];
                    row.iter_mut().for_each(|x| *x = *x / pivot);
                    sums[r] = row;
                }
                *own = sums;
            }
            for (i, row) in columns[..count].iter().enumerate() {
                x[row_start(i) + from..][..width].copy_from_slice(&row[..width]);
            }
        }
    }
}
