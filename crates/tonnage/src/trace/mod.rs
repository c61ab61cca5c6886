//! Tracing: ops become nodes of a graph instead of running.
//!
//! Traces nest: a function is traced in one, and each body or branch inside of it in one of its own. What
//! a trace uses from outside (a concrete tensor, or a value of a trace around it) it captures: the value
//! becomes an input. `lift` takes out of a trace what does not depend on its arguments; `known` is the value of what constants alone make; `part` is what some
//! of its values need, of a trace that goes on; `sizes` has sizes that the data decide compared as they run.

mod known;
mod lift;
mod part;
mod sizes;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Builder, Graph, ValueId};
use tonnage_core::recipe::Key;
use tonnage_core::{Emit, ErrorKind, Kind, Mark, OpDef, Result, TensorType, Value};
use tonnage_runtime::random::Replica;

pub(crate) use known::known;
pub(crate) use lift::lift;
pub(crate) use part::InputOrigin;
pub(crate) use sizes::equalized;

use crate::tensor::{Tensor, TensorRepr};
use crate::variable::Variable;

/// A graph that is being traced; clones are the same one.
#[derive(Clone)]
pub(crate) struct Trace(Arc<TraceInner>);

struct TraceInner {
    number: u64,
    /// The trace around a body, a branch or a deferred graph; none where it runs now.
    parent: Option<Trace>,
    is_region: bool,
    /// Whether the graph will stand where it is called, with the random numbers of what is around it.
    is_call: bool,
    state: Mutex<TraceState>,
}

pub(crate) struct TraceState {
    pub builder: Builder,
    arguments: Vec<Value>,
    /// What comes from outside, and the input that it became.
    captured: Vec<(Tensor, Value)>,
    /// Concrete tensors by their identity, for quick lookup.
    by_id: HashMap<u64, usize>,
    /// Variables that are used, in the order of their first use.
    pub variables: Vec<UsedVariable>,
    /// What was gathered of variables that ranks hold in blocks: the variable of the own block, its value then, and the whole.
    gathered: Vec<(Variable, Option<ValueId>, Value)>,
    /// Random ops so far.
    random: u32,
    /// What nodes that are added now wait for, besides what they read.
    waits_for: Vec<ValueId>,
    /// Nodes that wait so, by their first outputs.
    waiting: HashMap<ValueId, Vec<ValueId>>,
    /// As which of several replicas a call draws its random numbers, where it is to draw as one.
    replica: Option<Replica>,
}

impl TraceState {
    /// What came from outside so far, and the input that it became.
    pub fn captured(&self) -> impl Iterator<Item = (&Tensor, &Value)> {
        self.captured.iter().map(|(tensor, value)| (tensor, value))
    }
}

/// A variable that a trace uses.
pub(crate) struct UsedVariable {
    pub variable: Variable,
    /// Its value as it comes in.
    pub input: Value,
    /// Its value now.
    pub now: Value,
    pub written: bool,
}

thread_local! {
    static STACK: RefCell<Vec<Trace>> = const { RefCell::new(Vec::new()) };
}

/// The innermost trace of this thread.
pub(crate) fn current() -> Option<Trace> {
    STACK.with_borrow(|stack| stack.last().cloned())
}

/// Runs `f` as if nothing were traced on this thread.
pub(crate) fn outside<R>(f: impl FnOnce() -> R) -> R {
    struct RestoreStack(Vec<Trace>);
    impl Drop for RestoreStack {
        fn drop(&mut self) {
            STACK.set(std::mem::take(&mut self.0));
        }
    }
    let _restore = RestoreStack(STACK.take());
    f()
}

/// The traces of this thread, taken away: nothing is traced until they are [`put_back`].
pub(crate) fn take_away() -> Vec<Trace> {
    STACK.take()
}

/// As it was before [`take_away`].
pub(crate) fn put_back(traces: Vec<Trace>) {
    STACK.set(traces);
}

/// The trace of that number, if it goes on: this one or one around it.
pub(crate) fn enclosing(number: Option<u64>) -> Option<Trace> {
    let number = number?;
    STACK.with_borrow(|stack| stack.iter().rev().find(|trace| trace.number() == number).cloned())
}

/// A finished trace.
pub(crate) struct FinishedTrace {
    pub graph: Graph,
    /// What the captured inputs are, in order.
    pub captured: Vec<Tensor>,
    pub variables: Vec<UsedVariable>,
    /// As which of several replicas a call draws its random numbers, where it is to draw as one.
    pub replica: Option<Replica>,
}

impl Trace {
    /// A function's trace. One that is traced inside of another would be part of that one.
    pub fn begin(source: tonnage_core::Source) -> Trace {
        Trace::make(source, None, false, false)
    }

    /// The trace of a deferred graph: it may use what is around it where it is made, though it cannot run then.
    pub fn begin_graph(source: tonnage_core::Source) -> Trace {
        Trace::make(source, current(), false, false)
    }

    /// A body's or a branch's trace: it may use what is around it.
    pub fn begin_region(source: tonnage_core::Source) -> Trace {
        Trace::make(source, current(), true, false)
    }

    /// The trace of a graph that is called once or again, and repeats its random numbers.
    pub fn begin_call(source: tonnage_core::Source) -> Trace {
        Trace::make(source, current(), true, true)
    }

    fn make(
        source: tonnage_core::Source,
        parent: Option<Trace>,
        is_region: bool,
        is_call: bool,
    ) -> Trace {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let mut builder = Builder::new();
        builder.mark(Mark { source, kind: Kind::Activation });
        let state = TraceState {
            builder,
            arguments: Vec::new(),
            captured: Vec::new(),
            by_id: HashMap::new(),
            variables: Vec::new(),
            gathered: Vec::new(),
            random: 0,
            waits_for: Vec::new(),
            waiting: HashMap::new(),
            replica: None,
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed) & 0x7fff_ffff;
        let state = Mutex::new(state);
        Trace(Arc::new(TraceInner { number, parent, is_region, is_call, state }))
    }

    pub fn number(&self) -> u64 {
        self.0.number
    }

    pub fn state(&self) -> MutexGuard<'_, TraceState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `f` with this trace as the innermost; it is left again whatever happens.
    pub fn within<R>(&self, f: impl FnOnce() -> R) -> R {
        struct LeaveTrace;
        impl Drop for LeaveTrace {
            fn drop(&mut self) {
                STACK.with_borrow_mut(|stack| {
                    stack.pop();
                });
            }
        }
        STACK.with_borrow_mut(|stack| stack.push(self.clone()));
        let _leave = LeaveTrace;
        f()
    }

    /// An input that stands for an argument.
    pub fn argument(&self, ty: TensorType) -> Tensor {
        self.named_argument(ty, None)
    }

    /// The same with a name.
    pub fn named_argument(&self, ty: TensorType, name: Option<Arc<str>>) -> Tensor {
        let mut state = self.state();
        let value = state.builder.input(ty, Kind::Input, name);
        state.arguments.push(value.clone());
        drop(state);
        Tensor::from_symbol(value, self.clone())
    }

    /// The value of a tensor in this trace; captured if it comes from outside.
    pub fn value(&self, tensor: &Tensor, op: &'static str) -> Result<Value> {
        if tensor.spec_type().is_some() {
            return Err(tensor.no_values(op));
        }
        if let TensorRepr::Symbolic(symbol) = tensor.repr() {
            if self.is(&symbol.trace) {
                return Ok(symbol.value.clone());
            }
            if !self.is_inside(&symbol.trace) {
                return Err(ErrorKind::Escaped { op }.into());
            }
        }
        let mut state = self.state();
        if let Some(at) = state.by_id.get(&tensor.id()) {
            return Ok(state.captured[*at].1.clone());
        }
        let value = state.builder.input(tensor.ty(), Kind::Constant, None);
        let at = state.captured.len();
        state.by_id.insert(tensor.id(), at);
        state.captured.push((tensor.clone(), value.clone()));
        Ok(value)
    }

    pub fn is(&self, other: &Trace) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    fn is_inside(&self, other: &Trace) -> bool {
        self.0.parent.as_ref().is_some_and(|parent| parent.is(other) || parent.is_inside(other))
    }

    /// Adds a node; with `aux`, one that makes its row's extra outputs too.
    pub fn apply(
        &self,
        op: &'static OpDef,
        inputs: &[Tensor],
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
        mark: Mark,
    ) -> Result<Vec<Tensor>> {
        let values =
            inputs.iter().map(|t| self.value(t, op.name)).collect::<Result<Vec<Value>>>()?;
        let mut state = self.state();
        state.builder.mark(mark);
        let made = state.builder.emit(op, values, attrs, regions, aux)?;
        if let (false, Some(id)) = (state.waits_for.is_empty(), made.first().and_then(Value::id)) {
            let waits_for = state.waits_for.clone();
            state.waiting.insert(id, waits_for);
        }
        drop(state);
        Ok(made.into_iter().map(|v| Tensor::from_symbol(v, self.clone())).collect())
    }

    /// The key of the next random op.
    pub fn next_random(&self) -> Key {
        match (self.0.is_call, &self.0.parent) {
            (true, Some(parent)) => parent.next_random(),
            (true, None) => Key::Fixed(tonnage_runtime::random::next_key()),
            (false, _) => {
                let mut state = self.state();
                state.random += 1;
                Key::PerCall(state.random - 1)
            }
        }
    }

    /// Lets calls of the function that is traced draw as one of several replicas.
    pub fn draw_as(&self, replica: Replica) {
        match &self.0.parent {
            Some(parent) => parent.draw_as(replica),
            None => self.state().replica = Some(replica),
        }
    }

    /// A variable's value now.
    pub fn read(&self, variable: &Variable) -> Result<Tensor> {
        let mut state = self.state();
        let at = match state.variables.iter().position(|u| u.variable.same(variable)) {
            Some(at) => at,
            None => {
                let name = Some(variable.name().into());
                // Its bytes are those of the line that made it.
                let kind = variable.kind();
                let before = state.builder.mark(Mark { source: variable.made(), kind });
                let input = state.builder.input(variable.ty(), kind, name);
                state.builder.mark(before);
                let now = input.clone();
                state.variables.push(UsedVariable {
                    variable: variable.clone(),
                    input,
                    now,
                    written: false,
                });
                state.variables.len() - 1
            }
        };
        let value = state.variables[at].now.clone();
        drop(state);
        Ok(Tensor::from_symbol(value, self.clone()))
    }

    /// What `gather` makes of the value of a variable, which is a block; once for each value. A body or branch that has not written it uses what is
    /// gathered around it.
    pub fn read_gathered(
        &self,
        own: &Variable,
        gather: impl FnOnce(&Trace, Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let writes = self.state().variables.iter().any(|u| u.written && u.variable.same(own));
        if let Some(parent) = self.0.parent.as_ref().filter(|_| self.0.is_region && !writes) {
            return parent.read_gathered(own, gather);
        }
        let block = self.read(own)?;
        let now = self.value(&block, "read")?.id();
        let is_it = |(of, then, _): &&(Variable, _, _)| of.same(own) && *then == now;
        let found = self.state().gathered.iter().find(is_it).map(|(.., whole)| whole.clone());
        if let Some(whole) = found {
            return Ok(Tensor::from_symbol(whole, self.clone()));
        }
        let made = gather(self, block)?;
        let whole = self.value(&made, "read")?;
        self.state().gathered.push((own.clone(), now, whole));
        Ok(made)
    }

    /// A variable's value from now on.
    pub fn write(&self, variable: &Variable, tensor: &Tensor) -> Result<()> {
        self.read(variable)?;
        let value = self.value(tensor, "assign")?;
        let mut state = self.state();
        for used in &mut state.variables {
            if used.variable.same(variable) {
                used.now = value.clone();
                used.written = true;
            }
        }
        Ok(())
    }

    /// What reading a variable gives from now on, without an update of it.
    pub fn show(&self, variable: &Variable, tensor: &Tensor) -> Result<()> {
        self.read(variable)?;
        let value = self.value(tensor, "read")?;
        let mut state = self.state();
        if let Some(used) = state.variables.iter_mut().find(|used| used.variable.same(variable)) {
            used.now = value;
        }
        Ok(())
    }

    /// Lets nodes that are added from now on wait for these values besides what they read; what they waited for before.
    pub fn wait_for(&self, tensors: &[Tensor]) -> Result<Vec<Tensor>> {
        let ids = tensors.iter().map(|t| Ok(self.value(t, "control_dependencies")?.id()));
        let ids: Vec<ValueId> = ids.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let mut state = self.state();
        let before = std::mem::replace(&mut state.waits_for, ids);
        let values: Vec<Value> = before.iter().map(|id| state.builder.value(*id)).collect();
        drop(state);
        Ok(values.into_iter().map(|v| Tensor::from_symbol(v, self.clone())).collect())
    }

    /// The values that variables leave with, of those that were written.
    pub fn written(&self) -> Vec<Tensor> {
        let state = self.state();
        let values: Vec<Value> =
            state.variables.iter().filter(|u| u.written).map(|u| u.now.clone()).collect();
        drop(state);
        values.into_iter().map(|v| Tensor::from_symbol(v, self.clone())).collect()
    }

    /// Whether this is a body or a branch.
    pub fn is_region(&self) -> bool {
        self.0.is_region
    }

    /// The finished graph. Its inputs are the arguments, what was captured, and the variables.
    pub fn finish(&self, outputs: &[Tensor]) -> Result<FinishedTrace> {
        let values =
            outputs.iter().map(|t| self.value(t, "return")).collect::<Result<Vec<Value>>>()?;
        let mut state = self.state();
        let builder = std::mem::take(&mut state.builder);
        let (captured, captures): (Vec<Tensor>, Vec<Value>) =
            std::mem::take(&mut state.captured).into_iter().unzip();
        let variables = std::mem::take(&mut state.variables);
        let mut graph = builder.finish(&values)?;
        graph.inputs = state
            .arguments
            .iter()
            .chain(&captures)
            .chain(variables.iter().map(|u| &u.input))
            .filter_map(Value::id)
            .collect();
        // A variable may have got its name in this trace, when the model's parameters were asked for.
        for used in &variables {
            if let Some(id) = used.input.id() {
                graph.value_mut(id).name = Some(used.variable.name().into());
            }
        }
        Ok(FinishedTrace { graph, captured, variables, replica: state.replica })
    }
}
