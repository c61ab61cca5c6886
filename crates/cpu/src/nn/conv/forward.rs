//! The kernel of `conv`: a result is rounded once; 16-bit floats are added up in f32.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call};
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_ops::nn::conv::forward::{NAME, known};

use super::depthwise::{self, Gather};
use super::operand::{ConvOperand, slides};
use super::windows::packs;
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::{
    OutputEpilogue, RowLayout, Target, gemm, scratch_bytes, scratch_bytes_for,
};
use crate::nn::float::{Float, with_float};

/// The kernel of [`CONV`](tonnage_ops::nn::conv::forward::CONV).
pub static CONV: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: true, streaming: None };

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

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (conv, window) = tonnage_ops::nn::conv::attrs(NAME, k.attrs)?;
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
