//! Storage: what a tensor's handles share. It is a recipe, resident, or away; bytes are reached only through a
//! guard that pins them, and brings them back where they are away.
//!
//! A large storage has a place in its ledger's list of residents, and may be sent away under a limit while nobody has
//! pinned it (see `evict`). A small one never is: what it takes is less than what it would cost.
//!
//! Bytes that several share are brought by whoever can have the lock to write at once; the others look again. To
//! wait for it would close a circle: of two threads that hold one storage each, each waits to read the other's
//! behind a third that waits to write it.
//!
//! A large recipe is written out by one thread, while nobody holds the lock. It may ask the host meanwhile whether to stop,
//! which a host may answer only when another thread gives way; that thread must not wait for the lock then.
//!
//! Decisions: `docs/decisions/eviction-under-a-limit.md`, `docs/decisions/recipes-become-resident.md`.

mod materialize;
mod origin;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{
    Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard,
    TryLockError,
};

use tonnage_core::bytes::LARGE;
use tonnage_core::recipe::Recipe;
use tonnage_core::{Bytes, Error, ErrorKind, Result};

use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::evict::{EvictionFile, Seat};
use crate::interrupt::Stop;
use crate::ledger::{Id, Ledger, Owner};

pub use materialize::write_part;
pub(crate) use materialize::{materialize, write_recipe};

use materialize::bytes_of;
use origin::{StorageOrigin, read_back, to_host};

/// What the handles of a tensor share.
#[derive(Debug)]
pub struct Storage(StorageCell);

#[derive(Debug)]
enum StorageCell {
    Small(RwLock<StorageState>),
    /// Behind a pointer of its own, so that eviction can look at it without being one of its holders.
    Large(Arc<Large>),
}

/// A storage that may be sent away.
#[derive(Debug)]
pub(crate) struct Large {
    state: RwLock<StorageState>,
    /// Held by the thread that writes its recipe out.
    writing: Mutex<()>,
    /// Its place among the residents, from when it first has bytes.
    seat: OnceLock<Seat>,
    /// When it was last pinned.
    used: AtomicU64,
    /// How many outside hold its address; see [`ExportedArray`](crate::ExportedArray).
    exports: AtomicU64,
}

/// What a storage is.
#[derive(Debug)]
pub(crate) enum StorageState {
    /// A description: no bytes.
    Recipe(Arc<Recipe>),
    /// Bytes in memory, and where else they are, for as long as nobody has written them.
    Resident(Buffer, Option<StorageOrigin>),
    /// Bytes that were sent away, and who held them.
    Away(StorageOrigin, Owner),
}

impl Storage {
    /// A storage that is computed as it is read.
    pub fn recipe(recipe: Arc<Recipe>) -> Storage {
        Storage::of(bytes_of(&recipe), StorageState::Recipe(recipe))
    }

    /// A storage of these bytes.
    #[inline]
    pub fn resident(buffer: Buffer) -> Storage {
        let bytes = buffer.reserved();
        let storage = Storage::of(bytes, StorageState::Resident(buffer, None));
        if let StorageCell::Large(large) = &storage.0 {
            large.take_seat(&large.read());
        }
        storage
    }

    #[inline]
    fn of(bytes: Bytes, state: StorageState) -> Storage {
        let state = RwLock::new(state);
        Storage(match bytes.get() < LARGE {
            true => StorageCell::Small(state),
            false => {
                let (seat, used) = (OnceLock::new(), AtomicU64::new(0));
                let exports = AtomicU64::new(0);
                let writing = Mutex::new(());
                StorageCell::Large(Arc::new(Large { state, writing, seat, used, exports }))
            }
        })
    }

    /// The recipe, while it is one.
    pub fn as_recipe(&self) -> Option<Arc<Recipe>> {
        match &*self.read() {
            StorageState::Recipe(recipe) => Some(recipe.clone()),
            StorageState::Resident(..) | StorageState::Away(..) => None,
        }
    }

    /// What its bytes take while they are in memory; nothing for a recipe.
    pub fn reserved(&self) -> Bytes {
        match &*self.read() {
            StorageState::Recipe(_) => Bytes::ZERO,
            StorageState::Resident(buffer, _) => buffer.reserved(),
            StorageState::Away(origin, _) => match &self.0 {
                StorageCell::Large(large) => large.block(origin.bytes()),
                StorageCell::Small(_) => origin.bytes().rounded(),
            },
        }
    }

    /// How the ledger calls its bytes; `None` for a recipe.
    pub fn owner(&self) -> Option<Owner> {
        match &*self.read() {
            StorageState::Recipe(_) => None,
            StorageState::Resident(buffer, _) => buffer.owner(),
            StorageState::Away(_, owner) => Some(owner.clone()),
        }
    }

    /// The ledger that counts its bytes; `None` for a recipe, which lies nowhere, and for no bytes.
    pub fn ledger(&self) -> Option<Ledger> {
        match &*self.read() {
            StorageState::Resident(buffer, _) => buffer.ledger().cloned(),
            StorageState::Recipe(_) => None,
            StorageState::Away(..) => match &self.0 {
                StorageCell::Large(large) => large.seat.get().map(|seat| seat.ledger().clone()),
                StorageCell::Small(_) => None,
            },
        }
    }

    /// What its bytes take now, and their entry in the ledger.
    pub(crate) fn entry(&self) -> Option<(Bytes, Id)> {
        match &*self.read() {
            StorageState::Resident(buffer, _) => Some((buffer.reserved(), buffer.id()?)),
            StorageState::Recipe(_) | StorageState::Away(..) => None,
        }
    }

    /// Pins its bytes. A recipe is made resident first, and stays so while the storage lives and there is room: whoever
    /// asks for all bytes at once will ask again.
    pub fn pin(&self, ledger: &Ledger, owner: Owner) -> Result<Pinned<'_>> {
        let mut stop = None;
        loop {
            let guard = self.read();
            if matches!(*guard, StorageState::Resident(..)) {
                self.use_now();
                return Ok(Pinned(guard));
            }
            let writing = self.large_recipe(&guard).map(|(large, _)| &large.writing);
            drop(guard);
            if let Some(writing) = writing {
                if let Some(_turn) = try_lock(writing) {
                    match self.write_out(ledger, &owner)? {
                        Some(pinned) => return Ok(pinned),
                        None => continue,
                    }
                }
            } else if let Some(mut guard) = self.try_write() {
                self.bring(&mut guard, ledger, &owner)?;
                return Ok(Pinned(RwLockWriteGuard::downgrade(guard)));
            }
            // Somebody looks at it, brings it or writes it out. Who does may wait for the host, and the host for this thread.
            if let Some(stop) = stop.get_or_insert_with(Stop::of_call) {
                stop.check()?;
            }
            std::thread::yield_now();
        }
    }

    /// A large storage that is not in memory, and its recipe.
    fn large_recipe<'s>(&self, state: &'s StorageState) -> Option<(&Large, &'s Arc<Recipe>)> {
        let StorageCell::Large(large) = &self.0 else { return None };
        match state {
            StorageState::Recipe(recipe) | StorageState::Away(StorageOrigin::Recipe(recipe), _) => {
                Some((large, recipe))
            }
            StorageState::Away(StorageOrigin::File(_) | StorageOrigin::Host(_), _)
            | StorageState::Resident(..) => None,
        }
    }

    /// Writes a large recipe out and pins the bytes, by the one thread whose turn it is; nothing where another did meanwhile.
    fn write_out(&self, ledger: &Ledger, owner: &Owner) -> Result<Option<Pinned<'_>>> {
        let guard = self.read();
        let Some((_, recipe)) = self.large_recipe(&guard) else { return Ok(None) };
        let (recipe, owner) = match &*guard {
            StorageState::Away(_, owner) => (recipe.clone(), owner.clone()),
            StorageState::Recipe(_) | StorageState::Resident(..) => (recipe.clone(), owner.clone()),
        };
        drop(guard);
        let buffer = materialize(&recipe, ledger, owner)?;
        let mut guard = loop {
            match self.try_write() {
                Some(guard) => break guard,
                None => std::thread::yield_now(), // somebody looks at it
            }
        };
        self.place(&mut guard, buffer);
        Ok(Some(Pinned(RwLockWriteGuard::downgrade(guard))))
    }

    /// Pins its bytes to be written, by the only one who holds the storage; a recipe is made resident first.
    pub fn pin_mut(&self, ledger: &Ledger, owner: Owner) -> Result<PinnedMut<'_>> {
        loop {
            let mut guard = self.write();
            if let StorageState::Resident(_, origin) = &mut *guard {
                *origin = None;
                self.use_now();
                return Ok(PinnedMut(guard));
            }
            drop(guard);
            drop(self.pin(ledger, owner.clone())?);
        }
    }

    /// Its bytes stay where they are until that is taken back: called while they are pinned.
    pub(crate) fn exported(&self, more: bool) {
        if let StorageCell::Large(large) = &self.0 {
            match more {
                true => large.exports.fetch_add(1, Ordering::Relaxed),
                false => large.exports.fetch_sub(1, Ordering::Relaxed),
            };
        }
    }

    /// Lets another owner hold its bytes.
    pub fn set_owner(&self, new: Owner) {
        match &mut *self.write() {
            StorageState::Recipe(_) => {}
            StorageState::Resident(buffer, _) => buffer.set_owner(new),
            StorageState::Away(_, owner) => *owner = new,
        }
    }

    /// The buffer, given up by the last who holds it, and brought back where it is away; `None` for a recipe.
    pub(crate) fn into_buffer(self) -> Result<Option<Buffer>> {
        let nothing = StorageState::Resident(Buffer::default(), None);
        let state = std::mem::replace(&mut *self.write(), nothing);
        match state {
            StorageState::Recipe(_) => Ok(None),
            StorageState::Resident(buffer, _) => Ok(Some(buffer)),
            StorageState::Away(origin, owner) => {
                let seat = match &self.0 {
                    StorageCell::Large(large) => large.seat.get(),
                    StorageCell::Small(_) => None,
                };
                let ledger = seat.map_or_else(host_ledger, |seat| seat.ledger().clone());
                read_back(&origin, &ledger, &owner).map(Some)
            }
        }
    }

    /// Makes it resident, where it is not a large recipe.
    fn bring(&self, state: &mut StorageState, ledger: &Ledger, owner: &Owner) -> Result<()> {
        let buffer = match state {
            StorageState::Resident(..) => {
                self.use_now();
                return Ok(());
            }
            StorageState::Recipe(recipe) => materialize(recipe, ledger, owner.clone())?,
            StorageState::Away(origin, owner) => read_back(origin, ledger, owner)?,
        };
        self.place(state, buffer);
        Ok(())
    }

    /// Puts its bytes into it.
    fn place(&self, state: &mut StorageState, buffer: Buffer) {
        let nothing = StorageState::Resident(Buffer::default(), None);
        let origin = match std::mem::replace(state, nothing) {
            StorageState::Recipe(recipe) => Some(StorageOrigin::Recipe(recipe)),
            // A copy in host memory would be counted beside the bytes: it goes.
            StorageState::Away(StorageOrigin::Host(_), _) | StorageState::Resident(..) => None,
            StorageState::Away(origin, _) => Some(origin),
        };
        *state = match &self.0 {
            StorageCell::Small(_) => StorageState::Resident(buffer, None),
            StorageCell::Large(_) => StorageState::Resident(buffer, origin),
        };
        if let StorageCell::Large(large) = &self.0 {
            large.take_seat(state);
        }
    }

    #[inline]
    fn use_now(&self) {
        if let StorageCell::Large(large) = &self.0 {
            large.use_now();
        }
    }

    #[inline]
    fn lock(&self) -> &RwLock<StorageState> {
        match &self.0 {
            StorageCell::Small(state) => state,
            StorageCell::Large(large) => &large.state,
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> RwLockReadGuard<'_, StorageState> {
        // A panic while the lock was held leaves bytes, and any bytes are a tensor's.
        self.lock().read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, StorageState> {
        self.lock().write().unwrap_or_else(PoisonError::into_inner)
    }

    fn try_write(&self) -> Option<RwLockWriteGuard<'_, StorageState>> {
        try_write(self.lock())
    }
}

impl Large {
    /// Whether somebody outside holds its address. Asked under the lock to write: exports are made under one to read.
    fn is_exported(&self) -> bool {
        self.exports.load(Ordering::Relaxed) > 0
    }

    /// When it was last used.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// What it would free, and whether that costs nothing now; `None` where it is in use or excluded.
    pub(crate) fn could_leave(&self, excluded: &[Id]) -> Option<(Bytes, bool)> {
        let guard = try_write(&self.state)?;
        match &*guard {
            _ if self.is_exported() => None,
            StorageState::Resident(buffer, origin) if buffer.goes_alone() => {
                let id = buffer.id()?;
                (!excluded.contains(&id)).then(|| (buffer.reserved(), origin.is_some()))
            }
            _ => None,
        }
    }

    /// Sends it away if nobody uses it, and says how many bytes that freed.
    pub(crate) fn evict(&self, store: &dyn Fn() -> Result<Arc<EvictionFile>>) -> Result<Bytes> {
        let Some(mut guard) = try_write(&self.state) else { return Ok(Bytes::ZERO) };
        let StorageState::Resident(buffer, origin) = &mut *guard else { return Ok(Bytes::ZERO) };
        if self.is_exported() {
            return Ok(Bytes::ZERO);
        }
        let (freed, Some(owner)) = (buffer.reserved(), buffer.owner()) else {
            return Ok(Bytes::ZERO);
        };
        let origin = match origin.take() {
            Some(origin) => origin,
            None if buffer.is_host() => StorageOrigin::File(store()?.put(buffer.bytes()?)?),
            None => StorageOrigin::Host(Box::new(to_host(buffer, &owner)?)),
        };
        *guard = StorageState::Away(origin, owner);
        Ok(freed)
    }

    /// What is not in memory of it.
    pub(crate) fn away(&self) -> Bytes {
        match &*self.read() {
            StorageState::Away(origin, _) => self.block(origin.bytes()),
            StorageState::Recipe(_) | StorageState::Resident(..) => Bytes::ZERO,
        }
    }

    /// What so many bytes take in its memory.
    fn block(&self, bytes: Bytes) -> Bytes {
        self.seat.get().map_or(bytes.rounded(), |seat| seat.ledger().block(bytes))
    }

    fn take_seat(self: &Arc<Large>, state: &StorageState) {
        if let StorageState::Resident(buffer, _) = state
            && let Some(ledger) = buffer.ledger()
        {
            self.seat.get_or_init(|| Seat::take(ledger, self));
            self.use_now();
        }
    }

    fn use_now(&self) {
        if let Some(seat) = self.seat.get() {
            self.used.store(seat.residents().now(), Ordering::Relaxed);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, StorageState> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }
}

fn try_write(lock: &RwLock<StorageState>) -> Option<RwLockWriteGuard<'_, StorageState>> {
    match lock.try_write() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

fn try_lock(lock: &Mutex<()>) -> Option<MutexGuard<'_, ()>> {
    match lock.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Bytes that stay where they are while this lives.
#[derive(Debug)]
pub struct Pinned<'a>(RwLockReadGuard<'a, StorageState>);

impl Pinned<'_> {
    /// The bytes, which are in host memory.
    ///
    /// # Errors
    /// Where they are a device's.
    pub fn bytes(&self) -> Result<&[u8]> {
        self.buffer()?.bytes()
    }

    /// Copies bytes to the host, from where they start.
    ///
    /// # Errors
    /// Where there are fewer from there on, or the device failed.
    pub fn copy_out(&self, at: usize, to: &mut [u8]) -> Result<()> {
        self.buffer()?.copy_out(at, to)
    }

    /// The bytes, wherever they are.
    ///
    /// # Errors
    /// Where nothing is pinned, which is a bug.
    pub(crate) fn buffer(&self) -> Result<&Buffer> {
        match &*self.0 {
            StorageState::Resident(buffer, _) => Ok(buffer),
            StorageState::Recipe(_) | StorageState::Away(..) => Err(not_pinned()),
        }
    }
}

/// Bytes that stay where they are, to be written, while this lives.
#[derive(Debug)]
pub struct PinnedMut<'a>(RwLockWriteGuard<'a, StorageState>);

impl PinnedMut<'_> {
    /// The bytes, wherever they are.
    ///
    /// # Errors
    /// Where nothing is pinned, which is a bug.
    pub(crate) fn buffer_mut(&mut self) -> Result<&mut Buffer> {
        match &mut *self.0 {
            StorageState::Resident(buffer, _) => Ok(buffer),
            StorageState::Recipe(_) | StorageState::Away(..) => Err(not_pinned()),
        }
    }
}

#[cold]
fn not_pinned() -> Error {
    ErrorKind::BadGraph { what: "a pin without bytes".into() }.into()
}
