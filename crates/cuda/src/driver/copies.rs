//! The lane of copies: a stream of its own beside that of the kernels, and events between the two.
//!
//! A copy runs behind what was launched before it was begun, and beside what is launched next until that awaits it. What it reads and
//! writes on the host is held until it has run.

use std::collections::VecDeque;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys;
use tonnage_core::error::Result;

use super::{Gpu, said};

/// Host memory that copies go to and come from: it lies where it lies as long as it is held, and nobody looks at what is being copied.
pub trait HostMemory: Send + Sync {
    /// The address of its first byte, and how many there are.
    fn range(&self) -> Result<(usize, usize)>;
}

/// Events without clocks, for streams to wait for.
const EVENT_FLAGS: u32 = 2;

/// Streams that wait for no other.
const STREAM_FLAGS: u32 = 1;

/// Memory that is pinned for all contexts.
const PIN_FLAGS: u32 = 1;

/// The stream, made with the first copy, and what has been begun on it.
#[derive(Default)]
pub struct CopyLane(Mutex<LaneState>);

#[derive(Default)]
struct LaneState {
    /// The stream, and the event that its copies wait for.
    made: Option<(sys::CUstream, sys::CUevent)>,
    last: u64,
    begun: VecDeque<BegunCopy>,
    /// Events that nobody waits for any more.
    idle: Vec<sys::CUevent>,
}

struct BegunCopy {
    ticket: u64,
    done: sys::CUevent,
    _held: Arc<dyn HostMemory>,
}

/// Which way a copy goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyWay {
    /// From the device to the host.
    Out,
    /// From the host to the device.
    In,
}

/// Host memory that the driver keeps where it is, so that copies need no staging. Dropping it lets go.
#[derive(Debug)]
pub struct Pin {
    address: usize,
    context: sys::CUcontext,
}

// SAFETY: a context may be made current by any thread, and its primary one is kept as long as the process lives.
unsafe impl Send for Pin {}
// SAFETY: as above; nothing is done through a shared reference.
unsafe impl Sync for Pin {}

impl Drop for Pin {
    fn drop(&mut self) {
        // SAFETY: a context that is kept, and a range that was pinned; a driver that is lost says so, and no more can be done.
        unsafe {
            let _ = sys::cuCtxSetCurrent(self.context);
            let _ = sys::cuMemHostUnregister(ptr::with_exposed_provenance_mut(self.address));
        }
    }
}

impl CopyLane {
    fn state(&self) -> MutexGuard<'_, LaneState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LaneState {
    /// The stream and its event; the context is current.
    fn made(&mut self) -> std::result::Result<(sys::CUstream, sys::CUevent), String> {
        if let Some(made) = self.made {
            return Ok(made);
        }
        let mut stream = ptr::null_mut();
        // SAFETY: the context is current; the driver writes the handle.
        said(unsafe { sys::cuStreamCreate(&mut stream, STREAM_FLAGS) })?;
        Ok(*self.made.insert((stream, event()?)))
    }

    /// Lets go of what the copies held that have run.
    fn forget_done(&mut self) {
        // SAFETY: events of this lane, each recorded behind its copy.
        let is_done = |copy: &BegunCopy| unsafe { sys::cuEventQuery(copy.done) };
        while let Some(copy) = self.begun.pop_front() {
            match is_done(&copy) {
                sys::CUresult::CUDA_SUCCESS => self.idle.push(copy.done),
                _ => return self.begun.push_front(copy),
            }
        }
    }
}

/// A new event; the context is current.
fn event() -> std::result::Result<sys::CUevent, String> {
    let mut event = ptr::null_mut();
    // SAFETY: the context is current; the driver writes the handle.
    said(unsafe { sys::cuEventCreate(&mut event, EVENT_FLAGS) })?;
    Ok(event)
}

impl Gpu {
    /// Begins a copy between an address and host memory: the number by which it is awaited.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn begin_copy(
        &self,
        address: usize,
        host: Arc<dyn HostMemory>,
        way: CopyWay,
    ) -> Result<u64> {
        let (at, len) = host.range()?;
        self.needs_host()?;
        self.enter()?;
        let mut state = self.lane.state();
        let (lane, behind) = state.made().map_err(|what| self.failed(what))?;
        state.forget_done();
        let done = match state.idle.pop() {
            Some(done) => done,
            None => event().map_err(|what| self.failed(what))?,
        };
        // Held also where something goes wrong half way: the copy may have been begun.
        state.last += 1;
        let ticket = state.last;
        state.begun.push_back(BegunCopy { ticket, done, _held: host });
        let device = address as sys::CUdeviceptr;
        // SAFETY: streams and events of the current context. The host's bytes are held until the event is seen, and initialized; an
        // address of the device that is wrong makes the device fail.
        unsafe {
            self.checked(sys::cuEventRecord(behind, self.stream))?;
            self.checked(sys::cuStreamWaitEvent(lane, behind, 0))?;
            let host = ptr::with_exposed_provenance_mut(at);
            if len > 0 {
                self.checked(match way {
                    CopyWay::Out => sys::cuMemcpyDtoHAsync_v2(host, device, len, lane),
                    CopyWay::In => sys::cuMemcpyHtoDAsync_v2(device, host, len, lane),
                })?;
            }
            self.checked(sys::cuEventRecord(done, lane))?;
        }
        Ok(ticket)
    }

    /// Puts what is launched from now on behind a copy.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn await_copy(&self, ticket: u64) -> Result<()> {
        self.needs_host()?;
        self.enter()?;
        let state = self.lane.state();
        // One that is not there has run.
        match state.begun.iter().find(|copy| copy.ticket == ticket) {
            Some(copy) => {
                // SAFETY: a stream and an event of the current context.
                self.checked(unsafe { sys::cuStreamWaitEvent(self.stream, copy.done, 0) })
            }
            None => Ok(()),
        }
    }

    /// Waits for all copies of the lane.
    pub(super) fn wait_for_copies(&self) -> Result<()> {
        let mut state = self.lane.state();
        if let (Some((lane, _)), false) = (state.made, state.begun.is_empty()) {
            // SAFETY: a stream of the current context.
            self.checked(unsafe { sys::cuStreamSynchronize(lane) })?;
            state.forget_done();
        }
        Ok(())
    }

    /// Pins host memory for as long as what is given is kept, which must not be longer than the memory is; nothing where the driver
    /// does not, and copies are staged.
    pub fn pin(&self, bytes: &mut [u8]) -> Option<Pin> {
        self.enter().ok()?;
        let at = bytes.as_mut_ptr();
        // SAFETY: bytes of this process; pinning reads and writes none of them.
        said(unsafe { sys::cuMemHostRegister_v2(at.cast(), bytes.len(), PIN_FLAGS) }).ok()?;
        Some(Pin { address: at.expose_provenance(), context: self.context })
    }
}
