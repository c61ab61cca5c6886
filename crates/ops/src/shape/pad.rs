//! `pad`: elements around a tensor: a number, or the tensor itself as in a mirror.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice, PadMode};
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::{DType, Dim, OpDef, Scalar, TensorType};

use super::fold_padding::FOLD_PADDING;
use super::slice::SLICE;
use crate::{OpId, emit, infer, rules};

/// Elements around a tensor.
pub static PAD: OpDef = OpDef {
    id: OpId::Pad as u16,
    name: "pad",
    doc: "Elements around a tensor: a number, or the tensor itself as in a mirror.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost::local(0, rules::cost::moved(call, &outputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// Widths, one an axis, and what is put there; refused where a mirror would show more than there is.
pub(super) fn padding<'a>(call: &Call<'a>) -> Result<(&'a [[usize; 2]], PadMode)> {
    match call.attrs {
        Attrs::Pad { widths, padding } => Ok((widths, *padding)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Refuses widths that do not fit a tensor of that type.
pub(super) fn check(call: &Call, ty: &TensorType) -> Result<()> {
    let (widths, padding) = padding(call)?;
    if widths.len() != ty.shape.rank() {
        let what = format!("{} pairs of widths for {ty}", widths.len());
        return Err(bad_argument(call.op, what, "give one pair for every axis"));
    }
    for (axis, (width, dim)) in widths.iter().zip(ty.shape.iter()).enumerate() {
        let most = match (padding, dim.known()) {
            (PadMode::Reflect, Some(n)) => n.saturating_sub(1),
            (PadMode::Symmetric, Some(n)) => n,
            _ => usize::MAX,
        };
        if width.iter().any(|w| *w > most) {
            let what = format!("{width:?} elements around axis {axis} of {ty}, as in a mirror");
            let help = format!("it shows {most} at most; pad with a constant, or by less");
            return Err(bad_argument(call.op, what, help));
        }
    }
    if let PadMode::Constant(value) = padding
        && !value.fits(ty.dtype)
    {
        let what = format!("{value} around a tensor of dtype {}", ty.dtype);
        return Err(bad_argument(call.op, what, "use a number of that dtype"));
    }
    Ok(())
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let ty = &call.inputs[0];
    check(call, ty)?;
    let (widths, _) = padding(call)?;
    let longer = |(d, w): (&Dim, &[usize; 2])| d.plus(&Dim::Known(w[0])).plus(&Dim::Known(w[1]));
    let shape = ty.shape.iter().zip(widths).map(longer).collect();
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

/// Axes without a width run along.
pub(super) fn axes(call: &Call) -> AxisMap {
    let Ok((widths, _)) = padding(call) else { return AxisMap::default() };
    let along = |(i, w): (usize, &[usize; 2])| match w {
        [0, 0] => infer::along(&[(0, i)]),
        _ => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![widths.iter().enumerate().map(along).collect()], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (widths, padding) = padding(&call.call())?;
    let g = call.grad()?;
    let made = match padding {
        PadMode::Constant(_) => {
            let part = |(d, w): (&Dim, &[usize; 2])| AxisSlice {
                start: w[0].into(),
                len: d.clone(),
                step: 1,
            };
            let slices = call.inputs[0].shape.iter().zip(widths).map(part).collect();
            e.apply(&SLICE, vec![g], Attrs::Slices(slices))?
        }
        _ => e.apply(&FOLD_PADDING, vec![g], call.attrs.clone())?,
    };
    Ok(vec![emit::dense(made)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], widths: &[[usize; 2]], padding| {
        let attrs = Attrs::Pad { widths: widths.to_vec(), padding };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let number = |n: i32| PadMode::Constant(Scalar::from(n));
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|d| of(d, &[2, 3], &[[1, 0], [0, 2]], number(1))).collect();
    all.extend([
        of(DType::F32, &[], &[], number(0)),
        of(DType::F32, &[3], &[[0, 0]], number(2)),
        of(DType::F32, &[2, 3, 4], &[[0, 0], [2, 1], [0, 0]], number(0)),
        of(DType::F32, &[0, 3], &[[1, 1], [0, 1]], number(3)),
        of(DType::F32, &[1020], &[[3, 7]], PadMode::Constant(Scalar::Float(-0.5))),
    ]);
    all.extend(mirror_samples().into_iter().map(|(d, s, w, p)| of(d, s, w, p)));
    all
}

/// Tensors to be padded as in a mirror.
#[allow(clippy::type_complexity, reason = "a list of samples in four parts")]
pub(super) fn mirror_samples() -> Vec<(DType, &'static [usize], &'static [[usize; 2]], PadMode)> {
    let mut all: Vec<(DType, &[usize], &[[usize; 2]], PadMode)> = Vec::new();
    for padding in [PadMode::Reflect, PadMode::Symmetric] {
        all.push((DType::F32, &[4], &[[3, 2]], padding));
        all.push((DType::F64, &[3, 4], &[[1, 2], [3, 0]], padding));
        all.push((DType::F32, &[2, 3, 2], &[[0, 0], [2, 2], [0, 0]], padding));
        all.push((DType::I32, &[2, 2], &[[1, 1], [1, 1]], padding));
        all.push((DType::F32, &[1025, 2], &[[4, 3], [1, 1]], padding));
        all.push((DType::F32, &[0, 2], &[[0, 0], [1, 1]], padding));
        all.push((DType::F32, &[1], &[[0, 0]], padding));
    }
    all
}
