//! The kernel of `conv_transpose`. With a stride, pixels fall into classes by their remainders: those of one class see
//! the same taps, whose windows lie side by side. Each class is a product of its own, so that nothing is multiplied by
//! the zeros that strides leave.

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, Call};
use tonnage_ops::nn::conv::ConvSizes;
use tonnage_ops::nn::conv::transpose::{NAME, known};

use super::classes::ResidueClass;
use super::depthwise::{self, Gather};
use super::filter::Filter;
use super::operand::{ConvOperand, rows_of};
use super::windows::{ImageWindows, packs};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::{Matrix, NoEpilogue, Target, gemm, scratch_bytes, scratch_bytes_for};
use crate::nn::float::{Float, with_float};
use crate::nn::window::Pixels;
use crate::parallel::GRAIN;
use crate::workers::for_each_chunk;

/// Bytes that one thread clears at a time.
const PIECE: usize = 4 * GRAIN;

/// The kernel of [`CONV_TRANSPOSE`](tonnage_ops::nn::conv::transpose::CONV_TRANSPOSE).
pub static CONV_TRANSPOSE: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(known) = known(call) else { return Bytes::ZERO };
    let dtype = call.inputs[0].dtype;
    if known.is_depthwise() {
        return depthwise::scratch(&known, dtype);
    }
    let mut most = Bytes::ZERO;
    for class in ResidueClass::all(&known) {
        let size = class.size(&known);
        let (inputs, outputs) = known.group();
        let slides = class.axes.map(|axis| axis.slide);
        let left = packs(&slides, known.batch, (outputs, inputs), dtype.size());
        most = most.max(scratch_bytes_for(size, dtype, left, class.is_part, threads));
        if known.window.is_trivial() {
            most = most.max(scratch_bytes(size, dtype, threads));
        }
    }
    most
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (conv, window) = tonnage_ops::nn::conv::attrs(NAME, k.attrs)?;
    let [values, filter] = &k.inputs[..2] else { return Ok(()) };
    let out = &mut k.outputs[0];
    let known = ConvSizes::from_sizes(window, conv.groups, &out.sizes, &values.layout.sizes);
    if known.is_depthwise() {
        let gather = Gather::to_image(values, &known);
        return gather.run(filter, out.slice::<T>(), k.scratch, k.workers);
    }
    // What no window covers.
    if ResidueClass::all(&known).any(|class| class.size(&known).k == 0) {
        for_each_chunk(k.workers, out.data, PIECE, &|_, piece| piece.fill(0))?;
    }
    for class in ResidueClass::all(&known) {
        let size = class.size(&known);
        if size.k == 0 {
            continue;
        }
        let left = windows::<T>(values, &known, &class);
        let taps = class.axes.map(|axis| axis.taps);
        let right = ConvOperand::Filter(Filter::<T>::transposed(filter, &known, taps));
        let rows = class.rows(&known);
        let target = Target { data: out.slice::<T>(), batch_stride: size.cols, rows, add: false };
        gemm(size, &left, &right, target, &NoEpilogue, k.scratch, k.workers)?;
    }
    Ok(())
}

/// What each pixel of a class sees of the windows' values.
fn windows<'a, T: Float>(
    values: &'a In,
    known: &ConvSizes,
    class: &ResidueClass,
) -> ConvOperand<'a, T> {
    let data = values.slice::<T>();
    match rows_of(values, known.groups).filter(|_| known.window.is_trivial()) {
        Some(rows) => ConvOperand::Matrix(Matrix::left(data, rows)),
        None => {
            let slides = class.axes.map(|axis| axis.slide);
            let pixels = Pixels::of(&values.layout);
            let (inputs, outputs) = known.group();
            let packs = packs(&slides, known.batch, (outputs, inputs), size_of::<T>());
            ConvOperand::Windows(ImageWindows::new(data, pixels, slides, outputs), packs)
        }
    }
}
