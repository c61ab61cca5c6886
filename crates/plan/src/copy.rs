//! Values that a region starts from: a copy of another value, or zeros. Part of [`Planner`]; `region` asks for
//! them where a carried value has to be apart from what it starts as.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};
use tonnage_core::recipe::Recipe;
use tonnage_core::tile::TileProgram;

use crate::place::{Planner, most, no_layout};
use crate::plan::{Run, StepMemory, TileRun};
use crate::tile;

impl Planner<'_> {
    /// A value that starts as a copy of another.
    pub fn copy_value(&mut self, node: &Node, from: ValueId, to: ValueId) -> Result<()> {
        let placed = self.place(from)?.clone();
        let dtype = self.graph.ty(from).dtype;
        let mut program = TileProgram::loading(&[dtype]);
        program.store(0, dtype);
        let domain = placed.layout.sizes.clone();
        let run = tile::ready(&program, domain, &[&placed]).ok_or_else(|| no_layout(node))?;
        self.fill_value(node, run, SmallVec::from_iter([from]), to)
    }

    /// A value that starts as zeros.
    pub fn zero_value(&mut self, node: &Node, to: ValueId) -> Result<()> {
        let ty = self.graph.ty(to);
        let sizes = most(ty, node.op.name)?;
        let zeros = Recipe::fill(tonnage_core::Scalar::Int(0), ty.dtype, sizes);
        self.fill_value(node, tile::materialize(&zeros), SmallVec::new(), to)
    }

    fn fill_value(
        &mut self,
        node: &Node,
        run: TileRun,
        reads: SmallVec<[ValueId; 4]>,
        to: ValueId,
    ) -> Result<()> {
        self.fresh(node, to)?;
        let writes = SmallVec::from_iter([to]);
        let run = Run::Tile(Arc::new(run));
        self.push(node, run, StepMemory::Allocates, Bytes::ZERO, reads, writes)
    }
}
