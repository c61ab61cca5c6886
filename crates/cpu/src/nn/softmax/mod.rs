//! Kernels of `softmax`, `log_softmax` and cross-entropies, and what they share: a loop over rows with scratch for each
//! thread, and the powers of e of a row, relative to its largest element.

pub mod cross_entropy;
pub mod cross_entropy_dense;
pub mod cross_entropy_dense_grad;
pub mod cross_entropy_grad;
pub mod log;
pub mod log_grad;
pub mod plain;
pub mod plain_grad;

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, Element};
use tonnage_ops::nn::softmax::computed;

use super::float::{Float, Wide};
use super::rows::{StridedRows, bytes_of_rows, largest, sum1};
use crate::kernel::Kernel;
use crate::parallel::{cut, for_each_item, rows_at_once};
use tonnage_simd::Isa;

/// A number of rows of scratch for each thread.
fn rows_scratch(call: &Call, rows: usize, threads: usize) -> Bytes {
    let Some(x) = call.inputs.first() else { return Bytes::ZERO };
    let width = x.shape.last().and_then(|dim| dim.most()).unwrap_or(0);
    Bytes::of(bytes_of_rows(rows, width, computed(x.dtype)).saturating_mul(threads))
}

/// What one row of a result is made from: rows of the inputs, and one to work in.
struct SoftmaxRow<'a, T: Float, const N: usize> {
    inputs: [&'a [T::Compute]; N],
    work: &'a mut [T::Compute],
    out: &'a mut [T],
}

/// Runs a kernel for each row of the first output, whose type the inputs have; the first may be read in place. Asks for
/// `N + 1` rows of scratch.
fn each_row<T: Float, const N: usize>(
    k: &mut Kernel,
    run: &(dyn Fn(SoftmaxRow<'_, T, N>) + Sync),
) -> Result<()> {
    let inputs: [StridedRows<T>; N] = std::array::from_fn(|i| StridedRows::of(&k.inputs[i]));
    let width = inputs[0].width;
    let at_once = rows_at_once(width);
    let out = k.outputs[0].slice::<T>().chunks_mut((at_once * width).max(1)).enumerate();
    let slot = bytes_of_rows(N + 1, width, <T::Compute as Element>::DTYPE);
    for_each_item(k.workers, out, k.scratch, slot, &|(number, out), mut slot| {
        let work = cut::<T::Compute>(&mut slot, width);
        let mut buffers: [&mut [T::Compute]; N] =
            std::array::from_fn(|_| cut::<T::Compute>(&mut slot, width));
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let mut buffers = buffers.iter_mut();
            let inputs = inputs.each_ref().map(|rows| match buffers.next() {
                Some(buffer) => rows.row_or(number * at_once + i, out, buffer),
                None => &[],
            });
            run(SoftmaxRow { inputs, work: &mut *work, out });
        }
        Ok(())
    })
}

/// The powers of e relative to the largest element; returns that element and the sum of the powers.
#[inline(always)]
fn powers_of<I: Isa, C: Wide>(x: &[C], powers: &mut [C]) -> (C, C) {
    let most = largest(x);
    // A row of minus infinities alone has no largest element to subtract.
    let base = if most == C::LOWEST { C::ZERO } else { most };
    for (power, x) in powers.iter_mut().zip(x) {
        *power = (*x - base).exp::<I>();
    }
    (base, sum1(powers, |x| x))
}
