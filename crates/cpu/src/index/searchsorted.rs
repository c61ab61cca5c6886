//! The kernel of `searchsorted`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_ops::index::argsort::counts_in_i32;

use super::order::{Ordered, with_ordered};
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::GRAIN;
use crate::strided::{self, Positions};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`SEARCHSORTED`](tonnage_ops::index::searchsorted::SEARCHSORTED).
pub static SEARCHSORTED: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Right(right) = *k.attrs else { return Ok(()) };
    let (sorted, values) = (&k.inputs[0], &k.inputs[1]);
    let m = k.outputs[0].sizes.last().copied().unwrap_or(0);
    counts_in_i32("searchsorted", sorted.layout.sizes.last().copied().unwrap_or(0))?;
    let out = k.outputs[0].slice::<i32>();
    with_ordered!(sorted.dtype, T, P => {
        let _: Option<P> = None;
        search::<T>(sorted, values, m, right, out, k.workers)
    })
}

fn search<T: Ordered>(
    sorted: &In,
    values: &In,
    m: usize,
    right: bool,
    out: &mut [i32],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, last) = (&sorted.layout, sorted.layout.sizes.len() - 1);
    let (n, step) = (layout.sizes[last], layout.strides[last]);
    let outer = strided::axes(layout, 0..last);
    let (starts, data) = (Positions::of(outer), sorted.slice::<T>());
    let (places, wanted) = (Positions::of(&values.layout), values.slice::<T>());
    for_each_chunk(workers, out, GRAIN / 16, &|chunk, out| {
        for (i, to) in out.iter_mut().enumerate() {
            let number = chunk * (GRAIN / 16) + i;
            let start = starts.at(number / m) as isize;
            let value = wanted[places.at(number)].level_key();
            let (mut low, mut high) = (0, n);
            while low < high {
                let middle = low + (high - low) / 2;
                let key = data[(start + middle as isize * step) as usize].level_key();
                match key < value || right && key == value {
                    true => low = middle + 1,
                    false => high = middle,
                }
            }
            *to = low as i32;
        }
    })
}
