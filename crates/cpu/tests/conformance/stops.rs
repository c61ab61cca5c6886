//! Work that is stopped ends with an error, at whichever question it learns of it, and soon after: nothing goes on with what
//! is half made, and nothing long goes by without a question.

use std::sync::atomic::{AtomicUsize, Ordering};

use tonnage_core::attrs::Attrs;
use tonnage_core::error::ErrorKind;
use tonnage_core::row::{Call, Cost, Lower, OpDef, Sample, Values};
use tonnage_core::{DType, Scalar, TensorType};
use tonnage_cpu::workers::Workers;

use crate::draw::{Random, for_every_sample, none};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::ops::{are_all, ops};

/// Threads that are asked whether to stop, and say so from one question on.
struct Asked {
    threads: usize,
    stop_at: usize,
    asked: AtomicUsize,
}

impl Workers for Asked {
    fn threads(&self) -> usize {
        self.threads
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        b();
        a();
    }

    fn is_stopped(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.stop_at
    }
}

/// How an op ends that is stopped at a question, and how many it asks.
fn run(
    op: &'static OpDef,
    sample: &Sample,
    inputs: &[Tensor],
    threads: usize,
    stop_at: usize,
) -> (tonnage_core::Result<()>, usize) {
    let workers = Asked { threads, stop_at, asked: AtomicUsize::new(0) };
    let mut engine = Engine::on(&workers, false);
    let made = engine.run(op, inputs.to_vec(), &sample.attrs, &sample.regions, true);
    let ended =
        made.and_then(|made| made.into_iter().try_for_each(|t| engine.resident(t).map(drop)));
    (ended, workers.asked.into_inner())
}

/// Questions that are still asked by what was begun: once each on the way out.
const ON_THE_WAY_OUT: usize = 64;

/// Stops at the first question, at the last, and at some between.
fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let inputs = random.tensors(sample);
    for threads in [1, 3] {
        let (ended, all) = run(op, sample, &inputs, threads, usize::MAX);
        ended.map_err(|error| error.to_string())?;
        for stop_at in (0..all).step_by((all / 4).max(1)).chain(all.checked_sub(1)) {
            let (ended, asked) = run(op, sample, &inputs, threads, stop_at);
            match ended {
                Err(error) if matches!(error.kind(), ErrorKind::Interrupted) => {}
                Err(error) => return Err(format!("stopped at question {stop_at}: {error}")),
                Ok(()) => return Err(format!("question {stop_at} of {all} changed nothing")),
            }
            if asked > stop_at + ON_THE_WAY_OUT {
                return Err(format!("{asked} questions where it was stopped at {stop_at}"));
            }
        }
    }
    Ok(())
}

#[test]
fn every_sample_ends_with_an_error_where_it_is_stopped() {
    for_every_sample(check);
}

/// What one core does between two questions, at most.
const NANOS: u64 = 5_000_000;

/// Checks an op at a size that takes long: that it asks often enough, and stops.
#[track_caller]
fn long(name: &'static str, types: &[(DType, &[usize])], values: Values, attrs: Attrs) {
    let types: Vec<TensorType> = types.iter().map(|(d, s)| TensorType::new(*d, *s)).collect();
    long_sample(name, &Sample::of(&types, attrs).with(0, values));
}

#[track_caller]
fn long_sample(name: &'static str, sample: &Sample) {
    let op = tonnage_ops::find(name).expect("a row");
    let types: Vec<TensorType> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &[] };
    let cost = (op.cost)(&call);
    let nanos = cost.bytes / 10 + cost.flops / 50;
    assert!(nanos > NANOS, "{name} takes {nanos} nanoseconds, which is not long");
    let inputs = Random::of(name, 1).tensors(sample);
    let (ended, all) = run(op, sample, &inputs, 1, usize::MAX);
    ended.expect("a result");
    assert!(nanos / all.max(1) as u64 <= NANOS, "{name}: {all} questions in {nanos} nanoseconds");
    for stop_at in [0, all / 2, all - 1] {
        let (ended, asked) = run(op, sample, &inputs, 1, stop_at);
        let error = ended.expect_err("a stop");
        assert!(matches!(error.kind(), ErrorKind::Interrupted), "{name}: {error}");
        assert!(asked <= stop_at + ON_THE_WAY_OUT, "{name}: {asked} after {stop_at}");
    }
}

#[test]
fn factorizations_and_products_ask_often() {
    let plain = Attrs::Matmul { transpose_a: false, transpose_b: false };
    let (f32, f64, normal) = (DType::F32, DType::F64, Values::Normal);
    long("matmul", &[(f32, &[1024, 1024]), (f32, &[1024, 600])], normal, plain.clone());
    let bytes = [(DType::U8, &[1024, 1024][..]), (DType::I8, &[1024, 600][..])];
    long("matmul_integer", &bytes, normal, plain.clone());
    long("svd", &[(f32, &[200, 200])], normal, Attrs::None);
    long("eigh", &[(f64, &[350, 350])], Values::PositiveDefinite, Attrs::None);
    long("qr", &[(f32, &[500, 450])], normal, Attrs::None);
    long("cholesky", &[(f64, &[1000, 1000])], Values::PositiveDefinite, Attrs::None);
    let system = [(f32, &[700, 700][..]), (f32, &[700, 200][..])];
    long("solve", &system, Values::Invertible, plain);
    long("inv", &[(f32, &[600, 600])], Values::Invertible, Attrs::None);
}

#[test]
fn layers_ask_often() {
    let (f32, normal) = (DType::F32, Values::Normal);
    let scale = Scalar::Float(0.1);
    let attention = Attrs::Attention { scale, causal: false, masked: false };
    let heads = [(f32, &[1, 2, 1024, 64][..]); 3];
    long("scaled_dot_product_attention", &heads, normal, attention);
    // As in the largest of its samples, with many images.
    let conv = tonnage_ops::find("conv").expect("a row");
    let flops = |sample: &Sample| {
        let types: Vec<TensorType> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
        let call = Call { op: conv.name, inputs: &types, attrs: &sample.attrs, regions: &[] };
        (conv.cost)(&call).flops
    };
    let mut sample = (conv.samples)().into_iter().max_by_key(flops).expect("a sample");
    while flops(&sample) <= 100 * NANOS {
        let image = &mut sample.inputs[0].ty;
        let mut sizes = image.shape.sizes().expect("known sizes");
        sizes[0] *= 2;
        *image = TensorType::new(image.dtype, &sizes[..]);
    }
    long_sample("conv", &sample);
}

#[test]
fn passes_over_many_elements_ask_often() {
    let (f32, f64, normal) = (DType::F32, DType::F64, Values::Normal);
    let rows = Attrs::Reduce { axes: [0, 1].into_iter().collect(), keep_dims: false };
    let scan = Attrs::Scan { axis: 1, exclusive: false, reverse: false };
    long("exp", &[(f64, &[4_000_000])], normal, Attrs::None);
    long("sum", &[(f64, &[700, 10_000])], normal, rows);
    long("cumsum", &[(f64, &[40, 100_000])], normal, scan);
    long("softmax", &[(f32, &[300, 20_000])], normal, Attrs::None);
    long("sort", &[(f32, &[4_500_000])], normal, Attrs::Descending(false));
    long("fft", &[(f32, &[64, 50_000]), (f32, &[64, 50_000])], normal, Attrs::None);
}

/// Elements that a kernel goes over between two questions, at most, on average.
const ELEMENTS: usize = 1 << 19;

/// Elements of a large sample, at least where it can be made that large.
const MANY: usize = 2 * ELEMENTS;

/// How many kinds of large samples are tried of an op.
const KINDS: usize = 2;

/// The sample with every axis of that length made longer.
fn grown(sample: &Sample, length: usize, factor: usize) -> Sample {
    let mut grown = sample.clone();
    for input in &mut grown.inputs {
        let sizes = input.ty.shape.sizes().expect("samples have known sizes");
        let longer = |n: &usize| if *n == length { n * factor } else { *n };
        let sizes: Vec<usize> = sizes.iter().map(longer).collect();
        input.ty = TensorType::new(input.ty.dtype, &sizes[..]);
    }
    grown
}

/// Elements of the largest of a sample's inputs and results; nothing where its types do not go together.
fn largest(op: &'static OpDef, sample: &Sample) -> Option<usize> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let made = (op.infer)(&call).ok()?;
    let count = |ty: &TensorType| ty.shape.most().map(|sizes| sizes.iter().product::<usize>());
    types.iter().chain(&made).map(count).try_fold(0, |most, n| Some(most.max(n?)))
}

/// What an op says of its work on a sample.
fn cost(op: &OpDef, sample: &Sample) -> Cost {
    let types: Vec<TensorType> = sample.inputs.iter().map(|input| input.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    (op.cost)(&call)
}

/// Elements that an op goes over, by the bytes that it reads and writes: of a table only the rows that are looked up.
fn gone_over(op: &'static OpDef, sample: &Sample) -> usize {
    let bytes = cost(op, sample).bytes / 8;
    largest(op, sample).unwrap_or(0).min(bytes as usize)
}

/// Whether the work grows with the elements: that of a matrix grows faster, and is tested above.
fn is_linear(op: &OpDef, small: &Sample, large: &Sample, factor: usize) -> bool {
    cost(op, large).flops <= cost(op, small).flops.max(1).saturating_mul(2 * factor as u64)
}

/// Large samples of an op: of each of its samples, the axes of one length made long, each set of axes once.
fn large_samples(op: &'static OpDef) -> Vec<Sample> {
    let (mut found, mut seen) = (Vec::new(), Vec::new());
    for sample in (op.samples)() {
        let sizes: Vec<_> =
            sample.inputs.iter().map(|i| i.ty.shape.sizes().expect("known sizes")).collect();
        for length in sizes.iter().flatten().copied().filter(|n| *n > 0) {
            let axes: Vec<Vec<bool>> =
                sizes.iter().map(|sizes| sizes.iter().map(|n| *n == length).collect()).collect();
            if seen.contains(&axes) || found.len() == KINDS {
                continue;
            }
            seen.push(axes);
            let factors = (1..30).map(|power| 1 << power);
            let large = factors
                .map(|factor| (factor, grown(&sample, length, factor)))
                .take_while(|(factor, large)| {
                    largest(op, large).is_some_and(|n| n < 2 * MANY * length)
                        && is_linear(op, &sample, large, *factor)
                })
                .find(|(_, large)| largest(op, large).is_some_and(|n| n >= MANY));
            found.extend(large.map(|(_, large)| large));
        }
    }
    found
}

/// Kernels that do a row, a row of windows, a block of a product or a copy of a table at once, in vector code: a million elements
/// take a millisecond or two. They ask between these, and not as their elements go by.
const BY_ROWS: &[&str] = &[
    "argmax",
    "argmin",
    "assign_add_rows",
    "assign_rows",
    "avg_pool",
    "avg_pool_grad",
    "boolean_mask",
    "conv",
    "conv_filter_grad",
    "conv_transpose",
    "cross_entropy",
    "cross_entropy_dense",
    "cross_entropy_dense_grad",
    "cross_entropy_grad",
    "gather",
    "gather_nd",
    "layer_norm",
    "layer_norm_grad",
    "linear_recurrence",
    "log_softmax",
    "log_softmax_grad",
    "mask_scatter",
    "matmul",
    "matmul_integer",
    "max_pool",
    "max_pool_grad",
    "max_pool_pick",
    "pad",
    "resize",
    "resize_grad",
    "scatter_add",
    "scatter_nd_add",
    "scatter_nd_max",
    "scatter_nd_min",
    "scatter_nd_update",
    "scatter_update",
    "searchsorted",
    "softmax",
    "softmax_grad",
    "solve",
    "triangular_solve",
];

#[test]
fn every_kernel_asks_as_its_elements_go_by() {
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for op in ops() {
        // What is made of other ops is as they are.
        if matches!(op.lower, Lower::View(_) | Lower::Composite(_) | Lower::Region(_)) {
            continue;
        }
        for sample in large_samples(op) {
            let inputs = Random::of(op.name, 1).tiled(&sample);
            let (ended, all) = run(op, &sample, &inputs, 1, usize::MAX);
            if ended.is_err() {
                continue; // values of a sample that was made longer may not go together
            }
            tried += 1;
            let asks_enough = gone_over(op, &sample) <= all * ELEMENTS;
            if !asks_enough && !BY_ROWS.contains(&op.name) {
                let types: Vec<_> = sample.inputs.iter().map(|input| &input.ty).collect();
                wrong.push(format!("{} {types:?}: {all} questions", op.name));
                continue;
            }
            if all == 0 {
                continue; // next to no work
            }
            let (ended, _) = run(op, &sample, &inputs, 1, all / 2);
            if !ended.is_err_and(|error| matches!(error.kind(), ErrorKind::Interrupted)) {
                wrong.push(format!("{}: question {} of {all} changed nothing", op.name, all / 2));
            }
        }
    }
    none(wrong);
    assert!(tried > 150 || !are_all(), "{tried} large samples");
}
