//! What an op and a call cost by themselves.

use std::hint::black_box;

use tonnage::{Bytes, Result, Tensor, function};

use super::{Limit, Workload, normal};
use crate::measure::PreparedWorkload;

/// Calls between two looks at the clock.
const CALLS: usize = 10_000;

/// An eager addition of 16 numbers.
pub const ADD: Workload = Workload {
    name: "small_add",
    sizes: &[("n", 16)],
    make: |sizes, _| {
        let (a, b) = (normal(&[sizes.get("n")])?, normal(&[sizes.get("n")])?);
        Ok(many(move || (&a + &b).map(drop)))
    },
    limit: nothing,
};

/// A call of a planned function that does the same.
pub const CALL: Workload = Workload {
    name: "small_call",
    sizes: &[("n", 16)],
    make: |sizes, _| {
        let (a, b) = (normal(&[sizes.get("n")])?, normal(&[sizes.get("n")])?);
        let f = function(|(a, b): (Tensor, Tensor)| a + b);
        Ok(many(move || f.call((a.clone(), b.clone())).map(drop)))
    },
    limit: nothing,
};

fn nothing(_: &crate::sizes::WorkloadSizes) -> Limit {
    Limit { flops: 0.0, bytes: 0.0 }
}

fn many(mut f: impl FnMut() -> Result<()> + 'static) -> PreparedWorkload {
    PreparedWorkload {
        step: Box::new(move || (0..CALLS).try_for_each(|_| black_box(f()))),
        state: Box::new(|| Ok(Bytes::ZERO)),
        plan: None,
        calls: CALLS,
    }
}
