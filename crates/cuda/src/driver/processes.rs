//! Who else has memory of a card: what NVIDIA's management library, which comes with the driver, says of its processes.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use cudarc::driver::sys;
use libloading::Library;
use tonnage_core::Bytes;

use super::{Gpu, said};

/// How many processes are asked for.
const MOST: usize = 64;

/// What the library says of a process.
#[repr(C)]
#[derive(Clone, Copy)]
struct ProcessInfo {
    pid: c_uint,
    used: u64,
    _gpu_instance: c_uint,
    _compute_instance: c_uint,
}

/// What a process holds that the library does not know, as in a container.
const UNKNOWN: u64 = u64::MAX;

/// A process, and what it holds of a card; nothing where the driver does not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuProcess {
    /// Its number.
    pub pid: u32,
    /// Its memory on the card.
    pub bytes: Option<Bytes>,
}

impl Gpu {
    /// The processes that have memory of the card, this one too; nothing where the library is missing or does not say.
    pub fn processes(&self) -> Vec<GpuProcess> {
        self.bus_id().and_then(|bus| listed(&bus)).unwrap_or_default()
    }

    fn bus_id(&self) -> Option<CString> {
        let mut text = [0 as c_char; 32];
        let mut device: sys::CUdevice = 0;
        self.enter().ok()?;
        // SAFETY: the context is current; the driver writes its device.
        said(unsafe { sys::cuCtxGetDevice(&mut device) }).ok()?;
        // SAFETY: the driver writes at most so many characters and ends them with a zero.
        said(unsafe { sys::cuDeviceGetPCIBusId(text.as_mut_ptr(), text.len() as c_int, device) })
            .ok()?;
        // SAFETY: the text ends within the array.
        Some(unsafe { CStr::from_ptr(text.as_ptr()) }.to_owned())
    }
}

fn listed(bus: &CStr) -> Option<Vec<GpuProcess>> {
    // SAFETY: the library comes with the driver, which is loaded; its start-up code is what nvidia-smi runs.
    let library = unsafe { Library::new("libnvidia-ml.so.1") }.ok()?;
    let mut found = [ProcessInfo { pid: 0, used: 0, _gpu_instance: 0, _compute_instance: 0 }; MOST];
    let mut count = MOST as c_uint;
    // SAFETY: functions by their names and types as the library's header declares them; it writes a handle, a number, and as many entries
    // as it was told that there is room for.
    unsafe {
        let init = library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").ok()?;
        let by_bus = library
            .get::<unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int>(
                b"nvmlDeviceGetHandleByPciBusId_v2\0",
            )
            .ok()?;
        let running = library
            .get::<unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut ProcessInfo) -> c_int>(
                b"nvmlDeviceGetComputeRunningProcesses_v3\0",
            )
            .ok()?;
        let shutdown = library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlShutdown\0").ok()?;
        if init() != 0 {
            return None;
        }
        let mut handle = ptr::null_mut();
        let done = by_bus(bus.as_ptr(), &mut handle) == 0
            && running(handle, &mut count, found.as_mut_ptr()) == 0;
        let _ = shutdown();
        if !done {
            return None;
        }
    }
    let known = |info: &ProcessInfo| (info.used != UNKNOWN).then(|| Bytes::new(info.used));
    let process = |info: &ProcessInfo| GpuProcess { pid: info.pid, bytes: known(info) };
    Some(found.iter().take(count as usize).map(process).collect())
}
