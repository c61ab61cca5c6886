//! What the kernels of `rfft` and `irfft` share: transforms of real rows.
//!
//! A row of an even length is transformed as one of half the length, even elements as real parts and odd ones as imaginary
//! parts; one of an odd length as it is.

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, DType};

use super::complex::{self, for_each_group, rows_of};
use super::lanes::{ReIm, ReImMut};
use super::method::FftMethod;
use super::packed_real::{Deinterleave, Interleave, PackSpectrum, UnpackSpectrum};
use super::plan::{FftPlan, FftWorkspace};
use super::tables::{roots_of_unity, two, two_bytes};
use crate::linalg::field::Field;
use crate::parallel::{cut, cut_bytes_of};
use crate::workers::Workers;
use tonnage_simd::level;

/// The length of the transform that is run.
fn run_over(n: usize) -> usize {
    if n.is_multiple_of(2) { n / 2 } else { n }
}

/// Elements of a copy of a row, or of both parts of its spectrum's bins.
fn copied(n: usize) -> usize {
    2 * (n / 2 + 1)
}

/// Bytes that a group of rows needs besides: what is transformed, what it becomes, and a copy of a row.
fn copy_bytes(n: usize, dtype: DType) -> usize {
    let method = FftMethod::of(run_over(n));
    2 * two_bytes(method.n * method.group(), dtype) + cut_bytes_of(copied(n), dtype)
}

/// The scratch of both ops.
pub fn scratch_of(n: usize, dtype: DType, threads: usize) -> Bytes {
    if n == 0 {
        return Bytes::ZERO;
    }
    let rows = complex::scratch_of(run_over(n), dtype, threads, copy_bytes(n, dtype));
    Bytes::of(two_bytes(n / 2 + 1, dtype) + rows)
}

/// What all rows share.
pub struct RealFft<'a, T> {
    n: usize,
    plan: FftPlan<'a, T>,
    /// Twiddle factors of the whole length, up to half a circle.
    twiddles: ReIm<'a, T>,
}

/// What a group of rows is worked on in.
pub struct RowGroup<'a, T> {
    from: ReImMut<'a, T>,
    made: ReImMut<'a, T>,
    copy: &'a mut [T],
    room: FftWorkspace<'a>,
}

impl<'a, T: Field> RealFft<'a, T> {
    /// Made at the front of scratch, which is cut off. All that is transformed is times a factor.
    pub fn of(
        n: usize,
        factor: f64,
        scratch: &mut &'a mut [u8],
        workers: &dyn Workers,
    ) -> Result<RealFft<'a, T>> {
        let [cos, sin] = two::<T>(scratch, n / 2 + 1);
        roots_of_unity([&mut *cos, &mut *sin], n, workers)?;
        let plan = FftPlan::of(run_over(n), T::of(factor), scratch, workers)?;
        Ok(RealFft { n, plan, twiddles: [cos, sin] })
    }

    /// Rows that are transformed at a time.
    pub fn group(&self) -> usize {
        self.plan.method.group()
    }

    fn is_even(&self) -> bool {
        self.n.is_multiple_of(2)
    }

    /// Calls `f(rows, group)` for each group of rows.
    pub fn for_each_group<R: Send>(
        &self,
        rows: impl Iterator<Item = R> + Send,
        scratch: &mut [u8],
        workers: &dyn Workers,
        f: &(dyn Fn(R, RowGroup<T>) -> Result<()> + Sync),
    ) -> Result<()> {
        let kind = (self.plan.method, T::DTYPE, copy_bytes(self.n, T::DTYPE));
        for_each_group(kind, rows, scratch, workers, &|rows, room| {
            let FftWorkspace { mut room, slots, workers } = room;
            let count = self.plan.method.n * self.group();
            let (from, made) = (two(&mut room, count), two(&mut room, count));
            let copy = cut(&mut room, copied(self.n));
            f(rows, RowGroup { from, made, copy, room: FftWorkspace { room, slots, workers } })
        })
    }

    /// From real rows, from row `first` on, to the bins of their transforms.
    pub fn forward(&self, x: &In, first: usize, to: ReImMut<T>, group: RowGroup<T>) -> Result<()> {
        let RowGroup { from: [re, im], made: [made_re, made_im], copy, room } = group;
        let (n, len, bins) = (self.n, self.plan.method.n, self.n / 2 + 1);
        let count = to[0].len() / bins;
        for row in 0..count {
            let real = rows_of(x, (first + row) * n, &mut copy[..n]);
            let (re, im) = (&mut re[row * len..][..len], &mut im[row * len..][..len]);
            if self.is_even() {
                level().run(Deinterleave { from: real, to: [re, im] });
            } else {
                re.copy_from_slice(real);
                im.fill(T::ZERO);
            }
        }
        let all = count * len;
        let made = [&mut made_re[..all], &mut made_im[..all]];
        self.plan.run([&re[..all], &im[..all]], made, room)?;
        let [to_re, to_im] = to;
        for row in 0..count {
            let from = [&made_re[row * len..][..len], &made_im[row * len..][..len]];
            let (re, im) = (&mut to_re[row * bins..][..bins], &mut to_im[row * bins..][..bins]);
            if self.is_even() {
                level().run(UnpackSpectrum {
                    from,
                    twiddles: self.twiddles,
                    to: [&mut *re, &mut *im],
                });
                // The sums that have no imaginary part have none to the bit.
                (im[0], im[len]) = (T::ZERO, T::ZERO);
            } else {
                re.copy_from_slice(&from[0][..bins]);
                im.copy_from_slice(&from[1][..bins]);
            }
        }
        Ok(())
    }

    /// From the bins of the transforms to real rows. The imaginary part of the first element, and of an even length's
    /// last one, is not looked at: a real row has none.
    pub fn inverse(
        &self,
        x: [&In; 2],
        first: usize,
        to: &mut [T],
        group: RowGroup<T>,
    ) -> Result<()> {
        let RowGroup { from: [re, im], made: [made_re, made_im], copy, room } = group;
        let (n, len, bins) = (self.n, self.plan.method.n, self.n / 2 + 1);
        let count = to.len() / n;
        let (copy_re, copy_im) = copy.split_at_mut(bins);
        for row in 0..count {
            let at = (first + row) * bins;
            let from = [rows_of(x[0], at, &mut *copy_re), rows_of(x[1], at, &mut *copy_im)];
            let (re, im) = (&mut re[row * len..][..len], &mut im[row * len..][..len]);
            if self.is_even() {
                level().run(PackSpectrum { from, twiddles: self.twiddles, to: [re, im] });
                continue;
            }
            for k in 1..bins {
                (re[k], im[k]) = (from[0][k], from[1][k]);
                (re[n - k], im[n - k]) = (from[0][k], -from[1][k]);
            }
            (re[0], im[0]) = (from[0][0], T::ZERO);
        }
        let all = count * len;
        // The inverse transform is the forward one with real and imaginary parts exchanged.
        let made = [&mut made_im[..all], &mut made_re[..all]];
        self.plan.run([&im[..all], &re[..all]], made, room)?;
        for (row, to) in to.chunks_exact_mut(n).enumerate() {
            let from = [&made_re[row * len..][..len], &made_im[row * len..][..len]];
            match self.is_even() {
                true => level().run(Interleave { from, to }),
                false => to.copy_from_slice(from[0]),
            }
        }
        Ok(())
    }
}
