//! The results of a node: over the bytes of an input where its row allows and nobody else reads them, in
//! buffers of their own otherwise.

use tonnage_core::error::Result as Planned;
use tonnage_core::graph::{Graph, Node};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Lower, Mem};
use tonnage_core::shape::TensorType;

use super::{Buffers, Liveness, Places, Planner, most, store};
use crate::plan::{At, BufferId, Placed, Refusal, StepMemory};

impl Planner<'_> {
    /// Places all outputs of a node, in place where its row allows and the bytes are free.
    pub fn outputs(&mut self, node: &Node) -> Planned<StepMemory> {
        let Some(first) = node.outputs.first().copied() else { return Ok(StepMemory::Allocates) };
        let memory = match node.op.mem {
            Mem::Update(input) => {
                self.alias(first, node.inputs[input])?;
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

    /// Places all outputs of a node in buffers of their own.
    pub fn fresh_outputs(&mut self, node: &Node) -> Planned<StepMemory> {
        for id in &node.outputs {
            self.fresh(node, *id)?;
        }
        Ok(StepMemory::Allocates)
    }

    /// Whether the bytes of an input of the node at hand can become those of an output of that type.
    pub fn can_take_over(&self, node: &Node, input: usize, output: &TensorType) -> bool {
        Reuse::new(self).check(node, input, output).is_ok()
    }

    /// One of these inputs whose bytes can become those of the node's output: the first, or of several that the call makes the one made
    /// last, so that a kernel's own result can be finished as it is made.
    fn reusable(&mut self, node: &Node, candidates: &[usize]) -> Option<usize> {
        let mut found: Option<(usize, Option<BufferId>)> = None;
        for i in candidates.iter().copied().filter(|i| *i < node.inputs.len()) {
            match Reuse::new(self).check(node, i, self.graph.ty(node.outputs[0])) {
                Ok(()) => {
                    let buffer = self.places.buffer(node.inputs[i]);
                    let is_later = |(_, first): (_, Option<BufferId>)| matches!((first, buffer), (Some(first), Some(buffer)) if buffer.0 > first.0);
                    if found.is_none_or(is_later) {
                        found = Some((i, buffer));
                    }
                }
                Err(why) => self.steps.refuse(i, why),
            }
        }
        found.map(|(i, _)| {
            self.steps.forget_refusals();
            i
        })
    }
}

/// What decides whether a node may take over bytes.
struct Reuse<'a> {
    graph: &'a Graph,
    liveness: &'a Liveness,
    places: &'a Places,
    buffers: &'a Buffers,
    /// The number of the node.
    at: usize,
}

impl<'a> Reuse<'a> {
    /// Of the node at hand.
    fn new(planner: &'a Planner) -> Reuse<'a> {
        Reuse {
            graph: planner.graph,
            liveness: &planner.liveness,
            places: &planner.places,
            buffers: &planner.buffers,
            at: planner.steps.node(),
        }
    }

    /// Whether the bytes of an input can become those of an output of that type: it dies here with all
    /// its views, lies close together, has elements of the same size, and nothing else that the node
    /// reads lies in the same bytes, unless it is elementwise and reads them in the same order.
    fn check(&self, node: &Node, input: usize, output: &TensorType) -> Result<(), Refusal> {
        let id = node.inputs[input];
        let ty = self.graph.ty(id);
        let placed = self.places.find(id).ok_or(Refusal::Recipe)?;
        let key = store(&placed.at).ok_or(Refusal::Recipe)?;
        // A part of a larger value, or one that was cut at a bound, would keep more bytes of the arena than it takes.
        // That is a question of rounded sizes; whether the output fits is not asked, since its shape is the input's.
        let fits = match (&placed.at, ty.bytes(node.op.name)) {
            (At::Buffer(b), Ok(bytes)) => self.buffers.bytes(*b) == bytes.rounded(),
            (_, Ok(_)) => true,
            _ => false,
        };
        let same = ty.shape == output.shape && ty.dtype.size() == output.dtype.size();
        let read_later =
            || self.places.sharing(key).iter().any(|v| self.liveness.is_read_after(*v, self.at));
        // An elementwise program has read an element of every input before it writes the element there. A kernel may come
        // back to its other inputs when the output is half written.
        let elementwise = matches!(node.op.lower, Lower::Tile(_));
        let shared = || {
            node.inputs.iter().enumerate().any(|(j, other)| {
                let other = self.places.find(*other).filter(|_| j != input);
                let other = other.filter(|p| store(&p.at) == Some(key));
                other.is_some_and(|p| !elementwise || p.layout != placed.layout)
            })
        };
        match () {
            () if !same || !fits => Err(Refusal::OtherSize),
            () if !self.liveness.is_given_up(&placed.at) => Err(Refusal::NotGivenUp),
            () if !self.places.lies_whole(id) => Err(Refusal::Strided),
            () if read_later() => Err(Refusal::ReadLater),
            () if shared() => Err(Refusal::Shared),
            () => Ok(()),
        }
    }
}
