//! An op that runs as a kernel over lent slices, eagerly.

use smallvec::SmallVec;
use tonnage_core::kernel::{Data, In, Kernel, Out};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_core::shape::Sizes;
use tonnage_core::{Kind, Mark, Result};

use super::inputs::{Inputs, obtain};
use super::{Args, Arrays, sizes};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::ledger::Ledger;
use crate::pool::pool;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    args: Args,
    outputs: &Types,
    kernel: fn(&mut Kernel) -> Result<()>,
    mark: Mark,
) -> Result<Arrays> {
    let mut inputs = Inputs::new(args);
    let mut taken = inputs.take_over(op.mem, &outputs[0]);
    let in_place = taken.as_ref().map(|(input, _)| *input);
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&mut taken, ty, op.name, mark)?);
    }
    let cost = (op.cost)(call);
    let threads = pool().threads_for(cost);
    let scratch = (op.scratch)(call, threads);
    let mut scratch = Buffer::obtain(
        Ledger::cpu(),
        scratch,
        owner(Mark { kind: Kind::Scratch, ..mark }, op.name),
    )?;
    let pins = inputs.pins_in_memory(op, mark)?;
    let ins: SmallVec<[In; 3]> = (0..inputs.args.len())
        .map(|i| In {
            dtype: call.inputs[i].dtype,
            layout: inputs.layouts[i].clone(),
            data: match pins.bytes(i) {
                Some(bytes) => Data::Slice(bytes),
                None if in_place == Some(i) => Data::Output(0),
                None => Data::Slice(&[]),
            },
        })
        .collect();
    let mut real: SmallVec<[Sizes; 1]> = SmallVec::new();
    {
        let mut outs: SmallVec<[Out; 1]> = SmallVec::new();
        for (buffer, ty) in buffers.iter_mut().zip(outputs) {
            let sizes = sizes(ty, op.name)?;
            outs.push(Out { dtype: ty.dtype, sizes, data: buffer.bytes_mut() });
        }
        let scratch = scratch.bytes_mut();
        pool().run(cost, |workers| {
            kernel(&mut Kernel {
                attrs: call.attrs,
                inputs: &ins,
                outputs: &mut outs,
                scratch,
                workers,
            })
        })?;
        real.extend(outs.into_iter().map(|out| out.sizes));
    }
    Ok(buffers
        .into_iter()
        .zip(outputs)
        .zip(real)
        .map(|((buffer, ty), sizes)| {
            Array::from_buffer(buffer, ty.dtype, Layout::contiguous(sizes))
        })
        .collect())
}
