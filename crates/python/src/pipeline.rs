//! `tf.data`: the crate's pipelines, of nested Python values. Functions of the user are called back.

use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyIterator, PyList};
use tonnage::data::{Count, Dataset, Draws, Elements, Padding, Pipeline, Shuffle};
use tonnage::{Result, Tensor};

use crate::args::Dt;
use crate::callback::{Callback, enter};
use crate::convert::{self, Want};
use crate::dtype;
use crate::errors::{self, carry, type_error};
use crate::nest::{LeafPolicy, Nest};
use crate::run::{run, run_released};

fn element(given: &Bound<'_, PyAny>) -> PyResult<Nest> {
    Nest::of(given, LeafPolicy::Elements)
}

/// A number of elements as TensorFlow says it.
fn number(count: Count) -> i64 {
    match count {
        Count::Known(n) => i64::try_from(n).unwrap_or(i64::MAX),
        Count::Infinite => -1,
        Count::Unknown => -2,
    }
}

/// A way to make elements. Callables are held by whoever calls a method with them.
#[pyclass(frozen, name = "Pipeline", module = "tonnage")]
pub struct PyPipeline(Pipeline<Nest>);

impl PyPipeline {
    fn then(&self, step: impl FnOnce(Pipeline<Nest>) -> Pipeline<Nest>) -> PyPipeline {
        PyPipeline(step(self.0.clone()))
    }
}

#[pymethods]
impl PyPipeline {
    /// Elements that are there already.
    #[staticmethod]
    fn of_elements(elements: Vec<Bound<'_, PyAny>>) -> PyResult<PyPipeline> {
        let elements = elements.iter().map(element).collect::<PyResult<Vec<_>>>()?;
        Ok(PyPipeline(Pipeline::from_elements(elements)))
    }

    /// The rows of tensors of one first length.
    #[staticmethod]
    fn of_rows(py: Python<'_>, tensors: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let whole = element(tensors)?;
        let data = run(py, 0, || Dataset::of(whole))?;
        Ok(PyPipeline(Pipeline::rows(&data)))
    }

    /// Numbers in steps; without an end where there is none.
    #[staticmethod]
    fn of_numbers(dtype: Dt, start: i64, stop: Option<i64>, step: i64) -> PyPipeline {
        let numbers = Pipeline::range_of(dtype.0, start, stop, step);
        PyPipeline(numbers.map(|number| Ok(Nest::of_tensor(number))))
    }

    /// What the generators of a callable give, one for each pass. It holds them until it is told that they `end`.
    #[staticmethod]
    fn of_generators(passes: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let passes = Arc::new(Callback::new(passes)?);
        Ok(PyPipeline(Pipeline::from_fn(move || Generated {
            passes: passes.clone(),
            state: Generator::Waiting,
        })))
    }

    /// Elements of several by the numbers of another.
    #[staticmethod]
    fn choose(
        of: Vec<PyRef<'_, PyPipeline>>,
        choices: PyRef<'_, PyPipeline>,
        stop: bool,
    ) -> PyPipeline {
        let of = of.iter().map(|one| one.0.clone()).collect();
        let choices = choices.0.clone().map(|choice| match choice.tensors.into_iter().next() {
            Some(tensor) => Ok(tensor),
            None => Err(carry(type_error("a choice is a number"))),
        });
        PyPipeline(Pipeline::choose(of, choices, stop))
    }

    /// Elements of several side by side, in the places of the plain values of a template.
    #[staticmethod]
    fn zip(of: Vec<PyRef<'_, PyPipeline>>, template: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let template = element(template)?;
        let mut parts = of.iter().map(|one| one.0.clone());
        let Some(first) = parts.next() else {
            return Err(PyValueError::new_err("there is no dataset to zip"));
        };
        let lists = parts.fold(first.map(|one| Ok(vec![one])), |all, part| {
            all.zip(part).map(|(mut all, one)| {
                all.push(one);
                Ok(all)
            })
        });
        Ok(PyPipeline(lists.map(move |parts| Ok(template.joined(parts)))))
    }

    /// How many elements there are: -1 where they do not end, -2 where that is not known.
    fn count(&self) -> i64 {
        number(self.0.count())
    }

    /// The same with a number of elements that is known otherwise.
    fn with_count(&self, count: u64) -> PyPipeline {
        self.then(|of| of.with_count(Count::Known(count)))
    }

    /// Goes through the elements, from the start. `dataset` holds the callables of the steps, and lives as long as the iterator.
    fn iterate(&self, py: Python<'_>, dataset: Py<PyAny>) -> PyResult<PyElements> {
        let elements = run_released(py, || Ok(self.0.iter()))?;
        Ok(PyElements { elements: Mutex::new(Some(elements)), dataset })
    }

    fn map(&self, f: &Bound<'_, PyAny>, threads: usize, in_order: bool) -> PyResult<PyPipeline> {
        let f = Callback::new(f)?;
        let f = move |one: Nest| enter(|py| element(&f.call(py, [one.object(py)?])?));
        Ok(self.then(|of| match (threads, in_order) {
            (..=1, _) => of.map(f),
            (_, true) => of.parallel_map(threads, f),
            (_, false) => of.unordered_map(threads, f),
        }))
    }

    fn filter(&self, f: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let f = Callback::new(f)?;
        Ok(self.then(|of| of.filter(move |one| says_yes(&f, one))))
    }

    fn take_while(&self, f: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let f = Callback::new(f)?;
        Ok(self.then(|of| of.take_while(move |one| says_yes(&f, one))))
    }

    /// A function of a state and an element, to the next state and what comes out.
    fn scan(&self, state: &Bound<'_, PyAny>, f: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let (state, f) = (element(state)?, Callback::new(f)?);
        let f = move |state: Nest, one: Nest| {
            enter(|py| {
                let made = f.call(py, [state.object(py)?, one.object(py)?])?;
                let (next, made): (Bound<'_, PyAny>, Bound<'_, PyAny>) = made.extract()?;
                Ok((element(&next)?, element(&made)?))
            })
        };
        Ok(self.then(|of| of.scan(state, f)))
    }

    fn take(&self, n: usize) -> PyPipeline {
        self.then(|of| of.take(n))
    }

    fn skip(&self, n: usize) -> PyPipeline {
        self.then(|of| of.skip(n))
    }

    fn shard(&self, of: usize, index: usize) -> PyPipeline {
        self.then(|all| all.shard(of, index))
    }

    fn repeat(&self, times: Option<usize>) -> PyPipeline {
        self.then(|of| match times {
            Some(times) => of.repeat(times),
            None => of.repeat_forever(),
        })
    }

    /// Out of a buffer, at places that a callable gives for each pass.
    fn shuffle(&self, buffer: usize, dice: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let dice = Callback::new(dice)?;
        Ok(self.then(|of| of.shuffle(buffer, Dice(dice))))
    }

    fn batch(&self, size: usize, whole: bool) -> PyPipeline {
        self.then(|of| match whole {
            true => of.whole_batches(size).map(tensors_alone),
            false => of.batch(size).map(tensors_alone),
        })
    }

    /// Batches that are filled up as a callable says for an element: a shape or none and a number for each tensor.
    fn padded_batch(&self, size: usize, whole: bool, f: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let f = Callback::new(f)?;
        let padding = move |one: &Nest| {
            enter(|py| {
                let said: Vec<PaddingArg<'_>> = f.call(py, [one.object(py)?])?.extract()?;
                said.into_iter()
                    .map(|(shape, value)| match dtype::number(&value) {
                        Some(value) => Ok(Padding { shape, value }),
                        None => Err(type_error(format!("{value:?} is no number to pad with"))),
                    })
                    .collect()
            })
        };
        Ok(self.then(|of| of.padded_batch_with(size, whole, padding).map(tensors_alone)))
    }

    /// Of each batch the rows of one of several ranks.
    fn part_of_batches(&self, rank: usize, ranks: usize) -> PyPipeline {
        self.then(|of| of.part_of_batches(rank, ranks))
    }

    /// Each batch cut into as many parts.
    fn parts_of_batches(&self, ranks: usize) -> PyPipeline {
        self.then(|of| of.parts_of_batches(ranks))
    }

    fn unbatch(&self) -> PyPipeline {
        self.then(Pipeline::unbatch)
    }

    /// Lists of elements, as a callable makes an element of each.
    fn window(
        &self,
        steps: (usize, usize, usize),
        whole: bool,
        f: &Bound<'_, PyAny>,
    ) -> PyResult<PyPipeline> {
        let ((size, shift, stride), f) = (steps, Callback::new(f)?);
        let made = move |held: Vec<Nest>| {
            enter(|py| {
                let held = held.iter().map(|one| one.object(py)).collect::<PyResult<Vec<_>>>()?;
                element(&f.call(py, [PyList::new(py, held)?.into_any()])?)
            })
        };
        Ok(self.then(|of| of.window(size, shift, stride, whole).map(made)))
    }

    /// The elements of datasets that a callable makes.
    fn interleave(
        &self,
        f: &Bound<'_, PyAny>,
        cycle: usize,
        block: usize,
        threads: usize,
    ) -> PyResult<PyPipeline> {
        let f = Callback::new(f)?;
        let open = move |one: Nest| {
            let (inner, dataset) = enter(|py| {
                let dataset = f.call(py, [one.object(py)?])?;
                let inner = dataset.getattr("_pipeline")?.cast_into::<PyPipeline>()?;
                Ok((inner.get().0.clone(), Arc::new(dataset.unbind())))
            })?;
            Ok(inner.map(move |one| {
                // It holds the callables of its steps.
                let _held = &dataset;
                Ok(one)
            }))
        };
        Ok(self.then(|of| of.interleave_map(cycle, block, threads, open)))
    }

    fn concatenate(&self, other: PyRef<'_, PyPipeline>) -> PyPipeline {
        self.then(|of| of.concatenate(other.0.clone()))
    }

    fn cache(&self) -> PyPipeline {
        self.then(Pipeline::cache)
    }

    /// Elements kept in a file; a callable gives one that is nested as they are.
    fn cache_file(&self, path: String, like: &Bound<'_, PyAny>) -> PyResult<PyPipeline> {
        let like = Callback::new(like)?;
        Ok(self.then(|of| of.cache_file(path, move || enter(|py| element(&like.call(py, [])?)))))
    }

    fn prefetch(&self, n: usize) -> PyPipeline {
        self.then(|of| of.prefetch(n))
    }

    /// Elements on a device, so many of them before they are asked for.
    fn to_device(&self, py: Python<'_>, device: &str, n: usize) -> PyResult<PyPipeline> {
        run(py, 0, || self.0.clone().to_device(device, n)).map(PyPipeline)
    }

    fn unique(&self) -> PyPipeline {
        self.then(Pipeline::unique)
    }

    /// Without the elements whose exceptions are of these classes.
    fn ignore_errors(&self, classes: Py<PyAny>) -> PyPipeline {
        let ignored = move |error: &tonnage::Error| {
            let asked = Python::try_attach(|py| {
                errors::raise(py, error.clone()).matches(py, classes.bind(py)).unwrap_or(false)
            });
            asked.unwrap_or(false)
        };
        self.then(|of| of.ignore_errors(ignored))
    }
}

/// A batch: datasets have no axis to be joined along.
fn tensors_alone(batch: Nest) -> Result<Nest> {
    match batch.is_tensors() {
        true => Ok(batch),
        false => Err(carry(type_error("only tensors can be batched, not datasets"))),
    }
}

/// A shape or none, and a number.
type PaddingArg<'py> = (Option<Vec<Option<usize>>>, Bound<'py, PyAny>);

/// What a predicate says of an element.
fn says_yes(f: &Callback, one: &Nest) -> Result<bool> {
    enter(|py| f.call(py, [one.object(py)?])?.extract())
}

/// What a generator of Python gives, in one pass.
struct Generated {
    passes: Arc<Callback>,
    state: Generator,
}

enum Generator {
    Waiting,
    /// The callable holds it: its garbage is Python's to find.
    Running(Callback),
    Ended,
}

impl Generated {
    fn step(&mut self, py: Python<'_>) -> PyResult<Option<Nest>> {
        if let Generator::Waiting = self.state {
            self.state = Generator::Ended;
            self.state = Generator::Running(Callback::new(&self.passes.call(py, [])?)?);
        }
        let Generator::Running(generator) = &self.state else { return Ok(None) };
        let Some(generator) = generator.get(py) else { return Ok(None) };
        match generator.cast_into::<PyIterator>()?.next() {
            Some(item) => element(&item?).map(Some),
            None => Ok(None),
        }
    }

    fn end(&mut self) {
        let Generator::Running(generator) = std::mem::replace(&mut self.state, Generator::Ended)
        else {
            return;
        };
        // Where the callable is gone it holds nothing. What is being raised as this is dropped waits: Python code runs without it.
        let _ = enter(|py| {
            let raised = PyErr::take(py);
            let told = match (self.passes.get(py), generator.get(py)) {
                (Some(passes), Some(generator)) => {
                    passes.call_method1(pyo3::intern!(py, "end"), (generator,)).map(drop)
                }
                _ => Ok(()),
            };
            if let Some(raised) = raised {
                raised.restore(py);
            }
            told
        });
    }
}

impl Iterator for Generated {
    type Item = Result<Nest>;

    fn next(&mut self) -> Option<Result<Nest>> {
        let made = enter(|py| self.step(py)).transpose();
        if made.is_none() {
            self.end();
        }
        made
    }
}

impl Drop for Generated {
    fn drop(&mut self) {
        self.end();
    }
}

/// Python's random numbers.
struct Dice(Callback);

impl Shuffle for Dice {
    fn start(&self, _: u64) -> Result<Box<dyn Draws>> {
        enter(|py| {
            let (start, order) = self.0.call(py, [])?.extract()?;
            Ok(Box::new(PyDraws { start, below: None, order }) as Box<dyn Draws>)
        })
    }
}

/// Random numbers of a pass.
struct PyDraws {
    /// Gives what draws a number below another.
    start: Py<PyAny>,
    below: Option<Py<PyAny>>,
    /// Draws all below a number in a random order.
    order: Py<PyAny>,
}

impl Draws for PyDraws {
    fn below(&mut self, n: usize) -> Result<usize> {
        enter(|py| {
            let below = match &self.below {
                Some(below) => below,
                None => self.below.insert(self.start.call0(py)?),
            };
            below.bind(py).call1((n,))?.extract()
        })
    }

    fn order(&mut self, numbers: &mut Vec<i64>) -> Result<()> {
        let order: Tensor = enter(|py| {
            let order = self.order.bind(py).call1((numbers.len(),))?;
            convert::tensor(&order, Want::just(Some(tonnage::DType::I64)))
        })?;
        let order = order.to_vec::<i64>()?;
        *numbers = order.iter().filter_map(|i| numbers.get(*i as usize).copied()).collect();
        Ok(())
    }

    fn refills_in_place(&self) -> bool {
        true
    }
}

/// One pass.
#[pyclass(frozen, name = "Elements", module = "tonnage")]
pub struct PyElements {
    /// Nothing at the end.
    elements: Mutex<Option<Elements<Nest>>>,
    dataset: Py<PyAny>,
}

#[pymethods]
impl PyElements {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let made = run_released(py, || {
            let mut elements = match self.elements.try_lock() {
                Ok(elements) => elements,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => {
                    let text = "the iterator is at its next element already";
                    return Err(carry(PyValueError::new_err(text)));
                }
            };
            let next = elements.as_mut().and_then(Iterator::next).transpose();
            if matches!(next, Ok(None)) {
                *elements = None;
            }
            next
        })?;
        made.map(|one| one.object(py)).transpose()
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        visit.call(&self.dataset)
    }
}

impl Drop for PyElements {
    fn drop(&mut self) {
        let mut elements = self.elements.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        // Threads that make elements may need the interpreter to see that they should end.
        let _ = Python::try_attach(|py| py.detach(|| drop(elements.take())));
    }
}
