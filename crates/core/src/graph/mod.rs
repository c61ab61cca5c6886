//! The graph: ops on values in static single assignment, with regions for control flow.
//!
//! A region is a graph of its own. It sees nothing of the graph around it: what a body or a branch
//! uses comes in through its inputs, so that every graph can be verified, planned and printed alone.
//!
//! Order among effects is the order of the node list, which every rewrite keeps for nodes whose row
//! has an effect. Tokens as values were the alternative; they would have to be carried through every
//! loop and branch to say the same thing.
//!
//! Decision: `docs/decisions/effects-in-node-order.md`.

mod build;
mod heap;
mod print;
mod prune;
mod shrink;
mod sizes;
mod slice;
mod verify;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub use build::{Builder, replay};
pub use sizes::Renamed;
pub use slice::Subgraph;

use crate::attrs::Attrs;
use crate::bytes::Bytes;
use crate::dim::{Dim, Symbol};
use crate::heap::{Heap, Seen};
use crate::kind::Kind;
use crate::row::{Call, OpDef};
use crate::shape::TensorType;
use crate::source::Source;

/// The number of a value in its graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);

impl ValueId {
    /// The value of that number.
    pub fn new(index: usize) -> ValueId {
        ValueId(index as u32)
    }

    /// The number.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a value.
#[derive(Debug, Clone)]
pub struct ValueInfo {
    /// Its type.
    pub ty: TensorType,
    /// What the ledger will call it.
    pub kind: Kind,
    /// The user's name for it, if there is one.
    pub name: Option<Arc<str>>,
    /// The user's line.
    pub source: Source,
}

/// One application of an op.
#[derive(Debug, Clone)]
pub struct Node {
    /// The row.
    pub op: &'static OpDef,
    /// What it is told besides its inputs.
    pub attrs: Attrs,
    /// What it reads.
    pub inputs: Vec<ValueId>,
    /// What it defines; with the row's aux outputs at the end where `aux` is set.
    pub outputs: Vec<ValueId>,
    /// Whether the aux outputs are made.
    pub aux: bool,
    /// Bodies and branches.
    pub regions: Vec<Arc<Graph>>,
    /// The user's line.
    pub source: Source,
}

/// Inputs, nodes in an order in which they can run, outputs.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    values: Vec<ValueInfo>,
    /// Values that come from outside.
    pub inputs: Vec<ValueId>,
    /// In an order in which they can run; effects in the user's order.
    pub nodes: Vec<Node>,
    /// Values that leave.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// What is known of a value.
    pub fn value(&self, id: ValueId) -> &ValueInfo {
        &self.values[id.index()]
    }

    /// What is known of a value, to be changed.
    pub fn value_mut(&mut self, id: ValueId) -> &mut ValueInfo {
        &mut self.values[id.index()]
    }

    /// A value's type.
    pub fn ty(&self, id: ValueId) -> &TensorType {
        &self.value(id).ty
    }

    /// How many values there are.
    pub fn value_count(&self) -> usize {
        self.values.len()
    }

    /// Adds a value that nothing defines yet.
    pub fn add_value(&mut self, info: ValueInfo) -> ValueId {
        self.values.push(info);
        ValueId(self.values.len() as u32 - 1)
    }

    /// A new value for an input that nothing reads.
    #[track_caller]
    pub fn add_unused_input(&mut self, ty: TensorType, kind: Kind) -> ValueId {
        self.add_value(ValueInfo { ty, kind, name: None, source: Source::here() })
    }

    /// Types of the inputs.
    pub fn input_types(&self) -> Vec<TensorType> {
        self.inputs.iter().map(|id| self.ty(*id).clone()).collect()
    }

    /// Types of the outputs.
    pub fn output_types(&self) -> Vec<TensorType> {
        self.outputs.iter().map(|id| self.ty(*id).clone()).collect()
    }

    /// Types of a node's inputs.
    pub fn types_of(&self, ids: &[ValueId]) -> Vec<TensorType> {
        ids.iter().map(|id| self.ty(*id).clone()).collect()
    }

    /// Calls `use_call` with a node's call as types know it.
    pub fn with_call<R>(&self, node: &Node, use_call: impl FnOnce(&Call) -> R) -> R {
        let inputs = self.types_of(&node.inputs);
        use_call(&Call {
            op: node.op.name,
            inputs: &inputs,
            attrs: &node.attrs,
            regions: &node.regions,
        })
    }

    pub(crate) fn values(&self) -> &Vec<ValueInfo> {
        &self.values
    }

    /// What the graph itself takes on the heap, regions included; what several regions share counts once.
    pub fn bytes(&self) -> Bytes {
        Bytes::of(self.heap(&mut Seen::default()))
    }

    /// How many nodes there are, regions included.
    pub fn node_count(&self) -> usize {
        let inner = |node: &Node| node.regions.iter().map(|g| g.node_count()).sum::<usize>();
        self.nodes.iter().map(|node| 1 + inner(node)).sum()
    }

    /// The graph with symbols replaced where `find` knows better.
    ///
    /// A size that the data decide stays a symbol; where its bound mentions a replaced symbol it
    /// becomes a new one, the same everywhere in the graph and its regions.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Graph {
        let renewed: RefCell<HashMap<Symbol, Dim>> = RefCell::default();
        let find_all = |symbol: &Symbol| -> Option<Dim> {
            if let Some(dim) = find(symbol) {
                return Some(dim);
            }
            if let Some(dim) = renewed.borrow().get(symbol) {
                return Some(dim.clone());
            }
            let bound = symbol.bound()?.substitute(find);
            let dim = Dim::symbol(Symbol::bounded(symbol.name(), bound));
            renewed.borrow_mut().insert(symbol.clone(), dim.clone());
            Some(dim)
        };
        self.replace_symbols(&find_all)
    }

    /// The graph with exactly these symbols replaced, in its regions too.
    pub(super) fn replace_symbols(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Graph {
        let mut graph = self.clone();
        for info in &mut graph.values {
            info.ty = info.ty.substitute(find);
        }
        for node in &mut graph.nodes {
            node.attrs = node.attrs.substitute(find);
            for region in &mut node.regions {
                *region = Arc::new(region.replace_symbols(find));
            }
        }
        graph
    }
}
