//! Kernels of running sums and products along an axis. `kernels/scan.cuh` has the steps.
//!
//! Lines that lie beside each other have a thread each, lines whose own elements do share a block; where there are few lines, each is cut
//! into chunks, whose sums are joined in order. How lines are cut follows from the shape alone, so the bits do.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Attrs, Bytes, DType};
use tonnage_ops::OpId;

use super::operand::load;
use super::walk::{Walk, offset};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

const STEPS: &str = include_str!("../../kernels/scan.cuh");

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScanKey {
    dtype: DType,
    product: bool,
    /// Axes of the lines.
    rank: u8,
    /// Threads that share a chunk: one, or a block.
    shared: bool,
    /// Whether a line is cut.
    cut: bool,
}

/// Words before the lengths and steps of lines.
const FIRST: usize = 11;

/// Elements of a chunk that a block shares.
const CHUNK: u64 = 16 * THREADS as u64;

/// Threads that are enough for a device.
const ENOUGH: u64 = 1 << 16;

/// The fewest elements of a chunk that a thread has alone.
const LEAST: u64 = 64;

/// How the lines of a shape are shared among threads.
struct Share {
    lines: u64,
    n: u64,
    inner: u64,
    /// Whether threads share a chunk.
    shared: bool,
    chunks: u64,
    each: u64,
}

impl Share {
    fn of(sizes: &[usize], axis: usize) -> Option<Share> {
        let count = |sizes: &[usize]| sizes.iter().map(|n| *n as u64).product::<u64>();
        let (n, inner) = (*sizes.get(axis)? as u64, count(&sizes[axis + 1..]));
        let lines = count(&sizes[..axis]) * inner;
        let shared = inner < 16 && n > u64::from(THREADS);
        let each = match shared {
            true => CHUNK,
            false => n.div_ceil(ENOUGH.div_ceil(lines.max(1))).max(LEAST),
        };
        Some(Share { lines, n, inner, shared, chunks: n.div_ceil(each).max(1), each })
    }
}

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    op.id == OpId::Cumsum as u16 || op.id == OpId::Cumprod as u16
}

/// Workspace of one: the sums of chunks, where lines are cut.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let (true, Attrs::Scan { axis, .. }) = (has(op), call.attrs) else { return Bytes::ZERO };
    let sizes = call.inputs.first().and_then(|ty| ty.shape.most());
    match sizes.and_then(|sizes| Share::of(&sizes, *axis)) {
        Some(share) if share.chunks > 1 => Bytes::new(8 * share.chunks * share.lines),
        _ => Bytes::ZERO,
    }
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Attrs::Scan { axis, exclusive, reverse } = call.attrs else {
        return Err(bad("an axis to go along"));
    };
    let (own, out) = (Layout::contiguous(call.made()), call.output()?);
    let (address, layout, dtype) = call.memory_or_output(0, &own)?;
    let Some(share) = Share::of(call.made(), *axis).filter(|share| share.lines * share.n > 0)
    else {
        return Ok(None);
    };
    let others = || (0..layout.sizes.len()).filter(|i| i != axis);
    let lines = Walk::of((
        others().map(|i| layout.sizes[i]).collect(),
        others().map(|i| layout.strides[i] as i64).collect(),
    ));
    let cut = share.chunks > 1;
    let key = ScanKey {
        dtype,
        product: call.op.id == OpId::Cumprod as u16,
        rank: lines.rank(),
        shared: share.shared,
        cut,
    };
    let (step, sums) = (layout.strides[*axis] as u64, call.scratch.unwrap_or(0));
    let Share { lines: count, n, inner, chunks, each, shared } = share;
    let mut words = vec![count, n, chunks, each, inner, address, step, out, sums];
    words.extend([u64::from(*reverse), u64::from(*exclusive)]);
    lines.words(1, &mut words);
    let threads = |items: u64| blocks(items, if shared { 1 } else { u64::from(THREADS) });
    let mut functions = SmallVec::new();
    if cut {
        functions.extend([("sums", threads(count * chunks)), ("before", threads(count))]);
    }
    functions.push(("kernel", threads(count * chunks)));
    Ok(Some(Launch { key: KernelKey::Scan(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &ScanKey) -> String {
    let words = FIRST + 2 * usize::from(key.rank);
    let is_float = key.dtype.is_float();
    let wide = if is_float { "f64" } else { "u64" };
    let narrow = match key.dtype {
        DType::F16 => "f16_store(tn::to_odd(x))",
        DType::BF16 => "bf16_store(tn::to_odd(x))",
        _ => "(S)x",
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\ntypedef {} S;\ntypedef {wide} W;\n\
         constexpr bool PRODUCT = {};\nconstexpr int LANES = {};\n\
         TN_FN W wide_s(S x) {{ return (W){}; }}\nTN_FN S narrow_s(W x) {{ return {narrow}; }}\n\
         TN_FN i64 line_of(const P& p, u64 line) {{",
        c_type(key.dtype),
        key.product,
        if key.shared { THREADS } else { 1 },
        load(key.dtype, "x"),
    );
    offset(&mut text, "at", "line", key.rank, FIRST);
    text.push_str("    return at;\n}\n");
    text.push_str(STEPS);
    if key.cut {
        text.push_str(
            "TN_KERNEL(sums) { go_through(p, false); }\nTN_KERNEL(before) { go_before(p); }\n",
        );
    }
    text.push_str("TN_KERNEL(kernel) { go_through(p, true); }\n");
    text
}
