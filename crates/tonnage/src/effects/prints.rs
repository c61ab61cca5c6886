//! Where printed lines go: to the standard error, or to who listens.

use std::sync::{Arc, PoisonError, RwLock};

use tonnage_runtime::Context;

type Listener = Arc<dyn Fn(&str) + Send + Sync>;

/// Who listens in a context.
#[derive(Default)]
struct Listening(RwLock<Option<Listener>>);

fn listening() -> Arc<Listening> {
    Context::current().local()
}

/// Sends printed lines to `listener` from here on, instead of to the standard error.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tonnage::{prints, tensor};
/// let seen = Arc::new(Mutex::new(Vec::new()));
/// let to = seen.clone();
/// prints::listen(move |line| to.lock().unwrap().push(line.to_string()));
/// tensor([1.0f32, 2.5])?.print("x is {}")?;
/// assert_eq!(*seen.lock().unwrap(), ["x is [1.  2.5]"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn listen(listener: impl Fn(&str) + Send + Sync + 'static) {
    *listening().0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
}

/// Lets printed lines go to the standard error again.
pub fn stop_listening() {
    *listening().0.write().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(super) fn give(line: &str) {
    // The listener is called outside of the lock: it may print itself.
    let listener = listening().0.read().unwrap_or_else(PoisonError::into_inner).clone();
    match listener {
        Some(listener) => listener(line),
        None => eprintln!("{line}"),
    }
}
