//! Running tile programs on the CPU: over tiles that stay in cache, with vectorized primitives.
//!
//! In the order that data flows: [`TileSource`] says where a load reads from and brings a tile of it; `ready` resolves
//! a program's primitives and gives its registers locations; `eval` runs it over one tile; `store` and `reduction`
//! drive it over a whole domain, on all threads.
//!
//! Registers are tiles of 4 KiB on the stack, and so is all that is noted of a program that is within [`LIMITS`]:
//! nothing is allocated. An element's result depends on the element alone, and a reduction's tree on the domain's shape
//! and the axes alone: the bits are the same at every thread count.

mod direct;
mod epilogue;
mod eval;
mod file_pieces;
mod partial;
mod pieces;
mod ready;
mod reduction;
mod reduction_shape;
mod repeat;
mod resolve;
pub(crate) mod source;
mod store;
mod stored;
mod transposed;
mod transposed_copy;
mod uniform;

pub use direct::{DirectOp, direct, known};
pub use epilogue::{TileEpilogue, apply_epilogue};
pub use file_pieces::{FILE_PIECE, file_piece, file_pieces};
pub use pieces::{DomainPiece, Pieces};
pub use ready::LIMITS;
pub use source::{Read, TileSource};
pub use uniform::uniform;

use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::tile::{Close, Reduction, TileProgram};

use crate::workers::Workers;
use ready::Ready;
use reduction_shape::ReductionShape;
use transposed_copy::transposed_copy;

/// This many elements do not fit a core's own cache.
const LARGE: usize = 1 << 20;

/// Results of this many bytes are not in any cache when they are read next, so they need not go through one. (Measured with
/// a reader right after, in a cache of 105 MiB: at 16 MiB streaming takes a fifth longer in all, at 32 MiB about as long,
/// at 64 MiB a quarter less.)
const FAR: usize = 48 << 20;

/// Steps of a program that leave a core time to stream: results are made beside and then copied, which takes as long as two more
/// of them. (Measured on 64 MiB: one step moves 51 GB/s streamed and 42 stored, three steps 40 and 43.)
const LIGHT: usize = 2;

/// Runs a program over `domain`. Each source has a layout of the domain's sizes; each output is as long
/// as its store; `scratch` is what [`scratch`] asked for.
pub fn run(
    program: &TileProgram,
    domain: &[usize],
    sources: &[TileSource],
    outputs: &mut [&mut [u8]],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    if direct::run_few(program, domain, sources, outputs)? {
        return workers.check();
    }
    if transposed_copy(program, domain, sources, outputs, workers)? {
        return Ok(());
    }
    if let Some(order) = stored::file_order(program, sources) {
        let (domain, sources) = (order.domain(domain), stored::reordered(&order, sources));
        let Close::Reduce { reduction, axes } = &program.close else { return Ok(()) };
        let axes = order.axes(axes);
        return reduce_over(
            program,
            *reduction,
            (&domain, &axes),
            &sources,
            outputs,
            scratch,
            workers,
        );
    }
    match &program.close {
        Close::Store => {
            let mut ready = Ready::empty(program);
            ready.resolve(sources)?;
            ready.ahead = domain.iter().product::<usize>() >= LARGE;
            let bytes: usize = outputs.iter().map(|out| out.len()).sum();
            ready.far = bytes >= FAR && ready.steps.len() <= LIGHT && ready.stores_apart();
            store::run(&ready, domain, outputs, workers)?;
            stored::check(sources)
        }
        Close::Reduce { reduction, axes } => {
            reduce_over(program, *reduction, (domain, axes), sources, outputs, scratch, workers)
        }
    }
}

/// Reduces a program's value over some axes of a domain.
fn reduce_over(
    program: &TileProgram,
    reduction: Reduction,
    (domain, axes): (&[usize], &[usize]),
    sources: &[TileSource],
    outputs: &mut [&mut [u8]],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let mut ready = Ready::empty(program);
    ready.resolve(sources)?;
    ready.ahead = domain.iter().product::<usize>() >= LARGE;
    let shape = ReductionShape::new(domain, axes).within(scratch.len());
    reduction::run(&ready, reduction, &shape, outputs, scratch, workers)?;
    stored::check(sources)
}

/// Runs a program that stores for some of its elements: those from `first` on in the domain's order, as many as the outputs hold.
/// Bits begin at a whole byte.
pub fn run_part(
    program: &TileProgram,
    sources: &[TileSource],
    first: usize,
    count: usize,
    outputs: &mut [&mut [u8]],
    workers: &dyn Workers,
) -> Result<()> {
    let mut ready = Ready::empty(program);
    ready.resolve(sources)?;
    store::run_part(&ready, first, count, outputs, workers)?;
    stored::check(sources)
}

/// Workspace of a program over that domain.
pub fn scratch(program: &TileProgram, domain: &[usize]) -> Bytes {
    match &program.close {
        Close::Store => Bytes::ZERO,
        Close::Reduce { axes, .. } => reduction_scratch(domain, axes),
    }
}

/// Workspace of a reduction over some axes of a domain.
pub fn reduction_scratch(domain: &[usize], axes: &[usize]) -> Bytes {
    ReductionShape::new(domain, axes).scratch()
}
