//! Devices: where tensors lie, and what runs the ops on them.
//!
//! An op runs where its inputs lie, and its results lie there too. Descriptions (recipes) lie nowhere and follow, and so does a single
//! number in host memory; any other mix is an error that says what to move. A function runs where its arguments and variables are.
//! [`scope`] says where new tensors and variables go.

pub use tonnage_core::{Device, DeviceKind};
pub use tonnage_runtime::DeviceScope;

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_runtime::Context;

use crate::tape;
use crate::tensor::Tensor;

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
    device.parse().and_then(DeviceScope::open).map_err(|e| e.at(source))
}

/// The devices of this machine.
///
/// ```
/// assert_eq!(tonnage::device::list()[0], "cpu:0");
/// ```
pub fn list() -> Vec<String> {
    Context::current().devices()
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
    /// For a device that is not there or has no memory for it, while a function is traced, and where a tape records what becomes of the
    /// tensor: the copy is not recorded.
    #[track_caller]
    pub fn to(&self, device: &str) -> Result<Tensor> {
        let source = Source::here();
        self.moved(device).map_err(|e| e.at(source))
    }

    fn moved(&self, device: &str) -> Result<Tensor> {
        let device: Device = device.parse()?;
        let (array, context) = (self.array("to")?, Context::current());
        let ledger = context.ledger(device)?;
        if array.device() == Some(device) {
            return Ok(self.clone());
        }
        if tape::tracks(self.id()) {
            let help = "move it before the tape watches it, or use `device::scope`";
            return Err(bad_argument("to", "a tape records what becomes of it", help));
        }
        Ok(Tensor::from_array(array.copied_to(ledger, "to")?))
    }
}
