//! Variables: named values that are updated in place.
//!
//! A variable that is made from a recipe stays one until it is written. A tensor that was read from it
//! keeps the value that it read: an update works in place where nobody else holds the bytes, and
//! otherwise writes a copy of its own.
//!
//! Decision: `docs/decisions/regions-write-nothing.md`.

mod blocks;
mod call;
mod files;
mod initial;
mod locked;
mod registry;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Bytes, ErrorKind, Kind, Mark, OpDef, Result, Source, TensorType};
use tonnage_ops::{math, state};
use tonnage_runtime::eager::{self, Arg};
use tonnage_runtime::placement::in_scope;
use tonnage_runtime::{Array, Owner};

use crate::delta::{Delta, DeltaParts};
use crate::dispatch::{self, OpContext, TensorArg};
use crate::tape;
use crate::tensor::{Tensor, next_id};
use crate::trace;
pub(crate) use blocks::Blocks;
pub(crate) use call::Foreseen;
pub(crate) use files::{held_in_files, store_outputs};
pub use files::{keep_in_files, variables_in_files};
pub(crate) use initial::InitialValue;
pub(crate) use locked::LockedVariables;

/// A named value that is updated in place. Clones are the same variable.
///
/// ```
/// use tonnage::{Variable, tensor};
/// let v = Variable::new("v", tensor([1.0f32, 2.0])?)?;
/// let before = v.read()?;
/// v.assign_add(&tensor([10.0f32, 10.0])?)?;
/// assert_eq!(v.read()?.to_vec::<f32>()?, [11.0, 12.0]);
/// assert_eq!(before.to_vec::<f32>()?, [1.0, 2.0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Clone)]
pub struct Variable(Arc<VariableInner>);

struct VariableInner {
    number: u64,
    name: String,
    /// Where it is in the model that a walk first found it in, with slashes.
    path: OnceLock<String>,
    ty: TensorType,
    made: Source,
    role: Role,
    /// Whether its value is stored in files.
    in_files: bool,
    /// Where it is listed while it lives.
    registry: Arc<registry::Registry>,
    /// The blocks that ranks hold of it, or may hold.
    blocks: Mutex<Option<Blocks>>,
    state: Mutex<VariableState>,
}

/// What a variable is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A parameter: tapes watch it by themselves.
    Trainable,
    /// Anything else that a user keeps.
    Fixed,
    /// The state of an optimizer.
    Optimizer,
}

impl Role {
    /// How the ledger and plans call its bytes.
    fn kind(self) -> Kind {
        match self {
            Role::Trainable | Role::Fixed => Kind::Variable,
            Role::Optimizer => Kind::Optimizer,
        }
    }
}

enum VariableState {
    /// Its shape is known; it has no value yet.
    Waiting,
    /// It was made while a function was traced, and its first value is computed when it is first needed:
    /// tracing obtains nothing.
    Pending(InitialValue),
    /// It is a deferred graph's, and lives in sessions; its first value there, if it has one.
    Declared(Option<Arc<InitialValue>>),
    /// What is wrong with it, where it could not be said as it was made.
    Refused(tonnage_core::Error),
    /// Its value, and its identity, by which tapes know it.
    Holds(Array, u64),
    /// It is a block of another that is not cut yet: plans are made for it.
    Proposed,
    /// Each rank holds a block of it.
    Cut,
    /// Its container is closed.
    Closed,
}

impl Variable {
    /// Its full name, scopes included. A layer's parameter is called by its path in the model (`encoder/kernel`) once the
    /// model's parameters were asked for, and by its layer (`dense/kernel`) before.
    pub fn name(&self) -> &str {
        self.0.path.get().unwrap_or(&self.0.name)
    }

    /// The name that it was made with. Files know it by this: it does not depend on whether the model was walked.
    pub(crate) fn own_name(&self) -> &str {
        &self.0.name
    }

    /// Is called after another, where that has a path: `encoder/kernel/adam.m`.
    pub(crate) fn name_after(&self, other: &Variable, end: &str) {
        if let Some(path) = other.0.path.get() {
            self.0.path.get_or_init(|| format!("{path}/{end}"));
        }
    }

    /// Takes its path in a model for its name. The first one stays, and it has to lead into a part of the model.
    pub(crate) fn name_by(&self, path: &str) {
        if path.contains('.') {
            self.0.path.get_or_init(|| path.replace('.', "/"));
        }
    }

    /// Its type.
    pub fn ty(&self) -> TensorType {
        self.0.ty.clone()
    }

    /// Where it was made.
    pub fn made(&self) -> Source {
        self.0.made
    }

    /// Whether tapes watch it by themselves.
    pub fn is_trainable(&self) -> bool {
        self.0.role == Role::Trainable
    }

    /// Whether it has a value.
    pub fn is_initialized(&self) -> bool {
        // What a call holds has a value.
        self.try_state().is_none_or(|s| {
            matches!(*s, VariableState::Holds(..) | VariableState::Pending(_) | VariableState::Cut)
        })
    }

    /// What its bytes take; nothing before it has a value, or while that is a recipe or stored in files. Where each rank holds a block of it, those of that.
    pub fn bytes(&self) -> Bytes {
        match self.try_state().as_deref() {
            Some(VariableState::Cut) => self.blocks().map_or(Bytes::ZERO, |b| b.own.bytes()),
            Some(VariableState::Holds(array, _)) => array.storage().reserved(),
            Some(_) => Bytes::ZERO,
            None if self.0.in_files => Bytes::ZERO,
            // A call writes it, in bytes of its own.
            None => self.ty().bytes("variable").map_or(Bytes::ZERO, Bytes::rounded),
        }
    }

    /// How the ledger and plans call its bytes.
    pub(crate) fn kind(&self) -> Kind {
        self.0.role.kind()
    }

    pub(crate) fn number(&self) -> u64 {
        self.0.number
    }

    pub(crate) fn same(&self, other: &Variable) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its value now, sharing its bytes.
    #[track_caller]
    pub fn read(&self) -> Result<Tensor> {
        let source = Source::here();
        let tensor = match trace::current() {
            Some(trace) => match self.blocks() {
                Some(blocks) => blocks.read_traced(&trace, self)?,
                None => trace.read(self)?,
            },
            None => match &*self.settled().map_err(|e| e.at(source))? {
                VariableState::Holds(array, id) => Tensor::with_id(self.shown(array), *id),
                VariableState::Cut => self.gathered().map_err(|e| e.at(source))?,
                other => return Err(self.unreadable(other).at(source)),
            },
        };
        tape::variable_read(self, &tensor);
        Ok(tensor)
    }

    /// Refuses one whose container is closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        match self.try_state().as_deref() {
            Some(VariableState::Closed) => Err(self.unreadable(&VariableState::Closed)),
            _ => Ok(()),
        }
    }

    fn unreadable(&self, state: &VariableState) -> tonnage_core::Error {
        match state {
            VariableState::Closed => ErrorKind::Closed {
                what: format!("variable `{}` (its container)", self.name()),
                help: "make it in a container that is open".into(),
            },
            VariableState::Refused(error) => return error.clone(),
            VariableState::Cut => ErrorKind::BadArgument {
                op: "variable",
                what: format!("ranks hold blocks of `{}`, and it was traced whole", self.name()),
                help: "make the function again: it gathers the blocks then".into(),
            },
            VariableState::Declared(_) => ErrorKind::BadArgument {
                op: "variable",
                what: format!("`{}` (made at {}) lives in sessions", self.name(), self.0.made),
                help: "fetch it in `Session::run`, or ask `Session::variable` for it".into(),
            },
            _ => ErrorKind::Uninitialized { name: self.name().into(), made: self.0.made },
        }
        .into()
    }

    /// An array that is the variable's alone: taken over, or copied.
    fn own(&self, array: Array) -> Result<Array> {
        if self.0.in_files {
            return self.to_file(&array);
        }
        let mark = self.mark(self.0.made);
        let array = in_scope(array)?;
        if array.as_recipe().is_some() {
            return Ok(array);
        }
        if array.is_sole() {
            return Ok(array.owned_by(self.owner()));
        }
        let identity = &math::identity::IDENTITY;
        let mut copy = eager::apply(
            identity,
            smallvec![Arg::Borrowed(&array)],
            &Attrs::None,
            &[],
            false,
            mark,
        )?;
        Ok(copy.swap_remove(0).owned_by(self.owner()))
    }

    /// How the ledger knows its bytes.
    fn owner(&self) -> Owner {
        Owner {
            kind: self.kind(),
            what: "variable",
            name: Some(self.name().into()),
            source: self.0.made,
        }
    }

    fn mark(&self, source: Source) -> Mark {
        Mark { source, kind: self.kind() }
    }

    /// Becomes `value`, in place.
    #[track_caller]
    pub fn assign(&self, value: &Tensor) -> Result<()> {
        self.update(&state::assign::ASSIGN, &[value], Source::here())
    }

    /// The same for whoever is at that line.
    pub(crate) fn assign_from(&self, value: &Tensor, source: Source) -> Result<()> {
        self.update(&state::assign::ASSIGN, &[value], source)
    }

    /// Grows by `value`, in place; by rows, where it is a gradient that is rows.
    #[track_caller]
    pub fn assign_add(&self, value: &impl Delta) -> Result<()> {
        let source = Source::here();
        match value.parts(source)? {
            DeltaParts::Whole(value) => {
                self.update(&state::assign_add::ASSIGN_ADD, &[value], source)
            }
            DeltaParts::Rows(rows) => rows.parts().try_for_each(|(indices, values)| {
                self.update(&state::assign_add_rows::ASSIGN_ADD_ROWS, &[indices, values], source)
            }),
        }
    }

    /// Shrinks by `value`, in place; by rows, where it is a gradient that is rows.
    #[track_caller]
    pub fn assign_sub(&self, value: &impl Delta) -> Result<()> {
        let source = Source::here();
        match value.parts(source)? {
            DeltaParts::Whole(value) => {
                self.update(&state::assign_sub::ASSIGN_SUB, &[value], source)
            }
            DeltaParts::Rows(rows) => rows.parts().try_for_each(|(indices, values)| {
                let args = smallvec![values.into()];
                let negative = dispatch::apply1(&math::neg::NEG, args, Attrs::None, source)?;
                let op = &state::assign_add_rows::ASSIGN_ADD_ROWS;
                self.update(op, &[indices, &negative], source)
            }),
        }
    }

    /// Rows along the first axis become others, in place; of rows with the same index the last stays.
    #[track_caller]
    pub fn assign_rows(&self, indices: &Tensor, rows: &Tensor) -> Result<()> {
        self.update(&state::assign_rows::ASSIGN_ROWS, &[indices, rows], Source::here())
    }

    fn update(&self, op: &'static OpDef, values: &[&Tensor], source: Source) -> Result<()> {
        if let Some(trace) = trace::current() {
            let made = match self.blocks() {
                Some(blocks) => blocks.update(self, op, values, source),
                None => self.update_traced(op, values, source, &trace),
            };
            return made.map_err(|e| e.at(source));
        }
        if let Some(blocks) = self.blocks().filter(|_| self.is_cut()) {
            return blocks.update(self, op, values, source).map_err(|e| e.at(source));
        }
        let arrays = values
            .iter()
            .map(|value| value.array(op.name))
            .collect::<Result<Vec<&Array>>>()
            .map_err(|e| e.at(source))?;
        let value = arrays[0];
        let mut state = self.settled().map_err(|e| e.at(source))?;
        match &mut *state {
            VariableState::Waiting if *op == state::assign::ASSIGN => {
                let types = [self.ty(), value.ty()];
                (op.infer)(&tonnage_core::Call::new(op, &types, &Attrs::None))
                    .map_err(|e| e.at(source))?;
                // The value, broadcast to the variable's shape, straight into its bytes.
                let to = Attrs::Shape(self.ty().shape);
                let wide = eager::apply(
                    &tonnage_ops::shape::broadcast_to::BROADCAST_TO,
                    smallvec![Arg::Borrowed(value)],
                    &to,
                    &[],
                    false,
                    self.mark(source),
                )?;
                let array = self.own(wide.into_iter().next().unwrap_or_else(|| value.clone()))?;
                *state = VariableState::Holds(array, next_id());
                Ok(())
            }
            VariableState::Holds(array, id) if self.0.in_files => {
                let made = self.updated_in_file(op, array, &arrays, source);
                (*array, *id) = (made.map_err(|e| e.at(source))?, next_id());
                Ok(())
            }
            VariableState::Holds(array, id) => {
                let args = arrays.into_iter().map(Arg::Borrowed).collect();
                let in_place = array.as_recipe().is_none() && array.is_sole();
                eager::update(op, array, args, &Attrs::None, self.mark(source))
                    .map_err(|e| e.at(source))?;
                if !in_place {
                    array.storage().set_owner(self.owner()); // the bytes are new
                }
                *id = next_id();
                Ok(())
            }
            other => Err(self.unreadable(other).at(source)),
        }
    }

    fn update_traced(
        &self,
        op: &'static OpDef,
        values: &[&Tensor],
        source: Source,
        trace: &trace::Trace,
    ) -> Result<()> {
        let now = trace.read(self)?;
        let given = values.iter().map(|value| TensorArg::Borrowed(value));
        let inputs = std::iter::once(TensorArg::Owned(now)).chain(given).collect();
        let context = OpContext { mark: self.mark(source), ..OpContext::at(source) };
        // Inside of a body or branch nothing is written: the value leaves, and is written outside. What is stored in files is
        // written as a program ends.
        let made = match trace.is_region() || self.0.in_files {
            false => dispatch::apply(op, inputs, Attrs::None, context)?,
            true if *op != state::assign::ASSIGN => {
                let pure = state::pure(op);
                dispatch::apply(pure, inputs, Attrs::None, context)?
            }
            true => {
                let value = values[0];
                let types = [self.ty(), value.ty()];
                (op.infer)(&tonnage_core::Call::new(op, &types, &Attrs::None))?;
                let to = Attrs::Shape(self.ty().shape);
                let wide = &tonnage_ops::shape::broadcast_to::BROADCAST_TO;
                dispatch::apply(wide, smallvec![value.into()], to, context)?
            }
        };
        trace.write(self, &made[0])
    }

    /// Its value, where it has one and nobody holds it.
    pub(crate) fn held(&self) -> Option<Array> {
        match self.try_state().as_deref() {
            Some(VariableState::Holds(array, _)) => Some(array.clone()),
            _ => None,
        }
    }

    /// Frees the bytes of all; from here on they can't be used. Where a callback closes what a call writes, none is closed.
    pub(crate) fn close_all(mut variables: Vec<&Variable>) -> Result<()> {
        // In the order in which calls take them, so that there is no deadlock.
        variables.sort_unstable_by_key(|variable| variable.number());
        let states: Vec<_> =
            variables.into_iter().map(Variable::free_state).collect::<Result<_>>()?;
        states.into_iter().for_each(|mut state| *state = VariableState::Closed);
        Ok(())
    }

    /// Its state; none where a callback asks for what a call holds.
    fn try_state(&self) -> Option<MutexGuard<'_, VariableState>> {
        if !locked::is_holding() {
            return Some(self.state());
        }
        match self.0.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(state)) => Some(state.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Its state, or an error where a callback would wait for a call.
    fn free_state(&self) -> Result<MutexGuard<'_, VariableState>> {
        self.try_state().ok_or_else(|| {
            let what = format!("a callback asks for `{}` while a call writes it", self.name());
            let help = "pass its value to the callback, or write it after the call";
            tonnage_core::error::bad_argument("variable", what, help)
        })
    }

    fn state(&self) -> MutexGuard<'_, VariableState> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Variable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = match self.try_state().as_deref() {
            None => "written by a call",
            Some(VariableState::Waiting) => "waiting for its value",
            Some(VariableState::Pending(_)) => "computed when it is needed",
            Some(VariableState::Declared(_)) => "in sessions",
            Some(VariableState::Refused(_)) => "refused",
            Some(VariableState::Holds(..)) if self.0.in_files => "in files",
            Some(VariableState::Holds(array, _)) if array.as_recipe().is_some() => "recipe",
            Some(VariableState::Holds(..)) => "resident",
            Some(VariableState::Proposed) => "a block that is not cut yet",
            Some(VariableState::Cut) => "in blocks, one on each rank",
            Some(VariableState::Closed) => "closed",
        };
        write!(f, "Variable(`{}`, {}, {state})", self.name(), self.ty())
    }
}
