//! Where the values of one graph lie while it runs, and how: as the plan says, or as the data decided.
//!
//! The invariant: no byte range that is given out reaches beyond the storage of its value.

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::bytes::ALIGN;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::{TensorType, ValueId};
use tonnage_plan::{At, BufferId, Placed, Plan, Step};

use crate::lend::ByteRange;

/// Places of values: in the arena, in the inputs, in results of their own.
pub struct Places<'p> {
    plan: &'p Plan,
    arena: ByteRange,
    inputs: SmallVec<[ByteRange; 8]>,
    outputs: SmallVec<[ByteRange; 4]>,
    /// Layouts of values whose size the data decided.
    decided: HashMap<ValueId, Layout>,
}

impl<'p> Places<'p> {
    /// Those of a plan that runs in this arena.
    #[inline]
    pub fn new(
        plan: &'p Plan,
        arena: ByteRange,
        inputs: SmallVec<[ByteRange; 8]>,
        outputs: SmallVec<[ByteRange; 4]>,
    ) -> Places<'p> {
        Places { plan, arena, inputs, outputs, decided: HashMap::new() }
    }

    /// What says where they lie.
    pub fn plan(&self) -> &'p Plan {
        self.plan
    }

    /// A value's type as planned.
    pub fn ty(&self, id: ValueId) -> &'p TensorType {
        self.plan.graph.ty(id)
    }

    /// A value's place as planned.
    pub fn placed(&self, id: ValueId) -> Result<&'p Placed> {
        self.plan.place(id).ok_or_else(|| {
            ErrorKind::BadGraph { what: format!("%{} has no place", id.index()) }.into()
        })
    }

    /// A value's layout: as planned, or as the data decided.
    pub fn layout(&self, id: ValueId) -> Result<Layout> {
        match self.decided.get(&id) {
            Some(layout) => Ok(layout.clone()),
            None => Ok(self.placed(id)?.layout.clone()),
        }
    }

    /// Remembers the layout that the data decided for a value.
    pub fn decide(&mut self, id: ValueId, layout: Layout) {
        self.decided.insert(id, layout);
    }

    /// Whether the data decided any.
    pub fn has_decided(&self) -> bool {
        !self.decided.is_empty()
    }

    /// The layouts that the data decided, once the run has ended.
    #[inline]
    pub fn into_decided(self) -> HashMap<ValueId, Layout> {
        self.decided
    }

    /// The bytes of a buffer of the arena.
    pub fn buffer(&self, id: BufferId) -> ByteRange {
        let buffer = &self.plan.buffers[id.0];
        ByteRange {
            base: self.arena.base,
            offset: self.arena.offset + buffer.offset.as_usize(),
            len: buffer.bytes.as_usize(),
            align: 1,
        }
    }

    /// The scratch of a kernel or a tile program.
    pub fn scratch(&self, id: Option<BufferId>) -> Option<ByteRange> {
        id.map(|id| ByteRange { align: ALIGN, ..self.buffer(id) })
    }

    /// The bytes that a step's regions work in; what is lent of them is noted as it is.
    pub fn region_scratch(&self, step: &Step) -> ByteRange {
        match step.scratch {
            Some(id) => self.buffer(id),
            None => ByteRange { len: 0, ..self.arena },
        }
    }

    /// All bytes that a place belongs to. An error where it has none; `id` is whom it is for.
    pub fn whole(&self, at: &At, id: ValueId) -> Result<ByteRange> {
        self.bytes_at(at).ok_or_else(|| nowhere(id))
    }

    /// The bytes of a value that is made: from where its storage starts, as many as its elements take, with what is between rows that
    /// lie apart. An error where the storage has fewer.
    pub fn written(&self, id: ValueId, sizes: &[usize]) -> Result<ByteRange> {
        let size = self.ty(id).dtype.size();
        let Placed { at, layout } = self.placed(id)?;
        let elements = match layout.row_step() {
            Some(_) => layout.end(),
            None => sizes.iter().product(),
        };
        self.whole(at, id)?.part(0, elements * size, size)
    }

    /// The same for one that lies as planned.
    pub fn written_as_planned(&self, id: ValueId) -> Result<ByteRange> {
        self.written(id, &self.placed(id)?.layout.sizes)
    }

    /// The storage of a value. An error where elements of the value lie outside of it.
    pub fn read(&self, id: ValueId) -> Result<ByteRange> {
        let size = self.ty(id).dtype.size();
        let placed = self.placed(id)?;
        let whole = self.whole(&placed.at, id)?;
        let layout = self.decided.get(&id).unwrap_or(&placed.layout);
        whole.part(0, layout.end() * size, size)?;
        // Storage may end in the middle of an element of this dtype: it ends behind the last whole one.
        whole.part(0, whole.len / size * size, size)
    }

    /// The bytes of a value that a region takes; none of a recipe, which it computes as it reads it.
    pub fn given(&self, id: ValueId) -> Result<ByteRange> {
        match &self.placed(id)?.at {
            At::Recipe(_) => Ok(ByteRange { base: self.arena.base, offset: 0, len: 0, align: 1 }),
            _ => self.read(id),
        }
    }

    /// The bytes of a value that a region makes: as many as its elements take, at its bound where the data decide.
    /// Its storage may be longer, and what lies there is not the region's to write.
    pub fn made(&self, id: ValueId) -> Result<ByteRange> {
        let ty = self.ty(id);
        let (len, size) = (ty.bytes("region")?.as_usize(), ty.dtype.size());
        let whole = self.bytes_at(&self.placed(id)?.at).ok_or_else(|| undecided(id))?;
        whole.part(0, len, size)
    }

    fn bytes_at(&self, at: &At) -> Option<ByteRange> {
        match at {
            At::Input(i) => self.inputs.get(*i).copied(),
            At::Buffer(id) => Some(self.buffer(*id)),
            At::Output(k) => self.outputs.get(*k).copied(),
            At::Recipe(_) => None,
        }
    }
}

/// The error for a value without bytes where some are needed.
#[cold]
pub fn nowhere(id: ValueId) -> Error {
    ErrorKind::BadGraph { what: format!("%{} has no bytes here", id.index()) }.into()
}

/// The error for a size that should be known by now.
#[cold]
pub fn undecided(id: ValueId) -> Error {
    let what = format!("nothing decided the size of %{}", id.index());
    ErrorKind::BadGraph { what }.into()
}
