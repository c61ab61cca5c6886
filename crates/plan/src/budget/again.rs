//! A sketch made a graph: nodes that run again are copies with values of their own, and what comes after reads
//! those.

use std::collections::HashMap;

use tonnage_core::graph::{Graph, Node, ValueId};

use super::sketch::Run;
use crate::order::pressure::Pressure;

/// The graph that runs these nodes.
pub fn graph(program: &Graph, pressure: &Pressure, runs: &[Run]) -> Graph {
    let mut making = Making {
        made: program.clone(),
        program,
        root: &pressure.root,
        makers: HashMap::new(),
        version: vec![0; program.value_count()],
        now: HashMap::new(),
    };
    making.made.nodes = Vec::with_capacity(runs.len());
    for (at, node) in program.nodes.iter().enumerate() {
        making.makers.extend(node.outputs.iter().map(|id| (*id, at)));
    }
    for run in runs {
        making.run(&program.nodes[run.node as usize], run.again);
    }
    making.made
}

struct Making<'g> {
    program: &'g Graph,
    made: Graph,
    /// For each value of the program, the one whose bytes it lies in.
    root: &'g [u32],
    makers: HashMap<ValueId, usize>,
    /// How often each root was made again.
    version: Vec<u32>,
    /// What stands for a value, and of which version of its root.
    now: HashMap<ValueId, (u32, ValueId)>,
}

impl Making<'_> {
    fn run(&mut self, node: &Node, again: bool) {
        let mut copy = node.clone();
        for id in &mut copy.inputs {
            *id = self.resolve(*id);
        }
        if again {
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

    /// What stands for a value of the program now: itself, a second one, or a view of a second one.
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
