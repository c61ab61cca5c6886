//! Plans of a program that are looked up in a cache and made where they are missing: under the function's own budget and the one around,
//! and in the room that the device's limit leaves, whichever is less.

use std::sync::{Arc, Mutex};

use tonnage_core::Result;
use tonnage_plan::{Frontier, Plan};
use tonnage_runtime::execute::Headroom;

use super::cache::{HasProgram, TraceCache};
use super::choice::{PlanChoice, PlanKey};
use super::lock;
use super::program::TracedProgram;

/// A program's plans, and where they are cached.
pub(super) struct CachedPlans<'a, T> {
    pub program: &'a TracedProgram,
    pub cache: &'a Mutex<TraceCache<T>>,
}

impl<T: HasProgram> CachedPlans<'_, T> {
    /// The plan for inputs like these.
    pub fn plan(&self, key: PlanKey, room: Option<Headroom>) -> Result<Arc<Plan>> {
        let cached = lock(self.cache).plan(&key);
        let chosen = match cached {
            Some(plan) => plan,
            None => self.made(&key)?,
        };
        match room {
            None => Ok(chosen),
            Some(room) => self.within(key, room, chosen),
        }
    }

    /// The plan under the function's own budget and the one around, made and cached.
    fn made(&self, key: &PlanKey) -> Result<Arc<Plan>> {
        let (budgets, levers) = {
            let cache = lock(self.cache);
            (cache.budget().and(key.budget), cache.levers())
        };
        let made = PlanChoice::of(self.program, key).within(budgets, levers)?;
        Ok(lock(self.cache).insert_plan(key.clone(), made, self.program.counted()))
    }

    /// The point that fits a room. The frontier is cached, so that another room is another point and not another
    /// search.
    fn within(&self, key: PlanKey, room: Headroom, chosen: Arc<Plan>) -> Result<Arc<Plan>> {
        let mut used: Option<(Arc<Frontier>, usize)> = None;
        let frontier = || {
            let cached = lock(self.cache).frontier(&key);
            let (frontier, counted) = match cached {
                Some(frontier) => (frontier.clone(), frontier.planned()),
                None => {
                    // This function has no budget of its own: nothing that changes a bit.
                    let levers = lock(self.cache).levers().exact();
                    let choice = PlanChoice::of(self.program, &key);
                    (Arc::new(choice.frontier(&levers)?), 0)
                }
            };
            used = Some((frontier.clone(), counted));
            Ok(frontier)
        };
        let fitted = room.fit(chosen, frontier);
        if let Some((frontier, counted)) = used
            && frontier.planned() != counted
        {
            lock(self.cache).insert_frontier(key, &frontier, self.program.counted());
        }
        fitted
    }
}
