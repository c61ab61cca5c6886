//! Liveness and memory pressure: what a graph would take in a given order, told without placing anything: the figure
//! that orders are compared by.
//!
//! It knows views, recipes, updates, donated inputs and in place, as `place` does, but neither layouts nor
//! addresses. Where it is wrong an order is chosen that is not the best; the plan's own figures are never
//! taken from here.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::looping::Loop;
use tonnage_core::row::{Lower, Mem, Region};
use tonnage_core::shape::TensorType;
use tonnage_core::tile::Close;

use crate::place::InputSpec;
use crate::rewrite::shares;
use crate::target::Target;

/// One node, as far as memory goes. Values are told by their *root*: the one whose bytes they lie in.
#[derive(Debug, Clone, Default)]
pub struct Needs {
    /// Roots that it reads, each once.
    pub reads: SmallVec<[u32; 4]>,
    /// Roots that begin with it.
    pub makes: SmallVec<[u32; 2]>,
    /// Roots whose bytes its first result may take over.
    pub reuses: SmallVec<[u32; 2]>,
    /// Workspace.
    pub scratch: u64,
}

/// What is known of all nodes and roots of a graph.
#[derive(Debug, Clone)]
pub struct Pressure {
    pub nodes: Vec<Needs>,
    /// For each value, the value whose bytes it lies in.
    pub root: Vec<u32>,
    /// For each root, its bytes.
    pub size: Vec<u64>,
    /// Roots that live in the arena: neither inputs nor recipes.
    pub in_arena: Vec<bool>,
    /// Roots that stay to the end: results, and inputs that are not given up.
    pub stays: Vec<bool>,
}

/// The most that lives at once, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    pub bytes: u64,
    /// The position in the order.
    pub at: usize,
}

impl Pressure {
    /// Lets go of all but the roots of values: what a graph is made by when nothing is compared any more.
    pub fn only_roots(&mut self) {
        let root = std::mem::take(&mut self.root);
        let (nodes, size, in_arena, stays) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        *self = Pressure { nodes, root, size, in_arena, stays };
    }

    /// Reads a graph, whose inputs lie as `inputs` says.
    pub fn of(graph: &Graph, inputs: &[InputSpec], target: &dyn Target) -> Pressure {
        let values = graph.value_count();
        let mut made = Pressure {
            nodes: Vec::with_capacity(graph.nodes.len()),
            root: (0..values as u32).collect(),
            size: vec![0; values],
            in_arena: vec![true; values],
            stays: vec![false; values],
        };
        for (id, spec) in graph.inputs.iter().zip(inputs) {
            let i = id.index();
            made.in_arena[i] = false;
            match spec {
                InputSpec::Bytes { donated, .. } => {
                    made.size[i] = bytes(graph.ty(*id));
                    made.stays[i] = !donated;
                }
                InputSpec::Recipe(_) => made.size[i] = 0,
            }
        }
        for node in &graph.nodes {
            let needs = made.node(graph, node, target);
            made.nodes.push(needs);
        }
        for id in &graph.outputs {
            let root = made.root[id.index()] as usize;
            made.stays[root] = true;
        }
        made
    }

    fn node(&mut self, graph: &Graph, node: &Node, target: &dyn Target) -> Needs {
        let mut needs = Needs::default();
        for id in &node.inputs {
            let root = self.root[id.index()];
            if self.size[root as usize] > 0 && !needs.reads.contains(&root) {
                needs.reads.push(root);
            }
        }
        if self.is_recipe(graph, node, &needs) {
            return needs; // no bytes
        }
        match node.op.mem {
            Mem::View(_) | Mem::Update(_) | Mem::Regions => {
                for (input, output) in shares(node) {
                    let root = self.root[node.inputs[input].index()];
                    self.root[node.outputs[output].index()] = root;
                }
            }
            Mem::Reuse(candidates) => {
                let size = bytes(graph.ty(node.outputs[0]));
                for i in candidates.iter().filter(|i| **i < node.inputs.len()) {
                    let root = self.root[node.inputs[*i].index()];
                    if self.size[root as usize] == size {
                        needs.reuses.push(root);
                    }
                }
            }
            Mem::Alloc | Mem::Recipe | Mem::File => {}
        }
        let made: &[ValueId] = if node.op.mem == Mem::File { &[] } else { &node.outputs };
        for id in made {
            if self.root[id.index()] == id.index() as u32 {
                self.size[id.index()] = bytes(graph.ty(*id));
                needs.makes.push(id.index() as u32);
            }
        }
        needs.scratch = match node.op.lower {
            Lower::Region(kind) => region(graph, node, kind, target),
            _ => {
                let scratch = graph.with_call(node, |call| target.scratch(node.op, call, &[]));
                scratch.rounded().get()
            }
        };
        needs
    }

    /// A fill, or an elementwise function of nothing that is in memory.
    fn is_recipe(&self, graph: &Graph, node: &Node, needs: &Needs) -> bool {
        match node.op.lower {
            Lower::Recipe(_) => true,
            Lower::View(_) => needs.reads.is_empty(),
            Lower::Tile(make) => {
                needs.reads.is_empty()
                    && !matches!(node.op.mem, Mem::Update(_) | Mem::File)
                    && graph
                        .with_call(node, |call| make(call, node.aux))
                        .is_ok_and(|program| program.close == Close::Store)
            }
            _ => false,
        }
    }

    /// The position of the last node that reads or makes each root; the end for those that stay.
    pub fn last_uses(&self, order: &[u32]) -> Vec<usize> {
        let mut last = vec![0; self.size.len()];
        for (at, n) in order.iter().enumerate() {
            let needs = &self.nodes[*n as usize];
            for root in needs.reads.iter().chain(&needs.makes) {
                last[*root as usize] = at;
            }
        }
        for (last, stays) in last.iter_mut().zip(&self.stays) {
            if *stays {
                *last = usize::MAX;
            }
        }
        last
    }

    /// The most that lives in the arena at once if the nodes run in that order.
    pub fn peak(&self, order: &[u32]) -> Peak {
        let mut peak = Peak { bytes: 0, at: 0 };
        self.walk(order, |at, bytes| {
            if bytes > peak.bytes {
                peak = Peak { bytes, at };
            }
        });
        peak
    }

    /// Tells what lives in the arena at each position if the nodes run in that order.
    pub fn walk(&self, order: &[u32], mut tell: impl FnMut(usize, u64)) {
        let last = self.last_uses(order);
        // What a root really holds of the arena: in place, the bytes go from one to the next.
        let mut holds = vec![0u64; self.size.len()];
        let mut live = 0;
        for (at, n) in order.iter().enumerate() {
            let needs = &self.nodes[*n as usize];
            let taken = needs.reuses.iter().find(|r| last[**r as usize] == at);
            for (i, root) in needs.makes.iter().enumerate() {
                match taken.filter(|_| i == 0) {
                    Some(from) => {
                        holds[*root as usize] = std::mem::take(&mut holds[*from as usize]);
                    }
                    None => {
                        holds[*root as usize] = self.size[*root as usize];
                        live += self.size[*root as usize];
                    }
                }
            }
            tell(at, live + needs.scratch);
            for root in needs.reads.iter().chain(&needs.makes) {
                if last[*root as usize] == at {
                    live -= std::mem::take(&mut holds[*root as usize]);
                }
            }
        }
    }
}

fn bytes(ty: &TensorType) -> u64 {
    let elements: u64 = ty.shape.iter().map(|d| d.most().unwrap_or(0) as u64).product();
    (elements * ty.dtype.size() as u64).next_multiple_of(64)
}

/// What bodies and branches take while they run: branches share, the parts of a loop live together with a
/// second copy of what is carried.
fn region(graph: &Graph, node: &Node, kind: Region, target: &dyn Target) -> u64 {
    let of = |g: &Graph| {
        let inputs: Vec<InputSpec> = g
            .inputs
            .iter()
            .filter_map(|id| InputSpec::contiguous(g.ty(*id), node.op.name, false).ok())
            .collect();
        let order: Vec<u32> = (0..g.nodes.len() as u32).collect();
        Pressure::of(g, &inputs, target).peak(&order).bytes
    };
    let most = node.regions.iter().map(|g| of(g)).max().unwrap_or(0);
    let states = |spec: &Loop| -> u64 {
        node.inputs[..spec.carried].iter().map(|id: &ValueId| bytes(graph.ty(*id))).sum()
    };
    let carried: u64 = match &node.attrs {
        Attrs::Loop(spec) => states(spec),
        // States on their way, and checkpoints that were not handed over.
        Attrs::LoopGrad(spec) => {
            let none = spec.handed || spec.of.spills;
            let rows = if none { 0 } else { spec.of.checkpoint_rows().most().unwrap_or(0) as u64 };
            states(&spec.of).saturating_mul(rows.saturating_add(2))
        }
        _ => 0,
    };
    match kind {
        Region::Branch => most,
        Region::Loop | Region::LoopGrad => most + carried,
    }
}
