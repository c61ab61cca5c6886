//! Where variables that are made inside of a function belong: to the function, keyed by the place and the
//! order of their making, so that later traces find them again. A deferred graph is such a home too.
//!
//! Frames nest as functions call functions, on the thread that runs them. A frame that is left without
//! [`HomeScope::commit`] takes back what was made in it: a closure that fails leaves nothing behind.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tonnage_core::error::bad_argument;
use tonnage_core::{ErrorKind, Result, Source, TensorType};

use crate::scope;
use crate::variable::Variable;

/// Functions that may be inside of one another on one thread.
const DEEPEST: usize = 64;
/// Traces, or eager calls, that may each make variables that were not there before.
const GROWTHS: usize = 32;

/// The line, the name, and which of several of that name at that line.
type DeclarationSite = (Source, String, usize);

/// Where variables belong.
pub(crate) struct Home {
    /// The function's line.
    pub made: Source,
    /// Whether it is a deferred graph: its variables live in sessions.
    is_graph: bool,
    state: Mutex<HomeState>,
}

#[derive(Default)]
struct HomeState {
    found: HashMap<DeclarationSite, Variable>,
    /// In the order of their making.
    variables: Vec<Variable>,
    growths: usize,
}

struct HomeFrame {
    home: Arc<Home>,
    counts: HashMap<(Source, String), usize>,
    made: Vec<DeclarationSite>,
}

thread_local! {
    static FRAMES: RefCell<Vec<HomeFrame>> = const { RefCell::new(Vec::new()) };
}

impl Home {
    pub fn of_function(made: Source) -> Arc<Home> {
        Arc::new(Home { made, is_graph: false, state: Mutex::default() })
    }

    pub fn of_graph(made: Source) -> Arc<Home> {
        Arc::new(Home { made, is_graph: true, state: Mutex::default() })
    }

    /// The variables that were made here, in order.
    pub fn variables(&self) -> Vec<Variable> {
        self.state().variables.clone()
    }

    /// The variable of that full name.
    pub fn named(&self, name: &str) -> Option<Variable> {
        self.state().variables.iter().find(|v| v.name() == name).cloned()
    }

    fn state(&self) -> MutexGuard<'_, HomeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Inside of a home, until it is dropped.
pub(crate) struct HomeScope {
    commit: bool,
}

/// Enters a home. Recursion that does not end ends here.
pub(crate) fn enter(home: &Arc<Home>) -> Result<HomeScope> {
    FRAMES.with_borrow_mut(|frames| {
        if frames.len() >= DEEPEST {
            let kind = ErrorKind::Recursion { function: home.made, depth: frames.len() };
            return Err(tonnage_core::Error::from(kind).at(home.made));
        }
        frames.push(HomeFrame { home: home.clone(), counts: HashMap::new(), made: Vec::new() });
        Ok(HomeScope { commit: false })
    })
}

impl HomeScope {
    /// What was made here stays.
    pub fn commit(mut self) {
        self.commit = true;
    }
}

impl Drop for HomeScope {
    fn drop(&mut self) {
        let Some(frame) = FRAMES.with_borrow_mut(Vec::pop) else { return };
        if frame.made.is_empty() {
            return;
        }
        let mut state = frame.home.state();
        if self.commit {
            state.growths += 1;
            return;
        }
        for site in &frame.made {
            if let Some(variable) = state.found.remove(site) {
                state.variables.retain(|v| !v.same(&variable));
                scope::forget(&variable);
            }
        }
    }
}

/// The deferred graph that is being built: variables that are made now live in its sessions.
pub(crate) fn graph() -> Option<Arc<Home>> {
    let home = FRAMES.with_borrow(|frames| frames.last().map(|frame| frame.home.clone()))?;
    home.is_graph.then_some(home)
}

/// Whether something is traced or run that variables would belong to.
pub(crate) fn is_inside() -> bool {
    FRAMES.with_borrow(|frames| !frames.is_empty())
}

/// The variable of that name and line: found where an earlier trace made it, made otherwise. `ty` is what
/// it should be, where that is known beforehand.
pub(crate) fn variable(
    name: &str,
    made: Source,
    ty: Option<&TensorType>,
    make: impl FnOnce() -> Result<Variable>,
) -> Result<Variable> {
    let Some((home, site)) = here(name, made) else { return make() };
    if home.is_graph {
        return declare(&home, site, make);
    }
    let found = home.state().found.get(&site).cloned();
    if let Some(found) = found {
        return match ty {
            Some(ty) if found.ty() != *ty => {
                let what =
                    format!("`{name}` was {} in an earlier trace and is {ty} now", found.ty());
                let help = "a function's variable keeps its type; make it outside, or give it another name";
                Err(bad_argument("variable", what, help).at(made))
            }
            _ => Ok(found),
        };
    }
    if home.state().growths >= GROWTHS {
        let what = format!(
            "`{name}` is new again: each of {GROWTHS} traces or calls of the function at {} made more variables",
            home.made
        );
        let help = "give it the same name in every trace, or make it outside of the function";
        return Err(bad_argument("variable", what, help).at(made));
    }
    let variable = make()?;
    let mut state = home.state();
    // Another thread may have traced it meanwhile: the first one stays.
    if let Some(first) = state.found.get(&site) {
        return Ok(first.clone());
    }
    state.found.insert(site.clone(), variable.clone());
    state.variables.push(variable.clone());
    drop(state);
    note(site);
    Ok(variable)
}

/// A variable of a deferred graph: a new one wherever it is made, with a name of its own.
fn declare(
    home: &Home,
    site: DeclarationSite,
    make: impl FnOnce() -> Result<Variable>,
) -> Result<Variable> {
    if let Some(first) = home.named(&site.1) {
        let (second, first) = (site.0, first.made());
        let help = "use another name or a `name_scope`".into();
        let kind = ErrorKind::NameTaken { name: site.1, first, second, help };
        return Err(tonnage_core::Error::from(kind).at(second));
    }
    let variable = make()?;
    let mut state = home.state();
    state.found.insert(site.clone(), variable.clone());
    state.variables.push(variable.clone());
    drop(state);
    note(site);
    Ok(variable)
}

/// Caches what the innermost frame made.
fn note(site: DeclarationSite) {
    FRAMES.with_borrow_mut(|frames| {
        if let Some(frame) = frames.last_mut() {
            frame.made.push(site);
        }
    });
}

/// The innermost home, and which place of it the next variable of that name and line has.
fn here(name: &str, made: Source) -> Option<(Arc<Home>, DeclarationSite)> {
    FRAMES.with_borrow_mut(|frames| {
        let frame = frames.last_mut()?;
        let count = frame.counts.entry((made, name.to_string())).or_insert(0);
        *count += 1;
        Some((frame.home.clone(), (made, name.to_string(), *count)))
    })
}
