//! `MPI_Allreduce` of the library that this process has loaded: what sums over ranks are compared with. Training does not call it.

#![allow(unsafe_code, reason = "MPI is a library of C")]

use std::ffi::{c_int, c_void};
use std::path::Path;

use libloading::Library;
use tonnage::world;

type Call = unsafe extern "C" fn(*const c_void, *mut c_void, c_int, usize, usize, usize) -> c_int;

/// The call, and what the constants of MPI are in this library: `MPI_IN_PLACE`, `MPI_FLOAT`, `MPI_SUM` and `MPI_COMM_WORLD`.
pub struct Allreduce {
    call: Call,
    in_place: usize,
    float: usize,
    sum: usize,
    world: usize,
    _library: Library,
}

impl Allreduce {
    /// That of the library that ranks joined by; none where there is no such library.
    pub fn find() -> Option<Allreduce> {
        let found = world::find().ok()?;
        let library = open(&found.file)?;
        // SAFETY: the type is that of the standard for this name, with every handle in a register.
        let call: Call = *unsafe { library.get::<Call>(b"MPI_Allreduce") }.ok()?;
        let at = |name: &str| {
            // SAFETY: only the address is asked for, whatever stands there.
            unsafe { library.get::<*mut c_void>(name.as_bytes()) }.map(|s| *s as usize)
        };
        let (in_place, float, sum, world) = match found.handles {
            "Open MPI" => (
                1,
                at("ompi_mpi_float").ok()?,
                at("ompi_mpi_op_sum").ok()?,
                at("ompi_mpi_comm_world").ok()?,
            ),
            "the standard ABI" => (1, 0x210, 0x21, 0x101),
            _ => (usize::MAX, 0x4c00_040a, 0x5800_0003, 0x4400_0000),
        };
        Some(Allreduce { call, in_place, float, sum, world, _library: library })
    }

    /// The sum over all ranks, of `values` or in place; whether MPI made it.
    pub fn sum(&self, values: Option<&[f32]>, to: &mut [f32]) -> bool {
        let from = match values {
            Some(values) if values.len() != to.len() => return false,
            Some(values) => values.as_ptr().cast(),
            None => self.in_place as *const c_void,
        };
        let Ok(count) = c_int::try_from(to.len()) else { return false };
        let to = to.as_mut_ptr().cast();
        // SAFETY: ranks have joined, so MPI runs, and one thread of this process calls it; both buffers hold `count` numbers, or the first is the mark of
        // the standard for none; they are borrowed until MPI is done with them.
        0 == unsafe { (self.call)(from, to, count, self.float, self.sum, self.world) }
    }
}

/// A library that is loaded already.
fn open(path: &Path) -> Option<Library> {
    // SAFETY: its initializers have run.
    unsafe { Library::new(path) }.ok()
}
