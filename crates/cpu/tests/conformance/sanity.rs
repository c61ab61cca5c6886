//! Costs, aux types, scratch and what is saved for the backward pass: figures that the planner builds on.

use tonnage_core::row::{Call, Grad, Lower, Mem, OpDef, Remat, Sample, Save};
use tonnage_core::tile::Form;
use tonnage_core::{Attrs, TensorType};

use crate::draw::{Random, for_every_sample};
use crate::exec::scratch;

fn check(op: &'static OpDef, sample: &Sample, _: &mut Random) -> Result<(), String> {
    let text = |e: tonnage_core::Error| e.to_string();
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let made = (op.infer)(&call).map_err(text)?;
    let aux = (op.saves.aux)(&call).map_err(text)?;
    let say = |wrong: bool, what: &str| if wrong { Err(what.to_string()) } else { Ok(()) };

    let bytes = |ty: &TensorType| ty.bytes(op.name).map(|b| b.get()).map_err(text);
    let written: u64 = made.iter().map(bytes).sum::<Result<u64, _>>()?;
    let read: u64 = types.iter().map(bytes).sum::<Result<u64, _>>()?;
    let cost = (op.cost)(&call);
    match op.lower {
        Lower::View(_) | Lower::Recipe(_) => say(cost.bytes != 0, "a description costs bytes")?,
        Lower::Tile(_) | Lower::Kernel | Lower::Composite(_) => {
            // An update leaves a variable, of which it may have written some rows alone.
            let written = if let Mem::Update(_) = op.mem { 0 } else { written };
            // Of a closure nobody knows what it moves.
            let known = !matches!(sample.attrs, Attrs::Host { .. });
            say(known && cost.bytes < written, "it writes more bytes than it says")?;
            let all = 16 * (read + written);
            say(cost.bytes > all, "it says it moves far more bytes than there are")?;
        }
        Lower::Region(_) => {}
        Lower::Transfer(_) => say(true, "only plans have such steps")?,
    }
    let (one, three) = (scratch(op, &call, 1), scratch(op, &call, 3));
    say(three < one, "more threads ask for less scratch")?;

    for saved in op.saves.alternatives.iter().flat_map(|a| a.iter()) {
        let there = match saved.save {
            Save::Input(i) => i < types.len(),
            Save::Output(i) => i < made.len(),
            Save::Aux(i) => i < aux.len(),
            Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => true,
        };
        say(!there, "something is saved that is not there")?;
        say(saved.by.is_some_and(|i| i >= types.len()), "saved for an input that is not there")?;
    }
    say(op.saves.alternatives.is_empty(), "no alternative: not even types only")?;
    say(matches!(op.grad, Grad::Stop("")), "no gradient, and no reason")?;

    match op.mem {
        Mem::View(i) | Mem::Update(i) => say(i >= types.len(), "memory of an input not there")?,
        _ => {}
    }
    if let Mem::Update(i) = op.mem {
        say(op.remat != Remat::Never, "an update may be recomputed")?;
        say(made[0] != types[i], "an update changes the variable's type")?;
    }
    let pairs = [
        (matches!(op.lower, Lower::View(_)), matches!(op.mem, Mem::View(_))),
        (matches!(op.lower, Lower::Recipe(_)), matches!(op.mem, Mem::Recipe)),
        (!sample.regions.is_empty(), matches!(op.mem, Mem::Regions)),
    ];
    say(pairs.iter().any(|(a, b)| a != b), "`lower` and `mem` disagree")?;

    if let Lower::Tile(program) = op.lower {
        for with_aux in [false, true] {
            let program = program(&call, with_aux).map_err(text)?;
            let outputs: Vec<&TensorType> =
                made.iter().chain(aux.iter().filter(|_| with_aux)).collect();
            let stored = program.stores.iter().map(|(_, form)| match form {
                Form::Elements(dtype) => *dtype,
                Form::Bits => tonnage_core::DType::U8,
            });
            say(!stored.eq(outputs.iter().map(|ty| ty.dtype)), "it stores other dtypes")?;
            say(!tonnage_cpu::tile::LIMITS.fit(&program), "too many registers")?;
        }
    }
    Ok(())
}

#[test]
fn figures_fit_the_types() {
    for_every_sample(check);
}
