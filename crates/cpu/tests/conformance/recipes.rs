//! A recipe that is read a tile at a time gives what it gives once it is resident, bit for bit.

use tonnage_core::recipe::{Distribution, Generator, Key, Recipe};
use tonnage_core::row::{Lower, OpDef, Sample, Values};
use tonnage_core::{Layout, Scalar, Sizes};

use crate::draw::{Random, for_every_sample};
use crate::exec::Engine;
use crate::exec::tensor::Tensor;

/// Recipes of that type: a fill, counting, random numbers, and these backwards and transposed.
fn recipes(like: &Tensor) -> Vec<Recipe> {
    let (dtype, sizes) = (like.dtype, like.layout.sizes.clone());
    if dtype == tonnage_core::DType::Bool {
        return vec![Recipe::fill(Scalar::Bool(true), dtype, sizes)];
    }
    let mut generators = vec![Generator::Count { start: 3.into(), step: 1.into(), dtype }];
    if dtype.is_float() {
        let (key, distribution) = (Key::Fixed([5, 6]), Distribution::Uniform);
        generators.push(Generator::Random { key, distribution, dtype });
    }
    let mut all = vec![Recipe::fill(2.into(), dtype, sizes.clone())];
    for generator in generators {
        let plain = Recipe::generate(generator.clone(), sizes.clone());
        let transposed: Sizes = sizes.iter().rev().copied().collect();
        let order: Vec<usize> = (0..sizes.len()).rev().collect();
        let transposed = Recipe::generate(generator, transposed)
            .view(sizes.clone(), |layout| Some(layout.transpose(&order)));
        let backwards = |layout: &Layout| {
            let mut layout = layout.clone();
            layout.offset = layout.count().saturating_sub(1);
            layout.strides.iter_mut().for_each(|s| *s = -*s);
            Some(layout)
        };
        let backwards = plain.view(sizes.clone(), backwards);
        all.push(plain);
        all.extend(transposed.into_iter().chain(backwards));
    }
    all
}

fn run(op: &'static OpDef, sample: &Sample, inputs: Vec<Tensor>) -> Result<Vec<Vec<u8>>, String> {
    let mut engine = Engine::plain();
    let made = engine.run(op, inputs, &sample.attrs, &sample.regions, true);
    let made = made.and_then(|made| made.into_iter().map(|t| engine.resident(t)).collect());
    let made: Vec<Tensor> = made.map_err(|e| e.to_string())?;
    Ok(made.iter().map(Tensor::bits).collect())
}

fn check(op: &'static OpDef, sample: &Sample, random: &mut Random) -> Result<(), String> {
    if !matches!(op.lower, Lower::Tile(_) | Lower::View(_)) {
        return Ok(());
    }
    let inputs = random.tensors(sample);
    for i in 0..inputs.len() {
        // Indices and bits mean something; any number will not do.
        if matches!(sample.inputs[i].values, Values::Below(_)) {
            continue;
        }
        // A variable has bytes.
        if matches!(op.mem, tonnage_core::row::Mem::Update(variable) if variable == i) {
            continue;
        }
        for recipe in recipes(&inputs[i]) {
            let recipe = Tensor::recipe(recipe);
            let resident = Engine::plain().resident(recipe.clone()).map_err(|e| e.to_string())?;
            let with = |tensor: Tensor| {
                let mut inputs = inputs.clone();
                inputs[i] = tensor;
                run(op, sample, inputs)
            };
            if with(recipe)? != with(resident)? {
                return Err(format!("input {i} as a recipe gives other bits"));
            }
        }
    }
    Ok(())
}

#[test]
fn recipes_give_what_resident_tensors_give() {
    for_every_sample(check);
}
