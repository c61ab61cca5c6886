//! What generated kernels reach on the GPU of this machine: bytes read and written in a second, and what a small launch takes. And whether
//! the formulas that take the card's reciprocal for a start have the CPU's bits. With the argument `attention`, that alone.

#[path = "hardware/attention.rs"]
mod attention;

use std::time::Instant;

use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::OpDef;
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{Attrs, Bytes, DType, Device, Scalar};
use tonnage_cuda::cache::KernelCache;
use tonnage_cuda::driver::{Gpu, ProductAddresses, list};
use tonnage_cuda::emit::{self, OpCall, Operand};
use tonnage_cuda::parts::parts;
use tonnage_cuda::product::Product;
use tonnage_ops::nn::norm::group::GROUP_NORM;
use tonnage_ops::nn::norm::group_grad::GROUP_NORM_GRAD;
use tonnage_ops::nn::norm::layer::LAYER_NORM;
use tonnage_ops::nn::softmax::log::LOG_SOFTMAX;
use tonnage_ops::nn::softmax::plain::SOFTMAX;
use tonnage_ops::nn::softmax::plain_grad::SOFTMAX_GRAD;
use tonnage_simd::level;
use tonnage_simd::prim::Unary;

/// Elements of the large tensors: 1 GiB of f32.
const ELEMENTS: usize = 1 << 28;
const ROW: usize = 1024;

fn main() -> Result<()> {
    match list() {
        Ok(gpus) if !gpus.is_empty() => {
            println!("{gpus:?}");
            if !std::env::args().any(|word| word == "attention") {
                run_all()?;
            }
            attention::run(&Gpu::open(0, KernelCache::default())?)
        }
        Ok(_) => {
            println!("SKIPPED: the driver lists no GPU");
            Ok(())
        }
        Err(what) => {
            println!("SKIPPED: {what}");
            Ok(())
        }
    }
}

fn run_all() -> Result<()> {
    let gpu = Gpu::open(0, KernelCache::default())?;
    println!("{} {:?} free, all", Device::to_string(&gpu.device()), gpu.memory()?);
    let bytes = ELEMENTS * 4;
    let (Some(x), Some(y), Some(z)) = (gpu.obtain(bytes), gpu.obtain(bytes), gpu.obtain(bytes))
    else {
        println!("SKIPPED: no 3 GiB of memory are free");
        return Ok(());
    };
    // Real numbers, not zeros.
    let mut drawn = TileProgram::loading(&[DType::F32]);
    drawn.store(0, DType::F32);
    let generator = tonnage_core::recipe::Generator::Random {
        key: tonnage_core::recipe::Key::Fixed([1, 2]),
        distribution: tonnage_core::recipe::Distribution::Normal,
        dtype: DType::F32,
    };
    let flat = Layout::contiguous(&[ELEMENTS][..]);
    let rows = Layout::contiguous(&[ELEMENTS / ROW, ROW][..]);
    let across = Layout {
        sizes: [ROW, ELEMENTS / ROW].into_iter().collect(),
        strides: [1, ROW as isize].into_iter().collect(),
        offset: 0,
    };
    let bias =
        Layout { sizes: rows.sizes.clone(), strides: [0, 1].into_iter().collect(), offset: 0 };
    let run = |name: &str,
               program: &TileProgram,
               domain: &[usize],
               operands: &[Operand],
               moved: usize|
     -> Result<()> {
        let launch =
            emit::launch(program, domain, operands, &[y.get() as u64], Some(z.get() as u64))?;
        let Some(launch) = launch else { return Ok(()) };
        let seconds = timed(&gpu, || gpu.launch(&launch, None))?;
        println!("{name:24} {:9.1} us  {:6.2} TB/s", seconds * 1e6, moved as f64 / seconds / 1e12);
        Ok(())
    };
    let source = |address: std::num::NonZero<usize>| address.get() as u64;
    run("random normal", &drawn, &[ELEMENTS], &[Operand::Generator(&generator, &flat)], bytes)?;
    gpu.copy_within(y.get(), x.get(), bytes)?;
    let mut copy = TileProgram::loading(&[DType::F32]);
    copy.store(0, DType::F32);
    run("copy", &copy, &[ELEMENTS], &[Operand::Memory(source(x), &flat)], 2 * bytes)?;
    run(
        "copy transposed",
        &copy,
        &across.sizes,
        &[Operand::Memory(source(x), &across)],
        2 * bytes,
    )?;
    let mut poly = TileProgram::loading(&[DType::F32]);
    let (two, one) = (poly.constant(2.0, DType::F32), poly.constant(1.0, DType::F32));
    let square = poly.push(Prim::Square, &[0]);
    let double = poly.push(Prim::Mul, &[square, two]);
    let sum = poly.push(Prim::Add, &[double, one]);
    poly.store(sum, DType::F32);
    run("x*x*2+1", &poly, &[ELEMENTS], &[Operand::Memory(source(x), &flat)], 2 * bytes)?;
    let mut curves = TileProgram::loading(&[DType::F32]);
    let (gelu, sigmoid) = (curves.push(Prim::Gelu, &[0]), curves.push(Prim::Sigmoid, &[0]));
    let product = curves.push(Prim::Mul, &[gelu, sigmoid]);
    let sum = curves.push(Prim::Add, &[product, 0]);
    curves.store(sum, DType::F32);
    run(
        "gelu(x)*sigmoid(x)+x",
        &curves,
        &[ELEMENTS],
        &[Operand::Memory(source(x), &flat)],
        2 * bytes,
    )?;
    let mut add = TileProgram::loading(&[DType::F32, DType::F32]);
    let sum = add.push(Prim::Add, &[0, 1]);
    add.store(sum, DType::F32);
    let both = [Operand::Memory(source(x), &rows), Operand::Memory(source(x), &bias)];
    run("add a bias", &add, &rows.sizes, &both, 2 * bytes)?;
    let small = Layout::contiguous(&[16][..]);
    let both = [Operand::Memory(source(x), &small), Operand::Memory(source(x), &small)];
    run("add 16 numbers", &add, &[16], &both, 192)?;
    let reduced = |axes: &[usize]| {
        let mut program = TileProgram::loading(&[DType::F32]);
        program.store(0, DType::F32);
        program.reduce(Reduction::Sum, axes);
        program
    };
    run("sum of all", &reduced(&[0]), &[ELEMENTS], &[Operand::Memory(source(x), &flat)], bytes)?;
    run(
        "sum of rows of 1024",
        &reduced(&[1]),
        &rows.sizes,
        &[Operand::Memory(source(x), &rows)],
        bytes,
    )?;
    run(
        "sum of columns",
        &reduced(&[0]),
        &rows.sizes,
        &[Operand::Memory(source(x), &rows)],
        bytes,
    )?;
    let over_rows =
        |op: &'static OpDef, attrs: &Attrs, inputs: usize, moved: usize| -> Result<()> {
            let vector = Layout::contiguous(&[ROW][..]);
            let layouts = [&rows, if inputs == 2 { &rows } else { &vector }, &vector];
            let operands: Vec<(Operand, DType)> = layouts[..inputs]
                .iter()
                .zip([source(x), source(z), source(z)])
                .map(|(layout, address)| (Operand::Memory(address, layout), DType::F32))
                .collect();
            let (sizes, outputs) = (&rows.sizes[..], &[source(y)][..]);
            let (lies, scratch, shared) = (&[rows.clone()][..], None, emit::LEAST_SHARED);
            let capability = gpu.info().capability;
            let call = OpCall {
                op,
                attrs,
                operands: &operands,
                sizes,
                lies,
                outputs,
                added: None,
                scratch,
                shared,
                capability,
            };
            let Some(launch) = emit::launch_op(&call)? else { return Ok(()) };
            let seconds = timed(&gpu, || gpu.launch(&launch, None))?;
            let (name, rate) = (op.name, moved as f64 / seconds / 1e12);
            println!("{name:24} {:9.1} us  {rate:6.2} TB/s", seconds * 1e6);
            Ok(())
        };
    let norm = Attrs::Normalize { epsilon: Scalar::Float(1e-5), centered: true, groups: 1 };
    over_rows(&SOFTMAX, &Attrs::None, 1, 2 * bytes)?;
    over_rows(&LOG_SOFTMAX, &Attrs::None, 1, 2 * bytes)?;
    over_rows(&SOFTMAX_GRAD, &Attrs::None, 2, 3 * bytes)?;
    over_rows(&LAYER_NORM, &norm, 3, 2 * bytes)?;
    same_bits(&gpu, [source(x), source(y)])?;
    batch_norm(&gpu, [source(x), source(y), source(z)])?;
    // The right operand as it lies, the left one too or as its transpose: a gradient of weights.
    let multiply = |dtype: DType,
                    [rows, cols, depth]: [usize; 3],
                    transposed: bool|
     -> Result<()> {
        let left = if transposed { [depth, rows] } else { [rows, depth] };
        let (left, right) = (Layout::contiguous(&left[..]), Layout::contiguous(&[depth, cols][..]));
        let Some(product) = Product::of(dtype, (&left, transposed), (&right, false), &[rows, cols])
        else {
            return Ok(());
        };
        let (left, right) = (source(x), source(x) + (rows * depth * dtype.size()) as u64);
        let (out, workspace) = (source(y), Some(source(z)));
        let at = ProductAddresses { left, right, bias: None, added: None, out, workspace };
        let name =
            format!("{dtype} {rows} x {cols} x {depth}{}", if transposed { " t" } else { "" });
        let seconds = multiplied(&gpu, &name, &[(product, at)])?;
        // The library itself, in all the workspace that it asks for: what it would choose, and the quickest of its algorithms.
        let mut tried: Vec<f64> = Vec::new();
        for number in 0..ALGORITHMS {
            let one = || gpu.multiply_by(&product, at, number, Bytes::mib(32));
            if !one()? {
                break;
            }
            tried.push(timed(&gpu, || one().map(|_| ()))?);
        }
        let quickest = tried.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
        if let (Some(first), Some((number, least))) = (tried.first(), quickest) {
            let own = multiplied(&gpu, "    the same again", &[(product, at)])?.min(seconds);
            println!(
                "    {:.3} of its choice, {:.3} of its algorithm {number}, the quickest",
                own / first,
                own / least
            );
        }
        Ok(())
    };
    for n in [256, 1024, 4096, 8192] {
        multiply(DType::F32, [n, n, n], false)?;
        multiply(DType::BF16, [n, n, n], false)?;
    }
    // Few results of long sums: gradients of weights, over a batch of 65,536 rows.
    for [rows, cols] in [[64, 64], [256, 256], [768, 768], [768, 2304], [3072, 768]] {
        multiply(DType::BF16, [rows, cols, 65_536], true)?;
        multiply(DType::F32, [rows, cols, 65_536], true)?;
    }
    multiply(DType::BF16, [65_536, 2304, 768], false)?;
    multiply(DType::BF16, [65_536, 768, 3072], false)?;
    odd_lengths(&gpu, [source(x), source(y), source(z)])?;
    for address in [x, y, z] {
        gpu.release(address);
    }
    Ok(())
}

/// Algorithms of the library that are tried for a product.
const ALGORITHMS: usize = 8;

/// What one of many launches takes.
fn timed(gpu: &Gpu, launch: impl Fn() -> Result<()>) -> Result<f64> {
    launch()?;
    gpu.wait()?;
    let start = Instant::now();
    for _ in 0..20 {
        launch()?;
    }
    gpu.wait()?;
    Ok(start.elapsed().as_secs_f64() / 20.0)
}

/// Seconds of a product, or of its parts.
fn multiplied(gpu: &Gpu, name: &str, parts: &[(Product, ProductAddresses)]) -> Result<f64> {
    let all = || parts.iter().try_for_each(|(product, at)| gpu.multiply(product, *at));
    let seconds = timed(gpu, all)?;
    let of = |product: &Product| 2.0 * (product.rows * product.cols * product.depth) as f64;
    let rate = parts.iter().map(|(product, _)| of(product)).sum::<f64>() / seconds / 1e12;
    println!("{name:40} {:9.1} us  {rate:6.1} TFLOP/s", seconds * 1e6);
    Ok(seconds)
}

/// The three products of a head with a vocabulary that is no multiple of 8, beside one that is: with rows that follow each other closely,
/// with rows that lie apart, and cut into whole accesses and a rest as well.
fn odd_lengths(gpu: &Gpu, [x, y, z]: [u64; 3]) -> Result<()> {
    let (rows, width) = (8192, 768);
    for dtype in [DType::BF16, DType::F16, DType::F32] {
        for (words, step) in [(50_304, 50_304), (50_257, 50_257), (50_257, 50_264)] {
            if rows * step * dtype.size() > ELEMENTS * 4 {
                continue;
            }
            let logits = Layout::rows_apart(&[rows, words][..], step);
            let hidden = Layout::contiguous(&[rows, width][..]);
            let table = Layout::contiguous(&[words, width][..]);
            let of = |left, right, out: [usize; 2], step| {
                let product = Product::of(dtype, left, right, &out)?;
                Some(product.with_rows_apart(step))
            };
            // Operands before results; the table lies behind what is multiplied with it.
            let behind = (rows * width * dtype.size()) as u64;
            let products = [
                ("logits", of((&hidden, false), (&table, true), [rows, words], Some(step)), z, y),
                ("to hidden", of((&logits, false), (&table, false), [rows, width], None), y, x),
                ("to table", of((&logits, true), (&hidden, false), [words, width], None), y, x),
            ];
            for (name, product, left, out) in products {
                let Some(product) = product else { continue };
                let right = z + behind;
                let workspace = None;
                let at = ProductAddresses { left, right, bias: None, added: None, out, workspace };
                let name = format!("{dtype} {words} of {step}, {name}");
                multiplied(gpu, &name, &[(product, at)])?;
                let cut: Vec<_> =
                    parts(&product).iter().map(|part| (part.product, part.addresses(at))).collect();
                if cut.len() > 1 {
                    multiplied(gpu, &format!("{name}, cut"), &cut)?;
                }
            }
        }
    }
    Ok(())
}

/// Functions of every 64th `f32` there is, here and there.
///
/// # Errors
/// Where a bit differs.
fn same_bits(gpu: &Gpu, [x, y]: [u64; 2]) -> Result<()> {
    let numbers: Vec<u32> = (0..1 << 26).map(|i: u32| i << 6 | i >> 20).collect();
    let bytes: &[u8] = bytemuck::cast_slice(&numbers);
    let flat = Layout::contiguous(&[numbers.len()][..]);
    let (mut here, mut there) = (vec![0u32; numbers.len()], vec![0u32; numbers.len()]);
    let functions = [
        (Prim::Sigmoid, Unary::Sigmoid),
        (Prim::Gelu, Unary::Gelu),
        (Prim::Erf, Unary::Erf),
        (Prim::Erfc, Unary::Erfc),
        (Prim::Tanh, Unary::Tanh),
        (Prim::Silu, Unary::Silu),
    ];
    for (prim, function) in functions {
        let mut program = TileProgram::loading(&[DType::F32]);
        let made = program.push(prim, &[0]);
        program.store(made, DType::F32);
        gpu.copy_in(bytes, x as usize)?;
        let operand = [Operand::Memory(x, &flat)];
        if let Some(launch) = emit::launch(&program, &flat.sizes, &operand, &[y], None)? {
            gpu.launch(&launch, None)?;
        }
        gpu.copy_out(y as usize, bytemuck::cast_slice_mut(&mut there))?;
        if let Some(run) = function.function(DType::F32) {
            run(level(), bytemuck::cast_slice_mut(&mut here), bytes);
        }
        let is_nan = |bits: u32| f32::from_bits(bits).is_nan();
        let same = |(a, b): &(&u32, &u32)| a == b || is_nan(**a) && is_nan(**b);
        let differ = here.iter().zip(&there).filter(|pair| !same(pair)).count();
        println!("{prim:?}: {} of {} have the CPU's bits", numbers.len() - differ, numbers.len());
        if differ > 0 {
            let what = format!("{prim:?} differs {differ} times");
            return Err(ErrorKind::DeviceFailed { device: gpu.device(), what }.into());
        }
    }
    Ok(())
}

/// Batch norm of 65,536 pixels of 1,024 channels, and its gradient: the image is read twice, and so is its gradient.
fn batch_norm(gpu: &Gpu, [x, y, z]: [u64; 3]) -> Result<()> {
    let (pixels, half) = ([1, ELEMENTS / ROW / 2, ROW], (ELEMENTS * 2) as u64);
    let attrs = Attrs::Normalize { epsilon: Scalar::Float(1e-5), centered: true, groups: ROW };
    let (image, row) = (Layout::contiguous(&pixels[..]), Layout::contiguous(&[ROW][..]));
    let each = Layout::contiguous(&[1, ROW][..]);
    // Statistics lie behind the image, and the workspace behind the other operands.
    let statistics = [y + half, y + half + 4096];
    let memory = |address, layout| (Operand::Memory(address, layout), DType::F32);
    let forward = [memory(x, &image), memory(z, &row), memory(z, &row)];
    let backward = [
        memory(x, &image),
        memory(z, &row),
        memory(statistics[0], &each),
        memory(statistics[1], &each),
        memory(x + half, &image),
    ];
    let calls: [(_, &[_], _, u64); 2] = [
        (&GROUP_NORM, &forward, [y, statistics[0], statistics[1]], 3),
        (&GROUP_NORM_GRAD, &backward, [y, z + half, z + half + 4096], 5),
    ];
    for (op, operands, outputs, passes) in calls {
        let (sizes, lies) = (&pixels[..], &[image.clone(), each.clone(), each.clone()][..]);
        let (outputs, scratch) = (&outputs[..], Some(z + half + 8192));
        let (shared, capability) = (emit::LEAST_SHARED, gpu.info().capability);
        let call = OpCall {
            op,
            attrs: &attrs,
            operands,
            sizes,
            lies,
            outputs,
            added: None,
            scratch,
            shared,
            capability,
        };
        let Some(launch) = emit::launch_op(&call)? else { continue };
        let seconds = timed(gpu, || gpu.launch(&launch, None))?;
        let rate = (passes * half) as f64 / seconds / 1e12;
        println!("{:24} {:9.1} us  {rate:6.2} TB/s", op.name, seconds * 1e6);
    }
    Ok(())
}
