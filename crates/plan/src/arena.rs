//! One arena for all buffers: their offsets, and the most that lives at once; and the same of the spill file, which is packed
//! as the arena is.
//!
//! The invariant: a buffer that leaves the arena as an output starts on a page, so that it can be cut out.

use tonnage_core::bytes::{Bytes, PAGE};
use tonnage_core::error::Result;

use crate::offsets::{self, Effort, Item};
use crate::plan::{BufferPlan, Space};
use crate::sort;

/// When a buffer lives, and what it takes.
fn item(buffer: &BufferPlan) -> Item {
    let BufferPlan { first, last, bytes, .. } = buffer;
    Item { lower: *first as u32, upper: *last as u32 + 1, size: bytes.get() }
}

/// The largest sum of the buffers of a space that live together.
pub(crate) fn bound(all: &[BufferPlan], space: Space) -> Result<Bytes> {
    let of = all.iter().filter(|b| b.space == space);
    let items: Vec<Item> = of.map(item).collect();
    Ok(Bytes::new(offsets::bound(&items)?))
}

/// Offsets for the buffers of a space; the largest sum that lives together in it.
pub(crate) fn pack_space(all: &mut [BufferPlan], space: Space) -> Result<Bytes> {
    let mut buffers: Vec<&mut BufferPlan> = all.iter_mut().filter(|b| b.space == space).collect();
    let items: Vec<Item> = buffers.iter().map(|b| item(b)).collect();
    let mut packing = offsets::pack(&items, Effort::PLAN, &mut || false)?;
    let bound = Bytes::new(packing.bound);
    let aligned = buffers
        .iter()
        .zip(&packing.offsets)
        .all(|(b, offset)| !b.outlives_call || offset.is_multiple_of(PAGE));
    if !aligned {
        // Results are whole pages and live to the end: on the floor, the longest lowest, each starts on a page. (Counting
        // everything in pages would do that too, but leaves parts of pages that are never used.)
        let mut floor: Vec<usize> =
            (0..buffers.len()).filter(|i| buffers[*i].outlives_call).collect();
        sort::by_key(&mut floor, |i| buffers[*i].first);
        packing = offsets::pack_on_floor(&items, &floor)?;
    }
    for (buffer, offset) in buffers.iter_mut().zip(packing.offsets) {
        buffer.offset = Bytes::new(offset);
    }
    Ok(bound)
}

/// Where the last buffer of a space ends.
pub(crate) fn end_of(buffers: &[BufferPlan], space: Space) -> Bytes {
    let ends = buffers.iter().filter(|b| b.space == space).map(|b| b.offset + b.bytes);
    ends.max().unwrap_or(Bytes::ZERO)
}
