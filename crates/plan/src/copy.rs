//! Values that a loop starts from: a copy of another value. `looping` asks for them where a
//! carried value has to be apart from what it starts as.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};

use crate::place::Planner;
use crate::plan::{Run, StepMemory};
use crate::tile;

/// A value that starts as a copy of another; a recipe is written straight to where it goes. One that may
/// grow has room for more than it starts with.
pub(crate) fn value(planner: &mut Planner, node: &Node, from: ValueId, to: ValueId) -> Result<()> {
    let placed = planner.place(from)?.clone();
    planner.fresh(node, to)?;
    let dtype = planner.graph().ty(from).dtype;
    let run = tile::copy(dtype, &placed, &planner.target().tile_limits())
        .ok_or_else(|| tile::no_layout(node))?;
    let (reads, writes) = (SmallVec::from_iter([from]), SmallVec::from_iter([to]));
    let run = Run::Tile(Arc::new(run));
    planner.push(node, run, StepMemory::Allocates, Bytes::ZERO, reads, writes);
    Ok(())
}
