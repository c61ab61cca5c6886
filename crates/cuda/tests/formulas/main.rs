//! The headers of `kernels/` against the CPU's functions: every primitive, cast and random number, bit for bit.
//!
//! A program with a loop for each is written, compiled by this machine's C++ compiler and run; the same arrays go through
//! `tonnage_cpu` at a level that has a fused multiply-add.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod cases;
mod constants;
mod inputs;
mod program;

use tonnage_core::DType;
use tonnage_simd::{Level, level};

use cases::{Case, cases};
use inputs::{COUNT, Elements, Inputs};

/// How far apart two floats are, in units in the last place; `None` where one alone is NaN.
fn distance(dtype: DType, a: &[u8], b: &[u8]) -> Option<u64> {
    // Numbers in order, as integers: the negative ones count down from 0.
    fn place(bits: u64, sign: u64) -> i128 {
        let size = i128::from(bits & (sign - 1));
        if bits & sign != 0 { -size } else { size }
    }
    fn word(bytes: &[u8]) -> u64 {
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }
    let (x, y) = (word(a), word(b));
    let (sign, infinity) = match dtype {
        DType::F64 => (1 << 63, f64::INFINITY.to_bits()),
        DType::F32 => (1 << 31, u64::from(f32::INFINITY.to_bits())),
        DType::F16 => (1 << 15, 0x7c00),
        DType::BF16 => (1 << 15, 0x7f80),
        _ => return (x == y).then_some(0),
    };
    match (x & (sign - 1) > infinity, y & (sign - 1) > infinity) {
        (true, true) => Some(0),
        // Zeros of both signs are two numbers.
        (false, false) if x != y => {
            Some(place(x, sign).abs_diff(place(y, sign)).clamp(1, u128::from(u64::MAX)) as u64)
        }
        (false, false) => Some(0),
        _ => None,
    }
}

/// What differs more than it may, the first few of each case.
fn compare(case: &Case, inputs: &Inputs, got: &[u8], wanted: &Elements) -> Vec<String> {
    let size = case.out.size();
    let wanted = wanted.bytes();
    if got == wanted {
        return Vec::new();
    }
    let differ = (0..COUNT).filter_map(|i| {
        let at = i * size..(i + 1) * size;
        let (got, wanted) = (&got[at.clone()], &wanted[at]);
        let far = got != wanted
            && distance(case.out, got, wanted) > Some(case.may_differ(inputs, i))
            || distance(case.out, got, wanted).is_none();
        far.then(|| {
            format!(
                "{} at {i}: {got:02x?}, not {wanted:02x?}; {}",
                case.call,
                case.operands(inputs, i)
            )
        })
    });
    differ.take(3).collect()
}

#[test]
fn every_formula_has_the_bits_of_the_cpu() {
    if level() == Level::Portable && !cfg!(target_arch = "aarch64") {
        println!("SKIPPED: this machine has no fused multiply-add");
        return;
    }
    let Some(compiler) = program::compiler() else {
        println!("SKIPPED: there is no C++ compiler");
        return;
    };
    let inputs = Inputs::new();
    let cases = cases();
    let got = program::outputs(compiler, &inputs, &cases);
    let mut rest = &got[..];
    let mut differ = Vec::new();
    for case in &cases {
        let (now, later) = rest.split_at(COUNT * case.out.size());
        rest = later;
        differ.extend(compare(case, &inputs, now, &(case.wanted)(&inputs)));
    }
    assert!(rest.is_empty());
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn a_bit_more_or_less_is_a_difference_and_a_nan_of_another_payload_is_not() {
    let apart = |a: f32, b: f32| distance(DType::F32, &a.to_le_bytes(), &b.to_le_bytes());
    assert_eq!(apart(1.0, 1.0), Some(0));
    assert_eq!(apart(1.0, 1f32.next_up().next_up()), Some(2));
    assert_eq!(apart(0.0, -0.0), Some(1));
    assert_eq!(apart(f32::NAN, -f32::NAN), Some(0));
    assert_eq!(apart(f32::NAN, f32::INFINITY), None);
    assert_eq!(distance(DType::Bool, &[1], &[0]), None);
}
