//! Data that are bad: kernels that read indices, and those of assertions, say so in a word of the device, which whoever waits reads.
//!
//! Until then nothing that is launched behind such a kernel runs, so an update behind it does not happen. Products are the exception: the
//! library knows nothing of the word. They write values of their own, which nobody sees who is told of the error.
//!
//! The word is obtained with the device's context and lives as long: it is overhead of the context, as modules are, and no tensor's.

use std::num::NonZero;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::error::{Error, ErrorKind};
use tonnage_core::source::Source;
use tonnage_ops::index::dynamic_slice::outside;

use crate::emit::Demand;

/// What kernels write: `kernels/guard.cuh` has the same fields.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Status {
    lock: u32,
    /// The number of the launch, from 1 on; 0 where all data were good.
    pub launch: u32,
    /// The first position that is bad, in logical order; of an assertion the number of what it looked at.
    pub position: u64,
    /// What is there; of an assertion the count of what is wrong.
    pub index: i64,
}

impl Default for Status {
    fn default() -> Status {
        Status { lock: 0, launch: 0, position: u64::MAX, index: 0 }
    }
}

/// The word of a device, and the launches since it was read that may write it.
#[derive(Debug)]
pub struct Checks {
    pub address: NonZero<usize>,
    launched: Mutex<Vec<(Demand, Option<Source>)>>,
}

impl Checks {
    pub fn new(address: NonZero<usize>) -> Checks {
        Checks { address, launched: Mutex::default() }
    }

    fn launched(&self) -> MutexGuard<'_, Vec<(Demand, Option<Source>)>> {
        self.launched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of a launch, and whether it has to look at the word: where something before it may have written it, or it may itself.
    pub fn number(&self, demand: Option<&Demand>, source: Option<&Source>) -> (u32, bool) {
        let mut launched = self.launched();
        if let Some(demand) = demand {
            launched.push((demand.clone(), source.copied()));
        }
        (launched.len() as u32, !launched.is_empty())
    }

    /// Puts launches that are made as one; false where others may write the word already.
    pub fn put(&self, demands: &[(Demand, Option<Source>)]) -> bool {
        let mut launched = self.launched();
        let is_first = launched.is_empty();
        if is_first {
            launched.extend_from_slice(demands);
        }
        is_first
    }

    /// The launches that may have written the word; none from here on.
    pub fn take(&self) -> Vec<(Demand, Option<Source>)> {
        std::mem::take(&mut self.launched())
    }
}

impl Status {
    /// The same as words of the device.
    pub fn words(self) -> [u64; 3] {
        [u64::from(self.lock) | u64::from(self.launch) << 32, self.position, self.index as u64]
    }

    /// From words of the device.
    pub fn of([first, position, index]: [u64; 3]) -> Status {
        let (lock, launch) = (first as u32, (first >> 32) as u32);
        Status { lock, launch, position, index: index as i64 }
    }

    /// The error of one of these launches.
    pub fn error(&self, launched: &[(Demand, Option<Source>)]) -> Option<Error> {
        let (demand, source) = launched.get((self.launch as usize).checked_sub(1)?)?;
        let (index, position) = (self.index, self.position as usize);
        let error: Error = match demand {
            Demand::Below { op, size } => {
                let (op, size) = (*op, *size);
                ErrorKind::IndexOutOfRange { op, index, position, size }.into()
            }
            Demand::Among { op, sizes } => {
                let size = sizes.get(position % sizes.len().max(1)).copied()?;
                ErrorKind::IndexOutOfRange { op, index, position, size }.into()
            }
            Demand::Inside { op, .. } if index < 0 => {
                let size = usize::MAX;
                ErrorKind::IndexOutOfRange { op, index, position, size }.into()
            }
            Demand::Inside { op, part, whole } => {
                outside(op, *part.get(position)?, index, position, *whole.get(position)?)
            }
            Demand::Rows(wrong) => wrong(index as usize, position),
            Demand::Nothing(call) => call.failure(index, position as i64)?,
        };
        Some(match source {
            Some(source) => error.at(*source),
            None => error,
        })
    }
}
