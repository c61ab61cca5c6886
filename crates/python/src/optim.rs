//! Optimizers: `tonnage::optim` by the names of rules and their hyperparameters. Their state is variables, which Python
//! lists, saves and restores.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use tonnage::optim::{
    Adadelta, Adafactor, Adagrad, Adam, Adam8Bit, Adamax, Ftrl, Lion, LossScale, Nadam, Optimizer,
    RmsProp, Sgd,
};
use tonnage::train::Sharding;
use tonnage::{Gradient, Tensor, Variable, bind};

use crate::run::{MUCH, eagerly, run, run_attached};
use crate::tensor::{PyTensor, sugar};
use crate::variable::PyVariable;
use crate::world::PyWorld;

/// An optimizer of a rule.
#[pyclass(frozen, name = "Optimizer", module = "tonnage")]
pub struct PyOptimizer {
    optimizer: Optimizer,
    /// Numbers of the variables that are not pulled to 0.
    no_decay: Arc<Mutex<HashSet<u64>>>,
}

/// The hyperparameters of a rule by their names; each is asked for, and a name that is left over is a mistake.
struct Hyperparameters(HashMap<String, f64>);

impl Hyperparameters {
    fn take(&mut self, name: &str, usual: f64) -> f64 {
        self.0.remove(name).unwrap_or(usual)
    }

    fn flag(&mut self, name: &str) -> bool {
        self.take(name, 0.0) != 0.0
    }

    fn adam(&mut self) -> Adam {
        Adam {
            beta1: self.take("beta_1", 0.9),
            beta2: self.take("beta_2", 0.999),
            epsilon: self.take("epsilon", 1e-7),
            epsilon_hat: self.flag("epsilon_hat"),
            amsgrad: self.flag("amsgrad"),
        }
    }
}

fn made(rule: &str, rate: f64, numbers: HashMap<String, f64>) -> PyResult<Optimizer> {
    let mut n = Hyperparameters(numbers);
    let made = match rule {
        "sgd" => {
            let rule = Sgd { momentum: n.take("momentum", 0.0), nesterov: n.flag("nesterov") };
            Optimizer::new(rule, rate)
        }
        "adam" => Optimizer::new(n.adam(), rate),
        "adam8" => Optimizer::new(Adam8Bit(n.adam()), rate),
        "adamax" => Optimizer::new(Adamax(n.adam()), rate),
        "nadam" => Optimizer::new(Nadam(n.adam()), rate),
        "rmsprop" => {
            let rule = RmsProp {
                rho: n.take("rho", 0.9),
                momentum: n.take("momentum", 0.0),
                centered: n.flag("centered"),
                epsilon: n.take("epsilon", 1e-7),
                within: true,
            };
            Optimizer::new(rule, rate)
        }
        "adagrad" => {
            let (epsilon, start) = (n.take("epsilon", 1e-7), n.take("start", 0.1));
            Optimizer::new(Adagrad { epsilon, within: true, start }, rate)
        }
        "adadelta" => {
            let rule = Adadelta { rho: n.take("rho", 0.95), epsilon: n.take("epsilon", 1e-7) };
            Optimizer::new(rule, rate)
        }
        "ftrl" => {
            let rule = Ftrl {
                power: n.take("power", -0.5),
                start: n.take("start", 0.1),
                l1: n.take("l1", 0.0),
                l2: n.take("l2", 0.0),
                shrinkage: n.take("shrinkage", 0.0),
                beta: n.take("beta", 0.0),
            };
            Optimizer::new(rule, rate)
        }
        "lion" => {
            let rule = Lion { beta1: n.take("beta_1", 0.9), beta2: n.take("beta_2", 0.99) };
            Optimizer::new(rule, rate)
        }
        "adafactor" => {
            let rule = Adafactor {
                decay: n.take("decay", -0.8),
                clip: n.take("clip", 1.0),
                relative: n.flag("relative"),
                least: n.take("least", 1e-3),
            };
            Optimizer::new(rule, rate)
        }
        _ => return Err(PyValueError::new_err(format!("there is no optimizer {rule:?}"))),
    };
    match n.0.keys().next() {
        None => Ok(made),
        Some(name) => Err(PyValueError::new_err(format!("{rule} has no number {name:?}"))),
    }
}

#[pymethods]
impl PyOptimizer {
    /// One of a rule, its learning rate and its hyperparameters. `decay` pulls to 0, `clip` is how gradients are held and where,
    /// `averages` the share of the old in running means.
    #[new]
    #[pyo3(signature = (rule, rate, numbers, decay, clip, averages))]
    fn new(
        rule: &str,
        rate: f64,
        numbers: HashMap<String, f64>,
        decay: Option<f64>,
        clip: Option<(String, f64)>,
        averages: Option<f64>,
    ) -> PyResult<PyOptimizer> {
        let mut optimizer = made(rule, rate, numbers)?;
        let no_decay: Arc<Mutex<HashSet<u64>>> = Arc::default();
        if let Some(decay) = decay {
            let no_decay = no_decay.clone();
            optimizer = optimizer.weight_decay(decay).decay_only(move |v| {
                let no_decay = no_decay.lock().unwrap_or_else(PoisonError::into_inner);
                !no_decay.contains(&bind::variable_number(v))
            });
        }
        if let Some((how, most)) = clip {
            optimizer = match how.as_str() {
                "value" => optimizer.clip_by_value(most),
                "norm" => optimizer.clip_by_norm(most),
                _ => optimizer.clip_by_global_norm(most),
            };
        }
        if let Some(share) = averages {
            optimizer = optimizer.averages(share);
        }
        Ok(PyOptimizer { optimizer, no_decay })
    }

    /// Leaves variables alone that would be pulled to 0.
    fn keep_from_decay(&self, variables: Vec<PyRef<'_, PyVariable>>) {
        let mut no_decay = self.no_decay.lock().unwrap_or_else(PoisonError::into_inner);
        no_decay.extend(variables.iter().map(|v| bind::variable_number(&v.variable)));
    }

    /// Makes the state for variables, outside of what is traced.
    fn build(&self, py: Python<'_>, variables: Vec<PyRef<'_, PyVariable>>) -> PyResult<()> {
        let variables = plain(&variables);
        eagerly(|| run_attached(py, || self.optimizer.build(&variables)))
    }

    /// One step.
    fn apply(
        &self,
        py: Python<'_>,
        variables: Vec<PyRef<'_, PyVariable>>,
        gradients: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (variables, gradients) = pairs(py, &variables, &gradients)?;
        run(py, MUCH, || self.optimizer.apply(&variables, &gradients))
    }

    /// One step from the gradients that each rank has. `sharding` is what ranks hold in blocks.
    fn apply_across(
        &self,
        py: Python<'_>,
        world: PyRef<'_, PyWorld>,
        sharding: &str,
        variables: Vec<PyRef<'_, PyVariable>>,
        gradients: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let (variables, gradients) = pairs(py, &variables, &gradients)?;
        let (world, sharding) = (world.0.clone(), sharding_of(sharding)?);
        run(py, MUCH, || self.optimizer.apply_across(&world, sharding, &variables, gradients))
    }

    /// Lets what is traced from here on take state and variables to be in blocks, of which `dense` says whose gradients are no rows; or takes that back, by
    /// `replicas`.
    fn propose_blocks(
        &self,
        world: PyRef<'_, PyWorld>,
        sharding: &str,
        variables: Vec<PyRef<'_, PyVariable>>,
        dense: Vec<bool>,
    ) -> PyResult<()> {
        let sharding = sharding_of(sharding)?;
        bind::propose_blocks(&self.optimizer, &world.0, sharding, &plain(&variables), &dense);
        Ok(())
    }

    /// Lets each rank hold a block alone, of the state, and as `sharding` says of the variables.
    fn shard(
        &self,
        py: Python<'_>,
        world: PyRef<'_, PyWorld>,
        sharding: &str,
        variables: Vec<PyRef<'_, PyVariable>>,
        dense: Vec<bool>,
    ) -> PyResult<()> {
        let (variables, sharding) = (plain(&variables), sharding_of(sharding)?);
        let world = world.0.clone();
        let shard = || self.optimizer.shard(&world, sharding, &variables, &dense);
        eagerly(|| run_attached(py, shard))
    }

    /// The state: the number of steps, the rate, then of each variable.
    #[getter]
    fn variables(&self) -> Vec<PyVariable> {
        self.optimizer.variables().into_iter().map(|variable| PyVariable { variable }).collect()
    }

    /// The running mean of a variable.
    fn average(&self, variable: PyRef<'_, PyVariable>) -> Option<PyVariable> {
        self.optimizer.average(&variable.variable).map(|variable| PyVariable { variable })
    }

    /// Bytes of state for variables once a step was made.
    fn bytes(&self, py: Python<'_>, variables: Vec<PyRef<'_, PyVariable>>) -> PyResult<u64> {
        let variables = plain(&variables);
        run(py, 0, || Ok(self.optimizer.bytes(&variables)?.get()))
    }
}

/// A factor on losses that finds its size by itself.
#[pyclass(frozen, name = "LossScale", module = "tonnage")]
pub struct PyLossScale(LossScale);

#[pymethods]
impl PyLossScale {
    #[new]
    fn new(py: Python<'_>, factor: f64, every: u64) -> PyResult<PyLossScale> {
        eagerly(|| run_attached(py, || LossScale::starting_at(factor, every))).map(PyLossScale)
    }

    /// The loss times the factor.
    fn scale(&self, py: Python<'_>, loss: PyRef<'_, PyTensor>) -> PyResult<PyTensor> {
        let loss = loss.tensor.clone();
        run(py, 0, || self.0.scale(&loss)).map(PyTensor::from)
    }

    /// One step, if all gradients are finite; whether it was made.
    fn apply(
        &self,
        py: Python<'_>,
        optimizer: PyRef<'_, PyOptimizer>,
        variables: Vec<PyRef<'_, PyVariable>>,
        gradients: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<PyTensor> {
        let (variables, gradients) = pairs(py, &variables, &gradients)?;
        let optimizer = &optimizer.optimizer;
        run_attached(py, || self.0.apply(optimizer, &variables, &gradients)).map(PyTensor::from)
    }

    /// The factor, and how many good steps it has seen.
    #[getter]
    fn variables(&self) -> Vec<PyVariable> {
        self.0.variables().into_iter().map(|variable| PyVariable { variable }).collect()
    }
}

/// What ranks hold in blocks, by its name.
fn sharding_of(name: &str) -> PyResult<Sharding> {
    match name {
        "replicas" => Ok(Sharding::Replicas),
        "state" => Ok(Sharding::State),
        "gradients" => Ok(Sharding::Gradients),
        "weights" => Ok(Sharding::Weights),
        _ => {
            let names = "'replicas', 'state', 'gradients' or 'weights'";
            Err(PyValueError::new_err(format!("sharding {name:?}: it is one of {names}")))
        }
    }
}

fn plain(variables: &[PyRef<'_, PyVariable>]) -> Vec<Variable> {
    variables.iter().map(|v| v.variable.clone()).collect()
}

/// Variables with their gradients: tensors, rows, or none.
pub fn pairs(
    py: Python<'_>,
    variables: &[PyRef<'_, PyVariable>],
    gradients: &[Bound<'_, PyAny>],
) -> PyResult<(Vec<Variable>, Vec<Gradient>)> {
    let variables = plain(variables);
    if variables.len() != gradients.len() {
        let (v, g) = (variables.len(), gradients.len());
        return Err(PyValueError::new_err(format!("{v} variables and {g} gradients")));
    }
    let slices = sugar(py, "IndexedSlices")?;
    let of = |(given, variable): (&Bound<'_, PyAny>, &Variable)| -> PyResult<Gradient> {
        if given.is_none() {
            return Ok(Gradient::Unconnected);
        }
        if !given.is_instance(&slices)? {
            let want = crate::convert::Want::rather(variable.ty().dtype);
            return crate::convert::tensor(given, want).map(Gradient::Dense);
        }
        let part = |name: &str| -> PyResult<Tensor> {
            Ok(given.getattr(name)?.cast_into::<PyTensor>()?.get().tensor.clone())
        };
        Ok(bind::gradient_rows(variable.ty(), part("indices")?, part("values")?))
    };
    let gradients = gradients.iter().zip(&variables).map(of).collect::<PyResult<_>>()?;
    Ok((variables, gradients))
}
