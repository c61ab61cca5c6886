//! An op that runs as a kernel, eagerly.

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::row::{Call, Fails, OpDef, Types};
use tonnage_core::{Kind, Mark, Result};

use super::inputs::{EagerInputs, exactly, obtain, range};
use super::{Args, Arrays, bad_layout, sizes};
use crate::array::{Array, owner};
use crate::backend::{KernelInput, KernelLaunch, KernelOutput, ReadSource, Reads};
use crate::buffer::Buffer;
use crate::events::{self, Action};
use crate::ledger::Ledger;
use crate::lend::{ByteRange, Lender};
use crate::pool::op_stop;

pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    (place, args): (Ledger, Args),
    outputs: &Types,
    mark: Mark,
) -> Result<Arrays> {
    let mut inputs = EagerInputs::new(place.clone(), args);
    let mut taken = match outputs.first() {
        Some(first) => inputs.take_over(op.mem, first)?,
        None => None,
    };
    let in_place = taken.as_ref().map(|(input, _)| *input);
    // A result that no machine has is refused before recipes are written out for it.
    for ty in outputs {
        ty.bytes(op.name)?;
    }
    inputs.write_out_but(|inputs, i| inputs.streamed(op, call, i).is_some(), op, mark)?;
    // What is pinned stays when room has to be made for the results.
    let pins = inputs.pins(op, mark)?;
    let mut buffers: SmallVec<[Buffer; 1]> = SmallVec::new();
    for ty in outputs {
        buffers.push(obtain(&place, &mut taken, ty, op.name, mark)?);
    }
    let (cost, backend) = ((op.cost)(call), place.backend());
    let streamed: SmallVec<[Option<(&Generator, &Layout)>; 3]> =
        (0..inputs.args.len()).map(|i| inputs.streamed(op, call, i)).collect();
    let stored: SmallVec<[Option<&Layout>; 3]> =
        streamed.iter().map(|from| from.map(|(_, layout)| layout)).collect();
    let scratch = backend.scratch(op, call, &stored, cost);
    let own = owner(Mark { kind: Kind::Scratch, ..mark }, op.name);
    let mut scratch = Buffer::obtain(&place, scratch, own)?;
    let mut lender = Lender::new(backend);
    lender.lend_for(Some(mark.source));
    let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
    let mut outs: SmallVec<[KernelOutput; 2]> = SmallVec::new();
    for (buffer, ty) in buffers.iter_mut().zip(outputs) {
        let layout = Layout::contiguous(sizes(ty, op.name)?);
        outs.push(KernelOutput { dtype: ty.dtype, layout });
        writes.push(exactly(range(&mut lender, buffer), ty, op.name)?);
    }
    if !scratch.is_empty() {
        writes.push(range(&mut lender, &mut scratch));
    }
    let lent = pins.lend(&mut lender)?;
    let (mut ins, mut reads): (SmallVec<[KernelInput; 4]>, Reads) = Default::default();
    for (i, streamed) in streamed.into_iter().enumerate() {
        let dtype = call.inputs[i].dtype;
        let (layout, from) = match (streamed, lent[i]) {
            (Some((generator, layout)), _) => (layout, ReadSource::Generator(generator.clone())),
            (None, Some(range)) => {
                reads.push(range);
                (&inputs.layouts[i], ReadSource::Range(reads.len() - 1))
            }
            (None, None) if in_place == Some(i) => (&inputs.layouts[i], ReadSource::Output(0)),
            (None, None) => return Err(bad_layout(op)),
        };
        ins.push(KernelInput { dtype, layout: layout.clone(), from });
    }
    let stop = op_stop(cost);
    let launch = KernelLaunch {
        op,
        attrs: call.attrs,
        inputs: ins,
        outputs: outs,
        decides: outputs.iter().any(|ty| ty.shape.sizes().is_none()),
        epilogue: None,
        cost,
        stop: stop.as_ref(),
    };
    let real = backend.kernel(launch, lender.lend(&reads, &writes)?)?;
    wait_for_data(op, &place)?;
    drop(lender);
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
    (place, args): (Ledger, Args),
    mark: Mark,
) -> Result<()> {
    let (cost, backend) = ((op.cost)(call), place.backend());
    let scratch = backend.scratch(op, call, &[], cost);
    let own = |kind| owner(Mark { kind, ..mark }, op.name);
    let mut inputs = EagerInputs::of_update(place.clone(), target.layout().clone(), args);
    inputs.write_out_but(|_, _| false, op, mark)?;
    let pins = inputs.pins(op, mark)?;
    let mut scratch = Buffer::obtain(&place, scratch, own(Kind::Scratch))?;
    let mut bytes = target.storage().pin_mut(&place, own(mark.kind))?;
    let reserved = call.inputs[0].bytes(op.name)?.rounded();
    events::record(op.name, mark.source, Action::InPlace, reserved);
    let mut lender = Lender::new(backend);
    lender.lend_for(Some(mark.source));
    let written = range(&mut lender, bytes.buffer_mut()?);
    let mut writes: SmallVec<[ByteRange; 2]> = SmallVec::new();
    writes.push(exactly(written, &call.inputs[0], op.name)?);
    if !scratch.is_empty() {
        writes.push(range(&mut lender, &mut scratch));
    }
    let (mut ins, mut reads): (SmallVec<[KernelInput; 4]>, Reads) = Default::default();
    for (i, lent) in pins.lend(&mut lender)?.into_iter().enumerate() {
        let from = match lent {
            Some(range) => {
                reads.push(range);
                ReadSource::Range(reads.len() - 1)
            }
            None => ReadSource::Output(0),
        };
        let dtype = call.inputs[i].dtype;
        ins.push(KernelInput { dtype, layout: inputs.layouts[i].clone(), from });
    }
    let output = KernelOutput { dtype: target.dtype(), layout: Layout::contiguous(target.sizes()) };
    let launch = KernelLaunch {
        op,
        attrs: call.attrs,
        inputs: ins,
        outputs: SmallVec::from_iter([output]),
        decides: false,
        epilogue: None,
        cost,
        stop: None,
    };
    backend.kernel(launch, lender.lend(&reads, &writes)?)?;
    wait_for_data(op, &place)
}

/// An error of its data is the op's own: what is launched behind it would not run, and somebody who goes on after the error would hold it.
fn wait_for_data(op: &'static OpDef, place: &Ledger) -> Result<()> {
    match op.fails == Fails::OnData && !place.is_host() {
        true => place.backend().wait(),
        false => Ok(()),
    }
}
