//! `tf.distribute`: the ranks of a job, and what goes between them.

use std::cell::Cell;
use std::time::Duration;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tonnage::world::{self, World};

use crate::args::TensorArg;
use crate::optim::pairs;
use crate::run::{MUCH, run, run_released};
use crate::tensor::PyTensor;
use crate::variable::{PyVariable, gradient};

thread_local! {
    /// Whether what runs on this thread is one replica, and not for all of them.
    static IN_REPLICA: Cell<bool> = const { Cell::new(false) };
}

/// Whether what runs on this thread is one of the replicas.
#[pyfunction]
pub fn in_replica() -> bool {
    IN_REPLICA.get()
}

/// The ranks of the job.
#[pyclass(frozen, name = "World", module = "tonnage")]
pub struct PyWorld(pub World);

#[pymethods]
impl PyWorld {
    /// Those that this process belongs to.
    #[staticmethod]
    fn join(py: Python<'_>) -> PyResult<PyWorld> {
        let world = run_released(py, world::join)?;
        world::set_interrupt(crate::errors::is_interrupted);
        Ok(PyWorld(world))
    }

    /// This process alone.
    #[staticmethod]
    fn alone() -> PyWorld {
        PyWorld(World::alone())
    }

    /// So many ranks that are not there: plans are made for them.
    #[staticmethod]
    fn on_paper(ranks: usize) -> PyWorld {
        PyWorld(World::on_paper(ranks))
    }

    /// What the engine took of this process when it joined, in bytes; in no plan.
    #[getter]
    fn engine_bytes(&self) -> u64 {
        match self.0.size() {
            1 => 0,
            _ => world::engine_memory().get(),
        }
    }

    #[getter]
    fn rank(&self) -> usize {
        self.0.rank()
    }

    #[getter]
    fn size(&self) -> usize {
        self.0.size()
    }

    /// What moves bytes.
    #[getter]
    fn engine(&self) -> String {
        self.0.engine().name()
    }

    /// How long a rank waits for another, in seconds, before all end; `None` is for ever.
    fn set_timeout(&self, seconds: Option<f64>) -> PyResult<()> {
        let wrong = |_| PyValueError::new_err("a timeout is a number of seconds, more than 0");
        let timeout = seconds.map(Duration::try_from_secs_f64).transpose().map_err(wrong)?;
        self.0.set_timeout(timeout);
        Ok(())
    }

    /// The sum over all ranks.
    fn all_reduce(&self, py: Python<'_>, x: TensorArg) -> PyResult<PyTensor> {
        run(py, MUCH, || x.0.all_reduce(&self.0)).map(Into::into)
    }

    /// What the ranks have, joined along an axis.
    fn gather(&self, py: Python<'_>, x: TensorArg, axis: i64) -> PyResult<PyTensor> {
        run(py, MUCH, || world::gather(&self.0, &x.0, axis)).map(Into::into)
    }

    /// What one rank has.
    fn broadcast(&self, py: Python<'_>, x: TensorArg, root: usize) -> PyResult<PyTensor> {
        run(py, MUCH, || x.0.broadcast(&self.0, root)).map(Into::into)
    }

    /// The first value of a variable: that of rank 0.
    fn first_value(&self, py: Python<'_>, x: TensorArg) -> PyResult<PyTensor> {
        run(py, MUCH, || world::first_value(&self.0, x.0)).map(Into::into)
    }

    /// Waits for all ranks.
    fn barrier(&self, py: Python<'_>) {
        py.detach(|| self.0.must(self.0.engine().barrier("barrier")));
    }

    /// Whether all ranks say so.
    fn all(&self, py: Python<'_>, own: bool) -> bool {
        py.detach(|| world::all(&self.0, "fit", own))
    }

    /// Whether no lower rank says the same text.
    fn is_first(&self, py: Python<'_>, text: String) -> bool {
        py.detach(|| world::is_first(&self.0, "save", &text))
    }

    /// The rows of this rank, of so many: the first, and that behind the last.
    fn part(&self, rows: usize) -> (usize, usize) {
        let part = world::part_of(rows, self.0.rank(), self.0.size());
        (part.start, part.end)
    }

    /// That all ranks have the same, by names, and the same random state.
    fn agree(&self, py: Python<'_>, own: Vec<(String, String)>) -> PyResult<()> {
        let random = format!("{:?}", tonnage_runtime::random::state());
        let own = own.iter().map(|(name, text)| (name.as_str(), text.clone()));
        let own: Vec<_> = own.chain([("random state (`tf.random.set_seed`)", random)]).collect();
        run_released(py, || world::agree(&self.0, "distribute", &own))
    }

    /// Calls a callable as one of the replicas.
    fn replica<'py>(
        &self,
        f: &Bound<'py, PyAny>,
        args: &Bound<'py, pyo3::types::PyTuple>,
        kwargs: Option<&Bound<'py, pyo3::types::PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        struct Leave(bool);
        impl Drop for Leave {
            fn drop(&mut self) {
                IN_REPLICA.set(self.0);
            }
        }
        let _leave = Leave(IN_REPLICA.replace(true));
        world::as_replica(&self.0, || f.call(args, kwargs))
    }

    /// Gradients of all ranks, added up: tensors, rows, or none.
    fn sum_gradients(
        &self,
        py: Python<'_>,
        variables: Vec<PyRef<'_, PyVariable>>,
        gradients: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let (_, gradients) = pairs(py, &variables, &gradients)?;
        let sums = run(py, MUCH, || world::sum_gradients(&self.0, gradients))?;
        sums.into_iter().map(|sum| gradient(py, sum)).collect()
    }
}
