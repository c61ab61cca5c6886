//! Kernels that make images of another size, and their gradients. `kernels/resize.cuh` has the loops, in the CPU's order.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::window::Between;
use tonnage_ops::OpId;
use tonnage_ops::nn::resize::resize;

use super::operand::{load, stored};
use super::pool::{lengths, words_of};
use super::{KernelKey, Launch, OpCall, THREADS, blocks, c_type};

const LOOPS: &str = include_str!("../../kernels/resize.cuh");

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ResizeKey {
    dtype: DType,
    grad: bool,
    /// 0 for the nearest pixel, 1 for straight lines, 2 for those from corner to corner.
    between: u8,
}

impl ResizeKey {
    /// Whether it is of a gradient.
    pub fn is_grad(&self) -> bool {
        self.grad
    }
}

/// Words of a launch.
const WORDS: usize = 15;

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    op.id == OpId::Resize as u16 || op.id == OpId::ResizeGrad as u16
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let between = resize(call.op.name, call.attrs)?.between;
    let ((address, layout, dtype), out) = (call.memory(0)?, call.output()?);
    let total: u64 = call.made().iter().map(|n| *n as u64).product();
    if total == 0 {
        return Ok(None);
    }
    let grad = call.op.id == OpId::ResizeGrad as u16;
    let between = match between {
        Between::Nearest => 0,
        Between::Linear => 1,
        Between::LinearCorners => 2,
    };
    let (own, other) = (lengths(call.made()), lengths(&layout.sizes));
    let (image, made) = if grad { (own, other) } else { (other, own) };
    let mut words = vec![total, call.made().last().copied().unwrap_or(1) as u64];
    words.extend(image.iter().chain(&made).map(|n| *n as u64));
    words.push(out);
    words.extend(words_of(address, layout));
    let key = ResizeKey { dtype, grad, between };
    let functions = SmallVec::from_iter([("kernel", blocks(total, u64::from(THREADS)))]);
    Ok(Some(Launch { key: KernelKey::Resize(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &ResizeKey) -> String {
    let (dtype, function) = (key.dtype, if key.grad { "resized_back" } else { "resized" });
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{WORDS}]; }};\ntypedef {} S;\ntypedef {} C;\nconstexpr int BETWEEN = {};\n\
         TN_FN C load_s(S x) {{ return {}; }}\nTN_FN S store_s(C x) {{ return {}; }}",
        c_type(dtype),
        c_type(dtype.compute()),
        key.between,
        load(dtype, "x"),
        stored(dtype, "x")
    );
    text.push_str(LOOPS);
    let _ = writeln!(
        text,
        "TN_KERNEL(kernel) {{\n  for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < p.w[0]; t += (u64)gridDim.x * {THREADS}u) {function}(p, t);\n}}"
    );
    text
}
