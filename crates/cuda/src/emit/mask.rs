//! Kernels of ops that a mask tells which rows to take: `boolean_mask`, `nonzero`, `mask_scatter`. `kernels/mask.cuh` counts them.
//!
//! Only the data decide how many rows there are: the count is a word of the workspace, which whoever needs the size reads.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Attrs, Bytes};
use tonnage_ops::OpId;
use tonnage_ops::index::{boolean_mask, mask_scatter};

use super::walk::{Walk, offset};
use super::{Demand, KernelKey, Launch, OpCall, THREADS, bad, blocks, moved_type};

const STEPS: &str = include_str!("../../kernels/mask.cuh");

/// What becomes of the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Mask {
    /// They are copied.
    Take,
    /// Where they are is said.
    Where,
    /// Zeros, but for those.
    Put,
}

impl Mask {
    fn of(op: &OpDef) -> Option<Mask> {
        let is = |id: OpId| op.id == id as u16;
        Some(match () {
            () if is(OpId::BooleanMask) => Mask::Take,
            () if is(OpId::Nonzero) => Mask::Where,
            () if is(OpId::MaskScatter) => Mask::Put,
            () => return None,
        })
    }
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MaskKey {
    mask: Mask,
    /// Bytes of an element.
    size: u8,
    /// Axes of the mask, and of what has the rows.
    ranks: [u8; 2],
    /// Axes of the mask as it was given.
    axes: u8,
    /// Whether it is known how many rows there are.
    checked: bool,
}

impl MaskKey {
    /// What becomes of the rows.
    pub fn name(&self) -> String {
        format!("{:?}", self.mask)
    }
}

/// Words before lengths and steps.
const FIRST: usize = 9;

/// Elements of the mask that a block has.
const TILE: u64 = 16 * THREADS as u64;

/// Bytes that the list begins at a multiple of.
const ALIGN: u64 = 256;

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    Mask::of(op).is_some()
}

/// Bytes of counts, and of the list.
fn parts(len: u64) -> [u64; 2] {
    [(4 * (len.div_ceil(TILE) + 1)).next_multiple_of(ALIGN), 4 * len]
}

/// Workspace of one: how many rows each block has, and which.
pub fn scratch(op: &OpDef, call: &Call) -> Bytes {
    let mask = match Mask::of(op) {
        None => return Bytes::ZERO,
        Some(Mask::Take) => call.inputs.get(1),
        Some(Mask::Where | Mask::Put) => call.inputs.first(),
    };
    let len =
        mask.and_then(|ty| ty.shape.most()).map_or(0, |sizes| sizes.iter().product::<usize>());
    if len == 0 { Bytes::ZERO } else { Bytes::new(parts(len as u64).iter().sum()) }
}

/// Where a launch has the number of the rows that it makes, as 32 bits.
pub fn counted(launch: &Launch) -> Option<u64> {
    if !matches!(launch.key, KernelKey::Mask(_)) {
        return None;
    }
    let [len, .., counts, _, _] = launch.words.get(..FIRST)? else { return None };
    Some(counts + 4 * len.div_ceil(TILE))
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where the mask has more elements than a list has bits for.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Some(mask) = Mask::of(call.op) else { return Err(bad("an op with a mask")) };
    let ((mask_at, mask_lies, _), rows) = match mask {
        Mask::Take => (call.memory(1)?, Some(call.memory(0)?)),
        Mask::Where => (call.memory(0)?, None),
        Mask::Put => (call.memory(0)?, Some(call.memory(1)?)),
    };
    let walk_of = |layout: &Layout| {
        let steps = layout.strides.iter().map(|step| *step as i64).collect();
        Walk::of((layout.sizes.clone(), steps))
    };
    let len = mask_lies.count() as u64;
    if len > u64::from(u32::MAX) {
        return Err(bad("more rows than a list has bits for"));
    }
    let made: u64 = call.made().iter().map(|n| *n as u64).product();
    let room = call.made().first().copied().unwrap_or(0) as u64;
    let (along, given) = (walk_of(mask_lies), rows.map(|(_, layout, _)| layout));
    let (row, expected) = match mask {
        Mask::Take => (made / room.max(1), room),
        Mask::Where => (1, room),
        Mask::Put => {
            let sizes = given.map_or(&[][..], |layout| &layout.sizes[..]);
            (
                sizes.iter().skip(1).map(|n| *n as u64).product(),
                sizes.first().map_or(0, |n| *n as u64),
            )
        }
    };
    let checked = mask == Mask::Put || *call.attrs != Attrs::None;
    if len == 0 && !(checked && expected > 0) {
        return Ok(None);
    }
    let rows_walk = given.map_or_else(|| Walk::of(Default::default()), walk_of);
    let key = MaskKey {
        mask,
        size: rows.map_or(8, |(.., dtype)| dtype.size() as u8),
        ranks: [along.rank(), rows_walk.rank()],
        axes: mask_lies.sizes.len() as u8,
        checked,
    };
    let counts = call.scratch.unwrap_or(0);
    let list = counts + parts(len)[0];
    let (address, out) = (rows.map_or(0, |(address, ..)| address), call.outputs.first());
    // Of listed rows as many are gone through as there is room for, and as many are written as there are.
    let total = if mask == Mask::Where { room } else { made };
    let out = out.copied().unwrap_or(0);
    let mut words = vec![len, row, total, address, out, mask_at, counts, list, expected];
    along.words(1, &mut words);
    rows_walk.words(1, &mut words);
    if mask == Mask::Where {
        words.extend(mask_lies.sizes.iter().map(|n| *n as u64));
    }
    let tiles = blocks(len.div_ceil(TILE), 1);
    let mut functions = SmallVec::from_iter([("count", tiles), ("scan", 1), ("list", tiles)]);
    if total > 0 {
        functions.push(("put", blocks(total, u64::from(THREADS))));
    }
    let demand = checked.then_some(Demand::Rows(match mask {
        Mask::Put => mask_scatter::wrong_rows,
        Mask::Take | Mask::Where => boolean_mask::wrong_rows,
    }));
    Ok(Some(Launch { key: KernelKey::Mask(key), functions, words, demand }))
}

/// The text of a kernel.
pub fn text(key: &MaskKey) -> String {
    let [along, rows] = key.ranks;
    let sizes = if key.mask == Mask::Where { usize::from(key.axes) } else { 0 };
    let words = FIRST + 2 * usize::from(along + rows) + sizes;
    let element = moved_type(usize::from(key.size));
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\nconstexpr bool SELECTED = {}, CHECKED = {};\n\
         TN_FN bool is_selected(const P& p, u64 i) {{",
        key.mask != Mask::Put,
        key.checked
    );
    let behind = offset(&mut text, "at", "i", along, FIRST);
    text.push_str("    return ((const u8*)p.w[5])[at] != 0;\n}\n");
    text.push_str(STEPS);
    let _ = writeln!(
        text,
        "TN_KERNEL(count) {{ count_rows(p); }}\nTN_KERNEL(scan) {{ scan_counts(p, guard); }}\nTN_KERNEL(list) {{ list_rows(p); }}\n\
         TN_KERNEL(put) {{\n  const u64 blocks = (p.w[0] + 4095) / 4096, found = ((const u32*)p.w[6])[blocks];\n\
         \x20 for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < p.w[2]; t += (u64)gridDim.x * {THREADS}u) {{\n\
         \x20   const u64 r = t / p.w[1], e = t % p.w[1];"
    );
    match key.mask {
        Mask::Take => {
            text.push_str(
                "    if (r >= found) break;\n    const u64 i = ((const u32*)p.w[7])[r];\n",
            );
            offset(&mut text, "at", "i * p.w[1] + e", rows, behind);
            let _ = writeln!(text, "    (({element}*)p.w[4])[t] = ((const {element}*)p.w[3])[at];");
        }
        Mask::Where => {
            text.push_str("    if (t >= found) break;\n    u64 rest = ((const u32*)p.w[7])[t];\n");
            for axis in (0..sizes).rev() {
                let size = behind + axis;
                let _ = writeln!(
                    text,
                    "    ((i64*)p.w[4])[t * {sizes} + {axis}] = (i64)(rest % p.w[{size}]);\n    rest /= p.w[{size}];"
                );
            }
        }
        Mask::Put => {
            text.push_str("    const bool is = is_selected(p, r);\n    const u64 of = is ? ((const u32*)p.w[7])[r] : 0;\n");
            offset(&mut text, "at", "of * p.w[1] + e", rows, behind);
            let _ = writeln!(
                text,
                "    (({element}*)p.w[4])[t] = is ? ((const {element}*)p.w[3])[at] : ({element})0;"
            );
        }
    }
    text.push_str("  }\n}\n");
    text
}
