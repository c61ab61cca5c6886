//! Recipes among the inputs of a plan. A plan depends on how a recipe is built, not on which random numbers it
//! draws, which file it reads or which number it is: those are brought by each call. So a new random batch, or another learning
//! rate, is not another plan.
//!
//! Decision: `docs/decisions/plans-know-the-form-of-a-recipe.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::recipe::{Generator, Key, Recipe};
use tonnage_core::{DType, Scalar};
use tonnage_plan::InputSpec;

use crate::array::Array;
use crate::storage::Storage;

/// What calls bring, in the order of their inputs.
pub type InputGenerators = SmallVec<[Generator; 2]>;

/// What is known of the inputs of a call for planning, one after the other, and what they bring. Both are taken
/// at once: a recipe may become resident at any time, by whoever else holds it.
#[derive(Debug, Default)]
pub struct Specs {
    /// Storages that were counted already.
    seen: Vec<*const Storage>,
    given: InputGenerators,
}

impl Specs {
    /// The next input, which the call may overwrite if it is donated.
    pub fn of(&mut self, array: &Array, donated: bool) -> InputSpec {
        match array.as_recipe() {
            Some(recipe) => InputSpec::Recipe(self.general(recipe)),
            None => super::spec(array, donated, &mut self.seen),
        }
    }

    /// What the inputs so far bring.
    pub fn given(&self) -> &InputGenerators {
        &self.given
    }

    /// The recipe with what a call brings left open.
    fn general(&mut self, recipe: Arc<Recipe>) -> Arc<Recipe> {
        let brought = brought(&recipe);
        if brought.is_empty() {
            return recipe;
        }
        let mut number = self.given.len() as u32;
        self.given.extend(brought);
        let mut next = |dtype, stored| {
            number += 1;
            Generator::Given { number: number - 1, dtype, stored }
        };
        if recipe.sources.is_empty() {
            let sizes = recipe.sizes.clone();
            return Arc::new(Recipe::generate(next(recipe.dtype(), false), sizes));
        }
        let mut made = (*recipe).clone();
        for (generator, _) in made.sources.iter_mut().filter(|(g, _)| is_brought(g)) {
            *generator = next(generator.dtype(), generator.is_stored());
        }
        Arc::new(made)
    }
}

fn is_brought(generator: &Generator) -> bool {
    matches!(generator, Generator::Random { key: Key::Fixed(_), .. } | Generator::Stored { .. })
}

/// What a call brings for a recipe: random numbers, files, or the number that it is.
fn brought(recipe: &Recipe) -> InputGenerators {
    match one_number(recipe) {
        Some(generator) => SmallVec::from_iter([generator]),
        None => recipe.sources.iter().map(|(g, _)| g).filter(|g| is_brought(g)).cloned().collect(),
    }
}

/// A recipe of one element that is a number, as a sequence that gives it to the bit. A larger fill stays part
/// of the plan: as a constant it is quicker than as a sequence.
fn one_number(recipe: &Recipe) -> Option<Generator> {
    let value = recipe.uniform().filter(|_| recipe.sizes.iter().product::<usize>() == 1)?;
    let dtype = recipe.dtype();
    let (start, step) = match (value, dtype) {
        (_, DType::Bool) => return None,
        // A sequence adds 0, which takes the sign of -0.
        (Scalar::Float(x), _) if x == 0.0 && x.is_sign_negative() => return None,
        // 16-bit numbers are rounded from f32, as the constant is.
        (Scalar::Float(x), DType::F16 | DType::BF16) => (f64::from(x as f32).into(), 0.0.into()),
        (Scalar::Float(_), _) => (value, 0.0.into()),
        (Scalar::Int(x), _) if x.unsigned_abs() < 1 << 24 => (value, Scalar::Int(0)),
        _ => return None,
    };
    Some(Generator::Count { start, step, dtype })
}
