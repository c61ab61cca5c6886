//! The matmul core: blocked products in the manner of GOTO and BLIS, with every byte of packing space lent.
//!
//! * **Ask, then lend.** [`scratch_bytes`] answers from sizes alone; [`gemm`] allocates nothing.
//! * **Operands are objects of a trait** ([`GemmOperand`]), asked for a panel at a time, so the loops are compiled once for each dtype: matrices at any strides ([`Matrix`]), 16-bit floats that are widened
//!   as they are packed, and whatever else can write panels of itself.
//! * **So is the epilogue** ([`BlockEpilogue`]): it sees each block when its sums are complete, in cache.
//! * **The bits do not depend on threads.** The cut along K follows from the size of the product, threads share rows and
//!   columns, and every element is summed in the same order wherever the cuts fall.
//!
//! `NaN` and infinities go the way of plain arithmetic: zeros are multiplied too. Integers wrap. Subnormal numbers count as
//! zeros where a machine is slow with them (`tonnage_simd::product::Flushed`).
//!
//! The layers, outermost first: `plan` (how a product is cut), `run` (threads), `tiles`, `bf16_dot` and `skinny` (the kinds of
//! loops), `pack`; then the micro-kernels of `tonnage_simd::product`.

#![allow(unsafe_code, reason = "the result is handed to threads as a pointer")]

mod amx_tiles;
mod band;
mod bf16_dot;
mod epilogue;
mod integer;
mod operand;
mod pack;
mod panels;
mod plan;
mod run;
mod skinny;
mod target;
mod tiles;

pub use band::{Band, StridePattern};
pub use epilogue::{BlockEpilogue, BlockPosition, NoEpilogue, OutputBlock, OutputEpilogue};
pub use integer::{IntegerMatrix, integer_product, integer_scratch_bytes};
pub use operand::{
    Bf16Source, DirectMatrix, GemmOperand, Matrix, Packs, Strides, Strip, pack_with,
};
pub use pack::{StridedSource, strided as pack_strided};
pub(crate) use target::Area;
pub use target::{Grid, RowLayout, Target};
pub use tonnage_simd::product::{Compute, GemmOutput, Reads};

use std::sync::atomic::AtomicU64;

use tonnage_core::{Bytes, DType, ErrorKind, Result, bf16, f16};
pub use tonnage_ops::linalg::Size;
use tonnage_simd::product::GemmLevel;

use crate::workers::Workers;
use plan::{ALIGN, GemmOptions, GemmPath, GemmPlan, suited};
use run::{GemmJob, OutputSink};

/// The packing space that [`gemm`] wants for matrices and results of dtype `output` in even rows, on that many
/// threads. Never more than 4 MiB a thread, and the same on every machine.
///
/// With less, down to what one thread needs, `gemm` uses fewer threads. `bool` has no products: nothing.
pub fn scratch_bytes(size: Size, output: DType, threads: usize) -> Bytes {
    scratch_bytes_for(size, output, Packs::Blocks, false, threads)
}

/// The same for a left operand that packs in that way, and for rows on a grid where `grid`.
pub fn scratch_bytes_for(
    size: Size,
    output: DType,
    left: Packs,
    grid: bool,
    threads: usize,
) -> Bytes {
    let bytes = |level| scratch_at(level, size, output, left, grid, threads);
    Bytes::of(GemmLevel::ALL.iter().map(|&level| bytes(level)).max().unwrap_or(0))
}

/// Enough for any product of matrices in even rows that is no larger than this one in any way, on that many threads:
/// for kernels that cut blocks as the data have it.
pub fn scratch_bytes_within(size: Size, output: DType, threads: usize) -> Bytes {
    let all = GemmLevel::ALL.iter();
    let most = match output {
        DType::F64 => all.map(|&level| GemmPlan::most::<f64>(size, f64::kernel(level))).max(),
        DType::F32 => all.map(|&level| GemmPlan::most::<f32>(size, f32::kernel(level))).max(),
        _ => None,
    };
    Bytes::of(most.map_or(0, |bytes| bytes * threads + ALIGN - 1))
}

/// [`scratch_bytes_for`] at a level.
#[doc(hidden)]
pub fn scratch_at(
    level: GemmLevel,
    size: Size,
    output: DType,
    left: Packs,
    grid: bool,
    threads: usize,
) -> usize {
    let of = Scratch { level, size, left, grid, threads };
    match output {
        DType::F64 => of.bytes::<f64>(),
        DType::F32 => of.bytes::<f32>(),
        DType::F16 => of.bytes::<f16>(),
        DType::BF16 => of.bytes::<bf16>(),
        // Unsigned integers are multiplied as signed ones: the low bits are the same.
        DType::I64 | DType::U64 => of.bytes::<i64>(),
        DType::I32 | DType::U32 => of.bytes::<i32>(),
        DType::I16 | DType::U16 => of.bytes::<i16>(),
        DType::I8 | DType::U8 => of.bytes::<i8>(),
        DType::Bool => 0,
    }
}

/// Whether products of all these sizes, with the same K and results of that dtype, add up each of their elements in the same
/// order, on every machine and wherever operands lie. Thin products do not: their order follows the strides.
pub fn add_alike(sizes: impl Iterator<Item = Size> + Clone, output: DType) -> bool {
    let at = |level, size| match output {
        DType::F64 => order_of::<f64>(level, size),
        DType::F32 => order_of::<f32>(level, size),
        DType::F16 => order_of::<f16>(level, size),
        DType::BF16 => order_of::<bf16>(level, size),
        _ => Some((GemmPath::Tiles, 0, 0)), // integers wrap: any order gives the same bits
    };
    GemmLevel::ALL.iter().all(|level| {
        let mut orders = sizes.clone().map(|size| at(*level, size));
        let first = orders.next().flatten();
        first.is_some() && orders.all(|order| order == first)
    })
}

/// What the order of additions of a product follows from; `None` where it follows from strides too.
fn order_of<O: GemmOutput>(level: GemmLevel, size: Size) -> Option<(GemmPath, usize, usize)> {
    let kernel = suited(O::Compute::kernel(level), size, Packs::Blocks);
    let bf16_dot = O::HAS_BF16_DOT && level.has_bf16_dot();
    let options = GemmOptions { left: Packs::Blocks, sums_in_scratch: !O::IS_COMPUTE, bf16_dot };
    let plan = GemmPlan::new(size, size, kernel, options, 1);
    match plan.path {
        GemmPath::Tiles => Some((plan.path, plan.k_block, kernel.cols)),
        GemmPath::Bf16Dot => Some((plan.path, 0, size.cols)),
        _ => None,
    }
}

/// What packing space depends on besides the dtype.
struct Scratch {
    level: GemmLevel,
    size: Size,
    left: Packs,
    grid: bool,
    threads: usize,
}

impl Scratch {
    fn bytes<O: GemmOutput>(&self) -> usize {
        if self.size.is_empty() {
            return 0;
        }
        let kernel = suited(O::Compute::kernel(self.level), self.size, self.left);
        let bf16_dot = O::HAS_BF16_DOT && self.level.has_bf16_dot();
        let options =
            GemmOptions { left: self.left, sums_in_scratch: self.grid || !O::IS_COMPUTE, bf16_dot };
        GemmPlan::new(self.size, self.size, kernel, options, self.threads)
            .bytes(size_of::<O::Compute>())
    }
}

/// A product that is computed in parts, some rows or columns, or a part of K, of one operand at a time: with the bits of
/// the whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InParts {
    /// All of it.
    pub whole: Size,
    /// Of the result.
    pub output: DType,
    /// Whether the left operand is cut, not the right one.
    pub left: bool,
    /// Whether that operand is MN-major: its rows or columns lie side by side, not its steps of K.
    pub mn_major: bool,
}

macro_rules! of_output {
    ($dtype:expr, $O:ident => $call:expr) => {
        match $dtype {
            DType::F64 => {
                type $O = f64;
                Some($call)
            }
            DType::F32 => {
                type $O = f32;
                Some($call)
            }
            DType::F16 => {
                type $O = f16;
                Some($call)
            }
            DType::BF16 => {
                type $O = bf16;
                Some($call)
            }
            DType::I64 | DType::U64 => {
                type $O = i64;
                Some($call)
            }
            DType::I32 | DType::U32 => {
                type $O = i32;
                Some($call)
            }
            DType::I16 | DType::U16 => {
                type $O = i16;
                Some($call)
            }
            DType::I8 | DType::U8 => {
                type $O = i8;
                Some($call)
            }
            DType::Bool => None,
        }
    };
}

impl InParts {
    /// Multiples of K at which parts may begin; `None` where each has to have all of it.
    pub fn k_unit(&self, level: GemmLevel) -> Option<usize> {
        of_output!(self.output, O => {
            let kernel = suited(<O as GemmOutput>::Compute::kernel(level), self.whole, Packs::Blocks);
            let sums_in_scratch = !<O as GemmOutput>::IS_COMPUTE;
            GemmPlan::k_unit(self.whole, kernel, sums_in_scratch, self.left, self.mn_major)
        })
        .flatten()
    }

    /// Packing space for parts that are no larger than this one, at any level, on that many threads.
    pub fn scratch_bytes(&self, part: Size, threads: usize) -> usize {
        let most = |level: GemmLevel| {
            of_output!(self.output, O => {
                let kernel = suited(<O as GemmOutput>::Compute::kernel(level), self.whole, Packs::Blocks);
                let bf16_dot = <O as GemmOutput>::HAS_BF16_DOT && level.has_bf16_dot();
                let options = (!<O as GemmOutput>::IS_COMPUTE, bf16_dot);
                GemmPlan::most_of_parts(self.whole, part, kernel, options)
            })
        };
        let most = GemmLevel::ALL.iter().filter_map(|&level| most(level)).max().unwrap_or(0);
        (most + ALIGN - 1) * threads.max(1)
    }
}

/// `c (+)= a * b`, for every product of the batch.
///
/// ```
/// use tonnage_core::DType;
/// use tonnage_cpu::linalg::gemm::{Matrix, Size, NoEpilogue, Strides, Target, gemm, scratch_bytes};
/// use tonnage_cpu::workers::Alone;
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
///     &NoEpilogue,
///     &mut scratch,
///     &Alone,
/// )?;
/// assert_eq!(c, [4.0, 4.0, 10.0, 10.0]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// Where strides leave a slice, rows of the result overlap, or the scratch is too small.
pub fn gemm<O: GemmOutput>(
    size: Size,
    a: &dyn GemmOperand<O::Compute>,
    b: &dyn GemmOperand<O::Compute>,
    c: Target<'_, O>,
    epilogue: &dyn BlockEpilogue<O::Compute>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    gemm_at(GemmLevel::best(), size, a, b, c, epilogue, scratch, workers)
}

/// A part of a product: some rows, columns or steps of K of `whole`, which decides on the bits. It goes to a row and a
/// column of the result, and is added to what is there, or not.
///
/// # Errors
/// As [`gemm`].
#[allow(clippy::too_many_arguments, reason = "those of `gemm` and the whole")]
pub(crate) fn gemm_part<O: GemmOutput>(
    whole: Size,
    size: Size,
    a: &dyn GemmOperand<O::Compute>,
    b: &dyn GemmOperand<O::Compute>,
    (c, at, add): (&mut Area<'_, O>, (usize, usize), bool),
    epilogue: &dyn BlockEpilogue<O::Compute>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let c = c.sink(at, size, whole.rows, add);
    run_at(GemmLevel::best(), whole, size, a, b, c, epilogue, scratch, workers)
}

/// The unit for products of matrices that this machine has and that kernels use, by its name.
pub fn matrix_unit() -> Option<&'static str> {
    GemmLevel::best().has_bf16_dot().then_some("AMX (bf16)")
}

/// Products by the instructions of a lower level, for tests.
#[doc(hidden)]
pub mod forced {
    pub use super::integer::integer_product_at;
    pub use super::{gemm_at, scratch_at};
    pub use tonnage_simd::product::GemmLevel;
    pub use tonnage_simd::product::vnni::IntegerLevel;
}

/// [`gemm`] at a level; at the lowest where the machine lacks it.
#[doc(hidden)]
#[allow(clippy::too_many_arguments, reason = "those of `gemm` and the level, which tests force")]
pub fn gemm_at<O: GemmOutput>(
    level: GemmLevel,
    size: Size,
    a: &dyn GemmOperand<O::Compute>,
    b: &dyn GemmOperand<O::Compute>,
    c: Target<'_, O>,
    epilogue: &dyn BlockEpilogue<O::Compute>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    run_at(level, size, size, a, b, c.sink(size)?, epilogue, scratch, workers)
}

#[allow(clippy::too_many_arguments, reason = "those of `gemm`, the level and the whole")]
fn run_at<O: GemmOutput>(
    level: GemmLevel,
    whole: Size,
    size: Size,
    a: &dyn GemmOperand<O::Compute>,
    b: &dyn GemmOperand<O::Compute>,
    c: OutputSink<O>,
    epilogue: &dyn BlockEpilogue<O::Compute>,
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    if size.is_empty() {
        return Ok(());
    }
    a.check(size.batch, size.rows, size.k)?;
    b.check(size.batch, size.cols, size.k)?;
    let level = if level.is_available() { level } else { GemmLevel::Portable };
    let kernel = suited(O::Compute::kernel(level), whole, a.packs());
    let element = size_of::<O::Compute>();
    let lent = scratch.len();
    let sums_in_scratch = !O::IS_COMPUTE || c.is_grid();
    let bf16_source = || {
        !matches!((a.bf16_source(0), b.bf16_source(0)), (Bf16Source::No, _) | (_, Bf16Source::No))
    };
    let bf16_dot = O::HAS_BF16_DOT && level.has_bf16_dot() && bf16_source();
    let options = GemmOptions { left: a.packs(), sums_in_scratch, bf16_dot };
    let plan = (1..=workers.threads().max(1))
        .rev()
        .map(|threads| GemmPlan::new(whole, size, kernel, options, threads))
        .find(|plan| plan.bytes(element) <= lent);
    let Some(plan) = plan else {
        let needed = Bytes::of(GemmPlan::new(whole, size, kernel, options, 1).bytes(element));
        let what = format!("{} of scratch are too few for {size:?}", Bytes::of(lent));
        let help = format!("lend {needed}, or what scratch_bytes asks for");
        return Err(ErrorKind::BadArgument { op: "matmul", what, help }.into());
    };
    let start = scratch.as_ptr().align_offset(ALIGN).min(lent);
    let (_, space, _) = bytemuck::pod_align_to_mut::<u8, O::Compute>(&mut scratch[start..]);
    let taken = AtomicU64::new(0);
    let job = GemmJob { size, a, b, c, epilogue, level, kernel, plan, taken, workers };
    job.pieces(0, plan.pieces, space);
    workers.check()
}
