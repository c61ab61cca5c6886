//! Making variables, and their first values: there at once, computed when they are needed, or declared for
//! sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use tonnage_core::error::bad_argument;
use tonnage_core::{ErrorKind, Result, Source, TensorType};
use tonnage_runtime::{Array, host_ledger};

use super::registry::Registry;
use super::{Role, Variable, VariableInner, VariableState, files};
use crate::function::home;
use crate::function::program::TracedProgram;
use crate::scope;
use crate::tensor::{Tensor, TensorRepr, next_id};
use crate::trace::{lift, outside};

/// A first value.
pub(crate) enum InitialValue {
    /// It is there.
    Array(Array),
    /// It is computed.
    Program(Box<TracedProgram>),
    /// It is what a closure gives, in bytes of its own.
    Closure(FirstValue),
}

/// See [`Variable::computed`].
type FirstValue = Box<dyn Fn() -> Result<Tensor> + Send + Sync>;

impl InitialValue {
    /// The value. A program's variables are those that `own` says.
    pub fn value(
        &self,
        made: Source,
        own: impl FnMut(&Variable) -> Result<Variable>,
    ) -> Result<Array> {
        match self {
            InitialValue::Array(array) => Ok(array.clone()),
            InitialValue::Program(program) => {
                let made = program.with_variables(own)?.run_once(made)?;
                made.into_iter().next().ok_or_else(|| {
                    let what = "a first value that is nowhere".into();
                    tonnage_core::Error::from(ErrorKind::BadGraph { what })
                })
            }
            InitialValue::Closure(first) => {
                Ok(outside(first)?.array("a variable's first value")?.clone())
            }
        }
    }
}

impl Variable {
    /// A trainable variable that starts as `value`, whose bytes it takes over where nobody else holds
    /// them.
    #[track_caller]
    pub fn new(name: &str, value: Tensor) -> Result<Variable> {
        Variable::new_at(name, value, Role::Trainable, Source::here())
    }

    /// Inside of a function it is the function's: later traces find it again, and leave its value alone.
    pub(crate) fn new_at(name: &str, value: Tensor, role: Role, made: Source) -> Result<Variable> {
        let (full, ty) = (scope::full_name(name), value.ty());
        home::variable(&full, made, Some(&ty), || Variable::create(name, value, role, made))
    }

    pub(crate) fn create(name: &str, value: Tensor, role: Role, made: Source) -> Result<Variable> {
        let ty = value.ty();
        if ty.shape.sizes().is_none() {
            let what = format!("the first value of `{name}` is {ty}, whose size is open");
            let help = "make it of a size that does not depend on the arguments";
            return Err(bad_argument("variable", what, help).at(made));
        }
        files::check(&ty, name).map_err(|e| e.at(made))?;
        let id = value.id();
        let first = Variable::first(value).map_err(|e| e.at(made))?;
        let variable = Variable::named(scope::full_name(name), ty, role, made);
        variable.initialize(first, id)?;
        // One that gets no value is nowhere: no container holds it.
        scope::enter(&variable);
        Ok(variable)
    }

    /// A first value, from a tensor of any kind.
    fn first(value: Tensor) -> Result<InitialValue> {
        match value.repr() {
            TensorRepr::Array(_) => {}
            TensorRepr::Spec(_) => return Err(value.no_values("variable")),
            TensorRepr::Symbolic(_) if !home::is_inside() => {
                return Err(ErrorKind::Symbolic { what: "a variable's first value" }.into());
            }
            TensorRepr::Symbolic(_) => return Ok(InitialValue::Program(Box::new(lift(&value)?))),
        }
        match value.into_repr() {
            TensorRepr::Array(array) => Ok(InitialValue::Array(array)),
            _ => Err(ErrorKind::Symbolic { what: "a variable's first value" }.into()),
        }
    }

    /// The same, left alone by tapes and optimizers.
    #[track_caller]
    pub fn not_trainable(name: &str, value: Tensor) -> Result<Variable> {
        Variable::new_at(name, value, Role::Fixed, Source::here())
    }

    /// A variable whose type is known and whose bytes come with its first value. To read it before is
    /// an error that names it.
    #[track_caller]
    pub fn deferred(name: &str, ty: TensorType) -> Variable {
        let (full, made) = (scope::full_name(name), Source::here());
        let make = || {
            files::check(&ty, name).map_err(|e| e.at(made))?;
            let variable = Variable::make(name, ty.clone(), made);
            if home::graph().is_some() {
                *variable.state() = VariableState::Declared(None);
            }
            Ok(variable)
        };
        home::variable(&full, made, Some(&ty), make).unwrap_or_else(|error| {
            let variable = Variable::make(name, ty.clone(), made);
            *variable.state() = VariableState::Refused(error);
            variable
        })
    }

    /// A variable whose first value a closure gives when it is first needed; whether tapes watch it. Plans take it as if it were in memory
    /// already, so that what a call takes is known before a byte of it is read.
    ///
    /// ```
    /// use tonnage::{DType, Shape, Tensor, TensorType, Variable, function, ones};
    /// let ty = TensorType::new(DType::F32, Shape::from([1 << 20]));
    /// let large = Variable::computed("large", ty, false, || ones([1 << 20]));
    /// let of = large.clone();
    /// let f = function(move |x: Tensor| of.read()? * x);
    /// assert!(f.plan(&ones([1])?)?.peak().get() >= 8 << 20);
    /// assert_eq!(large.bytes().get(), 0);
    /// f.call(ones([1])?)?;
    /// assert_eq!(large.bytes().get(), 4 << 20);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn computed(
        name: &str,
        ty: TensorType,
        trainable: bool,
        first: impl Fn() -> Result<Tensor> + Send + Sync + 'static,
    ) -> Variable {
        let role = if trainable { Role::Trainable } else { Role::Fixed };
        let variable = Variable::named(scope::full_name(name), ty, role, Source::here());
        *variable.state() = VariableState::Pending(InitialValue::Closure(Box::new(first)));
        scope::enter(&variable);
        variable
    }

    /// The variable that stands for one of a deferred graph in a session.
    pub(crate) fn of_session(declared: &Variable) -> Variable {
        let VariableInner { name, ty, made, role, .. } = &*declared.0;
        Variable::named(name.clone(), ty.clone(), *role, *made)
    }

    fn make(name: &str, ty: TensorType, made: Source) -> Variable {
        let variable = Variable::named(scope::full_name(name), ty, Role::Trainable, made);
        scope::enter(&variable);
        variable
    }

    pub(super) fn named(name: String, ty: TensorType, role: Role, made: Source) -> Variable {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (state, path) = (Mutex::new(VariableState::Waiting), OnceLock::new());
        let blocks = Mutex::default();
        let in_files = files::is_wanted(&ty);
        let registry = Registry::current();
        let variable = Variable(Arc::new(VariableInner {
            number,
            name,
            path,
            ty,
            made,
            role,
            in_files,
            registry,
            blocks,
            state,
        }));
        variable.0.registry.list(&variable);
        variable
    }

    /// Gives a variable its first value, or remembers how it will get one.
    fn initialize(&self, first: InitialValue, id: u64) -> Result<()> {
        let state = match first {
            first if home::graph().is_some() => VariableState::Declared(Some(Arc::new(first))),
            first @ InitialValue::Closure(_) => VariableState::Pending(first),
            InitialValue::Array(array) => VariableState::Holds(self.own(array)?, id),
            InitialValue::Program(program) => match program.as_recipe()? {
                Some(recipe) if !self.0.in_files => VariableState::Holds(recipe, next_id()),
                _ => VariableState::Pending(InitialValue::Program(program)),
            },
        };
        *self.state() = state;
        Ok(())
    }

    /// Gives a session's variable its first value.
    pub(crate) fn start(&self, value: Array) -> Result<()> {
        let array = self.own(value)?;
        *self.state() = VariableState::Holds(array, next_id());
        Ok(())
    }

    /// Whether it is a deferred graph's, and its first value then, if it has one.
    pub(crate) fn declared(&self) -> Option<Option<Arc<InitialValue>>> {
        match &*self.state() {
            VariableState::Declared(first) => Some(first.clone()),
            _ => None,
        }
    }

    /// Its state, with a first value that is pending computed.
    pub(super) fn settled(&self) -> Result<MutexGuard<'_, VariableState>> {
        let mut state = self.free_state()?;
        if let VariableState::Pending(first) = &*state {
            let array = first.value(self.0.made, |variable| Ok(variable.clone()))?;
            if array.ty() != self.0.ty {
                let what = format!(
                    "the first value of `{}` is {}, not {}",
                    self.name(),
                    array.ty(),
                    self.0.ty
                );
                return Err(
                    bad_argument("variable", what, "give a value of its type").at(self.0.made)
                );
            }
            let is_dense = array.as_recipe().is_none() && array.layout().is_contiguous();
            let array = match first {
                InitialValue::Closure(_) if !is_dense && !self.0.in_files => {
                    array.copied_as(&host_ledger(), self.owner())?
                }
                _ => array,
            };
            *state = VariableState::Holds(self.own(array)?, next_id());
        }
        Ok(state)
    }
}
