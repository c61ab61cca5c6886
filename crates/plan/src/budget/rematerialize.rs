//! Rematerialization: a sketch made a graph. Nodes that are recomputed are copies with values of their own, values
//! that wait in a file are written and read back by nodes, and what comes after reads those.

use std::collections::HashMap;

use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::Transfer;
use tonnage_ops::state::spill::{SPILL, SPILL_WAIT, UNSPILL, UNSPILL_WAIT};

use super::draw::SketchStep;
use crate::order::pressure::Pressure;

/// The graph that runs these nodes.
pub fn graph(program: &Graph, pressure: &Pressure, runs: &[SketchStep]) -> Graph {
    let mut making = RematBuilder {
        made: program.clone(),
        program,
        root: &pressure.root,
        makers: HashMap::new(),
        version: vec![0; program.value_count()],
        now: HashMap::new(),
        in_transfer: HashMap::new(),
    };
    making.made.nodes = Vec::with_capacity(runs.len());
    for (at, node) in program.nodes.iter().enumerate() {
        making.makers.extend(node.outputs.iter().map(|id| (*id, at)));
    }
    for run in runs {
        match *run {
            SketchStep::Node(node) => making.run(&program.nodes[node as usize], false),
            SketchStep::Recompute(node) => making.run(&program.nodes[node as usize], true),
            SketchStep::Transfer(transfer, root) => {
                making.transfer(transfer, ValueId::new(root as usize));
            }
        }
    }
    making.made
}

struct RematBuilder<'g> {
    program: &'g Graph,
    made: Graph,
    /// For each value of the program, the one whose bytes it lies in.
    root: &'g [u32],
    makers: HashMap<ValueId, usize>,
    /// How often each root was recomputed.
    version: Vec<u32>,
    /// The current replacement of a value, and of which version of its root it is.
    now: HashMap<ValueId, (u32, ValueId)>,
    /// What a root is, of those that go to the file, lie there, or come back.
    in_transfer: HashMap<ValueId, ValueId>,
}

impl RematBuilder<'_> {
    fn run(&mut self, node: &Node, recompute: bool) {
        let mut copy = node.clone();
        for id in &mut copy.inputs {
            *id = self.resolve(*id);
        }
        if recompute {
            for id in &mut copy.outputs {
                self.version[id.index()] += 1;
                *id = self.second(*id);
            }
        } else {
            for id in &node.outputs {
                let version = self.version[self.root[id.index()] as usize];
                self.now.insert(*id, (version, *id));
            }
        }
        self.made.nodes.push(copy);
    }

    /// A root is itself when it is written: that begins as soon as it is made.
    fn transfer(&mut self, transfer: Transfer, root: ValueId) {
        let before = self.in_transfer.get(&root).copied().unwrap_or(root);
        let (op, inputs): (&'static OpDef, Vec<ValueId>) = match transfer {
            Transfer::Write => (&SPILL, vec![root]),
            Transfer::Written => (&SPILL_WAIT, vec![root, before]),
            Transfer::Read => (&UNSPILL, vec![before]),
            Transfer::Arrived => (&UNSPILL_WAIT, vec![before]),
        };
        let made = match transfer {
            Transfer::Arrived => {
                self.version[root.index()] += 1;
                self.second(root)
            }
            _ => self.made.add_value(self.program.value(root).clone()),
        };
        self.in_transfer.insert(root, made);
        self.made.nodes.push(Node {
            op,
            attrs: Attrs::None,
            inputs,
            outputs: vec![made],
            aux: false,
            regions: Vec::new(),
            source: self.program.value(root).source,
        });
    }

    /// The current replacement of a value of the program: itself, a second one, or a view of a second one.
    fn resolve(&mut self, id: ValueId) -> ValueId {
        let version = self.version[self.root[id.index()] as usize];
        match self.now.get(&id) {
            Some((of, stands)) if *of == version => return *stands,
            None if version == 0 => return id, // an input
            _ => {}
        }
        let program = self.program;
        let Some(maker) = self.makers.get(&id) else { return id };
        let mut view = program.nodes[*maker].clone();
        view.inputs = view.inputs.into_iter().map(|input| self.resolve(input)).collect();
        view.outputs = vec![self.second(id)];
        let made = view.outputs[0];
        self.made.nodes.push(view);
        made
    }

    fn second(&mut self, id: ValueId) -> ValueId {
        let made = self.made.add_value(self.program.value(id).clone());
        let version = self.version[self.root[id.index()] as usize];
        self.now.insert(id, (version, made));
        made
    }
}
