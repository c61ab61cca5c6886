//! Loops over slices: one function of an element, applied to all.
//!
//! A map is a type without values whose `apply` is inlined into the loop. Slices of one call have
//! the same length, or one element that stands for all: a scalar operand is spread over a small
//! buffer, so that each map has one vector loop and not one per shape of its operands.
//!
//! The functions of bytes at the end are what an interpreter calls: one type for all dtypes.

use std::marker::PhantomData;

use bytemuck::{Pod, cast_slice, cast_slice_mut};

use super::level::Level;
use super::vectorize::{Isa, SimdKernel};

/// A function of one element.
pub trait Map1<T: Pod>: 'static {
    /// What it gives.
    type Out: Pod;
    /// The function; `#[inline(always)]`.
    fn apply<I: Isa>(x: T) -> Self::Out;
    /// True where some elements are beyond `apply`.
    const RARE: bool = false;
    /// Whether this one is.
    #[inline(always)]
    fn rare(_: T) -> bool {
        false
    }
    /// The function for such elements; `#[inline(always)]` where it is free of branches.
    #[inline(always)]
    fn slow<I: Isa>(x: T) -> Self::Out {
        Self::apply::<I>(x)
    }
}

/// A function of two elements.
pub trait Map2<T: Pod>: 'static {
    /// What it gives.
    type Out: Pod;
    /// The function; `#[inline(always)]`.
    fn apply<I: Isa>(a: T, b: T) -> Self::Out;
    /// False where no machine has an instruction for vectors: then there is one loop, for all levels.
    const VECTORS: bool = true;
    /// True where some elements are beyond `apply`.
    const RARE: bool = false;
    /// Whether these are.
    #[inline(always)]
    fn rare(_: T, _: T) -> bool {
        false
    }
    /// The function for such elements.
    #[inline(always)]
    fn slow<I: Isa>(a: T, b: T) -> Self::Out {
        Self::apply::<I>(a, b)
    }
}

/// A function of three elements, the first of which may be of another type.
pub trait Map3<C: Pod, T: Pod>: 'static {
    /// The function; `#[inline(always)]`.
    fn apply<I: Isa>(c: C, a: T, b: T) -> T;
}

struct Loop1<'a, T: Pod, M: Map1<T>>(&'a mut [M::Out], &'a [T]);

impl<T: Pod, M: Map1<T>> SimdKernel for Loop1<'_, T, M> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (out, &x) in self.0.iter_mut().zip(self.1) {
            *out = M::apply::<I>(I::element(x));
        }
        if M::RARE && self.1.iter().fold(false, |any, &x| any | M::rare(x)) {
            for (out, &x) in self.0.iter_mut().zip(self.1) {
                if M::rare(x) {
                    *out = M::slow::<I>(x);
                }
            }
        }
    }
}

struct Loop2<'a, T: Pod, M: Map2<T>>(&'a mut [M::Out], &'a [T], &'a [T], PhantomData<M>);

impl<T: Pod, M: Map2<T>> SimdKernel for Loop2<'_, T, M> {
    type Output = ();
    const VECTORS: bool = M::VECTORS;
    #[inline(always)]
    fn run<I: Isa>(self) {
        for ((out, &a), &b) in self.0.iter_mut().zip(self.1).zip(self.2) {
            *out = M::apply::<I>(I::element(a), b);
        }
        let both = || self.1.iter().zip(self.2);
        if M::RARE && both().fold(false, |any, (&a, &b)| any | M::rare(a, b)) {
            for (out, (&a, &b)) in self.0.iter_mut().zip(both()) {
                if M::rare(a, b) {
                    *out = M::slow::<I>(a, b);
                }
            }
        }
    }
}

struct Loop3<'a, C: Pod, T: Pod, M>(&'a mut [T], &'a [C], &'a [T], &'a [T], PhantomData<M>);

impl<C: Pod, T: Pod, M: Map3<C, T>> SimdKernel for Loop3<'_, C, T, M> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (((out, &c), &a), &b) in self.0.iter_mut().zip(self.1).zip(self.2).zip(self.3) {
            *out = M::apply::<I>(c, I::element(a), b);
        }
    }
}

/// Elements that a scalar operand is spread over.
const SPREAD: usize = 256;

/// An operand in bytes: elements as they lie, or one spread out. It knows the width of an element and not its type, so that
/// no map has a copy of this.
struct MapOperand<'a> {
    bytes: &'a [u8],
    spread: Option<[u64; SPREAD]>,
    size: usize,
}

impl<'a> MapOperand<'a> {
    fn new(bytes: &'a [u8], size: usize, len: usize) -> MapOperand<'a> {
        let spread = (bytes.len() == size && len != 1).then(|| {
            let mut spread = [0; SPREAD];
            let room: &mut [u8] = cast_slice_mut(&mut spread);
            match size {
                1 => room[..SPREAD].fill(bytes[0]),
                2 => cast_slice_mut(room)[..SPREAD].fill(cast_slice::<u8, u16>(bytes)[0]),
                4 => cast_slice_mut(room)[..SPREAD].fill(cast_slice::<u8, u32>(bytes)[0]),
                _ => cast_slice_mut(room)[..SPREAD].fill(cast_slice::<u8, u64>(bytes)[0]),
            }
            spread
        });
        debug_assert!(spread.is_some() || bytes.len() == size * len, "{} for {len}", bytes.len());
        MapOperand { bytes, spread, size }
    }

    /// Elements `start` to `start + len`, `len` up to SPREAD.
    fn piece(&self, start: usize, len: usize) -> &[u8] {
        match &self.spread {
            Some(spread) => &cast_slice(spread)[..len * self.size],
            None => &self.bytes[start * self.size..(start + len) * self.size],
        }
    }
}

/// A map over a piece of the output and of the operands.
type PieceMap<'m, const N: usize> = &'m mut dyn FnMut(&mut [u8], [&[u8]; N]);

/// Calls a map for pieces of the output, each with as many elements of the operands; the widths are those of elements.
fn in_pieces<const N: usize>(
    (out, width): (&mut [u8], usize),
    operands: [(&[u8], usize); N],
    whole: PieceMap<'_, N>,
) {
    let operands = operands.map(|(bytes, size)| MapOperand::new(bytes, size, out.len() / width));
    for (i, out) in out.chunks_mut(SPREAD * width).enumerate() {
        let (start, len) = (i * SPREAD, out.len() / width);
        whole(out, operands.each_ref().map(|operand| operand.piece(start, len)));
    }
}

/// `out[i] = M(a[i])`.
#[inline]
pub fn map1<T: Pod, M: Map1<T>>(level: Level, out: &mut [M::Out], a: &[T]) {
    debug_assert_eq!(out.len(), a.len());
    level.run(Loop1::<T, M>(out, a));
}

/// [`map1`] over bytes.
pub fn bytes1<T: Pod, M: Map1<T>>(level: Level, out: &mut [u8], a: &[u8]) {
    map1::<T, M>(level, cast_slice_mut(out), cast_slice(a));
}

/// `out[i] = M(a[i], b[i])`, over bytes; an operand of one element stands for all.
pub fn bytes2<T: Pod, M: Map2<T>>(level: Level, out: &mut [u8], a: &[u8], b: &[u8]) {
    let (size, width) = (size_of::<T>(), size_of::<M::Out>());
    let len = out.len() / width * size;
    if a.len() == len && b.len() == len {
        let (out, a, b) = (cast_slice_mut(out), cast_slice(a), cast_slice(b));
        return level.run(Loop2::<T, M>(out, a, b, PhantomData));
    }
    in_pieces((out, width), [(a, size), (b, size)], &mut |out, [a, b]| {
        bytes2::<T, M>(level, out, a, b);
    });
}

/// `out[i] = M(c[i], a[i], b[i])`, over bytes; an operand of one element stands for all.
pub fn bytes3<C: Pod, T: Pod, M: Map3<C, T>>(
    level: Level,
    out: &mut [u8],
    c: &[u8],
    a: &[u8],
    b: &[u8],
) {
    let (first, size) = (size_of::<C>(), size_of::<T>());
    let len = out.len() / size;
    if c.len() == len * first && a.len() == out.len() && b.len() == out.len() {
        let (c, a, b) = (cast_slice(c), cast_slice(a), cast_slice(b));
        return level.run(Loop3::<C, T, M>(cast_slice_mut(out), c, a, b, PhantomData));
    }
    in_pieces((out, size), [(c, first), (a, size), (b, size)], &mut |out, [c, a, b]| {
        bytes3::<C, T, M>(level, out, c, a, b);
    });
}
