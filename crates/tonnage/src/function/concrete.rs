//! A function for one signature, and the handle to it.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex};

use tonnage_core::error::bad_argument;
use tonnage_core::heap::{Heap, Seen};
use tonnage_core::{Bytes, ErrorKind, Result, Source, TensorType};
use tonnage_plan::Plan;
use tonnage_runtime::execute::Measured;

use super::cache::{HasProgram, TraceCache};
use super::key::with_key;
use super::program::{self, TracedProgram};
use super::{Signature, give_up};
use crate::grad::function::is_watched;
use crate::tensor::Tensor;
use crate::tree::{Tree, leaves};
use crate::variable::Variable;

/// What was traced for one signature.
pub(crate) struct Concrete<R> {
    pub program: TracedProgram,
    /// The result as it was traced: types, whose tensors are replaced by those of a call.
    pub result: R,
}

impl<R: Tree> Concrete<R> {
    /// Runs it with arguments that fit, which are given up.
    pub fn call<A: Tree>(
        &self,
        cache: &Mutex<TraceCache<Concrete<R>>>,
        arguments: A,
        source: Source,
    ) -> Result<(R, Measured)> {
        let arrays = give_up(arguments, "function").map_err(|e| e.at(source))?;
        let (made, measured) = self.program.run(cache, arrays, source)?;
        let mut made = made.into_iter();
        let result = self.result.share().map(&mut |_| {
            made.next()
                .map(Tensor::from_array)
                .ok_or_else(|| ErrorKind::BadGraph { what: "a result is missing".into() }.into())
        })?;
        Ok((result, measured))
    }
}

impl<R: Tree> HasProgram for Concrete<R> {
    fn program(&self) -> &TracedProgram {
        &self.program
    }
}

impl<R: Tree> Heap for Concrete<R> {
    // What the result's own nesting takes is not known; it is counted as a vector of its tensors.
    fn heap(&self, seen: &mut Seen) -> usize {
        let mut result = 0;
        self.result.for_each(&mut |tensor| {
            result += size_of::<Tensor>() + 2 * size_of::<usize>() + size_of::<TensorType>();
            result += tensor.ty().heap(seen);
        });
        self.program.heap(seen) + result
    }
}

/// A function for one signature: called without being looked up, planned, and looked at. It keeps the
/// function's caches alive.
///
/// ```
/// use tonnage::{DType, Dim, Tensor, function, tensor};
/// let weight = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let f = function(move |x: Tensor| x.matmul(&weight));
/// let rows = f.concrete(&Tensor::spec(DType::F32, [Dim::open("rows"), Dim::from(2)]))?;
/// assert_eq!(rows.call(tensor([[1.0f32, 1.0]])?)?.to_vec::<f32>()?, [4.0, 6.0]);
/// assert_eq!(rows.inputs()[0].to_string(), "f32[rows, 2]");
/// assert_eq!(rows.outputs()[0].to_string(), "f32[rows, 2]");
/// assert_eq!(rows.captured_bytes().get(), 64);
/// println!("{}", rows.graph());
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct ConcreteFunction<A, R> {
    concrete: Arc<Concrete<R>>,
    cache: Arc<Mutex<TraceCache<Concrete<R>>>>,
    arguments: PhantomData<fn(A)>,
}

impl<A: Tree, R: Tree> ConcreteFunction<A, R> {
    pub(crate) fn new(
        concrete: Arc<Concrete<R>>,
        cache: Arc<Mutex<TraceCache<Concrete<R>>>>,
    ) -> ConcreteFunction<A, R> {
        ConcreteFunction { concrete, cache, arguments: PhantomData }
    }

    /// Calls it with arguments of its signature.
    #[track_caller]
    pub fn call(&self, arguments: A) -> Result<R> {
        self.call_measured(arguments).map(|(result, _)| result)
    }

    /// Calls it and says what the executor measured.
    #[track_caller]
    pub fn call_measured(&self, arguments: A) -> Result<(R, Measured)> {
        let source = Source::here();
        self.check(&arguments).map_err(|e| e.at(source))?;
        if is_watched(&arguments, &self.concrete.program) {
            let what = "called where a tape or a forward pass differentiates it";
            let help = "call the function that it is of: that saves what the gradient needs";
            return Err(bad_argument("concrete function", what, help).at(source));
        }
        self.concrete.program.rows.check().map_err(|e| e.at(source))?;
        self.concrete.call(&self.cache, arguments, source)
    }

    /// What a call with such arguments would take. Runs nothing.
    #[track_caller]
    pub fn plan(&self, arguments: &A) -> Result<Arc<Plan>> {
        let source = Source::here();
        self.check(arguments).map_err(|e| e.at(source))?;
        let planned = self.concrete.program.foresee(&self.cache, &leaves(arguments), false);
        planned.map_err(|e| e.at(source))
    }

    /// Its graph as text, open dims and all, with what it takes itself.
    pub fn graph(&self) -> String {
        program::text(self.concrete.program.graph())
    }

    /// Types of the tensors among its arguments, in their order.
    pub fn inputs(&self) -> Vec<TensorType> {
        self.concrete.program.signature.types.clone()
    }

    /// Types of the tensors of its result.
    pub fn outputs(&self) -> Vec<TensorType> {
        leaves(&self.concrete.result).iter().map(Tensor::ty).collect()
    }

    /// The tensors that it captured: held by reference, however many functions hold them.
    pub fn captured(&self) -> Vec<Tensor> {
        self.concrete.program.captured.clone()
    }

    /// What the tensors that it captured take.
    pub fn captured_bytes(&self) -> Bytes {
        self.concrete.program.captured_bytes()
    }

    /// The variables that it reads or writes.
    pub fn variables(&self) -> Vec<Variable> {
        self.concrete.program.variables.iter().map(|(variable, _)| variable.clone()).collect()
    }

    /// What the trace takes itself, without plans.
    pub fn graph_bytes(&self) -> Bytes {
        Bytes::of(self.concrete.heap(&mut Seen::default()))
    }

    fn check(&self, arguments: &A) -> Result<()> {
        if crate::trace::current().is_some() {
            let help = "call the function that it is of: that becomes part of the trace";
            return Err(bad_argument("concrete function", "called inside of another trace", help));
        }
        let signature = &self.concrete.program.signature;
        let fits: Result<bool> = with_key(arguments, |key| match key.symbolic {
            true => Err(ErrorKind::Escaped { op: "function" }.into()),
            false => Ok(signature.bind(key).is_some()),
        });
        match fits? {
            true => Ok(()),
            false => Err(signature.mismatch("function", &Signature::of(arguments))),
        }
    }
}

impl<A, R> Clone for ConcreteFunction<A, R> {
    fn clone(&self) -> Self {
        let (concrete, cache) = (self.concrete.clone(), self.cache.clone());
        ConcreteFunction { concrete, cache, arguments: PhantomData }
    }
}
