//! Sizes that the data decide: which node decides one, and which nodes need it.
//!
//! A fill of such a size, or a reshape to it, reads nothing of the node that decides it, and still has to run after it.
//! So whatever drops nodes or changes their order asks here besides looking at what nodes read.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use smallvec::SmallVec;

use super::{Graph, Node, ValueId};
use crate::attrs::Attrs;
use crate::dim::{Dim, Symbol};
use crate::shape::TensorType;

impl Graph {
    /// True where the data decide the size of any value.
    pub fn depends_on_data(&self) -> bool {
        self.values.iter().any(|info| info.ty.shape.iter().any(Dim::depends_on_data))
    }

    /// True where it mentions one of these sizes that the data decide, in its regions too.
    pub(super) fn mentions(&self, sizes: &HashMap<Symbol, Dim>) -> bool {
        let mut found = false;
        of_graph(self, &mut |symbol| found |= sizes.contains_key(symbol));
        found
    }

    /// For each node, those before it that decide sizes which it needs and none of its inputs has. Nothing at all where the
    /// data decide no size.
    pub fn size_deciders(&self) -> Vec<SmallVec<[usize; 1]>> {
        if !self.depends_on_data() {
            return Vec::new();
        }
        let decided = self.decided();
        let mut all = Vec::with_capacity(self.nodes.len());
        for (at, node) in self.nodes.iter().enumerate() {
            let mut brought = HashSet::new();
            node.inputs.iter().for_each(|id| of_type(self.ty(*id), &mut |s| add(&mut brought, s)));
            let mut needed: SmallVec<[usize; 1]> = SmallVec::new();
            of_node(node, &mut |symbol| {
                let by = decided.get(symbol).filter(|_| !brought.contains(symbol)).copied();
                needed.extend(by.filter(|by| *by < at && !needed.contains(by)));
            });
            all.push(needed);
        }
        all
    }

    /// The nodes that decide sizes which a graph made of parts of this one mentions.
    pub fn deciders_of(&self, part: &Graph) -> HashSet<usize> {
        let mut found = HashSet::new();
        if self.depends_on_data() {
            let decided = self.decided();
            of_graph(part, &mut |symbol| found.extend(decided.get(symbol)));
        }
        found
    }

    /// For each size that the data decide, the node that does.
    fn decided(&self) -> HashMap<Symbol, usize> {
        let mut decided: HashMap<Symbol, usize> = HashMap::new();
        for (at, node) in self.nodes.iter().enumerate() {
            let mut brought = HashSet::new();
            node.inputs.iter().for_each(|id| of_type(self.ty(*id), &mut |s| add(&mut brought, s)));
            for id in &node.outputs {
                of_type(self.ty(*id), &mut |symbol| {
                    if !brought.contains(symbol) {
                        decided.entry(symbol.clone()).or_insert(at);
                    }
                });
            }
        }
        decided
    }
}

impl Graph {
    /// Sizes that the data decide which inputs or nodes mention, and which neither the length of an input says nor a node
    /// before them decides.
    pub(crate) fn undecided_sizes(&self) -> Vec<Symbol> {
        let (mut known, mut missing) = (HashSet::new(), Vec::new());
        if !self.depends_on_data() {
            return missing;
        }
        let lengths = self.inputs.iter().flat_map(|id| self.ty(*id).shape.iter());
        known.extend(lengths.filter_map(Dim::decides).cloned());
        let mut need = |symbol: &Symbol, known: &HashSet<Symbol>| {
            if !known.contains(symbol) && !missing.contains(symbol) {
                missing.push(symbol.clone());
            }
        };
        for id in &self.inputs {
            of_type(self.ty(*id), &mut |symbol| need(symbol, &known));
        }
        for node in &self.nodes {
            of_node(node, &mut |symbol| need(symbol, &known));
            node.outputs.iter().for_each(|id| of_type(self.ty(*id), &mut |s| add(&mut known, s)));
        }
        missing
    }

    /// Types of the outputs as a graph sees them that calls this one. Sizes that are decided in here get new names: another call decides others. So does a
    /// length that is computed from such sizes where no result says them one by one: outside, nothing else would tell what it is.
    pub fn result_types(&self) -> Vec<TensorType> {
        let mut types = self.output_types();
        if !types.iter().flat_map(|ty| ty.shape.iter()).any(Dim::depends_on_data) {
            return types;
        }
        let (own, _) = self.sizes_by_origin();
        let renewed = |name: String, bound: Dim| Dim::symbol(Symbol::bounded(name, bound));
        let mut said: HashMap<Symbol, Dim> = HashMap::new();
        for symbol in types.iter().flat_map(|ty| ty.shape.iter()).filter_map(Dim::decides) {
            if let (true, Some(bound)) = (own.contains(symbol), symbol.bound()) {
                let name = || renewed(symbol.name().to_string(), bound.clone());
                said.entry(symbol.clone()).or_insert_with(name);
            }
        }
        let mut computed: HashMap<Dim, Dim> = HashMap::new();
        for dim in types.iter_mut().flat_map(|ty| ty.shape.iter_mut()) {
            let mut unsaid = false;
            dim.symbols(&mut |s| unsaid |= own.contains(s) && !said.contains_key(s));
            *dim = match unsaid {
                true => computed
                    .entry(dim.clone())
                    .or_insert_with(|| renewed(dim.to_string(), dim.bound()))
                    .clone(),
                false => dim.substitute(&|symbol| said.get(symbol).cloned()),
            };
        }
        types
    }

    /// Sizes that the data decide: those that nodes of this graph do, and those that come from outside of it.
    fn sizes_by_origin(&self) -> (HashSet<Symbol>, HashSet<Symbol>) {
        let (mut own, mut given) = (HashSet::new(), HashSet::new());
        self.inputs.iter().for_each(|id| of_type(self.ty(*id), &mut |s| add(&mut given, s)));
        for node in &self.nodes {
            let mut need = |symbol: &Symbol| {
                if !own.contains(symbol) {
                    add(&mut given, symbol);
                }
            };
            of_attrs(&node.attrs, &mut need);
            for region in &node.regions {
                region.sizes_by_origin().1.iter().for_each(&mut need);
            }
            for id in &node.outputs {
                of_type(self.ty(*id), &mut |symbol| {
                    if !given.contains(symbol) {
                        add(&mut own, symbol);
                    }
                });
            }
        }
        (own, given)
    }

    /// The smallest input or result of a node that has such a size for one of its lengths.
    pub(crate) fn value_of_size(&self, size: &Symbol) -> Option<ValueId> {
        let all = self.inputs.iter().chain(self.nodes.iter().flat_map(|node| &node.outputs));
        let has = |id: &&ValueId| {
            self.ty(**id).shape.iter().any(|dim| dim.as_symbol().is_some_and(|s| s == size))
        };
        all.filter(has).min_by_key(|id| self.ty(**id).bytes("a size").ok()).copied()
    }
}

impl Attrs {
    /// True where they mention a size that the data decide.
    pub fn depend_on_data(&self) -> bool {
        let mut found = false;
        of_attrs(self, &mut |_| found = true);
        found
    }
}

fn add(to: &mut HashSet<Symbol>, symbol: &Symbol) {
    to.insert(symbol.clone());
}

fn of_type(ty: &TensorType, visit: &mut dyn FnMut(&Symbol)) {
    let mut decided = |symbol: &Symbol| {
        if symbol.bound().is_some() {
            visit(symbol);
        }
    };
    ty.shape.iter().for_each(|dim| dim.symbols(&mut decided));
}

/// What attributes mention is what replacing would replace.
fn of_attrs(attrs: &Attrs, visit: &mut dyn FnMut(&Symbol)) {
    let visit = RefCell::new(visit);
    let see = |symbol: &Symbol| {
        if symbol.bound().is_some() {
            (visit.borrow_mut())(symbol);
        }
        None
    };
    let _ = attrs.substitute(&see);
}

/// What a node needs besides its inputs, in its regions too.
fn of_node(node: &Node, visit: &mut dyn FnMut(&Symbol)) {
    of_attrs(&node.attrs, visit);
    node.regions.iter().for_each(|region| of_graph(region, visit));
}

fn of_graph(graph: &Graph, visit: &mut dyn FnMut(&Symbol)) {
    graph.values.iter().for_each(|info| of_type(&info.ty, visit));
    graph.nodes.iter().for_each(|node| of_node(node, visit));
}

/// What sizes that the data decide are called in a graph that is emitted once more: inference names them anew.
#[derive(Debug)]
pub struct Renamed(Option<HashMap<Symbol, Dim>>);

impl Renamed {
    /// Nothing is known yet. A graph without such sizes needs no names.
    pub fn of(graph: &Graph) -> Renamed {
        Renamed(graph.depends_on_data().then(HashMap::new))
    }

    /// Learns names where a type is emitted as another.
    pub fn learn(&mut self, from: &TensorType, to: &TensorType) {
        let Some(sizes) = &mut self.0 else { return };
        for (from, to) in from.shape.iter().zip(to.shape.iter()) {
            let solved = from.solved(to).filter(|(symbol, _)| symbol.bound().is_some());
            if let Some((symbol, is)) = solved.filter(|_| from != to) {
                sizes.entry(symbol).or_insert(is);
            }
        }
    }

    /// What a node is told, by the names that sizes have now.
    pub fn told(&self, node: &Node) -> (Attrs, Vec<Arc<Graph>>) {
        let Some(sizes) = &self.0 else { return (node.attrs.clone(), node.regions.clone()) };
        let find = |symbol: &Symbol| sizes.get(symbol).cloned();
        let regions = node.regions.iter().map(|region| self.region(region)).collect();
        (node.attrs.substitute(&find), regions)
    }

    /// A region by those names. One that several nodes share stays one where nothing in it has another name now.
    pub fn region(&self, region: &Arc<Graph>) -> Arc<Graph> {
        match &self.0 {
            Some(sizes) if region.mentions(sizes) => {
                Arc::new(region.replace_symbols(&|symbol: &Symbol| sizes.get(symbol).cloned()))
            }
            _ => region.clone(),
        }
    }

    /// A type by those names.
    pub fn ty(&self, ty: &TensorType) -> TensorType {
        match &self.0 {
            Some(sizes) => ty.substitute(&|symbol: &Symbol| sizes.get(symbol).cloned()),
            None => ty.clone(),
        }
    }
}
