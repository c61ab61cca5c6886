//! Functions: a closure becomes a planned program.
//!
//! A function is traced once for each signature and planned once for each way its inputs can lie. Both are
//! cached up to a bound in bytes, counted in the ledger, and gone when the function is dropped.
//!
//! In the order in which a call goes through them: `key` is what a call is looked up by, `signature` says
//! which calls a trace serves, `relax` opens dims by itself, `cache` holds what was traced and planned (`captures` lists
//! the tensors in it), `program` is a graph with all that it takes from outside. `planned` looks its plan up, with the
//! room that a limit leaves; `choice` makes the plan, under a budget or without one; `refuse` says what would do where none
//! fits; `run` runs the call, and `ran` is what it took. `foresee` plans calls that do not run. `home` keeps the variables
//! that were made while tracing, `budget` is what a call may take, `differentiate` serves tapes around a call, `retrace`
//! notices when tracing does not end, `concrete` is a function for one signature, `lock` is the lock of what threads share.

mod around;
mod budget;
mod budgets;
mod cache;
pub(crate) mod captures;
mod choice;
mod concrete;
mod differentiate;
mod foresee;
pub(crate) mod home;
mod key;
mod lock;
mod planned;
pub(crate) mod program;
mod ran;
mod refuse;
mod relax;
mod retrace;
mod run;
pub(crate) mod signature;

pub use around::{around, budgeted, enter_budget, leave_budget};
pub use budget::largest_that_fits;
pub use budgets::{Budget, Budgets};
pub(crate) use cache::{HasProgram, TraceCache};
pub use concrete::ConcreteFunction;
pub(crate) use key::CallKey;
pub(crate) use lock::lock;
pub use ran::Ran;

use std::marker::PhantomData;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};

use tonnage_core::{Bytes, ErrorKind, Kind, Result, Source, TensorType};
use tonnage_plan::Plan;
use tonnage_runtime::execute::Measured;
use tonnage_runtime::{Array, Context, Owner};

use crate::grad::function::{Whole, is_watched};
use crate::tensor::{Tensor, TensorRepr};
use crate::trace::{self, FinishedTrace, Trace};
use crate::tree::{Tree, leaves};
use crate::variable::Variable;
use crate::world::rows::with_most;
use concrete::Concrete;
use home::Home;
use key::with_key;
use program::TracedProgram;
use relax::Families;
use retrace::Retraces;
use signature::Signature;

/// A closure that is traced and planned. See [`function`].
pub struct Function<A, R, F> {
    f: F,
    made: Source,
    /// The only signature that it takes, if it was given one.
    signature: Option<Signature>,
    /// Sizes that were seen, where dims are opened by themselves.
    families: Option<Mutex<Families>>,
    cache: Arc<Mutex<TraceCache<Concrete<R>>>>,
    /// For those who differentiate its calls.
    wholes: Mutex<Vec<(CallKey, Arc<Whole>)>>,
    home: Arc<Home>,
    retraces: Retraces,
    /// Whether it runs eagerly: as all functions do, or as it was told itself.
    eager: AtomicU8,
    arguments: PhantomData<fn(A)>,
}

/// Makes a closure a planned program: it is traced at its first call with arguments of new types, and
/// runs in exactly the memory that [`Function::plan`] predicts.
///
/// Arguments and results are nested as you like ([`Tree`]). Another dtype, rank or size of a tensor is
/// another trace, and so is another value of a number, boolean or string among the arguments; with
/// [`Function::signature`] dims can be left open. A tensor that is moved into a call, and that nobody else
/// holds, may be overwritten by it.
///
/// ```
/// use tonnage::{Elementwise, Tensor, function, tensor};
/// let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
/// let x = tensor([1.0f32, 2.0, 3.0])?;
/// println!("{}", f.plan(&x)?);
/// assert_eq!(f.call(x)?.to_vec::<f32>()?, [3.0, 9.0, 19.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// Variables that the closure makes belong to the function: the first trace makes them, later ones find them
/// again by their line, name and order.
///
/// ```
/// use tonnage::{Tensor, Variable, function, ones, zeros};
/// let count = function(|x: Tensor| {
///     let total = Variable::new("total", zeros([2])?)?;
///     total.assign_add(&x)?;
///     total.read()
/// });
/// count.call(ones([2])?)?;
/// assert_eq!(count.call(ones([2])?)?.to_vec::<f32>()?, [2.0, 2.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// A gradient tape that is around a call sees into it: such a call is planned with what the rows of its
/// ops save as further results, which the tape holds, and the backward pass is planned as one call. With the
/// tape inside of the function all of it is one plan.
#[track_caller]
pub fn function<A: Tree, R: Tree, F: Fn(A) -> Result<R>>(f: F) -> Function<A, R, F> {
    let made = Source::here();
    let owner = Owner { kind: Kind::Graph, what: "function", name: None, source: made };
    Function {
        f,
        made,
        signature: None,
        families: None,
        cache: Arc::new(Mutex::new(TraceCache::new(owner))),
        wholes: Mutex::default(),
        home: Home::of_function(made),
        retraces: Retraces::default(),
        eager: AtomicU8::new(AS_ALL),
        arguments: PhantomData,
    }
}

const AS_ALL: u8 = 0;
const EAGERLY: u8 = 1;
const PLANNED: u8 = 2;

/// Lets all functions run their closures op by op, on every thread, from here on: to look at values in
/// between, or to see which op fails. A function that was told by [`Function::run_eagerly`] does as it was
/// told.
///
/// ```
/// use tonnage::{Tensor, function, run_functions_eagerly, tensor};
/// let f = function(|x: Tensor| {
///     println!("{x}"); // has values only while the function runs eagerly
///     x + 1.0
/// });
/// run_functions_eagerly(true);
/// f.call(tensor([1.0f32])?)?;
/// assert_eq!(f.traces(), 0);
/// run_functions_eagerly(false);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn run_functions_eagerly(eagerly: bool) {
    Context::current().settings().run_functions_eagerly.store(eagerly, Ordering::Relaxed);
}

impl<A: Tree, R: Tree, F: Fn(A) -> Result<R>> Function<A, R, F> {
    /// Takes calls of this signature alone, and is traced once for all of them. Dims may be open, and the
    /// same name is the same size; plain values are part of it.
    ///
    /// ```
    /// use tonnage::{DType, Dim, Elementwise, Tensor, function, zeros};
    /// let spec = Tensor::spec(DType::F32, [Dim::open("batch"), Dim::from(3)]);
    /// let f = function(|(x, y): (Tensor, Tensor)| (x * y)?.mean_all()).signature((spec.clone(), spec));
    /// for n in 1..5 {
    ///     f.call((zeros([n, 3])?, zeros([n, 3])?))?;
    /// }
    /// assert_eq!(f.traces(), 1);
    /// let error = f.call((zeros([2, 3])?, zeros([4, 3])?)).unwrap_err().to_string();
    /// assert!(error.contains("argument `.1` is f32[4, 3], but the signature says f32[batch, 3] with batch = 2"));
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn signature(mut self, arguments: A) -> Self {
        self.signature = Some(Signature::of(&arguments));
        self
    }

    /// Opens dims by itself: once it was called with three different sizes of the same dims, it is traced
    /// with those open. Dims that were equal in all calls so far are taken to be the same. Where the
    /// closure does not work with open dims it is traced for every size, as without this.
    ///
    /// ```
    /// use tonnage::{Tensor, function, zeros};
    /// let f = function(|x: Tensor| x.sum(1)).reduce_retracing();
    /// for n in 1..100 {
    ///     f.call(zeros([n, 3])?)?;
    /// }
    /// assert_eq!(f.traces(), 3);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn reduce_retracing(mut self) -> Self {
        self.families = Some(Mutex::default());
        self
    }

    /// What its traces and plans may take, instead of 64 MiB; what was used longest ago gives way.
    #[must_use]
    pub fn graph_limit(self, bytes: Bytes) -> Self {
        lock(&self.cache).set_limit(bytes);
        self
    }

    /// Lets it run its closure op by op, or not, whatever [`run_functions_eagerly`] says; `None` does as
    /// that says.
    pub fn run_eagerly(&self, eagerly: impl Into<Option<bool>>) {
        let told = match eagerly.into() {
            None => AS_ALL,
            Some(true) => EAGERLY,
            Some(false) => PLANNED,
        };
        self.eager.store(told, Ordering::Relaxed);
    }

    fn is_eager(&self) -> bool {
        match self.eager.load(Ordering::Relaxed) {
            AS_ALL => Context::current().settings().run_functions_eagerly.load(Ordering::Relaxed),
            told => told == EAGERLY,
        }
    }

    /// Calls it. Inside of another function that is traced it becomes part of that one.
    #[track_caller]
    pub fn call(&self, arguments: A) -> Result<R> {
        self.call_measured(arguments).map(|(result, _)| result)
    }

    /// Calls it and says what the executor measured; `None` where its ops ran one by one, or became part of
    /// another function.
    #[track_caller]
    pub fn call_measured(&self, arguments: A) -> Result<(R, Option<Measured>)> {
        let source = Source::here();
        if trace::current().is_some() || self.is_eager() {
            return Ok((self.inline(arguments, source)?, None));
        }
        self.retraces.called();
        let concrete = self.find(&arguments, source)?;
        let most = concrete.program.rows.compared();
        if most.is_empty() {
            return self.call_traced(&concrete, arguments, source);
        }
        with_most(most, || self.call_traced(&*self.find(&arguments, source)?, arguments, source))
    }

    /// Calls what was traced for these arguments.
    fn call_traced(
        &self,
        concrete: &Concrete<R>,
        arguments: A,
        source: Source,
    ) -> Result<(R, Option<Measured>)> {
        if is_watched(&arguments, &concrete.program) {
            let made = self.differentiated(concrete, arguments, source);
            return Ok((made.map_err(|e| e.at(source))?, None));
        }
        let (result, measured) = concrete.call(&self.cache, arguments, source)?;
        Ok((result, Some(measured)))
    }

    /// Runs the closure as it stands.
    fn inline(&self, arguments: A, source: Source) -> Result<R> {
        if let Some(signature) = &self.signature {
            let given = Signature::of(&arguments);
            if !signature.fits(&given) {
                return Err(signature.mismatch("function", &given).at(source));
            }
        }
        let entered = home::enter(&self.home)?;
        let made = (self.f)(arguments)?;
        entered.commit();
        Ok(made)
    }

    /// What a call with such arguments would take: the order, an address for every buffer, and the peak.
    /// Runs nothing. The arguments' values do not matter; pass [`Tensor::spec`] for those that do not exist
    /// yet.
    #[track_caller]
    pub fn plan(&self, arguments: &A) -> Result<Arc<Plan>> {
        self.foresee(arguments, false, Source::here())
    }

    /// The same for a call that arguments are moved into, which nobody else holds: it may overwrite them.
    ///
    /// ```
    /// use tonnage::{DType, Elementwise, Tensor, function};
    /// let f = function(|x: Tensor| x.tanh());
    /// let x = Tensor::spec(DType::F32, [1 << 20]);
    /// assert_eq!(f.plan(&x)?.peak().get(), 8 << 20);
    /// assert_eq!(f.plan_moved(&x)?.peak().get(), 4 << 20);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn plan_moved(&self, arguments: &A) -> Result<Arc<Plan>> {
        self.foresee(arguments, true, Source::here())
    }

    fn foresee(&self, arguments: &A, moved: bool, source: Source) -> Result<Arc<Plan>> {
        let concrete = self.find(arguments, source)?;
        let planned = concrete.program.foresee(&self.cache, &leaves(arguments), moved);
        planned.map_err(|e| e.at(source))
    }

    /// The function for such arguments alone, traced now if it was not yet. Dims of [`Tensor::spec`] among
    /// them may be open.
    #[track_caller]
    pub fn concrete(&self, arguments: &A) -> Result<ConcreteFunction<A, R>> {
        let concrete = self.find(arguments, Source::here())?;
        Ok(ConcreteFunction::new(concrete, self.cache.clone()))
    }

    /// The graph for such arguments as it runs, as text, with what it takes itself. Where lengths are open it is the graph as
    /// it was traced: only a call has the sizes that it runs with.
    #[track_caller]
    pub fn graph(&self, arguments: &A) -> Result<String> {
        let source = Source::here();
        let concrete = self.find(arguments, source)?;
        let leaves = leaves(arguments);
        if leaves.iter().any(|tensor| tensor.shape().sizes().is_none()) {
            return Ok(program::text(concrete.program.graph()));
        }
        let plan = concrete.program.foresee(&self.cache, &leaves, false);
        Ok(program::text(&plan.map_err(|e| e.at(source))?.graph))
    }

    /// What the last planned call took, what was done to let it fit, and what that cost; `None` before the
    /// first one.
    pub fn last_run(&self) -> Option<Ran> {
        lock(&self.cache).last()
    }

    /// How many traces are cached.
    pub fn traces(&self) -> usize {
        lock(&self.cache).traces()
    }

    /// What its traces and plans take themselves. The ledger has it as held by the function's line.
    pub fn graph_bytes(&self) -> Bytes {
        Bytes::of(lock(&self.cache).bytes())
    }

    /// The variables that were made while it was traced, in the order of their making.
    pub fn variables(&self) -> Vec<Variable> {
        self.home.variables()
    }

    /// The trace that serves such arguments, made now if there is none.
    fn find(&self, arguments: &A, source: Source) -> Result<Arc<Concrete<R>>> {
        let found = with_key(arguments, |key| {
            if key.symbolic {
                return Err(tonnage_core::Error::from(ErrorKind::Escaped { op: "function" }));
            }
            let mut cache = lock(&self.cache);
            Ok(cache.trace(key).or_else(|| cache.open_trace(key)))
        });
        match found {
            Ok(Some(concrete)) => Ok(concrete),
            Ok(None) => self.trace_anew(arguments, source).map_err(|e| e.at(source)),
            Err(error) => Err(error.at(source)),
        }
    }

    fn trace_anew(&self, arguments: &A, source: Source) -> Result<Arc<Concrete<R>>> {
        let given = Signature::of(arguments);
        if let Some(signature) = &self.signature {
            signature.check()?;
            return match signature.fits(&given) {
                true => self.trace(arguments, signature.clone(), source),
                false => Err(signature.mismatch("function", &given)),
            };
        }
        given.check()?;
        self.retraces.traced(self.made, &given);
        let is_known = |tensor: &Tensor| tensor.shape().sizes().is_some();
        if let Some(families) = &self.families
            && leaves(arguments).iter().all(is_known)
        {
            let coarse = CallKey::of_types(&given.text, &given.types).coarse();
            let relaxed = lock(families).relaxed(&given, coarse.clone());
            if let Some(signature) = relaxed {
                match self.trace(arguments, signature, source) {
                    Ok(concrete) => return Ok(concrete),
                    // With known sizes it may work; if not, that error says why.
                    Err(_) => lock(families).refuse(&coarse),
                }
            }
        }
        self.trace(arguments, given, source)
    }

    /// Traces the closure for arguments of these types.
    fn run_traced(
        &self,
        arguments: &A,
        types: &[TensorType],
        source: Source,
    ) -> Result<(FinishedTrace, R)> {
        let trace = Trace::begin(source);
        let mut types = types.iter();
        let symbols = arguments
            .share()
            .map(&mut |tensor| Ok(trace.argument(types.next().cloned().unwrap_or(tensor.ty()))))?;
        let result = trace.within(|| (self.f)(symbols))?;
        let mut outputs = leaves(&result);
        outputs.extend(trace.written());
        Ok((trace.finish(&outputs)?, result))
    }

    fn trace(
        &self,
        arguments: &A,
        signature: Signature,
        source: Source,
    ) -> Result<Arc<Concrete<R>>> {
        let entered = home::enter(&self.home)?;
        let (traced, result) = self.run_traced(arguments, &signature.types, source)?;
        let results = leaves(&result).len();
        let variables = traced.variables.into_iter().map(|u| (u.variable, u.written)).collect();
        let key = CallKey::of_types(&signature.text, &signature.types);
        let is_open = !signature.symbols.is_empty();
        let mut program =
            TracedProgram::new(traced.graph, signature, traced.captured, variables, results)?;
        program.replica = traced.replica;
        program.rows = traced.rows;
        // Only types are kept of the result: what was traced is in the program.
        let result = result.map(&mut |tensor| Ok(Tensor::from_spec(tensor.ty())))?;
        let concrete = Arc::new(Concrete { program, result });
        entered.commit();
        Ok(lock(&self.cache).insert_trace(key, concrete, is_open))
    }
}

impl<A, R, F> std::fmt::Debug for Function<A, R, F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Function(made at {})", self.made)
    }
}

/// The arrays of arguments that are given up; an error where one has no values.
pub(crate) fn give_up<A: Tree>(arguments: A, op: &'static str) -> Result<Vec<Array>> {
    let (mut arrays, mut failed) = (Vec::new(), None);
    arguments.take(&mut |tensor| match tensor.spec_type() {
        Some(_) => failed = Some(tensor.no_values(op)),
        None => match tensor.into_repr() {
            TensorRepr::Array(array) => arrays.push(array),
            _ => failed = Some(ErrorKind::Escaped { op }.into()),
        },
    });
    match failed {
        None => Ok(arrays),
        Some(error) => Err(error),
    }
}
