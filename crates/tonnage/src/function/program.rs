//! A program: a graph that was traced, what it captured, the variables that it uses, and how it is planned
//! and run. Functions, sessions and first values of variables are programs.
//!
//! Its inputs are the arguments, what was captured, and the variables, in this order. Where dims of the
//! arguments are open the graph is kept as it was traced, and written out for the sizes of a call as it is
//! planned for them; otherwise it is written out once.
//!
//! Decision: `docs/decisions/open-dims-close-before-lowering.md`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tonnage_core::attrs::Attrs;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{Bytes, Dim, ErrorKind, Graph, Kind, Mark, Node, Result, Source, Symbol};
use tonnage_plan::{
    Allowed, Frontier, InputSpec, OutputPlan, Plan, PlanOptions, Price, lower,
    lower_with_residuals, plan,
};
use tonnage_runtime::eager::Arrays;
use tonnage_runtime::execute::{Headroom, Measured, Specs};
use tonnage_runtime::machine::{machine, target, target_of};
use tonnage_runtime::random::next_key;
use tonnage_runtime::{Array, Ledger, Owner, execute, pool};

use super::cache::{HasProgram, Levers, PlanKey, TraceCache, WORTH_GIVING_BACK};
use super::ran::Ran;
use super::refuse::{LeastPlan, would_help};
use super::signature::{Bound, Signature};
use crate::tensor::Tensor;
use crate::variable::{Foreseen, LockedVariables, Variable, store_outputs};

/// A traced graph with all that it takes from outside.
pub(crate) struct TracedProgram {
    pub number: u64,
    /// Of the arguments.
    pub signature: Signature,
    /// Held by reference: however many programs capture a tensor, its bytes are there once.
    pub captured: Vec<Tensor>,
    pub variables: Vec<(Variable, bool)>,
    /// Outputs that are results; the rest are new values of variables.
    pub results: usize,
    graph: ProgramForm,
}

enum ProgramForm {
    /// Without open dims, as it runs; and as it was traced, where gradients of loops may be written otherwise.
    Closed(Arc<Graph>, Option<Arc<Graph>>),
    /// As it was traced.
    Open(Arc<Graph>),
}

impl TracedProgram {
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
        Ok(TracedProgram { number, signature, captured, variables, results, graph })
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
    pub fn written_out(&self, inputs: &[InputSpec]) -> Result<Arc<Graph>> {
        match &self.graph {
            ProgramForm::Closed(graph, _) => Ok(graph.clone()),
            ProgramForm::Open(graph) => {
                Ok(Arc::new(lower(&self.closed(graph, inputs)?, &*target())?))
            }
        }
    }

    /// As it runs for inputs like these with residuals of loops saved, where there are such graphs.
    fn with_residuals(&self, inputs: &[InputSpec]) -> Result<Vec<Arc<Graph>>> {
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

    /// The inputs of a call, from the arguments and the variables' values.
    fn inputs(&self, mut inputs: Vec<Array>, variables: Vec<Array>) -> Result<Vec<Array>> {
        for tensor in &self.captured {
            inputs.push(tensor.array("a captured tensor")?.clone());
        }
        inputs.extend(variables);
        Ok(inputs)
    }

    fn key(&self) -> PlanKey {
        PlanKey { program: self.number, threads: pool().threads(), specs: Default::default() }
    }

    fn plan_now(&self, key: &PlanKey, budget: Option<(Bytes, Levers)>) -> Result<Arc<Plan>> {
        let Some((budget, levers)) = budget else {
            let options = PlanOptions::new(target_of(key.threads, machine()));
            let graph = self.written_out(&key.specs)?;
            return Ok(Arc::new(plan(&graph, &key.specs, options)?));
        };
        let beside = levers.beside;
        let fitted = self.fitted(key, &levers, budget.saturating_sub(beside))?;
        match fitted {
            Ok(plan) => Ok(plan),
            Err(plan) => {
                let least = LeastPlan::of(&plan, beside);
                drop(plan);
                let least_with =
                    |levers: &Levers| Ok(self.frontier(key, levers)?.least_peak()? + beside);
                let help = would_help(budget, least.needed, levers, least_with)?;
                Err(least.over_budget(budget, help))
            }
        }
    }

    /// The quickest plan that fits, or the lowest. The frontier is in the ledger as long as it lives, and given back
    /// to the system before anything runs.
    fn fitted(
        &self,
        key: &PlanKey,
        levers: &Levers,
        budget: Bytes,
    ) -> Result<std::result::Result<Arc<Plan>, Arc<Plan>>> {
        let frontier = self.frontier(key, levers)?;
        let tally = Ledger::cpu().tally(Owner::new(Kind::Graph, "planning"));
        let bytes = frontier.heap(&mut self.counted());
        tally.set(Bytes::of(bytes));
        let fitted = frontier.fit(budget)?;
        drop(frontier);
        if bytes >= WORTH_GIVING_BACK {
            tonnage_runtime::system::give_back_heap();
        }
        Ok(fitted)
    }

    /// All ways to run it with inputs like these, quickest first.
    fn frontier(&self, key: &PlanKey, levers: &Levers) -> Result<Frontier> {
        let options = PlanOptions::new(target_of(key.threads, levers.machine));
        let graph = self.written_out(&key.specs)?;
        let residuals = self.with_residuals(&key.specs)?;
        Frontier::allowing(levers.allowed, &graph, &residuals, &key.specs, options)
    }

    /// The plan for inputs like these, cached: under the function's own budget, and in the room that the
    /// device's limit leaves, whichever is less.
    fn planned<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        key: PlanKey,
        room: Option<Headroom>,
    ) -> Result<Arc<Plan>> {
        let cached = lock(cache).plan(&key);
        let quickest = match cached {
            Some(plan) => plan,
            None => {
                let budget = {
                    let cache = lock(cache);
                    cache.budget().map(|bytes| (bytes, cache.levers()))
                };
                let made = self.plan_now(&key, budget)?;
                lock(cache).insert_plan(key.clone(), made, self.counted())
            }
        };
        match room {
            None => Ok(quickest),
            Some(room) => self.planned_within(cache, key, room, quickest),
        }
    }

    /// The point that fits a room. The frontier is cached, so that another room is another point and not another
    /// search.
    fn planned_within<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        key: PlanKey,
        room: Headroom,
        quickest: Arc<Plan>,
    ) -> Result<Arc<Plan>> {
        let mut used: Option<(Arc<Frontier>, usize)> = None;
        let frontier = || {
            let cached = lock(cache).frontier(&key);
            let (frontier, counted) = match cached {
                Some(frontier) => (frontier.clone(), frontier.planned()),
                None => {
                    // This function has no budget of its own: nothing that changes a bit.
                    let levers = lock(cache).levers().exact();
                    (Arc::new(self.frontier(&key, &levers)?), 0)
                }
            };
            used = Some((frontier.clone(), counted));
            Ok(frontier)
        };
        let fitted = room.fit(quickest, frontier);
        if let Some((frontier, counted)) = used
            && frontier.planned() != counted
        {
            lock(cache).insert_frontier(key, &frontier, self.counted());
        }
        fitted
    }

    /// What its trace has counted already.
    fn counted(&self) -> Seen {
        let mut shared = Seen::default();
        if let ProgramForm::Closed(graph, traced) = &self.graph {
            graph.heap(&mut shared);
            if let Some(traced) = traced {
                traced.heap(&mut shared);
            }
        }
        shared
    }

    /// Plans a call without running anything: the arguments as they would lie.
    pub fn foresee<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: &[Tensor],
        moved: bool,
    ) -> Result<Arc<Plan>> {
        let settled = lock(cache).is_settled();
        let (key, inputs) = self.foreseen(arguments, moved, settled)?;
        self.planned(cache, key, Headroom::left(&inputs))
    }

    /// What less memory costs for a call with such arguments.
    pub fn prices<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: &[Tensor],
    ) -> Result<Vec<Price>> {
        let (levers, settled) = {
            let cache = lock(cache);
            (cache.levers(), cache.is_settled())
        };
        self.frontier(&self.foreseen(arguments, false, settled)?.0, &levers)?.prices()
    }

    /// Whether a call with such arguments fits into that.
    pub fn fits(&self, arguments: &[Tensor], budget: Bytes, levers: &Levers) -> Result<bool> {
        let key = self.foreseen(arguments, false, false)?.0;
        // Most sizes are far from the bound, and need no look at the levers.
        let plain = self.plan_now(&key, None)?;
        match plain.peak() <= budget || plain.inputs > budget {
            true => Ok(plain.peak() <= budget),
            false => Ok(self.frontier(&key, levers)?.fit(budget)?.is_ok()),
        }
    }

    /// What a call is planned for, and those of its inputs that exist.
    fn foreseen(
        &self,
        arguments: &[Tensor],
        moved: bool,
        settled: bool,
    ) -> Result<(PlanKey, Vec<Array>)> {
        let (mut key, mut specs, mut inputs) = (self.key(), Specs::default(), Vec::new());
        for tensor in arguments {
            key.specs.push(match tensor.spec_type() {
                Some(ty) => InputSpec::contiguous(ty, "plan", moved)?,
                None => {
                    let array = tensor.array("plan")?;
                    inputs.push(array.clone());
                    specs.of(array, moved && array.is_whole())
                }
            });
        }
        for tensor in &self.captured {
            let array = tensor.array("a captured tensor")?;
            inputs.push(array.clone());
            key.specs.push(specs.of(array, false));
        }
        for (variable, written) in &self.variables {
            key.specs.push(match variable.foreseen(*written, settled)? {
                Foreseen::AsIs(array) => {
                    inputs.push(array.clone());
                    specs.of(&array, false)
                }
                Foreseen::Copy(ty) => InputSpec::contiguous(&ty, "variable", false)?,
            });
        }
        Ok((key, inputs))
    }

    /// Runs it with these arguments, which are given up: those that nobody else holds are its to overwrite.
    pub fn run<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: Vec<Array>,
        source: Source,
    ) -> Result<(Arrays, Measured)> {
        let planned = |key, room| self.planned(cache, key, room);
        let room = lock(cache).room();
        let (made, ran) = self.run_planned(arguments, source, room, planned)?;
        let measured = ran.measured;
        lock(cache).set_last(ran);
        Ok((made, measured))
    }

    /// Runs it once, without arguments; its plan is not cached.
    pub fn run_once(&self, source: Source) -> Result<Arrays> {
        let plan_now = |key: PlanKey, room: Option<Headroom>| {
            let quickest = self.plan_now(&key, None)?;
            match room {
                None => Ok(quickest),
                Some(room) => {
                    let machine = crate::calibrate::machine();
                    let levers = Levers { machine, allowed: Allowed::EXACT, beside: Bytes::ZERO };
                    room.fit(quickest, || self.frontier(&key, &levers).map(Arc::new))
                }
            }
        };
        Ok(self.run_planned(Vec::new(), source, None, plan_now)?.0)
    }

    /// The recipe that it gives, if it gives one: nothing has to run for that.
    pub fn as_recipe(&self) -> Result<Option<Array>> {
        let recipe = |tensor: &Tensor| tensor.is_recipe();
        if !self.captured.iter().all(recipe) || !self.variables.is_empty() {
            return Ok(None);
        }
        let mut key = self.key();
        let mut specs = Specs::default();
        for array in self.inputs(Vec::new(), Vec::new())? {
            key.specs.push(specs.of(&array, false));
        }
        let plan = self.plan_now(&key, None)?;
        match plan.outputs.first() {
            Some(OutputPlan::Recipe(_)) if plan.obtains().is_zero() => {
                Ok(self.run_once(Source::here())?.into_iter().next())
            }
            _ => Ok(None),
        }
    }

    fn run_planned(
        &self,
        arguments: Vec<Array>,
        source: Source,
        budget: Option<Bytes>,
        planned: impl FnOnce(PlanKey, Option<Headroom>) -> Result<Arc<Plan>>,
    ) -> Result<(Arrays, Ran)> {
        // Before the inputs are shared with anything here.
        let given: smallvec::SmallVec<[bool; 8]> = arguments.iter().map(Array::is_sole).collect();
        let mut held = LockedVariables::take(&self.variables).map_err(|e| e.at(source))?;
        let inputs = self.inputs(arguments, held.arrays()).map_err(|e| e.at(source))?;
        let (mut key, mut specs) = (self.key(), Specs::default());
        for (i, array) in inputs.iter().enumerate() {
            let donated = given.get(i).copied().unwrap_or(false);
            key.specs.push(specs.of(array, donated));
        }
        let plan = planned(key, Headroom::left(&inputs)).map_err(|e| e.at(source))?;
        if let Some(budget) = budget {
            // Warm pages of earlier calls are reserved too.
            Ledger::cpu().shrink_cache(plan.arena, budget.saturating_sub(plan.peak()));
        }
        let start = Instant::now();
        let mark = Mark { source, kind: Kind::Activation };
        let (mut made, measured) =
            execute::execute_with(&plan, &inputs, (next_key(), specs.given()), mark)?;
        let ran = Ran::new(&plan, measured, start.elapsed());
        drop(inputs);
        if made.len() < self.results {
            let what = "a call returned fewer results than it was traced with".into();
            return Err(ErrorKind::BadGraph { what }.into());
        }
        held.end(&made[self.results..]);
        made.truncate(self.results);
        Ok((made, ran))
    }
}

/// A graph as text, with what it takes itself.
pub(crate) fn text(graph: &Graph) -> String {
    let (nodes, bytes) = (graph.node_count(), graph.bytes());
    let each = Bytes::of(bytes.as_usize().checked_div(nodes).unwrap_or(0));
    format!("{graph}\n{nodes} nodes in {bytes}, {each} a node\n")
}

/// Whoever panicked while he held it left it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

impl HasProgram for TracedProgram {
    fn program(&self) -> &TracedProgram {
        self
    }
}
