//! Where steps run. Which calls are not worth the pool: to enter it, to wake its threads and to come back takes as long as a small
//! model does. A call that calls the host is on the thread of its caller there, and what lies between is treated as a call is.
//!
//! Decision: `docs/decisions/short-calls-stay-on-their-thread.md`.

use std::ops::Range;

use smallvec::SmallVec;
use tonnage_core::graph::Node;
use tonnage_core::looping::Iterations;
use tonnage_core::row::Cost;
use tonnage_plan::{Plan, Run, Step};

use crate::pool::{WorkerPool, nanos};

/// What sharing the work of a call has to win.
const WORTH_ENTERING_NANOS: u64 = 100_000;

/// A call that takes longer is watched from another thread, so that Ctrl-C ends it. Kernels may take many times what their cost says.
const WATCHED_NANOS: u64 = 1_000_000;

/// What a call takes on one thread, about, and what all threads would win of it.
#[derive(Default, Clone, Copy)]
struct Work {
    nanos: u64,
    won: u64,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            nanos: self.nanos.saturating_add(other.nanos),
            won: self.won.saturating_add(other.won),
        }
    }

    fn or(self, other: Work) -> Work {
        Work { nanos: self.nanos.max(other.nanos), won: self.won.max(other.won) }
    }

    fn times(self, n: u64) -> Work {
        Work { nanos: self.nanos.saturating_mul(n), won: self.won.saturating_mul(n) }
    }

    fn is_small(self) -> bool {
        self.nanos < WATCHED_NANOS && self.won < WORTH_ENTERING_NANOS
    }
}

/// Whether a call runs on the caller's thread alone: where it is short, and other threads would win little.
pub(super) fn runs_alone(plan: &Plan, pool: &WorkerPool) -> bool {
    !plan.calls_host && small(&plan.steps, pool).is_some()
}

/// Where a stretch of steps runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunAt {
    /// On the thread that is there.
    Here,
    /// The same, with no other.
    Alone,
    /// In the pool.
    Pool,
}

/// The steps of a plan, cut where they call the host: those that do run here, and what lies between where it is worth it. All of
/// them are one stretch where none does: then the whole call was brought to where it runs.
pub(super) fn stretches(plan: &Plan, pool: &WorkerPool) -> Stretches {
    let steps = &plan.steps;
    if !plan.calls_host {
        return SmallVec::from_iter([(0..steps.len(), RunAt::Here)]);
    }
    let calls = |step: &Step| plan.graph.nodes.get(step.node).is_some_and(Node::calls_host);
    let mut found = Stretches::new();
    for (at, step) in steps.iter().enumerate() {
        let here = calls(step);
        match found.last_mut() {
            Some((last, run_at)) if here == (*run_at == RunAt::Here) => last.end = at + 1,
            _ => found.push((at..at + 1, if here { RunAt::Here } else { RunAt::Pool })),
        }
    }
    for (stretch, run_at) in &mut found {
        if *run_at == RunAt::Pool && small(&steps[stretch.clone()], pool).is_some() {
            *run_at = RunAt::Alone;
        }
    }
    found
}

/// Which steps run where.
type Stretches = SmallVec<[(Range<usize>, RunAt); 3]>;

/// The work of steps where it is small; nothing where it is not, or where the data decide.
fn small(steps: &[Step], pool: &WorkerPool) -> Option<Work> {
    let of = |cost: Cost| Work { nanos: nanos(cost), won: pool.wins(cost) };
    let mut sum = Work::default();
    for step in steps {
        let work = match &step.run {
            Run::Nothing => continue,
            Run::Tile(run) | Run::Copy { run, .. } if !step.dynamic => of(run.cost),
            Run::Kernel(Some(call)) if !step.dynamic => of(call.cost),
            Run::Branch { branches, .. } => {
                let mut most = Work::default();
                for branch in branches {
                    most = most.or(small(&branch.plan.steps, pool)?);
                }
                most
            }
            Run::Loop(run) => match &run.spec.iterations {
                Iterations::Times(times) => {
                    small(&run.body.steps, pool)?.times(times.known()? as u64)
                }
                Iterations::While { .. } => return None,
            },
            _ => return None,
        };
        sum = sum.and(work);
        if !sum.is_small() {
            return None;
        }
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tonnage_core::attrs::Attrs;
    use tonnage_core::graph::Builder;
    use tonnage_core::lent::{In, Out};
    use tonnage_core::{DType, Emit, HostCall, Kind, Result, TensorType};
    use tonnage_ops::host::callback::HOST_CALLBACK;
    use tonnage_ops::math::exp::EXP;
    use tonnage_plan::{DescribedTarget, InputSpec, PlanOptions, lower, plan};

    use super::*;

    fn exp_of(elements: usize) -> Result<Plan> {
        let target = Arc::new(DescribedTarget::default());
        let mut builder = Builder::new();
        let ty = TensorType::new(DType::F32, [elements]);
        let x = builder.input(ty.clone(), Kind::Input, None);
        let made = builder.emit(&EXP, vec![x], Attrs::None, vec![], false)?;
        let graph = Arc::new(lower(&builder.finish(&made)?, &*target)?);
        plan(&graph, &[InputSpec::contiguous(&ty, "test", false)?], PlanOptions::new(target))
    }

    #[test]
    fn a_call_is_shared_where_that_wins_more_than_it_takes() -> Result<()> {
        let (one, two) = (WorkerPool::new(1)?, WorkerPool::new(2)?);
        assert!(runs_alone(&exp_of(1 << 10)?, &two));
        assert!(!runs_alone(&exp_of(1 << 22)?, &two));
        // Nobody else is there, but the call is long enough to be stopped.
        assert!(!runs_alone(&exp_of(1 << 24)?, &one));
        assert!(runs_alone(&exp_of(1 << 16)?, &one));
        Ok(())
    }

    #[test]
    fn what_lies_between_calls_of_the_host_is_shared_where_that_wins() -> Result<()> {
        let two = WorkerPool::new(2)?;
        let target = Arc::new(DescribedTarget::default());
        let mut builder = Builder::new();
        let ty = |n: usize| TensorType::new(DType::F32, [n]);
        let (large, small) = (ty(1 << 22), ty(16));
        let call = Arc::new(HostCall::new("looks", |_: &[In], _: &mut [Out]| Ok(())));
        let looks = Attrs::Host { call, results: Vec::new() };
        let inputs = [&large, &small].map(|ty| builder.input(ty.clone(), Kind::Input, None));
        let mut made = Vec::new();
        for x in inputs {
            let y = builder.emit(&EXP, vec![x], Attrs::None, vec![], false)?;
            builder.emit(&HOST_CALLBACK, y.clone(), looks.clone(), vec![], false)?;
            made.extend(y);
        }
        let graph = Arc::new(lower(&builder.finish(&made)?, &*target)?);
        let specs = [&large, &small].map(|ty| InputSpec::contiguous(ty, "test", false));
        let plan = plan(
            &graph,
            &specs.into_iter().collect::<Result<Vec<_>>>()?,
            PlanOptions::new(target),
        )?;
        let found: Vec<RunAt> = stretches(&plan, &two).into_iter().map(|(_, at)| at).collect();
        assert_eq!(found, [RunAt::Pool, RunAt::Here, RunAt::Alone, RunAt::Here]);
        let steps = stretches(&plan, &two).into_iter().flat_map(|(steps, _)| steps);
        assert!(steps.eq(0..plan.steps.len()));
        Ok(())
    }
}
