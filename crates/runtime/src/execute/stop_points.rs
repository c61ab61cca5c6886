//! Where a run may be stopped: before a step, inside of one, and between two iterations of a loop. None of these from the
//! first update of a variable on, but the iterations of the loop that is that update.
//!
//! Decision: `docs/decisions/stopping-a-call.md`.

use tonnage_core::error::Result;

use crate::interrupt::Stop;

/// Whether a run should stop, asked at the points where it can.
#[derive(Default)]
pub struct StopPoints {
    /// Nothing where the run cannot be interrupted, or not any more.
    stop: Option<Stop>,
    /// Whether a step has begun that updates variables: then only the loop that does may stop, between iterations.
    iterations_only: bool,
}

impl StopPoints {
    /// For a run that stops where this says so.
    pub fn new(stop: Option<Stop>) -> StopPoints {
        StopPoints { stop, iterations_only: false }
    }

    /// Before a step, which updates variables or does not. An error where the run should stop.
    pub fn before_step(&mut self, updates: bool) -> Result<()> {
        if let Some(stop) = &self.stop {
            stop.check()?;
            self.iterations_only = updates;
        }
        Ok(())
    }

    /// Behind a step: from the first update on the run goes to its end.
    pub fn after_step(&mut self, updates: bool) {
        if updates {
            self.stop = None;
        }
    }

    /// What stops the work of a step before its end: nothing where it updates a variable.
    pub fn inside_step(&self) -> Option<&Stop> {
        self.stop.as_ref().filter(|_| !self.iterations_only)
    }

    /// Between two iterations of a loop. An error where the run should stop.
    pub fn between_iterations(&self) -> Result<()> {
        self.stop.as_ref().map_or(Ok(()), Stop::check)
    }

    /// For a region of the step that runs.
    pub fn of_region(&self) -> StopPoints {
        StopPoints::new(self.inside_step().cloned())
    }
}
