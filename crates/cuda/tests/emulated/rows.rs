//! Ops that go through rows: every one that has a kernel, over its own samples and over rows of all lengths, in all layouts, in place.

use tonnage_core::lent::{Data, In, Out};
use tonnage_core::row::{Call, Lower, OpDef};
use tonnage_core::{Attrs, DType, Layout, Shape, TensorType};
use tonnage_cpu::kernel::Kernel;
use tonnage_cpu::kernel_of;
use tonnage_cpu::workers::Alone;
use tonnage_cuda::emit::{self, Launch, OpCall, Operand};
use tonnage_ops::TABLE;

use crate::Trial;
use crate::cases::{same, shown};
use crate::draw::{Buffer, Floats, Random};

/// A call of an op, what the CPU makes of it, and where the kernel writes.
struct RowCase {
    op: &'static OpDef,
    attrs: Attrs,
    /// Buffer and layout; the first without a buffer where it is read from the output.
    inputs: Vec<(Option<Buffer>, Layout, DType)>,
    expected: Vec<(Buffer, DType)>,
    outputs: Vec<(u64, Buffer)>,
}

impl RowCase {
    fn new(
        op: &'static OpDef,
        attrs: &Attrs,
        types: &[TensorType],
        random: &mut Random,
        (views, in_place): (bool, bool),
    ) -> Option<RowCase> {
        let call = Call { op: op.name, inputs: types, attrs, regions: &[] };
        let made = (op.infer)(&call).ok()?;
        let sizes = |ty: &TensorType| ty.shape.sizes();
        let mut expected: Vec<(Buffer, DType)> = Vec::new();
        for ty in &made {
            let count: usize = sizes(ty)?.iter().product();
            expected.push((Buffer::new(count * ty.dtype.size()), ty.dtype));
        }
        let mut inputs = Vec::new();
        for (i, ty) in types.iter().enumerate() {
            let sizes = sizes(ty)?;
            if i == 0 && in_place {
                random.fill(ty.dtype, expected[0].0.bytes_mut());
                inputs.push((None, Layout::contiguous(sizes), ty.dtype));
                continue;
            }
            let (buffer, layout) = match views {
                true => random.view(ty.dtype, &sizes),
                false => random.tensor(ty.dtype, &sizes),
            };
            inputs.push((Some(buffer), layout, ty.dtype));
        }
        let mut outputs: Vec<(u64, Buffer)> = expected
            .iter()
            .map(|(from, _)| {
                let mut buffer = Buffer::new(from.bytes().len());
                buffer.bytes_mut().copy_from_slice(from.bytes());
                (0, buffer)
            })
            .collect();
        outputs.iter_mut().for_each(|(address, buffer)| *address = buffer.address());
        let kernel = kernel_of(op)?;
        let mut scratch = Buffer::new(kernel.workspace(&call, &[], 1).as_usize());
        let ins: Vec<In> = inputs
            .iter()
            .map(|(buffer, layout, dtype)| {
                let data = buffer.as_ref().map_or(Data::Output(0), |b| Data::Slice(b.bytes()));
                In { dtype: *dtype, layout: layout.clone(), data }
            })
            .collect();
        let mut outs: Vec<Out> = expected
            .iter_mut()
            .zip(&made)
            .map(|((buffer, dtype), ty)| {
                let sizes = ty.shape.sizes().unwrap_or_default();
                Out { dtype: *dtype, sizes, data: buffer.bytes_mut() }
            })
            .collect();
        (kernel.run)(&mut Kernel {
            attrs,
            inputs: &ins,
            outputs: &mut outs,
            scratch: scratch.bytes_mut(),
            workers: &Alone,
            epilogue: None,
        })
        .unwrap();
        drop(ins);
        Some(RowCase { op, attrs: attrs.clone(), inputs, expected, outputs })
    }
}

impl Trial for RowCase {
    fn launch(&self) -> Option<Launch> {
        let operands: Vec<(Operand, DType)> = self
            .inputs
            .iter()
            .map(|(buffer, layout, dtype)| match buffer {
                Some(buffer) => {
                    let address = buffer.bytes().as_ptr().expose_provenance() as u64;
                    (Operand::Memory(address, layout), *dtype)
                }
                None => (Operand::Output(0), *dtype),
            })
            .collect();
        let outputs: Vec<u64> = self.outputs.iter().map(|(address, _)| *address).collect();
        let (op, attrs, sizes) = (self.op, &self.attrs, &self.inputs[0].1.sizes[..]);
        let call = OpCall { op, attrs, operands: &operands, sizes, outputs: &outputs };
        emit::launch_op(&call).unwrap()
    }

    fn check(&self) -> Result<(), String> {
        for ((expected, dtype), (_, made)) in self.expected.iter().zip(&self.outputs) {
            let pairs =
                expected.bytes().chunks(dtype.size()).zip(made.bytes().chunks(dtype.size()));
            for (i, (a, b)) in pairs.enumerate() {
                if !same(*dtype, a, b, Some(SUMS)) {
                    let layouts: Vec<&Layout> = self.inputs.iter().map(|(_, l, _)| l).collect();
                    let (a, b) = (shown(*dtype, a), shown(*dtype, b));
                    return Err(format!(
                        "{} of {layouts:?}: element {i}: {a} and {b}",
                        self.op.name
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Lengths of rows: less than an access, whole ones, all that is held, and more.
const WIDTHS: [usize; 9] = [1, 3, 8, 64, 129, 1000, 1024, 4096, 9000];

/// How much further apart than a rounded sum results may be: what is divided by a deviation near 0 shows its last digits.
const SUMS: f64 = 16.0;

/// All cases.
pub fn cases(all: &mut Vec<Box<dyn Trial>>, random: &mut Random) {
    for op in TABLE {
        if !matches!(op.lower, Lower::Kernel) {
            continue;
        }
        let samples = (op.samples)();
        random.floats = match op.name {
            "softmax" | "log_softmax" => Floats::Masked,
            _ => Floats::Small,
        };
        let types = |sample: &tonnage_core::row::Sample| -> Vec<TensorType> {
            sample.inputs.iter().map(|input| input.ty.clone()).collect()
        };
        let has = |attrs: &Attrs, types: &[TensorType]| {
            types.first().is_some_and(|ty| emit::has_kernel(op, attrs, ty.dtype))
        };
        let mut add = |attrs: &Attrs, types: &[TensorType], how: (bool, bool)| {
            if let Some(case) = RowCase::new(op, attrs, types, random, how) {
                all.push(Box::new(case));
            }
        };
        for sample in samples.iter().filter(|sample| has(&sample.attrs, &types(sample))) {
            add(&sample.attrs, &types(sample), (false, false));
            add(&sample.attrs, &types(sample), (true, false));
        }
        let Some(sample) = samples.iter().find(|sample| has(&sample.attrs, &types(sample))) else {
            continue;
        };
        let first = types(sample);
        let is_in_place =
            matches!(op.mem, tonnage_core::row::Mem::Reuse(inputs) if inputs.contains(&0));
        for (k, width) in WIDTHS.into_iter().enumerate() {
            // The last axis of every input that has one is the row's.
            let old = first[0].shape.last().cloned();
            let anew: Vec<TensorType> = first
                .iter()
                .map(|ty| {
                    let mut dims: Vec<_> = ty.shape.iter().cloned().collect();
                    if let Some(last) = dims.last_mut().filter(|last| Some(&**last) == old.as_ref())
                    {
                        *last = width.into();
                    }
                    let dtype = [DType::F32, DType::BF16, DType::F64][k % 3];
                    TensorType { dtype, shape: dims.into_iter().collect::<Shape>() }
                })
                .collect();
            add(&sample.attrs, &anew, (false, false));
            add(&sample.attrs, &anew, (true, false));
            if is_in_place {
                add(&sample.attrs, &anew, (false, true));
            }
        }
    }
}
