//! The kernel of `conv_filter_grad`. The sum over windows is cut at fixed places, whatever the number of threads: they
//! share filters, not windows.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call};
use tonnage_ops::linalg::Size;
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_ops::nn::conv::filter_grad::{NAME, infer, known};

use super::depthwise_filter::{self, DepthwiseFilterGrad};
use super::operand::{ConvOperand, transposed};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::{NoEpilogue, RowLayout, Target, gemm, scratch_bytes, scratch_bytes_for};
use crate::nn::float::{Float, with_float};

/// The kernel of [`CONV_FILTER_GRAD`](tonnage_ops::nn::conv::filter_grad::CONV_FILTER_GRAD).
pub static CONV_FILTER_GRAD: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// The product that it is: all windows are added up.
fn size_of(known: &ConvSizes) -> Size {
    let forward = known.forward();
    Size { rows: forward.k, k: forward.rows, ..forward }
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    if infer(call).is_err() {
        return Bytes::ZERO;
    }
    let Some(known) = known(call) else { return Bytes::ZERO };
    let (size, dtype) = (size_of(&known), call.inputs[0].dtype);
    if known.is_depthwise() {
        return depthwise_filter::scratch(&known, dtype);
    }
    let left = transposed(&known, dtype.size());
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
    let [image, values] = &k.inputs[..2] else { return Ok(()) };
    let out = &mut k.outputs[0];
    let known =
        ConvSizes::from_sizes(window, conv.groups, &image.layout.sizes, &values.layout.sizes);
    if known.is_depthwise() {
        let sums = DepthwiseFilterGrad::<T>::of(image, values, known);
        sums.run(out.slice::<T>(), k.scratch, k.workers)?;
        return Ok(());
    }
    let size = size_of(&known);
    let left = ConvOperand::<T>::taps_of(image, &known);
    let right = ConvOperand::<T>::pixels_of(values, &known);
    let target = Target {
        data: out.slice::<T>(),
        batch_stride: size.cols,
        rows: RowLayout::Every(known.outputs),
        add: false,
    };
    gemm(size, &left, &right, target, &NoEpilogue, k.scratch, k.workers)
}
