//! Kernels of ops that read or write rows where indices say: `gather`, the scatters, updates of rows, `first_of`.
//!
//! A gather reads each row where it lies. Whatever adds rows sorts the indices first, stably, so that rows of equal indices are added up in
//! their order by one thread: the bits are the CPU's, without atomics of floats. An index that is out of range is said to the launch's guard before
//! anything is written that lives on.
//!
//! `gather` and `put` are the kernels, `order` is the sort; `claim` finds which of equal indices is the first or the last, without one.

mod claim;
mod gather;
mod order;
mod put;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, DType, TensorType};
use tonnage_ops::OpId;
use tonnage_ops::index::rows::axis;

use super::{Demand, KernelKey, Launch, OpCall, Operand, bad};
use claim::Claim;
pub use gather::{GatherKey, text as gather_text};
pub use put::{PutKey, text as put_text};

/// What an op of rows does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rows {
    /// Reads them.
    Gather,
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
        () if is(OpId::ScatterAdd) || is(OpId::AssignAddRows) => Rows::Put(Put::Add),
        () if is(OpId::ScatterUpdate) || is(OpId::AssignRows) => Rows::Put(Put::Replace),
        () if is(OpId::RowsToDense) => Rows::Put(Put::AddToZeros),
        () if is(OpId::FirstOf) => Rows::Put(Put::FirstOf),
        () => return None,
    })
}

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    rows(op).is_some()
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it is none of these, or was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    match rows(call.op) {
        Some(Rows::Gather) => gather::launch(call, axis(call.op.name, call.attrs)?),
        Some(Rows::Put(how)) => put::launch(call, how),
        None => Err(bad("an op without rows")),
    }
}

/// Workspace of one: that of the sort, or of the hash table.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let Some(Rows::Put(how)) = rows(op) else { return Bytes::ZERO };
    let (indices, table) = match how {
        Put::AddToZeros | Put::FirstOf => (call.inputs.first(), None),
        Put::Add | Put::Replace => (call.inputs.get(1), call.inputs.first()),
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

/// An operand: where its first element lies, and its layout.
fn memory<'a>(operand: &(Operand<'a>, DType)) -> Result<(u64, &'a Layout, DType)> {
    match operand {
        (Operand::Memory(address, layout), dtype) => {
            Ok((address + (layout.offset * dtype.size()) as u64, layout, *dtype))
        }
        _ => Err(bad("rows that are computed")),
    }
}

/// The sizes and steps of some axes.
fn part(
    layout: &Layout,
    axes: std::ops::Range<usize>,
) -> (SmallVec<[usize; 4]>, SmallVec<[i64; 4]>) {
    let steps = layout.strides[axes.clone()].iter().map(|step| *step as i64);
    (layout.sizes[axes].into(), steps.collect())
}

/// The unsigned type of elements that are only moved.
fn moved_type(size: usize) -> &'static str {
    match size {
        8 => "u64",
        4 => "u32",
        2 => "u16",
        _ => "u8",
    }
}
