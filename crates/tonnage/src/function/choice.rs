//! Which plan a program gets for certain inputs: the smallest that takes hardly longer than the quickest, or under a budget the
//! quickest that fits by the levers that are allowed. Where none fits, a refusal says what would do. Nothing is cached here.
//!
//! Decision: `docs/decisions/default-plan.md`.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{Bytes, Device, DeviceKind, Kind, Result};
use tonnage_plan::{Allowed, Frontier, InputSpec, Machine, Plan, PlanOptions, SharedTarget, plan};
use tonnage_runtime::machine::{machine, memory_of, target_on};
use tonnage_runtime::{Owner, host_ledger, pool};

use super::around::around;
use super::budgets::Budgets;
use super::cache::WORTH_GIVING_BACK;
use super::program::TracedProgram;
use super::refuse::{LeastPlan, would_help};

/// What a plan is looked up by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanKey {
    /// The program's number.
    pub program: u64,
    /// Where it runs.
    pub device: Device,
    pub threads: usize,
    /// Those of the calls around.
    pub budget: Budgets,
    /// How the inputs lie, in their order.
    pub specs: SmallVec<[InputSpec; 4]>,
}

/// By what differs between the plans of most programs: every call looks its plan up.
impl Hash for PlanKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.program.hash(state);
        self.specs.hash(state);
    }
}

impl PlanKey {
    /// Of a program on the threads that there are now, before the first of its inputs.
    #[inline]
    pub fn of(program: &TracedProgram, device: Device) -> PlanKey {
        let (program, threads) = (program.number, pool().threads());
        PlanKey { program, device, threads, budget: around(), specs: Default::default() }
    }
}

impl Heap for PlanKey {
    fn heap(&self, seen: &mut Seen) -> usize {
        let own =
            if self.specs.spilled() { self.specs.capacity() * size_of::<InputSpec>() } else { 0 };
        own + self.specs.iter().map(|spec| spec.heap(seen)).sum::<usize>()
    }
}

/// What plans under a budget are made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Levers {
    pub machine: Machine,
    pub allowed: Allowed,
    /// Held by others, and part of the budget.
    pub beside: Bytes,
}

impl Levers {
    /// Those that keep every bit.
    pub fn exact(self) -> Levers {
        Levers { allowed: Allowed::EXACT, ..self }
    }
}

/// The plans that a program can have for inputs like those of a key.
pub(super) struct PlanChoice<'a> {
    pub program: &'a TracedProgram,
    pub key: &'a PlanKey,
    /// The card that they are for, where they are made to be read alone.
    pub card: Option<SharedTarget>,
}

impl<'a> PlanChoice<'a> {
    /// Plans for where the inputs lie.
    pub fn of(program: &'a TracedProgram, key: &'a PlanKey) -> PlanChoice<'a> {
        PlanChoice { program, key, card: None }
    }

    fn target(&self, machine: Machine) -> Result<SharedTarget> {
        match &self.card {
            Some(card) => Ok(card.clone()),
            None => target_on(self.key.device, self.key.threads, machine),
        }
    }

    /// The plan within some budgets; where there are none, the smallest of the quick ones.
    ///
    /// # Errors
    /// As [`PlanChoice::fit`].
    pub fn within(&self, budgets: Budgets, levers: Levers) -> Result<Arc<Plan>> {
        match budgets.is_none() {
            true => self.by_default(levers.machine),
            false => self.fit(budgets, levers),
        }
    }

    /// The plan of the program as it is written, with a few states of its loops: nothing is looked for.
    pub fn as_it_is(&self) -> Result<Arc<Plan>> {
        let options = PlanOptions::new(self.target(machine())?);
        let graph = self.program.written_out(&self.key.specs)?;
        Ok(Arc::new(plan(&graph, &self.key.specs, options)?))
    }

    /// The smallest of the plans that are about as quick as the quickest.
    fn by_default(&self, machine: Machine) -> Result<Arc<Plan>> {
        let memory = match self.card {
            None => memory_of(self.key.device)?,
            Some(_) => None,
        };
        let options = PlanOptions::new(self.target(machine)?);
        let (graph, residuals) = self.graphs()?;
        let specs = &self.key.specs;
        let chosen = match Frontier::by_default(&graph, &residuals, specs, options.clone())? {
            Some(frontier) => {
                drop(residuals);
                self.counted(frontier, |frontier| frontier.least_of_quick(memory))?
            }
            None => None,
        };
        match chosen {
            Some(plan) => Ok(plan),
            None => Ok(Arc::new(plan(&graph, specs, options)?)),
        }
    }

    /// Asks a frontier, which is in the ledger as long as it lives, and given back to the system before anything runs.
    fn counted<R>(
        &self,
        frontier: Frontier,
        ask: impl FnOnce(&Frontier) -> Result<R>,
    ) -> Result<R> {
        let tally = host_ledger().tally(Owner::new(Kind::Graph, "planning"));
        let bytes = frontier.heap(&mut self.program.counted());
        tally.set(Bytes::of(bytes));
        let answer = ask(&frontier)?;
        drop(frontier);
        if bytes >= WORTH_GIVING_BACK {
            tonnage_runtime::system::give_back_heap();
        }
        Ok(answer)
    }

    /// The program, and the program with residuals of its loops saved.
    fn graphs(&self) -> Result<(Arc<Graph>, Vec<Arc<Graph>>)> {
        let graph = self.program.written_out(&self.key.specs)?;
        let has_loops = graph.nodes.iter().any(|n| matches!(n.attrs, Attrs::LoopGrad(_)));
        let residuals = match has_loops {
            true => self.program.with_residuals(&self.key.specs)?,
            false => Vec::new(),
        };
        Ok((graph, residuals))
    }

    /// The quickest plan within budgets, or the least.
    ///
    /// # Errors
    /// Where none fits: with the least budget that would do, and the levers that would help.
    fn fit(&self, budgets: Budgets, levers: Levers) -> Result<Arc<Plan>> {
        let beside = levers.beside;
        let room = budgets.bytes.map(|budget| budget.saturating_sub(beside));
        match (self.fitted(&levers, Budgets { bytes: room, ..budgets })?, budgets.bytes) {
            (Ok(plan), _) | (Err(plan), None) => Ok(plan),
            (Err(plan), Some(budget)) => {
                let least = LeastPlan::of(&plan, beside);
                drop(plan);
                let least_with =
                    |levers: &Levers| Ok(self.frontier(levers)?.least_peak()? + beside);
                let help = would_help(budget, least.needed, levers, least_with)?;
                let device = match self.card {
                    Some(_) => Device { kind: DeviceKind::Cuda, index: 0 },
                    None => self.key.device,
                };
                Err(least.over_budget(device, budget, help))
            }
        }
    }

    /// Whether any plan fits into that.
    pub fn fits(&self, budget: Bytes, levers: &Levers) -> Result<bool> {
        // Most sizes are far from the bound, and need no look at the levers.
        let plain = self.as_it_is()?;
        match plain.peak() <= budget || plain.inputs > budget {
            true => Ok(plain.peak() <= budget),
            false => Ok(self.frontier(levers)?.fit(budget)?.is_ok()),
        }
    }

    /// The quickest plan that fits, or the lowest where that was asked for or none fits.
    fn fitted(
        &self,
        levers: &Levers,
        budgets: Budgets,
    ) -> Result<std::result::Result<Arc<Plan>, Arc<Plan>>> {
        self.counted(self.frontier(levers)?, |frontier| match (budgets.bytes, budgets.least) {
            (Some(bytes), false) => frontier.fit(bytes),
            (bytes, _) => {
                let least = frontier.least()?;
                let fits = bytes.is_none_or(|bytes| least.peak() <= bytes);
                Ok(if fits { Ok(least) } else { Err(least) })
            }
        })
    }

    /// All plans, quickest first.
    pub fn frontier(&self, levers: &Levers) -> Result<Frontier> {
        let options = PlanOptions::new(self.target(levers.machine)?);
        let (graph, residuals) = self.graphs()?;
        Frontier::allowing(levers.allowed, &graph, &residuals, &self.key.specs, options)
    }
}
