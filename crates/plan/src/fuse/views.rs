//! Views between elementwise ops: a view of a result that only other elementwise ops read is taken of what
//! the result is made of instead. The views take no bytes, and the chain is whole again.
//!
//! A transpose or a slice can be taken of anything. A reshape is taken of what lies close together, so that it stays
//! a view. A broadcast result is computed where it is broadcast to, of a broadcast input, so that the narrow one
//! never exists: where that costs no more work than [`recompute_cone`](super::recompute_cone) spends to save bytes.
//! The program is the same and runs over the same elements: the bits stay.

use std::rc::Rc;

use smallvec::SmallVec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_core::row::{Call, Lower, Mem, OpDef};
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::{Close, Form};
use tonnage_core::{Dim, Kind, Source};
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::shape::reshape::RESHAPE;
use tonnage_ops::shape::slice::SLICE;
use tonnage_ops::shape::transpose::TRANSPOSE;

use super::recompute_cone::may_repeat;
use crate::rewrite::{checked, roots};

/// How far up a chain a view is taken.
const HIGHEST: usize = 16;
/// Full-size inputs of an op that may be read through a view instead of its one result.
const MOST_FULL: usize = 2;

/// The graph with views moved up.
pub(crate) fn see_through(mut graph: Graph) -> Result<Graph> {
    if !graph.nodes.iter().any(|node| is_view(node) || broadcasts(node)) {
        return Ok(graph);
    }
    let nodes = std::mem::take(&mut graph.nodes);
    let moving = ViewMover::new(&graph, &nodes);
    let mut instead = Vec::new();
    for (at, node) in nodes.iter().enumerate() {
        if is_view(node) && moving.only_tiles_read(node.outputs[0])
            || broadcasts(node) && moving.is_made_whole(node.outputs[0])
        {
            let view = View { op: node.op, attrs: &node.attrs };
            let made = moving.look(view, &LazyValue::Known(node.inputs[0]), 0);
            let made =
                made.filter(|made| !broadcasts(node) || moving.is_light(made, node.inputs[0]));
            instead.extend(made.map(|made| (at, made)));
        }
    }
    let moved = !instead.is_empty();
    let mut instead = instead.into_iter().peekable();
    for (at, node) in nodes.into_iter().enumerate() {
        match instead.next_if(|(view, _)| *view == at) {
            Some((_, made)) => {
                add(&mut graph, &made, Some(node.outputs[0]));
            }
            None => graph.nodes.push(node),
        }
    }
    if moved {
        graph.prune();
    }
    checked(graph)
}

/// A view that is to be taken.
#[derive(Clone, Copy)]
struct View<'a> {
    op: &'static OpDef,
    attrs: &'a Attrs,
}

/// A value that is there, or one that is still to be made.
#[derive(Clone)]
enum LazyValue {
    Known(ValueId),
    New(Rc<Applied>),
}

struct Applied {
    op: &'static OpDef,
    attrs: Attrs,
    inputs: SmallVec<[LazyValue; 2]>,
    info: ValueInfo,
    source: Source,
}

impl LazyValue {
    fn is(&self, other: &LazyValue) -> bool {
        match (self, other) {
            (LazyValue::Known(a), LazyValue::Known(b)) => a == b,
            (LazyValue::New(a), LazyValue::New(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }
}

/// Those that differ from all before them.
fn distinct(inputs: &[LazyValue]) -> impl Iterator<Item = &LazyValue> {
    inputs.iter().enumerate().filter(|(i, m)| !inputs[..*i].iter().any(|n| n.is(m))).map(|(_, m)| m)
}

/// Adds what is to be made, as `out` if that is given. What an op reads twice is made once.
fn add(graph: &mut Graph, made: &LazyValue, out: Option<ValueId>) -> ValueId {
    let applied = match made {
        LazyValue::Known(id) => return *id,
        LazyValue::New(applied) => applied,
    };
    let mut inputs: Vec<ValueId> = Vec::with_capacity(applied.inputs.len());
    for (i, input) in applied.inputs.iter().enumerate() {
        let before = applied.inputs[..i].iter().position(|other| other.is(input));
        let id = before.map_or_else(|| add(graph, input, None), |at| inputs[at]);
        inputs.push(id);
    }
    let id = out.unwrap_or_else(|| graph.add_value(applied.info.clone()));
    let (op, attrs, source) = (applied.op, applied.attrs.clone(), applied.source);
    let (outputs, regions) = (vec![id], Vec::new());
    graph.nodes.push(Node { op, attrs, inputs, outputs, aux: false, regions, source });
    id
}

struct ViewMover<'a> {
    graph: &'a Graph,
    nodes: &'a [Node],
    makers: Vec<Option<u32>>,
    /// For each value, how many nodes read it; leaving counts as one.
    reads: Vec<u32>,
    /// For each value, whether elementwise ops and reductions are all that reads it.
    tiles: Vec<bool>,
    roots: Vec<ValueId>,
    /// Bytes that are updated somewhere: what is read of them is read where it was.
    updated: Vec<bool>,
}

impl<'a> ViewMover<'a> {
    fn new(graph: &'a Graph, nodes: &'a [Node]) -> ViewMover<'a> {
        let values = graph.value_count();
        let mut moving = ViewMover {
            graph,
            nodes,
            makers: vec![None; values],
            reads: vec![0; values],
            tiles: vec![true; values],
            roots: roots(values, nodes),
            updated: vec![false; values],
        };
        for (at, node) in nodes.iter().enumerate() {
            for id in &node.outputs {
                moving.makers[id.index()] = Some(at as u32);
            }
            let tile = matches!(node.op.lower, Lower::Tile(_));
            for (i, id) in node.inputs.iter().enumerate() {
                moving.reads[id.index()] += u32::from(!node.inputs[..i].contains(id));
                moving.tiles[id.index()] &= tile;
            }
            for (input, _) in node.updates() {
                moving.updated[moving.roots[node.inputs[input].index()].index()] = true;
            }
        }
        for id in &graph.outputs {
            moving.reads[id.index()] += 1;
            moving.tiles[id.index()] = false;
        }
        moving
    }

    fn only_tiles_read(&self, id: ValueId) -> bool {
        self.tiles[id.index()] && self.reads[id.index()] > 0
    }

    /// Whether a broadcast value is made of elements one way or another: by elementwise ops and reductions that read it, or as
    /// a result.
    fn is_made_whole(&self, id: ValueId) -> bool {
        let leaves = || self.graph.outputs.iter().filter(|out| **out == id).count() as u32;
        self.only_tiles_read(id) || (self.reads[id.index()] == 1 && leaves() == 1)
    }

    /// Whether what is computed for every broadcast element, instead of once, is worth the bytes of `narrow`.
    fn is_light(&self, made: &LazyValue, narrow: ValueId) -> bool {
        may_repeat(self.work(made), self.graph.ty(narrow))
    }

    /// Flops an element of what is to be made.
    fn work(&self, made: &LazyValue) -> u64 {
        let LazyValue::New(applied) = made else { return 0 };
        let types: SmallVec<[TensorType; 4]> = applied.inputs.iter().map(|i| self.ty(i)).collect();
        let (op, attrs) = (applied.op.name, &applied.attrs);
        let call = Call { op, inputs: &types, attrs, regions: &[] };
        let own = match applied.op.lower {
            Lower::Tile(make) => make(&call, false).map_or(u64::MAX, |program| program.flops()),
            _ => 0,
        };
        distinct(&applied.inputs).map(|input| self.work(input)).fold(own, u64::saturating_add)
    }

    /// The elementwise op that makes a value which nothing else reads, through views of such values.
    fn tile(&self, made: &LazyValue, height: usize) -> Option<Rc<Applied>> {
        let id = match made {
            LazyValue::New(applied) => {
                return matches!(applied.op.lower, Lower::Tile(_)).then(|| applied.clone());
            }
            LazyValue::Known(id) => *id,
        };
        let node = &self.nodes[self.makers[id.index()]? as usize];
        let settled = node.inputs.iter().all(|id| !self.updated[self.roots[id.index()].index()]);
        let alone = self.reads[id.index()] == 1 && node.outputs.len() == 1;
        if !alone || !settled || height > HIGHEST || matches!(node.op.mem, Mem::Update(_)) {
            return None;
        }
        if is_view(node) {
            let view = View { op: node.op, attrs: &node.attrs };
            return match self.look(view, &LazyValue::Known(node.inputs[0]), height)? {
                LazyValue::New(applied) => Some(applied),
                LazyValue::Known(_) => None,
            };
        }
        matches!(node.op.lower, Lower::Tile(_)).then(|| {
            Rc::new(Applied {
                op: node.op,
                attrs: node.attrs.clone(),
                inputs: node.inputs.iter().map(|id| LazyValue::Known(*id)).collect(),
                info: self.graph.value(id).clone(),
                source: node.source,
            })
        })
    }

    /// A view of a value, as the op that makes it on views of its inputs. `None` where it stays a view.
    fn look(&self, view: View, of: &LazyValue, height: usize) -> Option<LazyValue> {
        let tile = self.tile(of, height + 1)?;
        let Lower::Tile(make) = tile.op.lower else { return None };
        let made_of = |inputs: &[LazyValue]| {
            let types: SmallVec<[TensorType; 4]> = inputs.iter().map(|i| self.ty(i)).collect();
            let call = Call { op: tile.op.name, inputs: &types, attrs: &tile.attrs, regions: &[] };
            Some((make(&call, false).ok()?, (tile.op.infer)(&call).ok()?.pop()?))
        };
        let (program, _) = made_of(&tile.inputs)?;
        let domain = &tile.info.ty.shape;
        let full = tile.inputs.iter().filter(|i| self.ty(i).shape == *domain).count();
        let plain = program.close == Close::Store
            && program.loads.iter().all(|form| matches!(form, Form::Elements(_)));
        // One number stays one, however it is looked at: it takes no bytes to speak of.
        if !plain || full > MOST_FULL || domain.rank() == 0 {
            return None;
        }
        let mut inputs: SmallVec<[LazyValue; 2]> = SmallVec::new();
        for (i, input) in tile.inputs.iter().enumerate() {
            let before = tile.inputs[..i].iter().position(|other| other.is(input));
            inputs.push(match before {
                Some(at) => inputs[at].clone(),
                None => self.part(view, input, domain, height)?,
            });
        }
        // The row is asked what it makes of the views: the same program and what the view shows, or it stays as it is.
        let (same, ty) = made_of(&inputs)?;
        if same != program || ty.shape != seen(view.attrs, domain) {
            return None;
        }
        let info = ValueInfo { ty, ..tile.info.clone() };
        let (op, attrs, source) = (tile.op, tile.attrs.clone(), tile.source);
        Some(LazyValue::New(Rc::new(Applied { op, attrs, inputs, info, source })))
    }

    /// The part of an input that belongs to a view of the whole domain.
    fn part(&self, view: View, of: &LazyValue, domain: &Shape, height: usize) -> Option<LazyValue> {
        let shape = &self.ty(of).shape;
        if shape.rank() == 0 {
            return Some(of.clone());
        }
        if shape == domain {
            if let Some(above) = self.look(view, of, height) {
                return Some(above);
            }
            let copies = view.op == &RESHAPE && !self.is_dense(of);
            return (!copies).then(|| self.viewed(view.op, view.attrs.clone(), of.clone()));
        }
        if view.op == &BROADCAST_TO {
            return Some(self.viewed(view.op, view.attrs.clone(), of.clone()));
        }
        let new = domain.rank() - shape.rank();
        match view.attrs {
            Attrs::Order(order) => {
                let wide: Shape =
                    (0..new).map(|_| Dim::Known(1)).chain(shape.iter().cloned()).collect();
                let wide = match new {
                    0 => of.clone(),
                    _ => self.viewed(&RESHAPE, Attrs::Shape(wide), of.clone()),
                };
                Some(self.viewed(&TRANSPOSE, Attrs::Order(order.clone()), wide))
            }
            Attrs::Slices(slices) => {
                // An axis that is broadcast has one element, whichever part of it is asked for.
                let part = |(own, (slice, whole)): (&Dim, (&AxisSlice, &Dim))| match own == whole {
                    true => slice.clone(),
                    false => AxisSlice::all(Dim::Known(1)),
                };
                let own = shape.iter().zip(slices[new..].iter().zip(&domain[new..]));
                let slices = Attrs::Slices(own.map(part).collect());
                Some(self.viewed(&SLICE, slices, of.clone()))
            }
            // Inner axes that the reshape leaves as they are.
            Attrs::Shape(to) => {
                let own = shape.rank();
                let kept = to.rank() >= own && domain[new..] == to[to.rank() - own..];
                (kept && !shape[0].is(1)).then(|| of.clone())
            }
            _ => None,
        }
    }

    fn viewed(&self, op: &'static OpDef, attrs: Attrs, of: LazyValue) -> LazyValue {
        let from = self.ty(&of);
        let shape = seen(&attrs, &from.shape);
        let source = match &of {
            LazyValue::Known(id) => self.graph.value(*id).source,
            LazyValue::New(applied) => applied.source,
        };
        let ty = TensorType { dtype: from.dtype, shape };
        let info = ValueInfo { ty, kind: Kind::Activation, name: None, source };
        let inputs = SmallVec::from_iter([of]);
        LazyValue::New(Rc::new(Applied { op, attrs, inputs, info, source }))
    }

    fn ty(&self, made: &LazyValue) -> TensorType {
        match made {
            LazyValue::Known(id) => self.graph.ty(*id).clone(),
            LazyValue::New(applied) => applied.info.ty.clone(),
        }
    }

    /// Whether a value surely lies close together, so that a reshape of it takes no copy. An argument does
    /// as a rule; one that does not is copied, as the result would have been made.
    fn is_dense(&self, made: &LazyValue) -> bool {
        let op = match made {
            LazyValue::New(applied) => applied.op,
            LazyValue::Known(id) => match self.makers[id.index()] {
                Some(at) => self.nodes[at as usize].op,
                None => return true,
            },
        };
        !matches!(op.mem, Mem::View(_))
    }
}

/// What a view shows of a shape.
fn seen(attrs: &Attrs, from: &Shape) -> Shape {
    match attrs {
        Attrs::Order(order) => order.iter().map(|axis| from[*axis].clone()).collect(),
        Attrs::Slices(slices) => slices.iter().map(|s| s.len.clone()).collect(),
        Attrs::Shape(shape) => shape.clone(),
        _ => from.clone(),
    }
}

fn broadcasts(node: &Node) -> bool {
    node.op == &BROADCAST_TO
}

fn is_view(node: &Node) -> bool {
    [&TRANSPOSE, &SLICE, &RESHAPE].contains(&node.op)
}
