//! Calls that are launched again as one: what the device recorded of an earlier call of the same plan.
//!
//! What a call launches follows from its plan, from where its memory lies, and from what its inputs bring. A call whose addresses were seen
//! before is recorded, and one that was recorded is launched again without a look at its steps. A call that draws random numbers, or that needs
//! the host between two steps, is run step by step.
//!
//! Decision: `docs/decisions/calls-are-replayed.md`.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_plan::Plan;

use super::frame::{ExecutionFrame, Lanes};
use super::recipe_inputs::InputGenerators;
use crate::backend::{Backend, RecordedLaunches};
use crate::lend::Lender;

/// Addresses that are kept apart: batches that are brought ahead come in turns.
const KEPT: usize = 3;

/// Addresses that are remembered, in case that they come again.
const SEEN: usize = 8;

/// Recordings that a plan is worth. One whose addresses go on changing runs step by step from then on.
const MOST: usize = 16;

/// What decides what a call of a plan launches.
#[derive(Debug, Clone, PartialEq)]
pub struct CallSite {
    addresses: SmallVec<[usize; 16]>,
    brought: InputGenerators,
}

impl CallSite {
    /// That of a call.
    pub fn of(lender: &Lender<'_>, brought: &InputGenerators) -> CallSite {
        CallSite { addresses: lender.addresses().collect(), brought: brought.clone() }
    }
}

/// What is known of a call once it ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallFigures {
    /// Bytes of the arena that kernels were lent.
    pub touched: Bytes,
    /// The most of them that lived at the same time.
    pub at_once: Bytes,
    /// Iterations of loops that gradients recomputed.
    pub recomputed_iterations: u64,
}

impl CallFigures {
    /// Those of a frame that has run.
    pub fn of(frame: &ExecutionFrame<'_>) -> CallFigures {
        CallFigures {
            touched: frame.used.touched(),
            at_once: frame.used.at_once(),
            recomputed_iterations: frame.recomputed_iterations,
        }
    }
}

/// A call that was recorded.
#[derive(Debug)]
pub struct RecordedCall {
    site: CallSite,
    launches: RecordedLaunches,
    figures: CallFigures,
}

impl RecordedCall {
    /// Launches it.
    ///
    /// # Errors
    /// What the device says.
    pub fn launch(&self, backend: &dyn Backend) -> Result<CallFigures> {
        backend.replay(&self.launches).map(|()| self.figures)
    }
}

/// The calls of a plan that were recorded, and those that may be.
#[derive(Debug)]
pub struct Replays {
    /// Whether nothing but the device takes part in a call.
    is_alone: bool,
    state: Mutex<ReplayState>,
}

#[derive(Debug, Default)]
struct ReplayState {
    /// The latest last.
    recorded: Vec<Arc<RecordedCall>>,
    seen: Vec<CallSite>,
    /// How many recordings were tried.
    tried: usize,
}

/// What is to be done for a call.
#[derive(Debug)]
pub enum NextRun {
    /// It runs step by step.
    Steps,
    /// It is recorded first.
    Record,
    /// It is launched again.
    Replay(Arc<RecordedCall>),
}

impl Replays {
    /// Those of a plan on a device that records; nothing of a plan that has steps on the host, or lanes beside its kernels.
    pub fn of<'p>(plan: &'p Plan, backend: &dyn Backend) -> Option<&'p Replays> {
        if !backend.records() {
            return None;
        }
        let kept = plan.kept.get_or_keep(|| {
            let has_lanes = !plan.disk.is_zero()
                || !plan.host_spill.is_zero()
                || !plan.file_values.is_empty()
                || plan.steps.iter().any(|step| step.in_flight);
            Replays { is_alone: !has_lanes && !plan.has_host_steps(), state: Mutex::default() }
        });
        kept.filter(|replays| replays.is_alone)
    }

    /// What is to be done for a call at that site.
    pub fn next(&self, site: &CallSite) -> NextRun {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = state.recorded.iter().find(|recorded| recorded.site == *site) {
            return NextRun::Replay(found.clone());
        }
        if state.tried >= MOST {
            return NextRun::Steps;
        }
        if let Some(at) = state.seen.iter().position(|seen| seen == site) {
            state.seen.swap_remove(at);
            state.tried += 1;
            return NextRun::Record;
        }
        if state.seen.len() == SEEN {
            state.seen.remove(0);
        }
        state.seen.push(site.clone());
        NextRun::Steps
    }

    /// Records a call, which leaves no trace: its frame has not run. Nothing where it cannot be recorded; such a plan is not tried again.
    pub fn record<'p>(
        &self,
        site: CallSite,
        mut frame: ExecutionFrame<'p>,
        mut lender: Lender<'_>,
    ) -> Option<Arc<RecordedCall>> {
        let backend = lender.backend();
        let mut run = || {
            frame.run(&mut lender, Lanes::default(), true)?;
            match frame.generators.drew.load(Relaxed) || frame.places.has_decided() {
                true => {
                    Err(ErrorKind::BadGraph { what: "no two calls are the same".into() }.into())
                }
                false => Ok(()),
            }
        };
        let launches = backend.record(&mut run);
        let figures = CallFigures::of(&frame);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(launches) = launches else {
            (state.tried, state.seen) = (MOST, Vec::new());
            return None;
        };
        let made = Arc::new(RecordedCall { site, launches, figures });
        if state.recorded.len() == KEPT {
            state.recorded.remove(0);
        }
        state.recorded.push(made.clone());
        Some(made)
    }
}
