//! What is printed and noted while a program runs, for tests that look at its order.

use std::sync::{Arc, Mutex, PoisonError};

use tonnage::{DType, Result, Tensor, TensorType, function, prints};

use super::call_checked;

pub fn number(dtype: DType) -> TensorType {
    TensorType::new(dtype, tonnage::Shape::scalar())
}

pub type Seen = Arc<Mutex<Vec<String>>>;

/// What happened, in order; printed lines too.
pub fn listening() -> Seen {
    let seen = Seen::default();
    let to = seen.clone();
    prints::listen(move |line| to.lock().unwrap().push(line.to_string()));
    seen
}

pub fn taken(seen: &Seen) -> Vec<String> {
    std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Eagerly, and planned: the same program gives the same list.
pub fn both<R: tonnage::Tree + 'static>(
    seen: &Seen,
    args: Tensor,
    f: impl Fn(Tensor) -> Result<R> + Clone + 'static,
) -> Vec<String> {
    f(args.clone()).unwrap();
    let eager = taken(seen);
    let planned = function(f);
    call_checked(&planned, &args);
    let twice = taken(seen);
    assert_eq!(twice[..eager.len()], eager, "planned, and eager");
    assert_eq!(twice[eager.len()..], eager, "the second call");
    eager
}
