//! Elements of rows in order: `sort`, `argsort`, `top_k`.
//!
//! Each element has a key, a whole number in the order of the elements; the keys of all rows are sorted at once, stably, and brought apart by
//! rows again. So equal elements stay in their order, as on the CPU.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Attrs, Bytes, DType};
use tonnage_ops::OpId;
use tonnage_ops::index::argsort::counts_in_i32;
use tonnage_ops::index::top_k::fits;

use super::super::walk::{Walk, offset};
use super::super::{THREADS, blocks};
use super::order::{self, Order};
use super::{KernelKey, Launch, OpCall, bad, moved_type, part};

/// What is made of the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Sorted {
    /// The elements.
    Values,
    /// Where in their rows they were.
    Places,
    /// Both, of the first ones.
    First,
}

impl Sorted {
    pub fn of(op: &OpDef) -> Option<Sorted> {
        let is = |id: OpId| op.id == id as u16;
        Some(match () {
            () if is(OpId::Sort) => Sorted::Values,
            () if is(OpId::Argsort) => Sorted::Places,
            () if is(OpId::TopK) => Sorted::First,
            () => return None,
        })
    }
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SortKey {
    sorted: Sorted,
    dtype: DType,
    descending: bool,
    rank: u8,
    passes: u8,
    row_passes: u8,
}

impl SortKey {
    /// What is made of the order.
    pub fn name(&self) -> String {
        format!("{:?}", self.sorted)
    }
}

/// Words before lengths and steps; those of the sort begin at `SORT`.
const FIRST: usize = 11;
const SORT: usize = 6;

/// Workspace of one.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let sizes = call.inputs.first().and_then(|ty| ty.shape.most());
    match (Sorted::of(op), sizes) {
        (Some(_), Some(sizes)) => order::scratch(sizes.iter().product()),
        _ => Bytes::ZERO,
    }
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where there are more elements than positions have bits for, or fewer than are asked for.
pub fn launch(call: &OpCall, sorted: Sorted) -> Result<Option<Launch>> {
    let own = Layout::contiguous(call.made());
    let ((address, layout, dtype), out) = (call.memory_or_output(0, &own)?, call.output()?);
    let n = layout.sizes.last().copied().unwrap_or(1);
    let taken = match sorted {
        Sorted::First => call.made().last().copied().unwrap_or(1),
        _ => n,
    };
    match sorted {
        Sorted::Values => {}
        Sorted::Places => counts_in_i32(call.op.name, n)?,
        Sorted::First => fits(taken, n)?,
    }
    let count = layout.count() as u64;
    if count == 0 || taken == 0 {
        return Ok(None);
    }
    let descending = match call.attrs {
        Attrs::Descending(descending) => *descending,
        _ => sorted == Sorted::First,
    };
    let bits = 8 * dtype.size() as u32;
    let bound = u64::MAX >> (u64::BITS - bits);
    let Some(order) = Order::of(count, bound.saturating_add(1), call.scratch.unwrap_or(0)) else {
        return Err(bad("more elements than positions have bits for"));
    };
    let (rows, walk) = (count / n as u64, Walk::of(part(layout, 0..layout.sizes.len())));
    let key = SortKey {
        sorted,
        dtype,
        descending,
        rank: walk.rank(),
        passes: order.passes,
        row_passes: order::row_passes(rows),
    };
    let made = rows * taken as u64;
    let places = call.outputs.get(1).copied().unwrap_or(out);
    let mut words = vec![count, n as u64, taken as u64, address, out, places];
    words.extend(order.addresses());
    walk.words(1, &mut words);
    let threads = u64::from(THREADS);
    let mut functions = SmallVec::from_iter([("keys", blocks(count, threads))]);
    order.functions(&mut functions);
    order::row_functions(count, key.row_passes, &mut functions);
    functions.push(("put", blocks(made, threads)));
    Ok(Some(Launch { key: KernelKey::Sort(key), functions, words, demand: None }))
}

/// Functions between elements and their keys, which are level where -0 and 0 are.
fn keys(key: &SortKey, text: &mut String) {
    let (unsigned, bits) = (moved_type(key.dtype.size()), 8 * key.dtype.size());
    let (sign, most) = (1u64 << (bits - 1), u64::MAX >> (64 - bits));
    let level = key.sorted != Sorted::Values;
    let _ = writeln!(text, "typedef {unsigned} S;");
    let (of_bits, to_bits) = match key.dtype {
        DType::F64 | DType::F32 | DType::F16 | DType::BF16 => {
            let infinity = match key.dtype {
                DType::F64 => 0x7ff0_0000_0000_0000u64,
                DType::F32 => 0x7f80_0000,
                DType::F16 => 0x7c00,
                _ => 0x7f80,
            };
            let zero = match level {
                true => format!("  if (key == {}ull) key = {sign}ull;\n", sign - 1),
                false => String::new(),
            };
            (
                format!(
                    "  u64 key = x & {sign}ull ? ~(u64)x & {most}ull : (u64)x | {sign}ull;\n  if ((x & {}ull) > {infinity}ull) key = {most}ull;\n{zero}",
                    sign - 1
                ),
                format!("key & {sign}ull ? key ^ {sign}ull : ~key"),
            )
        }
        DType::I64 | DType::I32 | DType::I16 | DType::I8 => {
            (format!("  u64 key = (u64)x ^ {sign}ull;\n"), format!("key ^ {sign}ull"))
        }
        _ => ("  u64 key = x;\n".to_string(), "key".to_string()),
    };
    // Inverted within its own width, so that positions still count up.
    let rank = if key.descending { format!("{most}ull - key") } else { "key".to_string() };
    let _ = writeln!(
        text,
        "TN_FN u64 key_of(S x) {{\n{of_bits}  return {rank};\n}}\n\
         TN_FN S of_key(u64 key) {{\n  key = {rank};\n  return (S)({to_bits});\n}}"
    );
}

/// The text of a kernel.
pub fn text(key: &SortKey) -> String {
    let words = FIRST + 2 * usize::from(key.rank);
    let mut text = format!("struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\n");
    keys(key, &mut text);
    let each = |text: &mut String, name: &str, total: &str| {
        let _ = writeln!(
            text,
            "TN_KERNEL({name}) {{\n  for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < {total}; t += (u64)gridDim.x * {THREADS}u) {{"
        );
    };
    each(&mut text, "keys", "p.w[0]");
    offset(&mut text, "at", "t", key.rank, FIRST);
    let [own, places] = order::before(0, SORT);
    let _ = writeln!(
        text,
        "    ((u64*)p.w[{own}])[t] = key_of(((const S*)p.w[3])[at]);\n    ((u32*)p.w[{places}])[t] = (u32)t;\n  }}\n}}"
    );
    text.push_str(&order::text(key.passes, SORT));
    text.push_str(&order::row_text(key.row_passes, key.passes, SORT, 1));
    let [own, places] = order::before(key.passes + key.row_passes, SORT);
    each(&mut text, "put", "p.w[0] / p.w[1] * p.w[2]");
    let _ = match key.sorted {
        Sorted::Values => {
            writeln!(text, "    ((S*)p.w[4])[t] = of_key(((const u64*)p.w[{own}])[t]);")
        }
        Sorted::Places => writeln!(
            text,
            "    ((i32*)p.w[4])[t] = (i32)(((const u32*)p.w[{places}])[t] % p.w[1]);"
        ),
        Sorted::First => {
            let _ = writeln!(
                text,
                "    const u32 place = ((const u32*)p.w[{places}])[t / p.w[2] * p.w[1] + t % p.w[2]];"
            );
            offset(&mut text, "at", "place", key.rank, FIRST);
            writeln!(
                text,
                "    ((S*)p.w[4])[t] = ((const S*)p.w[3])[at];\n    ((i32*)p.w[5])[t] = (i32)(place % p.w[1]);"
            )
        }
    };
    text.push_str("  }\n}\n");
    text
}
