//! What rows say about memory: in place equals out of place, and what is shared is left alone.

use tonnage_core::row::{Lower, Mem, OpDef, Sample};
use tonnage_cpu::workers::Alone;

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;

fn run(
    op: &'static OpDef,
    sample: &Sample,
    inputs: Vec<Tensor>,
    in_place: bool,
    aux: bool,
) -> Result<Vec<Tensor>, String> {
    let mut engine = Engine::on(&Alone, in_place);
    let made = engine.run(op, inputs, &sample.attrs, &sample.regions, aux);
    let made = made.and_then(|made| made.into_iter().map(|t| engine.resident(t)).collect());
    made.map_err(|e: tonnage_core::Error| e.to_string())
}

fn bits(tensors: &[Tensor]) -> Vec<Vec<u8>> {
    tensors.iter().map(Tensor::bits).collect()
}

/// Each input that may be taken over is given up in turn, while the others are held.
fn check_in_place(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let given: Vec<usize> = match op.mem {
        Mem::Reuse(named) => named.iter().copied().filter(|i| *i < sample.inputs.len()).collect(),
        Mem::Update(variable) => vec![variable],
        _ => return Ok(()),
    };
    let inputs = random.tensors(sample);
    for aux in [false, true] {
        let expected = run(op, sample, inputs.clone(), false, aux)?;
        for i in &given {
            let mut mine = inputs.clone();
            mine[*i] = inputs[*i].copy();
            let (ty, at) = (mine[*i].ty(), mine[*i].bytes().as_ptr());
            let made = run(op, sample, mine, true, aux)?;
            if bits(&made) != bits(&expected) {
                return Err(format!("input {i} in place gives something else"));
            }
            // A composite is as good as its parts; all others must take what they are given.
            let fits = made.iter().any(|made| made.ty() == ty);
            let taken = made.iter().any(|made| made.bytes().as_ptr() == at);
            if fits && !taken && !matches!(op.lower, Lower::Composite(_)) {
                return Err(format!("input {i} was not taken over: nothing was shown"));
            }
        }
    }
    Ok(())
}

#[test]
fn in_place_equals_out_of_place() {
    for_every_sample(check_in_place);
}

/// Inputs that somebody else holds keep their bytes, even where the row would take them over.
fn check_shared(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    let inputs = random.tensors(sample);
    let before = bits(&inputs);
    let aside = run(op, sample, inputs.clone(), true, true)?;
    if before != bits(&inputs) {
        return Err("a shared input was written to".into());
    }
    // And all given up at once.
    let alone = run(op, sample, inputs.iter().map(Tensor::copy).collect(), true, true)?;
    if bits(&aside) == bits(&alone) {
        Ok(())
    } else {
        Err("giving up inputs gives something else".into())
    }
}

#[test]
fn a_shared_input_is_left_untouched() {
    for_every_sample(check_shared);
}
