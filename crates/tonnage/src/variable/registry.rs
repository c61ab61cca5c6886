//! Every variable that lives, for those who ask who holds some bytes. Being listed keeps none alive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tonnage_runtime::Array;

use super::{Variable, VariableInner, VariableState};

static ALL: Mutex<BTreeMap<u64, Weak<VariableInner>>> = Mutex::new(BTreeMap::new());

fn all() -> MutexGuard<'static, BTreeMap<u64, Weak<VariableInner>>> {
    ALL.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(super) fn list(variable: &Variable) {
    all().insert(variable.0.number, Arc::downgrade(&variable.0));
}

impl Drop for VariableInner {
    fn drop(&mut self) {
        all().remove(&self.number);
    }
}

impl Variable {
    /// The variables whose value is one of those asked for, each with that value.
    pub(crate) fn holding(is_it: impl Fn(&Array) -> bool) -> Vec<(Variable, Array)> {
        // The lock is released before a variable may be dropped, which takes itself off it.
        let living: Vec<Arc<VariableInner>> = all().values().filter_map(Weak::upgrade).collect();
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
