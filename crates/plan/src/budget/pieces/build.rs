//! The graph in pieces: one loop with an iteration for each, whose body is all that depends on the batch. Sums are
//! carried and start from zero, what each piece has rows of is stacked, and the rest stays before or behind the loop.
//!
//! The types of a piece are inferred anew; where they are not the whole's, cut, the graph is left as it is.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::dim::Dim;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Builder, Graph, Node, Renamed, ValueId};
use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::recipe::Key;
use tonnage_core::shape::Shape;
use tonnage_core::tile::{Close, Form, Reduction, TileProgram};
use tonnage_ops::control::while_loop::WHILE_LOOP;
use tonnage_ops::emit;
use tonnage_ops::shape::{concat::CONCAT, slice::SLICE};
use tonnage_ops::tile::fused::FUSED;

use super::PieceOf;
use super::body::{PieceBody, body};
use super::node::{BatchPart, sum_type};
use super::parts::{BatchSplit, NodePlacement};
use crate::place::InputSpec;

/// A graph in pieces.
pub struct InPieces {
    pub graph: Graph,
    /// The node that is the loop.
    pub node: usize,
}

/// The graph with a loop over the pieces, and with one iteration more for the rest, where the pieces leave one.
pub fn in_pieces(graph: &Graph, parts: &BatchSplit, rest: Option<&BatchSplit>) -> Result<InPieces> {
    let first = rows_known(body(graph, parts)?)?;
    let rest = match rest {
        Some(parts) => Some((parts, rows_known(body(graph, parts)?)?)),
        None => None,
    };
    let mut outer = Outer {
        graph,
        parts,
        builder: Builder::new(),
        values: HashMap::new(),
        sizes: Renamed::of(graph),
    };
    for id in &graph.inputs {
        let info = graph.value(*id);
        outer.builder.mark(Mark { source: info.source, kind: info.kind });
        let value = outer.builder.input(info.ty.clone(), info.kind, info.name.clone());
        outer.values.insert(*id, value);
    }
    let before = needed(graph, parts, &first)?;
    let once = |at: &usize| matches!(parts.places[*at], NodePlacement::Once);
    for at in (0..graph.nodes.len()).filter(|at| once(at) && before[*at]) {
        outer.node(&graph.nodes[at])?;
    }
    let node = outer.pieces(&first, rest.as_ref().map(|(parts, body)| (*parts, body)))?;
    for (at, node) in graph.nodes.iter().enumerate() {
        let runs = match &parts.places[at] {
            NodePlacement::Once => !before[at],
            NodePlacement::After => true,
            NodePlacement::Piece(_) => false,
        };
        if runs {
            outer.node(node)?;
        }
    }
    let outputs = graph.outputs.iter().map(|id| outer.value(*id)).collect::<Result<Vec<_>>>()?;
    let made = outer.builder.finish(&outputs)?;
    let whole = graph.outputs.iter().map(|id| outer.sizes.ty(graph.ty(*id)));
    if !made.output_types().into_iter().eq(whole) {
        return Err(ErrorKind::BadGraph { what: "pieces that do not make the whole".into() }.into());
    }
    Ok(InPieces { graph: made, node })
}

/// A body of which rows are cut and stacked: a loop does that with rows of a known size alone.
fn rows_known(body: PieceBody) -> Result<PieceBody> {
    let (sums, rows) = (body.sums.len(), body.sums.len() + body.sliced.len());
    let cut = &body.graph.inputs[sums..rows];
    let stacked = &body.graph.outputs[sums..];
    match cut.iter().chain(stacked).any(|id| body.graph.ty(*id).shape.sizes().is_none()) {
        true => Err(ErrorKind::BadGraph { what: "rows whose size the data decide".into() }.into()),
        false => Ok(body),
    }
}

/// Nodes that run once and that the pieces need: for what they make, or for a size that the data decide.
fn needed(graph: &Graph, parts: &BatchSplit, body: &PieceBody) -> Result<Vec<bool>> {
    let mut wanted = vec![false; graph.value_count()];
    for id in body.sliced.iter().map(|(id, _)| id).chain(&body.reads) {
        wanted[id.index()] = true;
    }
    let mut needed = vec![false; graph.nodes.len()];
    graph.deciders_of(&body.graph).into_iter().for_each(|by| needed[by] = true);
    let deciders = graph.size_deciders();
    for (at, node) in graph.nodes.iter().enumerate().rev() {
        let makes = node.outputs.iter().any(|id| wanted[id.index()]);
        match parts.places[at] {
            NodePlacement::Once if makes || needed[at] => {
                needed[at] = true;
                node.inputs.iter().for_each(|id| wanted[id.index()] = true);
                deciders.get(at).into_iter().flatten().for_each(|by| needed[*by] = true);
            }
            NodePlacement::Once => {}
            _ if needed[at] => {
                let what = "a size that the pieces need is decided after them".into();
                return Err(ErrorKind::BadGraph { what }.into());
            }
            _ => {}
        }
    }
    Ok(needed)
}

struct Outer<'g> {
    graph: &'g Graph,
    parts: &'g BatchSplit,
    builder: Builder,
    values: HashMap<ValueId, Value>,
    /// What sizes that the data decide are called here.
    sizes: Renamed,
}

impl Outer<'_> {
    fn value(&self, id: ValueId) -> Result<Value> {
        let what = || format!("value {} is used before it is made", id.index());
        self.values.get(&id).cloned().ok_or_else(|| ErrorKind::BadGraph { what: what() }.into())
    }

    fn node(&mut self, node: &Node) -> Result<()> {
        let inputs = node.inputs.iter().map(|id| self.value(*id)).collect::<Result<Vec<_>>>()?;
        self.builder.mark(mark(self.graph, node));
        let (attrs, regions) = self.sizes.told(node);
        let made = self.builder.emit(node.op, inputs, attrs, regions, node.aux)?;
        for (id, value) in node.outputs.iter().zip(made) {
            self.sizes.learn(self.graph.ty(*id), value.ty());
            self.values.insert(*id, value);
        }
        Ok(())
    }

    /// The loop, the iteration for the rest, and what their results are outside; returns the node that the loop is.
    fn pieces(
        &mut self,
        first: &PieceBody,
        rest: Option<(&BatchSplit, &PieceBody)>,
    ) -> Result<usize> {
        let mut sums = Vec::new();
        for id in &first.sums {
            self.builder.mark(Mark {
                source: self.graph.value(*id).source,
                kind: self.graph.value(*id).kind,
            });
            let ty = sum_type(&self.sizes.ty(self.graph.ty(*id)));
            sums.push(emit::zeros(&mut self.builder, &ty)?);
        }
        let (node, mut made) = self.a_loop(first, self.parts.piece, false, sums)?;
        let stacked = made.split_off(first.sums.len()).into_iter();
        let mut parts: Vec<Vec<Value>> = stacked.map(|value| vec![value]).collect();
        if let Some((split, body)) = rest {
            (_, made) = self.a_loop(body, split.piece, true, made)?;
            let stacked = made.split_off(body.sums.len());
            parts.iter_mut().zip(stacked).for_each(|(parts, value)| parts.push(value));
        }
        for (id, value) in first.sums.iter().zip(made) {
            let value = self.joined(*id, vec![value])?;
            self.values.insert(*id, value);
        }
        for (id, values) in first.joined.iter().zip(parts) {
            let value = self.joined(*id, values)?;
            self.values.insert(*id, value);
        }
        Ok(node)
    }

    /// A loop over the whole pieces, or one iteration for the rest behind them; returns its node and its results.
    fn a_loop(
        &mut self,
        body: &PieceBody,
        piece: PieceOf,
        is_rest: bool,
        sums: Vec<Value>,
    ) -> Result<(usize, Vec<Value>)> {
        let iterations = if is_rest { 1 } else { piece.count() };
        let mut inputs = sums;
        for (id, axis) in &body.sliced {
            let value = self.value(*id)?;
            inputs.push(cut(&mut self.builder, value, *axis, piece, is_rest)?);
        }
        for id in &body.reads {
            inputs.push(self.value(*id)?);
        }
        let attrs = Loop {
            carried: body.sums.len(),
            sliced: body.sliced.len(),
            stacked: body.joined.len(),
            iterations: Iterations::Times(Dim::Known(iterations)),
            reverse: false,
            max_checkpoints: None,
            spills: false,
            // Nothing in it draws: random numbers come in as rows of what the whole draws.
            key: Key::Fixed([0, 0]),
            updates: Vec::new(),
        };
        let attrs = Attrs::Loop(Box::new(attrs));
        let node = self.builder.graph().nodes.len();
        let regions = vec![self.sizes.region(&Arc::new(body.graph.clone()))];
        let made = self.builder.emit(&WHILE_LOOP, inputs, attrs, regions, false)?;
        Ok((node, made))
    }

    /// The whole, of what the loops made of it.
    fn joined(&mut self, id: ValueId, mut values: Vec<Value>) -> Result<Value> {
        let e = &mut self.builder;
        let whole = &self.sizes.ty(self.graph.ty(id));
        let axis = match &self.parts.parts[id.index()] {
            BatchPart::Along(axis) => {
                // From [pieces, ...] to [..., pieces, ...], and then one axis.
                let order: Vec<usize> =
                    (1..=*axis).chain([0]).chain(axis + 1..whole.shape.rank() + 1).collect();
                for value in &mut values {
                    let stacked = &value.ty().shape;
                    let mut to = whole.shape.clone();
                    let both = stacked[0].known().zip(stacked[axis + 1].known());
                    to[*axis] = Dim::Known(both.map_or(0, |(count, len)| count * len));
                    let moved = match axis {
                        0 => value.clone(),
                        _ => emit::transpose(e, value.clone(), &order)?,
                    };
                    *value = emit::reshape(e, moved, &to)?;
                }
                *axis
            }
            _ => 0,
        };
        let value = match (values.pop(), values.is_empty()) {
            (Some(value), true) => value,
            (Some(last), false) => {
                values.push(last);
                let attrs = Attrs::Join { axis, parts: values.len() };
                e.apply(&CONCAT, values, attrs)?
            }
            (None, _) => return Err(ErrorKind::BadGraph { what: "no piece".into() }.into()),
        };
        match &self.parts.parts[id.index()] {
            BatchPart::Folded(Reduction::Sum) => emit::cast(e, value, whole.dtype),
            BatchPart::Folded(Reduction::Mean) => {
                let count = emit::number(e, count(self.graph, id)? as f64, value.ty().dtype)?;
                let mean = emit::div(e, value, count)?;
                emit::cast(e, mean, whole.dtype)
            }
            BatchPart::Folded(fold) => {
                let mut program = TileProgram::loading(&[whole.dtype]);
                program.stores.push((0, Form::Elements(whole.dtype)));
                program.reduce(*fold, &[0]);
                e.apply(&FUSED, vec![value], Attrs::Tile(Box::new(program)))
            }
            _ => Ok(value),
        }
    }
}

/// How many elements a mean is over.
fn count(graph: &Graph, id: ValueId) -> Result<usize> {
    let node = graph.nodes.iter().find(|n| n.outputs.contains(&id));
    let counted = node.and_then(|node| {
        let tonnage_core::row::Lower::Tile(make) = node.op.lower else { return None };
        graph.with_call(node, |call| {
            let program = make(call, node.aux).ok()?;
            let domain = tonnage_ops::tile::domain(call, &program).ok()?;
            let Close::Reduce { axes, .. } = &program.close else { return None };
            axes.iter().map(|axis| domain[*axis].known()).product::<Option<usize>>()
        })
    });
    counted.ok_or_else(|| ErrorKind::BadGraph { what: "a mean of no number".into() }.into())
}

/// A value as rows, one for each piece along an axis: the whole pieces, or the rest alone.
fn cut(e: &mut Builder, value: Value, axis: usize, piece: PieceOf, is_rest: bool) -> Result<Value> {
    let iterations = if is_rest { 1 } else { piece.count() };
    let shape = value.ty().shape.clone();
    let unequal = || ErrorKind::BadGraph { what: "pieces of unequal length".into() };
    let len = piece.part_of(&shape[axis]).and_then(|len| len.known()).ok_or_else(unequal)?;
    let all = shape[axis].known().ok_or_else(unequal)?;
    let mut value = value;
    if len * iterations < all {
        let start = if is_rest { all - len } else { 0 };
        let mut slices: Vec<AxisSlice> = shape.iter().cloned().map(AxisSlice::all).collect();
        slices[axis] =
            AxisSlice { start: start.into(), len: Dim::Known(len * iterations), step: 1 };
        value = e.apply(&SLICE, vec![value], Attrs::Slices(slices))?;
    }
    let to: Shape = shape[..axis]
        .iter()
        .cloned()
        .chain([Dim::Known(iterations), Dim::Known(len)])
        .chain(shape[axis + 1..].iter().cloned())
        .collect();
    let rank = to.rank();
    let value = emit::reshape(e, value, &to)?;
    if axis == 0 {
        return Ok(value);
    }
    let order: Vec<usize> = [axis].into_iter().chain(0..axis).chain(axis + 1..rank).collect();
    emit::transpose(e, value, &order)
}

/// Whose line a node belongs to, and what its results are.
pub fn mark(graph: &Graph, node: &Node) -> Mark {
    let kind =
        node.outputs.first().map_or(tonnage_core::Kind::Activation, |id| graph.value(*id).kind);
    Mark { source: node.source, kind }
}

/// What the body is told of its inputs: sums are its own to overwrite.
pub fn body_specs(node: &Node) -> Result<Vec<InputSpec>> {
    let body = &node.regions[0];
    let carried = match &node.attrs {
        Attrs::Loop(spec) => spec.carried,
        _ => 0,
    };
    let spec = |(i, ty): (usize, &tonnage_core::TensorType)| {
        InputSpec::contiguous(ty, node.op.name, i < carried)
    };
    body.input_types().iter().enumerate().map(spec).collect()
}
