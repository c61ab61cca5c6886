//! Devices: where tensors lie, and what runs the ops on them.
//!
//! An op runs where its inputs lie, and its results lie there too. Descriptions (recipes) lie nowhere and follow, and so does a single
//! number in host memory; any other mix is an error that says what to move, or under [`set_soft_placement`] a copy with a notice. A
//! function runs where its arguments and variables are. [`scope`] says where new tensors and variables go.

pub use tonnage_core::{Device, DeviceKind};
pub use tonnage_runtime::DeviceScope;

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_ops::math::identity::IDENTITY;
use tonnage_runtime::backend::{HostStep, HostStepPolicy};
use tonnage_runtime::machine::target_named;
use tonnage_runtime::{Context, SoftCopy};

use crate::notices::{self, Notice};
use crate::tape;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Until what it returns is dropped, this thread makes new tensors and variables on that device.
///
/// ```
/// use tonnage::{device, memory, tensor};
/// let scope = device::scope("sim:0")?; // the device for tests; `cuda:0` and `/GPU:0` are names of others
/// let x = tensor([1.0f32, 2.0])?;
/// drop(scope);
/// assert_eq!(x.device().to_string(), "sim:0");
/// let y = (&x * 2.0)?; // runs where x is
/// assert!(memory::info("sim:0")?.in_use.get() >= 128);
/// assert_eq!(y.to_vec::<f32>()?, [2.0, 4.0]); // values are copied to the host
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a device that is not there.
#[track_caller]
pub fn scope(device: &str) -> Result<DeviceScope> {
    let source = Source::here();
    let opened = device.parse().and_then(DeviceScope::open).map_err(|e| e.at(source))?;
    listen_for_host_steps(&Context::current());
    Ok(opened)
}

/// The devices of this machine.
///
/// ```
/// assert_eq!(tonnage::device::list()[0], "cpu:0");
/// ```
pub fn list() -> Vec<String> {
    Context::current().devices()
}

/// From here on plans are made for a card of that name, `h200`, `a100` or `rtx4090`, which need not be here: what a run would take there
/// is known before the card is rented. That is so for plans that are asked for, by `plan`, `explain` or `prices`; what is called runs
/// where its inputs lie, as before. `None` plans for that device again.
///
/// ```
/// use tonnage::{Elementwise, Tensor, device, function, zeros};
/// device::plan_for("h200")?;
/// let step = function(|x: Tensor| x.matmul(&x)?.tanh()?.det());
/// let x = zeros([512, 512])?;
/// let plan = step.plan(&x)?;
/// assert!(plan.to_string().contains("on NVIDIA H200"));
/// assert_eq!(plan.host_step(), Some("det")); // no kernel there
/// assert!(step.call(x.clone()).is_ok()); // here
/// device::plan_for(None)?;
/// assert_eq!(step.plan(&x)?.host_step(), None);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a card that is not known.
#[track_caller]
pub fn plan_for<'a>(card: impl Into<Option<&'a str>>) -> Result<()> {
    let source = Source::here();
    let known = |card: &str| {
        let what = || format!("no card that is known is called {card}");
        let none = || bad_argument("plan_for", what(), "use h200, a100 or rtx4090").at(source);
        target_named(card).ok_or_else(none)
    };
    let target = card.into().map(known).transpose()?;
    let context = Context::current();
    let mut plans = context.settings().plans_for.write().unwrap_or_else(PoisonError::into_inner);
    *plans = target;
    Ok(())
}

/// Whether inputs on different devices are copied to one, that of the first input which is not in host memory, with a
/// [notice](crate::notices::Notice::Copied) once a line. Otherwise they are an error, as at the start.
///
/// ```
/// use tonnage::{device, notices, tensor};
/// let here = tensor([1.0f32, 2.0])?;
/// let there = here.to("sim:0")?;
/// assert!((&here + &there).is_err());
/// device::set_soft_placement(true);
/// notices::listen(|notice| println!("{notice}"));
/// let sum = (&here + &there)?;
/// assert_eq!(sum.device().to_string(), "sim:0");
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn set_soft_placement(on: bool) {
    let context = Context::current();
    let mut soft =
        context.settings().soft_placement.write().unwrap_or_else(PoisonError::into_inner);
    *soft = on.then_some(tell as fn(&SoftCopy));
}

/// Whether ops run on the host that a device has no kernel for, with a [notice](crate::notices::Notice::OnHost) once an op, as at the
/// start. Otherwise they are an error: before its first step for a function.
///
/// ```
/// use tonnage::device;
/// device::set_host_steps(false);
/// let x = tonnage::tensor([2.0f32, 1.0])?.to("sim:0")?;
/// assert!(x.sort(0, false).is_ok()); // `sim:0` has all kernels
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn set_host_steps(on: bool) {
    let context = Context::current();
    let mut policy = context.settings().host_steps.write().unwrap_or_else(PoisonError::into_inner);
    *policy = match on {
        true => HostStepPolicy::Run { tell: Some(tell_of_host_step) },
        false => HostStepPolicy::Refuse,
    };
}

/// Sees to it that somebody is told of ops that run on the host, before a device is used.
fn listen_for_host_steps(context: &Context) {
    let mut policy = context.settings().host_steps.write().unwrap_or_else(PoisonError::into_inner);
    if let HostStepPolicy::Run { tell } = &mut *policy {
        *tell = Some(tell_of_host_step);
    }
}

/// Ops of a context that were told of.
#[derive(Default)]
struct ToldOps(Mutex<HashSet<(Device, &'static str)>>);

/// Gives the notice of an op on the host, the first time for a device.
fn tell_of_host_step(step: &HostStep) {
    let told = Context::current().local::<ToldOps>();
    let HostStep { op, device, bytes, source } = *step;
    if told.0.lock().unwrap_or_else(PoisonError::into_inner).insert((device, op)) {
        notices::give(&Notice::OnHost { op, device, bytes, source });
    }
}

/// Whether inputs on different devices are copied to one.
pub fn is_placement_soft() -> bool {
    let context = Context::current();
    let soft = context.settings().soft_placement.read().unwrap_or_else(PoisonError::into_inner);
    soft.is_some()
}

/// The lines of a context that were told of.
#[derive(Default)]
struct ToldLines(Mutex<HashSet<Source>>);

/// Gives the notice of a copy, the first time for its line.
fn tell(copy: &SoftCopy) {
    let told = Context::current().local::<ToldLines>();
    let is_new = told.0.lock().unwrap_or_else(PoisonError::into_inner).insert(copy.source);
    if is_new {
        let SoftCopy { op, from, to, source } = *copy;
        notices::give(&Notice::Copied { op, from, to, source });
    }
}

impl Tensor {
    /// The device that its values lie on. A description lies nowhere, and is computed wherever it is needed: it says `cpu:0`, and so
    /// does a symbol.
    ///
    /// ```
    /// let x = tonnage::tensor([1.0f32])?;
    /// assert_eq!(x.device(), tonnage::device::Device::CPU);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.array("device").ok().and_then(|array| array.device()).unwrap_or(Device::CPU)
    }

    /// The same values on another device: itself where it lies there, otherwise a copy.
    ///
    /// ```
    /// let x = tonnage::tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
    /// let there = x.to("sim:0")?;
    /// let product = there.matmul(&there)?;
    /// assert!(there.matmul(&x).is_err()); // x lies elsewhere
    /// assert_eq!(product.to("cpu:0")?.to_vec::<f32>()?, [7.0, 10.0, 15.0, 22.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// For a device that is not there or has no memory for it, and while a function is traced. Where a tape records what becomes of the
    /// tensor, too, unless placement is soft: its gradient comes from the other device.
    #[track_caller]
    pub fn to(&self, device: &str) -> Result<Tensor> {
        let source = Source::here();
        self.moved(device, source).map_err(|e| e.at(source))
    }

    fn moved(&self, device: &str, source: Source) -> Result<Tensor> {
        let device: Device = device.parse()?;
        let (array, context) = (self.array("to")?, Context::current());
        let ledger = context.ledger(device)?;
        listen_for_host_steps(&context);
        if array.device() == Some(device) {
            return Ok(self.clone());
        }
        if tape::tracks(self.id()) && !is_placement_soft() {
            let help = "move it before the tape watches it, or use `device::scope`";
            return Err(bad_argument("to", "a tape records what becomes of it", help));
        }
        let recording = tape::eager(&IDENTITY, &smallvec![self.into()], &Attrs::None, &[], source)?;
        let made = Tensor::from_array(array.copied_to(ledger, "to")?);
        if let Some(recording) = recording {
            recording.finish(&[], std::slice::from_ref(&made))?;
        }
        Ok(made)
    }
}

impl Variable {
    /// The device that its value lies on. What lies nowhere yet says `cpu:0`, as [`Tensor::device`] does.
    ///
    /// ```
    /// use tonnage::{Variable, device, tensor};
    /// let scope = device::scope("sim:0")?;
    /// let w = Variable::new("w", tensor([1.0f32, 2.0])?)?;
    /// drop(scope);
    /// assert_eq!(w.device().to_string(), "sim:0");
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn device(&self) -> Device {
        self.held().and_then(|array| array.device()).unwrap_or(Device::CPU)
    }
}
