//! Ops that call the program around: closures that are lent what kernels are lent.
//!
//! `print`, `assertion` and `host_callback` have an effect: each runs once where the program says, in the order of the
//! program, and is never merged, dropped or recomputed. `pure_callback` has none. None of them costs anything as far
//! as a plan knows, so a closure runs on the thread of its caller and not on one of the pool, where whoever waits for
//! the pool would wait for it.

pub mod assertion;
pub mod callback;
pub mod print;
pub mod pure;

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::lent::{In, Out};
use tonnage_core::row::{AxisMap, Call, Cost, Sample, Types};
use tonnage_core::{DType, HostCall, TensorType};

use crate::rules;

const WHY: &str = "what a callback computes is not known; say its gradient with `custom_gradient`, or `stop_gradient` of its inputs";

/// The types that the closure promised.
fn infer(call: &Call) -> Result<Types> {
    match call.attrs {
        Attrs::Host { results, .. } => Ok(results.iter().cloned().collect()),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Nothing comes of it.
fn infer_nothing(call: &Call) -> Result<Types> {
    let types = infer(call)?;
    match types.is_empty() {
        true => Ok(types),
        false => Err(bad_argument(call.op, "results", "it has none")),
    }
}

/// A closure sees whole tensors: nothing can be cut.
fn axes(call: &Call) -> AxisMap {
    let ranks: Vec<usize> =
        infer(call).map_or(Vec::new(), |types| types.iter().map(|ty| ty.shape.rank()).collect());
    rules::axes::mixed(&ranks)
}

fn cost(_: &Call) -> Cost {
    Cost::default()
}

/// A closure that looks and returns nothing.
fn looking() -> Vec<Sample> {
    let call = Arc::new(HostCall::new("looks", |_: &[In], _: &mut [Out]| Ok(())));
    let of = |types: &[TensorType]| {
        Sample::of(types, Attrs::Host { call: call.clone(), results: Vec::new() })
    };
    let matrix = TensorType::new(DType::F32, [2, 3]);
    let none = TensorType::new(DType::I64, [0]);
    vec![of(&[]), of(std::slice::from_ref(&matrix)), of(&[matrix.clone(), none])]
}

/// Closures that return twice what they are given.
fn doubling() -> Vec<Sample> {
    let of = |sizes: &[usize]| {
        let ty = TensorType::new(DType::F32, sizes);
        let call = HostCall::new("twice", |inputs: &[In], outputs: &mut [Out]| {
            let (from, mut at) = (inputs[0].slice::<f32>(), 0);
            let to = outputs[0].slice::<f32>();
            inputs[0].layout.for_each(|i| {
                to[at] = 2.0 * from[i];
                at += 1;
            });
            Ok(())
        });
        let attrs = Attrs::Host { call: Arc::new(call), results: vec![ty.clone()] };
        Sample::of(&[ty], attrs)
    };
    vec![of(&[]), of(&[2, 3]), of(&[0, 3]), of(&[1025])]
}
