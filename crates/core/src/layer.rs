//! Names of layers: which part of a model the work on this thread is done for.
//!
//! A layer is a small number that every [`Source`](crate::Source) carries along, so that plans and the ledger can sum up by layer
//! without a second thing to hand around. Names are remembered for good, each once; there can be [`MOST`] of them, and
//! what is opened beyond that counts to the layer around it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How many names there can be.
pub const MOST: usize = 1 << 16;

/// The number of a layer; 0 is no layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct LayerId(u32);

#[derive(Default)]
struct Names {
    /// By number, from 1.
    whole: Vec<Arc<str>>,
    inside: HashMap<(u32, Arc<str>), u32>,
}

fn names() -> std::sync::MutexGuard<'static, Names> {
    static NAMES: OnceLock<Mutex<Names>> = OnceLock::new();
    NAMES.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner)
}

impl LayerId {
    /// No layer.
    pub const NONE: LayerId = LayerId(0);

    /// The part of that name inside of this one.
    pub fn part(self, name: &str) -> LayerId {
        let mut names = names();
        let key = (self.0, Arc::from(name));
        if let Some(known) = names.inside.get(&key) {
            return LayerId(*known);
        }
        if names.whole.len() >= MOST {
            return self;
        }
        let whole = match self.0.checked_sub(1).and_then(|at| names.whole.get(at as usize)) {
            Some(around) => Arc::from(format!("{around}/{name}")),
            None => Arc::from(name),
        };
        names.whole.push(whole);
        let number = names.whole.len() as u32;
        names.inside.insert(key, number);
        LayerId(number)
    }

    /// Its name with those around it; none for no layer.
    pub fn name(self) -> Option<Arc<str>> {
        let at = self.0.checked_sub(1)?;
        names().whole.get(at as usize).cloned()
    }
}
