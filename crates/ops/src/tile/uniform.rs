//! A program whose inputs are the same everywhere: what it gives, without a tensor.
//!
//! The planner folds constants by it. It runs the very program that a kernel would run, on one element (or,
//! of a fold, on as many as are folded), so the bits are those of the kernel. It is pure: nothing is
//! obtained, nothing is remembered.

use bytemuck::{bytes_of, bytes_of_mut};
use smallvec::SmallVec;
use tonnage_core::layout::{Layout, Strides};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::workers::Alone;
use tonnage_core::{DType, FromScalar, Scalar, with_element};

use super::{Read, Source, run};

/// The most elements that a fold is run over: above, it is left to the call.
pub const MOST_FOLDED: usize = 4096;

/// The one value that a program of one store gives where each input has one value everywhere.
///
/// `None` where it has several stores or stores bits, where results could differ from each other, or where
/// the value is one that a scalar does not hold (a NaN with a payload of its own).
pub fn uniform(program: &TileProgram, domain: &[usize], inputs: &[Scalar]) -> Option<Scalar> {
    let [(_, Form::Elements(stored))] = program.stores.as_slice() else { return None };
    // Elements do not depend on each other: one stands for all.
    let domain = match program.close {
        Close::Store => &[],
        Close::Fold { .. } => domain,
    };
    let count: usize = domain.iter().try_fold(1usize, |n, d| n.checked_mul(*d))?;
    if count > MOST_FOLDED || program.loads.len() != inputs.len() {
        return None;
    }
    let results = match &program.close {
        Close::Store => 1,
        Close::Fold { axes, .. } => {
            (0..domain.len()).filter(|i| !axes.contains(i)).map(|i| domain[i]).product()
        }
    };
    if results == 0 || results > 512 || !super::scratch(program, domain).is_zero() {
        return None;
    }
    let mut held: SmallVec<[u64; 4]> = SmallVec::new();
    for (value, form) in inputs.iter().zip(&program.loads) {
        let Form::Elements(dtype) = form else { return None };
        held.push(bits(*value, *dtype));
    }
    let layout =
        Layout { sizes: domain.into(), strides: Strides::from_elem(0, domain.len()), offset: 0 };
    let sources: SmallVec<[Source; 4]> = held
        .iter()
        .zip(&program.loads)
        .map(|(bits, form)| {
            let size = match form {
                Form::Elements(dtype) => dtype.size(),
                Form::Bits => 0,
            };
            Source { layout: layout.clone(), read: Read::Slice(&bytes_of(bits)[..size]) }
        })
        .collect();
    let mut out = [0u64; 512];
    let out = &mut bytemuck::cast_slice_mut::<u64, u8>(&mut out)[..results * stored.size()];
    run(program, domain, &sources, &mut [&mut *out], &mut [], &Alone).ok()?;
    let mut chunks = out.chunks_exact(stored.size());
    let first = chunks.next()?;
    chunks.all(|x| x == first).then(|| scalar(first, *stored)).flatten()
}

/// A scalar as the element that it stands for, and back: two scalars that are the same element are equal.
pub fn element(value: Scalar, dtype: DType) -> Scalar {
    with_element!(dtype, T => T::from_scalar(value).to_scalar())
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

#[cfg(test)]
mod tests {
    use super::*;
    use tonnage_core::tile::{Fold, Prim};

    #[test]
    fn a_chain_of_numbers_is_a_number() {
        let mut program = TileProgram::loading(&[DType::F16, DType::F16]);
        let sum = program.push(Prim::Add, &[0, 1]);
        program.store(sum, DType::F16);
        let made = uniform(&program, &[7], &[Scalar::Float(1.0), Scalar::Float(1e-4)]);
        // 1.0001 is no f16: the kernel rounds, and so does this.
        assert_eq!(made, Some(Scalar::Float(1.0)));
    }

    #[test]
    fn a_fold_adds_up_as_many_as_there_are() {
        let mut program = TileProgram::loading(&[DType::F32]);
        program.store(0, DType::F32);
        program.fold(Fold::Sum, &[1]);
        assert_eq!(uniform(&program, &[3, 5], &[Scalar::Float(0.5)]), Some(Scalar::Float(2.5)));
        assert_eq!(uniform(&program, &[3, 0], &[Scalar::Float(0.5)]), Some(Scalar::Float(0.0)));
        assert_eq!(uniform(&program, &[0, 3], &[Scalar::Float(0.5)]), None);
        assert_eq!(uniform(&program, &[1, MOST_FOLDED + 1], &[Scalar::Float(0.5)]), None);
    }

    #[test]
    fn a_number_that_no_scalar_holds_is_left_alone() {
        let payload = f32::from_bits(0x7fa0_1234); // signalling: widening would make it quiet
        assert_eq!(scalar(bytes_of(&payload), DType::F32), None);
        assert_eq!(scalar(bytes_of(&-0.0f32), DType::F32), Some(Scalar::Float(-0.0)));
    }
}
