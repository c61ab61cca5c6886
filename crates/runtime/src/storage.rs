//! Storage: what a tensor's handles share. It is a recipe or resident; bytes are reached only through a
//! guard that pins them.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tonnage_core::recipe::Recipe;
use tonnage_core::workers::Workers;
use tonnage_core::{Bytes, Result};
use tonnage_ops::tile;

use crate::buffer::Buffer;
use crate::ledger::{Ledger, Owner};
use crate::pool::pool;

/// What the handles of a tensor share.
#[derive(Debug)]
pub struct Storage {
    state: RwLock<State>,
}

/// What a storage is.
#[derive(Debug)]
pub(crate) enum State {
    /// A description: no bytes.
    Recipe(Arc<Recipe>),
    /// Bytes in memory.
    Resident(Buffer),
}

impl Storage {
    /// A storage that is computed as it is read.
    pub fn recipe(recipe: Arc<Recipe>) -> Storage {
        Storage { state: RwLock::new(State::Recipe(recipe)) }
    }

    /// A storage of these bytes.
    pub fn resident(buffer: Buffer) -> Storage {
        Storage { state: RwLock::new(State::Resident(buffer)) }
    }

    /// The recipe, while it is one.
    pub fn as_recipe(&self) -> Option<Arc<Recipe>> {
        match &*self.read() {
            State::Recipe(recipe) => Some(recipe.clone()),
            State::Resident(_) => None,
        }
    }

    /// What its bytes take; nothing for a recipe.
    pub fn reserved(&self) -> Bytes {
        match &*self.read() {
            State::Recipe(_) => Bytes::ZERO,
            State::Resident(buffer) => buffer.reserved(),
        }
    }

    /// Pins its bytes. A recipe is made resident first, and stays so while the storage lives: whoever
    /// asks for all bytes at once will ask again.
    pub fn pin(&self, ledger: &Ledger, owner: Owner) -> Result<Pinned<'_>> {
        {
            let guard = self.read();
            if matches!(*guard, State::Resident(_)) {
                return Ok(Pinned(guard));
            }
        }
        drop(self.pin_mut(ledger, owner)?);
        Ok(Pinned(self.read()))
    }

    /// Pins its bytes to be written; a recipe is made resident first.
    pub fn pin_mut(&self, ledger: &Ledger, owner: Owner) -> Result<PinnedMut<'_>> {
        let mut guard = self.write();
        if let State::Recipe(recipe) = &*guard {
            let buffer = materialize(recipe, ledger, owner)?;
            *guard = State::Resident(buffer);
        }
        Ok(PinnedMut(guard))
    }

    /// Lets another owner hold its bytes.
    pub fn set_owner(&self, owner: Owner) {
        if let State::Resident(buffer) = &mut *self.write() {
            buffer.set_owner(owner);
        }
    }

    /// The buffer, given up by the last who holds it; `None` for a recipe.
    pub(crate) fn into_buffer(self) -> Option<Buffer> {
        match self.state.into_inner().unwrap_or_else(PoisonError::into_inner) {
            State::Recipe(_) => None,
            State::Resident(buffer) => Some(buffer),
        }
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State> {
        // A panic while the lock was held leaves bytes, and any bytes are a tensor's.
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that stay where they are while this lives.
#[derive(Debug)]
pub struct Pinned<'a>(RwLockReadGuard<'a, State>);

impl Pinned<'_> {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &*self.0 {
            State::Recipe(_) => &[],
            State::Resident(buffer) => buffer.bytes(),
        }
    }
}

/// Bytes that stay where they are, to be written, while this lives.
#[derive(Debug)]
pub struct PinnedMut<'a>(RwLockWriteGuard<'a, State>);

impl PinnedMut<'_> {
    /// The bytes.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut *self.0 {
            State::Recipe(_) => &mut [],
            State::Resident(buffer) => buffer.bytes_mut(),
        }
    }
}

/// The bytes of a recipe.
pub(crate) fn materialize(recipe: &Recipe, ledger: &Ledger, owner: Owner) -> Result<Buffer> {
    let what = owner.what;
    let mut buffer = Buffer::obtain(ledger, recipe.ty().bytes(what)?, owner)?;
    write_recipe(recipe, buffer.bytes_mut())?;
    Ok(buffer)
}

/// Writes a recipe's elements one after the other.
pub(crate) fn write_recipe(recipe: &Recipe, out: &mut [u8]) -> Result<()> {
    let sources: Vec<tile::Source> = recipe
        .sources
        .iter()
        .map(|(generator, layout)| tile::Source {
            layout: layout.clone(),
            read: tile::Read::Generator(*generator),
        })
        .collect();
    let cost = tonnage_core::row::Cost {
        flops: recipe.program.flops() * recipe.sizes.iter().product::<usize>() as u64,
        bytes: out.len() as u64,
    };
    pool().run(cost, |workers: &dyn Workers| {
        tile::run(&recipe.program, &recipe.sizes, &sources, &mut [out], &mut [], workers)
    })
}
