//! How everything runs: for the user's line, into the graph that is being built if there is one, and without the
//! interpreter's lock where it takes long.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tonnage::{Graph, Result};
use tonnage_runtime::system::is_stack_low;

use crate::{errors, line};

/// Elements from which on the interpreter's lock is given up: below, giving it up costs more than the work.
const LARGE: usize = 1 << 15;

/// What work to assume where nothing tells: enough to give the lock up.
pub const MUCH: usize = usize::MAX;

thread_local! {
    /// Deferred graphs that ops go into, the innermost last; `None` is eager mode within one.
    static GRAPHS: RefCell<Vec<Option<Graph>>> = const { RefCell::new(Vec::new()) };
    /// Whether ops go into the graph already.
    static BUILDING: Cell<bool> = const { Cell::new(false) };
}

thread_local! {
    /// The call of a function that runs on this thread, by a number; that of an inner one is larger.
    static CALL: Cell<u64> = const { Cell::new(0) };
    /// The last number.
    static LAST_CALL: Cell<u64> = const { Cell::new(0) };
}

/// A call of a function, until this is dropped.
pub struct Calling(u64);

impl Calling {
    pub fn begin() -> Calling {
        LAST_CALL.set(LAST_CALL.get() + 1);
        Calling(CALL.replace(LAST_CALL.get()))
    }
}

impl Drop for Calling {
    fn drop(&mut self) {
        CALL.set(self.0);
    }
}

/// The number of the call of a function that runs on this thread; 0 outside.
#[pyfunction]
pub fn call_number() -> u64 {
    CALL.get()
}

/// Set in a process that was forked from one whose threads compute: here they are not.
static FORKED: AtomicBool = AtomicBool::new(false);

/// Says that this process was forked.
#[pyfunction]
pub fn after_fork() {
    FORKED.store(tonnage_runtime::pool::is_started(), Ordering::Relaxed);
}

fn check_fork() -> PyResult<()> {
    match FORKED.load(Ordering::Relaxed) {
        false => Ok(()),
        true => Err(PyRuntimeError::new_err(
            "this process was forked after Tonnage had computed with threads, which a fork does not take along; use \
             multiprocessing.set_start_method(\"spawn\"), or fork before the first large op",
        )),
    }
}

/// What is called here may call Python back, which may call it again: an error before the stack overflows.
fn check_stack(py: Python<'_>) -> PyResult<()> {
    match is_stack_low() {
        false => Ok(()),
        true => Err(errors::of_class(
            py,
            "EndlessRecursionError",
            "calls are nested so deep that the thread's stack is nearly used up: end the recursion, or give the thread \
             a larger stack"
                .into(),
        )),
    }
}

/// Runs something that may fail. `work` is about how many elements it goes over.
pub fn run<R: Send>(
    py: Python<'_>,
    work: usize,
    f: impl FnOnce() -> Result<R> + Send,
) -> PyResult<R> {
    check_stack(py)?;
    let line = line::here(py);
    let go = || match line {
        Some(line) => line.stand_for(|| within_graph(f)),
        None => within_graph(f),
    };
    let made = match work >= LARGE {
        true => {
            check_fork()?;
            py.detach(go)
        }
        false => go(),
    };
    errors::settled(py, made)
}

/// The same without the interpreter's lock, for what calls Python back from any thread.
pub fn run_released<R: Send>(py: Python<'_>, f: impl FnOnce() -> Result<R> + Send) -> PyResult<R> {
    check_stack(py)?;
    let line = line::here(py);
    let made = py.detach(|| match line {
        Some(line) => line.stand_for(|| within_graph(f)),
        None => within_graph(f),
    });
    errors::settled(py, made)
}

/// The same for what calls Python back, and cannot leave the thread.
pub fn run_attached<R>(py: Python<'_>, f: impl FnOnce() -> Result<R>) -> PyResult<R> {
    check_stack(py)?;
    let made = match line::here(py) {
        Some(line) => line.stand_for(|| within_graph(f)),
        None => within_graph(f),
    };
    errors::settled(py, made)
}

fn within_graph<R>(f: impl FnOnce() -> Result<R>) -> Result<R> {
    if BUILDING.get() {
        return f();
    }
    match current_graph() {
        None => f(),
        Some(graph) => graph.build(|| {
            struct StopBuilding;
            impl Drop for StopBuilding {
                fn drop(&mut self) {
                    BUILDING.set(false);
                }
            }
            BUILDING.set(true);
            let _done = StopBuilding;
            f()
        }),
    }
}

/// The deferred graph that ops go into.
pub fn current_graph() -> Option<Graph> {
    GRAPHS.with_borrow(|graphs| graphs.last().cloned().flatten())
}

/// Lets ops go into that graph, or run at once, until [`leave_graph`].
pub fn enter_graph(graph: Option<Graph>) {
    GRAPHS.with_borrow_mut(|graphs| graphs.push(graph));
}

/// As it was before the last [`enter_graph`].
pub fn leave_graph() {
    GRAPHS.with_borrow_mut(|graphs| {
        graphs.pop();
    });
}

/// Whether ops become nodes, of a function's trace or of a deferred graph.
pub fn is_symbolic() -> bool {
    tonnage::bind::is_tracing() || current_graph().is_some()
}

/// What began to run at once inside of traces or graphs, until it is left.
struct EagerScope {
    building: bool,
    _outside: tonnage::bind::Outside,
}

thread_local! {
    static APART: RefCell<Vec<EagerScope>> = const { RefCell::new(Vec::new()) };
}

/// Lets ops run at once, whatever is traced or built, until [`leave_eager`].
#[pyfunction]
pub fn enter_eager() {
    enter_graph(None);
    let apart =
        EagerScope { building: BUILDING.replace(false), _outside: tonnage::bind::Outside::begin() };
    APART.with_borrow_mut(|all| all.push(apart));
}

/// As it was before the last [`enter_eager`].
#[pyfunction]
pub fn leave_eager() {
    if let Some(apart) = APART.with_borrow_mut(Vec::pop) {
        BUILDING.set(apart.building);
        leave_graph();
    }
}

/// Says how many threads compute; false where they compute already.
#[pyfunction]
pub fn set_threads(threads: usize) -> bool {
    tonnage::set_threads(threads).is_ok()
}

/// Lets every op whose result is not finite fail, or ends that.
#[pyfunction]
pub fn check_numerics(on: bool) {
    tonnage::bind::check_numerics(on);
}

/// Runs as if nothing were traced and no graph built.
pub fn eagerly<R>(f: impl FnOnce() -> R) -> R {
    struct RestoreBuilding(bool);
    impl Drop for RestoreBuilding {
        fn drop(&mut self) {
            BUILDING.set(self.0);
            leave_graph();
        }
    }
    enter_graph(None);
    let _back = RestoreBuilding(BUILDING.replace(false));
    tonnage::bind::outside_of_traces(f)
}
