//! A program whose inputs are the same everywhere: what it gives, without a tensor.

use std::borrow::Cow;

use bytemuck::{bytes_of, bytes_of_mut};
use smallvec::SmallVec;
use tonnage_core::layout::{Layout, Strides};
use tonnage_core::tile::{Close, Form, Reduction, TileProgram};
use tonnage_core::{DType, FromScalar, Scalar, with_element};

use super::{Read, TileSource, run};
use crate::workers::Alone;

/// The most elements that a reduction into several results is run over: above, it is left to the call. A reduction into one takes
/// microseconds for any number of elements, since all of them are the same; but for products.
pub const MOST_REDUCED: usize = 4096;

/// Partial results of such a reduction.
const PARTIALS: usize = 64;

/// The one value that a program of one store gives where each input has one value everywhere.
///
/// `None` where it has several stores or stores bits, where results could differ from each other, or where
/// the value is one that a scalar does not hold (a NaN with a payload of its own).
pub fn uniform(program: &TileProgram, domain: &[usize], inputs: &[Scalar]) -> Option<Scalar> {
    let [(_, Form::Elements(stored))] = program.stores.as_slice() else { return None };
    // Elements do not depend on each other: one stands for all.
    let domain = match program.close {
        Close::Store => &[],
        Close::Reduce { .. } => domain,
    };
    let count: usize = domain.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    if program.loads.len() != inputs.len() {
        return None;
    }
    let results = match &program.close {
        Close::Store => 1,
        Close::Reduce { axes, .. } => {
            (0..domain.len()).filter(|i| !axes.contains(i)).map(|i| domain[i]).product()
        }
    };
    let mut scratch = [0u64; PARTIALS];
    let scratch: &mut [u8] = bytemuck::cast_slice_mut(&mut scratch);
    let needed = super::scratch(program, domain).as_usize();
    let long =
        results > 1 || matches!(program.close, Close::Reduce { reduction: Reduction::Prod, .. });
    let many = count > MOST_REDUCED && long;
    if results == 0 || results > 512 || many || needed > scratch.len() {
        return None;
    }
    let mut held: SmallVec<[u64; 4]> = SmallVec::new();
    for (value, form) in inputs.iter().zip(&program.loads) {
        let Form::Elements(dtype) = form else { return None };
        held.push(bits(*value, *dtype));
    }
    let layout =
        Layout { sizes: domain.into(), strides: Strides::from_elem(0, domain.len()), offset: 0 };
    let sources: SmallVec<[TileSource; 4]> = held
        .iter()
        .zip(&program.loads)
        .map(|(bits, form)| {
            let size = match form {
                Form::Elements(dtype) => dtype.size(),
                Form::Bits => 0,
            };
            TileSource {
                layout: Cow::Borrowed(&layout),
                read: Read::Slice(&bytes_of(bits)[..size]),
            }
        })
        .collect();
    let mut out = [0u64; 512];
    let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut out)[..results * stored.size()];
    run(program, domain, &sources, &mut [&mut *out], scratch, &Alone).ok()?;
    let mut chunks = out.chunks_exact(stored.size());
    let first = chunks.next()?;
    chunks.all(|x| x == first).then(|| scalar(first, *stored)).flatten()
}

fn bits(value: Scalar, dtype: DType) -> u64 {
    let mut bits = 0u64;
    with_element!(dtype, T => {
        let value = T::from_scalar(value);
        bytes_of_mut(&mut bits)[..size_of::<T>()].copy_from_slice(bytes_of(&value));
    });
    bits
}

/// The element as a scalar, where the scalar gives the same bits again.
fn scalar(bytes: &[u8], dtype: DType) -> Option<Scalar> {
    with_element!(dtype, T => {
        let value: T = bytemuck::pod_read_unaligned(bytes);
        let scalar = value.to_scalar();
        let is = |other: f64| bytes_of(&T::from_scalar(Scalar::Float(other))) == bytes;
        // What becomes of a payload on its way through a scalar is up to the compiler: it is not asked.
        let holds = match scalar {
            Scalar::Float(x) if x.is_nan() => is(f64::NAN) || is(-f64::NAN),
            _ => bytes_of(&T::from_scalar(scalar)) == bytes,
        };
        holds.then_some(scalar)
    })
}
