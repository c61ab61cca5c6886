//! What the generators of a plan are in one run: random numbers of its key, and what the inputs of the call bring.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use tonnage_core::philox;
use tonnage_core::recipe::{Generator, Key, Recipe};

use super::recipe_inputs::InputGenerators;
use crate::random::RunKey;

/// The key of a run and what its call brings, which is the call's in bodies and branches too.
#[derive(Clone, Copy)]
pub struct Generators<'p> {
    key: RunKey,
    given: &'p InputGenerators,
    /// Whether the key was used.
    pub drew: &'p AtomicBool,
}

impl<'p> Generators<'p> {
    /// Those of a run, which notes in `drew` that it used its key.
    pub fn new(key: RunKey, given: &'p InputGenerators, drew: &'p AtomicBool) -> Generators<'p> {
        Generators { key, given, drew }
    }

    /// Those of a region: the same random numbers each time that it is run for that row. Without a key of its own it
    /// draws those of this run.
    pub fn of_region(&self, key: Option<Key>, region: u32, row: u64) -> Generators<'p> {
        // Regions are told apart from random ops by the highest bit.
        let own = match key {
            None => return *self,
            Some(Key::Fixed(key)) => mix(key, 1 << 31, 0),
            Some(Key::PerCall(n)) => mix(self.key.words(), 1 << 31 | n, 0),
        };
        Generators { key: RunKey::Words(mix(own, region, row)), given: self.given, drew: self.drew }
    }

    /// A planned generator with the key of this run, or what the call brings for it.
    pub fn bind(&self, planned: &Generator) -> Generator {
        match *planned {
            Generator::Given { number, .. } => {
                self.given.get(number as usize).unwrap_or(planned).clone()
            }
            Generator::Random { key: Key::PerCall(n), distribution, dtype } => {
                self.drew.store(true, Relaxed);
                let key = Key::Fixed(mix(self.key.words(), n, 0));
                Generator::Random { key, distribution, dtype }
            }
            _ => planned.clone(),
        }
    }

    /// A recipe that leaves a run: its random numbers are those of that run, whenever it is read.
    pub fn bind_recipe(&self, planned: &Arc<Recipe>) -> Arc<Recipe> {
        if planned.sources.iter().all(|(generator, _)| self.bind(generator) == *generator) {
            return planned.clone();
        }
        let mut made = (**planned).clone();
        for (generator, _) in &mut made.sources {
            *generator = self.bind(generator);
        }
        Arc::new(made)
    }
}

/// A key of its own for the n-th random op, or the n-th region, in its i-th iteration.
fn mix(key: [u32; 2], n: u32, i: u64) -> [u32; 2] {
    let words = philox::block(key, [n, i as u32, (i >> 32) as u32, 0x746f_6e6e]);
    [words[0], words[1]]
}

#[cfg(test)]
mod tests {
    use tonnage_core::DType;
    use tonnage_core::recipe::Distribution;

    use super::*;

    #[test]
    fn a_region_draws_the_same_for_the_same_row_and_other_numbers_for_another() {
        let planned = Generator::Random {
            key: Key::PerCall(1),
            distribution: Distribution::Uniform,
            dtype: DType::F32,
        };
        let given = InputGenerators::new();
        let drew = AtomicBool::new(false);
        let call = Generators::new(RunKey::Words([1, 2]), &given, &drew);
        let drawn = |key, region, row| call.of_region(key, region, row).bind(&planned);
        let key = Some(Key::PerCall(7));
        assert_eq!(drawn(key, 1, 5), drawn(key, 1, 5));
        assert_ne!(drawn(key, 1, 5), drawn(key, 1, 6));
        assert_ne!(drawn(key, 1, 5), drawn(key, 0, 5));
        assert_ne!(drawn(key, 1, 5), drawn(Some(Key::PerCall(8)), 1, 5));
        assert_eq!(drawn(None, 2, 0), call.bind(&planned));
        assert!(drew.load(Relaxed));
    }
}
