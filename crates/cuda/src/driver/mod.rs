//! The driver of NVIDIA GPUs, and the libraries beside it: the one folder that calls them.
//!
//! Addresses of a device are numbers here. A wrong one makes the device fail, which the next call that waits says; it never reaches memory
//! of the host, so what is offered is safe.
#![allow(unsafe_code, reason = "calls the driver")]

pub mod compiler;
mod copies;
mod graph;
pub mod library;
mod module;
mod moment;
mod processes;
mod product;
mod status;

use std::ffi::{CStr, c_int};
use std::fmt;
use std::num::NonZero;
use std::ptr;
use std::sync::OnceLock;

use cudarc::driver::sys;
use serde::Serialize;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::{Bytes, Device, DeviceKind};

pub use copies::{CopyWay, HostMemory, Pin};
pub use graph::RecordedLaunches;
pub use module::LoadedKernel;
pub use moment::DeviceMoment;
pub use processes::GpuProcess;
pub use status::Status;

use crate::cache::KernelCache;

use copies::CopyLane;
use graph::Recorder;
use module::Modules;
pub use product::ProductAddresses;
use product::Products;
use status::Checks;

/// The oldest driver that has all that is called: CUDA 12.
const LEAST_DRIVER: i32 = 12_000;

/// What a GPU is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuInfo {
    /// Its name, as the driver says it.
    pub name: String,
    /// All of its memory.
    pub memory: Bytes,
    /// Its compute capability: `(9, 0)`.
    pub capability: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// Shared memory that a block of threads may ask for, in bytes.
    pub shared: u32,
    /// The CUDA version of the driver: `(13, 0)`.
    pub driver: (u32, u32),
}

/// A GPU with a context and a stream of its own; launches and copies run in their order, those of the lane beside them.
pub struct Gpu {
    device: Device,
    info: GpuInfo,
    context: sys::CUcontext,
    stream: sys::CUstream,
    modules: Modules,
    products: Products,
    checks: Checks,
    lane: CopyLane,
    recorder: Recorder,
    /// What it said when it failed for good.
    lost: OnceLock<String>,
}

// SAFETY: the handles of the driver may be used by any thread that has made the context current, as every method does first.
unsafe impl Send for Gpu {}
// SAFETY: as above; the driver locks what threads share.
unsafe impl Sync for Gpu {}

/// What the GPUs of this machine are.
///
/// # Errors
/// Where there is no driver, or it is too old: what was looked for, and where.
pub fn list() -> std::result::Result<Vec<GpuInfo>, String> {
    let version = initialized()?;
    let mut count: c_int = 0;
    // SAFETY: the driver is there and was initialized; it writes a number.
    said(unsafe { sys::cuDeviceGetCount(&mut count) })?;
    (0..count).map(|ordinal| info(ordinal, version).map(|(_, info)| info)).collect()
}

/// Loads the driver, and says its version.
fn initialized() -> std::result::Result<i32, String> {
    // SAFETY: loads the driver's library, whose start-up code is what every program with CUDA runs.
    if !unsafe { sys::is_culib_present() } {
        return Err("no NVIDIA driver: libcuda.so.1 is not in the loader's path".into());
    }
    let mut version: c_int = 0;
    // SAFETY: the library is there; the function writes a number and needs no context.
    said(unsafe { sys::cuDriverGetVersion(&mut version) })?;
    if version < LEAST_DRIVER {
        return Err(format!(
            "its driver is for CUDA {}, and 12.0 is the oldest that serves",
            dotted(version)
        ));
    }
    // SAFETY: as above; it may be called any number of times.
    said(unsafe { sys::cuInit(0) })?;
    Ok(version)
}

fn dotted(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

fn info(ordinal: c_int, version: i32) -> std::result::Result<(sys::CUdevice, GpuInfo), String> {
    let mut device: sys::CUdevice = 0;
    // SAFETY: the driver is initialized; it writes the handle.
    said(unsafe { sys::cuDeviceGet(&mut device, ordinal) })?;
    let mut name = [0 as std::ffi::c_char; 256];
    // SAFETY: the driver writes at most so many characters and ends them with a zero.
    said(unsafe { sys::cuDeviceGetName(name.as_mut_ptr(), name.len() as c_int, device) })?;
    // SAFETY: the text ends within the array.
    let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
    let mut memory = 0usize;
    // SAFETY: the driver writes a number.
    said(unsafe { sys::cuDeviceTotalMem_v2(&mut memory, device) })?;
    use sys::CUdevice_attribute as Attribute;
    let attribute = |which| {
        let mut value: c_int = 0;
        // SAFETY: the driver writes a number.
        said(unsafe { sys::cuDeviceGetAttribute(&mut value, which, device) }).map(|()| value as u32)
    };
    let capability = (
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
    );
    let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
    let driver = (version as u32 / 1000, version as u32 % 1000 / 10);
    let memory = Bytes::of(memory);
    Ok((device, GpuInfo { name, memory, capability, multiprocessors, shared, driver }))
}

/// What the driver said, in words.
fn said(result: sys::CUresult) -> std::result::Result<(), String> {
    if result == sys::CUresult::CUDA_SUCCESS {
        return Ok(());
    }
    let (mut name, mut text) = (ptr::null(), ptr::null());
    // SAFETY: the driver gives texts that live as long as it is loaded, or leaves null.
    let (name, text) = unsafe {
        let _ = sys::cuGetErrorName(result, &mut name);
        let _ = sys::cuGetErrorString(result, &mut text);
        let owned = |text: *const std::ffi::c_char| match text.is_null() {
            true => String::new(),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        };
        (owned(name), owned(text))
    };
    Err(format!("{name}: {text}"))
}

impl Gpu {
    /// Opens a GPU, whose kernels are kept in a cache.
    ///
    /// # Errors
    /// `NoDevice` where there is no driver, an old one, or no such GPU; it says what was looked for.
    pub fn open(index: u16, cache: KernelCache) -> Result<Gpu> {
        let device = Device { kind: DeviceKind::Cuda, index };
        let missing = |what| Error::from(ErrorKind::NoDevice { name: device.to_string(), what });
        let version = initialized().map_err(missing)?;
        let found = list().map_err(missing)?.len();
        if usize::from(index) >= found {
            return Err(missing(format!("the driver lists {found}")));
        }
        let (handle, info) = info(c_int::from(index), version).map_err(missing)?;
        library::find_compiler().map_err(missing)?;
        let (mut context, mut stream) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: the device is there; its primary context is shared with whoever else in this process uses CUDA, and is kept.
        said(unsafe { sys::cuDevicePrimaryCtxRetain(&mut context, handle) }).map_err(missing)?;
        // SAFETY: a context that was just obtained.
        said(unsafe { sys::cuCtxSetCurrent(context) }).map_err(missing)?;
        // Waits for no other stream.
        // SAFETY: the context is current.
        said(unsafe { sys::cuStreamCreate(&mut stream, 1) }).map_err(missing)?;
        let mut word: sys::CUdeviceptr = 0;
        // SAFETY: the context is current; the driver writes an address.
        said(unsafe { sys::cuMemAlloc_v2(&mut word, size_of::<Status>()) }).map_err(missing)?;
        let word = usize::try_from(word).ok().and_then(NonZero::new);
        let checks = Checks::new(word.ok_or_else(|| missing("it gave no memory".into()))?);
        let (modules, products) = (Modules::new(info.capability, cache), Products::default());
        let (lane, recorder, lost) = (CopyLane::default(), Recorder::default(), OnceLock::new());
        let gpu =
            Gpu { device, info, context, stream, modules, products, checks, lane, recorder, lost };
        gpu.reset_checks()?;
        Ok(gpu)
    }

    /// Its name among devices.
    pub fn device(&self) -> Device {
        self.device
    }

    /// What it is.
    pub fn info(&self) -> &GpuInfo {
        &self.info
    }

    /// Free bytes and all, as the driver counts them.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn memory(&self) -> Result<(Bytes, Bytes)> {
        self.enter()?;
        let (mut free, mut total) = (0usize, 0usize);
        // SAFETY: the context is current; the driver writes two numbers.
        self.checked(unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok((Bytes::of(free), Bytes::of(total)))
    }

    /// That many bytes of its memory, by their address; `None` where there are no more.
    pub fn obtain(&self, len: usize) -> Option<NonZero<usize>> {
        self.enter().ok()?;
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: the context is current; the driver writes an address.
        said(unsafe { sys::cuMemAlloc_v2(&mut address, len) }).ok()?;
        NonZero::new(usize::try_from(address).ok()?)
    }

    /// Gives bytes back, behind what was launched before.
    pub fn release(&self, address: NonZero<usize>) {
        if self.enter().is_ok() {
            // SAFETY: an address that `obtain` gave; the driver waits for what uses it.
            let _ = unsafe { sys::cuMemFree_v2(address.get() as sys::CUdeviceptr) };
        }
    }

    /// Copies bytes of the host to an address.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn copy_in(&self, from: &[u8], to: usize) -> Result<()> {
        if from.is_empty() {
            return Ok(());
        }
        self.needs_host()?;
        self.enter()?;
        let (to, len) = (to as sys::CUdeviceptr, from.len());
        // SAFETY: the bytes are borrowed until the driver has taken them: memory that is not pinned is staged before it returns.
        self.checked(unsafe {
            sys::cuMemcpyHtoDAsync_v2(to, from.as_ptr().cast(), len, self.stream)
        })
    }

    /// Copies bytes from an address to the host, and waits for them.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn copy_out(&self, from: usize, to: &mut [u8]) -> Result<()> {
        if to.is_empty() {
            return self.wait();
        }
        self.needs_host()?;
        self.enter()?;
        let from = from as sys::CUdeviceptr;
        // SAFETY: the bytes are borrowed until the stream has been waited for.
        self.checked(unsafe {
            sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), from, to.len(), self.stream)
        })?;
        self.wait()
    }

    /// Copies bytes of its memory.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn copy_within(&self, from: usize, to: usize, len: usize) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.enter()?;
        let (from, to) = (from as sys::CUdeviceptr, to as sys::CUdeviceptr);
        // SAFETY: addresses of the device; a wrong one makes the device fail.
        self.checked(unsafe { sys::cuMemcpyDtoDAsync_v2(to, from, len, self.stream()) })
    }

    /// Writes the same byte everywhere.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn fill(&self, at: usize, len: usize, byte: u8) -> Result<()> {
        if len == 0 {
            return Ok(());
        }
        self.enter()?;
        // SAFETY: an address of the device; a wrong one makes the device fail.
        self.checked(unsafe {
            sys::cuMemsetD8Async(at as sys::CUdeviceptr, byte, len, self.stream())
        })
    }

    /// Waits for all that was launched, copies of the lane too.
    ///
    /// # Errors
    /// Where any of it failed, or was given an index out of range.
    pub fn wait(&self) -> Result<()> {
        self.needs_host()?;
        self.enter()?;
        let launched = self.checks.take();
        let mut words = Status::default().words();
        if !launched.is_empty() {
            let (to, from) = (words.as_mut_ptr().cast(), self.checks.address.get());
            // SAFETY: the words are borrowed until the stream has been waited for.
            self.checked(unsafe {
                let (from, len) = (from as sys::CUdeviceptr, size_of_val(&words));
                sys::cuMemcpyDtoHAsync_v2(to, from, len, self.stream)
            })?;
        }
        // SAFETY: a stream of the current context.
        self.checked(unsafe { sys::cuStreamSynchronize(self.stream) })?;
        self.wait_for_copies()?;
        match Status::of(words).error(&launched) {
            None => Ok(()),
            Some(error) => {
                self.reset_checks()?;
                Err(error)
            }
        }
    }

    /// Says that all data were good.
    fn reset_checks(&self) -> Result<()> {
        let words = Status::default().words();
        self.copy_in(bytemuck::bytes_of(&words), self.checks.address.get())
    }

    /// Makes its context this thread's.
    fn enter(&self) -> Result<()> {
        // SAFETY: a context that is kept while this lives.
        self.checked(unsafe { sys::cuCtxSetCurrent(self.context) })
    }

    fn checked(&self, result: sys::CUresult) -> Result<()> {
        said(result).map_err(|what| match is_lost(result) {
            true => self.failed(self.lost.get_or_init(|| format!("{what}; {LOST}")).clone()),
            false => self.failed(what),
        })
    }

    /// Why nothing can run on it any more, where that is so.
    pub fn failure(&self) -> Option<Error> {
        self.lost.get().map(|what| self.failed(what.clone()))
    }

    fn failed(&self, what: String) -> Error {
        ErrorKind::DeviceFailed { device: self.device, what }.into()
    }
}

/// What is left to do when a device failed for good.
const LOST: &str = "nothing runs on it in this process any more, and what lies there is lost: start it anew, from the last checkpoint";

/// Whether a context is of no use behind a failure, as the driver's documentation has it.
fn is_lost(result: sys::CUresult) -> bool {
    use sys::CUresult as R;
    matches!(
        result,
        R::CUDA_ERROR_ECC_UNCORRECTABLE
            | R::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | R::CUDA_ERROR_ILLEGAL_ADDRESS
            | R::CUDA_ERROR_LAUNCH_TIMEOUT
            | R::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | R::CUDA_ERROR_ASSERT
            | R::CUDA_ERROR_HARDWARE_STACK_ERROR
            | R::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | R::CUDA_ERROR_MISALIGNED_ADDRESS
            | R::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | R::CUDA_ERROR_INVALID_PC
            | R::CUDA_ERROR_LAUNCH_FAILED
    )
}

impl fmt::Debug for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.device, self.info.name)
    }
}
