//! Programs that nobody wrote: random ops on random tensors, as a function and eagerly. The bits are the same,
//! and the memory is what was predicted.
//!
//! With `TONNAGE_SOAK` set there are many more of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{DType, Result, Tensor, function};

use crate::common::dice::{Dice, Seed};
use crate::common::random::{arguments, bits, op};
use crate::common::{call_checked, own_context};

/// What arguments are of.
const DTYPES: [DType; 6] = [DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::I32];

/// The program of a seed: the tensors that nobody used, and the last one.
fn program(seed: u64, arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let mut dice = Dice(seed);
    let mut all = arguments;
    let steps = 4 + dice.below(24);
    for _ in 0..steps {
        // Nothing grows without end.
        if let Some(made) = op(&mut dice, &all)?
            && made.shape().count().is_some_and(|n| n <= 4096)
        {
            all.push(made);
        }
    }
    let last = all.len();
    let keep = 1 + dice.below(3);
    Ok(all.split_off(last.saturating_sub(keep)))
}

#[test]
fn random_programs_give_the_eager_bits_soak() {
    let _context = own_context();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 20_000 } else { 300 };
    for seed in 0..count {
        let _told = Seed(seed);
        let given = arguments(seed, &DTYPES);
        let expected = program(seed, given.clone()).unwrap();
        let f = function(move |x: Vec<Tensor>| program(seed, x));
        let got = call_checked(&f, &given);
        assert_eq!(got.len(), expected.len());
        for (i, (x, y)) in got.iter().zip(&expected).enumerate() {
            let graph = f.graph(&given).unwrap();
            assert_eq!(x.ty(), y.ty(), "seed {seed}, result {i}\n{graph}");
            assert_eq!(bits(x), bits(y), "seed {seed}, result {i}\n{graph}");
        }
    }
}
