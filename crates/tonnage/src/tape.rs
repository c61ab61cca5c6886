//! The gradient tape: records what is applied to what it watches, and goes back through it.
//!
//! A record keeps what the op's row declares and nothing else. While a function is traced the records are
//! of its graph, so the gradient becomes more graph and the planner sees it all.

mod record;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tonnage_core::grad::{Cotangent, Record, Rows, backward, choose};
use tonnage_core::graph::ValueId;
use tonnage_core::{Bytes, ErrorKind, Kind, Mark, Result, Source, TensorType, Value};
use tonnage_ops::{GRAD_OPS, emit};

use crate::dispatch::{TensorEmit, hold, unhold};
use crate::tensor::{Repr, Tensor};
use crate::trace::{self, Trace};
use crate::variable::Variable;

pub(crate) use record::{eager, quiet, symbolic, variable_read};

/// Records ops from its making on, for gradients. Ops are recorded on the thread that made it.
///
/// ```
/// use tonnage::{GradientTape, tensor};
/// let x = tensor([1.0f32, 2.0, 3.0])?;
/// let mut tape = GradientTape::new();
/// tape.watch(&x);
/// let y = (&x * &x)?.sum_all()?;
/// let grads = tape.gradient(&y, &[&x])?;
/// assert_eq!(grads[0].tensor()?.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct GradientTape {
    log: Rc<RefCell<Log>>,
    persistent: bool,
}

/// What a tape holds.
struct Log {
    /// The trace that it was made in; none where ops run at once. Bodies and branches inside of that
    /// are recorded as a whole, by the op that runs them.
    trace: Option<u64>,
    records: Vec<Record<u64>>,
    tracked: HashSet<u64>,
    /// Values that a variable was read as.
    variables: HashMap<u64, Vec<u64>>,
    /// What a concrete tensor is called in a trace.
    aliases: HashMap<u64, u64>,
    watch_variables: bool,
    paused: bool,
    used: bool,
}

thread_local! {
    static TAPES: RefCell<Vec<Rc<RefCell<Log>>>> = const { RefCell::new(Vec::new()) };
}

/// A gradient as it comes off a tape.
#[derive(Debug, Clone)]
pub enum Gradient {
    /// The target does not depend on the source.
    Unconnected,
    /// Every element.
    Dense(Tensor),
    /// Some rows along the first axis; all others are zero. Rows of the same index add up.
    Rows {
        /// Which rows.
        indices: Vec<Tensor>,
        /// Their gradients.
        values: Vec<Tensor>,
        /// Of the whole.
        ty: TensorType,
    },
}

impl Gradient {
    /// As one tensor; rows are added into zeros. An error where there is none.
    #[track_caller]
    pub fn tensor(&self) -> Result<Tensor> {
        match self {
            Gradient::Dense(tensor) => Ok(tensor.clone()),
            Gradient::Unconnected => {
                let what = "the target does not depend on this source";
                let help = "watch it before it is used, or take `or_zeros`";
                Err(tape_error(what, help).at(Source::here()))
            }
            Gradient::Rows { indices, values, ty } => {
                let mut sum = crate::make::zeros_of(ty, Source::here())?;
                for (i, v) in indices.iter().zip(values) {
                    sum = sum.scatter_add(i, v)?;
                }
                Ok(sum)
            }
        }
    }

    /// As one tensor, zeros where there is none.
    #[track_caller]
    pub fn or_zeros(&self, like: &Tensor) -> Result<Tensor> {
        match self {
            Gradient::Unconnected => crate::make::zeros_of(&like.ty(), Source::here()),
            other => other.tensor(),
        }
    }
}

/// Something that a gradient can be taken with respect to.
pub trait Watched {
    #[doc(hidden)]
    fn keys(&self, variables: &HashMap<u64, Vec<u64>>) -> Vec<u64>;
    #[doc(hidden)]
    fn dtype_of(&self) -> tonnage_core::DType;
}

impl Watched for Tensor {
    fn keys(&self, _: &HashMap<u64, Vec<u64>>) -> Vec<u64> {
        vec![self.id()]
    }
    fn dtype_of(&self) -> tonnage_core::DType {
        self.dtype()
    }
}

impl Watched for Variable {
    fn keys(&self, variables: &HashMap<u64, Vec<u64>>) -> Vec<u64> {
        variables.get(&self.number()).cloned().unwrap_or_default()
    }
    fn dtype_of(&self) -> tonnage_core::DType {
        self.ty().dtype
    }
}

impl GradientTape {
    /// A tape that gives one gradient, freeing what it holds as it goes, and that watches trainable
    /// variables by itself.
    #[allow(clippy::new_without_default, reason = "making one has an effect: it records")]
    pub fn new() -> GradientTape {
        GradientTape::make(false, true)
    }

    /// A tape that gives any number of gradients, and holds what it recorded until it is dropped.
    pub fn persistent() -> GradientTape {
        GradientTape::make(true, true)
    }

    /// A tape that watches nothing by itself.
    pub fn watching_nothing() -> GradientTape {
        GradientTape::make(false, false)
    }

    fn make(persistent: bool, watch_variables: bool) -> GradientTape {
        let log = Rc::new(RefCell::new(Log {
            trace: trace::current().map(|t| t.number()),
            records: Vec::new(),
            tracked: HashSet::new(),
            variables: HashMap::new(),
            aliases: HashMap::new(),
            watch_variables,
            paused: false,
            used: false,
        }));
        TAPES.with_borrow_mut(|tapes| tapes.push(log.clone()));
        GradientTape { log, persistent }
    }

    /// Watches a tensor from here on.
    pub fn watch(&self, tensor: &Tensor) {
        self.log.borrow_mut().tracked.insert(tensor.id());
    }

    /// Watches a variable from here on.
    pub fn watch_variable(&self, variable: &Variable) {
        self.log.borrow_mut().variables.entry(variable.number()).or_default();
    }

    /// Runs `f` without recording it.
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        let was = std::mem::replace(&mut self.log.borrow_mut().paused, true);
        let made = f();
        self.log.borrow_mut().paused = was;
        made
    }

    /// What it holds for the way back: each op with its line and the bytes that its row keeps. Bytes
    /// that several records share count once.
    pub fn holds(&self) -> Vec<(&'static str, Source, Bytes)> {
        let log = self.log.borrow();
        let mut seen = HashSet::new();
        let bytes = |value: &Value, seen: &mut HashSet<usize>| {
            let Some(any) = value.clone().into_held() else { return Bytes::ZERO };
            let Ok(tensor) = any.downcast::<Tensor>() else { return Bytes::ZERO };
            let Ok(array) = tensor.array("tape") else { return Bytes::ZERO };
            match seen.insert(std::ptr::from_ref(array.storage()) as usize) {
                true => array.storage().reserved(),
                false => Bytes::ZERO,
            }
        };
        log.records
            .iter()
            .map(|r| (r.op.name, r.source, r.kept.iter().map(|(_, v)| bytes(v, &mut seen)).sum()))
            .collect()
    }

    /// All that it holds.
    pub fn bytes(&self) -> Bytes {
        self.holds().into_iter().map(|(_, _, bytes)| bytes).sum()
    }

    /// Gradients of `target` with respect to `sources`.
    #[track_caller]
    pub fn gradient(&mut self, target: &Tensor, sources: &[&dyn Watched]) -> Result<Vec<Gradient>> {
        self.gradient_from(target, None, sources)
    }

    /// Gradients of `target` with respect to `sources`, with `output` as the gradient of the target.
    #[track_caller]
    pub fn gradient_from(
        &mut self,
        target: &Tensor,
        output: Option<&Tensor>,
        sources: &[&dyn Watched],
    ) -> Result<Vec<Gradient>> {
        let source = Source::here();
        self.take_gradient(target, output, sources, source).map_err(|e| e.at(source))
    }

    fn take_gradient(
        &mut self,
        target: &Tensor,
        output: Option<&Tensor>,
        sources: &[&dyn Watched],
        source: Source,
    ) -> Result<Vec<Gradient>> {
        if !target.dtype().is_float() {
            let what = format!("the target is {}, which has no gradient", target.ty());
            return Err(tape_error(what, "use a float target"));
        }
        if let Some(bad) = sources.iter().find(|s| !s.dtype_of().is_float()) {
            let what = format!("a source of dtype {} has no gradient", bad.dtype_of());
            return Err(tape_error(what, "use float sources"));
        }
        if let Some(output) = output
            && output.ty() != target.ty()
        {
            let what = format!("the gradient given is {}, the target {}", output.ty(), target.ty());
            return Err(tape_error(what, "give a gradient of the target's type"));
        }
        let (records, groups, aliases) = {
            let mut log = self.log.borrow_mut();
            if log.used {
                let what = "it gave its gradient and freed what it held".to_string();
                return Err(tape_error(what, "use `GradientTape::persistent` for several"));
            }
            let groups: Vec<Vec<u64>> = sources.iter().map(|s| s.keys(&log.variables)).collect();
            let records = match self.persistent {
                true => log.records.clone(),
                false => {
                    log.used = true;
                    std::mem::take(&mut log.records)
                }
            };
            (records, groups, log.aliases.clone())
        };
        // Other tapes record the way back (second derivatives); this one does not.
        let outer = std::mem::replace(&mut self.log.borrow_mut().paused, true);
        let made = go_back(records, target, output, &groups, &aliases, source);
        self.log.borrow_mut().paused = outer;
        made
    }
}

impl Drop for GradientTape {
    fn drop(&mut self) {
        TAPES.with_borrow_mut(|tapes| tapes.retain(|log| !Rc::ptr_eq(log, &self.log)));
    }
}

fn tape_error(what: impl Into<String>, help: &str) -> tonnage_core::Error {
    ErrorKind::Tape { what: what.into(), help: help.into() }.into()
}

fn go_back(
    records: Vec<Record<u64>>,
    target: &Tensor,
    output: Option<&Tensor>,
    groups: &[Vec<u64>],
    aliases: &HashMap<u64, u64>,
    source: Source,
) -> Result<Vec<Gradient>> {
    let trace = match target.repr() {
        Repr::Symbol(symbol) => Some(symbol.trace.clone()),
        Repr::Array(_) => trace::current(),
    };
    let records = match &trace {
        Some(trace) => chosen(trace, records, aliases)?,
        None => records,
    };
    let mut emit = TensorEmit::new(Mark { source, kind: Kind::Gradient });
    let seed = match output {
        Some(output) => hold(output.clone()),
        None => ones(&mut emit, &target.ty())?,
    };
    let key = |id: u64| aliases.get(&id).copied().unwrap_or(id);
    let wanted: Vec<u64> = groups.iter().flatten().map(|id| key(*id)).collect();
    let seeds = vec![(key(target.id()), Cotangent::Dense(seed))];
    let grads = backward(records, seeds, &wanted, &mut emit, &GRAD_OPS)?;
    join(grads, groups, &mut emit)
}

fn ones(emit: &mut dyn tonnage_core::Emit, ty: &TensorType) -> Result<Value> {
    let one = emit::number(emit, 1, ty.dtype)?;
    emit::broadcast_to(emit, one, &ty.shape)
}

/// One gradient a source: a variable's is the sum over all values that it was read as.
fn join(
    grads: Vec<Option<Cotangent>>,
    groups: &[Vec<u64>],
    emit: &mut dyn tonnage_core::Emit,
) -> Result<Vec<Gradient>> {
    let mut grads = grads.into_iter();
    groups
        .iter()
        .map(|group| {
            let mut sum: Option<Cotangent> = None;
            for grad in group.iter().filter_map(|_| grads.next()).flatten() {
                sum = Some(match sum {
                    Some(before) => before.plus(grad, emit, &GRAD_OPS)?,
                    None => grad,
                });
            }
            Ok(match sum {
                None => Gradient::Unconnected,
                Some(Cotangent::Dense(value)) => Gradient::Dense(unhold(value)?),
                Some(Cotangent::Sparse { of, parts }) => {
                    let (mut indices, mut values) = (Vec::new(), Vec::new());
                    for Rows { indices: i, values: v } in parts {
                        indices.push(unhold(i)?);
                        values.push(unhold(v)?);
                    }
                    Gradient::Rows { indices, values, ty: of }
                }
            })
        })
        .collect()
}

/// Records of a trace: what is kept is decided now, when it is known what else is.
fn chosen(
    trace: &Trace,
    records: Vec<Record<u64>>,
    aliases: &HashMap<u64, u64>,
) -> Result<Vec<Record<u64>>> {
    let key = |id: u64| aliases.get(&id).copied().unwrap_or(id);
    let index = |id: u64| ValueId::new((key(id) & 0xffff_ffff) as usize);
    let name = |id: ValueId| 1 << 63 | trace.number() << 32 | id.index() as u64;
    let of_trace = |id: &u64| key(*id) >> 32 == (1 << 31 | trace.number());
    let records = records
        .into_iter()
        .filter(|r| r.outputs.iter().all(of_trace))
        .map(|r| renamed(r, index, |value| value))
        .collect();
    let records = choose(records, HashSet::new(), &mut trace.state().builder)?;
    let held = |value: Value| hold(Tensor::from_symbol(value, trace.clone()));
    Ok(records.into_iter().map(|r| renamed(r, name, held)).collect())
}

/// A record with other keys.
fn renamed<K: Copy, L>(
    record: Record<K>,
    key: impl Fn(K) -> L,
    value: impl Fn(Value) -> Value,
) -> Record<L> {
    Record {
        op: record.op,
        attrs: record.attrs,
        regions: record.regions,
        source: record.source,
        inputs: record.inputs.iter().map(|id| key(*id)).collect(),
        needs: record.needs,
        input_types: record.input_types,
        outputs: record.outputs.iter().map(|id| key(*id)).collect(),
        output_types: record.output_types,
        kept: record.kept.into_iter().map(|(keep, v)| (keep, value(v))).collect(),
    }
}
