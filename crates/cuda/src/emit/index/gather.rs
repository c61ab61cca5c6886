//! `gather`: each element of the rows is read where its index says.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;

use super::super::walk::{Walk, offset};
use super::super::{THREADS, blocks, c_type};
use super::{Demand, KernelKey, Launch, OpCall, moved_type, part};

/// Bytes of the widest access.
const ACCESS: usize = 16;

/// What tells gathers apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct GatherKey {
    /// Bytes of an element.
    size: u8,
    index: DType,
    /// Axes before the one that is pointed into, of the indices, and behind it.
    ranks: [u8; 3],
    vector: u8,
    wide: bool,
    /// Whether there are rows to read, or indices to check alone.
    has_rows: bool,
}

/// Words before lengths and steps.
const FIRST: usize = 8;

pub fn launch(call: &OpCall, axis: usize) -> Result<Option<Launch>> {
    let ((table, layout, dtype), (indices, index_layout, index)) =
        (call.memory(0)?, call.memory(1)?);
    let out = call.output()?;
    let rank = layout.sizes.len();
    let outer = Walk::of(part(layout, 0..axis));
    let inner = Walk::of(part(layout, axis + 1..rank));
    let along = Walk::of(part(index_layout, 0..index_layout.sizes.len()));
    let (step, size) = (layout.strides[axis] as i64, layout.sizes[axis]);
    let (rows, width, count) = (outer.count(), inner.count(), along.count());
    if count == 0 {
        return Ok(None);
    }
    let mut vector = ACCESS / dtype.size();
    let fits = |vector: u64| {
        let bytes = vector * dtype.size() as u64;
        width.is_multiple_of(vector)
            && step.unsigned_abs().is_multiple_of(vector)
            && outer.is_multiple_of(vector)
            && table.is_multiple_of(bytes)
            && out.is_multiple_of(bytes)
    };
    while vector > 1 && !(inner.is_run() && fits(vector as u64)) {
        vector /= 2;
    }
    let width = width / vector as u64;
    let total = rows * count * width;
    let key = GatherKey {
        size: dtype.size() as u8,
        index,
        ranks: [outer.rank(), along.rank(), inner.rank()],
        vector: vector as u8,
        wide: total.max(count) > u64::from(u32::MAX >> 1),
        has_rows: total > 0,
    };
    let mut words = vec![total, count, width, size as u64, step as u64, table, indices, out];
    outer.words(1, &mut words);
    along.words(1, &mut words);
    inner.words(vector as u64, &mut words);
    let function = match total > 0 {
        true => ("kernel", blocks(total, u64::from(THREADS))),
        false => ("check", blocks(count, u64::from(THREADS))),
    };
    Ok(Some(Launch {
        key: KernelKey::Gather(key),
        functions: SmallVec::from_iter([function]),
        words,
        demand: Some(Demand::Below { op: call.op.name, size }),
    }))
}

pub fn text(key: &GatherKey) -> String {
    let (element, index) = (moved_type(usize::from(key.size)), c_type(key.index));
    let [outer, along, inner] = key.ranks;
    let words = FIRST + 2 * usize::from(outer + along + inner);
    let mut text = String::new();
    let idx = if key.wide { "u64" } else { "u32" };
    let _ = writeln!(text, "struct P {{ u64 w[{words}]; }};\ntypedef {idx} idx;");
    let number = match key.has_rows {
        true => {
            let _ = writeln!(
                text,
                "TN_KERNEL(kernel) {{\n  const idx total = (idx)p.w[0], count = (idx)p.w[1], width = (idx)p.w[2];"
            );
            "const idx e = t % width, r = t / width, i = r % count, o = r / count;"
        }
        false => {
            let _ = writeln!(text, "TN_KERNEL(check) {{\n  const idx total = (idx)p.w[1];");
            "const idx i = t;"
        }
    };
    let _ = writeln!(
        text,
        "  for (idx t = (idx)blockIdx.x * {THREADS}u + threadIdx.x; t < total; t += (idx)gridDim.x * {THREADS}u) {{\n    {number}"
    );
    let behind_outer = FIRST + 2 * usize::from(outer);
    let behind = offset(&mut text, "at", "i", along, behind_outer);
    let _ = writeln!(text, "    const i64 index = (i64)((const {index}*)p.w[6])[at];");
    let _ =
        writeln!(text, "    if ((u64)index >= p.w[3]) {{ guard.fail((u64)i, index); continue; }}");
    if key.has_rows {
        offset(&mut text, "before", "o", outer, FIRST);
        offset(&mut text, "within", "e", inner, behind);
        let vector = format!("Vec<{element}, {}>", key.vector);
        let _ = writeln!(
            text,
            "    ((({vector}*)p.w[7]))[t] = *(const {vector}*)((const {element}*)p.w[5] + before + index * (i64)p.w[4] + within);"
        );
    }
    text.push_str("  }\n}\n");
    text
}
