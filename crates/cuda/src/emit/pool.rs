//! Kernels of pooling: an element of the result a thread, channels side by side. `kernels/pool.cuh` has the loops.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, DType};
use tonnage_ops::OpId;
use tonnage_ops::nn::window::{WindowAxis, WindowGeometry};

use super::operand::{load, stored};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

const LOOPS: &str = include_str!("../../kernels/pool.cuh");

/// What is made of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Pool {
    Max,
    MaxGrad,
    MaxPick,
    Mean,
    MeanGrad,
}

impl Pool {
    fn of(op: &OpDef) -> Option<Pool> {
        let is = |id: OpId| op.id == id as u16;
        Some(match () {
            () if is(OpId::MaxPool) => Pool::Max,
            () if is(OpId::MaxPoolGrad) => Pool::MaxGrad,
            () if is(OpId::MaxPoolPick) => Pool::MaxPick,
            () if is(OpId::AvgPool) => Pool::Mean,
            () if is(OpId::AvgPoolGrad) => Pool::MeanGrad,
            () => return None,
        })
    }

    fn function(self) -> &'static str {
        match self {
            Pool::Max => "max_of",
            Pool::MaxGrad => "max_grad_of",
            Pool::MaxPick => "picked_of",
            Pool::Mean => "mean_of",
            Pool::MeanGrad => "mean_grad_of",
        }
    }
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PoolKey {
    pool: Pool,
    dtype: DType,
    /// Of the numbers of taps.
    number: DType,
    counts_padding: bool,
    operands: u8,
    wide: bool,
}

impl PoolKey {
    /// What is made of windows.
    pub fn name(&self) -> String {
        format!("{:?}", self.pool)
    }
}

/// Words before those of operands, and those of each.
const FIRST: usize = 10;
const EACH: usize = 6;

/// Whether an op is one of these.
pub fn has(op: &OpDef) -> bool {
    Pool::of(op).is_some()
}

/// Spatial lengths of an image: those that it lacks are 1.
pub(super) fn lengths(sizes: &[usize]) -> [usize; 3] {
    let mut lengths = [1; 3];
    let own = sizes.get(1..sizes.len().saturating_sub(1)).unwrap_or(&[]);
    for (to, from) in lengths.iter_mut().rev().zip(own.iter().rev()) {
        *to = *from;
    }
    lengths
}

/// Where an operand lies, and its steps: along images, depth, height, width, channels.
pub(super) fn words_of(address: u64, layout: &Layout) -> [u64; EACH] {
    let mut words = [0; EACH];
    words[0] = address;
    let mut steps = layout.strides.iter().map(|step| *step as u64);
    words[1] = steps.next().unwrap_or(0);
    for (to, step) in words.iter_mut().rev().zip(steps.rev()) {
        *to = step;
    }
    words
}

/// Words of windows along an axis: taps, from one window to the next, padding before it, from one tap to the next.
pub(super) fn window_words(axis: &WindowAxis) -> [u64; 4] {
    [axis.size, axis.stride, axis.padding[0], axis.dilation].map(|n| n as u64)
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let (window, counts_padding) = match call.attrs {
        Attrs::Window(window) => (&**window, false),
        Attrs::Average(average) => (&average.window, average.counts_padding),
        _ => return Err(bad("pooling without a window")),
    };
    let Some(pool) = Pool::of(call.op) else { return Err(bad("an op that pools")) };
    let geometry = WindowGeometry::of(call.op.name, window)?;
    let own = Layout::contiguous(call.made());
    let mut operands: SmallVec<[(u64, &Layout, DType); 3]> = SmallVec::new();
    for i in 0..call.operands.len() {
        operands.push(call.memory_or_output(i, &own)?);
    }
    // What a gradient is of lies beside the numbers of taps; everything else looks at its first operand.
    let other = if pool == Pool::MaxGrad { 2 } else { 0 };
    let (Some((.., dtype)), Some((_, other, _))) = (operands.first(), operands.get(other)) else {
        return Err(bad("pooling of nothing"));
    };
    let (dtype, others) = (*dtype, lengths(&other.sizes));
    let total: u64 = call.made().iter().map(|n| *n as u64).product();
    if total == 0 {
        return Ok(None);
    }
    let number = match pool {
        Pool::MaxGrad | Pool::MaxPick => operands.get(1).map(|(.., dtype)| *dtype),
        _ => (geometry.area() > 1 << 8).then_some(DType::U16),
    };
    // Where an axis ends, and where windows over it do.
    let far = geometry.axes.iter().zip(lengths(call.made())).zip(others).map(|((axis, a), b)| {
        (a.max(b) as u64 + 2 * axis.reach() as u64) * (axis.stride as u64 + 1)
    });
    let key = PoolKey {
        pool,
        dtype,
        number: number.unwrap_or(DType::U8),
        counts_padding,
        operands: operands.len() as u8,
        wide: far.chain([total]).any(|n| n > i32::MAX as u64 >> 1),
    };
    let channels = call.made().last().copied().unwrap_or(1) as u64;
    let mut words = vec![total, channels];
    words.extend(lengths(call.made()).iter().chain(&others).map(|n| *n as u64));
    words.extend([0, 1].map(|i| call.outputs.get(i).copied().unwrap_or(0)));
    for (address, layout, _) in &operands {
        words.extend(words_of(*address, layout));
    }
    words.extend(geometry.axes.iter().flat_map(window_words));
    let functions = SmallVec::from_iter([("kernel", blocks(total, u64::from(THREADS)))]);
    Ok(Some(Launch { key: KernelKey::Pool(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &PoolKey) -> String {
    let (element, dtype) = (c_type(key.dtype), key.dtype);
    let register = c_type(dtype.compute());
    let (idx, axes) =
        (if key.wide { "i64" } else { "i32" }, FIRST + EACH * usize::from(key.operands));
    let words = axes + 12;
    let lowest = match dtype {
        _ if dtype.is_float() => "-tn::Real<C>::infinity()".to_string(),
        DType::I64 | DType::I32 | DType::I16 | DType::I8 => {
            format!("(C)((u64)1 << {})", 8 * dtype.size() - 1)
        }
        _ => "0".to_string(),
    };
    let plus = match dtype {
        DType::F16 => "f16_round(a + b)",
        DType::BF16 => "bf16_round(a + b)",
        _ => "p_add<C>(a, b)",
    };
    let mut text = String::new();
    let _ = writeln!(
        text,
        "struct P {{ u64 w[{words}]; }};\ntypedef {idx} idx;\ntypedef {element} S;\ntypedef {register} C;\ntypedef {} N;\n\
         TN_FN C load_s(S x) {{ return {}; }}\nTN_FN S store_s(C x) {{ return {}; }}\nTN_FN C plus(C a, C b) {{ return {plus}; }}\n\
         TN_FN C lowest() {{ return {lowest}; }}\nconstexpr bool COUNTS = {};\nconstexpr int AXES = {};",
        c_type(key.number),
        load(dtype, "x"),
        stored(dtype, "x"),
        key.counts_padding,
        axes
    );
    text.push_str(LOOPS);
    let _ = writeln!(
        text,
        "TN_KERNEL(kernel) {{\n  const u64 total = p.w[0];\n\
         \x20 for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < total; t += (u64)gridDim.x * {THREADS}u) {}(p, (idx)t);\n}}",
        key.pool.function()
    );
    text
}
