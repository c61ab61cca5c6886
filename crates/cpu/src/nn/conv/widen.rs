//! Copies of pixels and channels into packing space, in the dtype that products are computed in.

use crate::linalg::gemm::{Compute, Reads};

/// Copies, widening where it has to.
#[inline(always)]
pub(super) fn copy<C: Compute, T: Reads<C>>(from: &[T], to: &mut [C]) {
    /// A vector or two at every level.
    const RUN: usize = 16;
    if let Some(from) = T::as_computed(from) {
        return to.copy_from_slice(from);
    }
    let len = from.len().min(to.len());
    let mut put = |at: usize| {
        if let (Some(from), Some(to)) =
            (from[at..].first_chunk::<RUN>(), to[at..].first_chunk_mut::<RUN>())
        {
            for i in 0..RUN {
                to[i] = from[i].read();
            }
        }
    };
    if len < RUN {
        return to.iter_mut().zip(from).for_each(|(to, from)| *to = from.read());
    }
    for at in (0..len - RUN + 1).step_by(RUN) {
        put(at);
    }
    // What is left, with some of what is there already.
    put(len - RUN);
}
