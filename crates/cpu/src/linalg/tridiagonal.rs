//! Symmetric matrices by way of a tridiagonal one: reflections take a matrix to three diagonals, which `sweeps` takes to one.

use tonnage_core::Result;

use super::field::{Field, dot_in};
use super::householder::{BLOCK, HouseholderWorkspace, reflect};
use crate::parallel::rows_at_once;
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::{Isa, SimdKernel, level};

/// Takes a symmetric matrix to three diagonals. Row `j` of `vectors`, as long as the matrix is wide, becomes the vector of
/// reflection `j`. The matrix is used up.
///
/// A reflection takes v wᵀ + w vᵀ from the matrix. Within a block that is deferred: a row gets it when its turn comes, and
/// products with the matrix are corrected for it. So a step reads the matrix once and writes none of it, and a block ends
/// with two products, which the matmul core runs (Dongarra, Sorensen and Hammarling, 1989).
pub fn reduce<T: Field>(
    matrix: &mut [T],
    n: usize,
    vectors: &mut [T],
    factors: &mut [T],
    (diagonal, beside): (&mut [f64], &mut [f64]),
    workspace: &mut HouseholderWorkspace<T>,
    workers: &dyn Workers,
) -> Result<()> {
    for start in (0..n).step_by(BLOCK) {
        let end = n.min(start + BLOCK);
        // -w of each reflection, a row.
        let others = std::mem::take(&mut workspace.vectors);
        for j in start..end {
            let (done, own) = vectors.split_at_mut(j * n);
            let (others, product) = others.split_at_mut((j - start) * n);
            let deferred = DeferredUpdates { v: &done[start * n..], w: others, n };
            let (own, product) = (&mut own[..n], &mut product[..n]);
            let (row, below) = matrix[j * n..].split_at_mut(n);
            level().run(UpdatedRow { deferred, row, from: j });
            diagonal[j] = row[j].wide();
            own[..=j].fill(T::ZERO);
            own[j + 1..].copy_from_slice(&row[j + 1..]);
            let (factor, left) = reflect(&mut own[j + 1..]);
            factors[j] = factor;
            beside[j] = left.wide();
            product.fill(T::ZERO);
            if j + 2 >= n {
                continue;
            }
            // p = factor A v, then w = p - factor (p v) / 2 v.
            let (own, from, at_once) = (&own[j + 1..], j + 1, rows_at_once(n));
            for_each_chunk(workers, &mut product[from..], at_once, &|chunk, out| {
                let rows = &below[chunk * at_once * n..];
                level().run(MatrixVector { rows, n, from, vector: own, out });
            })?;
            level().run(CorrectedProduct {
                deferred,
                from,
                own,
                factor,
                product: &mut product[from..],
            });
        }
        workspace.vectors = others;
        if end < n {
            let side = n - end;
            let reflected = &vectors[start * n..end * n];
            workspace.add_both(
                reflected,
                [end - start, n, end],
                &mut matrix[end * n + end..],
                side,
                workers,
            )?;
        }
    }
    Ok(())
}

/// What the reflections of a block have still to take away: v and -w of each, a row of `n`.
#[derive(Clone, Copy)]
struct DeferredUpdates<'a, T> {
    v: &'a [T],
    w: &'a [T],
    n: usize,
}

impl<'a, T> DeferredUpdates<'a, T> {
    #[inline(always)]
    fn pairs(&self) -> impl Iterator<Item = (&'a [T], &'a [T])> {
        self.v.chunks_exact(self.n).zip(self.w.chunks_exact(self.n))
    }
}

/// Brings a row of the matrix up to date, from its diagonal on.
struct UpdatedRow<'a, T> {
    deferred: DeferredUpdates<'a, T>,
    row: &'a mut [T],
    from: usize,
}

impl<T: Field> SimdKernel for UpdatedRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let row = &mut self.row[self.from..];
        for (v, w) in self.deferred.pairs() {
            let (v, w) = (&v[self.from..], &w[self.from..]);
            add_both_in::<I, T>(row, (v[0], w), (w[0], v));
        }
    }
}

/// Adds two multiples at once.
#[inline(always)]
fn add_both_in<I: Isa, T: Field>(to: &mut [T], (a, x): (T, &[T]), (b, y): (T, &[T])) {
    for ((to, x), y) in to.iter_mut().zip(x).zip(y) {
        *to = b.fma::<I>(*y, a.fma::<I>(*x, *to));
    }
}

/// Corrects a product with the matrix, and makes -w of it.
struct CorrectedProduct<'a, T> {
    deferred: DeferredUpdates<'a, T>,
    from: usize,
    own: &'a [T],
    factor: T,
    product: &'a mut [T],
}

impl<T: Field> SimdKernel for CorrectedProduct<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let CorrectedProduct { deferred, from, own, factor, product } = self;
        for (v, w) in deferred.pairs() {
            let (v, w) = (&v[from..], &w[from..]);
            let (by_w, by_v) = (dot_in::<I, T>(w, own), dot_in::<I, T>(v, own));
            add_both_in::<I, T>(product, (by_w, v), (by_v, w));
        }
        product.iter_mut().for_each(|p| *p = *p * factor);
        let half = T::of(factor.wide() * 0.5 * dot_in::<I, T>(product, own).wide());
        for (p, v) in product.iter_mut().zip(own) {
            *p = half.fma::<I>(*v, -*p);
        }
    }
}

/// Rows times a vector.
struct MatrixVector<'a, T> {
    rows: &'a [T],
    n: usize,
    from: usize,
    vector: &'a [T],
    out: &'a mut [T],
}

impl<T: Field> SimdKernel for MatrixVector<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (row, to) in self.rows.chunks_exact(self.n).zip(self.out) {
            *to = dot_in::<I, T>(&row[self.from..], self.vector);
        }
    }
}

/// Writes the product of the reflections of [`reduce`], the last one on the right.
pub fn orthogonal<T: Field>(
    vectors: &[T],
    factors: &[T],
    out: &mut [T],
    n: usize,
    workspace: &mut HouseholderWorkspace<T>,
    workers: &dyn Workers,
) -> Result<()> {
    out.fill(T::ZERO);
    (0..n).for_each(|i| out[i * n + i] = T::ONE);
    for start in (0..n).step_by(BLOCK).rev() {
        let (end, len) = (n.min(start + BLOCK), n - start);
        // A block leaves what is above it, and to the left, as it is.
        let held = std::mem::take(&mut workspace.vectors);
        let block = &mut held[..(end - start) * len];
        for (to, from) in block.chunks_exact_mut(len).zip(vectors[start * n..].chunks_exact(n)) {
            to.copy_from_slice(&from[start..]);
        }
        let part = &mut out[start * n + start..];
        workspace.apply(block, &factors[start..end], false, part, [len, n], workers)?;
        workspace.vectors = held;
    }
    Ok(())
}
