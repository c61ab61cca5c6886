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

/// An operand: a slice, or one element spread out.
struct MapOperand<'a, T> {
    slice: &'a [T],
    spread: Option<[T; SPREAD]>,
}

impl<'a, T: Pod> MapOperand<'a, T> {
    fn new(slice: &'a [T], len: usize) -> MapOperand<'a, T> {
        let spread = match slice {
            &[x] if len != 1 => Some([x; SPREAD]),
            _ => None,
        };
        debug_assert!(spread.is_some() || slice.len() == len, "{} for {len}", slice.len());
        MapOperand { slice, spread }
    }

    /// Elements `start` to `start + len`, `len` up to SPREAD.
    fn piece(&self, start: usize, len: usize) -> &[T] {
        match &self.spread {
            Some(spread) => &spread[..len],
            None => &self.slice[start..start + len],
        }
    }
}

/// `out[i] = M(a[i])`.
#[inline]
pub fn map1<T: Pod, M: Map1<T>>(level: Level, out: &mut [M::Out], a: &[T]) {
    debug_assert_eq!(out.len(), a.len());
    level.run(Loop1::<T, M>(out, a));
}

/// `out[i] = M(a[i], b[i])`; an operand of one element stands for all.
#[inline]
pub fn map2<T: Pod, M: Map2<T>>(level: Level, out: &mut [M::Out], a: &[T], b: &[T]) {
    if a.len() == out.len() && b.len() == out.len() {
        return level.run(Loop2::<T, M>(out, a, b, PhantomData));
    }
    let (a, b) = (MapOperand::new(a, out.len()), MapOperand::new(b, out.len()));
    for (i, out) in out.chunks_mut(SPREAD).enumerate() {
        let (start, len) = (i * SPREAD, out.len());
        level.run(Loop2::<T, M>(out, a.piece(start, len), b.piece(start, len), PhantomData));
    }
}

/// `out[i] = M(c[i], a[i], b[i])`; an operand of one element stands for all.
#[inline]
pub fn map3<C: Pod, T: Pod, M: Map3<C, T>>(level: Level, out: &mut [T], c: &[C], a: &[T], b: &[T]) {
    let n = out.len();
    if c.len() == n && a.len() == n && b.len() == n {
        return level.run(Loop3::<C, T, M>(out, c, a, b, PhantomData));
    }
    let (c, a, b) = (MapOperand::new(c, n), MapOperand::new(a, n), MapOperand::new(b, n));
    for (i, out) in out.chunks_mut(SPREAD).enumerate() {
        let (start, len) = (i * SPREAD, out.len());
        let (c, a, b) = (c.piece(start, len), a.piece(start, len), b.piece(start, len));
        level.run(Loop3::<C, T, M>(out, c, a, b, PhantomData));
    }
}

/// [`map1`] over bytes.
pub fn bytes1<T: Pod, M: Map1<T>>(level: Level, out: &mut [u8], a: &[u8]) {
    map1::<T, M>(level, cast_slice_mut(out), cast_slice(a));
}

/// [`map2`] over bytes.
pub fn bytes2<T: Pod, M: Map2<T>>(level: Level, out: &mut [u8], a: &[u8], b: &[u8]) {
    map2::<T, M>(level, cast_slice_mut(out), cast_slice(a), cast_slice(b));
}

/// [`map3`] over bytes.
pub fn bytes3<C: Pod, T: Pod, M: Map3<C, T>>(
    level: Level,
    out: &mut [u8],
    c: &[u8],
    a: &[u8],
    b: &[u8],
) {
    map3::<C, T, M>(level, cast_slice_mut(out), cast_slice(c), cast_slice(a), cast_slice(b));
}
