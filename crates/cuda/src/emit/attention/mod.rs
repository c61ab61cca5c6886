//! Kernels of attention and of its gradient: tiles of queries and keys in shared memory, in the text of `kernels/attention*.cuh`.
//!
//! `mma` has the tiles of 16-bit floats, which are multiplied as small matrices; `groups` those of heads that groups of warps multiply,
//! where the device has that; `plain` those of all others.

mod groups;
mod mma;
mod plain;

use std::fmt::{self, Write as _};

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_ops::OpId;
use tonnage_ops::nn::attention::{attrs, computed};

use super::operand::{load, stored};
use super::{Block, KernelKey, Launch, OpCall, bad, blocks, c_type};

/// What all of them have.
const SHARED: &str = include_str!("../../../kernels/attention.cuh");

/// In plain sums: what the two have, the means, the gradients.
const PLAIN: [&str; 3] = [
    include_str!("../../../kernels/attention_plain.cuh"),
    include_str!("../../../kernels/attention_plain_forward.cuh"),
    include_str!("../../../kernels/attention_plain_grad.cuh"),
];

/// By products of small matrices, likewise.
const MMA: [&str; 3] = [
    concat!(
        include_str!("../../../kernels/copies.cuh"),
        include_str!("../../../kernels/near.cuh"),
        include_str!("../../../kernels/mma.cuh"),
        include_str!("../../../kernels/attention_scores.cuh"),
        include_str!("../../../kernels/attention_mma.cuh")
    ),
    concat!(
        include_str!("../../../kernels/attention_means.cuh"),
        include_str!("../../../kernels/attention_mma_forward.cuh")
    ),
    concat!(
        include_str!("../../../kernels/attention_weights.cuh"),
        include_str!("../../../kernels/attention_mma_grad.cuh")
    ),
];

/// By products of groups of warps, likewise.
const GROUPS: [&str; 3] = [
    concat!(
        include_str!("../../../kernels/copies.cuh"),
        include_str!("../../../kernels/near.cuh"),
        include_str!("../../../kernels/mma.cuh"),
        include_str!("../../../kernels/groups.cuh"),
        include_str!("../../../kernels/attention_scores.cuh"),
        include_str!("../../../kernels/attention_groups.cuh")
    ),
    concat!(
        include_str!("../../../kernels/attention_means.cuh"),
        include_str!("../../../kernels/attention_groups_forward.cuh")
    ),
    concat!(
        include_str!("../../../kernels/attention_weights.cuh"),
        include_str!("../../../kernels/attention_groups_grad.cuh")
    ),
];

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AttentionKey {
    grad: bool,
    dtype: DType,
    /// Of queries and keys, and of values.
    widths: (usize, usize),
    causal: bool,
    mask: Option<DType>,
    /// Whether rows lie at multiples of 16 bytes; of those in plain sums nobody asks.
    aligned: bool,
    /// Whether groups of warps multiply, which is asked of devices that can.
    by_groups: bool,
}

/// Tiles of 16-bit floats.
enum Matrices {
    Groups(groups::AllTiles),
    Mma(mma::AllTiles),
}

impl AttentionKey {
    /// The tiles of matrices; nothing where sums are plain.
    fn matrices(&self) -> Option<Matrices> {
        let AttentionKey { dtype, widths, mask, by_groups, .. } = self;
        let masked = mask.is_some();
        let of_groups = by_groups.then(|| groups::tiles(*dtype, *widths, masked)).flatten();
        let of_warps = || mma::tiles(*dtype, *widths, masked).map(Matrices::Mma);
        of_groups.map(Matrices::Groups).or_else(of_warps)
    }

    /// Whether a device of that compute capability can run it.
    pub fn runs_on(&self, capability: (u32, u32)) -> bool {
        !self.by_groups || capability == groups::CAPABILITY
    }
}

/// Whether an op is one of these.
pub fn is(op: &OpDef) -> bool {
    op.id == OpId::Attention as u16 || op.id == OpId::AttentionGrad as u16
}

/// Whether one of these writes an output however its rows lie: means, and gradients of queries, keys and values.
pub fn lays_out(op: &OpDef, output: usize) -> bool {
    op.id == OpId::AttentionGrad as u16 || output == 0
}

/// Whether there are tiles that fit heads of these widths.
pub fn fits(op: &OpDef, dtype: DType, widths: (usize, usize)) -> bool {
    let grad = op.id == OpId::AttentionGrad as u16;
    mma::tiles(dtype, widths, false).is_some() || plain::tile(grad, dtype, widths).is_some()
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let grad = call.op.id == OpId::AttentionGrad as u16;
    let (scale, causal, masked) = attrs(call.op.name, call.attrs)?;
    let mut operands: SmallVec<[(u64, &Layout, DType); 8]> = SmallVec::new();
    for i in 0..call.operands.len() {
        operands.push(call.memory(i)?);
    }
    let sizes = |i: usize| operands.get(i).map_or(&[][..], |(_, layout, _)| &layout.sizes);
    let ([b, h, t, d], [_, of_keys, s, _], [.., e]) = (sizes(0), sizes(1), sizes(2)) else {
        return Err(bad("attention without queries, keys and values"));
    };
    let (batch, heads, queries, keys) = (*b, *h, *t, *s);
    if queries.max(keys) > 1 << 30 {
        return Err(bad("attention over more than 2^30 queries or keys"));
    }
    let dtype = operands[0].2;
    let mask = operands.last().filter(|_| masked).map(|(.., dtype)| *dtype);
    let by_groups =
        call.capability == groups::CAPABILITY && groups::tiles(dtype, (*d, *e), masked).is_some();
    let key =
        AttentionKey { grad, dtype, widths: (*d, *e), causal, mask, aligned: false, by_groups };
    let matrices = key.matrices();
    // Queries, keys, values and gradients of means; the numbers of queries and the mask are read one by one.
    let aligned = matrices.is_some()
        && [0, 1, 2, 6].into_iter().take(if grad { 4 } else { 3 }).all(|i| {
            let (address, layout, _) = operands[i];
            is_aligned(address, layout)
        });
    let key = AttentionKey { aligned, ..key };
    // Queries of a tile that stays, and keys of one; how many blocks share the latter.
    let (q, k, parts) = match matrices {
        Some(Matrices::Groups(tiles)) if grad => (tiles.of_queries.rows(), tiles.of_keys.rows(), 1),
        Some(Matrices::Groups(tiles)) => (tiles.forward.rows(), 1, 1),
        Some(Matrices::Mma(tiles)) if grad => {
            (tiles.of_queries.rows(), tiles.of_keys.rows(), tiles.parts)
        }
        Some(Matrices::Mma(tiles)) => (tiles.forward.rows(), 1, 1),
        None => {
            let tile = plain::tile(grad, dtype, key.widths);
            let (q, k) = tile.ok_or_else(|| bad("heads that are too wide"))?;
            (q, k, 1)
        }
    };
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
    for (address, layout) in call.outputs.iter().zip(call.lies) {
        words.push(*address);
        words.extend(layout.strides.iter().take(3).map(|stride| *stride as u64));
    }
    let of_queries = batch * heads * queries.div_ceil(q);
    let tiles_of_keys = batch * of_keys * keys.div_ceil(k) * parts;
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
    Ok(Some(Launch { key: KernelKey::Attention(key), functions, words, demand: None }))
}

/// Whether rows of 16-bit floats lie at multiples of 16 bytes, and may be read so.
fn is_aligned(address: u64, layout: &Layout) -> bool {
    let Some((width, of_rows)) = layout.strides.split_last() else { return false };
    let rows = layout.sizes.iter().zip(of_rows);
    address.is_multiple_of(16)
        && layout.sizes.last().is_some_and(|len| len.is_multiple_of(8))
        && *width == 1
        && rows.into_iter().all(|(len, stride)| *len < 2 || stride % 8 == 0)
}

/// The block of threads of a function of a kernel.
pub fn block(key: &AttentionKey, function: &str) -> Block {
    match key.matrices() {
        Some(Matrices::Groups(tiles)) => tiles.block(function),
        Some(Matrices::Mma(tiles)) => tiles.block(function),
        None => Block::DEFAULT,
    }
}

/// The text of a kernel.
pub fn text(key: &AttentionKey) -> String {
    let AttentionKey { grad, dtype, widths: (d, e), causal, mask, aligned, .. } = *key;
    let operands = if grad { 7 } else { 3 };
    let outputs = 6 + 5 * (operands + usize::from(mask.is_some()));
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
         constexpr int D = {d}, E = {e}, MASK = {mask}, MASK_OPERAND = {operands}, OUTPUTS = {outputs};\n\
         constexpr bool CAUSAL = {causal};",
        outputs + 4 * 3
    );
    let matrices = key.matrices();
    if matrices.is_some() {
        let bf16 = dtype == DType::BF16;
        let _ = writeln!(text, "constexpr bool BF16 = {bf16}, ALIGNED = {aligned};");
    }
    let [both, forward, of_grad] = match matrices {
        Some(Matrices::Groups(tiles)) => {
            tiles.constants(grad, &mut text);
            GROUPS
        }
        Some(Matrices::Mma(tiles)) => {
            tiles.constants(grad, &mut text);
            MMA
        }
        None => {
            let (q, k) = plain::tile(grad, dtype, key.widths).unwrap_or((1, 1));
            let _ = writeln!(text, "constexpr int BQ = {q}, BK = {k};");
            PLAIN
        }
    };
    [SHARED, both, if grad { of_grad } else { forward }]
        .iter()
        .for_each(|part| text.push_str(part));
    text
}

impl fmt::Display for AttentionKey {
    /// The op, its dtype and the widths of heads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, (d, e)) = (if self.grad { "attention_grad" } else { "attention" }, self.widths);
        write!(f, "{name} {} {d} {e}", self.dtype)?;
        if self.by_groups { f.write_str(" by groups") } else { Ok(()) }
    }
}
