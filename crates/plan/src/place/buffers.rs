//! Buffers in the making: how large each is, and its lifetime in steps. [`arena`](crate::arena) packs them.
//!
//! The invariant: a buffer lives from the step that was next when it was made to the last step that names it.

use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::{Kind, Source};

use crate::arena;
use crate::plan::{BufferId, BufferPlan, Space};

/// The buffers of a plan, with their lifetimes.
#[derive(Default)]
pub(super) struct Buffers(Vec<BufferPlan>);

impl Buffers {
    /// A buffer for that many bytes of elements, which lives at that step.
    pub fn add(
        &mut self,
        step: usize,
        elements: Bytes,
        kind: Kind,
        what: &'static str,
        source: Source,
    ) -> BufferId {
        let buffer = self.add_rounded(step, elements.rounded(), kind, what, source);
        self.0[buffer.0].elements = elements;
        buffer
    }

    /// What a step works in, of a size that is rounded already, or laid out of pieces that are.
    pub fn add_scratch(
        &mut self,
        step: usize,
        bytes: Bytes,
        what: &'static str,
        source: Source,
    ) -> BufferId {
        self.add_rounded(step, bytes, Kind::Scratch, what, source)
    }

    fn add_rounded(
        &mut self,
        step: usize,
        bytes: Bytes,
        kind: Kind,
        what: &'static str,
        source: Source,
    ) -> BufferId {
        self.0.push(BufferPlan {
            space: Space::Memory,
            bytes,
            elements: bytes,
            offset: Bytes::ZERO,
            first: step,
            last: step,
            kind,
            what,
            source,
            outlives_call: false,
        });
        BufferId(self.0.len() - 1)
    }

    /// Lets a buffer live to that step.
    pub fn extend(&mut self, buffer: BufferId, step: usize) {
        self.0[buffer.0].last = step;
    }

    /// Lets a buffer live to that step at least.
    pub fn extend_to(&mut self, buffer: BufferId, step: usize) {
        let last = &mut self.0[buffer.0].last;
        *last = step.max(*last);
    }

    /// Puts a buffer where values are spilled.
    pub fn spill(&mut self, buffer: BufferId, to: Space) {
        self.0[buffer.0].space = to;
    }

    /// Lets a buffer leave the arena as an output.
    pub fn keep_after_call(&mut self, buffer: BufferId) {
        self.0[buffer.0].outlives_call = true;
    }

    /// Whether a buffer leaves the arena as an output.
    pub fn outlives_call(&self, buffer: BufferId) -> bool {
        self.0[buffer.0].outlives_call
    }

    /// Leaves a buffer empty: what was in it lies elsewhere.
    pub fn empty(&mut self, buffer: BufferId) {
        self.0[buffer.0].bytes = Bytes::ZERO;
    }

    /// What a buffer takes of its space, rounded.
    pub fn bytes(&self, buffer: BufferId) -> Bytes {
        self.0[buffer.0].bytes
    }

    /// What the elements take that a buffer is made for, to the byte.
    pub fn elements(&self, buffer: BufferId) -> Bytes {
        self.0[buffer.0].elements
    }

    /// Buffers that take bytes of the arena.
    pub fn in_memory(&self) -> impl Iterator<Item = (BufferId, &BufferPlan)> {
        let all = self.0.iter().enumerate();
        all.filter(|(_, buffer)| buffer.space == Space::Memory && !buffer.bytes.is_zero())
            .map(|(i, buffer)| (BufferId(i), buffer))
    }

    /// Offsets for all buffers; the largest sum that lives together in memory.
    pub fn pack(&mut self) -> Result<Bytes> {
        arena::pack_space(&mut self.0, Space::Disk)?;
        arena::pack_space(&mut self.0, Space::Host)?;
        arena::pack_space(&mut self.0, Space::Memory)
    }

    /// The same sum without offsets, which take the longest to find.
    pub fn bound(&self) -> Result<Bytes> {
        arena::bound(&self.0, Space::Memory)
    }

    /// Where the last buffer of a space ends.
    pub fn end_of(&self, space: Space) -> Bytes {
        arena::end_of(&self.0, space)
    }

    /// All buffers.
    pub fn all(&self) -> &[BufferPlan] {
        &self.0
    }

    /// All buffers, as a plan keeps them.
    pub fn into_all(self) -> Vec<BufferPlan> {
        self.0
    }
}
