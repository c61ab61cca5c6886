//! LU factorization with row exchanges, in place: what `solve`, `det` and `slogdet` share.
//!
//! A block of columns is factorized on its own, transposed so that columns lie in one piece; then the rows to the right of it
//! are solved for, and the rest is updated by their product, which the matmul core runs on all threads. The order of every
//! sum depends on the sizes alone. Written here for the reasons that `factor` gives.

use tonnage_core::{DType, FromScalar, Result};
use tonnage_ops::linalg::Size;

use super::field::{Field, add_in};
use super::gemm::{Matrix, Strides};
use super::small::{self, SMALL};
use super::substitute::{BLOCK, BlockWorkspace, Triangle, apart, held_to_solve, workspace_bytes};
use crate::number::Real;
use crate::workers::Workers;
use tonnage_simd::{Isa, SimdKernel, level};

/// Columns whose products are taken from another one at once.
const TOGETHER: usize = 4;

/// An element that is factorized.
pub trait Factor: Field + Real + FromScalar {}

impl Factor for f64 {}

impl Factor for f32 {}

/// What came of a factorization.
pub struct Factored {
    /// Whether an odd number of rows were exchanged.
    pub odd: bool,
    /// The first column without a pivot, where there is one: the matrix is singular.
    pub singular: Option<usize>,
}

/// Elements that a factorization wants held, and solving for that many right sides.
pub fn held(n: usize, width: usize) -> usize {
    let panel = if n > SMALL { n.min(BLOCK) * apart(n) } else { 0 };
    panel.max(held_to_solve(n, width))
}

/// Bytes of the workspace for a matrix and that many right sides.
pub fn bytes(n: usize, width: usize, dtype: DType, threads: usize) -> usize {
    workspace_bytes(n, n.max(width), held(n, width), dtype, threads)
}

/// Replaces a matrix by its factors: L below the diagonal, whose own diagonal is 1, and U from it on. `pivots[i]` is
/// the row that row `i` was exchanged with.
pub fn factorize<T: Factor>(
    matrix: &mut [T],
    n: usize,
    pivots: &mut [u32],
    workspace: &mut BlockWorkspace<T>,
    workers: &dyn Workers,
) -> Result<Factored> {
    if n <= SMALL {
        return Ok(small::factorize(matrix, n, pivots));
    }
    let mut made = Factored { odd: false, singular: None };
    let stride = apart(n);
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        let count = end - start;
        let panel = std::mem::take(&mut workspace.held);
        for (i, row) in matrix[start * n..].chunks_exact(n).enumerate() {
            for (j, x) in row[start..end].iter().enumerate() {
                panel[j * stride + i] = *x;
            }
        }
        let own = &mut pivots[start..end];
        let pivotless = level().run(LuPanel { panel, stride, len: n - start, pivots: &mut *own });
        made.singular = made.singular.or(pivotless.map(|column| start + column));
        exchange(&mut matrix[start * n..], n, own, false);
        for (i, pivot) in own.iter_mut().enumerate() {
            made.odd ^= *pivot as usize != i;
            *pivot += start as u32;
        }
        // What is below the block stays less than 0 in the panel, for the product.
        for (i, row) in matrix[start * n..].chunks_exact_mut(n).enumerate() {
            for (j, x) in row[start..end].iter_mut().enumerate() {
                let from = &mut panel[j * stride + i];
                *x = *from;
                *from = -*from;
            }
        }
        if end < n {
            let (above, below) = matrix.split_at_mut(end * n);
            let (data, first, steps) = (&*above, start * n + start, [n as isize, 1]);
            let block =
                Triangle { data, start: first, steps, n: count, transposed: false, unit: true };
            workspace.load(&block, 0, count);
            let right = &mut above[start * n + end..];
            workspace.substitute(right, count, [n - end, n], false);
            let size = Size::single(n - end, n - end, count);
            let left = Strides { start: count, batch: 0, row: 1, col: stride as isize };
            let left = Matrix::left(&*panel, left);
            let right = Matrix::right(&*right, Strides::rows_of(n));
            workspace.add(size, left, right, (&mut below[end..], n), workers)?;
        }
        workspace.held = panel;
    }
    Ok(made)
}

/// Factorizes columns of `len` elements that lie `stride` apart. Pivots count from the first row; a column without one is
/// given.
struct LuPanel<'a, T> {
    panel: &'a mut [T],
    stride: usize,
    len: usize,
    pivots: &'a mut [u32],
}

impl<T: Factor> SimdKernel for LuPanel<'_, T> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<I: Isa>(self) -> Option<usize> {
        let LuPanel { panel, stride, len, pivots } = self;
        let (count, mut pivotless) = (pivots.len(), None);
        for j in 0..count {
            let (done, own) = panel.split_at_mut(j * stride);
            let own = &mut own[..len];
            for first in (0..j).step_by(TOGETHER) {
                take::<I, T>(&done[first * stride..], stride, first, own);
            }
            let best = j + iamax::<T>(&own[j..]);
            pivots[j] = best as u32;
            if best != j {
                panel.chunks_mut(stride).take(count).for_each(|column| column.swap(j, best));
            }
            let own = &mut panel[j * stride..][j..len];
            let Some((pivot, rest)) = own.split_first_mut() else { break };
            if *pivot == <T as super::gemm::Compute>::ZERO {
                pivotless = pivotless.or(Some(j));
                continue;
            }
            rest.iter_mut().for_each(|x| *x = *x / *pivot);
        }
        pivotless
    }
}

/// Takes from a column the products of some finished ones, the first of which is number `first`, with its elements there.
#[inline(always)]
fn take<I: Isa, T: Factor>(done: &[T], stride: usize, first: usize, own: &mut [T]) {
    let count = TOGETHER.min(done.len().div_ceil(stride));
    let (head, rest) = own[first..].split_at_mut(count);
    for k in 1..count {
        for i in 0..k {
            head[k] = (-head[i]).fma::<I>(done[i * stride + first + k], head[k]);
        }
    }
    let len = rest.len();
    let column = |k: usize| &done[k * stride + first + count..][..len];
    if count < TOGETHER {
        let columns: [&[T]; TOGETHER] = std::array::from_fn(|k| column(k.min(count - 1)));
        for (x, column) in head.iter().zip(columns) {
            add_in::<I, T>(rest, -*x, column);
        }
        return;
    }
    let [a, b, c, d] = std::array::from_fn(column);
    let by: [T; TOGETHER] = std::array::from_fn(|k| -head[k]);
    for ((((x, a), b), c), d) in rest.iter_mut().zip(a).zip(b).zip(c).zip(d) {
        let sum = by[1].fma::<I>(*b, by[0].fma::<I>(*a, *x));
        *x = by[3].fma::<I>(*d, by[2].fma::<I>(*c, sum));
    }
}

/// Where the element of largest size is, the first of these; NaN counts as the largest, so that it shows in the result.
#[inline(always)]
fn iamax<T: Factor>(x: &[T]) -> usize {
    const LANES: usize = 32;
    let zero = <T as super::gemm::Compute>::ZERO;
    let size = |x: T| if x < zero { -x } else { x };
    let above = |x: T, most: T| x > most || x.wide().is_nan();
    let mut most = [zero; LANES];
    let (wide, rest) = x.as_chunks::<LANES>();
    for x in wide {
        for (most, x) in most.iter_mut().zip(x) {
            let size = size(*x);
            *most = if above(size, *most) { size } else { *most };
        }
    }
    let all = most.iter().chain(rest).map(|x| size(*x));
    let most = all.fold(zero, |most, x| if above(x, most) { x } else { most });
    x.iter().position(|x| size(*x) == most || x.wide().is_nan()).unwrap_or(0)
}

/// Exchanges rows of `width` elements as a factorization did, or back.
pub fn exchange<T: Copy>(rows: &mut [T], width: usize, pivots: &[u32], inverse: bool) {
    let mut swap = |i: usize, with: usize| {
        if i != with {
            let (above, below) = rows.split_at_mut(with * width);
            above[i * width..(i + 1) * width].swap_with_slice(&mut below[..width]);
        }
    };
    match inverse {
        false => pivots.iter().enumerate().for_each(|(i, with)| swap(i, *with as usize)),
        true => pivots.iter().enumerate().rev().for_each(|(i, with)| swap(i, *with as usize)),
    }
}
