//! Names of variables: scopes that nest, a registry of what was made, and containers that free it.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::{Rc, Weak};

use tonnage_core::{ErrorKind, Result, Source};

use crate::function::home;
use crate::tensor::Tensor;
use crate::variable::{Role, Variable};

thread_local! {
    static SCOPES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    static CONTAINERS: RefCell<Vec<Rc<ContainerInner>>> = const { RefCell::new(Vec::new()) };
    /// Every container of this thread, open or not.
    static MADE: RefCell<Vec<Weak<ContainerInner>>> = const { RefCell::new(Vec::new()) };
    /// Variables by full name, of no container.
    static LOOSE: RefCell<HashMap<String, Variable>> = RefCell::new(HashMap::new());
}

/// Whether `get_variable` makes a variable or finds one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reuse {
    /// Makes it; a name that is taken is an error.
    #[default]
    Never,
    /// Finds it; a name that is unknown is an error.
    Always,
    /// Finds it, or makes it.
    Auto,
}

/// Runs `f` with `name/` before the names of all variables that it makes. What it does counts to a layer of that name in
/// plans and in the ledger.
///
/// ```
/// use tonnage::{Reuse, get_variable, name_scope, zeros};
/// let w = name_scope("layer", || get_variable("w", Reuse::Auto, || zeros([2, 2])))?;
/// assert_eq!(w.name(), "layer/w");
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn name_scope<R>(name: &str, f: impl FnOnce() -> R) -> R {
    struct LeaveScope;
    impl Drop for LeaveScope {
        fn drop(&mut self) {
            SCOPES.with_borrow_mut(|scopes| {
                scopes.pop();
            });
        }
    }
    SCOPES.with_borrow_mut(|scopes| scopes.push(name.to_string()));
    let _leave = LeaveScope;
    Source::for_layer(name, f)
}

pub(crate) fn full_name(name: &str) -> String {
    SCOPES.with_borrow(|scopes| match scopes.is_empty() {
        true => name.to_string(),
        false => format!("{}/{name}", scopes.join("/")),
    })
}

/// The variable of that name in the current scope and container: found or made, as `reuse` says. A value
/// is asked for only where one is made.
#[track_caller]
pub fn get_variable(
    name: &str,
    reuse: Reuse,
    value: impl FnOnce() -> Result<Tensor>,
) -> Result<Variable> {
    let source = Source::here();
    let full = full_name(name);
    // In a function it is the function's, found by its place in later traces; in a deferred graph it is
    // found by its name there.
    match home::graph() {
        Some(_) => find_or_make(name, full, reuse, value, source),
        None => home::variable(&full.clone(), source, None, || {
            find_or_make(name, full, reuse, value, source)
        }),
    }
}

fn find_or_make(
    name: &str,
    full: String,
    reuse: Reuse,
    value: impl FnOnce() -> Result<Tensor>,
    source: Source,
) -> Result<Variable> {
    let graph = home::graph();
    let found = match &graph {
        Some(home) => home.named(&full),
        None => CONTAINERS.with_borrow(|open| match open.last() {
            Some(held) => held.named.borrow().get(&full).cloned(),
            None => LOOSE.with_borrow(|loose| loose.get(&full).cloned()),
        }),
    };
    match (found, reuse) {
        (Some(variable), Reuse::Always | Reuse::Auto) => Ok(variable),
        (Some(first), Reuse::Never) => Err(ErrorKind::NameTaken {
            name: full,
            first: first.made(),
            second: source,
            help: "use another name or scope, or `Reuse::Auto` to share it".into(),
        })
        .map_err(|kind| tonnage_core::Error::from(kind).at(source)),
        (None, Reuse::Always) => Err(tonnage_core::error::bad_argument(
            "get_variable",
            format!("there is no variable `{full}` to reuse"),
            "make it first, or use `Reuse::Auto`",
        )
        .at(source)),
        (None, _) => {
            let value = value()?;
            if graph.is_some() {
                return Variable::new_at(name, value, Role::Trainable, source);
            }
            let variable = Variable::create(name, value, Role::Trainable, source)?;
            CONTAINERS.with_borrow(|open| match open.last() {
                Some(held) => {
                    held.named.borrow_mut().insert(full.clone(), variable.clone());
                }
                None => LOOSE.with_borrow_mut(|loose| {
                    loose.insert(full.clone(), variable.clone());
                }),
            });
            Ok(variable)
        }
    }
}

/// Forgets the names of variables outside of containers; those that nobody else holds are freed.
pub fn forget_variables() {
    LOOSE.with_borrow_mut(HashMap::clear);
}

struct ContainerInner {
    name: String,
    variables: RefCell<Vec<Variable>>,
    named: RefCell<HashMap<String, Variable>>,
    closed: std::cell::Cell<bool>,
}

/// Holds every variable that is made inside of it, and frees them all when it is closed.
///
/// ```
/// use tonnage::{Container, Variable, ones};
/// let container = Container::new("weights");
/// let v = container.enter(|| Variable::new("v", ones([2])?))?;
/// container.close()?;
/// container.close()?; // closing twice is harmless
/// assert!(v.read().is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct Container(Rc<ContainerInner>);

impl Container {
    /// An open container.
    pub fn new(name: &str) -> Container {
        let held = Rc::new(ContainerInner {
            name: name.to_string(),
            variables: RefCell::default(),
            named: RefCell::default(),
            closed: std::cell::Cell::new(false),
        });
        MADE.with_borrow_mut(|made| {
            made.retain(|one| one.strong_count() > 0);
            made.push(Rc::downgrade(&held));
        });
        Container(held)
    }

    /// Runs `f`; variables that it makes are held here.
    #[track_caller]
    pub fn enter<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        if self.0.closed.get() {
            let what = format!("container `{}`", self.0.name);
            let kind = ErrorKind::Closed { what, help: "make another one".into() };
            return Err(tonnage_core::Error::from(kind).at(Source::here()));
        }
        struct LeaveContainer;
        impl Drop for LeaveContainer {
            fn drop(&mut self) {
                CONTAINERS.with_borrow_mut(|open| {
                    open.pop();
                });
            }
        }
        CONTAINERS.with_borrow_mut(|open| open.push(self.0.clone()));
        let _leave = LeaveContainer;
        f()
    }

    /// The variables that it holds.
    pub fn variables(&self) -> Vec<Variable> {
        self.0.variables.borrow().clone()
    }

    /// Frees everything that it holds. Closing twice is harmless.
    ///
    /// # Errors
    /// In a callback, where the call that it belongs to writes one of the variables: then nothing is closed.
    #[track_caller]
    pub fn close(&self) -> Result<()> {
        Variable::close_all(self.0.variables.borrow().iter().collect())
            .map_err(|e| e.at(Source::here()))?;
        self.0.closed.set(true);
        self.0.named.borrow_mut().clear();
        self.0.variables.borrow_mut().clear();
        Ok(())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        // In a callback of a call that writes its variables they outlive it, and go with that call's function.
        let _ = self.close();
    }
}

/// Containers and tables of names that hold a variable, in words.
pub(crate) fn holders(variable: &Variable) -> Vec<String> {
    let made: Vec<Rc<ContainerInner>> =
        MADE.with_borrow(|made| made.iter().filter_map(Weak::upgrade).collect());
    let holds =
        |held: &&Rc<ContainerInner>| held.variables.borrow().iter().any(|v| v.same(variable));
    let containers = made.iter().filter(holds).map(|held| format!("container `{}`", held.name));
    let mut found: Vec<String> = containers.collect();
    if LOOSE.with_borrow(|loose| loose.values().any(|v| v.same(variable))) {
        found.push("the table of `get_variable`".to_string());
    }
    found
}

/// Forgets a variable of a trace that failed.
pub(crate) fn forget(variable: &Variable) {
    let other = |_: &String, v: &mut Variable| !v.same(variable);
    LOOSE.with_borrow_mut(|loose| loose.retain(other));
    CONTAINERS.with_borrow(|open| {
        for held in open {
            held.named.borrow_mut().retain(other);
            held.variables.borrow_mut().retain(|v| !v.same(variable));
        }
    });
}

/// A variable that was just made belongs to the innermost container.
pub(crate) fn enter(variable: &Variable) {
    CONTAINERS.with_borrow(|open| {
        if let Some(held) = open.last() {
            held.variables.borrow_mut().push(variable.clone());
        }
    });
}
