//! An MPI library that is loaded at run time, and the calls of it that are used. All that is `unsafe` about MPI is in this file.
//!
//! MPI has no binary interface of old: a handle is the address of a symbol in Open MPI, a number in MPICH, and a small constant
//! in the standard's own interface. Each fits a register, so a handle is a `usize` here, and [`Handles`] is one table for each of the three. Where a
//! library writes a handle of 4 bytes, it fills the lower half.
//!
//! The invariant: buffers that were given to MPI are borrowed until MPI is done with them, or the process ends.

#![allow(unsafe_code, reason = "MPI is a library of C")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use smallvec::SmallVec;
use tonnage_core::Result;

use crate::{no_engine, search};

/// Finds a library that is loaded already, and loads none.
const RTLD_NOLOAD: c_int = 4;

/// The tag of all messages: a world has a communicator of its own.
const TAG: c_int = 1;

/// Messages are cut into pieces of this many bytes: MPI counts in 31 bits, and a piece that is done shows that bytes move.
const PIECE: usize = 16 << 20;

/// What the constants of MPI are in a library.
#[derive(Clone, Copy)]
struct Handles {
    /// Whose they are.
    of: &'static str,
    world: usize,
    byte: usize,
    status_ignore: usize,
    /// One thread at a time calls MPI.
    serialized: c_int,
}

type Comm = usize;

/// The calls that are used.
struct Calls {
    init_thread:
        unsafe extern "C" fn(*mut c_int, *mut *mut *mut c_char, c_int, *mut c_int) -> c_int,
    initialized: unsafe extern "C" fn(*mut c_int) -> c_int,
    finalized: unsafe extern "C" fn(*mut c_int) -> c_int,
    finalize: unsafe extern "C" fn() -> c_int,
    query_thread: unsafe extern "C" fn(*mut c_int) -> c_int,
    library_version: unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int,
    comm_dup: unsafe extern "C" fn(Comm, *mut Comm) -> c_int,
    comm_rank: unsafe extern "C" fn(Comm, *mut c_int) -> c_int,
    comm_size: unsafe extern "C" fn(Comm, *mut c_int) -> c_int,
    isend:
        unsafe extern "C" fn(*const c_void, c_int, usize, c_int, c_int, Comm, *mut usize) -> c_int,
    irecv: unsafe extern "C" fn(*mut c_void, c_int, usize, c_int, c_int, Comm, *mut usize) -> c_int,
    test: unsafe extern "C" fn(*mut usize, *mut c_int, usize) -> c_int,
    abort: unsafe extern "C" fn(Comm, c_int) -> c_int,
}

// SAFETY: the declaration is that of the GNU C library.
unsafe extern "C" {
    fn on_exit(call: extern "C" fn(c_int, *mut c_void), argument: *mut c_void) -> c_int;
}

/// A loaded library.
pub struct Mpi {
    calls: Calls,
    handles: Handles,
    file: PathBuf,
    /// Never unloaded: what was looked up in it is called as long as the process lives.
    _library: ManuallyDrop<Library>,
}

/// Bytes that go to another rank, or come from it.
pub enum Transfer<'a> {
    Send(usize, &'a [u8]),
    Receive(usize, &'a mut [u8]),
}

/// Is told for how long a rank waits, and may ask for whom.
pub type Waiting<'w> = dyn FnMut(Duration, &dyn Fn() -> Vec<usize>) + 'w;

/// A message that is under way.
struct Request {
    handle: usize,
    rank: usize,
    receives: bool,
    is_done: bool,
}

/// MPI between start and end: ranks that share a communicator of their own.
pub struct Running {
    mpi: &'static Mpi,
    comm: Comm,
    rank: usize,
    size: usize,
    /// One thread at a time calls MPI.
    turn: Mutex<()>,
}

impl Mpi {
    /// One that is loaded into this process already.
    pub fn shared() -> Option<Mpi> {
        search::NAMES.iter().find_map(|name| Mpi::open(Path::new(name), RTLD_NOLOAD).ok())
    }

    /// The first that can be loaded.
    pub fn load() -> Result<Mpi> {
        let mut tried = Vec::new();
        for path in search::candidates() {
            match Mpi::open(&path, 0) {
                Ok(mpi) => return Ok(mpi),
                Err(why) => tried.push(why),
            }
        }
        let what = format!(
            "a launcher started this process as a rank, and no MPI library can be loaded: {}",
            tried.join("; ")
        );
        let help = format!(
            "add the folder of the launcher's MPI library to LD_LIBRARY_PATH, or name its file in {}",
            search::VARIABLE
        );
        Err(no_engine(what, &help))
    }

    fn open(path: &Path, more: c_int) -> std::result::Result<Mpi, String> {
        // SAFETY: an MPI library may be loaded at any time, once or more; its initializers have no conditions. Its symbols are for all to see, since plugins of
        // Open MPI 4 look for them there.
        let opened = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL | more) };
        let library = opened.map_err(|error| why(path, &error))?;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        let file = search::file_of(path, &maps);
        let calls = Calls::of(&library).map_err(|e| format!("{}: {e}", file.display()))?;
        let handles = Handles::of(&library, &file);
        Ok(Mpi { calls, handles, file, _library: ManuallyDrop::new(library) })
    }

    /// Whether somebody initialized it, and did not finalize it.
    pub fn is_running(&self) -> bool {
        let (mut started, mut ended) = (0, 0);
        // SAFETY: both may be called at any time, and write a number.
        unsafe { (self.calls.initialized)(&mut started) };
        // SAFETY: as above.
        unsafe { (self.calls.finalized)(&mut ended) };
        started != 0 && ended == 0
    }

    pub fn file(&self) -> &Path {
        &self.file
    }

    pub fn handles(&self) -> &'static str {
        self.handles.of
    }

    /// The first line of what it says of itself.
    pub fn version(&self) -> String {
        // The standard's limit is 8,192 characters with the 0 at the end.
        let (mut text, mut length) = (vec![0 as c_char; 8193], 0);
        // SAFETY: may be called before MPI is initialized; it writes at most 8,192 characters, and the text keeps a 0 behind them.
        let text = unsafe {
            (self.calls.library_version)(text.as_mut_ptr(), &mut length);
            CStr::from_ptr(text.as_ptr())
        };
        let text = text.to_string_lossy();
        let line = text.lines().next().unwrap_or_default();
        let words = line.split(", package:").next().unwrap_or_default().split_whitespace();
        words.collect::<Vec<_>>().join(" ")
    }

    /// Initializes it, unless somebody did; the ranks of its world, in a communicator of our own.
    pub fn start(self) -> Result<Running> {
        let (needed, file) = (self.handles.serialized, self.file.display().to_string());
        let mut got = 0;
        let is_ours = !self.is_running();
        // SAFETY: MPI is not initialized, and no arguments are passed on; or it is, and is asked. Each writes a number.
        let code = unsafe {
            match is_ours {
                true => (self.calls.init_thread)(null_mut(), null_mut(), needed, &mut got),
                false => (self.calls.query_thread)(&mut got),
            }
        };
        if code != 0 || got < needed {
            let what = match code {
                0 => format!("{file} was initialized for calls of one thread alone"),
                code => format!("{file} cannot be initialized (code {code})"),
            };
            return Err(no_engine(what, "initialize it with MPI_THREAD_SERIALIZED or more"));
        }
        // A library that runs is never unloaded: its threads and the end of the process call it.
        let mpi: &'static Mpi = Box::leak(Box::new(self));
        if is_ours {
            mpi.end_with_process();
        }
        let (mut comm, mut rank, mut size) = (0, 0, 0);
        // SAFETY: MPI runs, the handle is its world's, and each call writes a handle or a number.
        let code = unsafe {
            (mpi.calls.comm_dup)(mpi.handles.world, &mut comm)
                | (mpi.calls.comm_rank)(comm, &mut rank)
                | (mpi.calls.comm_size)(comm, &mut size)
        };
        match (code, usize::try_from(rank), usize::try_from(size)) {
            (0, Ok(rank), Ok(size)) => Ok(Running { mpi, comm, rank, size, turn: Mutex::new(()) }),
            _ => Err(no_engine(format!("{file} has no world"), "start the program by `mpirun`")),
        }
    }

    /// Ends MPI when the process ends: all ranks together, or at once where the status is not 0, as others may wait for this one.
    fn end_with_process(&'static self) {
        static ENDING: OnceLock<&'static Mpi> = OnceLock::new();
        extern "C" fn end(status: c_int, _: *mut c_void) {
            let Some(mpi) = ENDING.get().filter(|mpi| mpi.is_running()) else { return };
            // SAFETY: MPI runs, and the process, which may call it no more, is at its end.
            unsafe {
                match status {
                    0 => (mpi.calls.finalize)(),
                    status => (mpi.calls.abort)(mpi.handles.world, status),
                }
            };
        }
        if ENDING.set(self).is_ok() {
            // SAFETY: the function lives as long as the process, and takes no argument.
            unsafe { on_exit(end, null_mut()) };
        }
    }
}

impl Running {
    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn name(&self) -> String {
        self.mpi.version()
    }

    /// Ends all ranks.
    pub fn abort(&self) -> ! {
        // SAFETY: MPI runs. Another thread may be inside of it, which is at its end with the process.
        unsafe { (self.mpi.calls.abort)(self.comm, 1) };
        std::process::abort()
    }

    /// Moves bytes to others and from them, until all are moved. While it waits it tells for how long, and can be asked for the ranks that it waits for.
    /// Where MPI refuses, `refused` is told the code, and the job ends.
    pub fn exchange(
        &self,
        transfers: &mut [Transfer<'_>],
        waiting: &mut Waiting<'_>,
        refused: &dyn Fn(i32),
    ) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Where this is left by a panic, MPI would go on with buffers that are somebody else's.
        let bomb = EndOnDrop;
        let mut requests: SmallVec<[Request; 16]> = SmallVec::new();
        let mut code = 0;
        // Receives first: what is expected is not buffered.
        for transfer in transfers.iter_mut() {
            if let Transfer::Receive(rank, bytes) = transfer {
                for piece in bytes.chunks_mut(PIECE) {
                    let (at, count) = (piece.as_mut_ptr().cast(), piece.len() as c_int);
                    // SAFETY: the piece is borrowed, alone, until `exchange` returns, which is when its request is done.
                    code |= self.post(&mut requests, *rank, true, |request| unsafe {
                        let calls = &self.mpi.calls;
                        let (byte, rank) = (self.mpi.handles.byte, *rank as c_int);
                        (calls.irecv)(at, count, byte, rank, TAG, self.comm, request)
                    });
                }
            }
        }
        for transfer in transfers.iter() {
            if let Transfer::Send(rank, bytes) = transfer {
                for piece in bytes.chunks(PIECE) {
                    let (at, count) = (piece.as_ptr().cast(), piece.len() as c_int);
                    // SAFETY: the piece is borrowed until `exchange` returns, which is when its request is done.
                    code |= self.post(&mut requests, *rank, false, |request| unsafe {
                        let calls = &self.mpi.calls;
                        let (byte, rank) = (self.mpi.handles.byte, *rank as c_int);
                        (calls.isend)(at, count, byte, rank, TAG, self.comm, request)
                    });
                }
            }
        }
        if code == 0 {
            code = self.wait(&mut requests, waiting);
        }
        if code != 0 {
            // Messages may be under way: the buffers cannot be given back.
            refused(code);
            self.abort();
        }
        std::mem::forget(bomb);
    }

    fn post(
        &self,
        requests: &mut SmallVec<[Request; 16]>,
        rank: usize,
        receives: bool,
        call: impl FnOnce(*mut usize) -> c_int,
    ) -> c_int {
        let mut handle = 0;
        let code = call(&mut handle);
        requests.push(Request { handle, rank, receives, is_done: false });
        code
    }

    /// Until all requests are done. It spins, then lets others have the processor, then sleeps: ranks may be more than cores, and a rank that computes
    /// for long needs them.
    fn wait(&self, requests: &mut [Request], waiting: &mut Waiting<'_>) -> c_int {
        let (start, mut last, mut rounds) = (Instant::now(), None, 0u32);
        loop {
            let (mut open, mut some) = (false, false);
            for request in requests.iter_mut().filter(|request| !request.is_done) {
                let mut is_done = 0;
                let ignore = self.mpi.handles.status_ignore;
                // SAFETY: the handle is of a request that is not done; a status is not asked for.
                let code =
                    unsafe { (self.mpi.calls.test)(&mut request.handle, &mut is_done, ignore) };
                if code != 0 {
                    return code;
                }
                request.is_done = is_done != 0;
                some |= request.is_done;
                open |= !request.is_done;
            }
            if !open {
                return 0;
            }
            rounds = if some { 0 } else { rounds.saturating_add(1) };
            if rounds < 64 {
                last = None;
                std::hint::spin_loop();
                continue;
            }
            let since = *last.get_or_insert_with(Instant::now);
            match since.elapsed() < Duration::from_millis(20) {
                true => std::thread::yield_now(),
                false => {
                    std::thread::sleep(Duration::from_micros(200));
                    waiting(start.elapsed(), &|| late(requests));
                }
            }
        }
    }
}

/// The ranks whose bytes have not come; where all have, those that have not taken ours.
fn late(requests: &[Request]) -> Vec<usize> {
    let of = |receives: bool| {
        let open = requests.iter().filter(move |r| !r.is_done && r.receives == receives);
        let mut ranks: Vec<usize> = open.map(|r| r.rank).collect();
        ranks.sort_unstable();
        ranks.dedup();
        ranks
    };
    Some(of(true)).filter(|ranks| !ranks.is_empty()).unwrap_or_else(|| of(false))
}

/// Ends the process where it is dropped.
struct EndOnDrop;

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        std::process::abort();
    }
}

impl Handles {
    /// The table of a library: Open MPI is known by its symbols, the standard's interface by the name of its file.
    fn of(library: &Library, file: &Path) -> Handles {
        let at = |name: &str| address(library, name).ok();
        if let (Some(world), Some(byte)) = (at("ompi_mpi_comm_world"), at("ompi_mpi_byte")) {
            return Handles { of: "Open MPI", world, byte, status_ignore: 0, serialized: 2 };
        }
        let file = file.file_name().unwrap_or_default().to_string_lossy();
        match file.contains("mpi_abi") {
            true => Handles {
                of: "the standard ABI",
                world: 0x101,
                byte: 0x247,
                status_ignore: 0,
                serialized: 2048,
            },
            false => Handles {
                of: "MPICH",
                world: 0x4400_0000,
                byte: 0x4c00_010d,
                status_ignore: 1,
                serialized: 2,
            },
        }
    }
}

/// Why a library cannot be loaded, in the words of the system's loader, which name the file.
fn why(path: &Path, error: &libloading::Error) -> String {
    match std::error::Error::source(error) {
        Some(source) => source.to_string(),
        None => format!("{}: {error}", path.display()),
    }
}

/// Where a symbol is.
fn address(library: &Library, name: &str) -> std::result::Result<usize, String> {
    // SAFETY: only the address is asked for, whatever stands there.
    let found = unsafe { library.get::<*mut c_void>(name.as_bytes()) };
    found.map(|symbol| symbol.as_raw_ptr() as usize).map_err(|error| error.to_string())
}

impl Calls {
    fn of(library: &Library) -> std::result::Result<Calls, String> {
        macro_rules! call {
            ($name:literal) => {
                // SAFETY: the types are those of the standard for these names, with every handle in a register.
                match unsafe { library.get($name.as_bytes()) } {
                    Ok(symbol) => *symbol,
                    Err(error) => return Err(error.to_string()),
                }
            };
        }
        Ok(Calls {
            init_thread: call!("MPI_Init_thread"),
            initialized: call!("MPI_Initialized"),
            finalized: call!("MPI_Finalized"),
            finalize: call!("MPI_Finalize"),
            query_thread: call!("MPI_Query_thread"),
            library_version: call!("MPI_Get_library_version"),
            comm_dup: call!("MPI_Comm_dup"),
            comm_rank: call!("MPI_Comm_rank"),
            comm_size: call!("MPI_Comm_size"),
            isend: call!("MPI_Isend"),
            irecv: call!("MPI_Irecv"),
            test: call!("MPI_Test"),
            abort: call!("MPI_Abort"),
        })
    }
}
