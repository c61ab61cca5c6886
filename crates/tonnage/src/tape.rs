//! The gradient tape: records what is applied to what it watches, and walks it backward.
//!
//! A record saves what the op's row declares and nothing else. While a function is traced the records are
//! of its graph, so the gradient becomes more graph and the planner sees it all.

mod backward;
mod clip;
pub(crate) mod finite;
mod gradient;
mod graph;
mod jacobian;
mod record;
mod saved;
mod sources;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use tonnage_core::grad::Record;
use tonnage_core::{ErrorKind, Result, Source};

use crate::grad::level;
use crate::tensor::Tensor;
use crate::trace;
use crate::tree::Tree;
use crate::variable::Variable;

pub use clip::{clip_by_global_norm, global_norm};
pub(crate) use clip::{norm_of, shrink};
pub(crate) use gradient::unconnected;
pub use gradient::{Gradient, IndexedSlices};
pub use graph::gradients;
pub(crate) use record::{
    aux_count, eager, is_quiet, record, sees, symbolic, tracked, variable_read,
};
pub use saved::{SavedByOp, SavedForBackward};
pub use sources::{Sources, Watched};

/// Records ops from its making on, for gradients. Ops are recorded on the thread that made it.
///
/// It watches trainable variables by itself, and tensors on request. It gives one gradient, and frees
/// what it holds as it walks backward; a [`GradientTape::persistent`] one gives any number, and holds what it
/// recorded until it is dropped. Tapes nest: the backward pass of an inner one is recorded by those around it.
///
/// ```
/// use tonnage::{GradientTape, tensor};
/// let x = tensor([1.0f32, 2.0, 3.0])?;
/// let mut tape = GradientTape::new();
/// tape.watch(&x);
/// let y = (&x * &x)?.sum_all()?;
/// let dx = tape.gradient(&y, &x)?.tensor()?;
/// assert_eq!(dx.to_vec::<f32>()?, [2.0, 4.0, 6.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct GradientTape {
    log: Rc<RefCell<TapeLog>>,
    persistent: bool,
}

/// What a tape holds.
struct TapeLog {
    /// Tapes and forward passes that were made later are inside of it.
    level: u64,
    /// The trace that it was made in; none where ops run at once. Bodies and branches inside of that
    /// are recorded as a whole, by the op that runs them.
    trace: Option<u64>,
    records: Vec<Record<u64>>,
    /// Results that would do instead of the aux outputs that a record saves, with that record.
    instead: HashMap<u64, usize>,
    tracked: HashSet<u64>,
    /// Tensors that it was told to watch.
    watched: HashSet<u64>,
    /// Values that a variable was read as.
    variables: HashMap<u64, Vec<u64>>,
    /// What a concrete tensor is called in a trace.
    aliases: HashMap<u64, u64>,
    watch_variables: bool,
    paused: bool,
    /// Where it gave its gradient, and with that all that it held.
    used: Option<Source>,
}

impl TapeLog {
    fn records(&self) -> bool {
        !self.paused && self.used.is_none()
    }

    fn watches(&self, variable: &Variable) -> bool {
        self.watch_variables && variable.is_trainable()
            || self.variables.contains_key(&variable.number())
    }
}

thread_local! {
    static TAPES: RefCell<Vec<Rc<RefCell<TapeLog>>>> = const { RefCell::new(Vec::new()) };
}

/// Whether a tape records what becomes of a tensor.
pub(crate) fn tracks(id: u64) -> bool {
    TAPES.with_borrow(|tapes| {
        tapes.iter().any(|tape| {
            let log = tape.borrow();
            log.records() && log.tracked.contains(&id)
        })
    })
}

impl GradientTape {
    /// A tape that gives one gradient, freeing what it holds as it goes, and that watches trainable
    /// variables by itself.
    #[allow(clippy::new_without_default, reason = "making one has an effect: it records")]
    pub fn new() -> GradientTape {
        GradientTape::make(false)
    }

    /// A tape that gives any number of gradients, and holds what it recorded until it is dropped.
    pub fn persistent() -> GradientTape {
        GradientTape::make(true)
    }

    fn make(persistent: bool) -> GradientTape {
        let log = Rc::new(RefCell::new(TapeLog {
            level: level::next(),
            trace: trace::current().map(|t| t.number()),
            records: Vec::new(),
            instead: HashMap::new(),
            tracked: HashSet::new(),
            watched: HashSet::new(),
            variables: HashMap::new(),
            aliases: HashMap::new(),
            watch_variables: true,
            paused: false,
            used: None,
        }));
        TAPES.with_borrow_mut(|tapes| tapes.push(log.clone()));
        GradientTape { log, persistent }
    }

    /// Whether it watches trainable variables by itself, from here on; it does unless told otherwise.
    ///
    /// ```
    /// use tonnage::{GradientTape, Variable, tensor};
    /// let (a, b) = (Variable::new("a", tensor(2.0f32)?)?, Variable::new("b", tensor(3.0f32)?)?);
    /// let mut tape = GradientTape::new().watch_accessed_variables(false);
    /// tape.watch(&a);
    /// let y = (a.read()? * b.read()?)?;
    /// assert_eq!(tape.gradient(&y, &a)?.tensor()?.scalar::<f32>()?, 3.0);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use = "it changes the tape that it is called on"]
    pub fn watch_accessed_variables(self, yes: bool) -> GradientTape {
        self.log.borrow_mut().watch_variables = yes;
        self
    }

    /// Watches tensors and variables, nested in any way, from here on.
    pub fn watch(&self, sources: impl Sources) {
        let mut log = self.log.borrow_mut();
        sources.for_each(&mut |source| match source.as_variable() {
            Some(variable) => {
                log.variables.entry(variable.number()).or_default();
            }
            None => {
                let keys = source.keys(&HashMap::new());
                log.tracked.extend(&keys);
                log.watched.extend(keys);
            }
        });
    }

    /// Runs `f` without recording it.
    pub fn stop_recording<R>(&self, f: impl FnOnce() -> R) -> R {
        struct ResumeRecording<'a>(&'a RefCell<TapeLog>, bool);
        impl Drop for ResumeRecording<'_> {
            fn drop(&mut self) {
                self.0.borrow_mut().paused = self.1;
            }
        }
        let was = std::mem::replace(&mut self.log.borrow_mut().paused, true);
        let _restore = ResumeRecording(&self.log, was);
        f()
    }

    /// Records nothing from here on, until [`GradientTape::resume`].
    pub fn pause(&self) {
        self.log.borrow_mut().paused = true;
    }

    /// Records again after a [`GradientTape::pause`].
    pub fn resume(&self) {
        self.log.borrow_mut().paused = false;
    }

    /// Whether a gradient with respect to that can be asked for: it is a float, and the tape watched it or what it
    /// was made of.
    pub fn watches(&self, source: &dyn Watched) -> bool {
        let log = self.log.borrow();
        source.ty_of().dtype.is_float()
            && match source.as_variable() {
                Some(variable) => log.watches(variable),
                None => source.keys(&HashMap::new()).iter().any(|id| log.tracked.contains(id)),
            }
    }

    /// Numbers of the variables that it watched, in no order.
    #[doc(hidden)]
    pub fn watched_variables(&self) -> Vec<u64> {
        self.log.borrow().variables.keys().copied().collect()
    }

    /// Forgets what it recorded and what it watches, and records anew; a used tape can be used again.
    pub fn reset(&mut self) {
        let mut log = self.log.borrow_mut();
        log.records.clear();
        log.instead.clear();
        log.tracked.clear();
        log.watched.clear();
        log.variables.clear();
        log.aliases.clear();
        log.used = None;
    }

    /// Gradients of a target, or of the sum of several, with respect to sources: tensors and variables,
    /// nested in any way. The gradients come nested as the sources are.
    ///
    /// A source that the target does not depend on has the gradient [`Gradient::Unconnected`]; one that
    /// the tape did not watch is an error.
    ///
    /// ```
    /// use tonnage::{GradientTape, Variable, tensor};
    /// let (w, b) = (Variable::new("w", tensor([2.0f32])?)?, Variable::new("b", tensor([1.0f32])?)?);
    /// let mut tape = GradientTape::new();
    /// let y = (w.read()? * 3.0)?.add(&b.read()?)?;
    /// let (dw, db) = tape.gradient(&y, (&w, &b))?;
    /// assert_eq!(dw.tensor()?.to_vec::<f32>()?, [3.0]);
    /// assert_eq!(db.tensor()?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn gradient<S: Sources>(
        &mut self,
        targets: &impl Tree,
        sources: S,
    ) -> Result<S::Gradients> {
        let source = Source::here();
        self.take(targets, None, &sources, source).map_err(|e| e.at(source))
    }

    /// The same, with `outputs` as the gradients of the targets: one for each, of its type.
    #[track_caller]
    pub fn gradient_from<T: Tree, S: Sources>(
        &mut self,
        targets: &T,
        outputs: &T,
        sources: S,
    ) -> Result<S::Gradients> {
        let source = Source::here();
        let mut given = Vec::new();
        outputs.for_each(&mut |tensor| given.push(tensor.clone()));
        self.take(targets, Some(given), &sources, source).map_err(|e| e.at(source))
    }

    /// The same as [`GradientTape::gradient`], with zeros, which take no memory, for a source that the
    /// targets do not depend on.
    #[track_caller]
    pub fn gradient_or_zeros<S: Sources>(
        &mut self,
        targets: &impl Tree,
        sources: S,
    ) -> Result<S::Gradients> {
        let source = Source::here();
        let made = self.gradients(targets, None, &sources, source).and_then(|made| {
            let mut types = Vec::new();
            sources.for_each(&mut |s| types.push(s.ty_of()));
            let full = made.into_iter().zip(types).map(|(grad, ty)| grad.or_zeros_of(&ty, source));
            full.collect::<Result<Vec<_>>>()
        });
        Ok(nested(&sources, made.map_err(|e| e.at(source))?))
    }

    fn take<S: Sources>(
        &mut self,
        targets: &impl Tree,
        outputs: Option<Vec<Tensor>>,
        sources: &S,
        source: Source,
    ) -> Result<S::Gradients> {
        Ok(nested(sources, self.gradients(targets, outputs, sources, source)?))
    }

    fn gradients(
        &mut self,
        targets: &impl Tree,
        outputs: Option<Vec<Tensor>>,
        sources: &impl Sources,
        source: Source,
    ) -> Result<Vec<Gradient>> {
        let mut all = Vec::new();
        targets.for_each(&mut |tensor| all.push(tensor.clone()));
        backward::check_outputs(&all, outputs.as_deref())?;
        let pass = self.backward_pass(&all, sources, source)?;
        // Other tapes record the backward pass (second derivatives); this one does not.
        self.stop_recording(|| pass.go(&all, outputs, source))
    }

    /// The backward pass from these targets; a tape that is not persistent gives it up.
    fn backward_pass(
        &self,
        targets: &[Tensor],
        sources: &impl Sources,
        source: Source,
    ) -> Result<backward::BackwardPass> {
        let mut log = self.log.borrow_mut();
        if let Some(used) = log.used {
            let what = format!("it gave its gradient at {used} and freed what it held");
            return Err(tape_error(what, "use `GradientTape::persistent` for several, or `reset`"));
        }
        backward::check_targets(targets)?;
        let groups = sources::keys(sources, &log)?;
        let records = match self.persistent {
            true => log.records.clone(),
            false => {
                log.used = Some(source);
                std::mem::take(&mut log.records)
            }
        };
        let trace = log.trace;
        Ok(backward::BackwardPass { records, groups, aliases: log.aliases.clone(), trace })
    }
}

impl Drop for GradientTape {
    fn drop(&mut self) {
        TAPES.with_borrow_mut(|tapes| tapes.retain(|log| !Rc::ptr_eq(log, &self.log)));
    }
}

/// What the tapes of this thread save, each with the op for whose gradient, and with that op's line.
pub(crate) fn saved() -> Vec<(&'static str, Source, Tensor)> {
    let tapes = TAPES.with_borrow(Clone::clone);
    let mut found = Vec::new();
    for log in &tapes {
        for record in &log.borrow().records {
            let held = record.saved.iter().filter_map(|(_, value)| value.clone().into_held());
            let tensors = held.filter_map(|held| held.downcast::<Tensor>().ok());
            found.extend(tensors.map(|tensor| (record.op.name, record.source, (*tensor).clone())));
        }
    }
    found
}

fn nested<S: Sources>(sources: &S, made: Vec<Gradient>) -> S::Gradients {
    let mut made = made.into_iter();
    sources.nest(&mut || made.next().unwrap_or(Gradient::Unconnected))
}

fn tape_error(what: impl Into<String>, help: &str) -> tonnage_core::Error {
    ErrorKind::Tape { what: what.into(), help: help.into() }.into()
}
