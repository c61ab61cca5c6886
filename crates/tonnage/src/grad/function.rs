//! A planned function that someone differentiates: in the forward pass it makes what the backward pass needs.
//!
//! Its graph is cut in two for the inputs whose gradients may be asked for. The first half is planned with
//! what the rows save as further results, which the tape holds; the second half is the backward pass.
//!
//! Decision: `docs/decisions/functions-under-a-tape.md`.

use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::attrs::Attrs;
use tonnage_core::grad::split;
use tonnage_core::graph::Graph;
use tonnage_core::recipe::Key;
use tonnage_core::row::Mem;
use tonnage_core::{Kind, Result, Source};
use tonnage_ops::control::{call::CALL, custom::CUSTOM};
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::{GRAD_OPS, state};
use tonnage_runtime::{Owner, Tally, host_ledger, random};

use super::dual;
use crate::dispatch::{self, OpContext, TensorArg};
use crate::function::program::TracedProgram;
use crate::tape;
use crate::tensor::Tensor;
use crate::trace::FinishedTrace;
use crate::tree::Tree;
use crate::variable::Variable;

/// A function's graph as it was traced, what it takes from outside, and its halves for those who asked.
pub(crate) struct Whole {
    /// Nothing in it writes: variables leave as values.
    graph: Graph,
    captured: Vec<Tensor>,
    variables: Vec<(Variable, bool)>,
    results: usize,
    halves: Mutex<Vec<(Vec<bool>, Arc<Halves>)>>,
    /// What all of it takes.
    tally: Tally,
}

/// A graph cut in two.
struct Halves {
    forward: Graph,
    backward: Graph,
    attrs: Attrs,
}

/// Sets of wanted gradients whose graphs are cached.
const MAX_CACHED: usize = 8;

/// Whether someone differentiates a call: a tape that records it, or a forward pass that an argument moves
/// in.
pub(crate) fn is_watched<A: Tree>(arguments: &A, program: &TracedProgram) -> bool {
    let moves = || {
        let mut all = program.captured.clone();
        arguments.for_each(&mut |tensor| all.push(tensor.clone()));
        dual::moves(&all)
    };
    tape::sees(arguments, program) || (!dual::quiet() && moves())
}

impl Whole {
    pub fn new(traced: FinishedTrace, results: usize, made: Source) -> Whole {
        let mut graph = traced.graph;
        for at in 0..graph.nodes.len() {
            let (op, output) = (graph.nodes[at].op, graph.nodes[at].outputs.first().copied());
            let (Mem::Update(_), Some(output)) = (op.mem, output) else { continue };
            let shape = graph.ty(output).shape.clone();
            let node = &mut graph.nodes[at];
            if *op == state::assign::ASSIGN {
                node.op = &BROADCAST_TO;
                node.inputs.remove(0);
                node.attrs = Attrs::Shape(shape);
            } else {
                node.op = state::pure(op);
            }
        }
        graph.prune();
        let variables = traced.variables.into_iter().map(|u| (u.variable, u.written)).collect();
        let owner =
            Owner { kind: Kind::Graph, what: "gradient of a function", name: None, source: made };
        let tally = host_ledger().tally(owner);
        tally.set(graph.bytes());
        let captured = traced.captured;
        Whole { graph, captured, variables, results, halves: Mutex::default(), tally }
    }

    /// Calls the function for whoever differentiates it. Variables that it writes are written with what
    /// it made of them.
    pub fn call<A: Tree>(&self, arguments: A, source: Source) -> Result<Vec<Tensor>> {
        let mut inputs = Vec::new();
        arguments.take(&mut |tensor| inputs.push(tensor));
        inputs.extend(self.captured.iter().cloned());
        for (variable, _) in &self.variables {
            inputs.push(variable.read()?);
        }
        let mut made = self.run(inputs, source)?;
        let written = self.variables.iter().filter(|(_, written)| *written);
        for ((variable, _), value) in written.zip(made.split_off(self.results)) {
            variable.assign(&value)?;
        }
        Ok(made)
    }

    fn run(&self, inputs: Vec<Tensor>, source: Source) -> Result<Vec<Tensor>> {
        let needs = tape::tracked(&inputs);
        // Both halves are to draw the same random numbers.
        let key = random::next_key();
        let given = inputs.into_iter().map(TensorArg::Owned).collect();
        if !needs.contains(&true) {
            let regions = vec![Arc::new(fixed(&self.graph, key))];
            let context = OpContext { regions, ..OpContext::at(source) };
            let made = dispatch::apply(&CALL, given, Attrs::None, context)?;
            return Ok(made.into_vec());
        }
        let halves = self.halves(needs)?;
        let regions =
            vec![Arc::new(fixed(&halves.forward, key)), Arc::new(fixed(&halves.backward, key))];
        let attrs = halves.attrs.clone();
        let context = OpContext { regions, ..OpContext::at(source) };
        let mut made = dispatch::apply(&CUSTOM, given, attrs, context)?.into_vec();
        made.truncate(self.graph.outputs.len());
        Ok(made)
    }

    fn halves(&self, needs: Vec<bool>) -> Result<Arc<Halves>> {
        let mut all = self.halves.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, halves)) = all.iter().find(|(key, _)| *key == needs) {
            return Ok(halves.clone());
        }
        let made = split(&self.graph, &needs, &GRAD_OPS)?;
        let attrs = Attrs::Custom {
            args: needs.len(),
            results: self.graph.outputs.len(),
            saved: made.saved,
            returns: made.returns,
            exact: true,
        };
        let (forward, backward) = (made.forward, made.backward);
        let halves = Arc::new(Halves { forward, backward, attrs });
        if all.len() >= MAX_CACHED {
            all.remove(0);
        }
        all.push((needs, halves.clone()));
        let cut = all.iter().map(|(_, halves)| halves.forward.bytes() + halves.backward.bytes());
        self.tally.set(self.graph.bytes() + cut.sum());
        Ok(halves)
    }
}

/// The graph with the random numbers of one call.
fn fixed(graph: &Graph, call: [u32; 2]) -> Graph {
    let mut graph = graph.clone();
    for node in &mut graph.nodes {
        let key = match &mut node.attrs {
            Attrs::Random { key, .. } | Attrs::Branch { key: Some(key), .. } => key,
            Attrs::Loop(spec) => &mut spec.key,
            Attrs::LoopGrad(spec) => &mut spec.of.key,
            _ => continue,
        };
        if let Key::PerCall(n) = *key {
            *key = Key::Fixed(random::derived(call, n));
        }
    }
    graph
}
