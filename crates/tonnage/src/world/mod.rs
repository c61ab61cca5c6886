//! Several processes that work together: the ranks of a job, started by `mpirun` or the like. What hand-written loops need of them stands here; collective ops are
//! methods of [`Tensor`], and [`Fit::across`](crate::train::Fit::across) trains on all of them.
//!
//! ```
//! let world = tonnage::world::join()?;
//! println!("rank {} of {}", world.rank(), world.size());
//! # assert_eq!((world.rank(), world.size()), (0, 1));
//! # Ok::<(), tonnage::Error>(())
//! ```

pub(crate) mod rows;

use std::cell::RefCell;
use std::ops::Range;

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result};
use tonnage_runtime::processor::Processor;
use tonnage_runtime::random::Replica;
pub use tonnage_world::{
    Engine, Found, World, engine_memory, find, join, set_interrupt, started_ranks,
};

use crate::make;
use crate::ops::{Elementwise, concat};
use crate::tape::{Gradient, IndexedSlices};
use crate::tensor::Tensor;
use crate::trace;

/// The part of `length` that belongs to one of several ranks: parts follow each other in rank order, and their lengths differ by at most one. Rows of a batch are
/// split so, and tensors of a checkpoint.
///
/// ```
/// use tonnage::world::part_of;
/// let parts: Vec<_> = (0..3).map(|rank| part_of(5, rank, 3)).collect();
/// assert_eq!(parts, [0..2, 2..4, 4..5]);
/// ```
pub fn part_of(length: usize, rank: usize, ranks: usize) -> Range<usize> {
    let (each, longer) = (length / ranks.max(1), length % ranks.max(1));
    let start = |rank: usize| rank * each + rank.min(longer);
    start(rank)..start(rank + 1)
}

/// Runs `f` as one of the replicas of a program, one on each rank: each draws random numbers of its own, those that one process would draw which goes through the parts of
/// all ranks. While a function is traced, its calls draw so from then on; first values of variables are the same on all ranks.
pub fn as_replica<R>(world: &World, f: impl FnOnce() -> R) -> R {
    let replica = Replica { number: world.rank() as u64, of: world.size() as u64 };
    among(world, || match trace::current() {
        Some(trace) => {
            trace.draw_as(replica);
            f()
        }
        None => replica.run(f),
    })
}

thread_local! {
    /// The ranks that run what this thread runs, each on its own rows.
    static REPLICAS: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// The ranks of which each runs this on rows of its own, as in [`as_replica`] and in the forward pass of [`Fit`](crate::train::Fit); `None` where there is
/// one. A layer that keeps something from batch to batch asks, so that all ranks keep the same.
///
/// ```
/// use tonnage::world;
/// let world = world::join()?;
/// assert!(world::as_replica(&world, world::replicas).is_none()); // one rank
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn replicas() -> Option<World> {
    REPLICAS.with_borrow(Clone::clone)
}

/// Runs `f` as what each of the ranks runs on rows of its own.
pub(crate) fn among<R>(world: &World, f: impl FnOnce() -> R) -> R {
    struct Leave(Option<World>);
    impl Drop for Leave {
        fn drop(&mut self) {
            REPLICAS.set(self.0.take());
        }
    }
    let _leave = Leave(REPLICAS.replace((world.size() > 1).then(|| world.clone())));
    f()
}

/// A running mean in which the old has a share of `momentum`, after the batch of each of the ranks that run this, one after another in rank order: what one process
/// comes to that sees them all.
pub(crate) fn running_mean(old: Tensor, own: Tensor, momentum: f64) -> Result<Tensor> {
    /// Ranks up to which each batch is a step of its own.
    const FEW: usize = 64;
    let follow = |old: Tensor, new: Tensor| new.sub(&old)?.fma(1.0 - momentum, &old);
    let Some(world) = replicas() else { return follow(old, own) };
    let (ranks, length) = (world.size(), own.ty().shape.elements().known().unwrap_or(0));
    let all = own.reshape([1, length])?.all_gather(&world)?;
    if ranks <= FEW {
        let of =
            |rank: usize| all.slice(&[(rank as i64..rank as i64 + 1).into()])?.reshape([length]);
        return (0..ranks).try_fold(old, |old, rank| follow(old, of(rank)?));
    }
    // The same in one sum.
    let share = |rank: usize| (1.0 - momentum) * momentum.powi((ranks - 1 - rank) as i32);
    let shares = make::tensor((0..ranks).map(share).collect::<Vec<f64>>())?.cast(own.dtype())?;
    let new = shares.reshape([1, ranks])?.matmul(&all)?.reshape([length])?;
    old.mul(momentum.powi(ranks as i32))?.add(&new)
}

/// What rank 0 has, on all ranks, for the first value of a variable. A recipe that is the same on all ranks stays one, and takes nothing.
///
/// # Errors
/// Where the tensor has no values.
#[track_caller]
pub fn first_value(world: &World, value: Tensor) -> Result<Tensor> {
    if world.size() == 1 || trace::current().is_some() {
        return Ok(value);
    }
    let array = value.array("first_value")?;
    let recipe = array.as_recipe().map(|recipe| format!("{recipe:?}")).unwrap_or_default();
    // A tensor in memory has no text, and is sent.
    let own = hash(&recipe).to_le_bytes();
    let is_same = world.gather("first_value", &own).iter().all(|other| *other == own);
    match is_same && array.as_recipe().is_some() {
        true => Ok(value),
        false => value.broadcast(world, 0),
    }
}

/// Gradients of all ranks, added up in rank order: those that are rows of a table stay rows, of which ranks may have different numbers.
///
/// ```
/// use tonnage::{Gradient, GradientTape, Variable, tensor, world};
/// let (world, w) = (world::join()?, Variable::new("w", tensor([3.0f32])?)?);
/// let mut tape = GradientTape::new();
/// let loss = w.read()?.square()?.sum_all()?;
/// # use tonnage::Elementwise;
/// let own = vec![tape.gradient(&loss, &w)?];
/// let sums = world::sum_gradients(&world, own)?;
/// assert_eq!(sums[0].tensor()?.to_vec::<f32>()?, [6.0]); // one rank
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the number of rows is not known.
#[track_caller]
pub fn sum_gradients(world: &World, own: Vec<Gradient>) -> Result<Vec<Gradient>> {
    if world.size() == 1 {
        return Ok(own);
    }
    let mut sums = Vec::with_capacity(own.len());
    // The backward pass comes to the gradient of the last variable first.
    for own in own.into_iter().rev() {
        sums.push(match own {
            Gradient::Unconnected => Gradient::Unconnected,
            Gradient::Dense(own) => Gradient::Dense(own.all_reduce(world)?),
            Gradient::Rows(rows) => match rows.flat()? {
                Some((indices, values)) => {
                    let all = rows::gathered(world, indices, values)?;
                    Gradient::Rows(IndexedSlices::from_parts(rows.ty().clone(), vec![all]))
                }
                None => Gradient::Rows(rows),
            },
        });
    }
    sums.reverse();
    Ok(sums)
}

/// The tensors of all ranks, joined along an axis in rank order; their lengths along it may differ. While a function is traced, they may not.
///
/// ```
/// use tonnage::{tensor, world};
/// let world = world::join()?;
/// let all = world::gather(&world, &tensor([[1, 2], [3, 4]])?, 1)?;
/// assert_eq!(all.to_vec::<i32>()?, [1, 2, 3, 4]); // one rank
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where there is no such axis, or other lengths are not the same on all ranks.
#[track_caller]
pub fn gather(world: &World, own: &Tensor, axis: i64) -> Result<Tensor> {
    let rank = own.rank() as i64;
    if !(-rank..rank).contains(&axis) {
        let what = format!("the axis {axis} of {}", own.ty());
        return Err(bad_argument("gather", what, "name an axis of it"));
    }
    if world.size() == 1 {
        return Ok(own.clone());
    }
    let axis = axis.rem_euclid(rank);
    let mut order: Vec<i64> = (0..rank).collect();
    order.swap(0, axis as usize);
    let first = own.transpose(&order)?;
    let lengths = lengths_of_ranks(world, &first)?;
    let most = lengths.iter().copied().max().unwrap_or(0);
    let short = most - lengths[world.rank()];
    let mut widths = vec![[0; 2]; rank as usize];
    widths[0] = [0, short];
    let filled = match short {
        0 => first,
        _ => first.pad(&widths, tonnage_core::attrs::PadMode::Constant(0.into()))?,
    };
    let all = filled.all_gather(world)?;
    if lengths.iter().all(|length| *length == most) {
        return all.transpose(&order);
    }
    let parts = lengths.iter().enumerate().map(|(rank, length)| {
        let start = (rank * most) as i64;
        all.slice(&[(start..start + *length as i64).into()])
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    concat(&parts.iter().collect::<Vec<_>>(), 0)?.transpose(&order)
}

/// The first length of each rank's tensor, of which all others are the same.
fn lengths_of_ranks(world: &World, own: &Tensor) -> Result<Vec<usize>> {
    let open = || {
        let what = format!("{} whose lengths are open", own.ty());
        bad_argument("gather", what, "gather tensors of known lengths")
    };
    let sizes = own.shape().iter().map(Dim::known).collect::<Option<Vec<_>>>().ok_or_else(open)?;
    if trace::current().is_some() {
        return Ok(vec![sizes[0]; world.size()]);
    }
    let rest = hash(&format!("{:?} {:?}", own.dtype(), &sizes[1..]));
    let mut own_bytes = (sizes[0] as u64).to_le_bytes().to_vec();
    own_bytes.extend(rest.to_le_bytes());
    let all = world.gather("gather", &own_bytes);
    if let Some(rank) = all.iter().position(|said| said[8..] != own_bytes[8..]) {
        let what = format!("{}, which differs from what rank {rank} gives", own.ty());
        return Err(bad_argument("gather", what, "let only the gathered axis differ"));
    }
    let lengths = all.iter().filter_map(|said| said[..8].try_into().ok());
    Ok(lengths.map(|bytes| u64::from_le_bytes(bytes) as usize).collect())
}

/// Whether all ranks say so.
pub fn all(world: &World, op: &'static str, own: bool) -> bool {
    match world.size() {
        1 => own,
        _ => world.gather(op, &[u8::from(own)]).iter().all(|said| said == &[1]),
    }
}

/// Whether no lower rank says the same: of ranks that name the same file, one writes it.
pub fn is_first(world: &World, op: &'static str, own: &str) -> bool {
    let own = hash(own).to_le_bytes();
    let said = world.gather(op, &own);
    said.iter().position(|other| *other == own) == Some(world.rank())
}

/// That all ranks have the same, before they go on: names of things, and what each is here. The version of Tonnage and the instruction set, which bits depend on, are
/// always among them.
///
/// ```
/// let world = tonnage::world::join()?;
/// tonnage::world::agree(&world, "train", &[("batch size", "32".to_string())])?;
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// On all ranks, where one differs: the error names it, and what it differs in.
pub fn agree(world: &World, op: &'static str, own: &[(&str, String)]) -> Result<()> {
    if world.size() == 1 {
        return Ok(());
    }
    let own: Vec<_> = always().iter().chain(own).map(|(name, text)| (*name, hash(text))).collect();
    let bytes: Vec<u8> = own.iter().flat_map(|(_, hash)| hash.to_le_bytes()).collect();
    match first_difference(&world.gather(op, &bytes)) {
        None => Ok(()),
        Some((which, rank)) => {
            let what = format!("the {} of rank {rank} is not that of rank 0", own[which].0);
            Err(bad_argument(op, what, "start all ranks with the same program and options"))
        }
    }
}

/// What ranks compare whatever they are about to do: bits depend on both.
fn always() -> [(&'static str, String); 2] {
    let processor = Processor::of_this_machine();
    let instructions = format!("{} {:?}", processor.vectors, processor.matrix_unit);
    [
        ("version of Tonnage", env!("CARGO_PKG_VERSION").to_string()),
        ("instruction set", instructions),
    ]
}

/// The first of the hashes, 8 bytes each, in which a rank differs from rank 0, and that rank.
fn first_difference(said: &[Vec<u8>]) -> Option<(usize, usize)> {
    let of = |rank: usize, which: usize| said[rank].get(8 * which..8 * which + 8);
    let count = said.first()?.len() / 8;
    let differs = |which: usize| (0..said.len()).find(|rank| of(*rank, which) != of(0, which));
    (0..count).find_map(|which| Some((which, differs(which)?)))
}

/// FNV-1a.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_thing_that_differs_is_named_with_the_rank() {
        // Version, instruction set, a plan: what each rank says of them.
        let said = |all: &[[u64; 3]]| -> Vec<Vec<u8>> {
            all.iter().map(|own| own.iter().flat_map(|hash| hash.to_le_bytes()).collect()).collect()
        };
        for (all, expected) in [
            (vec![[1, 2, 3]; 4], None),
            (vec![[1, 2, 3], [1, 2, 3], [9, 2, 3]], Some((0, 2))),
            (vec![[1, 2, 3], [1, 2, 9], [1, 9, 3]], Some((1, 2))),
            (vec![[1, 2, 3], [1, 2, 3 << 56]], Some((2, 1))),
            (vec![[9, 2, 3], [1, 2, 3], [1, 2, 3]], Some((0, 1))),
        ] {
            assert_eq!(first_difference(&said(&all)), expected, "{all:?}");
        }
    }

    #[test]
    fn versions_and_instruction_sets_are_told_apart() {
        let said = |version: &str, instructions: &str| -> Vec<u8> {
            let [mut first, mut second] = always();
            first.1 += version;
            second.1 += instructions;
            [first, second].iter().flat_map(|(_, text)| hash(text).to_le_bytes()).collect()
        };
        for (version, instructions, expected) in
            [("", "", None), ("1", "", Some((0, 1))), ("", " amx", Some((1, 1)))]
        {
            assert_eq!(first_difference(&[said("", ""), said(version, instructions)]), expected);
        }
        assert_eq!(always().map(|(name, _)| name), ["version of Tonnage", "instruction set"]);
    }

    #[test]
    fn parts_follow_each_other_and_differ_by_at_most_one() {
        for (length, ranks) in (0..40).flat_map(|length| (1..9).map(move |ranks| (length, ranks))) {
            let parts: Vec<_> = (0..ranks).map(|rank| part_of(length, rank, ranks)).collect();
            assert_eq!((parts[0].start, parts[ranks - 1].end), (0, length));
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
            let lengths = || parts.iter().map(ExactSizeIterator::len);
            assert!(lengths().max() <= lengths().min().map(|least| least + 1));
        }
    }
}
