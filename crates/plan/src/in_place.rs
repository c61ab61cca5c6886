//! The results of a node: over the bytes of an input where its row allows and nobody else reads them, in
//! buffers of their own otherwise. Part of [`Planner`].

use tonnage_core::error::Result;
use tonnage_core::graph::Node;
use tonnage_core::layout::Layout;
use tonnage_core::row::Mem;
use tonnage_core::shape::TensorType;

use crate::place::{Planner, most, store};
use crate::plan::{At, Placed, StepMemory};

impl Planner<'_> {
    /// Places all outputs of a node, in place where its row allows and the bytes are free.
    pub fn outputs(&mut self, node: &Node) -> Result<StepMemory> {
        let first = node.outputs[0];
        let memory = match node.op.mem {
            Mem::Update(input) => {
                let placed = self.place(node.inputs[input])?.clone();
                self.put(first, placed);
                StepMemory::Updates
            }
            Mem::Reuse(candidates) => match self.reusable(node, candidates) {
                Some(input) => {
                    let placed = self.place(node.inputs[input])?.clone();
                    let layout = Layout::contiguous(most(self.graph.ty(first), node.op.name)?);
                    self.put(first, Placed { layout, ..placed });
                    StepMemory::InPlace(input)
                }
                None => {
                    self.fresh(node, first)?;
                    StepMemory::Allocates
                }
            },
            _ => {
                self.fresh(node, first)?;
                StepMemory::Allocates
            }
        };
        for id in &node.outputs[1..] {
            self.fresh(node, *id)?;
        }
        Ok(memory)
    }

    pub fn fresh_outputs(&mut self, node: &Node) -> Result<StepMemory> {
        for id in &node.outputs {
            self.fresh(node, *id)?;
        }
        Ok(StepMemory::Allocates)
    }

    fn reusable(&self, node: &Node, candidates: &[usize]) -> Option<usize> {
        let output = self.graph.ty(node.outputs[0]);
        candidates
            .iter()
            .copied()
            .filter(|i| *i < node.inputs.len())
            .find(|i| self.can_take_over(node, *i, output))
    }

    /// Whether the bytes of an input can become those of an output of that type: it dies here with all
    /// its views, lies close together, has elements of the same size, and nothing else that the node
    /// reads lies in the same bytes in another way.
    pub fn can_take_over(&self, node: &Node, input: usize, output: &TensorType) -> bool {
        let id = node.inputs[input];
        let ty = self.graph.ty(id);
        let Some(placed) = &self.places[id.index()] else { return false };
        let free = match &placed.at {
            At::Buffer(_) => true,
            At::Input(i) => self.donated[*i],
            _ => false,
        };
        let Some(key) = store(&placed.at).filter(|_| free) else { return false };
        let dies = self
            .sharing
            .get(&key)
            .is_none_or(|all| all.iter().all(|v| self.last_use[v.index()] <= self.at));
        let whole = placed.layout.offset == 0 && placed.layout.is_contiguous();
        let same = ty.shape == output.shape && ty.dtype.size() == output.dtype.size();
        let alone = node.inputs.iter().all(|other| {
            let other = self.places[other.index()].as_ref();
            other.is_none_or(|p| store(&p.at) != Some(key) || p.layout == placed.layout)
        });
        // A buffer that was cut at a bound holds more than the type says.
        let fits = match (&placed.at, ty.bytes(node.op.name)) {
            (At::Buffer(b), Ok(bytes)) => self.buffers[b.0].bytes == bytes.rounded(),
            (_, Ok(_)) => true,
            _ => false,
        };
        dies && whole && same && alone && fits
    }
}
