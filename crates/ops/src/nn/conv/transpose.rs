//! `conv_transpose`: what a convolution takes from an image, given back to it: each window's values times the filters,
//! added up where windows overlap. The gradient of `conv` for its image, and the layer of that name.
//!
//! With a stride, pixels fall into classes by their remainders: those of one class see the same taps, whose windows lie
//! side by side. Each class is a product of its own, so that nothing is multiplied by the zeros that strides leave. A
//! pixel that no window covers is zero.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Attrs, Bytes, Call, Emit, OpDef, Shape, TensorType};

use super::classes::ResidueClass;
use super::depthwise::{self, Gather};
use super::filter::Filter;
use super::filter_grad::CONV_FILTER_GRAD;
use super::forward::CONV;
use super::operand::{ConvOperand, rows_of};
use super::windows::{ImageWindows, packs};
use super::{ConvSizes, channels, divides, filter_lengths, floats, mismatch};
use crate::infer::{along, inputs, joined, shape};
use crate::linalg::gemm::{Matrix, NoEpilogue, Target, gemm, scratch_bytes, scratch_bytes_for};
use crate::nn::float::{Float, with_float};
use crate::nn::window::Pixels;
use crate::parallel::GRAIN;

const NAME: &str = "conv_transpose";

/// Bytes that one thread clears at a time.
const PIECE: usize = 4 * GRAIN;

/// `(values [batch, ..., o], filters [..., c / groups, o]) -> image [batch, ..., c]`; the rest as [`Attrs::Conv`], which
/// has the lengths of the image.
pub static CONV_TRANSPOSE: OpDef = OpDef {
    name: NAME,
    doc: "The values of windows times filters, added up to an image: the transpose of conv.",
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
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |case: super::Case| {
            let made = super::made(&case);
            let (dtype, image, filter, mut conv) = case;
            conv.image = Shape::from(&image[1..image.len() - 1]);
            super::sample(dtype, &made, &filter, conv)
        };
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [values, filter] = inputs(NAME, call)?;
    floats(NAME, values, filter)?;
    let (conv, window) = super::attrs(NAME, call.attrs)?;
    let lengths = window.lengths(NAME, values)?;
    filter_lengths(NAME, &window, filter)?;
    if channels(values) != channels(filter) {
        let help = format!(
            "there are {} channels, the filters give {}",
            channels(values),
            channels(filter)
        );
        mismatch(NAME, values, filter, help)?;
    }
    divides(NAME, conv.groups, channels(values), "values")?;
    let image = &conv.image;
    if image.rank() != window.spatial {
        let what = format!("an image of lengths {image} for windows over {} axes", window.spatial);
        return Err(bad_argument(NAME, what, "give a length for each spatial axis"));
    }
    let made: Shape = window.slide(NAME, image)?.into_iter().collect();
    let found: Shape = lengths.iter().cloned().collect();
    shape(NAME, &found, &made, "an image of these lengths has another number of windows")?;
    let inner = filter.shape[window.spatial].times(&conv.groups.into());
    let shape = joined(&[&values.shape[..1], image, &[inner]]);
    Ok(smallvec![TensorType { dtype: values.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((conv, window)) = super::attrs(NAME, call.attrs) else { return AxisMap::default() };
    let last = window.spatial + 1;
    let mut axes = vec![AxisOf::Mixed; last + 1];
    axes[0] = along(&[(0, 0)]);
    let mut summed = Vec::new();
    if conv.groups == 1 {
        axes[last] = along(&[(1, last - 1)]);
        summed.push(smallvec![(0, last), (1, last)]);
    }
    AxisMap { outputs: vec![axes], summed }
}

fn known(call: &Call) -> Option<ConvSizes> {
    ConvSizes::of(call, infer(call).ok()?.first()?, call.inputs.first()?)
}

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

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (conv, _) = super::attrs(NAME, call.attrs)?;
    let mut conv = conv.clone();
    conv.image = Shape::scalar();
    let attrs = Attrs::Conv(Box::new(conv));
    let mut grads = vec![None, None];
    if call.needs[0] {
        let made = e.apply(&CONV, vec![call.grad()?, call.input(1)?], attrs.clone())?;
        grads[0] = crate::emit::dense(made);
    }
    if call.needs[1] {
        let made = e.apply(&CONV_FILTER_GRAD, vec![call.grad()?, call.input(0)?], attrs)?;
        grads[1] = crate::emit::dense(made);
    }
    Ok(grads)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let (conv, window) = super::attrs(NAME, k.attrs)?;
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
