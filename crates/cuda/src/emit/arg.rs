//! Kernels of `argmax` and `argmin`: threads share a result where its elements lie side by side, and have one each where results do.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, DType};
use tonnage_ops::OpId;

use super::operand::load;
use super::walk::{Walk, offset};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

/// Threads that share a result.
const LANES: u32 = 32;

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ArgKey {
    largest: bool,
    dtype: DType,
    /// Axes of the results.
    rank: u8,
    /// Threads that share a result: one, or `LANES`.
    lanes: u8,
}

/// Words before lengths and steps.
const FIRST: usize = 5;

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    op.id == OpId::Argmax as u16 || op.id == OpId::Argmin as u16
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Attrs::Axis(axis) = call.attrs else { return Err(bad("an axis to search along")) };
    let (address, layout, dtype) = call.memory(0)?;
    let kept = |i: &usize| i != axis;
    let axes: SmallVec<[usize; 4]> = (0..layout.sizes.len()).filter(kept).collect();
    let results = Walk::of((
        axes.iter().map(|i| layout.sizes[*i]).collect(),
        axes.iter().map(|i| layout.strides[*i] as i64).collect(),
    ));
    let count = results.count();
    if count == 0 {
        return Ok(None);
    }
    let (n, step) = (layout.sizes[*axis] as u64, layout.strides[*axis]);
    let lanes = if step == 1 { LANES } else { 1 };
    let key = ArgKey {
        largest: call.op.id == OpId::Argmax as u16,
        dtype,
        rank: results.rank(),
        lanes: lanes as u8,
    };
    let mut words = vec![count, n, step as u64, address, call.output()?];
    results.words(1, &mut words);
    let functions = SmallVec::from_iter([("kernel", blocks(count, u64::from(THREADS / lanes)))]);
    Ok(Some(Launch { key: KernelKey::Arg(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &ArgKey) -> String {
    let (ty, register) = (c_type(key.dtype), c_type(key.dtype.compute()));
    let (lanes, each) = (u32::from(key.lanes), THREADS / u32::from(key.lanes));
    let sign = if key.largest { ">" } else { "<" };
    let mut text = String::new();
    let words = FIRST + 2 * usize::from(key.rank);
    // NaN is ahead of everything but itself; of equal ones the first is.
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\ntypedef {register} C;\n\
         TN_FN bool ahead(C a, C b) {{ return a {sign} b || (a != a && b == b); }}\n\
         TN_KERNEL(kernel) {{\n  __shared__ C best[{THREADS}];\n  __shared__ u64 place[{THREADS}];\n\
         \x20 const u64 count = p.w[0], n = p.w[1];\n  const u32 t = threadIdx.x, lane = t % {lanes}u;\n\
         \x20 for (u64 base = (u64)blockIdx.x * {each}u; base < count; base += (u64)gridDim.x * {each}u) {{\n\
         \x20   const bool live = base + t / {lanes}u < count;\n    const u64 o = live ? base + t / {lanes}u : 0;"
    );
    offset(&mut text, "at", "o", key.rank, FIRST);
    let element = load(key.dtype, "x[(i64)j * (i64)p.w[2]]");
    let _ = writeln!(
        text,
        "    const {ty}* const x = (const {ty}*)p.w[3] + at;\n    C top = 0;\n    u64 found = n;\n\
         \x20   for (u64 j = lane; live && j < n; j += {lanes}u) {{\n      const C now = {element};\n\
         \x20     if (found == n || ahead(now, top)) {{ top = now; found = j; }}\n    }}"
    );
    if lanes > 1 {
        let _ = writeln!(
            text,
            "    best[t] = top;\n    place[t] = found;\n    __syncthreads();\n\
             \x20   for (u32 half = {lanes}u / 2; half > 0; half /= 2) {{\n      if (lane < half) {{\n\
             \x20       const u64 other = place[t + half];\n        const C value = best[t + half];\n\
             \x20       if (other < n && (place[t] == n || ahead(value, best[t]) || (!ahead(best[t], value) && other < place[t]))) {{\n\
             \x20         best[t] = value;\n          place[t] = other;\n        }}\n      }}\n      __syncthreads();\n    }}\n\
             \x20   found = place[t];\n    __syncthreads();"
        );
    }
    let _ = writeln!(text, "    if (live && lane == 0) ((i64*)p.w[4])[o] = (i64)found;\n  }}\n}}");
    text
}
