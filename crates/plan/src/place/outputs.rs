//! Where the outputs of a graph lie, and the copies that put them there: after the last node has its
//! place, and before the arena is packed.
//!
//! The invariant: an output that the call makes shares its bytes with no other output, and what a variable
//! was at the call is copied out of it, so that no later update can change a result.
//!
//! Decision: `docs/decisions/one-arena-block.md`.

use tonnage_core::Kind;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::layout::Layout;

use super::{Buffers, Liveness, Places, Planner, Steps, most};
use crate::plan::{At, BufferId, OutputPlan, Placed};
use crate::target::SharedTarget;
use crate::tile;

/// Gives the outputs of a graph their places.
pub(super) struct Outputs<'a> {
    graph: &'a Graph,
    target: &'a SharedTarget,
    liveness: &'a Liveness,
    places: &'a mut Places,
    buffers: &'a mut Buffers,
    steps: &'a mut Steps,
}

impl<'a> Outputs<'a> {
    /// Those of a graph whose nodes all have their place.
    pub fn new(planner: &'a mut Planner) -> Outputs<'a> {
        Outputs {
            graph: planner.graph,
            target: &planner.options.target,
            liveness: &planner.liveness,
            places: &mut planner.places,
            buffers: &mut planner.buffers,
            steps: &mut planner.steps,
        }
    }

    /// A place for every output; `given` says that the caller gives their bytes.
    pub fn place(mut self, given: bool) -> Result<Vec<OutputPlan>> {
        let mut outputs = Vec::new();
        for (k, id) in self.graph.outputs.iter().enumerate() {
            outputs.push(match given {
                true => self.given_output(k, *id)?,
                false => self.own_output(k, *id)?,
            });
        }
        let last = self.steps.next_step().saturating_sub(1);
        for output in &outputs {
            if let OutputPlan::Buffer { buffer, .. } = output {
                self.buffers.extend(*buffer, last);
            }
        }
        Ok(outputs)
    }

    /// An output of a region: in the bytes that the caller gives, or in place in its own input.
    fn given_output(&mut self, k: usize, id: ValueId) -> Result<OutputPlan> {
        let placed = self.places.get(id)?.clone();
        let ty = self.graph.ty(id).clone();
        let whole = self.places.lies_whole(id);
        match placed.at {
            At::Input(i) if whole && self.liveness.may_stay(k, i) => {
                let layout = placed.layout;
                Ok(OutputPlan::Input { input: i, layout })
            }
            // Rounded sizes would not do: the caller's bytes may be a row, with the next one right behind it.
            At::Buffer(b) if whole && self.buffers.elements(b) == ty.bytes("return")? => {
                self.move_to_output(b, k);
                Ok(OutputPlan::Given)
            }
            _ => {
                self.copy_to_output(k, id)?;
                Ok(OutputPlan::Given)
            }
        }
    }

    /// Whether a result of so many bytes has a block of its own.
    fn is_own(&self, bytes: Bytes) -> bool {
        self.target.cuts_from().is_none_or(|from| bytes < from)
    }

    /// An output of a whole call.
    fn own_output(&mut self, k: usize, id: ValueId) -> Result<OutputPlan> {
        let placed = self.places.get(id)?.clone();
        let info = self.graph.value(id);
        match placed.at {
            At::Recipe(recipe) => Ok(OutputPlan::Recipe(recipe)),
            At::Input(input) => {
                let variable = self.graph.value(self.graph.inputs[input]).kind == Kind::Variable;
                let updated = id != self.graph.inputs[input];
                match variable && !updated {
                    // What a variable is now must not change with it.
                    true => self.copied_output(k, id),
                    false => Ok(OutputPlan::Input { input, layout: placed.layout }),
                }
            }
            At::Buffer(b) => {
                // An output of its own is as large as a buffer is, so here rounded sizes say whether it is the whole.
                let bytes = info.ty.bytes("return")?.rounded();
                let whole = self.buffers.bytes(b) == bytes && !self.buffers.outlives_call(b);
                match (whole, self.is_own(bytes)) {
                    (false, _) => self.copied_output(k, id),
                    (true, true) => {
                        self.move_to_output(b, k);
                        let bytes = self.target.block(info.ty.bytes("return")?);
                        Ok(OutputPlan::Own { bytes, layout: placed.layout })
                    }
                    (true, false) => {
                        self.buffers.keep_after_call(b);
                        Ok(OutputPlan::Buffer { buffer: b, layout: placed.layout })
                    }
                }
            }
            At::Output(_) => self.copied_output(k, id),
        }
    }

    /// An output that is a copy: in bytes of its own where it is small, in a buffer that outlives the call otherwise.
    fn copied_output(&mut self, k: usize, id: ValueId) -> Result<OutputPlan> {
        let ty = self.graph.ty(id).clone();
        let elements = ty.bytes("return")?;
        let layout = Layout::contiguous(most(&ty, "return")?);
        if self.is_own(elements.rounded()) {
            self.copy_to_output(k, id)?;
            return Ok(OutputPlan::Own { bytes: self.target.block(elements), layout });
        }
        let source = self.graph.value(id).source;
        let step = self.steps.next_step();
        let buffer = self.buffers.add(step, elements, Kind::Output, "return", source);
        let to = Placed { at: At::Buffer(buffer), layout: layout.clone() };
        self.copy(id, to)?;
        self.buffers.keep_after_call(buffer);
        Ok(OutputPlan::Buffer { buffer, layout })
    }

    /// Copies a value to the bytes of an output.
    fn copy_to_output(&mut self, k: usize, id: ValueId) -> Result<()> {
        let layout = Layout::contiguous(most(self.graph.ty(id), "return")?);
        self.copy(id, Placed { at: At::Output(k), layout })
    }

    /// A last step that copies a value somewhere else.
    fn copy(&mut self, id: ValueId, to: Placed) -> Result<()> {
        let from = self.places.get(id)?.clone();
        let dtype = self.graph.ty(id).dtype;
        let run = match &from.at {
            At::Recipe(recipe) => tile::materialize(recipe),
            _ => tile::copy(dtype, &from, &self.target.tile_limits()).ok_or_else(|| {
                tonnage_core::Error::from(ErrorKind::BadGraph { what: "no layout".into() })
            })?,
        };
        if let At::Buffer(b) = from.at {
            self.buffers.extend(b, self.steps.next_step());
        }
        let dynamic = self.graph.ty(id).shape.sizes().is_none();
        self.steps.push_copy(run, id, to, dynamic);
        Ok(())
    }

    /// Everything in a buffer lies in an output's bytes instead.
    fn move_to_output(&mut self, buffer: BufferId, k: usize) {
        self.places.move_to_output(buffer, k);
        self.buffers.empty(buffer);
    }
}
