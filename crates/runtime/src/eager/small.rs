//! A small elementwise op of one instruction whose inputs lie in memory as they are computed, and stay there: the
//! short way through eager mode. It decides nothing that the long way would decide otherwise.

use tonnage_core::attrs::Attrs;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, OpDef};
use tonnage_core::{Bytes, DType, Mark, Result, TensorType};
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

/// The result of an op that ran before on such dtypes, over inputs of one shape: that is the result's too, and nothing is inferred anew.
pub(super) fn again(
    op: &'static OpDef,
    args: &[Arg],
    attrs: &Attrs,
    mark: Mark,
) -> Result<Option<Array>> {
    let ([first, ..], Attrs::None) = (args, attrs) else { return Ok(None) };
    let like = first.array().layout();
    let count = like.count();
    if count == 0 || count >= SMALL || args.len() > MOST {
        return Ok(None);
    }
    for arg in args {
        let layout = arg.array().layout();
        if !stays(arg) || layout.sizes != like.sizes || !layout.is_contiguous() {
            return Ok(None);
        }
    }
    let dtypes = args.iter().map(|arg| arg.array().dtype());
    let Some(direct) = tile::known(op, dtypes) else { return Ok(None) };
    let output = Output { dtype: direct.output(), count, like };
    on_host(op, direct, (args, &[count; MOST]), output, mark, |_| Ok(None))
}

/// Whether nothing of an input's bytes can become the result's.
#[inline]
fn stays(arg: &Arg) -> bool {
    match arg {
        Arg::Borrowed(_) => true,
        Arg::Owned(array) => !array.is_sole(),
    }
}

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
        let layout = arg.array().layout();
        let n = layout.count();
        *length = n;
        // A shape of as many elements that broadcasts to the result's is the result's, but for lengths
        // of 1: the order is the same.
        if !stays(arg) || (n != count && n != 1) || !layout.is_contiguous() {
            return Ok(None);
        }
        if n == count && layout.sizes.len() == output.shape.rank() {
            like = Some(layout);
        }
    }
    let Some(direct) = tile::direct(op, call)? else { return Ok(None) };
    let made;
    let like = match like {
        Some(like) => like,
        None => {
            made = Layout::contiguous(output.shape.sizes().unwrap_or_default());
            &made
        }
    };
    let output = Output { dtype: output.dtype, count, like };
    on_host(op, direct, (args, &lengths), output, mark, |states| {
        on_device(op, call, (args, states, &lengths), output, mark)
    })
}

/// What a result is like.
#[derive(Clone, Copy)]
struct Output<'a> {
    dtype: DType,
    count: usize,
    /// Its sizes, in order; the offset is another's.
    like: &'a Layout,
}

/// Runs one instruction over inputs in memory; `elsewhere` is asked where some lie on a device.
#[inline]
fn on_host(
    op: &'static OpDef,
    direct: tile::DirectOp,
    (args, lengths): (&[Arg], &[usize; MOST]),
    output: Output,
    mark: Mark,
    elsewhere: impl FnOnce(&[Option<&StorageState>; MOST]) -> Result<Option<Array>>,
) -> Result<Option<Array>> {
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
            return elsewhere(&first.map(|i| guards[i]));
        };
        inputs[i] = &bytes[start..start + lengths[i] * size];
    }
    let bytes = Bytes::of(output.count * output.dtype.size());
    let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner(mark, op.name))?;
    direct.run(inputs, buffer.bytes_mut()?);
    Ok(Some(made(buffer, output)))
}

/// The same on a device, where all inputs lie there.
#[cold]
fn on_device(
    op: &'static OpDef,
    call: &Call,
    (args, states, lengths): (&[Arg], &[Option<&StorageState>; MOST], &[usize; MOST]),
    output: Output,
    mark: Mark,
) -> Result<Option<Array>> {
    let Output { dtype, count, .. } = output;
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
    let Some(place) = place else { return Ok(None) };
    let bytes = Bytes::of(count * dtype.size());
    let mut buffer = Buffer::obtain(place, bytes, owner(mark, op.name))?;
    let mut lender = Lender::new(place.backend());
    lender.lend_for(Some(mark.source));
    let base = lender.add(&mut buffer);
    let out = ByteRange { base, offset: 0, len: bytes.as_usize(), align: dtype.size() };
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
    Ok(ran.then(|| made(buffer, output)))
}

/// The result.
#[inline]
fn made(buffer: Buffer, output: Output) -> Array {
    Array::from_buffer(buffer, output.dtype, Layout { offset: 0, ..output.like.clone() })
}
