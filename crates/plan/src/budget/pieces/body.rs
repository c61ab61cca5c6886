//! What is done for every piece, as a graph: takes sums so far, pieces, and what is read whole; returns the sums and
//! what is stacked.

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Builder, Graph, Node, ValueId};
use tonnage_core::row::Lower;
use tonnage_core::tile::{Close, Form, Reduction};
use tonnage_ops::emit;
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::shape::fill::FILL;
use tonnage_ops::tile::fused::FUSED;

use super::build::mark;
use super::node::{BatchPart, piece_of, sum_type};
use super::parts::{BatchSplit, NodePlacement};

/// A body, and which values of the whole graph are its inputs and outputs.
pub struct PieceBody {
    pub graph: Graph,
    /// Carried: terms are added to them.
    pub sums: Vec<ValueId>,
    /// Values of which it sees a piece, each along an axis.
    pub sliced: Vec<(ValueId, usize)>,
    /// Values that it reads whole.
    pub reads: Vec<ValueId>,
    /// Values of which it makes a piece that is needed outside, or a term that is not added.
    pub joined: Vec<ValueId>,
}

pub fn body(graph: &Graph, parts: &BatchSplit) -> Result<PieceBody> {
    let makers: HashMap<ValueId, usize> = graph
        .nodes
        .iter()
        .enumerate()
        .flat_map(|(at, n)| n.outputs.iter().map(move |id| (*id, at)))
        .collect();
    let mut making = PieceBodyBuilder {
        graph,
        parts,
        makers,
        taken: Taken::default(),
        values: HashMap::new(),
        builder: Builder::new(),
    };
    let (sums, joined) = making.results();
    // First what comes in, then the nodes themselves.
    for node in making.nodes() {
        making.takes(node);
    }
    making.inputs(&sums)?;
    for node in making.nodes() {
        making.node(node)?;
    }
    let mut outputs = Vec::new();
    for (k, id) in sums.iter().enumerate() {
        let (so_far, term) = (making.builder.graph().inputs[k], making.made(*id)?);
        let so_far = making.builder.value(so_far);
        let info = graph.value(*id);
        making.builder.mark(Mark { source: info.source, kind: info.kind });
        outputs.push(emit::add(&mut making.builder, so_far, term)?);
    }
    for id in &joined {
        outputs.push(making.made(*id)?);
    }
    let Taken { sliced, reads } = making.taken;
    Ok(PieceBody { graph: making.builder.finish(&outputs)?, sums, sliced, reads, joined })
}

/// A value of the whole graph, and the axis along which it is cut, where it is.
type Read = (ValueId, Option<usize>);

/// What a body takes from outside, in the order of its inputs.
#[derive(Default)]
struct Taken {
    sliced: Vec<(ValueId, usize)>,
    reads: Vec<ValueId>,
}

struct PieceBodyBuilder<'g> {
    graph: &'g Graph,
    parts: &'g BatchSplit,
    makers: HashMap<ValueId, usize>,
    taken: Taken,
    /// The replacement of a value, cut along an axis or whole, in the body.
    values: HashMap<Read, Value>,
    builder: Builder,
}

impl<'g> PieceBodyBuilder<'g> {
    /// Nodes that run for every piece, with how they do.
    fn nodes(&self) -> Vec<usize> {
        let piece = |at: &usize| matches!(self.parts.places[*at], NodePlacement::Piece(_));
        (0..self.graph.nodes.len()).filter(piece).collect()
    }

    /// Values that leave: sums, and what is joined outside.
    fn results(&self) -> (Vec<ValueId>, Vec<ValueId>) {
        let mut outside = vec![false; self.graph.value_count()];
        for (node, place) in self.graph.nodes.iter().zip(&self.parts.places) {
            if !matches!(place, NodePlacement::Piece(_)) {
                node.inputs.iter().for_each(|id| outside[id.index()] = true);
            }
        }
        self.graph.outputs.iter().for_each(|id| outside[id.index()] = true);
        let (mut sums, mut joined) = (Vec::new(), Vec::new());
        for at in self.nodes() {
            for id in self.graph.nodes[at].outputs.iter().filter(|id| outside[id.index()]) {
                match self.parts.parts[id.index()] {
                    BatchPart::Folded(Reduction::Sum | Reduction::Mean) => sums.push(*id),
                    _ => joined.push(*id),
                }
            }
        }
        (sums, joined)
    }

    /// What a node's inputs are: values of the whole graph, each along which axis it is cut, where it is.
    fn reads(&self, at: usize) -> SmallVec<[Read; 4]> {
        let node = &self.graph.nodes[at];
        let NodePlacement::Piece(on) = &self.parts.places[at] else { return SmallVec::new() };
        let read = |(id, cut): (&ValueId, &Option<usize>)| match &self.parts.parts[id.index()] {
            BatchPart::Along(axis) => (*id, Some(*axis)),
            BatchPart::Packed(_, axis) => (*id, Some(*axis)),
            _ => (*id, *cut),
        };
        node.inputs.iter().zip(&on.cuts).map(read).collect()
    }

    fn takes(&mut self, at: usize) {
        for (id, cut) in self.reads(at) {
            self.take(id, cut);
        }
    }

    /// Sees to it that a value comes in, unless the body makes it.
    fn take(&mut self, id: ValueId, cut: Option<usize>) {
        let by_piece = self
            .makers
            .get(&id)
            .is_some_and(|at| matches!(self.parts.places[*at], NodePlacement::Piece(_)));
        if by_piece {
            return;
        }
        if let Some((_, inner)) = self.inside(id, cut) {
            if let Some((id, cut)) = inner {
                self.take(id, cut);
            }
            return;
        }
        match cut {
            Some(axis) if !self.taken.sliced.contains(&(id, axis)) => {
                self.taken.sliced.push((id, axis));
            }
            None if !self.taken.reads.contains(&id) => self.taken.reads.push(id),
            _ => {}
        }
    }

    /// The node that makes a value which the body makes for itself, as it is or a piece of it: fills, and what is
    /// broadcast; with what it reads.
    fn inside(&self, id: ValueId, cut: Option<usize>) -> Option<(&'g Node, Option<Read>)> {
        let node = &self.graph.nodes[*self.makers.get(&id)?];
        if node.op == &FILL {
            return Some((node, None));
        }
        let axis = cut.filter(|_| node.op == &BROADCAST_TO)?;
        let from = node.inputs[0];
        let (inner, outer) = (self.graph.ty(from).shape.rank(), self.graph.ty(id).shape.rank());
        let own = (axis + inner).checked_sub(outer);
        let is_broadcast = own.is_none_or(|own| self.graph.ty(from).shape[own].is(1));
        Some((node, Some((from, if is_broadcast { None } else { own }))))
    }

    fn inputs(&mut self, sums: &[ValueId]) -> Result<()> {
        for id in sums {
            let info = self.graph.value(*id);
            self.builder.mark(Mark { source: info.source, kind: info.kind });
            self.builder.input(sum_type(&info.ty), info.kind, info.name.clone());
        }
        for (id, axis) in self.taken.sliced.clone() {
            let info = self.graph.value(id);
            let ty = piece_of(&info.ty, axis, self.parts.piece).ok_or_else(|| bad("a piece"))?;
            let value = self.builder.input(ty, info.kind, info.name.clone());
            self.values.insert((id, Some(axis)), value);
        }
        for id in self.taken.reads.clone() {
            let info = self.graph.value(id);
            let value = self.builder.input(info.ty.clone(), info.kind, info.name.clone());
            self.values.insert((id, None), value);
        }
        Ok(())
    }

    fn value(&mut self, id: ValueId, cut: Option<usize>) -> Result<Value> {
        if let Some(value) = self.values.get(&(id, cut)) {
            return Ok(value.clone());
        }
        let Some((node, inner)) = self.inside(id, cut) else { return Err(bad("a value")) };
        let inputs = match inner {
            Some((id, cut)) => vec![self.value(id, cut)?],
            None => Vec::new(),
        };
        let attrs = match cut {
            Some(axis) => {
                let of = self.graph.ty(id);
                let len =
                    self.parts.piece.part_of(&of.shape[axis]).ok_or_else(|| bad("a piece"))?;
                node.attrs.of_piece(of, axis, &len)
            }
            None => node.attrs.clone(),
        };
        self.builder.mark(mark(self.graph, node));
        let value = self.builder.apply(node.op, inputs, attrs)?;
        self.values.insert((id, cut), value.clone());
        Ok(value)
    }

    /// What the body made of a value that leaves.
    fn made(&self, id: ValueId) -> Result<Value> {
        let axis = match &self.parts.parts[id.index()] {
            BatchPart::Along(axis) | BatchPart::Packed(_, axis) => Some(*axis),
            _ => None,
        };
        self.values.get(&(id, axis)).cloned().ok_or_else(|| bad("a result"))
    }

    fn node(&mut self, at: usize) -> Result<()> {
        let node = &self.graph.nodes[at];
        let NodePlacement::Piece(on) = &self.parts.places[at] else { return Ok(()) };
        let mut inputs = Vec::new();
        for (id, cut) in self.reads(at) {
            inputs.push(self.value(id, cut)?);
        }
        self.builder.mark(mark(self.graph, node));
        let made = match on.makes.first() {
            Some(BatchPart::Folded(fold @ (Reduction::Sum | Reduction::Mean))) => {
                self.sums(node, inputs, *fold)?
            }
            _ => self.builder.emit(node.op, inputs, on.attrs.clone(), Vec::new(), node.aux)?,
        };
        for ((id, part), value) in node.outputs.iter().zip(&on.makes).zip(made) {
            let whole = self.graph.ty(*id);
            let (axis, expected) = match part {
                BatchPart::Along(axis) => (Some(*axis), piece_of(whole, *axis, self.parts.piece)),
                BatchPart::Packed(_, axis) => (Some(*axis), Some(value.ty().clone())),
                BatchPart::Folded(Reduction::Sum | Reduction::Mean) => {
                    (None, Some(sum_type(whole)))
                }
                _ => (None, Some(whole.clone())),
            };
            if expected.as_ref() != Some(value.ty()) {
                return Err(bad(node.op.name));
            }
            self.values.insert((*id, axis), value);
        }
        Ok(())
    }

    /// Sums over a piece, in the type in which pieces are added up. A mean is divided when all pieces are there.
    fn sums(&mut self, node: &Node, inputs: Vec<Value>, fold: Reduction) -> Result<Vec<Value>> {
        let whole = self.graph.ty(node.outputs[0]);
        let sum = sum_type(whole);
        let is_wider = sum.dtype != whole.dtype;
        if !is_wider && fold == Reduction::Sum {
            return self.builder.emit(node.op, inputs, node.attrs.clone(), Vec::new(), node.aux);
        }
        if let Lower::Tile(make) = node.op.lower {
            let mut program = self.graph.with_call(node, |call| make(call, node.aux))?;
            if let Close::Reduce { reduction, .. } = &mut program.close {
                *reduction = Reduction::Sum;
            }
            program.stores.iter_mut().for_each(|(_, form)| *form = Form::Elements(sum.dtype));
            let made = self.builder.apply(&FUSED, inputs, Attrs::Tile(Box::new(program)))?;
            return Ok(vec![emit::reshape(&mut self.builder, made, &whole.shape)?]);
        }
        let e = &mut self.builder;
        if whole.dtype == DType::BF16 {
            // What its kernel adds up in f32 is in range: the sum of a piece is rounded once, as that of the whole is.
            let made = e.emit(node.op, inputs, node.attrs.clone(), Vec::new(), node.aux)?;
            return made.into_iter().map(|value| emit::cast(e, value, sum.dtype)).collect();
        }
        let widen = |value: Value| match value.ty().dtype == whole.dtype {
            true => emit::cast(e, value, sum.dtype),
            false => Ok(value),
        };
        let inputs = inputs.into_iter().map(widen).collect::<Result<Vec<_>>>()?;
        self.builder.emit(node.op, inputs, node.attrs.clone(), Vec::new(), node.aux)
    }
}

fn bad(what: &str) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("{what} cannot be made of pieces") }.into()
}
