//! A small elementwise op of one instruction whose inputs lie in memory as they are computed, and stay there: the
//! short way through eager mode. It decides nothing that the long way would decide otherwise.

use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, Mark, Result, TensorType};
use tonnage_cpu::tile;

use super::{Arg, SMALL};
use crate::array::{Array, owner};
use crate::backend::{DirectLaunch, Reads};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Ledger;
use crate::lend::{ByteRange, Lender};
use crate::storage::StorageState;

/// Inputs of one instruction, at most.
const MOST: usize = 3;

/// The result, where this way leads to one.
pub(super) fn apply(
    op: &'static OpDef,
    call: &Call,
    args: &[Arg],
    output: &TensorType,
    mark: Mark,
) -> Result<Option<Array>> {
    let Some(count) = output.shape.count().filter(|n| *n < SMALL && *n > 0) else {
        return Ok(None);
    };
    if args.len() > MOST {
        return Ok(None);
    }
    let (mut like, mut lengths) = (None, [0; MOST]);
    for (arg, length) in args.iter().zip(&mut lengths) {
        let (array, stays) = match arg {
            Arg::Borrowed(array) => (*array, true),
            Arg::Owned(array) => (array, !array.is_sole()),
        };
        let layout = array.layout();
        let n = layout.count();
        *length = n;
        // A shape of as many elements that broadcasts to the result's is the result's, but for lengths
        // of 1: the order is the same.
        if !stays || (n != count && n != 1) || !layout.is_contiguous() {
            return Ok(None);
        }
        if n == count && layout.sizes.len() == output.shape.rank() {
            like = Some(layout);
        }
    }
    let Some(direct) = tile::direct(op, call)? else { return Ok(None) };
    // Bytes that several inputs share are looked at once: a second look would wait behind a thread that waits to
    // write them out.
    let mut guards: [_; MOST] = [None, None, None];
    let mut first = [0; MOST];
    for (i, arg) in args.iter().enumerate() {
        first[i] = (0..i).find(|j| args[*j].array().shares_bytes(arg.array())).unwrap_or(i);
        if first[i] == i {
            guards[i] = Some(arg.array().storage().read());
        }
    }
    let mut inputs: [&[u8]; MOST] = [&[]; MOST];
    for (i, arg) in args.iter().enumerate() {
        let guard = guards[first[i]].as_deref();
        let Some(StorageState::Resident(buffer, _)) = guard else { return Ok(None) };
        let (layout, size) = (arg.array().layout(), arg.array().dtype().size());
        let start = layout.offset * size;
        let Some(bytes) = buffer.host_bytes() else {
            let guards = guards.each_ref().map(Option::as_deref);
            let buffers = first.map(|i| guards[i]);
            return on_device(op, call, (args, &buffers, &lengths), (output, like), mark);
        };
        inputs[i] = &bytes[start..start + lengths[i] * size];
    }
    let bytes = Bytes::of(count * output.dtype.size());
    let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner(mark, op.name))?;
    direct.run(inputs, buffer.bytes_mut()?);
    Ok(Some(made(buffer, output, like)))
}

/// The same on a device, where all inputs lie there.
#[cold]
fn on_device(
    op: &'static OpDef,
    call: &Call,
    (args, states, lengths): (&[Arg], &[Option<&StorageState>; MOST], &[usize; MOST]),
    (output, like): (&TensorType, Option<&Layout>),
    mark: Mark,
) -> Result<Option<Array>> {
    let mut buffers: [Option<&Buffer>; MOST] = [None; MOST];
    let mut place: Option<&Ledger> = None;
    for (buffer, state) in buffers.iter_mut().zip(states).take(args.len()) {
        let Some(StorageState::Resident(resident, _)) = state else { return Ok(None) };
        let Some(ledger) = resident.ledger() else { return Ok(None) };
        if !place.replace(ledger).is_none_or(|other| other.is(ledger)) {
            return Ok(None);
        }
        *buffer = Some(resident);
    }
    let place = place.filter(|place| place.backend().has_direct());
    let (Some(place), Some(count)) = (place, output.shape.count()) else { return Ok(None) };
    let bytes = Bytes::of(count * output.dtype.size());
    let mut buffer = Buffer::obtain(place, bytes, owner(mark, op.name))?;
    let mut lender = Lender::new(place.backend());
    lender.lend_for(Some(mark.source));
    let size = output.dtype.size();
    let base = lender.add(&mut buffer);
    let out = ByteRange { base, offset: 0, len: bytes.as_usize(), align: size };
    let mut reads = Reads::new();
    for ((arg, buffer), length) in args.iter().zip(buffers.into_iter().flatten()).zip(lengths) {
        let (size, base) = (arg.array().dtype().size(), lender.add(buffer));
        let offset = arg.array().layout().offset * size;
        reads.push(ByteRange { base, offset, len: length * size, align: size });
    }
    let launch = DirectLaunch { op, call, lengths: &lengths[..args.len()], count };
    let backend = lender.backend();
    let ran = backend.direct(&launch, &lender.lend(&reads, &[out])?)?;
    drop(lender);
    Ok(ran.then(|| made(buffer, output, like)))
}

/// The result.
#[inline]
fn made(buffer: Buffer, output: &TensorType, like: Option<&Layout>) -> Array {
    // Mostly the result lies as an input does.
    let layout = match like {
        Some(layout) => Layout { offset: 0, ..layout.clone() },
        None => Layout::contiguous(output.shape.sizes().unwrap_or_default()),
    };
    Array::from_buffer(buffer, output.dtype, layout)
}
