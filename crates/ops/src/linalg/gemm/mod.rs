//! The matmul core: blocked products in the manner of GOTO and BLIS, with every byte of packing space lent.
//!
//! * **Ask, then lend.** [`scratch_bytes`] answers from sizes alone; [`gemm`] allocates nothing.
//! * **Operands are a parameter** ([`Operand`]): matrices at any strides ([`Matrix`]), 16-bit floats that are widened
//!   as they are packed, and whatever else can write panels of itself.
//! * **So is the end of the work** ([`Epilogue`]): it sees each block when its sums are complete, in cache.
//! * **The bits do not depend on threads.** The cut along K follows from K alone, threads share rows and columns, and
//!   every element is summed in the same order wherever the cuts fall.
//!
//! `NaN` and infinities go the way of plain arithmetic: zeros are multiplied too. Integers wrap.
//!
//! The layers, outermost first: `plan` (how a product is cut), `run` (threads), `tiles` and `few` (the two kinds of
//! loops), `pack`, `kernel`.

#![allow(unsafe_code, reason = "the result is handed to threads as a pointer")]

mod compute;
mod epilogue;
mod few;
mod kernel;
mod operand;
mod pack;
mod plan;
mod run;
mod tiles;

pub use compute::{Compute, Output, Reads};
pub use epilogue::{Block, Epilogue, Position, Store};
pub use operand::{Direct, Matrix, Operand, Strides, pack_with};
pub use plan::Size;

use kernel::Level;
use plan::{ALIGN, Plan};
use run::{Job, Sink};
use tonnage_core::{Bytes, DType, ErrorKind, Result, Workers, bf16, f16};

/// Where a batch of results goes: rows of `cols` elements side by side.
#[derive(Debug)]
pub struct Target<'a, O> {
    /// What is written to.
    pub data: &'a mut [O],
    /// From one matrix of the batch to the next, in elements. Ignored where there is one.
    pub batch_stride: usize,
    /// From one row to the next, in elements. Ignored where there is one.
    pub row_stride: usize,
    /// Add the product to what is there, rather than overwrite it.
    pub add: bool,
}

impl<'a, O> Target<'a, O> {
    /// Matrices one after the other, overwritten.
    pub fn new(data: &'a mut [O], size: Size) -> Target<'a, O> {
        Target { data, batch_stride: size.rows * size.cols, row_stride: size.cols, add: false }
    }

    /// The same, added to.
    #[must_use]
    pub fn adding(self) -> Target<'a, O> {
        Target { add: true, ..self }
    }
}

/// The packing space that [`gemm`] wants for results of dtype `output` on that many threads. Never more than 4 MiB a
/// thread, and the same on every machine.
///
/// With less, down to what one thread needs, `gemm` uses fewer threads. `bool` has no products: nothing.
pub fn scratch_bytes(size: Size, output: DType, threads: usize) -> Bytes {
    let bytes = |level| scratch_at(level, size, output, threads);
    Bytes::of(Level::ALL.iter().map(|&level| bytes(level)).max().unwrap_or(0))
}

/// [`scratch_bytes`] at a level.
#[doc(hidden)]
pub fn scratch_at(level: Level, size: Size, output: DType, threads: usize) -> usize {
    fn of<O: Output>(level: Level, size: Size, threads: usize) -> usize {
        if size.is_empty() {
            return 0;
        }
        let kernel = O::Compute::kernel(level);
        Plan::new(size, kernel, !O::IS_COMPUTE, threads).bytes(size_of::<O::Compute>())
    }
    match output {
        DType::F64 => of::<f64>(level, size, threads),
        DType::F32 => of::<f32>(level, size, threads),
        DType::F16 => of::<f16>(level, size, threads),
        DType::BF16 => of::<bf16>(level, size, threads),
        // Unsigned integers are multiplied as signed ones: the low bits are the same.
        DType::I64 | DType::U64 => of::<i64>(level, size, threads),
        DType::I32 | DType::U32 => of::<i32>(level, size, threads),
        DType::I16 | DType::U16 => of::<i16>(level, size, threads),
        DType::I8 | DType::U8 => of::<i8>(level, size, threads),
        DType::Bool => 0,
    }
}

/// `c (+)= a * b`, for every product of the batch.
///
/// ```
/// use tonnage_core::{DType, workers::Alone};
/// use tonnage_ops::linalg::gemm::{Matrix, Size, Store, Strides, Target, gemm, scratch_bytes};
///
/// let a = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // [2, 3]
/// let b = [1.0f32, 0.0, 1.0, 0.0, 2.0, 0.0]; // [2, 3], read as its transpose
/// let size = Size::single(2, 2, 3);
/// let mut c = [0.0f32; 4];
/// let mut scratch = vec![0; scratch_bytes(size, DType::F32, 1).as_usize()];
/// gemm(
///     size,
///     &Matrix::left(&a, Strides::rows_of(3)),
///     &Matrix::right(&b, Strides::rows_of(3).transposed()),
///     Target::new(&mut c, size),
///     &Store,
///     &mut scratch,
///     &Alone,
/// )?;
/// assert_eq!(c, [4.0, 4.0, 10.0, 10.0]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// Where strides leave a slice, rows of the result overlap, or the scratch is too small.
pub fn gemm<A, B, O, E>(
    size: Size,
    a: &A,
    b: &B,
    c: Target<'_, O>,
    epilogue: &E,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: Epilogue<O::Compute>,
{
    gemm_at(Level::best(), size, a, b, c, epilogue, scratch, workers)
}

/// Products by the instructions of a lower level, for tests.
#[doc(hidden)]
pub mod forced {
    pub use super::kernel::Level;
    pub use super::{gemm_at, scratch_at};
}

/// [`gemm`] at a level; at the lowest where the machine lacks it.
#[doc(hidden)]
#[allow(clippy::too_many_arguments, reason = "those of `gemm` and the level, which tests force")]
pub fn gemm_at<A, B, O, E>(
    level: Level,
    size: Size,
    a: &A,
    b: &B,
    c: Target<'_, O>,
    epilogue: &E,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()>
where
    A: Operand<O::Compute>,
    B: Operand<O::Compute>,
    O: Output,
    E: Epilogue<O::Compute>,
{
    if size.is_empty() {
        return Ok(());
    }
    a.check(size.batch, size.rows, size.depth)?;
    b.check(size.batch, size.cols, size.depth)?;
    c.check(size)?;
    let kernel = O::Compute::kernel(if level.is_available() { level } else { Level::Portable });
    let element = size_of::<O::Compute>();
    let lent = scratch.len();
    let plan = (1..=workers.threads().max(1))
        .rev()
        .map(|threads| Plan::new(size, kernel, !O::IS_COMPUTE, threads))
        .find(|plan| plan.bytes(element) <= lent);
    let Some(plan) = plan else {
        let needed = Bytes::of(Plan::new(size, kernel, !O::IS_COMPUTE, 1).bytes(element));
        let what = format!("{} of scratch are too few for {size:?}", Bytes::of(lent));
        let help = format!("lend {needed}, or what scratch_bytes asks for");
        return Err(ErrorKind::BadArgument { op: "matmul", what, help }.into());
    };
    let start = scratch.as_ptr().align_offset(ALIGN).min(lent);
    let (_, space, _) = bytemuck::pod_align_to_mut::<u8, O::Compute>(&mut scratch[start..]);
    let c = Sink::new(c.data.as_mut_ptr(), c.batch_stride, c.row_stride, c.add);
    Job { size, a, b, c, epilogue, kernel, plan }.pieces(workers, 0, plan.pieces, space);
    Ok(())
}

impl<O> Target<'_, O> {
    /// Refuses rows that overlap or leave the slice. Either stride may be the larger one.
    fn check(&self, size: Size) -> Result<()> {
        let mut axes = [(size.batch, self.batch_stride), (size.rows, self.row_stride)];
        axes.sort_by_key(|&(count, stride)| (count > 1, stride));
        let mut extent = Some(size.cols);
        for (count, stride) in axes {
            if count > 1 {
                let reach = stride.checked_mul(count - 1);
                let fits = extent.is_some_and(|extent| stride >= extent);
                extent = reach
                    .zip(extent)
                    .filter(|_| fits)
                    .and_then(|(reach, extent)| reach.checked_add(extent));
            }
        }
        if extent.is_some_and(|extent| extent <= self.data.len()) {
            return Ok(());
        }
        let what = format!(
            "strides {} and {} for {size:?} overlap or leave a slice of {} elements",
            self.batch_stride,
            self.row_stride,
            self.data.len()
        );
        let help = "use strides that keep rows apart and inside".to_string();
        Err(ErrorKind::BadArgument { op: "matmul", what, help }.into())
    }
}
