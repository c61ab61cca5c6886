//! Which calls are not worth the pool: to enter it, to wake its threads and to come back takes as long as a small model does.
//!
//! Decision: `docs/decisions/short-calls-stay-on-their-thread.md`.

use tonnage_core::looping::Iterations;
use tonnage_core::row::Cost;
use tonnage_plan::{Plan, Run};

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
    !plan.calls_host && small(plan, pool).is_some()
}

/// The work of a plan where it is small; nothing where it is not, or where the data decide.
fn small(plan: &Plan, pool: &WorkerPool) -> Option<Work> {
    let of = |cost: Cost| Work { nanos: nanos(cost), won: pool.wins(cost) };
    let mut sum = Work::default();
    for step in &plan.steps {
        let work = match &step.run {
            Run::Nothing => continue,
            Run::Tile(run) | Run::Copy { run, .. } if !step.dynamic => of(run.cost),
            Run::Kernel(Some(call)) if !step.dynamic => of(call.cost),
            Run::Branch { branches, .. } => {
                let mut most = Work::default();
                for branch in branches {
                    most = most.or(small(&branch.plan, pool)?);
                }
                most
            }
            Run::Loop(run) => match &run.spec.iterations {
                Iterations::Times(times) => small(&run.body, pool)?.times(times.known()? as u64),
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
    use tonnage_core::{DType, Emit, Kind, Result, TensorType};
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
}
