//! The kernel of `bitcast`: bits are copied as they are.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_core::lent::In;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`BITCAST`](tonnage_ops::shape::bitcast::BITCAST).
pub static BITCAST: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    with_width!(x.dtype, T => copy::<T>(x, out.slice(), k.workers))
}

fn copy<T: Element>(x: &In, out: &mut [T], workers: &dyn Workers) -> Result<()> {
    let data = x.slice::<T>();
    for_each_chunk(workers, out, GRAIN, &|chunk, out| {
        strided::copy(&x.layout, data, chunk * GRAIN, out);
    })
}
