//! Branches and loops whose bodies are Python callables, and gradients that Python callables say.

use std::cell::Cell;

use pyo3::prelude::*;
use tonnage::{ErrorKind, Loop, Result, Tensor, bind};

use crate::args::{TensorArg, ValueArg};
use crate::convert::{self, Want};
use crate::errors::{carry, data_decide, raise};
use crate::nest::{LeafPolicy, Nest};
use crate::run::run_attached;
use crate::strings::{FlatValues, PyValue};

/// Whether what branches and bodies return has strings in it.
#[derive(Default)]
struct StringsSeen(Cell<bool>);

impl StringsSeen {
    /// Calls a callable, and looks at what it returns.
    fn call(&self, f: &Bound<'_, PyAny>, given: &[&Nest]) -> Result<Nest> {
        let made = call(f, given)?;
        self.0.set(self.0.get() || made.has_strings());
        Ok(made)
    }

    /// What came of it: only the data say whether strings of several branches, or of one iteration and the next, have as many bytes.
    fn settled<R>(&self, py: Python<'_>, made: PyResult<Result<R>>) -> PyResult<R> {
        made?.map_err(|error| match error.kind() {
            ErrorKind::BadArgument { .. } if self.0.get() => {
                data_decide(py, "how many bytes strings have")
            }
            _ => raise(py, error),
        })
    }
}

/// Calls a callable with values that are spread as its arguments; what it returns is a tree of tensors.
fn call(f: &Bound<'_, PyAny>, given: &[&Nest]) -> Result<Nest> {
    let go = || -> PyResult<Nest> {
        let py = f.py();
        let args = given.iter().map(|nest| nest.object(py)).collect::<PyResult<Vec<_>>>()?;
        let made = f.call1(pyo3::types::PyTuple::new(py, args)?)?;
        Nest::of(&made, LeafPolicy::Tensors)
    };
    go().map_err(carry)
}

/// The only tensor that a callable returns.
fn call_for_one(f: &Bound<'_, PyAny>, given: &Nest) -> Result<Tensor> {
    let go = || -> PyResult<Tensor> {
        let made = f.call1((given.object(f.py())?,))?;
        convert::tensor(&made, Want::default())
    };
    go().map_err(carry)
}

fn options(most: Option<u64>, checkpoints: Option<usize>, reverse: bool, spill: bool) -> Loop {
    let mut options = Loop::new();
    if let Some(most) = most {
        options = options.at_most(most);
    }
    if let Some(states) = checkpoints {
        options = options.checkpoints(states);
    }
    if reverse {
        options = options.reverse();
    }
    if spill {
        options = options.spill();
    }
    options
}

/// Runs a body as long as a condition holds.
#[pyfunction]
#[pyo3(signature = (condition, body, start, most=None, checkpoints=None, spill=false))]
pub fn while_loop(
    py: Python<'_>,
    condition: &Bound<'_, PyAny>,
    body: &Bound<'_, PyAny>,
    start: &Bound<'_, PyAny>,
    most: Option<u64>,
    checkpoints: Option<usize>,
    spill: bool,
) -> PyResult<Py<PyAny>> {
    let start = Nest::of(start, LeafPolicy::Tensors)?;
    let seen = StringsSeen::default();
    let made = run_attached(py, || {
        Ok(options(most, checkpoints, false, spill).while_loop(
            start,
            |state| call_for_one(condition, &state),
            |state| seen.call(body, &[&state]),
        ))
    });
    Ok(seen.settled(py, made)?.object(py)?.unbind())
}

/// Runs a body for every row with a state that it hands on; it returns the state and a row of the result.
#[pyfunction]
#[pyo3(signature = (body, start, rows, reverse, spill=false))]
pub fn scan(
    py: Python<'_>,
    body: &Bound<'_, PyAny>,
    start: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
    reverse: bool,
    spill: bool,
) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
    let (start, rows) =
        (Nest::of(start, LeafPolicy::Tensors)?, Nest::of(rows, LeafPolicy::Tensors)?);
    let (state, made) = run_attached(py, || {
        options(None, None, reverse, spill).scan(start, rows, |state, row| {
            let go = || -> PyResult<(Nest, Nest)> {
                let made = body.call1((state.object(py)?, row.object(py)?))?;
                let (state, row): (Bound<'_, PyAny>, Bound<'_, PyAny>) = made.extract()?;
                Ok((Nest::of(&state, LeafPolicy::Tensors)?, Nest::of(&row, LeafPolicy::Tensors)?))
            };
            go().map_err(carry)
        })
    })?;
    Ok((state.object(py)?.unbind(), made.object(py)?.unbind()))
}

/// Applies a callable to every row and stacks what it returns.
#[pyfunction]
#[pyo3(signature = (f, rows, spill=false))]
pub fn map_rows(
    py: Python<'_>,
    f: &Bound<'_, PyAny>,
    rows: &Bound<'_, PyAny>,
    spill: bool,
) -> PyResult<Py<PyAny>> {
    let rows = Nest::of(rows, LeafPolicy::Tensors)?;
    let options = options(None, None, false, spill);
    let made = run_attached(py, || options.map_fn(rows, |row| call(f, &[&row])))?;
    Ok(made.object(py)?.unbind())
}

/// One of two results, as a boolean scalar says.
#[pyfunction]
pub fn cond(
    py: Python<'_>,
    condition: TensorArg,
    yes: &Bound<'_, PyAny>,
    no: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let seen = StringsSeen::default();
    let made = run_attached(py, || {
        Ok(tonnage::cond(&condition.0, || seen.call(yes, &[]), || seen.call(no, &[])))
    });
    Ok(seen.settled(py, made)?.object(py)?.unbind())
}

/// One of several results, as an integer scalar says; the last one where there is none of that number.
#[pyfunction]
pub fn switch(
    py: Python<'_>,
    index: TensorArg,
    branches: Vec<Bound<'_, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let seen = &StringsSeen::default();
    let closures: Vec<_> = branches.iter().map(|f| move || seen.call(f, &[])).collect();
    let all: Vec<&dyn Fn() -> Result<Nest>> = closures.iter().map(|f| f as _).collect();
    let made = run_attached(py, || Ok(tonnage::switch(&index.0, &all)));
    Ok(seen.settled(py, made)?.object(py)?.unbind())
}

/// A callable that returns its result and a callable for the gradient. `spread` makes the arguments of one of the
/// gradient's callables out of gradients of the results.
#[pyfunction]
pub fn custom_gradient(
    py: Python<'_>,
    forward: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let arguments = Nest::of(arguments, LeafPolicy::Tensors)?;
    let made = run_attached(py, || {
        bind::custom_gradient_with(arguments, |symbols: Nest| {
            let go = || -> PyResult<(Nest, Py<PyAny>)> {
                let made = forward.call1((symbols.object(py)?,))?;
                let (result, back): (Bound<'_, PyAny>, Py<PyAny>) = made.extract()?;
                Ok((Nest::of(&result, LeafPolicy::Tensors)?, back))
            };
            let (result, back) = go().map_err(carry)?;
            let backward = move |grads: Nest| call(back.bind(py), &[&grads, &symbols]);
            Ok((result, backward))
        })
    })?;
    Ok(made.object(py)?.unbind())
}

/// Runs a callable so that what its gradient needs is recomputed instead of saved.
#[pyfunction]
pub fn checkpoint(
    py: Python<'_>,
    f: &Bound<'_, PyAny>,
    arguments: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let arguments = Nest::of(arguments, LeafPolicy::Tensors)?;
    let made =
        run_attached(py, || tonnage::checkpoint(|given: Nest| call(f, &[&given]))(arguments))?;
    Ok(made.object(py)?.unbind())
}

/// Calls a callable with values when the program runs; its results have these types.
#[pyfunction]
pub fn host_callback(
    py: Python<'_>,
    f: Py<PyAny>,
    inputs: Vec<ValueArg>,
    results: Vec<(crate::args::Dt, Vec<usize>)>,
) -> PyResult<Vec<crate::tensor::PyTensor>> {
    let FlatValues { tensors, kinds } = FlatValues::of(inputs.into_iter().map(|input| input.0));
    let inputs: Vec<&Tensor> = tensors.iter().collect();
    let types: Vec<tonnage::TensorType> =
        results.iter().map(|(d, s)| tonnage::TensorType::new(d.0, &s[..])).collect();
    let made = run_attached(py, || {
        tonnage::host_callback(&inputs, &types, move |lent| {
            let tensors = lent.iter().map(|l| l.tensor()).collect::<Result<Vec<_>>>()?;
            Python::attach(|py| {
                let go = || -> PyResult<Vec<Tensor>> {
                    let args = FlatValues { tensors, kinds: kinds.clone() }.values();
                    let args = args.map_err(|e| crate::errors::raise(py, e))?;
                    let args: Vec<PyValue> = args.into_iter().map(PyValue::from).collect();
                    let made = f.bind(py).call1((args,))?;
                    made.try_iter()?.map(|t| convert::tensor(&t?, Want::default())).collect()
                };
                crate::run::eagerly(go).map_err(carry)
            })
        })
    })?;
    Ok(made.into_iter().map(Into::into).collect())
}
