//! Running rows in tests: plain reference arrays in, plain reference arrays out.
//!
//! [`run`] lends a kernel exactly what its row asks for, in buffers full of rubbish, so that an element
//! that is not written, or scratch that is relied on, shows. [`check_samples`] compares every sample of
//! a row with a naive reference, through contiguous and strided inputs, on one and on several threads,
//! out of place and in place, whole and in pieces; [`check_gradients`] compares gradient rules with finite differences.

mod axes;
mod eager;

pub use eager::check_gradients;

use tonnage_core::kernel::{Data, In, Kernel, Out};
use tonnage_core::layout::{Layout, contiguous_strides};
use tonnage_core::row::{Lower, Mem, Sample, Values};
use tonnage_core::workers::{Alone, Workers};
use tonnage_core::{
    Attrs, Call, DType, FromScalar, OpDef, Result, Scalar, Sizes, TensorType, with_element,
};

/// A tensor as a test sees it: every element as an f64, in logical order.
#[derive(Debug, Clone)]
pub struct Array {
    pub ty: TensorType,
    pub data: Vec<f64>,
}

impl Array {
    /// That dtype and shape; the values as the dtype holds them.
    pub fn new(dtype: DType, sizes: &[usize], data: Vec<f64>) -> Array {
        let array = Array { ty: TensorType::new(dtype, sizes), data };
        assert_eq!(sizes.iter().product::<usize>(), array.data.len(), "{}", array.ty);
        let data = with_element!(dtype, T => {
            let round = |x: &f64| Scalar::Float(*x).to_element::<T>().to_scalar().to_f64();
            array.data.iter().map(round).collect()
        });
        Array { data, ..array }
    }

    pub fn sizes(&self) -> Sizes {
        self.ty.shape.sizes().expect("arrays have known sizes")
    }

    /// The bytes under a layout of these sizes; places that no element takes are rubbish.
    fn bytes(&self, layout: &Layout) -> Buffer {
        let len = layout.extent().map_or(0, |(_, end)| end) * self.ty.dtype.size();
        let mut buffer = Buffer::rubbish(len);
        with_element!(self.ty.dtype, T => {
            let elements: &mut [T] = bytemuck::cast_slice_mut(buffer.get());
            let mut next = self.data.iter();
            layout.for_each(|at| {
                elements[at] = Scalar::Float(*next.next().unwrap()).to_element::<T>();
            });
        });
        buffer
    }

    fn from_bytes(dtype: DType, sizes: &[usize], bytes: &[u8]) -> Array {
        let count = sizes.iter().product();
        let data = with_element!(dtype, T => {
            let elements: &[T] = bytemuck::cast_slice(bytes);
            elements[..count].iter().map(|x| x.to_scalar().to_f64()).collect()
        });
        Array { ty: TensorType::new(dtype, sizes), data }
    }
}

/// Bytes on a cache line, as buffers are.
struct Buffer {
    bytes: Vec<u8>,
    skip: usize,
    len: usize,
}

impl Buffer {
    fn rubbish(len: usize) -> Buffer {
        let bytes = vec![0xA5; len + 64];
        let skip = bytes.as_ptr().align_offset(64);
        Buffer { bytes, skip, len }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.bytes[self.skip..self.skip + self.len]
    }
}

/// Pretends to have threads and runs the later half first, so that work that leans on an order shows.
pub struct Backwards;

impl Workers for Backwards {
    fn threads(&self) -> usize {
        3
    }
    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        b();
        a();
    }
}

/// How a kernel is run.
#[derive(Debug, Clone, Copy, Default)]
pub struct How {
    /// Inputs lie reversed, transposed and with gaps.
    pub strided: bool,
    /// On several threads.
    pub threads: bool,
    /// That input is the first output's bytes.
    pub in_place: Option<usize>,
    /// The row's aux outputs are made too.
    pub aux: bool,
}

/// The outputs of an op.
pub fn run(op: &'static OpDef, inputs: &[Array], attrs: &Attrs) -> Result<Vec<Array>> {
    run_as(op, inputs, attrs, How::default())
}

/// The outputs of an op that is run in a certain way.
pub fn run_as(op: &'static OpDef, inputs: &[Array], attrs: &Attrs, how: How) -> Result<Vec<Array>> {
    let types: Vec<TensorType> = inputs.iter().map(|a| a.ty.clone()).collect();
    let call = Call::new(&types, attrs);
    let mut out_types = (op.infer)(&call)?;
    if how.aux {
        out_types.extend((op.saves.aux)(&call)?);
    }
    let Lower::Slices(kernel) = op.lower else { panic!("{} has no kernel", op.name) };

    let layouts: Vec<Layout> = (0..inputs.len())
        .map(|i| match how.strided && how.in_place != Some(i) {
            true => scattered(&inputs[i].sizes()),
            false => Layout::contiguous(inputs[i].sizes()),
        })
        .collect();
    let mut lent: Vec<Buffer> = inputs.iter().zip(&layouts).map(|(a, l)| a.bytes(l)).collect();
    let mut out_bytes: Vec<Buffer> =
        out_types.iter().map(|ty| Buffer::rubbish(ty.bytes(op.name).unwrap().as_usize())).collect();
    if let Some(i) = how.in_place {
        assert_eq!(types[i], out_types[0], "{} in place", op.name);
        out_bytes[0].get().copy_from_slice(lent[i].get());
    }
    let ins: Vec<In> = lent
        .iter_mut()
        .zip(inputs)
        .zip(&layouts)
        .enumerate()
        .map(|(i, ((bytes, array), layout))| In {
            dtype: array.ty.dtype,
            layout: layout.clone(),
            data: match how.in_place == Some(i) {
                true => Data::Output(0),
                false => Data::Slice(bytes.get()),
            },
        })
        .collect();
    let mut outs: Vec<Out> = out_bytes
        .iter_mut()
        .zip(&out_types)
        .map(|(bytes, ty)| Out {
            dtype: ty.dtype,
            sizes: ty.shape.most().unwrap(),
            data: bytes.get(),
        })
        .collect();
    let workers: &dyn Workers = if how.threads { &Backwards } else { &Alone };
    let mut scratch = Buffer::rubbish((op.scratch)(&call, workers.threads()).as_usize());
    lend(kernel, attrs, &ins, &mut outs, scratch.get(), workers)?;
    Ok(outs.iter().map(|o| Array::from_bytes(o.dtype, &o.sizes, o.data)).collect())
}

/// Calls the kernel with copies of `outputs` that live no longer than the call, as its signature wants,
/// and reads the sizes back, which it may have narrowed.
fn lend(
    kernel: fn(&mut Kernel) -> Result<()>,
    attrs: &Attrs,
    inputs: &[In],
    outputs: &mut [Out],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let mut shorter: Vec<Out> = outputs
        .iter_mut()
        .map(|o| Out { dtype: o.dtype, sizes: o.sizes.clone(), data: &mut *o.data })
        .collect();
    let sizes: Vec<Sizes>;
    let result = {
        let mut call = Kernel { attrs, inputs, outputs: &mut shorter, scratch, workers };
        let result = kernel(&mut call);
        sizes = call.outputs.iter().map(|o| o.sizes.clone()).collect();
        result
    };
    for (output, sizes) in outputs.iter_mut().zip(sizes) {
        output.sizes = sizes;
    }
    result
}

/// A layout with axes in reverse order, every second place empty, the first axis backwards.
fn scattered(sizes: &[usize]) -> Layout {
    let reversed: Sizes = sizes.iter().rev().copied().collect();
    let strides = contiguous_strides(&reversed).iter().rev().map(|s| s * 2).collect();
    let mut layout = Layout { sizes: sizes.into(), strides, offset: 1 };
    if let Some(first) = layout.strides.first_mut() {
        layout.offset += (sizes[0].saturating_sub(1)) * *first as usize;
        *first = -*first;
    }
    layout
}

/// The same inputs in every test run.
pub fn draw(sample: &Sample) -> Vec<Array> {
    let mut state = 7u64;
    let mut uniform = move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut one = |ty: &TensorType, values: Values| {
        let sizes = ty.shape.sizes().unwrap();
        let count: usize = sizes.iter().product();
        let mut data: Vec<f64> = (0..count)
            .map(|_| match values {
                Values::Between(low, high) => low + (high - low) * uniform(),
                Values::Below(n) => (uniform() * n as f64).floor(),
                _ if ty.dtype == DType::Bool => (uniform() < 0.5) as u8 as f64,
                _ if ty.dtype.is_integer() => (uniform() * 16.0 - 8.0).floor(),
                _ => uniform() * 4.0 - 2.0,
            })
            .collect();
        if values == Values::PositiveDefinite {
            let n = sizes[sizes.len() - 1];
            for matrix in data.chunks_mut((n * n).max(1)) {
                let factor = matrix.to_vec();
                for (at, x) in matrix.iter_mut().enumerate() {
                    let (i, j) = (at / n, at % n);
                    let dot: f64 = (0..n).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
                    *x = dot / n as f64 + if i == j { 1.0 } else { 0.0 };
                }
            }
        }
        Array::new(ty.dtype, &sizes, data)
    };
    sample.inputs.iter().map(|input| one(&input.ty, input.values)).collect()
}

/// Every sample of a row against a reference, in every way that a kernel may be run.
pub fn check_samples(op: &'static OpDef, reference: impl Fn(&[Array], &Attrs) -> Vec<Array>) {
    let samples = (op.samples)();
    assert!(!samples.is_empty(), "{} has no samples", op.name);
    for sample in &samples {
        let inputs = draw(sample);
        let types: Vec<TensorType> = inputs.iter().map(|a| a.ty.clone()).collect();
        let aux = !(op.saves.aux)(&Call::new(&types, &sample.attrs)).unwrap().is_empty();
        let expected = reference(&inputs, &sample.attrs);
        let check = |how: How| {
            let got = run_as(op, &inputs, &sample.attrs, how);
            let got = got.unwrap_or_else(|e| panic!("{} {types:?} {how:?}: {e}", op.name));
            let expected = &expected[..expected.len().min(got.len())];
            assert_close(&got, expected, &format!("{} {types:?} {how:?}", op.name));
        };
        for strided in [false, true] {
            for threads in [false, true] {
                check(How { strided, threads, in_place: None, aux });
            }
        }
        check(How::default());
        axes::check_axes(op, sample, &inputs);
        if let Mem::Reuse(reuse) = op.mem {
            let outputs = (op.infer)(&Call::new(&types, &sample.attrs)).unwrap();
            for &input in reuse.iter().filter(|i| types[**i] == outputs[0]) {
                for threads in [false, true] {
                    check(How { strided: true, threads, in_place: Some(input), aux });
                }
            }
        }
    }
}

/// Equal types, and values within what the dtype can tell apart after a few roundings.
pub fn assert_close(got: &[Array], expected: &[Array], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: outputs");
    for (got, expected) in got.iter().zip(expected) {
        assert_eq!(got.ty, expected.ty, "{what}");
        let tolerance = match got.ty.dtype {
            DType::F64 => 1e-10,
            DType::F32 => 2e-4,
            DType::F16 => 1e-2,
            DType::BF16 => 6e-2,
            _ => 0.0,
        };
        for (i, (a, b)) in got.data.iter().zip(&expected.data).enumerate() {
            let same = a == b || (a.is_nan() && b.is_nan());
            let near = (a - b).abs() <= tolerance * (1.0 + b.abs());
            assert!(same || near, "{what}: element {i} is {a}, expected {b}");
        }
    }
}
