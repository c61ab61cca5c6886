//! `linspace`: numbers at even distances, both ends included to the last bit; a recipe.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::tile::Prim;
use tonnage_core::{DType, OpDef, Scalar, Shape, TensorType};

use crate::tile::Chain;
use crate::{OpId, rules};

/// Numbers at even distances.
pub static LINSPACE: OpDef = OpDef {
    id: OpId::Linspace as u16,
    name: "linspace",
    doc: "Numbers at even distances, both ends included; takes no bytes until it is written to.",
    infer,
    axes: |_| rules::axes::mixed(&[1]),
    mem: Mem::Recipe,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Recipe(recipe),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 0)?;
    let Attrs::Linspace { len, dtype, .. } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    if !dtype.is_float() {
        let supported = "f64, f32, f16 or bf16 (`range` counts in whole numbers)";
        return Err(ErrorKind::DTypeUnsupported { op: call.op, dtype: *dtype, supported }.into());
    }
    Ok(smallvec![TensorType { dtype: *dtype, shape: [len.clone()].into_iter().collect() }])
}

/// Computed in f64 whatever the dtype: `start + i * step`, and both ends as they were given, whatever the step is.
fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Linspace { start, stop, len, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let shape: Shape = [len.clone()].into_iter().collect();
    let sizes = rules::known_sizes(call, *dtype, &shape)?;
    let steps = sizes[0].saturating_sub(1);
    let (first, last) = (start.to_f64(), stop.to_f64());
    let step = if steps == 0 { 0.0 } else { (last - first) / steps as f64 };
    let count = Generator::Count { start: Scalar::Int(0), step: Scalar::Int(1), dtype: DType::F64 };
    let program = Chain::program([DType::F64], *dtype, |p, [i]| {
        let moved = p.times(i, step);
        let value = p.plus(moved, first);
        let at_end = p.with(Prim::Ge, i, steps.max(1) as f64);
        let last = p.number(last, value);
        let value = p.select(at_end, last, value);
        let is_inner = p.with(Prim::Ge, i, 1.0);
        let first = p.number(first, value);
        (p.select(is_inner, value, first), None)
    });
    let layout = Layout::contiguous(sizes.clone());
    Ok(Recipe { program, sources: SmallVec::from_iter([(count, layout)]), sizes })
}

fn samples() -> Vec<Sample> {
    let of = |start: f64, stop: f64, len: usize, dtype| {
        let (start, stop) = (Scalar::Float(start), Scalar::Float(stop));
        Sample::of(&[], Attrs::Linspace { start, stop, len: len.into(), dtype })
    };
    vec![
        of(0.0, 1.0, 7, DType::F64),
        of(-1.0, 2.0, 5, DType::F32),
        of(3.0, -3.0, 4, DType::F16),
        of(0.0, 10.0, 11, DType::BF16),
        of(2.5, 9.0, 1, DType::F32),
        of(0.0, 1.0, 0, DType::F32),
        of(0.1, 0.7, 1025, DType::F32),
    ]
}
