//! A context: devices with their ledgers, and the settings that programs share, in place of state of the whole process.
//!
//! A process has one from its start, and everything uses it that was not told otherwise. [`Context::new`] makes another, and
//! [`Context::enter`] lets a thread use it: a test that makes its own sees no byte of another's.
//!
//! The invariant: nobody else knows which context is in use. A thread that works for another (the pool's, a data pipeline's) enters
//! that one's.
//!
//! Decision: `docs/decisions/devices-are-backends.md`.

use std::any::{Any, TypeId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use tonnage_core::{Device, DeviceKind, ErrorKind, Result};
use tonnage_plan::{Machine, SharedTarget};

use crate::backend::{Cuda, HostStepPolicy, Sim};
use crate::ledger::Ledger;
use crate::placement::SoftCopy;
use crate::random::KeyState;

/// Devices, their ledgers, and settings; clones are the same context.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::{Buffer, Context, Owner, host_ledger};
/// let outside = host_ledger().in_use();
/// let context = Context::new();
/// let inside = context.enter();
/// let held = Buffer::obtain(&host_ledger(), Bytes::mib(1), Owner::new(Kind::Input, "x"))?;
/// assert_eq!(host_ledger().in_use(), Bytes::mib(1));
/// drop(inside);
/// assert_eq!(host_ledger().in_use(), outside);
/// # drop(held);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Context(Handle);

#[derive(Clone)]
enum Handle {
    /// The one that a process has from its start: no references to it are counted.
    Process,
    Own(Arc<ContextState>),
}

struct ContextState {
    host: OnceLock<Ledger>,
    sim: OnceLock<(Arc<Sim>, Ledger)>,
    /// Of the GPUs that were asked for.
    cuda: [OnceLock<Ledger>; MOST_GPUS],
    random: Mutex<KeyState>,
    machine: RwLock<Machine>,
    spill_folder: Mutex<Option<PathBuf>>,
    /// How the host is asked whether to stop.
    question: OnceLock<fn() -> bool>,
    settings: Settings,
    /// What crates above keep in it.
    locals: Mutex<BTreeMap<TypeId, Arc<dyn Any + Send + Sync>>>,
}

/// GPUs of one machine, at most.
const MOST_GPUS: usize = 16;

/// Switches that are looked at often.
#[derive(Debug)]
#[non_exhaustive]
pub struct Settings {
    /// Whether functions run their closures op by op.
    pub run_functions_eagerly: AtomicBool,
    /// Whether every result of an eager op is looked at, and has to be finite.
    pub check_numerics: AtomicBool,
    /// Who is told of inputs that are copied to the device of the others. Without one, inputs on different devices are an error.
    pub soft_placement: RwLock<Option<fn(&SoftCopy)>>,
    /// What plans are made for that nobody runs, instead of the device of their inputs.
    pub plans_for: RwLock<Option<SharedTarget>>,
    /// What is done about ops that a device leaves to the host.
    pub host_steps: RwLock<HostStepPolicy>,
}

static PROCESS: ContextState = ContextState::new();

/// Whether any thread ever entered a context of its own: until then there is nothing to look up.
static ENTERED: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// The context that this thread entered; none for the process's.
    static CURRENT: RefCell<Option<Arc<ContextState>>> = const { RefCell::new(None) };
}

impl Context {
    /// One of its own: nothing is held in it, and settings are what they are at a start. Threads are shared.
    #[allow(clippy::new_without_default, reason = "the default context is the one in use")]
    pub fn new() -> Context {
        Context(Handle::Own(Arc::new(ContextState::new())))
    }

    /// The one that this thread uses.
    #[inline]
    pub fn current() -> Context {
        match own() {
            Some(state) => Context(Handle::Own(state)),
            None => Context(Handle::Process),
        }
    }

    /// Lets this thread use it until the guard is dropped.
    pub fn enter(&self) -> Entered {
        let own = match &self.0 {
            Handle::Own(state) => Some(state.clone()),
            Handle::Process => None,
        };
        if own.is_none() && !ENTERED.load(Ordering::Relaxed) {
            return Entered { before: None, thread: PhantomData };
        }
        ENTERED.store(true, Ordering::Relaxed);
        Entered { before: Some(CURRENT.replace(own)), thread: PhantomData }
    }

    /// The ledger of a device.
    ///
    /// # Errors
    /// Where it is not there.
    pub fn ledger(&self, device: Device) -> Result<&Ledger> {
        match device {
            Device::CPU => Ok(self.host_ledger()),
            Device::SIM => Ok(&self.sim_state().1),
            Device { kind: DeviceKind::Cuda, index } if usize::from(index) < MOST_GPUS => {
                self.cuda_ledger(index)
            }
            other => {
                let what = format!("this machine has {}", self.devices().join(", "));
                Err(ErrorKind::NoDevice { name: other.to_string(), what }.into())
            }
        }
    }

    fn cuda_ledger(&self, index: u16) -> Result<&Ledger> {
        let cell = &self.state().cuda[usize::from(index)];
        if let Some(ledger) = cell.get() {
            return Ok(ledger);
        }
        let cuda = Cuda::open(index).map_err(|error| match error.kind() {
            ErrorKind::NoDevice { name, what } => {
                let what = format!("{what}; this machine has {}", self.devices().join(", "));
                ErrorKind::NoDevice { name: name.clone(), what }.into()
            }
            _ => error,
        })?;
        Ok(cell.get_or_init(|| Ledger::of_device(cuda)))
    }

    /// The device for tests, to make it fail.
    #[doc(hidden)]
    pub fn sim(&self) -> &Sim {
        &self.sim_state().0
    }

    fn sim_state(&self) -> &(Arc<Sim>, Ledger) {
        self.state().sim.get_or_init(|| {
            let sim = Sim::new();
            (sim.clone(), Ledger::of_device(sim))
        })
    }

    /// The names of the devices that there are. The one for tests is not among them: it is there where it is asked for.
    pub fn devices(&self) -> Vec<String> {
        let mut names = vec![Device::CPU.to_string()];
        let gpus = tonnage_cuda::driver::list().unwrap_or_default();
        names.extend((0..gpus.len()).map(|index| format!("{}:{index}", DeviceKind::Cuda.name())));
        names
    }

    /// The ledger of host memory.
    #[inline]
    pub fn host_ledger(&self) -> &Ledger {
        let state = self.state();
        state.host.get_or_init(|| match &self.0 {
            Handle::Process => Ledger::of_process(),
            Handle::Own(_) => Ledger::new(None),
        })
    }

    /// Switches that are looked at often.
    #[inline]
    pub fn settings(&self) -> &Settings {
        &self.state().settings
    }

    /// What a crate above keeps in a context, by its type: made when it is first asked for.
    pub fn local<T: Default + Send + Sync + 'static>(&self) -> Arc<T> {
        let mut locals = self.state().locals.lock().unwrap_or_else(PoisonError::into_inner);
        let any = locals.entry(TypeId::of::<T>()).or_insert_with(|| Arc::new(T::default()));
        // What is kept under a type is of that type.
        any.clone().downcast().unwrap_or_default()
    }

    pub(crate) fn random(&self) -> MutexGuard<'_, KeyState> {
        self.state().random.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn machine(&self) -> &RwLock<Machine> {
        &self.state().machine
    }

    pub(crate) fn spill_folder(&self) -> MutexGuard<'_, Option<PathBuf>> {
        self.state().spill_folder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn question(&self) -> &OnceLock<fn() -> bool> {
        &self.state().question
    }

    #[inline]
    fn state(&self) -> &ContextState {
        match &self.0 {
            Handle::Process => &PROCESS,
            Handle::Own(state) => state,
        }
    }
}

/// The ledger of host memory in the context that this thread uses.
#[inline]
pub fn host_ledger() -> Ledger {
    match PROCESS.host.get() {
        Some(ledger) if !ENTERED.load(Ordering::Relaxed) => ledger.clone(),
        _ => current_host_ledger(),
    }
}

#[cold]
fn current_host_ledger() -> Ledger {
    Context::current().host_ledger().clone()
}

/// The context that this thread entered last.
#[inline]
fn own() -> Option<Arc<ContextState>> {
    match ENTERED.load(Ordering::Relaxed) {
        false => None,
        true => CURRENT.with_borrow(Option::clone),
    }
}

/// While it lives, its thread uses the context that was entered; dropped, the one before.
#[must_use = "the context is left when this is dropped"]
pub struct Entered {
    /// What this thread used before; nothing where it never changed.
    before: Option<Option<Arc<ContextState>>>,
    /// What a thread entered is its own matter.
    thread: PhantomData<*const ()>,
}

impl Drop for Entered {
    fn drop(&mut self) {
        if let Some(before) = self.before.take() {
            // The context may go with its last handle, and drops what it holds: outside of the borrow.
            drop(CURRENT.try_with(|current| current.replace(before)));
        }
    }
}

impl ContextState {
    const fn new() -> ContextState {
        ContextState {
            host: OnceLock::new(),
            sim: OnceLock::new(),
            cuda: [const { OnceLock::new() }; MOST_GPUS],
            random: Mutex::new(KeyState::START),
            machine: RwLock::new(Machine::DEFAULT),
            spill_folder: Mutex::new(None),
            question: OnceLock::new(),
            settings: Settings {
                run_functions_eagerly: AtomicBool::new(false),
                check_numerics: AtomicBool::new(false),
                soft_placement: RwLock::new(None),
                plans_for: RwLock::new(None),
                host_steps: RwLock::new(HostStepPolicy::Run { tell: None }),
            },
            locals: Mutex::new(BTreeMap::new()),
        }
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.0 {
            Handle::Process => "Context(of the process)",
            Handle::Own(_) => "Context(own)",
        })
    }
}
