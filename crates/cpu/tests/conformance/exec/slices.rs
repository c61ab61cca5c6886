//! Ops that run as kernels over lent slices.

use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_cpu::kernel::{Kernel, KernelDef};

use super::buffer::Buffer;
use super::tensor::Tensor;
use super::{Engine, nothing_allocated};

impl Engine<'_> {
    pub(super) fn slices(
        &mut self,
        op: &OpDef,
        call: &Call,
        kernel: &KernelDef,
        inputs: Vec<Tensor>,
        made: &Types,
    ) -> Result<Vec<Tensor>> {
        let mut inputs =
            inputs.into_iter().map(|t| self.resident(t)).collect::<Result<Vec<_>>>()?;
        let mut scratch = Buffer::new((kernel.scratch)(call, self.workers.threads()).as_usize());
        let (mut buffers, taken) = self.outputs(op, &mut inputs, made)?;
        let ins: Vec<In> = inputs
            .iter()
            .enumerate()
            .map(|(i, tensor)| In {
                dtype: tensor.dtype,
                layout: tensor.layout.clone(),
                data: match taken {
                    Some((input, output)) if input == i => Data::Output(output),
                    _ => Data::Slice(tensor.bytes()),
                },
            })
            .collect();
        let mut outs: Vec<Out> = buffers
            .iter_mut()
            .zip(made)
            .map(|(buffer, ty)| Out {
                dtype: ty.dtype,
                sizes: ty.shape.most().expect("known bounds"),
                data: buffer.bytes_mut(),
            })
            .collect();
        let mut lent = Kernel {
            attrs: call.attrs,
            inputs: &ins,
            outputs: &mut outs,
            scratch: scratch.bytes_mut(),
            workers: self.workers,
            epilogue: None,
        };
        nothing_allocated(op.name, || (kernel.run)(&mut lent))?;
        let sizes: Vec<_> = lent.outputs.iter().map(|out| out.sizes.clone()).collect();
        scratch.check();
        let made = buffers.into_iter().zip(sizes).zip(made).map(|((buffer, sizes), ty)| {
            buffer.check();
            Tensor::owning(ty.dtype, sizes, buffer)
        });
        Ok(made.collect())
    }
}
