//! The pool of the process keeps the number of threads that it started with. A binary of its own,
//! because nothing else may start that pool before.

use tonnage_runtime::{pool, set_threads};

#[test]
fn the_number_of_threads_is_set_before_the_first_use_and_then_stays() {
    assert!(set_threads(0).is_err());
    set_threads(2).unwrap();
    assert_eq!(pool().threads(), 2);
    set_threads(2).unwrap();
    let error = set_threads(3).unwrap_err().to_string();
    assert!(error.contains("already runs with 2 threads, not 3"), "{error}");
}
