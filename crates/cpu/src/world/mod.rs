//! Kernels between ranks: what is sent, and what is added here, in rank order.
//!
//! An engine moves bytes in buckets. The bucket is all that a sum takes beside its result, and is the op's scratch: block `r` of a bucket goes to rank
//! `r`, which adds up the blocks that come to it, and sends the sum to all.
//!
//! Once a rank has begun it goes on to the end, since the others wait: only what comes before can be stopped.

pub mod all_gather;
pub mod broadcast;
pub mod own_block;
pub mod reduce;
pub mod reduce_scatter;

use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In};
use tonnage_core::{Call, Element};
use tonnage_ops::world::buckets::world;

use crate::number::Number;
use crate::parallel::GRAIN;
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// Elements of the input at most, bytes of one, and the ranks.
fn figures(call: &Call) -> Option<(usize, usize, usize)> {
    let ty = call.inputs.first()?;
    let count = ty.shape.most()?.iter().product();
    Some((count, ty.dtype.size(), world(call.attrs)?.size()))
}

/// Brings an input to where the result is, unless it is there.
fn copy_in<T: Element>(x: &In, out: &mut [T], workers: &dyn Workers) -> Result<()> {
    if let Data::Output(_) = x.data {
        return Ok(());
    }
    let data = x.slice::<T>();
    for_each_chunk(workers, out, GRAIN, &|chunk, out| {
        strided::copy(&x.layout, data, chunk * GRAIN, out);
    })
}

/// The sum of blocks that came from the ranks, from 0 on and in their order.
fn sum_blocks<T: Number>(blocks: &[T], out: &mut [T], workers: &dyn Workers) -> Result<()> {
    let length = out.len();
    for_each_chunk(&Unstopped(workers), out, GRAIN, &|chunk, out| {
        out.fill(T::ZERO);
        for block in blocks.chunks_exact(length) {
            let block = &block[chunk * GRAIN..][..out.len()];
            out.iter_mut().zip(block).for_each(|(sum, x)| *sum = sum.plus(*x));
        }
    })
}

/// The same threads, which are not stopped.
struct Unstopped<'a>(&'a dyn Workers);

impl Workers for Unstopped<'_> {
    fn threads(&self) -> usize {
        self.0.threads()
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        self.0.join(a, b);
    }
}
