//! Rows of tables' gradients, of which ranks may have different numbers, as of a last batch that does not split evenly: a rank that has fewer adds rows that change nothing.
//!
//! Op by op ranks tell each other how many they have as they come to a sum. A function is planned for known numbers: its trace notes those of this rank, ranks compare them before
//! each call, and one that has fewer than another traces the function once more, for as many as that.
//!
//! Decision: `docs/decisions/uneven-rows.md`.

use std::cell::RefCell;

use tonnage_core::attrs::PadMode;
use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, World};

use crate::tensor::Tensor;
use crate::trace;

/// The number that stands for a row that is added.
const ADDED: i64 = -1;

/// What a trace adds up over ranks.
#[derive(Debug, Clone, Default)]
pub(crate) struct SummedRows {
    world: Option<World>,
    /// The rows of this rank, for each sum in its order.
    counts: Vec<usize>,
}

/// For each sum of a trace the rows of the rank that has most; nothing where this rank has as many.
pub(crate) type MostRows = Vec<usize>;

thread_local! {
    /// What is traced for on this thread.
    static MOST: RefCell<MostRows> = const { RefCell::new(Vec::new()) };
}

/// What this thread traces for now.
pub(crate) fn traced_for() -> MostRows {
    MOST.with_borrow(Clone::clone)
}

/// Runs `f`, which traces for so many rows.
pub(crate) fn with_most<R>(most: MostRows, f: impl FnOnce() -> R) -> R {
    struct Leave(MostRows);
    impl Drop for Leave {
        fn drop(&mut self) {
            MOST.set(std::mem::take(&mut self.0));
        }
    }
    let _leave = Leave(MOST.replace(most));
    f()
}

impl SummedRows {
    /// One more sum, of `own` rows of this rank; the rows that it is planned for.
    fn note(&mut self, world: &World, own: usize) -> usize {
        self.world.get_or_insert_with(|| world.clone());
        let number = self.counts.len();
        self.counts.push(own);
        // A function that is traced inside of this one counts its own sums, which may have more rows.
        MOST.with_borrow(|most| most.get(number).map_or(own, |most| own.max(*most)))
    }

    /// What to trace for instead, where other ranks have more rows than this one. All ranks that sum rows ask.
    pub fn compared(&self) -> MostRows {
        let Some(world) = &self.world else { return MostRows::new() };
        let most = most(world, &self.counts);
        if most == self.counts { MostRows::new() } else { most }
    }

    /// That all ranks have as many, where nothing can be traced instead.
    pub fn check(&self) -> Result<()> {
        let Some(world) = &self.world else { return Ok(()) };
        let own: Vec<u8> = bytes(&self.counts);
        let said = world.gather(OP, &own);
        match said.iter().all(|other| *other == own) {
            true => Ok(()),
            false => Err(different()),
        }
    }
}

const OP: &str = "sum_gradients";

fn bytes(counts: &[usize]) -> Vec<u8> {
    counts.iter().flat_map(|count| (*count as u64).to_le_bytes()).collect()
}

/// For each number the most that a rank has.
fn most(world: &World, own: &[usize]) -> Vec<usize> {
    let said = world.gather(OP, &bytes(own));
    let of = |number: usize, said: &[u8]| {
        let count = said.get(8 * number..8 * number + 8).and_then(|bytes| bytes.try_into().ok());
        count.map_or(0, |bytes| u64::from_le_bytes(bytes) as usize)
    };
    (0..own.len()).map(|i| said.iter().map(|said| of(i, said)).max().unwrap_or(0)).collect()
}

fn different() -> tonnage_core::Error {
    let what = "ranks have different numbers of rows of a table's gradient";
    bad_argument(OP, what, "call the function itself, which is traced for that")
}

/// The rows of all ranks in rank order: their indices, and what is added to each.
pub(super) fn gathered(world: &World, indices: Tensor, values: Tensor) -> Result<(Tensor, Tensor)> {
    let open = || {
        let what = format!("rows of a gradient, {}", indices.ty());
        bad_argument(OP, what, "let each rank have a known number of rows")
    };
    let own = indices.shape().first().and_then(Dim::known).ok_or_else(open)?;
    let added = match trace::current() {
        Some(trace) => trace.summed_rows(|rows| rows.note(world, own)),
        None => most(world, &[own])[0],
    } - own;
    let (indices, values) = match added {
        0 => (indices, values),
        _ => {
            let mut widths = vec![[0; 2]; values.rank()];
            widths[0] = [0, added];
            // What is added to 0 of either sign leaves it as it is.
            let nothing = PadMode::Constant((-0.0).into());
            let indices = indices.pad(&[[0, added]], PadMode::Constant(ADDED.into()))?;
            (indices, values.pad(&widths, nothing)?)
        }
    };
    let (indices, values) = (indices.all_gather(world)?, values.all_gather(world)?);
    if own + added == 0 {
        return Ok((indices, values));
    }
    // An added row stands for one that another rank has: no other row is touched by it.
    let is_added = indices.less(0)?;
    let another = indices.max(0)?;
    Ok((is_added.where_(&another, &indices)?, values))
}
