//! States of a loop that wait in a file for its gradient: one is written an iteration, and read back in the backward pass.
//!
//! The invariant: a file lasts as long as the frame whose loop wrote it. It is gone when that frame is, however the
//! call ends.
//!
//! Decision: `docs/decisions/spilled-loop-states.md`.

use tonnage_core::ValueId;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_plan::StateFilePlan;

use super::bytes;
use crate::lend::{ByteRange, Lender};
use crate::spill::SpillFile;

/// A file with a row for the state before each iteration but the first.
pub struct StateFile {
    file: SpillFile,
    state: u64,
    parts: Vec<u64>,
}

impl StateFile {
    /// As long as the plan says from the start, so that a full disk shows before the first iteration; one that only the
    /// data end grows.
    fn create(planned: &StateFilePlan, known: bool) -> Result<StateFile> {
        let file = match planned.bytes().filter(|len| known && !len.is_zero()) {
            Some(len) => SpillFile::create(len)?,
            None => SpillFile::nameless()?,
        };
        let parts = planned.parts.iter().map(|at| at.get()).collect();
        Ok(StateFile { file, state: planned.state.get(), parts })
    }

    /// Writes the state before an iteration.
    fn write(&mut self, lender: &mut Lender, iteration: u64, state: &[ByteRange]) -> Result<Bytes> {
        let mut written = Bytes::ZERO;
        let first = self.state * (iteration - 1);
        for (part, byte_range) in
            self.parts.iter().zip(state).filter(|(_, byte_range)| byte_range.len > 0)
        {
            bytes::to_file(lender, *byte_range, &mut self.file, first + part)?;
            written += Bytes::of(byte_range.len).rounded();
        }
        Ok(written)
    }

    /// Reads it back.
    pub fn read(&mut self, lender: &mut Lender, iteration: u64, state: &[ByteRange]) -> Result<()> {
        let first = self.state * (iteration - 1);
        for (part, byte_range) in
            self.parts.iter().zip(state).filter(|(_, byte_range)| byte_range.len > 0)
        {
            bytes::from_file(lender, *byte_range, &mut self.file, first + part)?;
        }
        Ok(())
    }
}

/// Files with states of loops that wait for their gradients, by the value that stands for them.
#[derive(Default)]
pub struct StateFiles {
    waiting: Vec<(ValueId, StateFile)>,
    written: Bytes,
}

impl StateFiles {
    /// What was written to files of states, in regions too.
    pub fn written(&self) -> Bytes {
        self.written
    }

    /// A file for the states of a loop.
    pub fn open(&mut self, planned: &StateFilePlan, known: bool) -> Result<StateFile> {
        // The same loop in an iteration before, or recomputed: what it wrote is not asked for any more.
        self.waiting.retain(|(name, _)| *name != planned.name);
        StateFile::create(planned, known)
    }

    /// Writes the state before an iteration to its loop's file.
    pub fn write(
        &mut self,
        lender: &mut Lender,
        file: &mut StateFile,
        iteration: u64,
        state: &[ByteRange],
    ) -> Result<()> {
        self.written += file.write(lender, iteration, state)?;
        Ok(())
    }

    /// Keeps what the loop of that name wrote, for its gradients.
    pub fn keep(&mut self, name: ValueId, file: StateFile) {
        self.waiting.push((name, file));
    }

    /// The file that the loop of that name wrote.
    pub fn take(&mut self, name: ValueId) -> Result<StateFile> {
        let at = self.waiting.iter().position(|(other, _)| *other == name);
        at.map(|at| self.waiting.swap_remove(at).1).ok_or_else(|| {
            let what = format!("no states were written for %{}", name.index());
            ErrorKind::BadGraph { what }.into()
        })
    }

    /// Counts what was written in a region.
    pub fn ran(&mut self, child: &StateFiles) {
        self.written += child.written;
    }
}
