//! Kernels of attention and of its gradient: tiles of queries and keys in shared memory, in the text of `kernels/attention*.cuh`.

use std::fmt::{self, Write as _};

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_ops::OpId;
use tonnage_ops::nn::attention::{attrs, computed};

use super::operand::{load, stored};
use super::{KernelKey, Launch, OpCall, Operand, THREADS, bad, blocks, c_type};

const SHARED: &str = include_str!("../../kernels/attention.cuh");
const FORWARD: &str = include_str!("../../kernels/attention_forward.cuh");
const GRAD: &str = include_str!("../../kernels/attention_grad.cuh");

/// Shared memory that every block of threads may have.
const SHARED_BYTES: usize = 48 << 10;

/// Queries and keys of a tile, the largest first.
const TILES: [(usize, usize); 8] =
    [(64, 32), (32, 32), (32, 16), (16, 16), (8, 8), (4, 4), (2, 2), (1, 1)];

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionKey {
    grad: bool,
    dtype: DType,
    /// Of queries and keys, and of values.
    widths: (usize, usize),
    causal: bool,
    mask: Option<DType>,
}

/// Whether an op is one of these.
pub fn is(op: &OpDef) -> bool {
    op.id == OpId::Attention as u16 || op.id == OpId::AttentionGrad as u16
}

/// Whether there are tiles that fit heads of these widths.
pub fn fits(op: &OpDef, dtype: DType, widths: (usize, usize)) -> bool {
    tile(op.id == OpId::AttentionGrad as u16, dtype, widths).is_some()
}

/// The largest tile that fits.
fn tile(grad: bool, dtype: DType, (d, e): (usize, usize)) -> Option<(usize, usize)> {
    let numbers = |(q, k): (usize, usize)| match grad {
        false => d * q + d.max(e) * k + q * k + 3 * q + THREADS as usize,
        true => (d + e) * (q + 1 + k + 1) + 2 * q * k + 3 * q,
    };
    let size = computed(dtype).size();
    TILES.into_iter().find(|tile| numbers(*tile) * size <= SHARED_BYTES)
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let grad = call.op.id == OpId::AttentionGrad as u16;
    let (scale, causal, masked) = attrs(call.op.name, call.attrs)?;
    let mut operands: SmallVec<[(u64, &Layout, DType); 8]> = SmallVec::new();
    for (operand, dtype) in call.operands {
        let Operand::Memory(address, layout) = operand else {
            return Err(bad("attention over something that is not in memory"));
        };
        operands.push((address + (layout.offset * dtype.size()) as u64, layout, *dtype));
    }
    let sizes = |i: usize| operands.get(i).map_or(&[][..], |(_, layout, _)| &layout.sizes);
    let ([b, h, t, d], [_, of_keys, s, _], [.., e]) = (sizes(0), sizes(1), sizes(2)) else {
        return Err(bad("attention without queries, keys and values"));
    };
    let (batch, heads, queries, keys) = (*b, *h, *t, *s);
    let dtype = operands[0].2;
    let mask = operands.last().filter(|_| masked).map(|(.., dtype)| *dtype);
    let key = AttentionKey { grad, dtype, widths: (*d, *e), causal, mask };
    let (q, k) = tile(grad, dtype, key.widths).ok_or_else(|| bad("heads that are too wide"))?;
    let mut words: Vec<u64> =
        [batch, heads, queries, keys, heads / (*of_keys).max(1)].map(|n| n as u64).to_vec();
    words.push(scale.to_bits());
    let last = operands.len() - 1;
    for (i, (address, layout, _)) in operands.iter().enumerate() {
        let whole = (masked && i == last).then(|| {
            let layout = layout.broadcast_to(&[batch, heads, queries, keys]);
            layout.ok_or_else(|| bad("a mask of another shape than the scores"))
        });
        let whole = whole.transpose()?;
        let strides = &whole.as_ref().unwrap_or(layout).strides;
        words.push(*address);
        words.extend((0..4).map(|axis| strides.get(axis).map_or(0, |stride| *stride as u64)));
    }
    words.extend(call.outputs);
    let of_queries = batch * heads * queries.div_ceil(q);
    let tiles_of_keys = batch * of_keys * keys.div_ceil(k);
    let grid = |tiles: usize| blocks(tiles as u64, 1);
    if of_queries == 0 && (!grad || tiles_of_keys == 0) {
        return Ok(None);
    }
    let functions: SmallVec<[(&'static str, u32); 2]> = match grad {
        false => SmallVec::from_iter([("kernel", grid(of_queries))]),
        true => SmallVec::from_iter([
            ("of_queries", grid(of_queries)),
            ("of_keys", grid(tiles_of_keys)),
        ]),
    };
    Ok(Some(Launch { key: KernelKey::Attention(key), functions, words, bound: None }))
}

/// The text of a kernel.
pub fn text(key: &AttentionKey) -> String {
    let AttentionKey { grad, dtype, widths: (d, e), causal, mask } = *key;
    let operands = if grad { 7 } else { 3 };
    let outputs = 6 + 5 * (operands + usize::from(mask.is_some()));
    let (q, k) = tile(grad, dtype, key.widths).unwrap_or((1, 1));
    let mask = match mask {
        None => 0,
        Some(DType::Bool) => 1,
        Some(_) => 2,
    };
    let (element, register) = (c_type(dtype), c_type(computed(dtype)));
    let (loaded, kept) = (load(dtype, "x"), stored(dtype, "x"));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{}]; }};\ntypedef {element} S;\ntypedef {register} C;\n\
         TN_FN C load_s(S x) {{ return {loaded}; }}\nTN_FN S store_s(C x) {{ return {kept}; }}\n\
         constexpr int D = {d}, E = {e}, BQ = {q}, BK = {k}, MASK = {mask}, MASK_OPERAND = {operands}, OUTPUTS = {outputs};\n\
         constexpr bool CAUSAL = {causal};",
        outputs + 3
    );
    text.push_str(SHARED);
    text.push_str(if grad { GRAD } else { FORWARD });
    text
}

impl fmt::Display for AttentionKey {
    /// The op, its dtype and the widths of heads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (d, e)) = (if self.grad { "attention_grad" } else { "attention" }, self.widths);
        write!(f, "{name} {} {d} {e}", self.dtype)
    }
}
