//! Kernels of `group_norm` and its gradient; `batch_norm` is one of them with a group for each channel. The text is in `kernels/norm*.cuh`:
//! this file says how operands are read and how the work is cut.

use std::fmt;
use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, DType};
use tonnage_ops::OpId;
use tonnage_ops::nn::norm::how;

use super::operand::{load, stored};
use super::walk::{Walk, offset};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

const SHARED: &str = include_str!("../../kernels/norm.cuh");
const FORWARD: &str = include_str!("../../kernels/norm_forward.cuh");
const GRAD: &str = include_str!("../../kernels/norm_grad.cuh");

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// Threads that lie side by side along channels, at most.
const ACROSS: u64 = 32;

/// Pixels that are worth a part, and blocks of threads that keep all multiprocessors busy.
const PIXELS: u64 = 64;
const BUSY: u64 = 1024;

/// Words before those of operands: images, pixels, channels, groups, parts, epsilon.
const FIRST: usize = 6;

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct NormKey {
    grad: bool,
    dtype: DType,
    /// Channels that a thread takes, and threads side by side.
    vector: u8,
    across: u8,
    /// Axes of what is read a pixel at a time, where neighbours are one, and whether its channels are read at once.
    images: SmallVec<[(u8, bool); 2]>,
    /// Whether positions take 64 bits.
    wide: bool,
}

/// Whether an op is one of these.
pub fn is(op: &OpDef) -> bool {
    op.id == OpId::GroupNorm as u16 || is_grad(op)
}

fn is_grad(op: &OpDef) -> bool {
    op.id == OpId::GroupNormGrad as u16
}

/// How images are cut, by their sizes alone.
#[derive(Debug, Clone, Copy)]
struct Parts {
    images: u64,
    pixels: u64,
    channels: u64,
    groups: u64,
    /// Of an image.
    count: u64,
}

impl Parts {
    fn of(sizes: &[usize], groups: usize) -> Option<Parts> {
        let [images, pixels @ .., channels] = sizes else { return None };
        let pixels = pixels.iter().map(|n| *n as u64).product();
        let (images, channels, groups) = (*images as u64, *channels as u64, groups as u64);
        let side_by_side = images * channels.div_ceil(4 * ACROSS);
        let most = (BUSY / side_by_side.max(1)).max(1);
        let count = u64::div_ceil(pixels, PIXELS).clamp(1, most);
        Some(Parts { images, pixels, channels, groups, count })
    }

    /// Numbers that are kept between the functions: two a channel and part; of a gradient two a channel and image, and two a group.
    fn kept(&self, grad: bool) -> [u64; 3] {
        let by_image = self.images * 2 * self.channels;
        let rest = if grad { [by_image, self.images * 2 * self.groups] } else { [0; 2] };
        [by_image * self.count, rest[0], rest[1]]
    }
}

/// Workspace of one.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    if !is(op) {
        return Bytes::ZERO;
    }
    let (Some(x), Ok(how)) = (call.inputs.first(), how(op.name, call.attrs)) else {
        return Bytes::ZERO;
    };
    let parts = x.shape.most().and_then(|sizes| Parts::of(&sizes, how.groups));
    let kept = parts.map_or(0, |parts| parts.kept(is_grad(op)).iter().sum());
    Bytes::new(kept * x.dtype.compute().size() as u64)
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let (grad, how) = (is_grad(call.op), how(call.op.name, call.attrs)?);
    let mut operands: SmallVec<[(u64, &Layout, DType); 5]> = SmallVec::new();
    for i in 0..call.operands.len() {
        operands.push(call.memory(i)?);
    }
    let Some((_, layout, dtype)) = operands.first().copied() else {
        return Err(bad("a norm of nothing"));
    };
    let parts = Parts::of(&layout.sizes, how.groups).ok_or_else(|| bad("images without pixels"))?;
    if parts.images * parts.groups == 0 && !grad || parts.channels == 0 {
        return Ok(None);
    }
    let images: &[usize] = if grad { &[0, 4] } else { &[0] };
    let vectors: &[usize] = if grad { &[1] } else { &[1, 2] };
    let statistics: &[usize] = if grad { &[2, 3] } else { &[] };
    if images.iter().chain(vectors).chain(statistics).any(|i| *i >= operands.len()) {
        return Err(bad("a norm with fewer operands than it has"));
    }
    // Channels side by side in what is written, and wherever they are read so.
    let mut vector = (ACCESS / dtype.size()) as u64;
    let out = call.outputs.first().copied().unwrap_or(0);
    let bytes = |vector: u64| vector * dtype.size() as u64;
    while vector > 1
        && !(parts.channels.is_multiple_of(vector) && out.is_multiple_of(bytes(vector)))
    {
        vector /= 2;
    }
    let across = parts.channels.div_ceil(vector).next_power_of_two().min(ACROSS);
    let mut words = vec![parts.images, parts.pixels, parts.channels, parts.groups, parts.count];
    words.push(how.epsilon.to_bits());
    let mut key = NormKey {
        grad,
        dtype,
        vector: vector as u8,
        across: across as u8,
        images: SmallVec::new(),
        wide: parts.images * parts.pixels * parts.channels > u64::from(u32::MAX >> 1),
    };
    let last = layout.sizes.len() - 1;
    for i in images {
        let (address, layout, _) = operands[*i];
        let steps = layout.strides[..last].iter().map(|step| *step as i64).collect();
        let walk = Walk::of((layout.sizes[..last].into(), steps));
        let at_once = layout.strides[last] == 1
            && address.is_multiple_of(bytes(vector))
            && walk.is_multiple_of(vector);
        key.images.push((walk.rank(), at_once));
        words.extend([address, layout.strides[last] as u64]);
        walk.words(1, &mut words);
    }
    for i in vectors {
        let (address, layout, _) = operands[*i];
        words.extend([address, layout.strides[0] as u64]);
    }
    for i in statistics {
        let (address, layout, _) = operands[*i];
        words.extend([address, layout.strides[0] as u64, layout.strides[1] as u64]);
    }
    words.extend(call.outputs);
    let mut kept = call.scratch.unwrap_or(0);
    for numbers in parts.kept(grad) {
        words.push(kept);
        kept += numbers * dtype.compute().size() as u64;
    }
    let tiles = parts.channels.div_ceil(across * vector) * parts.images * parts.count;
    let tiles = blocks(tiles, 1);
    let threads = |count: u64| blocks(count, u64::from(THREADS));
    let groups = ("groups", blocks(parts.images * parts.groups, 1));
    let functions: SmallVec<[(&'static str, u32); 2]> = match grad {
        false => SmallVec::from_iter([("moments", tiles), groups, ("store", tiles)]),
        true => SmallVec::from_iter([
            ("sums", tiles),
            ("images", threads(parts.images * 2 * parts.channels)),
            groups,
            ("finish", threads(2 * parts.channels)),
            ("store", tiles),
        ]),
    };
    Ok(Some(Launch { key: KernelKey::Norm(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &NormKey) -> String {
    let NormKey { grad, dtype, vector, across, wide, .. } = *key;
    let (element, computed) = (c_type(dtype), c_type(dtype.compute()));
    let (index, kept) = (if wide { "u64" } else { "u32" }, stored(dtype, "x"));
    let mut readers = String::new();
    let mut word = FIRST;
    for (i, (rank, at_once)) in key.images.iter().enumerate() {
        let _ = writeln!(readers, "TN_FN void read_{i}(const P& p, idx row, idx at, C* to) {{");
        let end = offset(&mut readers, "o", "row", *rank, word + 2);
        let _ = match at_once {
            true => writeln!(
                readers,
                "  const Vec<S, V> x = *(const Vec<S, V>*)((const S*)p.w[{word}] + o + (i64)at);\n#pragma unroll\n  for (int v = 0; v < V; v++) to[v] = {};\n}}",
                load(dtype, "x.v[v]")
            ),
            false => writeln!(
                readers,
                "#pragma unroll\n  for (int v = 0; v < V; v++) to[v] = {};\n}}",
                load(
                    dtype,
                    &format!("((const S*)p.w[{word}])[o + (i64)(at + v) * (i64)p.w[{}]]", word + 1)
                )
            ),
        };
        word = end;
    }
    let (vectors, statistics) = if grad { (1, 2) } else { (2, 0) };
    let of_statistics = word + 2 * vectors;
    let outputs = of_statistics + 3 * statistics;
    let mut text = format!(
        "struct P {{ u64 w[{}]; }};\ntypedef {index} idx;\ntypedef {element} S;\ntypedef {computed} C;\n\
         constexpr int V = {vector}, A = {across}, SCALE = {word}, STATISTICS = {of_statistics}, OUTPUTS = {outputs}, SCRATCH = {};\n\
         TN_FN S store_s(C x) {{ return {kept}; }}\n\
         TN_FN C number(const P& p, int word, idx at) {{ return {}; }}\n",
        outputs + 6,
        outputs + 3,
        load(dtype, "((const S*)p.w[word])[(i64)at * (i64)p.w[word + 1]]"),
    );
    text.push_str(&readers);
    text.push_str(SHARED);
    text.push_str(if grad { GRAD } else { FORWARD });
    text
}

impl fmt::Display for NormKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.grad { "group_norm_grad" } else { "group_norm" };
        write!(f, "{name} {}", self.dtype)
    }
}
