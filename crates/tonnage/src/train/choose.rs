//! Which sharding a step gets, and its plan: the quickest that fits the budget, or a refusal that says what would do, on these ranks and on more.
//!
//! Each sharding is a variant of the step, traced and planned as any program is, with a frontier of its own: so what is predicted is measured. Proposals
//! are taken back where nothing runs.
//!
//! Decision: `docs/decisions/sharding-is-a-lever.md`.

use std::sync::Arc;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, ErrorKind, Result, World};
use tonnage_plan::Plan;
use tonnage_runtime::random;

use super::fit::Fit;
use super::learn::{StepFigures, StepPrograms};
use super::sharding::{ShardedPlan, Sharding};
use super::step::{Batch, TrainStep};
use super::sums::Pieces;
use crate::data::Feed;
use crate::function::{Budget, Function, function};
use crate::nn::Layer;
use crate::tensor::Tensor;
use crate::tree::Tree;

/// What a program of a step is called with: a batch, and what the parts before it gave.
type All = (Batch, Vec<Pieces>);

type StepClosure<'s> = Box<dyn Fn(All) -> Result<(Tensor, Pieces)> + 's>;

/// A program of a step: its loss, and what it gives to the last part.
type StepFunction<'s> = Function<All, (Tensor, Pieces), StepClosure<'s>>;

/// The most ranks that a refusal looks at.
const MOST_RANKS: usize = 1024;

/// Takes proposals back that were not cut.
pub(super) struct Withdraw<'s, 'a, M: Layer, L>(pub &'s TrainStep<'a, M, L>)
where
    L: Fn(&Tensor, &Tensor) -> Result<Tensor>;

impl<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>> Drop for Withdraw<'_, '_, M, L> {
    fn drop(&mut self) {
        self.0.propose(Sharding::Replicas);
    }
}

impl Fit {
    /// The programs of the quickest sharding that fits, or of the smallest where that is asked for, which is proposed.
    pub(super) fn quickest<'s, M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        step: &'s TrainStep<'_, M, L>,
        first: &Batch,
        of_data: Bytes,
    ) -> Result<(StepPrograms<'s, M, L>, StepFigures)> {
        let mut best: Option<(Sharding, StepPrograms<'s, M, L>, StepFigures)> = None;
        let mut refused: Option<(Bytes, Error)> = None;
        let wanted = self.wanted(step, first, of_data)?;
        // However many are traced, a step draws what it draws after the first.
        let mut drawn = (wanted != [Sharding::Replicas]).then(random::state);
        for sharding in wanted {
            step.propose(sharding);
            let programs = StepPrograms::new(self, step, first, of_data)?;
            let figures = programs.figures(first);
            drawn.get_or_insert_with(random::state);
            match figures {
                Ok(own) if best.as_ref().is_none_or(|(.., best)| self.prefers(&own, best)) => {
                    best = Some((sharding, programs, own));
                }
                Ok(_) => {}
                Err(error) => {
                    let least = least(&error).ok_or(error.clone())?;
                    if refused.as_ref().is_none_or(|(lowest, _)| least < *lowest) {
                        refused = Some((least, error));
                    }
                }
            }
        }
        drawn.into_iter().for_each(random::set_state);
        match (best, refused) {
            (Some((sharding, programs, figures)), _) => {
                step.propose(sharding);
                Ok((programs, figures))
            }
            (None, Some((_, error))) => Err(self.with_more_ranks(step, first, of_data, error)?),
            (None, None) => Err(no_sharding(self.sharding.unwrap_or(Sharding::Replicas))),
        }
    }

    /// Whether a sharding is better than another: quicker, or smaller where the least is asked for.
    fn prefers(&self, one: &StepFigures, other: &StepFigures) -> bool {
        match self.asked_budget() {
            Some(Budget::Least) => one.peak < other.peak,
            _ => one.seconds < other.seconds,
        }
    }

    /// The shardings that are planned: the one that was asked for, all under a budget, and otherwise the first.
    fn wanted<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        step: &TrainStep<'_, M, L>,
        first: &Batch,
        of_data: Bytes,
    ) -> Result<Vec<Sharding>> {
        let mut all = step.shardings();
        if let Some(asked) = self.sharding {
            all.retain(|sharding| *sharding == asked);
            if all.is_empty() && self.world.size() > 1 {
                return Err(no_sharding(asked));
            }
        } else if self.asked_budget().is_none() {
            all.truncate(1);
        }
        if all.is_empty() {
            all.push(Sharding::Replicas);
        }
        if all != [Sharding::Replicas] {
            StepPrograms::new(self, step, first, of_data)?.trace(first)?;
        }
        Ok(all)
    }

    /// A refusal that also says how many ranks would do.
    fn with_more_ranks<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        step: &TrainStep<'_, M, L>,
        first: &Batch,
        of_data: Bytes,
        error: Error,
    ) -> Result<Error> {
        let ErrorKind::OverBudget { shortage, budget, least, would_help } = error.kind() else {
            return Ok(error);
        };
        let mut found = None;
        // Most often all fit or none does: the most ranks are looked at first.
        let mut ranks = MOST_RANKS;
        while ranks > self.world.size() && step.shardings().last() > Some(&Sharding::Replicas) {
            let Some(peak) = self.peak_on(ranks, step, first, of_data)? else { break };
            found = Some(format!("with {ranks} ranks {peak} would do"));
            ranks /= 2;
        }
        let Some(found) = found else { return Ok(error) };
        let help: Vec<String> = would_help.iter().cloned().chain([found]).collect();
        let (shortage, budget, least) = (shortage.clone(), *budget, *least);
        let would_help = Some(help.join("; "));
        Ok(ErrorKind::OverBudget { shortage, budget, least, would_help }.into())
    }

    /// What a rank takes of so many, with as much in blocks as can be; none where that does not fit.
    fn peak_on<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        ranks: usize,
        step: &TrainStep<'_, M, L>,
        first: &Batch,
        of_data: Bytes,
    ) -> Result<Option<Bytes>> {
        let fit = self.clone().across(&World::on_paper(ranks));
        let own = fit.step(step.model, step.optimizer, step.loss, step.source);
        let _withdraw = Withdraw(&own);
        let Some(last) = fit.wanted(&own, first, of_data)?.pop() else { return Ok(None) };
        own.propose(last);
        match StepPrograms::new(&fit, &own, first, of_data)?.figures(first) {
            Ok(figures) => Ok(Some(figures.peak)),
            Err(error) => least(&error).map(|_| None).ok_or(error),
        }
    }

    /// What each sharding takes; where it does not fit the budget, the least that would do.
    pub(super) fn sharded_plans<M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        step: &TrainStep<'_, M, L>,
        data: &dyn Feed,
    ) -> Result<Vec<ShardedPlan>> {
        let _withdraw = Withdraw(step);
        let (first, of_data) = self.look(data)?;
        StepPrograms::new(self, step, &first, of_data)?.trace(&first)?;
        let mut plans = Vec::new();
        for sharding in step.shardings() {
            step.propose(sharding);
            let figures =
                |fit: &Fit| StepPrograms::new(fit, step, &first, of_data)?.figures(&first);
            let (made, fits) = match figures(self) {
                Ok(made) => (made, true),
                Err(error) => {
                    let budget = least(&error).ok_or(error)?;
                    let made = figures(&self.clone().budget(budget.into()))?;
                    (StepFigures { peak: budget, ..made }, false)
                }
            };
            let StepFigures { peak, sent, seconds } = made;
            plans.push(ShardedPlan { sharding, peak, fits, sent, seconds });
        }
        Ok(plans)
    }

    /// The program of a step that takes most, with what it is called with, and its plan. That of the parts before the last is given what waits beside them, so that
    /// its plan says what is held in all.
    pub(super) fn largest<'s, M: Layer, L: Fn(&Tensor, &Tensor) -> Result<Tensor>>(
        &self,
        step: &'s TrainStep<'_, M, L>,
        data: &dyn Feed,
    ) -> Result<(StepFunction<'s>, All, Arc<Plan>)> {
        let _withdraw = Withdraw(step);
        let (batch, held) = self.look(data)?;
        step.build(&batch)?;
        if self.world.size() > 1 {
            self.quickest(step, &batch, held)?;
        }
        if self.parts > 1 {
            // Tracing a part tells what it gives to the last.
            function(|batch| step.part(batch)).concrete(&batch)?;
        }
        let made = |program: StepFunction<'s>, given: usize| -> Result<_> {
            let all = (batch.share(), step.sums.foreseen(given));
            let plan = program.plan(&all)?;
            Ok((program, all, plan))
        };
        let last: StepClosure<'s> = Box::new(|all| Ok((step.last(all)?, Pieces::new())));
        let last = made(self.limited(function(last), held)?, self.parts - 1)?;
        if self.parts == 1 {
            return Ok(last);
        }
        let part: StepClosure<'s> = Box::new(|(batch, _)| step.part(batch));
        let part = made(self.limited(function(part), held)?.settled(), self.parts - 2)?;
        Ok(if part.2.peak() > last.2.peak() { part } else { last })
    }
}

/// The least budget that would do, of a refusal.
fn least(error: &Error) -> Option<Bytes> {
    match error.kind() {
        ErrorKind::OverBudget { least, .. } => *least,
        _ => None,
    }
}

fn no_sharding(asked: Sharding) -> Error {
    let what = format!("a sharding ({asked}) that this step does not have");
    let help = "use an optimizer that steps every element alone, no loss scale for gradients and \
                weights, and what is not sharded further already";
    bad_argument("fit", what, help)
}
