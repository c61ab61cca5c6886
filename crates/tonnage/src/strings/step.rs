//! Closures that read strings: pure steps on the host, at once or where a plan says.
//!
//! What comes of a step in numbers has a size that the inputs' types say, so it is an op like others. How many bytes new strings have only the data say: they are
//! made at once, counted first and then written into bytes of just that size, and never while a function is traced.

use std::fmt;

use smallvec::SmallVec;
use tonnage_core::error::bad_argument;
use tonnage_core::lent::{Data, In, Out};
use tonnage_core::{Device, ErrorKind, Kind, Layout, Mark, Result, Shape, Source, TensorType};
use tonnage_ops::host::pure::PURE_CALLBACK;
use tonnage_runtime::storage::Pinned;
use tonnage_runtime::{Array, host_ledger};

use super::Strings;
use super::make::{alone, filled};
use crate::effects::{Lent, host};
use crate::tensor::Tensor;
use crate::trace;

/// Strings that are lent to a closure, where they lie.
#[derive(Clone, Copy)]
pub struct LentStrings<'a> {
    offsets: Numbers<'a>,
    sizes: Numbers<'a>,
    bytes: &'a [u8],
}

/// Integers through their layout.
#[derive(Clone, Copy)]
struct Numbers<'a> {
    values: &'a [i64],
    layout: &'a Layout,
    is_contiguous: bool,
    /// The number everywhere, where it is known to be one.
    same: Option<i64>,
}

impl<'a> Numbers<'a> {
    fn new(input: &'a In<'a>, same: Option<i64>) -> Numbers<'a> {
        let layout = &input.layout;
        // No bytes need not be aligned as integers are.
        let is_there = same.is_none() && layout.count() > 0;
        let values = if is_there { input.slice() } else { &[] };
        Numbers { values, layout, is_contiguous: layout.is_contiguous(), same }
    }

    fn at(&self, i: usize) -> i64 {
        if let Some(same) = self.same {
            return same;
        }
        if self.is_contiguous {
            return self.values[self.layout.offset + i];
        }
        self.values[self.layout.nth(i)]
    }
}

impl<'a> LentStrings<'a> {
    /// Of its parts; `same` has the number that stands everywhere in offsets and in sizes, where there is one.
    fn new(parts: [&'a In<'a>; 3], same: [Option<i64>; 2]) -> LentStrings<'a> {
        LentStrings {
            offsets: Numbers::new(parts[0], same[0]),
            sizes: Numbers::new(parts[1], same[1]),
            bytes: parts[2].contiguous().unwrap_or(&[]),
        }
    }

    /// The lengths of the axes.
    pub fn sizes(&self) -> &'a [usize] {
        &self.sizes.layout.sizes
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.sizes.layout.count()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many bytes its elements have together, each for itself.
    pub fn text_bytes(&self) -> usize {
        let size = |i: usize| usize::try_from(self.sizes.at(i)).unwrap_or(0);
        match self.sizes.same {
            Some(same) => self.len().saturating_mul(usize::try_from(same).unwrap_or(0)),
            None => (0..self.len()).map(size).sum(),
        }
    }

    /// The element of that number in logical order.
    ///
    /// # Errors
    /// Where it lies outside of the bytes.
    pub fn get(&self, i: usize) -> Result<&'a [u8]> {
        let (at, size) = (self.offsets.at(i), self.sizes.at(i));
        let range =
            || Some(usize::try_from(at).ok()?..usize::try_from(at.checked_add(size)?).ok()?);
        range().and_then(|range| self.bytes.get(range)).ok_or_else(|| {
            let what = format!("string {i} is {size} bytes from {at} of {}", self.bytes.len());
            bad_argument("strings", what, "give offsets and sizes within the bytes")
        })
    }

    /// Where the bytes of the element begin.
    pub fn offset(&self, i: usize) -> i64 {
        self.offsets.at(i)
    }

    /// The element at the place that element `i` of `sizes` is broadcast from.
    ///
    /// # Errors
    /// As [`LentStrings::get`].
    pub fn broadcast(&self, sizes: &[usize], i: usize) -> Result<&'a [u8]> {
        self.get(broadcast_source(self.sizes(), sizes, i))
    }
}

/// The number of the element of a tensor of `from` that element `i` of `to` is broadcast from.
pub fn broadcast_source(from: &[usize], to: &[usize], i: usize) -> usize {
    if from == to {
        return i;
    }
    let (mut rest, mut place, mut step) = (i, 0, 1);
    let mut from = from.iter().rev();
    for size in to.iter().rev() {
        if let Some(own) = from.next() {
            place += if *own == 1 { 0 } else { rest % size * step };
            step *= own;
        }
        rest /= size;
    }
    place
}

/// Applies a closure to strings, and to numbers beside them. It has no effect, and writes results of these types; strings and numbers may be broadcast by it, not
/// before it. In a function it is a step on the host, which the plan counts.
///
/// ```
/// use tonnage::strings::{Strings, step};
/// use tonnage::{DType, TensorType};
/// let x = Strings::new(&["a", "bb"], [2])?;
/// let made = step("first", &[&x], &[], &[TensorType::new(DType::U8, x.shape())], |strings, _, out| {
///     for (i, first) in out[0].slice::<u8>().iter_mut().enumerate() {
///         *first = strings[0].get(i)?[0];
///     }
///     Ok(())
/// })?;
/// assert_eq!(made[0].to_vec::<u8>()?, [b'a', b'b']);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Those of the closure.
#[track_caller]
pub fn step(
    op: &'static str,
    strings: &[&Strings],
    numbers: &[&Tensor],
    results: &[TensorType],
    run: impl Fn(&[LentStrings], &[Lent], &mut [Out]) -> Result<()> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    let (source, count) = (Source::here(), strings.len());
    let mut inputs: Vec<&Tensor> = Vec::with_capacity(3 * count + numbers.len());
    strings.iter().for_each(|one| inputs.extend([&one.offsets, &one.sizes, &one.bytes]));
    inputs.extend(numbers);
    let run = move |lent: &[Lent], outputs: &mut [Out]| {
        let (parts, numbers) = lent.split_at(3 * count);
        let strings: SmallVec<[LentStrings; 2]> = parts
            .chunks_exact(3)
            .map(|part| LentStrings::new([0, 1, 2].map(|i| part[i].input()), [None; 2]))
            .collect();
        run(&strings, numbers, outputs)
    };
    let apply = || host(&PURE_CALLBACK, &inputs, results, op.to_string(), source, run);
    // What has its values is computed now, in a function too: it is a constant there.
    let made = match inputs.iter().any(|tensor| tensor.is_symbolic()) {
        true => apply(),
        false => trace::outside(apply),
    };
    Ok(made.map_err(|e| e.at(source))?.into_vec())
}

/// Looks at strings, and at numbers beside them, that have values, where they lie.
///
/// # Errors
/// Those of the closure; and where one has no values, as while a function is traced.
pub fn look<R>(
    strings: &[&Strings],
    numbers: &[&Tensor],
    f: impl FnOnce(&[LentStrings], &[Lent]) -> Result<R>,
) -> Result<R> {
    let parts = strings.iter().flat_map(|one| [&one.offsets, &one.sizes, &one.bytes]);
    let tensors: Vec<&Tensor> = parts.chain(numbers.iter().copied()).collect();
    let arrays = tensors.iter().map(|tensor| on_host(tensor)).collect::<Result<Vec<_>>>()?;
    let is_part = |i: usize| i < 3 * strings.len() && i % 3 != 2;
    let same: Vec<Option<i64>> =
        arrays.iter().enumerate().map(|(i, a)| is_part(i).then(|| uniform(a)).flatten()).collect();
    let mut pinned = Vec::with_capacity(arrays.len());
    for (array, same) in arrays.iter().zip(&same) {
        pinned.push(match same {
            Some(_) => None,
            None => Some(array.pin(WHAT, Source::here())?),
        });
    }
    let mut inputs = Vec::with_capacity(arrays.len());
    for (array, pinned) in arrays.iter().zip(&pinned) {
        let bytes = pinned.as_ref().map_or(Ok(&[][..]), Pinned::bytes)?;
        let (dtype, layout) = (array.dtype(), array.layout().clone());
        inputs.push(In { dtype, layout, data: Data::Slice(bytes) });
    }
    let (parts, rest) = inputs.split_at(3 * strings.len());
    let lent: SmallVec<[LentStrings; 2]> = parts
        .chunks_exact(3)
        .zip(same.chunks_exact(3))
        .map(|(part, same)| LentStrings::new([&part[0], &part[1], &part[2]], [same[0], same[1]]))
        .collect();
    let numbers: SmallVec<[Lent; 2]> = rest.iter().map(Lent::new).collect();
    f(&lent, &numbers)
}

const WHAT: &str = "reading strings";

/// The number everywhere, which need not be brought into memory.
fn uniform(array: &Array) -> Option<i64> {
    let value = array.as_recipe()?.uniform()?;
    i64::try_from(value.to_i128()).ok()
}

fn on_host(tensor: &Tensor) -> Result<Array> {
    // In a function what constants alone make of constants has values too.
    let known = if tensor.is_symbolic() { trace::known(tensor) } else { None };
    let array = known.as_ref().unwrap_or(tensor).array(WHAT)?;
    match array.device() {
        Some(device) if device != Device::CPU => array.copied_to(&host_ledger(), WHAT),
        _ => Ok(array.clone()),
    }
}

/// Where a closure puts the bytes of a string: it is called twice, once to count them and once to write them.
#[derive(Debug)]
pub struct Sink<'a> {
    out: Option<&'a mut [u8]>,
    at: usize,
}

impl Sink<'_> {
    /// Some more bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        let end = self.at + bytes.len();
        if let Some(out) = self.out.as_mut().and_then(|out| out.get_mut(self.at..end)) {
            out.copy_from_slice(bytes);
        }
        self.at = end;
    }

    /// One more character, as UTF-8.
    pub fn push_char(&mut self, character: char) {
        self.push(character.encode_utf8(&mut [0; 4]).as_bytes());
    }
}

impl fmt::Write for Sink<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.push(text.as_bytes());
        Ok(())
    }
}

impl Strings {
    /// New strings of that shape: a closure puts the bytes of each into a sink, of strings and numbers that have values. It is called twice for each, and has to
    /// put the same both times: bytes are counted before memory is taken, and just those are.
    ///
    /// ```
    /// use tonnage::strings::Strings;
    /// let x = Strings::new(&["a", "b"], [2])?;
    /// let twice = Strings::written("twice", [2].into(), &[&x], &[], |strings, _, i, sink| {
    ///     sink.push(strings[0].get(i)?);
    ///     sink.push(strings[0].get(i)?);
    ///     Ok(())
    /// })?;
    /// assert_eq!(twice.to_vec()?, [b"aa", b"bb"]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the closure; where a length or an input has no values, as while a function is traced: only the data say how many bytes there are.
    #[track_caller]
    pub fn written(
        op: &'static str,
        shape: Shape,
        strings: &[&Strings],
        numbers: &[&Tensor],
        write: impl Fn(&[LentStrings], &[Lent], usize, &mut Sink) -> Result<()>,
    ) -> Result<Strings> {
        let mark = Mark { source: Source::here(), kind: Kind::Activation };
        let count = shape.count();
        let make = || {
            let count = count.ok_or(ErrorKind::Symbolic { what: WHAT })?;
            trace::outside(|| {
                look(strings, numbers, |strings, numbers| {
                    made(op, count, shape, mark, &|i, sink| write(strings, numbers, i, sink))
                })
            })
        };
        make().map_err(|e: tonnage_core::Error| e.at(mark.source))
    }

    /// The same strings in bytes of their own, one after another, where others lie between them.
    ///
    /// # Errors
    /// Where there is no memory, or it has no values.
    #[track_caller]
    pub fn packed(&self) -> Result<Strings> {
        Strings::written("packed", self.shape(), &[self], &[], |strings, _, i, sink| {
            sink.push(strings[0].get(i)?);
            Ok(())
        })
    }
}

fn made(
    op: &'static str,
    count: usize,
    shape: Shape,
    mark: Mark,
    write: &dyn Fn(usize, &mut Sink) -> Result<()>,
) -> Result<Strings> {
    let size = |i: usize| -> Result<usize> {
        let mut sink = Sink { out: None, at: 0 };
        write(i, &mut sink)?;
        Ok(sink.at)
    };
    let mut total = 0;
    let (offsets, sizes) = if count == 1 {
        total = size(0)?;
        (None, None)
    } else {
        let mut offsets = None;
        let sizes = filled::<i64>(shape.clone(), mark, |sizes| {
            let made = filled::<i64>(shape.clone(), mark, |offsets| {
                for (i, (offset, own)) in offsets.iter_mut().zip(sizes).enumerate() {
                    let size = size(i)?;
                    (*offset, *own) = (total as i64, size as i64);
                    total += size;
                }
                Ok(())
            });
            offsets = Some(made?);
            Ok(())
        })?;
        (offsets, Some(sizes))
    };
    let bytes = filled::<u8>([total].into(), mark, |out| {
        let mut sink = Sink { out: Some(out), at: 0 };
        (0..count).try_for_each(|i| write(i, &mut sink))?;
        match sink.at == total {
            true => Ok(()),
            false => {
                let what = format!("{total} bytes were counted and {} written", sink.at);
                Err(bad_argument(op, what, "write the same both times"))
            }
        }
    })?;
    match offsets.zip(sizes) {
        Some((offsets, sizes)) => Strings::from_parts(offsets, sizes, bytes),
        None => alone(total, shape, bytes, mark),
    }
}
