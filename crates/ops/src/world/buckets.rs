//! How much of a tensor goes around at once, and what a rank sends of it. Kernels move bytes so, and costs count them.

use tonnage_core::row::{Call, Cost};
use tonnage_core::world::SMALL;
use tonnage_core::{Attrs, World};

use crate::infer;

/// Bytes that go around at once, at most.
pub const BUCKET: usize = 4 << 20;

/// How a tensor is added up on all ranks: in buckets, whose blocks each rank adds up for all. What does not fill a block for each rank is sent to
/// all as it is, and added up by all; so is a tensor that is small, since one message of it takes less time than two of a part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buckets {
    /// Elements of a bucket, a multiple of the ranks.
    pub bucket: usize,
    /// Elements in buckets.
    pub bucketed: usize,
    /// Of the others, how many are sent to all at once.
    pub gathered: usize,
}

impl Buckets {
    /// Of so many elements of `size` bytes.
    pub fn of(count: usize, size: usize, ranks: usize) -> Buckets {
        let gathered = (BUCKET / (ranks * size)).max(1).min(count);
        if count.saturating_mul(ranks * size) <= SMALL {
            return Buckets { bucket: 0, bucketed: 0, gathered };
        }
        let bucket = (BUCKET / size).min(count) / ranks * ranks;
        let bucketed = if bucket == 0 { 0 } else { count / ranks * ranks };
        Buckets { bucket, bucketed, gathered: gathered.min(count - bucketed) }
    }

    /// Elements of scratch.
    pub fn staged(&self, ranks: usize) -> usize {
        self.bucket.max(self.gathered * ranks)
    }
}

/// Elements of a block that goes to one rank at once, of so many that it gets in all.
pub fn at_once(block: usize, size: usize, ranks: usize) -> usize {
    (BUCKET / 2 / (ranks * size)).max(1).min(block)
}

/// The world of a call; `None` for one without.
pub fn world(attrs: &Attrs) -> Option<&World> {
    match attrs {
        Attrs::World(world) | Attrs::Root { world, .. } | Attrs::Blocks { world, .. } => {
            Some(world)
        }
        _ => None,
    }
}

/// Elements of the input at most, bytes of one, and the ranks.
fn figures(call: &Call) -> (u64, u64, u64) {
    let (count, size) =
        call.inputs.first().map_or((0, 1), |ty| (infer::elements(ty), ty.dtype.size() as u64));
    (count, size, world(call.attrs).map_or(1, |world| world.size() as u64))
}

/// What goes to all other ranks, of so many bytes to each in so many rounds.
fn to_others(ranks: u64, bytes: u64, rounds: u64, local: Cost) -> Cost {
    let others = ranks - 1;
    let (sent, messages) = (bytes.saturating_mul(others), rounds.saturating_mul(others));
    Cost { sent, messages, ..local }
}

/// What is sent of a sum on all ranks.
pub(super) fn of_sum(call: &Call, local: Cost) -> Cost {
    let (count, size, ranks) = figures(call);
    let Buckets { bucket, bucketed, gathered } =
        Buckets::of(count as usize, size as usize, ranks as usize);
    let (bucketed, rest) = (bucketed as u64, count - bucketed as u64);
    let elements = (bucketed / ranks).saturating_mul(2).saturating_add(rest);
    let in_buckets = bucketed.div_ceil(bucket.max(1) as u64).saturating_mul(2);
    let rounds = in_buckets.saturating_add(rest.div_ceil(gathered.max(1) as u64));
    to_others(ranks, elements.saturating_mul(size), rounds, local)
}

/// What is sent of a sum of which each rank gets a block.
pub(super) fn of_blocks(call: &Call, local: Cost) -> Cost {
    let (count, size, ranks) = figures(call);
    let block = count.div_ceil(ranks);
    let at_once = at_once(block as usize, size as usize, ranks as usize).max(1) as u64;
    to_others(ranks, block.saturating_mul(size), block.div_ceil(at_once), local)
}

/// What is sent where all others get what this rank has.
pub(super) fn of_gather(call: &Call, local: Cost) -> Cost {
    let (count, size, ranks) = figures(call);
    to_others(ranks, count.saturating_mul(size), 1, local)
}

/// What a root sends to all others: a block each, which they pass on, or all of it where that is small.
pub(super) fn of_root(call: &Call, local: Cost) -> Cost {
    let (count, size, ranks) = figures(call);
    let bytes = count.saturating_mul(size);
    let block = if bytes > SMALL as u64 { bytes / ranks } else { 0 };
    let rest = bytes - block * ranks;
    to_others(ranks, block.saturating_mul(2).saturating_add(rest), 3, local)
}
