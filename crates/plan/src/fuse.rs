//! Fusion: an elementwise op that only one other reads becomes part of that one's tile program, so that
//! what lies between them never exists. A chain may end in a fold or in the update of a variable.
//!
//! The bits stay those of the single ops: each does what it did, in the same order, and a value of 16
//! bits is rounded as if it lay in memory.

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_core::row::{Lower, Mem};
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::{Close, Form, Instr, Prim, Reg, TileProgram};
use tonnage_ops::shape::reshape::RESHAPE;
use tonnage_ops::tile::fused::FUSED;
use tonnage_ops::tile::fused_update::FUSED_UPDATE;

/// Instructions and loads beyond which a chain is cut: longer ones gain nothing more.
const LONGEST: usize = 64;
const WIDEST: usize = 12;

/// A node as a program, and what it loads: every value once.
#[derive(Clone)]
struct Draft {
    program: TileProgram,
    inputs: Vec<ValueId>,
    domain: Shape,
    grown: bool,
}

/// The graph with chains of elementwise ops joined.
pub fn fuse(graph: &Graph) -> Result<Graph> {
    let mut fusing = Fusing::new(graph)?;
    for at in (0..graph.nodes.len()).rev() {
        while let Some(made) = fusing.joined(at) {
            fusing.replace(at, made);
        }
    }
    fusing.finish()
}

struct Fusing<'g> {
    graph: &'g Graph,
    drafts: Vec<Option<Draft>>,
    alive: Vec<bool>,
    maker: HashMap<ValueId, usize>,
    /// Nodes that read each value.
    readers: HashMap<ValueId, Vec<usize>>,
    /// The value whose bytes a value lies in, through views and updates.
    roots: HashMap<ValueId, ValueId>,
    updates: Vec<usize>,
}

impl<'g> Fusing<'g> {
    fn new(graph: &'g Graph) -> Result<Fusing<'g>> {
        let mut fusing = Fusing {
            graph,
            drafts: Vec::new(),
            alive: vec![true; graph.nodes.len()],
            maker: HashMap::new(),
            readers: HashMap::new(),
            roots: HashMap::new(),
            updates: Vec::new(),
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            fusing.maker.extend(node.outputs.iter().map(|id| (*id, at)));
            for id in &node.inputs {
                let readers = fusing.readers.entry(*id).or_default();
                if readers.last() != Some(&at) {
                    readers.push(at);
                }
            }
            if let Mem::View(input) | Mem::Update(input) = node.op.mem {
                let root = fusing.root(node.inputs[input]);
                fusing.roots.insert(node.outputs[0], root);
            }
            if matches!(node.op.mem, Mem::Update(_)) {
                fusing.updates.push(at);
            }
            let draft = fusing.draft(node)?;
            fusing.drafts.push(draft);
        }
        Ok(fusing)
    }

    fn root(&self, id: ValueId) -> ValueId {
        self.roots.get(&id).copied().unwrap_or(id)
    }

    /// A tile op of known sizes, with every input loaded once.
    fn draft(&self, node: &Node) -> Result<Option<Draft>> {
        let Lower::Tile(make) = node.op.lower else { return Ok(None) };
        let known = |id: &ValueId| self.graph.ty(*id).shape.sizes().is_some();
        if !node.inputs.iter().chain(&node.outputs).all(known) {
            return Ok(None);
        }
        let program = self.graph.with_call(node, |call| make(call, node.aux))?;
        let domain =
            self.graph.with_call(node, |call| tonnage_ops::tile::domain(call, &program))?;
        let mut draft = Draft {
            program: TileProgram { loads: SmallVec::new(), ..program.clone() },
            inputs: Vec::new(),
            domain,
            grown: false,
        };
        draft.program.code.clear();
        let map = draft.load(&program, &node.inputs);
        draft.append(&program, map);
        Ok(Some(draft))
    }

    /// The node with one of the ops that it alone reads written into it.
    fn joined(&self, at: usize) -> Option<(usize, Draft)> {
        let draft = self.drafts[at].as_ref()?;
        draft.inputs.iter().enumerate().find_map(|(load, id)| {
            let from = *self.maker.get(id)?;
            let inner = self.drafts[from].as_ref()?;
            self.may_join(at, draft, load, from, inner)
                .then(|| draft.with(load, inner))
                .filter(|made| {
                    made.program.code.len() <= LONGEST
                        && made.inputs.len() <= WIDEST
                        && tonnage_ops::tile::fits(&made.program)
                })
                .map(|made| (from, made))
        })
    }

    fn may_join(&self, at: usize, draft: &Draft, load: usize, from: usize, inner: &Draft) -> bool {
        let (id, node) = (draft.inputs[load], &self.graph.nodes[from]);
        let stores = inner.program.close == Close::Store
            && node.outputs.len() == 1
            && matches!(inner.program.stores[0].1, Form::Elements(_))
            && !matches!(node.op.mem, Mem::Update(_));
        let alone = !self.graph.outputs.contains(&id)
            && self.readers.get(&id).is_some_and(|r| r.iter().all(|r| *r == at || !self.alive[*r]));
        let same = inner.domain == draft.domain && self.graph.ty(id).shape == draft.domain;
        // What the inner op reads must still be there when the outer one runs.
        let read: SmallVec<[ValueId; 8]> = inner.inputs.iter().map(|i| self.root(*i)).collect();
        let target = |u: usize| match self.graph.nodes[u].op.mem {
            Mem::Update(input) => Some(self.graph.nodes[u].inputs[input]),
            _ => None,
        };
        let overwritten = self
            .updates
            .iter()
            .filter(|u| from < **u && **u < at)
            .filter_map(|u| target(*u))
            .any(|t| read.contains(&self.root(t)));
        // An update may read its own target as it lies, and in no other way.
        let crossed = target(at)
            .is_some_and(|t| inner.inputs.iter().any(|i| *i != t && self.root(*i) == self.root(t)));
        stores
            && alone
            && same
            && !overwritten
            && !crossed
            && !is_bits(draft, load)
            && self.keeps_no_more(at, from, inner)
    }

    /// Joining moves the inner op to where the outer one is. Two large inputs that would have died
    /// there, to leave one result, must not live on across a step that needs memory of its own.
    fn keeps_no_more(&self, at: usize, from: usize, inner: &Draft) -> bool {
        let dies = |id: &&ValueId| {
            self.graph.ty(**id).shape == inner.domain
                && !self.graph.outputs.contains(id)
                && !self.graph.inputs.contains(id)
                && self.readers.get(id).is_some_and(|r| r.iter().all(|r| *r <= from))
        };
        let heavy = |n: usize| {
            let lower = self.graph.nodes[n].op.lower;
            self.alive[n] && matches!(lower, Lower::Slices(_) | Lower::Region(_))
        };
        inner.inputs.iter().filter(dies).count() <= 1 || !(from + 1..at).any(heavy)
    }

    fn replace(&mut self, at: usize, (from, made): (usize, Draft)) {
        self.alive[from] = false;
        for id in &made.inputs {
            let readers = self.readers.entry(*id).or_default();
            if !readers.contains(&at) {
                readers.push(at);
            }
        }
        self.drafts[at] = Some(made);
    }

    fn finish(self) -> Result<Graph> {
        let mut graph = self.graph.clone();
        let nodes = std::mem::take(&mut graph.nodes);
        for ((node, draft), alive) in nodes.into_iter().zip(self.drafts).zip(self.alive) {
            match draft {
                _ if !alive => {}
                Some(draft) if draft.grown => emit(&mut graph, node, draft),
                _ => graph.nodes.push(node),
            }
        }
        Ok(graph)
    }
}

fn is_bits(draft: &Draft, load: usize) -> bool {
    draft.program.loads[load] == Form::Bits
}

/// Adds a fused node; one whose fold kept its axes is looked at in that shape.
fn emit(graph: &mut Graph, node: Node, draft: Draft) {
    let op = match node.op.mem {
        Mem::Update(_) => &FUSED_UPDATE,
        _ => &FUSED,
    };
    let mut outputs = node.outputs.clone();
    let mut view = None;
    if let Close::Fold { axes, .. } = &draft.program.close {
        let kept = draft.domain.iter().enumerate().filter(|(i, _)| !axes.contains(i));
        let shape: Shape = kept.map(|(_, d)| d.clone()).collect();
        let info = graph.value(outputs[0]).clone();
        if shape != info.ty.shape {
            let ty = TensorType { dtype: info.ty.dtype, shape };
            let folded = graph.add_value(ValueInfo { ty, ..info.clone() });
            view = Some((folded, outputs[0], info.ty.shape));
            outputs[0] = folded;
        }
    }
    let attrs = Attrs::Tile(Box::new(draft.program));
    let source = node.source;
    graph.nodes.push(Node { op, attrs, inputs: draft.inputs, outputs, aux: false, ..node });
    if let Some((folded, kept, shape)) = view {
        graph.nodes.push(Node {
            op: &RESHAPE,
            attrs: Attrs::Shape(shape),
            inputs: vec![folded],
            outputs: vec![kept],
            aux: false,
            regions: Vec::new(),
            source,
        });
    }
}

impl Draft {
    /// Loads these inputs too, each value once; the register of each.
    fn load(&mut self, program: &TileProgram, inputs: &[ValueId]) -> Vec<Reg> {
        debug_assert!(self.program.code.is_empty(), "loads come before instructions");
        let mut map = Vec::new();
        for (id, form) in inputs.iter().zip(&program.loads) {
            let found =
                self.inputs.iter().zip(&self.program.loads).position(|(i, f)| i == id && f == form);
            map.push(found.unwrap_or_else(|| {
                self.inputs.push(*id);
                self.program.loads.push(*form);
                self.inputs.len() - 1
            }) as Reg);
        }
        map
    }

    /// Adds a program's instructions and stores, with its loads where `map` says.
    fn append(&mut self, program: &TileProgram, mut map: Vec<Reg>) {
        append_code(&mut self.program, &program.code, &mut map);
        self.program.stores =
            program.stores.iter().map(|(r, form)| (map[*r as usize], *form)).collect();
    }

    /// This with the program of one of its inputs written in.
    fn with(&self, load: usize, inner: &Draft) -> Draft {
        let mut made = Draft {
            program: TileProgram { loads: SmallVec::new(), ..self.program.clone() },
            inputs: Vec::new(),
            domain: self.domain.clone(),
            grown: true,
        };
        made.program.code.clear();
        // Its own loads first: the target of an update stays the first of them.
        let others: Vec<usize> = (0..self.inputs.len()).filter(|i| *i != load).collect();
        let mut rest = TileProgram { loads: SmallVec::new(), ..self.program.clone() };
        rest.loads = others.iter().map(|i| self.program.loads[*i]).collect();
        let ids: Vec<ValueId> = others.iter().map(|i| self.inputs[*i]).collect();
        let outer = made.load(&rest, &ids);
        let mut map = made.load(&inner.program, &inner.inputs);
        append_code(&mut made.program, &inner.program.code, &mut map);
        let (reg, form) = inner.program.stores[0];
        let mut value = map[reg as usize];
        if let Form::Elements(dtype) = form
            && dtype.compute() != dtype
        {
            value = made.program.push(Prim::RoundTo(dtype), &[value]);
        }
        let mut map: Vec<Reg> = vec![value; self.inputs.len()];
        for (i, reg) in others.into_iter().zip(outer) {
            map[i] = reg;
        }
        made.append(&self.program, map);
        made
    }
}

fn append_code(program: &mut TileProgram, code: &[Instr], map: &mut Vec<Reg>) {
    for instr in code {
        let args: SmallVec<[Reg; 3]> = instr.args.iter().map(|r| map[*r as usize]).collect();
        let reg = program.push_as(instr.prim, instr.dtype, &args);
        map.push(reg);
    }
}
