//! The ledger of one device: every byte that was obtained, who holds it, and what may yet be obtained.
//!
//! It is the only caller of `MemoryBlock::obtain`, so a byte that is not in the ledger does not exist. At
//! every moment `in use + cached <= limit`, and in use + cached is no more than 2 MiB above the most
//! that was ever in use: warm pages raise no peak.
//!
//! One mutex guards it all. It is held while large blocks are mapped and unmapped, so that the figures
//! are exact rather than soon to be; sums by holder are made only when someone asks.

mod books;
mod info;
mod leak;
mod owner;
mod slab;
mod tally;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tonnage_core::bytes::LARGE;
use tonnage_core::{Bytes, Device, Error, ErrorKind, Result};

use crate::backend::{Backend, CPU};
use crate::cache::{BlockCache, CAP};
use crate::events::{self, Action};
use crate::evict::Residents;
use crate::placement::use_devices;
use crate::system::{self, Backing, DeviceMemory, Memory, MemoryBlock};
use books::{Books, Ended};

pub use info::{Holder, Info};
pub use leak::leak_check;
pub use owner::Owner;
pub(crate) use slab::{Id, Slab};
pub use tally::Tally;

use crate::ticks::Ticks;
use crate::timeline::{Recording, Timeline};

/// A handle to the ledger of a device; clones are the same ledger.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::{Buffer, Ledger, Owner};
/// let ledger = Ledger::new(Some(Bytes::mib(64)));
/// let buffer = Buffer::obtain(&ledger, Bytes::mib(48), Owner::new(Kind::Activation, "matmul"))?;
/// let error = Buffer::obtain(&ledger, Bytes::mib(32), Owner::new(Kind::Scratch, "sort"));
/// assert!(error.unwrap_err().to_string().starts_with("over budget: scratch sort"));
/// drop(buffer);
/// assert_eq!(ledger.info().in_use, Bytes::ZERO);
/// assert_eq!(ledger.info().peak, Bytes::mib(48));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Ledger(Handle);

/// Every buffer holds one; that of the process costs no count of references.
#[derive(Debug, Clone)]
enum Handle {
    Process(&'static LedgerState),
    Own(Arc<LedgerState>),
}

/// What a ledger counts.
#[derive(Debug)]
pub(crate) enum Space {
    /// Host memory, got in that way.
    Host(Backing),
    /// The memory of a device, and what runs there.
    Device { memory: Arc<DeviceMemory>, backend: Arc<dyn Backend> },
}

impl Space {
    #[inline]
    fn obtain(&self, bytes: Bytes) -> Option<MemoryBlock> {
        match self {
            Space::Host(backing) => MemoryBlock::obtain(*backing, bytes),
            Space::Device { memory, .. } => MemoryBlock::obtain_from(memory, bytes),
        }
    }

    /// Why it gives no memory, where that is not that it has none.
    fn failure(&self) -> Option<Error> {
        match self {
            Space::Host(_) => None,
            Space::Device { memory, .. } => memory.0.failure(),
        }
    }
}

#[derive(Debug)]
struct LedgerState {
    space: Space,
    books: Mutex<Books>,
    residents: Residents,
    /// Whether the books have a recorder: asked without their lock.
    recording: AtomicBool,
}

impl Ledger {
    /// That of host memory in the context that a process has from its start.
    pub(crate) fn of_process() -> Ledger {
        static STATE: OnceLock<LedgerState> = OnceLock::new();
        let state = || LedgerState::new(None, Space::Host(Backing::NATIVE));
        Ledger(Handle::Process(STATE.get_or_init(state)))
    }

    /// A ledger of its own, with or without a limit.
    pub fn new(limit: Option<Bytes>) -> Ledger {
        Ledger::with_backing(limit, Backing::NATIVE)
    }

    pub(crate) fn with_backing(limit: Option<Bytes>, backing: Backing) -> Ledger {
        Ledger(Handle::Own(Arc::new(LedgerState::new(limit, Space::Host(backing)))))
    }

    /// That of a device's memory.
    pub(crate) fn of_device<D: Memory + Backend + 'static>(device: Arc<D>) -> Ledger {
        use_devices();
        let memory = Arc::new(DeviceMemory(device.clone()));
        let space = Space::Device { memory, backend: device };
        Ledger(Handle::Own(Arc::new(LedgerState::new(None, space))))
    }

    /// The device whose memory it counts.
    pub fn device(&self) -> Device {
        self.backend().device()
    }

    /// What runs on the memory that it counts.
    pub fn backend(&self) -> &dyn Backend {
        match &self.shared().space {
            Space::Host(_) => &CPU,
            Space::Device { backend, .. } => &**backend,
        }
    }

    /// Whether it counts host memory.
    #[inline]
    pub fn is_host(&self) -> bool {
        matches!(self.shared().space, Space::Host(_))
    }

    /// What a block takes that holds that many bytes.
    #[inline]
    pub fn block(&self, bytes: Bytes) -> Bytes {
        match &self.shared().space {
            Space::Host(_) => bytes.rounded(),
            Space::Device { memory, .. } => memory.0.block(bytes),
        }
    }

    /// Whether both are one ledger.
    pub fn is(&self, other: &Ledger) -> bool {
        std::ptr::eq(self.shared(), other.shared())
    }

    /// What is in use now, as one figure.
    pub fn in_use(&self) -> Bytes {
        self.books().in_use()
    }

    /// The most that was in use since the start or [`Ledger::reset_peak`].
    pub fn peak(&self) -> Bytes {
        self.books().peak()
    }

    /// Everything there is to know, at one moment.
    pub fn info(&self) -> Info {
        let mut info = self.books().info();
        info.away = self.shared().residents.away();
        if let Space::Device { memory, .. } = &self.shared().space {
            info.add_device(memory.0.idle(), memory.0.taken());
        }
        info
    }

    /// The limit, and what is in use; `None` without a limit.
    pub fn limited(&self) -> Option<(Bytes, Bytes)> {
        self.books().limited()
    }

    /// The `n` largest holders, largest first.
    pub fn holders(&self, n: usize) -> Vec<Holder> {
        let mut holders = self.books().holders();
        holders.truncate(n);
        holders
    }

    /// Lets the high-water marks start again from what is held now.
    pub fn reset_peak(&self) {
        self.books().reset_peak();
    }

    /// The limit on in use + cached; `None` is what the machine has.
    ///
    /// A limit below what is in use is taken: nothing that lives is touched until the next request, which sends
    /// away what can come back, and is refused where that is not enough.
    pub fn set_limit(&self, limit: Option<Bytes>) {
        self.books().set_limit(limit);
    }

    /// Gives every cached byte back to the system, and says how many there were.
    pub fn give_up_cache(&self) -> Bytes {
        let mut given = self.books().give_up_cache();
        if let Space::Device { memory, .. } = &self.shared().space {
            let idle = memory.0.idle();
            memory.0.give_up();
            given += idle.saturating_sub(memory.0.idle());
        }
        given
    }

    /// Lets no more than `most` stay cached beside a block of `wanted` bytes, which is asked for next: what is warm counts
    /// against the budget of a call too.
    pub fn shrink_cache(&self, wanted: Bytes, most: Bytes) {
        self.books().shrink_cache(self.block(wanted), most);
    }

    /// Records what happens from here on, up to that many buffers and calls; `None` where a recording goes on already.
    pub fn record(&self, most: usize) -> Option<Recording> {
        let began = self.books().record(most);
        self.shared().recording.store(began || self.is_recording(), Ordering::Relaxed);
        began.then(|| Recording::new(self.clone()))
    }

    #[inline]
    pub(crate) fn is_recording(&self) -> bool {
        self.shared().recording.load(Ordering::Relaxed)
    }

    pub(crate) fn recorded_so_far(&self) -> Option<Timeline> {
        self.books().recorder.as_ref().map(|recorder| recorder.so_far())
    }

    pub(crate) fn stop_recording(&self) -> Option<Timeline> {
        self.shared().recording.store(false, Ordering::Relaxed);
        self.books().recorded()
    }

    pub(crate) fn record_call(&self, plan: &tonnage_plan::Plan, ticks: Ticks, used: Option<Bytes>) {
        if let Some(recorder) = &mut self.books().recorder {
            recorder.call(plan, ticks, used);
        }
    }

    /// Makes the `n`th request from now (1 is the next) fail as if the system refused it, once. `None`
    /// calls that off. For tests that show that nothing leaks.
    #[doc(hidden)]
    pub fn fail_nth(&self, n: Option<u64>) {
        self.books().fail_nth(n);
    }

    pub(crate) fn obtain(&self, asked: Bytes, owner: &Owner) -> Result<(MemoryBlock, Id)> {
        let bytes = self.block(asked);
        let got = match self.obtain_once(bytes, owner) {
            Ok(got) => got,
            Err(error) => self
                .obtain_evicting(bytes, owner, error)
                .map_err(|error| error.beside(|| self.backend().other_processes()))?,
        };
        events::record(owner.what, owner.source, Action::Allocated, bytes);
        Ok(got)
    }

    #[inline]
    fn obtain_once(&self, bytes: Bytes, owner: &Owner) -> Result<(MemoryBlock, Id)> {
        if bytes.get() < LARGE {
            // The allocator is asked outside of the lock: it has locks of its own.
            let block = self.ask_allocator(bytes, owner)?;
            return Ok((block, self.books().enter_small(bytes, owner)?));
        }
        self.books().obtain_large(&self.shared().space, bytes, owner)
    }

    /// Over the limit: tensors that can come back make room, as long as that helps.
    #[cold]
    fn obtain_evicting(
        &self,
        bytes: Bytes,
        owner: &Owner,
        error: Error,
    ) -> Result<(MemoryBlock, Id)> {
        let mut error = error;
        while let ErrorKind::OverBudget { .. } = error.kind() {
            let over = self.books().over(bytes);
            if !over.is_zero() {
                match self.make_room(over, &[]) {
                    Ok(freed) if freed.is_zero() => break,
                    Ok(_) => {}
                    Err(failed) => return Err(failed.at(owner.source)),
                }
            }
            error = match self.obtain_once(bytes, owner) {
                Ok(got) => return Ok(got),
                Err(error) => error,
            };
        }
        Err(error.at(owner.source))
    }

    /// Lets tensors that can come back leave memory until so much is free or no more can; see `evict`. Those with
    /// `excluded` entries stay. Says how much was freed.
    pub(crate) fn make_room(&self, needed: Bytes, excluded: &[Id]) -> Result<Bytes> {
        self.shared().residents.make_room(needed, excluded)
    }

    pub(crate) fn residents(&self) -> &Residents {
        &self.shared().residents
    }

    /// Who holds an entry.
    pub(crate) fn owner(&self, id: Id) -> Option<Owner> {
        self.books().owner(id)
    }

    /// The largest holders but for these entries, as errors name them.
    pub(crate) fn others(&self, but: &[Id]) -> Vec<tonnage_core::error::Holder> {
        self.books().named(but)
    }

    /// Ends an entry; its block goes to the cache or to the system.
    pub(crate) fn free(&self, id: Id, block: MemoryBlock) {
        let entry = if (block.len() as u64) < LARGE {
            let entry = self.books().remove(id);
            drop(block);
            entry
        } else {
            self.books().free_large(id, block)
        };
        Ledger::record_free(entry);
    }

    /// Ends an entry whose bytes stay with those of `rest`, which grows by them.
    pub(crate) fn merge(&self, id: Id, rest: Id) {
        Ledger::record_free(self.books().merge(id, rest));
    }

    /// A small block for bytes that an entry counts already.
    pub(crate) fn small_block(&self, bytes: Bytes, owner: &Owner) -> Result<MemoryBlock> {
        self.books().check_small(bytes, owner).map_err(|error| error.at(owner.source))?;
        self.ask_allocator(bytes, owner)
    }

    /// Whether the block of an entry stays warm when it is freed.
    pub(crate) fn is_wanted_again(&self, id: Id) -> bool {
        self.books().is_wanted_again(id)
    }

    /// A block for bytes that an entry counts already, where there is one.
    pub(crate) fn uncounted(&self, bytes: Bytes) -> Option<MemoryBlock> {
        let warm = self.books().take_warm(bytes);
        warm.or_else(|| self.shared().space.obtain(bytes))
    }

    /// Replaces an entry by others. `left` is what remains of its block for the cache or the system, and how much of that went
    /// back already.
    pub(crate) fn exchange(
        &self,
        id: Option<Id>,
        left: (MemoryBlock, Bytes),
        entries: Vec<(Bytes, Owner)>,
    ) -> Vec<Id> {
        let retained: Bytes = entries.iter().map(|(bytes, _)| *bytes).sum();
        let (ids, before) = self.books().exchange(id, left, entries);
        Ledger::record_free(before.map(|before| before.without(retained)));
        ids
    }

    pub(crate) fn set_owner(&self, id: Id, owner: Owner) {
        self.books().set_owner(id, owner);
    }

    #[inline]
    fn ask_allocator(&self, bytes: Bytes, owner: &Owner) -> Result<MemoryBlock> {
        match self.shared().space.obtain(bytes) {
            Some(block) => Ok(block),
            None => self.ask_allocator_again(bytes, owner),
        }
    }

    #[cold]
    fn ask_allocator_again(&self, bytes: Bytes, owner: &Owner) -> Result<MemoryBlock> {
        self.give_up_cache();
        let space = &self.shared().space;
        space.obtain(bytes).ok_or_else(|| {
            let refused = || self.books().refused(bytes, owner);
            space.failure().unwrap_or_else(refused).at(owner.source)
        })
    }

    #[inline]
    fn record_free(entry: Option<Ended>) {
        if let Some(Ended { what, source, bytes, .. }) = entry {
            events::record(what, source, Action::Freed, bytes);
        }
    }

    #[inline]
    fn shared(&self) -> &LedgerState {
        match &self.0 {
            Handle::Process(shared) => shared,
            Handle::Own(shared) => shared,
        }
    }

    #[inline]
    fn books(&self) -> MutexGuard<'_, Books> {
        // Nothing in the books panics between two writes that belong together.
        self.shared().books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LedgerState {
    fn new(limit: Option<Bytes>, space: Space) -> LedgerState {
        let (device, capacity, warm) = match &space {
            Space::Host(_) => (Device::CPU, system::machine_memory(), None),
            Space::Device { backend, .. } => {
                (backend.device(), backend.capacity(), backend.capacity())
            }
        };
        let cache = BlockCache::up_to(warm.unwrap_or(CAP));
        LedgerState {
            space,
            books: Mutex::new(Books::new(device, limit, capacity, cache)),
            residents: Residents::new(),
            recording: AtomicBool::new(false),
        }
    }
}
