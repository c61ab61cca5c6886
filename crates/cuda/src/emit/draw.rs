//! Kernels of random numbers that take an unknown number of draws: gamma, Poisson, classes by their logits. `kernels/draw.cuh` has them, with
//! the CPU's bits.

use std::fmt::Write as _;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, DType};
use tonnage_ops::OpId;

use super::operand::load;
use super::walk::{Walk, offset};
use super::{KernelKey, Launch, OpCall, THREADS, bad, blocks, c_type};

const DRAWS: &str = include_str!("../../kernels/draw.cuh");

/// What is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Drawn {
    Gamma,
    Poisson,
    Class,
}

impl Drawn {
    fn of(op: &OpDef) -> Option<Drawn> {
        let is = |id: OpId| op.id == id as u16;
        Some(match () {
            () if is(OpId::RandomGamma) => Drawn::Gamma,
            () if is(OpId::RandomPoisson) => Drawn::Poisson,
            () if is(OpId::RandomCategorical) => Drawn::Class,
            () => return None,
        })
    }
}

/// What tells these kernels apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct DrawKey {
    drawn: Drawn,
    dtype: DType,
    /// Axes of the parameters; of rows of classes.
    rank: u8,
}

impl DrawKey {
    /// What is drawn.
    pub fn name(&self) -> String {
        format!("{:?}", self.drawn)
    }
}

/// Words before lengths and steps.
const FIRST: usize = 8;

/// Whether an op whose first input has that dtype is one of these.
pub fn has(op: &OpDef, dtype: DType) -> bool {
    Drawn::of(op).is_some() && dtype.is_float()
}

/// The launch of one; nothing where there is nothing to do.
///
/// # Errors
/// Where it was lent something else than memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Some(drawn) = Drawn::of(call.op) else { return Err(bad("an op that draws")) };
    let ((address, layout, dtype), out) = (call.memory(0)?, call.output()?);
    let (key, key_lies, _) = call.memory(1)?;
    let key_step = key_lies.strides.first().copied().unwrap_or(1) as u64;
    let rank = layout.sizes.len() - usize::from(drawn == Drawn::Class);
    let steps = layout.strides[..rank].iter().map(|step| *step as i64);
    let walk = Walk::of((layout.sizes[..rank].into(), steps.collect()));
    let count = walk.count();
    let samples = match call.attrs {
        Attrs::Count(samples) => *samples as u64,
        _ => 1,
    };
    if count == 0 || samples == 0 {
        return Ok(None);
    }
    let (n, step) = match drawn {
        Drawn::Class => (layout.sizes[rank] as u64, layout.strides[rank] as u64),
        _ => (1, 0),
    };
    let mut words = vec![count, out, key, key_step, address, n, samples, step];
    walk.words(1, &mut words);
    let each = if drawn == Drawn::Class { 1 } else { u64::from(THREADS) };
    let functions = SmallVec::from_iter([("kernel", blocks(count, each))]);
    let key = DrawKey { drawn, dtype, rank: walk.rank() };
    Ok(Some(Launch { key: KernelKey::Draw(key), functions, words, demand: None }))
}

/// The text of a kernel.
pub fn text(key: &DrawKey) -> String {
    let (words, ty) = (FIRST + 2 * usize::from(key.rank), c_type(key.dtype));
    let mut text = format!("struct P {{ u64 w[{words}]; }};\ntypedef u64 idx;\n");
    text.push_str(DRAWS);
    text.push_str("TN_FN i64 parameter_at(const P& p, u64 t) {\n");
    offset(&mut text, "at", "t", key.rank, FIRST);
    text.push_str("    return at;\n}\n");
    let element =
        |at: &str| format!("(f64){}", load(key.dtype, &format!("((const {ty}*)p.w[4])[{at}]")));
    let function = match key.drawn {
        Drawn::Class => {
            let logit = element("parameter_at(p, row) + (i64)j * (i64)p.w[7]");
            let _ = writeln!(
                text,
                "struct Logits {{\n  const P& p;\n  TN_FN f64 operator()(u64 row, u64 j) const {{ return {logit}; }}\n}};\n\
                 TN_KERNEL(kernel) {{ draw_classes(p, Logits{{p}}); }}"
            );
            return text;
        }
        Drawn::Gamma => "gamma_of",
        Drawn::Poisson => "poisson_of",
    };
    let stored = match key.dtype {
        DType::F16 => "f16_store(tn::to_odd(drawn))",
        DType::BF16 => "bf16_store(tn::to_odd(drawn))",
        DType::F32 => "(f32)drawn",
        _ => "drawn",
    };
    let _ = writeln!(
        text,
        "TN_KERNEL(kernel) {{\n  for (u64 t = (u64)blockIdx.x * {THREADS}u + threadIdx.x; t < p.w[0]; t += (u64)gridDim.x * {THREADS}u) {{\n\
         \x20   const f64 parameter = {};\n    Draws draws = draws_of(p, t);\n    const f64 drawn = {function}(parameter, draws);\n\
         \x20   (({ty}*)p.w[1])[t] = {stored};\n  }}\n}}",
        element("parameter_at(p, t)")
    );
    text
}
