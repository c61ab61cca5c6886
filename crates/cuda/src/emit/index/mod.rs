//! Kernels of ops that read or write rows where indices say: `gather`, the scatters, updates of rows, `first_of`, parts that start somewhere.
//!
//! A gather reads each row where it lies. Whatever adds rows sorts the indices first, stably, so that rows of equal indices are added up in
//! their order by one thread: the bits are the CPU's, without atomics of floats. An index that is out of range is said to the launch's guard before
//! anything is written that lives on.
//!
//! `gather`, `pick` and `put` are the kernels, `order` is the sort, of indices and of elements (`sort`); `claim` finds which of equal indices is the first or the last, without one.

mod claim;
mod gather;
mod order;
mod pick;
mod put;
mod sort;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, DType, TensorType};
use tonnage_ops::OpId;
use tonnage_ops::index::rows::axis;

use super::{Demand, KernelKey, Launch, OpCall, Operand, bad, memory, moved_type};
use claim::Claim;
pub use gather::{GatherKey, text as gather_text};
use pick::Pick;
pub use pick::{PickKey, text as pick_text};
pub use put::{PutKey, text as put_text};
use sort::Sorted;
pub use sort::{SortKey, text as sort_text};

/// What an op of rows does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Reads them.
    Gather,
    /// Reads or puts what indices along several axes name.
    Pick(Pick),
    /// Puts them into a table.
    Put(Put),
}

/// How rows are put.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Put {
    /// Added to those of the table.
    Add,
    /// In their place; of equal indices the last one's.
    Replace,
    /// Added to zeros.
    AddToZeros,
    /// The larger one of each element.
    Largest,
    /// The smaller one of each element.
    Least,
    /// No rows: the first position of each index.
    FirstOf,
}

impl Put {
    /// Whether one of equal indices stays, so that their order does not matter.
    fn claims(self) -> bool {
        matches!(self, Put::Replace | Put::FirstOf)
    }
}

fn rows(op: &OpDef) -> Option<Rows> {
    let is = |id: OpId| op.id == id as u16;
    Some(match () {
        () if is(OpId::Gather) => Rows::Gather,
        () if is(OpId::TakeAlongAxis) => Rows::Pick(Pick::Along),
        () if is(OpId::GatherNd) => Rows::Pick(Pick::Nd),
        () if is(OpId::DynamicSlice) => Rows::Pick(Pick::Slice),
        () if is(OpId::DynamicUpdate) => Rows::Pick(Pick::Update),
        () if is(OpId::ScatterAdd) || is(OpId::AssignAddRows) => Rows::Put(Put::Add),
        () if is(OpId::ScatterUpdate) || is(OpId::AssignRows) => Rows::Put(Put::Replace),
        () if is(OpId::ScatterNdAdd) => Rows::Put(Put::Add),
        () if is(OpId::ScatterNdUpdate) => Rows::Put(Put::Replace),
        () if is(OpId::ScatterNdMax) => Rows::Put(Put::Largest),
        () if is(OpId::ScatterNdMin) => Rows::Put(Put::Least),
        () if is(OpId::PutAlongAxis) => Rows::Put(Put::AddToZeros),
        () if is(OpId::RowsToDense) => Rows::Put(Put::AddToZeros),
        () if is(OpId::FirstOf) => Rows::Put(Put::FirstOf),
        () => return None,
    })
}

/// Whether an op has vectors of indices.
fn is_nd(op: &OpDef) -> bool {
    [OpId::ScatterNdAdd, OpId::ScatterNdUpdate, OpId::ScatterNdMax, OpId::ScatterNdMin]
        .iter()
        .any(|id| op.id == *id as u16)
}

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    rows(op).is_some() || Sorted::of(op).is_some()
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it is none of these, or was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    if let Some(sorted) = Sorted::of(call.op) {
        return sort::launch(call, sorted);
    }
    match rows(call.op) {
        Some(Rows::Gather) => gather::launch(call, axis(call.op.name, call.attrs)?),
        Some(Rows::Pick(how)) => pick::launch(call, how),
        Some(Rows::Put(how)) => put::launch(call, how),
        None => Err(bad("an op without rows")),
    }
}

/// Workspace of one: that of the sort, or of the hash table.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let Some(Rows::Put(how)) = rows(op) else { return sort::scratch(op, call) };
    if is_nd(op) || op.id == OpId::PutAlongAxis as u16 {
        let Some((count, places)) = put::counts(call, op) else { return Bytes::ZERO };
        return match how.claims() {
            true => Claim::of(count as u64, DType::I64, places as u64).scratch(),
            false => order::scratch(count),
        };
    }
    let (indices, table) = match how {
        Put::AddToZeros | Put::FirstOf => (call.inputs.first(), None),
        _ => (call.inputs.get(1), call.inputs.first()),
    };
    let sizes = |ty: &TensorType| ty.shape.most();
    let Some((sizes_of, index)) = indices.and_then(|ty| Some((sizes(ty)?, ty.dtype))) else {
        return Bytes::ZERO;
    };
    let count = sizes_of.iter().product();
    if !how.claims() {
        return order::scratch(count);
    }
    let axis = axis(op.name, call.attrs).unwrap_or(0);
    let bound = table.and_then(|ty| sizes(ty)?.get(axis).copied());
    Claim::of(count as u64, index, bound.map_or(i64::MAX as u64, |n| n as u64)).scratch()
}

/// The sizes and steps of some axes.
fn part(
    layout: &Layout,
    axes: std::ops::Range<usize>,
) -> (SmallVec<[usize; 4]>, SmallVec<[i64; 4]>) {
    let steps = layout.strides[axes.clone()].iter().map(|step| *step as i64);
    (layout.sizes[axes].into(), steps.collect())
}
