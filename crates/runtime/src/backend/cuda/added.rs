//! What a kernel of a GPU takes up of the step behind it: a sum with what lies elsewhere.
//!
//! Decision: `docs/decisions/epilogues.md`.

use tonnage_core::DType;
use tonnage_cuda::product::finish;
use tonnage_plan::{TileRead, TileRun};

use super::super::ReadSource;
use crate::lend::Regions;

/// Where what a kernel adds to its first output lies.
#[derive(Clone, Copy, Default)]
pub struct Added {
    /// A number for each column.
    pub bias: Option<u64>,
    /// An element for each.
    pub matrix: Option<u64>,
}

impl Added {
    /// What a step adds to it, where the step does nothing else.
    pub fn of(
        run: &TileRun,
        loads: &[ReadSource],
        dtype: DType,
        regions: &Regions<'_>,
    ) -> Option<Added> {
        let is_made = |load: usize| matches!(loads.get(load), Some(ReadSource::Output(_)));
        let finish = finish(run, dtype, is_made)?;
        let address = |load: usize| match (&loads[load], &run.reads[load]) {
            (ReadSource::Range(i), TileRead::Input(_, layout)) => {
                Some((regions.reads[*i].address() + layout.offset * dtype.size()) as u64)
            }
            _ => None,
        };
        let (bias, matrix) = (finish.bias.and_then(address), finish.added.and_then(address));
        Some(Added { bias, matrix })
    }
}
