//! Values that a loop starts from: a copy of another value. Part of [`Planner`]; `looping` asks for them where a
//! carried value has to be apart from what it starts as.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};
use tonnage_core::tile::TileProgram;

use crate::place::{Planner, no_layout};
use crate::plan::{Run, StepMemory};
use crate::tile;

impl Planner<'_> {
    /// A value that starts as a copy of another; a recipe is written straight to where it goes. One that may
    /// grow has room for more than it starts with.
    pub fn copy_value(&mut self, node: &Node, from: ValueId, to: ValueId) -> Result<()> {
        let placed = self.place(from)?.clone();
        self.fresh(node, to)?;
        let dtype = self.graph.ty(from).dtype;
        let mut program = TileProgram::loading(&[dtype]);
        program.store(0, dtype);
        let domain = placed.layout.sizes.clone();
        let run = tile::ready(&program, domain, &[&placed], &self.options.target.tile_limits())
            .ok_or_else(|| no_layout(node))?;
        let (reads, writes) = (SmallVec::from_iter([from]), SmallVec::from_iter([to]));
        let run = Run::Tile(Arc::new(run));
        self.push(node, run, StepMemory::Allocates, Bytes::ZERO, reads, writes);
        Ok(())
    }
}
