//! Values against the references, for every op and every sample.

use tonnage_core::row::{Lower, OpDef, Sample};
use tonnage_core::{Attrs, DType};
use tonnage_ops::TABLE;

use crate::draw::{Random, for_every_sample, none};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;
use crate::plain::{Answer, Plain};
use crate::reference::{self, Asked};

/// Units in the last place that a result may be off: a few for polynomials and sums in f32 and f64; one for
/// 16-bit floats, which are computed in f32 and rounded once; a few more where ops follow one another.
fn allowed(op: &OpDef, dtype: DType) -> f64 {
    match (op.lower, dtype) {
        // Sums over iterations, some of whose terms cancel.
        (_, DType::F32) if op.name == "while_grad" => 100.0,
        (Lower::Composite(_) | Lower::Region(_), _) => 16.0,
        (_, DType::F16 | DType::BF16) => 1.0,
        _ => 8.0,
    }
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let inputs = random.inputs(sample);
    compare(op, sample, &inputs)
}

/// What the reference gives.
pub fn expected(
    op: &OpDef,
    sample: &Sample,
    attrs: &Attrs,
    inputs: &[Plain],
) -> Result<Vec<Answer>, String> {
    let reference = reference::find(op.name).ok_or("no reference")?;
    Ok(reference(&Asked { inputs, attrs, regions: &sample.regions }))
}

/// What is wrong with results, against a reference.
pub fn differ(op: &OpDef, made: &[Plain], expected: &[Answer]) -> Result<(), String> {
    if made.len() != expected.len() {
        return Err(format!("{} outputs, not {}", made.len(), expected.len()));
    }
    for (i, (made, expected)) in made.iter().zip(expected).enumerate() {
        if let Some(problem) = expected.differs(made, allowed(op, made.dtype)) {
            return Err(format!("output {i}: {problem}"));
        }
    }
    Ok(())
}

/// Runs the op and its reference on those inputs.
pub fn compare(op: &'static OpDef, sample: &Sample, inputs: &[Plain]) -> Result<(), String> {
    let tensors = inputs.iter().map(Tensor::from_plain).collect();
    let mut engine = Engine::plain();
    let made = engine
        .run(op, tensors, &sample.attrs, &sample.regions, false)
        .and_then(|made| {
            made.into_iter().map(|t| engine.resident(t)).collect::<Result<Vec<_>, _>>()
        })
        .map_err(|e| e.to_string())?;
    let made: Vec<Plain> = made.iter().map(Tensor::plain).collect();
    differ(op, &made, &expected(op, sample, &sample.attrs, inputs)?)
}

#[test]
fn every_op_has_a_reference_and_a_sample() {
    let missing = |op: &&OpDef| {
        let (reference, samples) = (reference::find(op.name).is_some(), (op.samples)().len());
        (!reference || samples == 0)
            .then(|| format!("{}: reference {reference}, {samples} samples", op.name))
    };
    none(TABLE.iter().copied().filter_map(|op| missing(&op)).collect());
}

#[test]
fn names_are_unique_and_in_snake_case() {
    let odd = |op: &&&OpDef| {
        let snake =
            op.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        let unique = TABLE.iter().filter(|other| other.name == op.name).count() == 1;
        !snake || !unique || op.doc.is_empty()
    };
    none(TABLE.iter().filter(odd).map(|op| op.name.to_string()).collect());
}

#[test]
fn values_are_those_of_the_references() {
    for_every_sample(check);
}
