//! Functions: a closure becomes a planned program.
//!
//! A function is traced once for each signature and planned once for each way its inputs can lie. Both are
//! remembered, up to a bound, and gone when the function is dropped.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_core::{Kind, Mark, Result, Source, TensorType, Workers};
use tonnage_plan::{InputSpec, Options, Plan, lower, plan};
use tonnage_runtime::random::next_key;
use tonnage_runtime::{Array, execute, pool};

use crate::tensor::{Repr, Tensor};
use crate::trace::{self, Trace};
use crate::tree::Tree;
use crate::variable::{Foreseen, Held, Variable};

/// Traces and plans that a function remembers; the oldest gives way.
const REMEMBERED: usize = 64;

/// A closure that is traced and planned. See [`function`].
pub struct Function<A, R, F> {
    f: F,
    traces: Mutex<Vec<Arc<Concrete<A, R>>>>,
}

/// A function for one signature.
struct Concrete<A, R> {
    signature: (String, Vec<TensorType>),
    graph: tonnage_core::Graph,
    captured: Vec<Array>,
    variables: Vec<(Variable, bool)>,
    /// The result as it was traced, whose tensors are replaced by those of a call.
    result: R,
    results: usize,
    plans: Mutex<Vec<(Vec<InputSpec>, Arc<Plan>)>>,
    arguments: std::marker::PhantomData<fn(A)>,
}

/// Makes a closure a planned program: it is traced at its first call with arguments of new types, and
/// runs in exactly the memory that [`Function::plan`] tells.
///
/// A tensor that is moved into a call, and that nobody else holds, may be overwritten by it.
///
/// ```
/// use tonnage::{Elementwise, Tensor, function, tensor};
/// let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
/// let x = tensor([1.0f32, 2.0, 3.0])?;
/// println!("{}", f.plan(&x)?);
/// assert_eq!(f.call(x)?.to_vec::<f32>()?, [3.0, 9.0, 19.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn function<A: Tree, R: Tree, F: Fn(A) -> Result<R>>(f: F) -> Function<A, R, F> {
    Function { f, traces: Mutex::new(Vec::new()) }
}

impl<A: Tree, R: Tree, F: Fn(A) -> Result<R>> Function<A, R, F> {
    /// Calls it. Inside of another function that is traced it becomes part of that one.
    #[track_caller]
    pub fn call(&self, arguments: A) -> Result<R> {
        self.call_measured(arguments).map(|(result, _)| result)
    }

    /// Calls it and says what the executor measured; `None` inside of another function.
    #[track_caller]
    pub fn call_measured(&self, arguments: A) -> Result<(R, Option<execute::Measured>)> {
        let source = Source::here();
        if trace::current().is_some() {
            return Ok(((self.f)(arguments)?, None));
        }
        let concrete = self.concrete(&arguments, source)?;
        let mut leaves = Vec::new();
        // The arguments are given up here: those that nobody else holds are the call's to overwrite.
        let mut failed = None;
        arguments.take(&mut |tensor| match tensor.into_repr() {
            Repr::Array(array) => leaves.push(array),
            Repr::Symbol(_) => {
                failed = Some(tonnage_core::ErrorKind::Escaped { op: "function" });
            }
        });
        if let Some(kind) = failed {
            return Err(tonnage_core::Error::from(kind).at(source));
        }
        let donated: Vec<bool> = leaves.iter().map(Array::is_sole).collect();
        let mut inputs = leaves;
        inputs.extend(concrete.captured.iter().cloned());
        let mut held = Held::take(&concrete.variables).map_err(|e| e.at(source))?;
        inputs.extend(held.arrays());
        let mut seen = Vec::new();
        let specs = inputs
            .iter()
            .enumerate()
            .map(|(i, array)| {
                execute::spec(array, donated.get(i).copied().unwrap_or(false), &mut seen)
            })
            .collect();
        let planned = concrete.planned(specs)?;
        let mark = Mark { source, kind: Kind::Activation };
        let (made, measured) = execute::execute(&planned, &inputs, next_key(), mark)?;
        drop(inputs);
        held.end();
        let mut made = made.into_iter().take(concrete.results);
        let result = concrete.result.share().map(&mut |_| {
            let array = made.next().ok_or_else(|| {
                let what = "a call returned fewer results than it was traced with".into();
                tonnage_core::Error::from(tonnage_core::ErrorKind::BadGraph { what })
            })?;
            Ok(Tensor::from_array(array))
        })?;
        Ok((result, Some(measured)))
    }

    /// What a call with such arguments would take: the order, an address for every buffer, and the peak.
    /// Runs nothing. The arguments' values do not matter; pass recipes (`zeros`) for large ones that do
    /// not exist yet.
    #[track_caller]
    pub fn plan(&self, arguments: &A) -> Result<Arc<Plan>> {
        let source = Source::here();
        let concrete = self.concrete(arguments, source)?;
        let (mut seen, mut specs) = (Vec::new(), Vec::new());
        let mut failed = None;
        arguments.for_each(&mut |tensor| match tensor.repr() {
            Repr::Array(array) => specs.push(execute::spec(array, false, &mut seen)),
            Repr::Symbol(_) => failed = Some(tonnage_core::ErrorKind::Escaped { op: "plan" }),
        });
        if let Some(kind) = failed {
            return Err(tonnage_core::Error::from(kind).at(source));
        }
        specs.extend(concrete.captured.iter().map(|a| execute::spec(a, false, &mut seen)));
        for (variable, written) in &concrete.variables {
            specs.push(match variable.foreseen(*written).map_err(|e| e.at(source))? {
                Foreseen::AsIs(array) => execute::spec(&array, false, &mut seen),
                Foreseen::Copy(ty) => InputSpec::contiguous(&ty, "variable", false)?,
            });
        }
        concrete.planned(specs)
    }

    /// The graph for such arguments, as text.
    #[track_caller]
    pub fn graph(&self, arguments: &A) -> Result<String> {
        Ok(self.concrete(arguments, Source::here())?.graph.to_string())
    }

    /// How often it was traced and is remembered.
    pub fn traces(&self) -> usize {
        self.traced().len()
    }

    fn traced(&self) -> MutexGuard<'_, Vec<Arc<Concrete<A, R>>>> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn concrete(&self, arguments: &A, source: Source) -> Result<Arc<Concrete<A, R>>> {
        let mut text = String::new();
        arguments.describe(&mut text);
        let mut types = Vec::new();
        arguments.for_each(&mut |tensor| types.push(tensor.ty()));
        let signature = (text, types);
        let found = self.traced().iter().find(|c| c.signature == signature).cloned();
        if let Some(concrete) = found {
            return Ok(concrete);
        }
        let concrete = Arc::new(self.trace(arguments, signature, source)?);
        let mut traces = self.traced();
        // Another thread may have traced it meanwhile: the first one stays.
        if let Some(first) = traces.iter().find(|c| c.signature == concrete.signature) {
            return Ok(first.clone());
        }
        if traces.len() >= REMEMBERED {
            traces.remove(0);
        }
        traces.push(concrete.clone());
        Ok(concrete)
    }

    fn trace(
        &self,
        arguments: &A,
        signature: (String, Vec<TensorType>),
        source: Source,
    ) -> Result<Concrete<A, R>> {
        let trace = Trace::begin(source);
        let symbols = arguments.share().map(&mut |t| Ok(trace.argument(t.ty())))?;
        let result = trace.within(|| (self.f)(symbols))?;
        let mut outputs = Vec::new();
        result.for_each(&mut |tensor| outputs.push(tensor.clone()));
        let results = outputs.len();
        outputs.extend(trace.written());
        let traced = trace.finish(&outputs).map_err(|e| e.at(source))?;
        let captured = traced
            .captured
            .iter()
            .map(|tensor| tensor.array("a captured tensor").cloned())
            .collect::<Result<_>>()?;
        Ok(Concrete {
            signature,
            graph: lower(&traced.graph)?,
            captured,
            variables: traced.variables.into_iter().map(|u| (u.variable, u.written)).collect(),
            result,
            results,
            plans: Mutex::new(Vec::new()),
            arguments: std::marker::PhantomData,
        })
    }
}

impl<A, R> Concrete<A, R> {
    fn planned(&self, specs: Vec<InputSpec>) -> Result<Arc<Plan>> {
        let mut plans = self.plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, plan)) = plans.iter().find(|(key, _)| *key == specs) {
            return Ok(plan.clone());
        }
        let options = Options { threads: pool().threads(), outputs_given: false };
        let made = Arc::new(plan(&self.graph, &specs, options)?);
        if plans.len() >= REMEMBERED {
            plans.remove(0);
        }
        plans.push((specs, made.clone()));
        Ok(made)
    }
}
