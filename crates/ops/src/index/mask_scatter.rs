//! `mask_scatter`: zeros, with rows put where a mask is true, in order. The transpose of `boolean_mask`,
//! and its gradient.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, TensorType};

use super::boolean_mask::BOOLEAN_MASK;
use super::mask::{BooleanMask, Owned, mask_type};
use crate::infer::{along, cost, inputs, joined, no_attrs, number, rank_at_least};
use crate::number::with_width;
use crate::strided;

/// `(mask, rows) -> zeros with rows`
pub static MASK_SCATTER: OpDef = OpDef {
    name: "mask_scatter",
    doc: "Zeros with rows put, in order, where a mask is true.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[1]]),
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [mask, rows] = inputs("mask_scatter", call)?;
    no_attrs("mask_scatter", call)?;
    mask_type("mask_scatter", mask)?;
    number("mask_scatter", rows)?;
    rank_at_least("mask_scatter", rows, 1, "one row for each element that is true")?;
    Ok(smallvec![TensorType::new(rows.dtype, joined(&[&mask.shape, &rows.shape[1..]]))])
}

fn axes(call: &Call) -> AxisMap {
    let (masked, rank) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let rows = (1..rank).map(|a| along(&[(1, a)]));
    let axes = (0..masked).map(|_| AxisOf::Mixed).chain(rows).collect();
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let shape = Attrs::Shape(call.inputs[1].shape.clone());
    let rows = emit.apply(&BOOLEAN_MASK, vec![call.grad()?, call.input(0)?], shape)?;
    Ok(vec![None, Some(Cotangent::Dense(rows))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let (mask, rows) = (BooleanMask::new(&k.inputs[0]), &k.inputs[1]);
    let (count, given) = (mask.count(0, mask.len()), rows.layout.sizes[0]);
    if count != given {
        let what = format!("the mask selects {count} rows, but {given} are given");
        return Err(bad_argument("mask_scatter", what, "give one row for each true element"));
    }
    let row: usize = rows.layout.sizes[1..].iter().product();
    // All zero bits are zero in every dtype that is a number.
    with_width!(rows.dtype, T => {
        let data = rows.slice::<T>();
        let out = k.outputs[0].slice::<T>();
        mask.for_each_part(k.workers, out, row, Owned::All, &|part, out| {
            let mut next = part.before;
            for i in 0..part.len {
                let to = &mut out[i * row..(i + 1) * row];
                if mask.get(part.start + i) {
                    strided::copy(&rows.layout, data, next * row, to);
                    next += 1;
                } else {
                    to.fill(0);
                }
            }
        })?;
    });
    Ok(())
}

/// Masks that are all true or all false: how many rows there are is then known to the types.
fn samples() -> Vec<Sample> {
    let of = |dtype, mask: &[usize], row: &[usize], all: bool| {
        let count = if all { mask.iter().product() } else { 0 };
        let rows = TensorType::new(dtype, [&[count], row].concat());
        let bits = if all { 1.0 } else { 0.0 };
        Sample::of(&[TensorType::new(DType::Bool, mask), rows], Attrs::None)
            .with(0, Values::Between(bits, bits))
    };
    vec![
        of(DType::F64, &[5], &[3], true),
        of(DType::F64, &[2, 3], &[], true),
        of(DType::F64, &[5], &[3], false),
        of(DType::F32, &[1025], &[20], true),
        of(DType::F32, &[1023], &[], false),
        of(DType::F16, &[4], &[2], true),
        of(DType::BF16, &[4], &[2], true),
        of(DType::I64, &[4], &[2], true),
        of(DType::U8, &[4], &[2], true),
        of(DType::F32, &[0], &[2], true),
        of(DType::F32, &[4], &[0], true),
    ]
}
