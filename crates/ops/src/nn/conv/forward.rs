//! `conv`: filters laid on every window of an image, channels last. What most people call a convolution: filters are
//! not flipped.
//!
//! Padding is zeros. A result is rounded once; 16-bit floats are added up in f32.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Bytes, Call, Emit, OpDef, TensorType};

use super::depthwise::{self, Gather};
use super::filter_grad::CONV_FILTER_GRAD;
use super::operand::{ConvOperand, slides};
use super::transpose::CONV_TRANSPOSE;
use super::windows::packs;
use super::{ConvSizes, channels, divides, filter_lengths, floats, image_is_input, mismatch};
use crate::infer::{along, inputs, joined};
use crate::linalg::gemm::{
    OutputEpilogue, RowLayout, Target, gemm, scratch_bytes, scratch_bytes_for,
};
use crate::nn::float::{Float, with_float};

const NAME: &str = "conv";

/// `(image [batch, ..., c], filters [..., c / groups, o]) -> [batch, ..., o]`; the rest as [`Attrs::Conv`].
pub static CONV: OpDef = OpDef {
    name: NAME,
    doc: "Filters laid on every window of an image of one to three axes, channels last.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch,
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Costly,
    cost: |call| super::costs(call, known(call), &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0], &[1]]),
    fails: Fails::Never,
    lower: Lower::WithEpilogue(kernel),
    samples: || {
        let sample = |(dtype, image, filter, conv)| super::sample(dtype, &image, &filter, conv);
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [image, filter] = inputs(NAME, call)?;
    floats(NAME, image, filter)?;
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    image_is_input(NAME, conv)?;
    let lengths = window.lengths(NAME, image)?;
    filter_lengths(NAME, &window, filter)?;
    let (depth, outputs) = (&filter.shape[window.spatial], channels(filter));
    if depth.times(&conv.groups.into()) != *channels(image) {
        let help = format!(
            "the image has {} channels, the filters take {depth} in each of {} groups",
            channels(image),
            conv.groups
        );
        mismatch(NAME, image, filter, help)?;
    }
    divides(NAME, conv.groups, outputs, "result")?;
    let made = window.slide(NAME, lengths)?;
    let shape = joined(&[&image.shape[..1], &made, std::slice::from_ref(outputs)]);
    Ok(smallvec![TensorType { dtype: image.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((conv, window)) = super::attrs(NAME, call.attrs) else { return AxisMap::default() };
    let last = window.spatial + 1;
    let mut axes = vec![AxisOf::Mixed; last + 1];
    axes[0] = along(&[(0, 0)]);
    let mut summed = Vec::new();
    if conv.groups == 1 {
        axes[last] = along(&[(1, last)]);
        summed.push(smallvec![(0, last), (1, last - 1)]);
    }
    AxisMap { outputs: vec![axes], summed }
}

fn known(call: &Call) -> Option<ConvSizes> {
    ConvSizes::of(call, call.inputs.first()?, infer(call).ok()?.first()?)
}

// As windows, or as the plain product that windows of one pixel are where the image lies so.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(known) = known(call) else { return Bytes::ZERO };
    let (size, dtype) = (known.forward(), call.inputs[0].dtype);
    if known.is_depthwise() {
        return depthwise::scratch(&known, dtype);
    }
    let left = packs(&slides(&known), known.batch, known.group(), dtype.size());
    let windows = scratch_bytes_for(size, dtype, left, false, threads);
    match known.window.is_trivial() {
        true => windows.max(scratch_bytes(size, dtype, threads)),
        false => windows,
    }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    let mut grads = vec![None, None];
    if call.needs[0] {
        let mut conv = conv.clone();
        conv.image = window.lengths(NAME, &call.inputs[0])?.iter().cloned().collect();
        let inputs = vec![call.grad()?, call.input(1)?];
        let made = e.apply(&CONV_TRANSPOSE, inputs, Attrs::Conv(Box::new(conv)))?;
        grads[0] = crate::emit::dense(made);
    }
    if call.needs[1] {
        let inputs = vec![call.input(0)?, call.grad()?];
        let made = e.apply(&CONV_FILTER_GRAD, inputs, call.attrs.clone())?;
        grads[1] = crate::emit::dense(made);
    }
    Ok(grads)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (conv, window) = super::attrs(NAME, k.attrs)?;
    let [image, filter] = &k.inputs[..2] else { return Ok(()) };
    let out = &mut k.outputs[0];
    let known = ConvSizes::from_sizes(window, conv.groups, &image.layout.sizes, &out.sizes);
    if known.is_depthwise() {
        let gather = Gather::forward(image, &known);
        gather.run(filter, out.slice::<T>(), k.scratch, k.workers)?;
        if let Some(epilogue) = k.epilogue {
            crate::tile::apply_epilogue::<T>(epilogue, out.slice::<T>(), k.workers)?;
        }
        return Ok(());
    }
    let size = known.forward();
    let left = ConvOperand::<T>::windows_of(image, &known);
    let right = ConvOperand::<T>::filters(filter, &known);
    let target = Target {
        data: out.slice::<T>(),
        batch_stride: size.cols,
        rows: RowLayout::Every(known.outputs),
        add: false,
    };
    let (batch, row) = (size.cols, known.outputs);
    let end = k.epilogue.map(|epilogue| OutputEpilogue { epilogue, start: 0, batch, row });
    gemm(size, &left, &right, target, &end, k.scratch, k.workers)
}
