//! Text of kernels for tile programs, and what a launch of one is given.
//!
//! A kernel's text follows from its [`KernelKey`] alone: the program, how each operand lies (its class, not its sizes), and how the work is
//! shared among threads. Sizes, strides and addresses are arguments, so that one binary serves all layers and batches.
//!
//! Decision: `docs/decisions/kernels-as-text.md`.
//!
//! `operand` classes operands and says how they are addressed, `body` is the program as text, `store` and `reduce` are the two kinds of
//! kernels around it; `rows` are kernels of ops that go through rows several times, `index` those of rows that indices point at,
//! `arg` those that find the place of an extreme, `maps` those that move elements, `mask` those of rows that a mask selects, `conv`, `pool` and `resize` those of images, `rotary` that of rotary embeddings, `scan` those of running sums, `draw` those of random numbers by rejection, `assertion` that of assertions, `attention` those of attention, `norm` those of group norm. Nothing here is `unsafe` or needs a device.

mod arg;
mod assertion;
mod attention;
mod axes;
mod body;
mod conv;
mod draw;
mod index;
mod maps;
mod mask;
mod neighbours;
mod norm;
mod operand;
mod pool;
mod reduce;
mod resize;
mod rotary;
mod rows;
mod scan;
mod store;
mod transpose;
mod walk;

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::tile::{Close, TileProgram};
use tonnage_core::{Attrs, Bytes, DType, HostCall, Sizes};

pub use arg::ArgKey;
pub use attention::AttentionKey;
pub use axes::Axes;
pub use conv::ConvKey;
pub use draw::DrawKey;
pub use index::{GatherKey, PickKey, PutKey, SortKey};
pub use maps::MapKey;
pub use mask::{MaskKey, counted as row_count};
pub use norm::NormKey;
use operand::OperandClass;
pub use pool::PoolKey;
pub use reduce::scratch as reduce_scratch;
pub use resize::ResizeKey;
pub use rotary::RotaryKey;
pub use rows::RowKey;
pub use scan::ScanKey;

/// Threads of a block, where a kernel has no other number.
pub const THREADS: u32 = 256;

/// A block of threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// How many there are.
    pub threads: u32,
    /// Bytes of shared memory that a launch asks for, beside what the kernel's text has.
    pub shared: u32,
}

impl Block {
    /// That of most kernels.
    const DEFAULT: Block = Block { threads: THREADS, shared: 0 };
}

/// What one load of a program reads.
#[derive(Debug, Clone, Copy)]
pub enum Operand<'a> {
    /// Memory of the device at an address, in that layout over the domain. Of bits the layout is unused: they lie in the domain's order.
    Memory(u64, &'a Layout),
    /// The output of that number, in place.
    Output(usize),
    /// Values that are made as they are read, at the positions of a layout.
    Generator(&'a Generator, &'a Layout),
}

/// What tells kernels apart: equal keys have the same text.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum KernelKey {
    /// Of a tile program.
    Tile(TileKey),
    /// Of a row program.
    Rows(RowKey),
    /// Of the places of extremes.
    Arg(ArgKey),
    /// Of attention and its gradient.
    Attention(AttentionKey),
    /// Of group norm and its gradient.
    Norm(NormKey),
    /// Of rows that are read where indices say.
    Gather(GatherKey),
    /// Of rows that indices along several axes name.
    Pick(PickKey),
    /// Of rows that are put where indices say.
    Put(PutKey),
    /// Of rows that a mask selects.
    Mask(MaskKey),
    /// Of elements of rows in order.
    Sort(SortKey),
    /// Of elements that are moved to places known from sizes.
    Map(MapKey),
    /// Of windows over images.
    Pool(PoolKey),
    /// Of convolutions.
    Conv(ConvKey),
    /// Of images of another size.
    Resize(ResizeKey),
    /// Of rotary embeddings.
    Rotary(RotaryKey),
    /// Of random numbers that take an unknown number of draws.
    Draw(DrawKey),
    /// Of running sums and products.
    Scan(ScanKey),
    /// Of assertions.
    Assertion,
}

/// What tells kernels of tile programs apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct TileKey {
    program: TileProgram,
    operands: SmallVec<[OperandClass; 4]>,
    /// Axes that are left where neighbours are one: of what is stored; of a reduction those that stay and those that go.
    ranks: (u8, u8),
    /// Elements that a thread takes at once.
    vector: u8,
    /// Whether positions take 64 bits.
    wide: bool,
    share: Share,
}

/// How the work is shared among threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Share {
    /// Each takes neighbours of its own: at once, or one by one where they do not lie so.
    Store { one_by_one: bool },
    /// A block takes tiles of the last axis and of that one, along which some operands are read.
    Transpose { axis: u8 },
    /// So many threads share a result, lying side by side along what is reduced or along the results; in two passes where results are few.
    Reduce { lanes: u16, along: bool, passes: u8 },
}

/// A launch: the kernel, its grid, and the words that it is given.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The kernel.
    pub key: KernelKey,
    /// The functions of its text that are run, each with its number of blocks, in this order.
    pub functions: SmallVec<[(&'static str, u32); 2]>,
    /// The arguments: sizes, strides, addresses.
    pub words: Vec<u64>,
    /// What the data must be that it looks at, where it looks at any.
    pub demand: Option<Demand>,
}

/// What data must be; a kernel that finds others says so in the device's status.
#[derive(Debug, Clone)]
pub enum Demand {
    /// Indices are below a length.
    Below {
        /// The op that reads them.
        op: &'static str,
        /// The length of what they point into.
        size: usize,
    },
    /// Indices come in turns, one for each of these lengths, and are below it.
    Among {
        /// The op that reads them.
        op: &'static str,
        /// The lengths.
        sizes: Sizes,
    },
    /// Indices are where a part starts, an axis each, and it ends inside of the whole.
    Inside {
        /// The op that reads them.
        op: &'static str,
        /// The sizes of the part.
        part: Sizes,
        /// Those of the whole.
        whole: Sizes,
    },
    /// A mask selects as many rows as there are; otherwise the error of how many it selects, and how many there are.
    Rows(fn(usize, usize) -> Error),
    /// Nothing is wrong; the call says what another count means.
    Nothing(Arc<HostCall>),
}

/// The launch of a program over a domain; nothing where there is nothing to do.
///
/// # Errors
/// Where an operand cannot be read on a device.
pub fn launch(
    program: &TileProgram,
    domain: &[usize],
    operands: &[Operand],
    outputs: &[u64],
    scratch: Option<u64>,
) -> Result<Option<Launch>> {
    match &program.close {
        Close::Store => store::launch(program, domain, operands, outputs),
        Close::Reduce { axes, .. } => {
            reduce::launch(program, domain, axes, operands, (outputs, scratch))
        }
    }
}

/// An op that is a kernel, as a launch of it is: its operands with their dtypes, and the addresses of its outputs.
#[derive(Debug, Clone, Copy)]
pub struct OpCall<'a> {
    /// The op.
    pub op: &'static OpDef,
    /// Its attributes.
    pub attrs: &'a Attrs,
    /// Its inputs.
    pub operands: &'a [(Operand<'a>, DType)],
    /// The sizes of the first one.
    pub sizes: &'a [usize],
    /// How the elements of its outputs lie: in order, but for those that may [lie otherwise](lays_out).
    pub lies: &'a [Layout],
    /// Where its outputs go.
    pub outputs: &'a [u64],
    /// Where elements lie, in order, that are added to those of the first output; of ops that [do that](adds_to_rows).
    pub added: Option<u64>,
    /// Its workspace, where it has any.
    pub scratch: Option<u64>,
    /// Shared memory that a block of threads may ask for, in bytes.
    pub shared: usize,
    /// The compute capability of the device.
    pub capability: (u32, u32),
}

/// Shared memory that a block may ask for on every device from compute capability 8.0 on.
pub const LEAST_SHARED: usize = 99 << 10;

impl<'a> OpCall<'a> {
    /// The sizes of the first output.
    fn made(&self) -> &'a [usize] {
        self.lies.first().map_or(&[], |layout| &layout.sizes)
    }

    /// Operand `i`, in memory: where its first element lies, its layout and its dtype.
    fn memory(&self, i: usize) -> Result<(u64, &'a Layout, DType)> {
        memory(self.operands.get(i).ok_or_else(|| bad("an op with more operands"))?)
    }

    /// The same of one that may be an output itself, whose elements lie as `own` says.
    fn memory_or_output<'b>(&self, i: usize, own: &'b Layout) -> Result<(u64, &'b Layout, DType)>
    where
        'a: 'b,
    {
        match self.operands.get(i) {
            Some((Operand::Output(o), dtype)) => {
                Ok((self.outputs.get(*o).copied().unwrap_or(0), own, *dtype))
            }
            _ => self.memory(i),
        }
    }

    /// Where the first output goes.
    fn output(&self) -> Result<u64> {
        self.outputs.first().copied().ok_or_else(|| bad("an op with a result"))
    }
}

/// An operand in memory: where its first element lies, its layout and its dtype.
fn memory<'a>(operand: &(Operand<'a>, DType)) -> Result<(u64, &'a Layout, DType)> {
    match operand {
        (Operand::Memory(address, layout), dtype) => {
            Ok((address + (layout.offset * dtype.size()) as u64, layout, *dtype))
        }
        _ => Err(bad("an operand that is in memory")),
    }
}

/// Ops that are kernels of one kind.
struct OpFamily {
    /// Whether an op is one, with these attributes and a first input of that dtype.
    has: fn(&OpDef, &Attrs, DType) -> bool,
    /// The launch of one; nothing where there is nothing to do.
    launch: fn(&OpCall) -> Result<Option<Launch>>,
    /// The workspace of one; none of any other.
    scratch: fn(&OpDef, &Call) -> Bytes,
}

fn no_scratch(_: &OpDef, _: &Call) -> Bytes {
    Bytes::ZERO
}

macro_rules! families {
    ($($has:expr, $launch:path, $scratch:path;)*) => {
        [$(OpFamily { has: $has, launch: $launch, scratch: $scratch },)*]
    };
}

static FAMILIES: [OpFamily; 14] = families! {
    |op, _, _| index::has(op), index::launch, index::scratch;
    |op, _, _| arg::has(op), arg::launch, no_scratch;
    |op, _, _| attention::is(op), attention::launch, no_scratch;
    |op, _, _| norm::is(op), norm::launch, norm::scratch;
    |op, attrs, _| maps::has(op, attrs), maps::launch, no_scratch;
    |op, _, _| pool::has(op), pool::launch, no_scratch;
    |op, _, _| mask::has(op), mask::launch, mask::scratch;
    |op, _, _| conv::has(op), conv::launch, conv::scratch;
    |op, _, _| resize::has(op), resize::launch, no_scratch;
    |op, _, _| rotary::has(op), rotary::launch, no_scratch;
    |op, _, _| scan::has(op), scan::launch, scan::scratch;
    |op, _, dtype| draw::has(op, dtype), draw::launch, no_scratch;
    |op, attrs, _| assertion::has(op, attrs), assertion::launch, no_scratch;
    rows::has, rows::launch, rows::scratch;
};

fn family(op: &OpDef, attrs: &Attrs, dtype: DType) -> Option<&'static OpFamily> {
    FAMILIES.iter().find(|family| (family.has)(op, attrs, dtype))
}

/// Whether an op whose first input has that dtype is a kernel that is generated; `width` is the last length of an input, where it is known.
pub fn has_kernel(
    op: &OpDef,
    attrs: &Attrs,
    dtype: DType,
    width: impl Fn(usize) -> Option<usize>,
) -> bool {
    // Of attention some widths alone have a tile that fits.
    let fits = !attention::is(op)
        || width(0).zip(width(2)).is_some_and(|widths| attention::fits(op, dtype, widths));
    fits && family(op, attrs, dtype).is_some()
}

/// Whether the kernel of an op writes an output however its rows lie.
pub fn lays_out(op: &OpDef, output: usize) -> bool {
    attention::is(op) && attention::lays_out(op, output)
}

/// The launch of an op that has a kernel; nothing where there is nothing to do.
///
/// # Errors
/// Where it has no kernel.
pub fn launch_op(call: &OpCall) -> Result<Option<Launch>> {
    let first = call.operands.first();
    match first.and_then(|(_, dtype)| family(call.op, call.attrs, *dtype)) {
        Some(family) => (family.launch)(call),
        None => Err(bad("an op that is a kernel")),
    }
}

/// Whether the kernel of an op adds what lies in order to its first output.
pub fn adds_to_rows(op: &OpDef) -> bool {
    rows::adds(op)
}

/// Whether the kernel of an op makes rows that may lie apart.
pub fn makes_rows_apart(op: &OpDef, attrs: &Attrs) -> bool {
    rows::makes_rows_apart(op, attrs)
}

/// Workspace of an op that has a kernel.
pub fn op_scratch(op: &OpDef, call: &Call) -> Bytes {
    FAMILIES.iter().map(|family| (family.scratch)(op, call)).sum()
}

/// Workspace of a program over a domain.
pub fn scratch(program: &TileProgram, domain: &[usize]) -> Bytes {
    match &program.close {
        Close::Store => Bytes::ZERO,
        Close::Reduce { axes, .. } => reduce_scratch(program, domain, axes),
    }
}

impl KernelKey {
    /// The text of the kernel, behind the headers.
    pub fn text(&self) -> String {
        match self {
            KernelKey::Tile(key) => match key.share {
                Share::Store { one_by_one } => store::text(key, one_by_one),
                Share::Transpose { axis } => transpose::text(key, axis),
                Share::Reduce { lanes, along, passes } => reduce::text(key, lanes, along, passes),
            },
            KernelKey::Rows(key) => rows::text(key),
            KernelKey::Arg(key) => arg::text(key),
            KernelKey::Attention(key) => attention::text(key),
            KernelKey::Norm(key) => norm::text(key),
            KernelKey::Gather(key) => index::gather_text(key),
            KernelKey::Pick(key) => index::pick_text(key),
            KernelKey::Put(key) => index::put_text(key),
            KernelKey::Mask(key) => mask::text(key),
            KernelKey::Sort(key) => index::sort_text(key),
            KernelKey::Map(key) => maps::text(key),
            KernelKey::Pool(key) => pool::text(key),
            KernelKey::Scan(key) => scan::text(key),
            KernelKey::Conv(key) => conv::text(key),
            KernelKey::Resize(key) => resize::text(key),
            KernelKey::Rotary(key) => rotary::text(key),
            KernelKey::Draw(key) => draw::text(key),
            KernelKey::Assertion => assertion::text(),
        }
    }

    /// Whether a device of that compute capability can run it: most kernels ask for none.
    pub fn runs_on(&self, capability: (u32, u32)) -> bool {
        match self {
            KernelKey::Attention(key) => key.runs_on(capability),
            _ => true,
        }
    }

    /// The block of threads of one of its functions.
    pub fn block(&self, function: &str) -> Block {
        match self {
            KernelKey::Attention(key) => attention::block(key, function),
            KernelKey::Rows(key) => key.block(function),
            _ => Block::DEFAULT,
        }
    }
}

/// A name for all kernels that do the same, whatever their operands.
impl fmt::Display for KernelKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KernelKey::Tile(TileKey { program, .. }) => {
                let prims: Vec<String> =
                    program.code.iter().map(|instr| format!("{:?}", instr.prim)).collect();
                write!(f, "tile {}", prims.join(" "))?;
                match &program.close {
                    Close::Store => Ok(()),
                    Close::Reduce { reduction, .. } => write!(f, " to {reduction:?}"),
                }
            }
            KernelKey::Rows(key) => key.fmt(f),
            KernelKey::Arg(_) => f.write_str("arg"),
            KernelKey::Attention(key) => key.fmt(f),
            KernelKey::Norm(key) => key.fmt(f),
            KernelKey::Gather(_) => f.write_str("gather"),
            KernelKey::Pick(key) => write!(f, "pick {}", key.name()),
            KernelKey::Put(key) => write!(f, "put {}", key.name()),
            KernelKey::Mask(key) => write!(f, "mask {}", key.name()),
            KernelKey::Sort(key) => write!(f, "sort {}", key.name()),
            KernelKey::Map(_) => f.write_str("map"),
            KernelKey::Pool(key) => write!(f, "pool {}", key.name()),
            KernelKey::Conv(key) => write!(f, "conv {}", key.name()),
            KernelKey::Resize(key) if key.is_grad() => f.write_str("resize grad"),
            KernelKey::Resize(_) => f.write_str("resize"),
            KernelKey::Rotary(_) => f.write_str("rotary"),
            KernelKey::Draw(key) => write!(f, "draw {}", key.name()),
            KernelKey::Scan(_) => f.write_str("scan"),
            KernelKey::Assertion => f.write_str("assertion"),
        }
    }
}

/// The type of a register, or of an element in memory.
fn c_type(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "f64",
        DType::F32 => "f32",
        DType::F16 | DType::BF16 | DType::U16 => "u16",
        DType::I64 => "i64",
        DType::I32 => "i32",
        DType::I16 => "i16",
        DType::I8 => "i8",
        DType::U64 => "u64",
        DType::U32 => "u32",
        DType::U8 | DType::Bool => "u8",
    }
}

/// How many blocks of threads go over that many items, `each` of them a block; no more than a grid has, for they go around.
fn blocks(items: u64, each: u64) -> u32 {
    const MOST: u64 = (1 << 31) - 1;
    u32::try_from(items.div_ceil(each.max(1)).clamp(1, MOST)).unwrap_or(u32::MAX)
}

/// The unsigned type of elements that are only moved.
fn moved_type(size: usize) -> &'static str {
    match size {
        8 => "u64",
        4 => "u32",
        2 => "u16",
        _ => "u8",
    }
}

fn bad(what: &str) -> Error {
    ErrorKind::BadGraph { what: what.to_string() }.into()
}
