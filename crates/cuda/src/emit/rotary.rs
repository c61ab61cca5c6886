//! The kernel of rotary embeddings: a pair of elements a thread, whose angle it computes as the CPU does, in 64 bits.

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_ops::OpId;
use tonnage_ops::nn::rotary::how;

use super::operand::{load, stored};
use super::walk::{Walk, offset};
use super::{KernelKey, Launch, OpCall, THREADS, blocks, c_type};

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RotaryKey {
    dtype: DType,
    position: DType,
    neighbours: bool,
    back: bool,
    /// Axes of the vectors.
    rank: u8,
}

/// Words before lengths and steps.
const FIRST: usize = 9;

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    op.id == OpId::RotaryEmbedding as u16
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let spec = how(call.attrs)?;
    let own = Layout::contiguous(call.made());
    let (address, layout, dtype) = call.memory_or_output(0, &own)?;
    let (positions, lie, position) = call.memory(1)?;
    let out = call.output()?;
    let last = layout.sizes.len() - 1;
    let pairs = layout.sizes[last] as u64 / 2;
    let steps = layout.strides[..last].iter().map(|step| *step as i64);
    let vectors = Walk::of((layout.sizes[..last].into(), steps.collect()));
    let total = vectors.count() * pairs;
    if total == 0 {
        return Ok(None);
    }
    let key = RotaryKey {
        dtype,
        position,
        neighbours: spec.neighbours,
        back: spec.back,
        rank: vectors.rank(),
    };
    let step = lie.strides.first().copied().unwrap_or(1) as u64;
    let length = layout.sizes[last - 1] as u64;
    // From one pair to the next the angle shrinks by a factor, whose logarithm this is.
    let pace = -spec.base.ln() / pairs as f64;
    let mut words = vec![
        total,
        pairs,
        length,
        address,
        out,
        positions,
        step,
        layout.strides[last] as u64,
        pace.to_bits(),
    ];
    vectors.words(1, &mut words);
    let functions = SmallVec::from_iter([("kernel", blocks(total, u64::from(THREADS)))]);
    Ok(Some(Launch { key: KernelKey::Rotary(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &RotaryKey) -> String {
    let (words, dtype) = (FIRST + 2 * usize::from(key.rank), key.dtype);
    let (ty, register) = (c_type(dtype), c_type(dtype.compute()));
    let (position, sign) = (c_type(key.position), if key.back { "-" } else { "" });
    let [a, b] = match key.neighbours {
        true => ["2 * i", "2 * i + 1"],
        false => ["i", "i + p.w[1]"],
    };
    let mut text = format!(
        "struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\ntypedef {ty} S;\ntypedef {register} C;\n\
         TN_KERNEL(kernel) {{\n  for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < p.w[0]; t += (u64)gridDim.x * {THREADS}u) {{\n\
         \x20   const u64 i = t % p.w[1], row = t / p.w[1];\n"
    );
    offset(&mut text, "at", "row", key.rank, FIRST);
    let [x, y] = ["x", "y"].map(|name| load(dtype, name));
    let [to_a, to_b] =
        ["tn::fma(left, cosine, -(right * sine))", "tn::fma(right, cosine, left * sine)"]
            .map(|value| stored(dtype, value));
    text.push_str(&format!(
        "    const f64 position = (f64)(i64)((const {position}*)p.w[5])[(i64)(row % p.w[2]) * (i64)p.w[6]];\n\
         \x20   const f64 angle = position * tn::exp(tn::from_bits(p.w[8]) * (f64)i);\n\
         \x20   const C cosine = (C)tn::cos(angle), sine = (C)({sign}tn::sin(angle));\n\
         \x20   const S x = ((const S*)p.w[3])[at + (i64)({a}) * (i64)p.w[7]], y = ((const S*)p.w[3])[at + (i64)({b}) * (i64)p.w[7]];\n\
         \x20   const C left = {x}, right = {y};\n    S* const to = (S*)p.w[4] + row * p.w[1] * 2;\n\
         \x20   to[{a}] = {to_a};\n    to[{b}] = {to_b};\n  }}\n}}\n"
    ));
    text
}
