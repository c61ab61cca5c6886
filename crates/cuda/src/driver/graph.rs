//! Calls whose launches are recorded once and launched again as one: CUDA graphs.
//!
//! While a thread records, what it launches goes to a stream of its own that records and runs nothing; other threads go on. Whatever needs the
//! host in between (reading a value, waiting, a copy of pageable memory) cannot be recorded, and says so before it has done anything: such a
//! call is run as it is.
//!
//! Decision: `docs/decisions/calls-are-replayed.md`.

use std::cell::RefCell;
use std::ptr;
use std::sync::{Mutex, TryLockError};

use cudarc::driver::sys;
use tonnage_core::error::Result;
use tonnage_core::source::Source;

use super::{Gpu, said};
use crate::emit::Demand;

/// Launches that are worth a graph: fewer are launched as quickly one by one.
const LEAST: usize = 8;

/// The stream that records, once there is one.
#[derive(Default)]
pub struct Recorder(Mutex<Option<RecordingStream>>);

struct RecordingStream(sys::CUstream);

// SAFETY: the handle of a stream may be used by any thread that has made the context current.
unsafe impl Send for RecordingStream {}

/// What a thread records.
struct Recording {
    context: sys::CUcontext,
    stream: sys::CUstream,
    /// The launches so far that look at data.
    demands: Vec<(Demand, Option<Source>)>,
    /// Whether something needed the host.
    needed_host: bool,
}

thread_local! {
    static RECORDING: RefCell<Option<Recording>> = const { RefCell::new(None) };
}

/// The launches of a call, to be launched as one.
pub struct RecordedLaunches {
    graph: sys::CUgraphExec,
    context: sys::CUcontext,
    demands: Vec<(Demand, Option<Source>)>,
    count: usize,
}

// SAFETY: the handle of a graph may be used by any thread that has made the context current, as a launch does first.
unsafe impl Send for RecordedLaunches {}
// SAFETY: as above; it is only launched through a shared reference, and the driver locks what threads share.
unsafe impl Sync for RecordedLaunches {}

impl std::fmt::Debug for RecordedLaunches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} launches", self.count)
    }
}

impl Drop for RecordedLaunches {
    fn drop(&mut self) {
        // SAFETY: a context that is kept, and a graph that nobody else has; the driver keeps it until it has run.
        unsafe {
            let _ = sys::cuCtxSetCurrent(self.context);
            let _ = sys::cuGraphExecDestroy(self.graph);
        }
    }
}

/// A stream that records, until this is dropped: whoever panics meanwhile leaves nothing behind.
struct Capture {
    stream: sys::CUstream,
    /// What was recorded, once it has ended.
    graph: sys::CUgraph,
}

impl Capture {
    /// Ends it: what this thread recorded, if the driver has a graph of it.
    fn end(&mut self) -> Option<Recording> {
        let recording = RECORDING.take()?;
        // SAFETY: a stream that records, for it is this thread's; the driver writes a handle, or null.
        let ended = said(unsafe { sys::cuStreamEndCapture(self.stream, &mut self.graph) });
        (ended.is_ok() && !self.graph.is_null()).then_some(recording)
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.end();
        if !self.graph.is_null() {
            // SAFETY: a graph that nobody else has; what was made of it does not need it.
            let _ = unsafe { sys::cuGraphDestroy(self.graph) };
        }
    }
}

impl Gpu {
    /// Records what `launch` launches on this thread, instead of running it; nothing where that needs the host in between, is not worth it, or
    /// another thread records just now.
    pub fn record(&self, launch: impl FnOnce() -> Result<()>) -> Option<RecordedLaunches> {
        self.enter().ok()?;
        let mut held = match self.recorder.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let stream = match &*held {
            Some(RecordingStream(stream)) => *stream,
            None => {
                let mut stream = ptr::null_mut();
                // SAFETY: the context is current; the driver writes the handle.
                said(unsafe { sys::cuStreamCreate(&mut stream, 1) }).ok()?;
                held.insert(RecordingStream(stream)).0
            }
        };
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: a stream of the current context, on which nothing runs.
        said(unsafe { sys::cuStreamBeginCapture_v2(stream, mode) }).ok()?;
        let recording =
            Recording { context: self.context, stream, demands: Vec::new(), needed_host: false };
        RECORDING.set(Some(recording));
        let mut capture = Capture { stream, graph: ptr::null_mut() };
        let launched = launch();
        let recording = capture.end().filter(|recording| !recording.needed_host)?;
        match launched {
            Ok(()) => self.instantiated(&capture, recording),
            Err(_) => None,
        }
    }

    fn instantiated(&self, capture: &Capture, recording: Recording) -> Option<RecordedLaunches> {
        let graph = capture.graph;
        let (mut count, mut made) = (0, ptr::null_mut());
        // SAFETY: a graph; without room for the nodes the driver writes their number.
        said(unsafe { sys::cuGraphGetNodes(graph, ptr::null_mut(), &mut count) }).ok()?;
        if count < LEAST {
            return None;
        }
        // SAFETY: a graph; the driver writes a handle.
        said(unsafe { sys::cuGraphInstantiateWithFlags(&mut made, graph, 0) }).ok()?;
        let (context, demands) = (self.context, recording.demands);
        Some(RecordedLaunches { graph: made, context, demands, count })
    }

    /// Launches what was recorded.
    ///
    /// # Errors
    /// Where the device failed, or was given bad data before.
    pub fn replay(&self, recorded: &RecordedLaunches) -> Result<()> {
        // Recorded launches have the numbers of a call that is the first to look at data.
        while !self.checks.put(&recorded.demands) {
            self.wait()?;
        }
        self.enter()?;
        // SAFETY: a graph of the current context, whose addresses are the device's; a wrong one makes the device fail.
        self.checked(unsafe { sys::cuGraphLaunch(recorded.graph, self.stream) })
    }

    /// The stream that this thread launches on.
    pub(super) fn stream(&self) -> sys::CUstream {
        self.recording(|recording| recording.stream).unwrap_or(self.stream)
    }

    /// Says that the host is needed here.
    ///
    /// # Errors
    /// Where this thread records.
    pub(super) fn needs_host(&self) -> Result<()> {
        match self.recording(|recording| recording.needed_host = true) {
            Some(()) => Err(self.failed("it is recorded, and the host is needed".into())),
            None => Ok(()),
        }
    }

    /// The number of a launch among those that look at data, and whether it has to look whether the data so far were good.
    pub(super) fn number(&self, demand: Option<&Demand>, source: Option<&Source>) -> (u32, bool) {
        let recorded = self.recording(|recording| {
            if let Some(demand) = demand {
                recording.demands.push((demand.clone(), source.copied()));
            }
            (recording.demands.len() as u32, !recording.demands.is_empty())
        });
        recorded.unwrap_or_else(|| self.checks.number(demand, source))
    }

    fn recording<R>(&self, f: impl FnOnce(&mut Recording) -> R) -> Option<R> {
        RECORDING.with_borrow_mut(|recording| {
            let own = recording.as_mut().filter(|recording| recording.context == self.context);
            own.map(f)
        })
    }
}
