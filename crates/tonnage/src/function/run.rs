//! Runs a program: inputs in, results out, variables written, and what the call took.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use tonnage_core::{Bytes, ErrorKind, Kind, Mark, Result, Source};
use tonnage_plan::{Allowed, OutputPlan, Plan};
use tonnage_runtime::eager::Arrays;
use tonnage_runtime::execute::{Headroom, Measured, Specs};
use tonnage_runtime::placement::{all_beside, default_ledger, ledger_of};
use tonnage_runtime::{Array, execute, random};

use super::around::around;
use super::budgets::Budgets;
use super::cache::{HasProgram, TraceCache};
use super::choice::{Levers, PlanChoice, PlanKey};
use super::lock;
use super::planned::CachedPlans;
use super::program::TracedProgram;
use super::ran::Ran;
use crate::tensor::Tensor;
use crate::variable::LockedVariables;

impl TracedProgram {
    /// Runs it with these arguments, which are given up: those that nobody else holds are its to overwrite.
    pub fn run<T: HasProgram>(
        &self,
        cache: &Mutex<TraceCache<T>>,
        arguments: Vec<Array>,
        source: Source,
    ) -> Result<(Arrays, Measured)> {
        let plans = CachedPlans { program: self, cache };
        let room = lock(cache).room().and(around());
        let (made, ran) =
            self.run_planned(arguments, source, room, |key, room| plans.plan(key, room))?;
        let measured = ran.measured;
        lock(cache).set_last(ran);
        Ok((made, measured))
    }

    /// Runs it once, without arguments; its plan is not cached.
    pub fn run_once(&self, source: Source) -> Result<Arrays> {
        let plan_now = |key: PlanKey, room: Option<Headroom>| {
            let choice = PlanChoice::of(self, &key);
            let plain = choice.as_it_is()?;
            match room {
                None => Ok(plain),
                Some(room) => {
                    let machine = crate::calibrate::machine();
                    let levers = Levers { machine, allowed: Allowed::EXACT, beside: Bytes::ZERO };
                    room.fit(plain, || choice.frontier(&levers).map(Arc::new))
                }
            }
        };
        Ok(self.run_planned(Vec::new(), source, Budgets::default(), plan_now)?.0)
    }

    /// The recipe that it gives, if it gives one: nothing has to run for that.
    pub fn as_recipe(&self) -> Result<Option<Array>> {
        let recipe = |tensor: &Tensor| tensor.is_recipe();
        if !self.captured.iter().all(recipe) || !self.variables.is_empty() {
            return Ok(None);
        }
        let mut key = PlanKey::of(self, default_ledger().device());
        let mut specs = Specs::default();
        for array in self.inputs(Vec::new())? {
            key.specs.push(specs.of(&array, false));
        }
        let plan = PlanChoice::of(self, &key).as_it_is()?;
        match plan.outputs.first() {
            Some(OutputPlan::Recipe(_)) if plan.obtains().is_zero() => {
                Ok(self.run_once(Source::here())?.into_iter().next())
            }
            _ => Ok(None),
        }
    }

    /// Runs it by the plan that `planned` gives for inputs like these. Warm pages give way to a budget.
    fn run_planned(
        &self,
        arguments: Vec<Array>,
        source: Source,
        budgets: Budgets,
        planned: impl FnOnce(PlanKey, Option<Headroom>) -> Result<Arc<Plan>>,
    ) -> Result<(Arrays, Ran)> {
        // Before the inputs are shared with anything here.
        let given: smallvec::SmallVec<[bool; 8]> = arguments.iter().map(Array::is_sole).collect();
        let mut inputs = self.inputs(arguments).map_err(|e| e.at(source))?;
        let mut held =
            LockedVariables::take(&self.variables, &inputs, source).map_err(|e| e.at(source))?;
        inputs.extend(held.arrays());
        let place = ledger_of("function", inputs.iter()).map_err(|e| e.at(source))?;
        all_beside("function", &place, &mut inputs, source).map_err(|e| e.at(source))?;
        let (mut key, mut specs) = (PlanKey::of(self, place.device()), Specs::default());
        for (i, array) in inputs.iter().enumerate() {
            let donated = given.get(i).copied().unwrap_or(false);
            key.specs.push(specs.of(array, donated));
        }
        let plan = planned(key, Headroom::left(&place, &inputs)).map_err(|e| e.at(source))?;
        if !budgets.is_none() {
            // Warm pages of earlier calls are reserved too.
            let bytes = if budgets.least { Bytes::ZERO } else { budgets.bytes.unwrap_or_default() };
            place.shrink_cache(plan.arena, bytes.saturating_sub(plan.peak()));
        }
        let start = Instant::now();
        let mark = Mark { source, kind: Kind::Activation };
        let random = random::draw_as(self.replica.unwrap_or_else(random::Replica::of_thread));
        let (mut made, measured) =
            execute::execute_with(&plan, &inputs, (random, specs.given()), mark)?;
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

    /// The inputs of a call but for the variables' values: the arguments and what was captured.
    fn inputs(&self, mut inputs: Vec<Array>) -> Result<Vec<Array>> {
        for tensor in &self.captured {
            inputs.push(tensor.array("a captured tensor")?.clone());
        }
        Ok(inputs)
    }
}
