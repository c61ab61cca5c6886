//! Calls that are almost right: other ranks and lengths, sizes that overflow, indices out of range, NaN and infinities. Each
//! is an error or a result, never a panic; what has a type runs; what names a place that is not there is refused.

use std::collections::HashSet;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tonnage_core::row::{Call, Fails, OpDef, Sample, Values};
use tonnage_core::{Attrs, Dim, TensorType};
use tonnage_ops::TABLE;

use crate::draw::{Random, for_every_sample, none};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::plain::Plain;
use crate::types::{all_attrs, ask};

/// Bodies take what they were made for, and closures what their users give.
fn is_plain(sample: &Sample) -> bool {
    sample.regions.is_empty() && !matches!(sample.attrs, Attrs::Host { .. })
}

fn types_of(sample: &Sample) -> Vec<TensorType> {
    sample.inputs.iter().map(|input| input.ty.clone()).collect()
}

#[test]
fn attributes_of_every_kind_are_tried_on_every_op() {
    let tried: HashSet<_> = all_attrs().iter().map(discriminant).collect();
    let mut missing = Vec::new();
    for op in TABLE {
        for sample in (op.samples)().iter().filter(|sample| is_plain(sample)) {
            if !tried.contains(&discriminant(&sample.attrs)) {
                missing.push(format!("{}: {:?}", op.name, sample.attrs));
            }
        }
    }
    none(missing);
}

/// Lengths and ranks that differ from the sample's in one place.
fn changed(types: &[TensorType]) -> Vec<Vec<TensorType>> {
    let mut all = Vec::new();
    for i in 0..types.len() {
        let mut with = |shape: Vec<Dim>| {
            let mut types = types.to_vec();
            types[i].shape = shape.into_iter().collect();
            all.push(types);
        };
        let dims: Vec<Dim> = types[i].shape.iter().cloned().collect();
        with([&[Dim::Known(1)], &dims[..]].concat());
        with([&dims[..], &[Dim::Known(2)]].concat());
        if !dims.is_empty() {
            with(dims[1..].to_vec());
        }
        for axis in 0..dims.len() {
            let size = dims[axis].known().expect("samples are known");
            for other in [0, 1, size + 1] {
                let mut dims = dims.clone();
                dims[axis] = Dim::Known(other);
                with(dims);
            }
        }
    }
    all
}

fn check_shapes(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let types = types_of(sample);
    let count: usize = types.iter().filter_map(|ty| ty.shape.count()).sum();
    if !is_plain(sample) || count > 300 {
        return Ok(());
    }
    for types in changed(&types) {
        let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &[] };
        if ask(op, &call).is_err() {
            continue;
        }
        let mut other = sample.clone();
        other.inputs.iter_mut().zip(&types).for_each(|(input, ty)| input.ty = ty.clone());
        // Matrices with special values have to stay square to be drawn.
        let square = |input: &tonnage_core::row::SampleInput| match input.values {
            Values::PositiveDefinite | Values::Invertible => {
                let sizes = &input.ty.shape;
                sizes.rank() >= 2 && sizes[sizes.rank() - 1] == sizes[sizes.rank() - 2]
            }
            _ => true,
        };
        if !other.inputs.iter().all(square) {
            continue;
        }
        let made = Engine::plain().run(op, random.tensors(&other), &other.attrs, &[], false);
        match made {
            Err(error) if op.fails == Fails::Never => {
                return Err(format!("{types:?} has a type but does not run: {error}"));
            }
            _ => {}
        }
    }
    Ok(())
}

#[test]
fn other_ranks_and_lengths_are_refused_or_run() {
    for_every_sample(check_shapes);
}

fn check_huge(op: &'static OpDef, sample: &Sample, _: &mut Random) -> Result<(), String> {
    let types = types_of(sample);
    for huge in [1 << 31, 1 << 62, usize::MAX] {
        let axes = types.iter().map(|ty| ty.shape.rank()).max().unwrap_or(0);
        // One axis of one input, the same axis of all, and everything.
        for axis in 0..axes {
            for input in (0..types.len()).map(Some).chain([None]) {
                let mut types = types.clone();
                for (i, ty) in types.iter_mut().enumerate() {
                    if input.is_none_or(|input| input == i) && axis < ty.shape.rank() {
                        ty.shape[axis] = Dim::Known(huge);
                    }
                }
                let call = Call {
                    op: op.name,
                    inputs: &types,
                    attrs: &sample.attrs,
                    regions: &sample.regions,
                };
                let _ = ask(op, &call);
            }
        }
        let mut types = types.clone();
        types.iter_mut().for_each(|ty| ty.shape.iter_mut().for_each(|d| *d = Dim::Known(huge)));
        let call =
            Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
        let _ = ask(op, &call);
    }
    Ok(())
}

#[test]
fn sizes_that_overflow_are_no_panic() {
    for_every_sample(check_huge);
}

fn run(op: &'static OpDef, sample: &Sample, inputs: &[Plain]) -> Result<bool, String> {
    let tensors: Vec<Tensor> = inputs.iter().map(Tensor::from_plain).collect();
    let run = || Engine::plain().run(op, tensors, &sample.attrs, &[], false).is_ok();
    catch_unwind(AssertUnwindSafe(run)).map_err(|_| "a panic".into())
}

fn check_indices(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    if op.fails != Fails::OnData || !is_plain(sample) {
        return Ok(());
    }
    let inputs = random.inputs(sample);
    for (i, input) in sample.inputs.iter().enumerate() {
        let Values::Below(below) = input.values else { continue };
        let signed = !matches!(input.ty.dtype.to_string().as_bytes()[0], b'u');
        let bits = 8 * input.ty.dtype.size() as i32 - i32::from(signed);
        let most = 2f64.powi(bits.min(40)) - 1.0;
        // A byte may hold nothing that is out of range: samples draw from less than there is.
        let wide = input.ty.dtype.size() > 1 && most >= below as f64;
        let beyond = wide.then_some(most);
        for bad in beyond.into_iter().chain(signed.then_some(-1.0)) {
            for at in [0, inputs[i].values.len().saturating_sub(1)] {
                let mut changed = inputs.clone();
                let Some(place) = changed[i].values.get_mut(at) else { continue };
                *place = bad;
                if run(op, sample, &changed)? {
                    return Err(format!("{bad} at {at} of input {i} is accepted"));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn indices_out_of_range_are_refused() {
    for_every_sample(check_indices);
}

/// Where a result is no number, the op ends all the same, with a result or an error that says so.
fn check_numbers(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    if !is_plain(sample) {
        return Ok(());
    }
    let inputs = random.inputs(sample);
    for (i, input) in inputs.iter().enumerate().filter(|(_, input)| input.dtype.is_float()) {
        for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0] {
            for everywhere in [false, true] {
                let mut changed = inputs.clone();
                let values = &mut changed[i].values;
                let places = if everywhere { values.len() } else { values.len().min(1) };
                values[..places].fill(odd);
                if !run(op, sample, &changed)? && op.fails == Fails::Never {
                    return Err(format!("{odd} in input {i} of {} is an error", input.ty()));
                }
            }
        }
    }
    Ok(())
}

#[test]
fn nan_infinities_and_zeros_are_results_or_errors_of_their_own() {
    for_every_sample(check_numbers);
}
