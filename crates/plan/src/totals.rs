//! What a plan takes, all told: sums over its buffers, steps and outputs.

use tonnage_core::{Bytes, ValueId};

use crate::loops::StateFilePlan;
use crate::plan::{OutputPlan, Placed, Plan, Space};

impl Plan {
    /// Bytes of small outputs, which have bytes of their own from the start.
    pub fn own_outputs(&self) -> Bytes {
        self.outputs.iter().map(OutputPlan::own_bytes).sum()
    }

    /// What the call obtains: the arena and the small outputs.
    pub fn obtains(&self) -> Bytes {
        self.arena + self.own_outputs()
    }

    /// The peak: inputs, and everything that the call obtains.
    pub fn peak(&self) -> Bytes {
        self.inputs + self.obtains()
    }

    /// Iterations of loops that gradients will recompute, all told; `None` where only the data know.
    pub fn recomputed_iterations(&self) -> Option<u64> {
        self.steps
            .iter()
            .try_fold(0u64, |sum, step| Some(sum.saturating_add(step.recomputed_iterations()?)))
    }

    /// What a call spills, and reads back: the most, where branches or a loop's condition decide;
    /// without the states of loops that only the data end.
    pub fn spilled(&self) -> Bytes {
        let mut states = Bytes::ZERO;
        let mut add = |file: &StateFilePlan, times: u64| {
            states += file.bytes().and_then(|len| len.checked_mul(times)).unwrap_or(Bytes::ZERO);
        };
        self.steps.iter().for_each(|step| step.state_files(1, &mut add));
        let spilled = self.buffers.iter().filter(|b| b.space != Space::Memory);
        spilled.map(|b| b.bytes).sum::<Bytes>() + states
    }

    /// How long its spill files are, those of loops' states included, as far as that is known.
    pub fn on_disk(&self) -> Bytes {
        let mut states = Bytes::ZERO;
        let mut add = |file: &StateFilePlan, _| states += file.bytes().unwrap_or(Bytes::ZERO);
        self.steps.iter().for_each(|step| step.state_files(1, &mut add));
        self.disk + states
    }

    /// Where a value lies.
    #[inline]
    pub fn place(&self, id: ValueId) -> Option<&Placed> {
        self.places[id.index()].as_ref()
    }
}
