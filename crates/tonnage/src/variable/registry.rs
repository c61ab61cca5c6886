//! Every variable of a context that lives, for those who ask who holds some bytes. Being listed keeps none alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tonnage_runtime::{Array, Context};

use super::{Variable, VariableInner, VariableState};

/// The variables of a context, by their numbers.
#[derive(Default)]
pub(super) struct Registry(Mutex<BTreeMap<u64, Weak<VariableInner>>>);

impl Registry {
    /// That of the context in use.
    pub fn current() -> Arc<Registry> {
        Context::current().local()
    }

    pub fn list(&self, variable: &Variable) {
        self.all().insert(variable.0.number, Arc::downgrade(&variable.0));
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<u64, Weak<VariableInner>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for VariableInner {
    fn drop(&mut self) {
        self.registry.all().remove(&self.number);
    }
}

impl Variable {
    /// The variables whose value is one of those asked for, each with that value.
    pub(crate) fn holding(is_it: impl Fn(&Array) -> bool) -> Vec<(Variable, Array)> {
        let registry = Registry::current();
        // The lock is released before a variable may be dropped, which takes itself off it.
        let living: Vec<Arc<VariableInner>> =
            registry.all().values().filter_map(Weak::upgrade).collect();
        let held = living.into_iter().map(Variable).filter_map(|variable| {
            let value = match variable.try_state().as_deref() {
                Some(VariableState::Holds(value, _)) => value.clone(),
                _ => return None,
            };
            Some((variable, value))
        });
        held.filter(|(_, value)| is_it(value)).collect()
    }
}
