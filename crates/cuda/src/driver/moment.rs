//! Moments of a GPU's stream: when it has done what was launched before, by its own clock.

use std::fmt;
use std::ptr;
use std::time::Duration;

use cudarc::driver::sys;

use super::{Gpu, said};

/// The oldest driver with the function that compares them.
const COMPARES: (u32, u32) = (12, 8);

/// A moment behind what was launched before it.
pub struct DeviceMoment {
    event: sys::CUevent,
}

// SAFETY: the handle of an event may be used by any thread.
unsafe impl Send for DeviceMoment {}
// SAFETY: as above; the driver locks what threads share.
unsafe impl Sync for DeviceMoment {}

impl DeviceMoment {
    /// How long after another one it was; nothing where the stream has not come to either yet, or the device failed.
    pub fn since(&self, before: &DeviceMoment) -> Option<Duration> {
        let mut milliseconds = 0f32;
        // SAFETY: two events that were recorded; the driver writes a number.
        said(unsafe { sys::cuEventElapsedTime_v2(&mut milliseconds, before.event, self.event) })
            .ok()?;
        Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).ok()
    }
}

impl Drop for DeviceMoment {
    fn drop(&mut self) {
        // SAFETY: an event that nobody else has; the driver keeps it until the stream has come to it.
        let _ = unsafe { sys::cuEventDestroy_v2(self.event) };
    }
}

impl fmt::Debug for DeviceMoment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DeviceMoment")
    }
}

impl Gpu {
    /// A moment behind what was launched so far; nothing where the device failed, or its driver is too old to compare two.
    pub fn moment(&self) -> Option<DeviceMoment> {
        if self.info.driver < COMPARES {
            return None;
        }
        self.needs_host().ok()?;
        self.enter().ok()?;
        let mut event = ptr::null_mut();
        // SAFETY: the context is current; the driver writes the handle.
        said(unsafe { sys::cuEventCreate(&mut event, 0) }).ok()?;
        let moment = DeviceMoment { event };
        // SAFETY: an event and a stream of the current context.
        said(unsafe { sys::cuEventRecord(event, self.stream) }).ok()?;
        Some(moment)
    }
}
