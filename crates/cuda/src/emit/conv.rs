//! Kernels of convolutions, of their transposes and of the gradients of their filters: products whose left side is read where the windows say,
//! so that they need no workspace but for what is added up in parts. `kernels/conv.cuh` has the loops.
//!
//! How sums are cut follows from the shapes alone, and each has one order: the same bits in two runs.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, DType};
use tonnage_ops::OpId;
use tonnage_ops::nn::conv::{ConvSizes, attrs, filter_grad, forward, transpose};

use super::operand::{load, stored};
use super::pool::{lengths, window_words, words_of};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

const LOOPS: &str = include_str!("../../kernels/conv.cuh");

/// Which of the three products.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Conv {
    Forward,
    Transpose,
    FilterGrad,
}

impl Conv {
    fn of(op: &OpDef) -> Option<Conv> {
        let is = |id: OpId| op.id == id as u16;
        Some(match () {
            () if is(OpId::Conv) => Conv::Forward,
            () if is(OpId::ConvTranspose) => Conv::Transpose,
            () if is(OpId::ConvFilterGrad) => Conv::FilterGrad,
            () => return None,
        })
    }
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ConvKey {
    conv: Conv,
    dtype: DType,
    /// Whether channels are in groups.
    direct: bool,
    /// Whether sums are cut into parts.
    cut: bool,
}

impl ConvKey {
    /// Which product it is, and of what.
    pub fn name(&self) -> String {
        let how = if self.direct { " in groups" } else { "" };
        format!("{:?} {}{how}", self.conv, self.dtype)
    }
}

/// Words of a launch.
const WORDS: usize = 39;

/// Rows and columns of a tile.
const TILE: u64 = 64;

/// Blocks of threads that are enough for a device, and the least that is added up for a part of them.
const ENOUGH: u64 = 512;
const LEAST: u64 = 512;

/// The product that a call is.
struct Product {
    rows: u64,
    /// Of a group.
    columns: u64,
    depth: u64,
    parts: u64,
    /// What is added up for a part.
    each: u64,
}

impl Product {
    fn of(conv: Conv, sizes: &ConvSizes) -> Product {
        let (inputs, outputs) = sizes.group();
        let count = |lengths: &[usize; 3]| {
            lengths.iter().fold(sizes.batch as u64, |all, n| all.saturating_mul(*n as u64))
        };
        let taps = sizes.window.area() as u64;
        let (inputs, outputs) = (inputs as u64, outputs as u64);
        let (rows, columns, depth) = match conv {
            Conv::Forward => (count(&sizes.made), outputs, taps * inputs),
            Conv::Transpose => (count(&sizes.image), inputs, taps * outputs),
            Conv::FilterGrad => (taps * inputs, outputs, count(&sizes.made)),
        };
        // Filters are few, and windows many.
        let parts = match (conv, sizes.groups) {
            (Conv::FilterGrad, 1) => {
                ENOUGH.div_ceil((rows.div_ceil(TILE) * columns.div_ceil(TILE)).max(1))
            }
            (Conv::FilterGrad, groups) => {
                (ENOUGH * u64::from(THREADS)).div_ceil((rows * columns * groups as u64).max(1))
            }
            _ => 1,
        };
        let each = depth.div_ceil(parts.max(1)).max(LEAST).min(depth.max(1));
        Product { rows, columns, depth, parts: depth.div_ceil(each).max(1), each }
    }
}

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    Conv::of(op).is_some()
}

/// Workspace of one: the sums of parts.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let (Some(conv), Some(first)) = (Conv::of(op), call.inputs.first()) else { return Bytes::ZERO };
    let known = match conv {
        Conv::Forward => forward::known(call),
        Conv::Transpose => transpose::known(call),
        Conv::FilterGrad => filter_grad::known(call),
    };
    let Some(sizes) = known else { return Bytes::ZERO };
    let Product { rows, columns, parts, .. } = Product::of(conv, &sizes);
    let element = first.dtype.compute().size() as u64;
    match parts {
        1 => Bytes::ZERO,
        _ => Bytes::new(parts * rows * columns * sizes.groups as u64 * element),
    }
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Some(conv) = Conv::of(call.op) else { return Err(bad("an op that convolves")) };
    let (of, window) = attrs(call.op.name, call.attrs)?;
    let ((left, left_lies, dtype), (right, right_lies, _)) = (call.memory(0)?, call.memory(1)?);
    let (image, made) = match conv {
        Conv::Forward => (&left_lies.sizes[..], call.made()),
        Conv::Transpose => (call.made(), &left_lies.sizes[..]),
        Conv::FilterGrad => (&left_lies.sizes[..], &right_lies.sizes[..]),
    };
    let sizes = ConvSizes::from_sizes(window, of.groups, image, made);
    let product = Product::of(conv, &sizes);
    let (inputs, outputs) = sizes.group();
    let total = product.rows * product.columns * of.groups as u64;
    if total == 0 {
        return Ok(None);
    }
    let (rows_in, reads, channels) = match conv {
        Conv::Forward => (lengths(made), lengths(image), inputs),
        Conv::Transpose => (lengths(image), lengths(made), outputs),
        Conv::FilterGrad => (lengths(made), lengths(image), inputs),
    };
    let key = ConvKey { conv, dtype, direct: of.groups > 1, cut: product.parts > 1 };
    let Product { rows, columns, depth, parts, each } = product;
    let out = call.outputs.first().copied().unwrap_or(0);
    let mut words =
        vec![rows, columns, depth, parts, each, left, right, out, call.scratch.unwrap_or(0)];
    words.extend([channels as u64, of.groups as u64]);
    words.extend(rows_in.iter().chain(&reads).map(|n| *n as u64));
    words.extend(&words_of(0, left_lies)[1..]);
    match conv {
        Conv::FilterGrad => words.extend(&words_of(0, right_lies)[1..]),
        _ => words.extend(filter_steps(right_lies, conv)),
    }
    words.extend(window.axes.iter().flat_map(window_words));
    let threads = u64::from(THREADS);
    let grid = match key.direct {
        true => blocks(total * parts, threads),
        false => blocks(rows.div_ceil(TILE) * columns.div_ceil(TILE) * parts, 1),
    };
    let mut functions = SmallVec::from_iter([("kernel", grid)]);
    if key.cut {
        functions.push(("join", blocks(total, threads)));
    }
    Ok(Some(Launch { key: KernelKey::Conv(key), functions, words, demand: None }))
}

/// Steps of filters along depth, height, width, the channels that are added up, and columns.
fn filter_steps(layout: &Layout, conv: Conv) -> [u64; 5] {
    let mut steps = [0; 5];
    let all = layout.strides.iter().rev().map(|step| *step as u64);
    for (to, step) in steps.iter_mut().rev().zip(all) {
        *to = step;
    }
    if conv == Conv::Transpose {
        steps.swap(3, 4);
    }
    steps
}

/// The text of a kernel.
pub fn text(key: &ConvKey) -> String {
    let dtype = key.dtype;
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{WORDS}]; }};\ntypedef {} S;\ntypedef {} C;\nconstexpr int KIND = {};\nconstexpr bool CUT = {};\n\
         TN_FN C load_s(S x) {{ return {}; }}\nTN_FN S store_s(C x) {{ return {}; }}",
        c_type(dtype),
        c_type(dtype.compute()),
        key.conv as u8,
        key.cut,
        load(dtype, "x"),
        stored(dtype, "x")
    );
    text.push_str(LOOPS);
    let function = if key.direct { "elements" } else { "tiles" };
    let _ = writeln!(text, "TN_KERNEL(kernel) {{ {function}(p); }}");
    if key.cut {
        text.push_str("TN_KERNEL(join) { join_parts(p); }\n");
    }
    text
}
