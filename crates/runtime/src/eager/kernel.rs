//! An op that runs as a kernel over lent slices, eagerly.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::row::{Call, OpDef, Types};
use tonnage_core::shape::Sizes;
use tonnage_core::{Kind, Mark, Result};
use tonnage_cpu::kernel::{Kernel, KernelDef};

use super::inputs::{EagerInputs, exactly, obtain};
use super::{Args, Arrays, sizes};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::events::{self, Action};
use crate::pool::pool;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    args: Args,
    outputs: &Types,
    kernel: &KernelDef,
    mark: Mark,
) -> Result<Arrays> {
    let mut inputs = EagerInputs::new(args);
    let mut taken = match outputs.first() {
        Some(first) => inputs.take_over(op.mem, first)?,
        None => None,
    };
    let in_place = taken.as_ref().map(|(input, _)| *input);
    // A result that no machine has is refused before recipes are written out for it.
    for ty in outputs {
        ty.bytes(op.name)?;
    }
    // What is pinned stays when room has to be made for the results.
    let pins = inputs.pins_but(|i| inputs.streamed(op, call, i).is_some(), op, mark)?;
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&mut taken, ty, op.name, mark)?);
    }
    let cost = (op.cost)(call);
    let threads = pool().threads_for(cost);
    let stored: SmallVec<[Option<&Layout>; 3]> = (0..inputs.args.len())
        .map(|i| inputs.streamed(op, call, i).map(|(_, layout)| layout))
        .collect();
    let scratch = kernel.workspace(call, &stored, threads);
    let mut scratch = Buffer::obtain(
        &host_ledger(),
        scratch,
        owner(Mark { kind: Kind::Scratch, ..mark }, op.name),
    )?;
    let ins: SmallVec<[In; 3]> = (0..inputs.args.len())
        .map(|i| {
            let dtype = call.inputs[i].dtype;
            if let Some((elements, layout)) = inputs.streamed(op, call, i) {
                return In { dtype, layout: layout.clone(), data: Data::Stored(elements) };
            }
            let data = match pins.bytes(i) {
                Some(bytes) => Data::Slice(bytes),
                None if in_place == Some(i) => Data::Output(0),
                None => Data::Slice(&[]),
            };
            In { dtype, layout: inputs.layouts[i].clone(), data }
        })
        .collect();
    let mut real: SmallVec<[Sizes; 1]> = SmallVec::new();
    {
        let mut outs: SmallVec<[Out; 1]> = SmallVec::new();
        for (buffer, ty) in buffers.iter_mut().zip(outputs) {
            let sizes = sizes(ty, op.name)?;
            let data = exactly(buffer.bytes_mut(), ty, op.name)?;
            outs.push(Out { dtype: ty.dtype, sizes, data });
        }
        let scratch = scratch.bytes_mut();
        pool().run_op(cost, |workers| {
            (kernel.run)(&mut Kernel {
                attrs: call.attrs,
                inputs: &ins,
                outputs: &mut outs,
                scratch,
                workers,
                epilogue: None,
            })
        })?;
        real.extend(outs.into_iter().map(|out| out.sizes));
        ins.iter().try_for_each(In::check)?;
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

/// A kernel that updates its first input, whose bytes nobody else holds, where it stands. A kernel that
/// fails on its data has written nothing.
pub(super) fn update(
    op: &'static OpDef,
    call: &Call,
    target: &Array,
    args: Args,
    kernel: &KernelDef,
    mark: Mark,
) -> Result<()> {
    let cost = (op.cost)(call);
    let scratch = (kernel.scratch)(call, pool().threads_for(cost));
    let own = |kind| owner(Mark { kind, ..mark }, op.name);
    let pins = args
        .iter()
        .map(|arg| arg.array().pin(op.name, mark.source))
        .collect::<Result<SmallVec<[_; 3]>>>()?;
    let mut scratch = Buffer::obtain(&host_ledger(), scratch, own(Kind::Scratch))?;
    let mut ins: SmallVec<[In; 3]> = SmallVec::new();
    let layout = target.layout().clone();
    ins.push(In { dtype: target.dtype(), layout, data: Data::Output(0) });
    for (arg, pin) in args.iter().zip(&pins) {
        let array = arg.array();
        let (dtype, layout) = (array.dtype(), array.layout().clone());
        ins.push(In { dtype, layout, data: Data::Slice(pin.bytes()) });
    }
    let sizes = Sizes::from(target.sizes());
    let mut bytes = target.storage().pin_mut(&host_ledger(), own(mark.kind))?;
    let reserved = call.inputs[0].bytes(op.name)?.rounded();
    events::record(op.name, mark.source, Action::InPlace, reserved);
    let data = exactly(bytes.bytes_mut(), &call.inputs[0], op.name)?;
    let mut outs = [Out { dtype: target.dtype(), sizes, data }];
    let scratch = scratch.bytes_mut();
    pool().run(cost, |workers| {
        let (inputs, outputs) = (&ins[..], &mut outs[..]);
        let attrs = call.attrs;
        (kernel.run)(&mut Kernel { attrs, inputs, outputs, scratch, workers, epilogue: None })
    })
}
