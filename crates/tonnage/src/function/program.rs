//! A program: a graph that was traced, what it captured, and the variables that it uses. Functions, sessions and first
//! values of variables are programs. `choice` says how one is planned, `planned` looks plans up, `foresee` plans calls that
//! do not run, `run` runs them.
//!
//! Its inputs are the arguments, what was captured, and the variables, in this order. Where dims of the
//! arguments are open the graph is kept as it was traced, and written out for the sizes of a call as it is
//! planned for them; otherwise it is written out once.
//!
//! Decision: `docs/decisions/open-dims-close-before-lowering.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::attrs::Attrs;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{Bytes, Dim, Graph, Node, Result, Symbol};
use tonnage_plan::{InputSpec, lower, lower_with_residuals};
use tonnage_runtime::Array;
use tonnage_runtime::machine::target;
use tonnage_runtime::random::Replica;

use super::signature::{Bound, Signature};
use crate::tensor::Tensor;
use crate::variable::{Variable, store_outputs};
use crate::world::rows::SummedRows;

/// A traced graph with all that it takes from outside.
pub(crate) struct TracedProgram {
    /// Plans are looked up by it; the same program with other variables has the same number.
    pub number: u64,
    /// Of the arguments.
    pub signature: Signature,
    /// Held by reference: however many programs capture a tensor, its bytes are there once.
    pub captured: Vec<Tensor>,
    /// Each with whether it is written.
    pub variables: Vec<(Variable, bool)>,
    /// Outputs that are results; the rest are new values of variables.
    pub results: usize,
    /// As which of several replicas a call draws its random numbers; otherwise as its thread does.
    pub replica: Option<Replica>,
    /// Rows of tables' gradients that it adds up over ranks.
    pub rows: SummedRows,
    graph: ProgramForm,
}

/// The graph of a program, with open dims or without.
enum ProgramForm {
    /// Without open dims, as it runs; and as it was traced, where gradients of loops may be written otherwise.
    Closed(Arc<Graph>, Option<Arc<Graph>>),
    /// As it was traced.
    Open(Arc<Graph>),
}

impl TracedProgram {
    /// A program of a graph that was just traced; one without open dims is written out here.
    pub fn new(
        mut graph: Graph,
        signature: Signature,
        captured: Vec<Tensor>,
        variables: Vec<(Variable, bool)>,
        results: usize,
    ) -> Result<TracedProgram> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        store_outputs(&mut graph, &variables, results);
        let graph = match signature.symbols.is_empty() {
            true => {
                let lowered = Arc::new(lower(&graph, &*target())?);
                let is_loop_grad = |node: &Node| matches!(node.attrs, Attrs::LoopGrad(_));
                let traced = lowered.nodes.iter().any(is_loop_grad).then(|| Arc::new(graph));
                ProgramForm::Closed(lowered, traced)
            }
            false => {
                graph.prune();
                ProgramForm::Open(Arc::new(graph))
            }
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (replica, rows) = (None, SummedRows::default());
        Ok(TracedProgram { number, signature, captured, variables, results, replica, rows, graph })
    }

    /// The same with other variables for its own.
    pub fn with_variables(
        &self,
        mut f: impl FnMut(&Variable) -> Result<Variable>,
    ) -> Result<TracedProgram> {
        let variables = self
            .variables
            .iter()
            .map(|(variable, written)| Ok((f(variable)?, *written)))
            .collect::<Result<_>>()?;
        let graph = match &self.graph {
            ProgramForm::Closed(graph, traced) => {
                ProgramForm::Closed(graph.clone(), traced.clone())
            }
            ProgramForm::Open(graph) => ProgramForm::Open(graph.clone()),
        };
        let (signature, captured) = (self.signature.clone(), self.captured.clone());
        Ok(TracedProgram {
            number: self.number,
            signature,
            captured,
            variables,
            results: self.results,
            replica: self.replica,
            rows: self.rows.clone(),
            graph,
        })
    }

    /// As it was traced, open dims and all; or as it runs, where there are none.
    pub fn graph(&self) -> &Graph {
        match &self.graph {
            ProgramForm::Closed(graph, _) | ProgramForm::Open(graph) => graph,
        }
    }

    /// As it runs for inputs like these.
    pub(super) fn written_out(&self, inputs: &[InputSpec]) -> Result<Arc<Graph>> {
        match &self.graph {
            ProgramForm::Closed(graph, _) => Ok(graph.clone()),
            ProgramForm::Open(graph) => {
                Ok(Arc::new(lower(&self.closed(graph, inputs)?, &*target())?))
            }
        }
    }

    /// As it runs for inputs like these with residuals of loops saved, where there are such graphs.
    pub(super) fn with_residuals(&self, inputs: &[InputSpec]) -> Result<Vec<Arc<Graph>>> {
        let made = match &self.graph {
            ProgramForm::Closed(_, None) => Vec::new(),
            ProgramForm::Closed(_, Some(traced)) => lower_with_residuals(traced, &*target())?,
            ProgramForm::Open(graph) => {
                lower_with_residuals(&self.closed(graph, inputs)?, &*target())?
            }
        };
        Ok(made.into_iter().map(Arc::new).collect())
    }

    /// A graph with open dims, for inputs like these.
    fn closed(&self, graph: &Graph, inputs: &[InputSpec]) -> Result<Graph> {
        let size = |leaf: usize, axis: usize| match &inputs[leaf] {
            InputSpec::Bytes { layout, .. } => layout.sizes[axis],
            InputSpec::Recipe(recipe) => recipe.sizes[axis],
        };
        let bound: Bound = self.signature.symbols.iter().map(|o| size(o.leaf, o.axis)).collect();
        let find = self.signature.find(&bound);
        let closed = graph.substitute(&|s: &Symbol| -> Option<Dim> { find(s) });
        // Sizes that the trace did not know may not be possible: a reshape whose elements do not come out.
        closed.verify()?;
        Ok(closed)
    }

    /// What tensors it holds take, each once.
    pub fn captured_bytes(&self) -> Bytes {
        let mut seen = Vec::new();
        let mut sum = Bytes::ZERO;
        for array in self.captured.iter().filter_map(|t| t.array("captured").ok()) {
            if !seen.iter().any(|s: &&Array| s.shares_bytes(array)) {
                seen.push(array);
                sum += array.storage().reserved();
            }
        }
        sum
    }

    /// What its trace has counted already.
    pub(super) fn counted(&self) -> Seen {
        let mut shared = Seen::default();
        if let ProgramForm::Closed(graph, traced) = &self.graph {
            graph.heap(&mut shared);
            if let Some(traced) = traced {
                traced.heap(&mut shared);
            }
        }
        shared
    }
}

/// A graph as text, with what it takes itself.
pub(crate) fn text(graph: &Graph) -> String {
    let (nodes, bytes) = (graph.node_count(), graph.bytes());
    let each = Bytes::of(bytes.as_usize().checked_div(nodes).unwrap_or(0));
    format!("{graph}\n{nodes} nodes in {bytes}, {each} a node\n")
}

impl Heap for TracedProgram {
    fn heap(&self, seen: &mut Seen) -> usize {
        let graph = match &self.graph {
            ProgramForm::Closed(graph, traced) => {
                graph.heap(seen) + traced.as_ref().map_or(0, |traced| traced.heap(seen))
            }
            ProgramForm::Open(graph) => graph.heap(seen),
        };
        graph
            + self.signature.heap(seen)
            + self.captured.capacity() * size_of::<Tensor>()
            + self.variables.capacity() * size_of::<(Variable, bool)>()
    }
}
