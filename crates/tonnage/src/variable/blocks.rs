//! Variables that ranks hold in blocks: each rank one, of elements in order, and as long as those of the others.
//!
//! Blocks are proposed first: what is traced from then on reads the variable by gathering them, so that a plan says what that would take, and nothing has
//! changed. Once they are cut the rest of the value is gone from this rank, and
//! to read the variable is an op that all ranks run; to write it is not.
//!
//! Decision: `docs/decisions/sharding-is-a-lever.md`.

use std::ops::Range;
use std::sync::PoisonError;

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, PadMode};
use tonnage_core::error::bad_argument;
use tonnage_core::{Kind, Mark, OpDef, Result, Source, TensorType, World};
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;
use tonnage_ops::state::{assign, assign_add, assign_sub};
use tonnage_ops::world::gather_blocks::GATHER_BLOCKS;
use tonnage_ops::world::own_block::OWN_BLOCK;
use tonnage_ops::world::reduce_blocks::REDUCE_BLOCKS;
use tonnage_runtime::eager::{self, Arg};

use super::{Variable, VariableState, held_in_files};
use crate::dispatch::{TensorArg, apply1};
use crate::tensor::{Tensor, next_id};
use crate::trace::{self, Trace};

/// The blocks that ranks hold of a variable.
#[derive(Clone)]
pub(crate) struct Blocks {
    /// The ranks.
    pub world: World,
    /// The block of this one.
    pub own: Variable,
}

impl Blocks {
    /// The whole, gathered once for all reads of one value. Bodies and branches use what is gathered around them.
    pub fn read_traced(&self, trace: &Trace, variable: &Variable) -> Result<Tensor> {
        trace.read_gathered(&self.own, |trace, own| {
            let mark = Mark { source: variable.made(), kind: Kind::Activation };
            let made = trace.apply(
                &GATHER_BLOCKS,
                &[own],
                self.attrs(variable),
                Vec::new(),
                false,
                mark,
            )?;
            Ok(made[0].clone())
        })
    }

    fn attrs(&self, variable: &Variable) -> Attrs {
        Attrs::Blocks { world: self.world.clone(), shape: variable.ty().shape }
    }

    /// An update of the whole, of which each rank makes its part.
    pub fn update(
        &self,
        variable: &Variable,
        op: &'static OpDef,
        values: &[&Tensor],
        source: Source,
    ) -> Result<()> {
        let is_whole = [&assign::ASSIGN, &assign_add::ASSIGN_ADD, &assign_sub::ASSIGN_SUB];
        if !is_whole.contains(&op) {
            let what = format!("{} of `{}`, of which ranks hold blocks", op.name, variable.name());
            return Err(bad_argument(op.name, what, "change all of it"));
        }
        let (ty, value) = (variable.ty(), values[0]);
        let types = [ty.clone(), value.ty()];
        (op.infer)(&tonnage_core::Call::new(op, &types, &Attrs::None))?;
        let attrs = Attrs::Shape(ty.shape);
        let wide = apply1(&BROADCAST_TO, smallvec![value.into()], attrs, source)?;
        self.own.update(op, &[&own_block(&wide, &self.world)?], source)
    }
}

/// The block of this rank. A plan is the same on all ranks, and has an op for it; otherwise it is a part of a tensor, of which nothing else is computed
/// or read from a file.
fn own_block(whole: &Tensor, world: &World) -> Result<Tensor> {
    if trace::current().is_some() {
        let attrs = Attrs::World(world.clone());
        return apply1(&OWN_BLOCK, smallvec![whole.into()], attrs, Source::here());
    }
    filled(own_range(whole, world)?, world, elements(&whole.ty()))
}

/// The elements of this rank, of a tensor that all ranks have.
fn own_range(whole: &Tensor, world: &World) -> Result<Tensor> {
    let elements = elements(&whole.ty());
    let range = world.own_range(elements);
    whole.reshape([elements])?.slice(&[(range.start as i64..range.end as i64).into()])
}

/// Elements of this rank as a block, which is as long as those of the others: zeros follow those that there are.
fn filled(own: Tensor, world: &World, elements: usize) -> Result<Tensor> {
    match world.block(elements) - world.own_range(elements).len() {
        0 => Ok(own),
        missing => own.pad(&[[0, missing]], PadMode::Constant(0.into())),
    }
}

/// How many a tensor has, as far as its type says.
fn elements(ty: &TensorType) -> usize {
    ty.shape.elements().known().unwrap_or(0)
}

impl Variable {
    /// The blocks that ranks hold of it, or may hold.
    pub(crate) fn blocks(&self) -> Option<Blocks> {
        self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_blocks(&self, blocks: Option<Blocks>) {
        *self.0.blocks.lock().unwrap_or_else(PoisonError::into_inner) = blocks;
    }

    /// Whether each rank holds a block of it, and none the whole.
    pub(crate) fn is_cut(&self) -> bool {
        matches!(self.try_state().as_deref(), Some(VariableState::Cut))
    }

    /// Whether ranks can hold blocks of it.
    pub(crate) fn has_blocks_for(&self, world: &World) -> bool {
        let ty = self.ty();
        let enough = ty.shape.elements().known().is_some_and(|count| count >= world.size());
        enough && ty.dtype.is_float() && !self.is_in_files()
    }

    /// Blocks of it, which no rank holds yet.
    pub(crate) fn blocks_for(&self, world: &World) -> Blocks {
        let ty = self.ty();
        let ty = TensorType::new(ty.dtype, [world.block(elements(&ty))]);
        let name = format!("{}/block", self.own_name());
        let own = held_in_files(false, || Variable::named(name, ty, self.0.role, self.0.made));
        own.name_after(self, "block");
        *own.state() = VariableState::Proposed;
        Blocks { world: world.clone(), own }
    }

    /// What is traced from here on takes it to be in these blocks; nothing has changed. One that is cut stays as it is.
    pub(crate) fn propose_blocks(&self, blocks: &Blocks) {
        if !self.is_cut() {
            self.set_blocks(Some(blocks.clone()));
        }
    }

    /// Takes a proposal back.
    pub(crate) fn withdraw_blocks(&self) {
        if !self.is_cut() {
            self.set_blocks(None);
        }
    }

    /// Keeps the block of this rank alone, where blocks were proposed.
    pub(crate) fn cut(&self) -> Result<()> {
        let Some(Blocks { world, own }) = self.blocks().filter(|_| !self.is_cut()) else {
            return Ok(());
        };
        let mut state = self.settled()?;
        let whole = match &*state {
            VariableState::Holds(array, _) => Tensor::from_array(array.clone()),
            other => return Err(self.unreadable(other)),
        };
        let made = own_block(&whole, &world)?;
        let made = made.array("variable")?;
        let made = made.copied(own.mark(own.0.made), "variable")?.owned_by(own.owner());
        *own.state() = VariableState::Holds(made, next_id());
        *state = VariableState::Cut;
        Ok(())
    }

    /// Its value, gathered now: an op of all ranks.
    pub(super) fn gathered(&self) -> Result<Tensor> {
        let Some(blocks) = self.blocks() else {
            return Err(self.unreadable(&VariableState::Waiting));
        };
        let own = blocks.own.read()?;
        let mark = self.mark(self.0.made);
        let args = smallvec![Arg::Borrowed(own.array("variable")?)];
        let made = eager::apply(&GATHER_BLOCKS, args, &blocks.attrs(self), &[], false, mark)?;
        match made.into_iter().next() {
            Some(array) => Ok(Tensor::with_id(array, own.id())),
            None => Err(self.unreadable(&VariableState::Waiting)),
        }
    }

    /// The block of this rank of its value.
    pub(crate) fn read_block(&self, world: &World) -> Result<Tensor> {
        match self.blocks() {
            Some(blocks) => blocks.own.read(),
            None => own_block(&self.read()?, world),
        }
    }

    /// Becomes what the blocks of all ranks are.
    pub(crate) fn assign_block(&self, world: &World, block: &Tensor) -> Result<()> {
        match self.blocks() {
            Some(blocks) => blocks.own.assign(block),
            None => self.assign(&self.joined(world, block.into())?),
        }
    }

    /// The whole of the blocks of all ranks.
    fn joined(&self, world: &World, block: TensorArg<'_>) -> Result<Tensor> {
        let attrs = Attrs::Blocks { world: world.clone(), shape: self.ty().shape };
        apply1(&GATHER_BLOCKS, smallvec![block], attrs, Source::here())
    }

    /// Where the elements of this rank begin and what they are, where ranks hold it in blocks: those of another world are gathered for that.
    pub(crate) fn read_held(&self, world: &World) -> Option<Result<(usize, Tensor)>> {
        if !self.is_cut() {
            return None;
        }
        let start = world.own_range(elements(&self.ty())).start;
        Some(self.read_own(world).map(|values| (start, values)))
    }

    /// Becomes what `read` gives of a range of its elements: of all, or of those that this rank holds.
    pub(crate) fn assign_read(&self, read: impl Fn(Range<usize>) -> Result<Tensor>) -> Result<()> {
        let (ty, cut) = (self.ty(), self.blocks().filter(|_| self.is_cut()));
        let count = elements(&ty);
        match cut {
            Some(Blocks { world, own }) => {
                own.assign(&filled(read(world.own_range(count))?, &world, count)?)
            }
            None => self.assign(&read(0..count)?.reshape(ty.shape)?),
        }
    }

    /// The block that this rank holds, where it holds no more than that.
    fn held_of(&self, world: &World) -> Option<Variable> {
        let blocks = self.blocks().filter(|blocks| self.is_cut() && blocks.world == *world);
        blocks.map(|blocks| blocks.own)
    }

    /// The elements of this rank, for a file: nothing is gathered where it holds just those.
    pub(crate) fn read_own(&self, world: &World) -> Result<Tensor> {
        match self.held_of(world) {
            Some(own) => {
                let range = world.own_range(elements(&self.ty()));
                own.read()?.slice(&[(0..range.len() as i64).into()])
            }
            None => own_range(&self.read()?, world),
        }
    }

    /// Becomes what each rank has its elements of, as from a file.
    pub(crate) fn assign_own(&self, world: &World, own: Tensor) -> Result<()> {
        let ty = self.ty();
        if world.size() == 1 {
            return self.assign(&own.reshape(ty.shape)?);
        }
        let block = filled(own, world, elements(&ty))?;
        match self.held_of(world) {
            Some(held) => held.assign(&block),
            None => self.assign(&self.joined(world, block.into())?),
        }
    }
}

impl Tensor {
    /// Of elements that all ranks have, the block of this one.
    pub(crate) fn own_block(&self, world: &World) -> Result<Tensor> {
        own_block(self, world)
    }

    /// Of the sum over all ranks, the block of this one.
    pub(crate) fn reduce_blocks(&self, world: &World) -> Result<Tensor> {
        let attrs = Attrs::World(world.clone());
        apply1(&REDUCE_BLOCKS, smallvec![self.into()], attrs, Source::here())
    }
}
