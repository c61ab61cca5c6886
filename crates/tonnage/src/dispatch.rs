//! Where every op goes through: to open forward passes, to the trace, or to the kernel and the tapes.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::{Emit, Kind, Mark, OpDef, Result, Source, Value};
use tonnage_runtime::eager::{self, Arg, Args};

use crate::grad::dual;
use crate::tape;
use crate::tensor::{Tensor, TensorRepr};
use crate::trace;

/// An input of an op, before it is known where the op goes. It is no [`Arg`], as a tensor need not have an array: it may be
/// a symbol of a trace, or a type without values. Tapes and forward passes know it by the tensor's id. Where the op runs
/// now, it becomes an [`Arg`].
pub(crate) enum TensorArg<'a> {
    /// Left as it is.
    Borrowed(&'a Tensor),
    /// Moved in: where nobody else holds its bytes, they may become the result's.
    Owned(Tensor),
}

impl<'a> TensorArg<'a> {
    /// The tensor, either way.
    pub fn tensor(&self) -> &Tensor {
        match self {
            TensorArg::Borrowed(tensor) => tensor,
            TensorArg::Owned(tensor) => tensor,
        }
    }

    /// The array under it, for an op that runs now.
    ///
    /// # Errors
    /// Where it has none.
    #[inline]
    fn into_arg(self, op: &'static OpDef) -> Result<Arg<'a>> {
        match self {
            TensorArg::Borrowed(tensor) => Ok(Arg::Borrowed(tensor.array(op.name)?)),
            TensorArg::Owned(tensor) => match tensor.into_repr() {
                TensorRepr::Array(array) => Ok(Arg::Owned(array)),
                _ => Err(tonnage_core::ErrorKind::Escaped { op: op.name }.into()),
            },
        }
    }
}

impl<'a> From<&'a Tensor> for TensorArg<'a> {
    fn from(tensor: &'a Tensor) -> TensorArg<'a> {
        TensorArg::Borrowed(tensor)
    }
}

impl From<Tensor> for TensorArg<'_> {
    fn from(tensor: Tensor) -> Self {
        TensorArg::Owned(tensor)
    }
}

/// Inputs of an op.
pub(crate) type TensorArgs<'a> = SmallVec<[TensorArg<'a>; 3]>;

/// What an op is applied with besides its inputs and attributes.
pub(crate) struct OpContext {
    /// Its bodies or branches.
    pub regions: Vec<Arc<Graph>>,
    /// Whether the row's extra outputs follow the others.
    pub aux: bool,
    /// Whose line it is, and what its results are to the ledger.
    pub mark: Mark,
}

impl OpContext {
    /// Of an op without regions, for a line of the user.
    #[inline]
    pub fn at(source: Source) -> OpContext {
        let mark = Mark { source, kind: Kind::Activation };
        OpContext { regions: Vec::new(), aux: false, mark }
    }
}

/// Applies an op that has one output.
#[inline]
pub(crate) fn apply1(
    op: &'static OpDef,
    inputs: TensorArgs,
    attrs: Attrs,
    source: Source,
) -> Result<Tensor> {
    let mut made = apply(op, inputs, attrs, OpContext::at(source))?;
    debug_assert_eq!(made.len(), 1, "{}", op.name);
    Ok(made.swap_remove(0))
}

/// Applies an op: now, or in the graph that is being traced.
pub(crate) fn apply(
    op: &'static OpDef,
    mut inputs: TensorArgs,
    attrs: Attrs,
    context: OpContext,
) -> Result<SmallVec<[Tensor; 1]>> {
    let OpContext { regions, aux, mark } = context;
    if !dual::quiet() {
        match dual::apply(op, inputs, &attrs, &regions, aux, mark) {
            Ok(made) => return made,
            Err(given_back) => inputs = given_back,
        }
    }
    let source = mark.source;
    if let Some(trace) = trace::current() {
        let tensors: Vec<Tensor> = inputs.iter().map(|i| i.tensor().clone()).collect();
        let tensors = trace::equalized(op, tensors, &attrs, &regions, source)?;
        let recording = tape::symbolic(op, &tensors, &attrs, &regions, source);
        let made =
            trace.apply(op, &tensors, attrs, regions, aux, mark).map_err(|e| e.at(source))?;
        if let Some(recording) = recording {
            recording.finish(&tensors, &made)?;
        }
        return Ok(made.into_iter().collect());
    }
    if let Some(input) = inputs.iter().find(|input| !input.tensor().is_concrete()) {
        return Err(no_values(input.tensor(), op).at(source));
    }
    // Asked apart: a recording is large, and mostly there is none.
    let recording = match tape::is_quiet() {
        true => None,
        false => tape::eager(op, &inputs, &attrs, &regions, source)?,
    };
    let wants = aux || recording.as_ref().is_some_and(|r| r.wants_aux());
    let mut args = Args::new();
    for input in inputs {
        args.push(input.into_arg(op)?);
    }
    let made = eager::apply(op, args, &attrs, &regions, wants, mark)?;
    let mut tensors: SmallVec<[Tensor; 1]> = SmallVec::new();
    for array in made {
        tensors.push(Tensor::from_array(array));
    }
    tape::finite::check(op.name, &tensors, source)?;
    if let Some(recording) = recording {
        tape::finite::see(op.name, &tensors, source);
        let plain = recording.plain();
        recording.finish(&[], &tensors)?;
        if !aux {
            tensors.truncate(plain);
        }
    }
    Ok(tensors)
}

#[cold]
fn no_values(tensor: &Tensor, op: &'static OpDef) -> tonnage_core::Error {
    match tensor.spec_type() {
        Some(_) => tensor.no_values(op.name),
        None => tonnage_core::ErrorKind::Escaped { op: op.name }.into(),
    }
}

/// Rules and composites on tensors: what they emit goes where every op goes, so that tapes around the one
/// that walks backward record it too.
pub(crate) struct TensorEmit {
    mark: Mark,
}

impl TensorEmit {
    pub fn new(mark: Mark) -> TensorEmit {
        TensorEmit { mark }
    }
}

/// A tensor as a value that rules can hold.
pub(crate) fn hold(tensor: Tensor) -> Value {
    Value::held(tensor.ty(), Arc::new(tensor))
}

/// The tensor that a value holds; it is moved out where this is the last handle.
pub(crate) fn unhold(value: Value) -> Result<Tensor> {
    match value.into_held().and_then(|any| any.downcast::<Tensor>().ok()) {
        Some(tensor) => Ok(Arc::try_unwrap(tensor).unwrap_or_else(|shared| (*shared).clone())),
        None => Err(tonnage_core::ErrorKind::Symbolic { what: "the value" }.into()),
    }
}

impl Emit for TensorEmit {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let inputs = inputs
            .into_iter()
            .map(|value| unhold(value).map(TensorArg::Owned))
            .collect::<Result<TensorArgs>>()?;
        let made = apply(op, inputs, attrs, OpContext { regions, aux, mark: self.mark })?;
        Ok(made.into_iter().map(hold).collect())
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        std::mem::replace(&mut self.mark, mark)
    }
}
