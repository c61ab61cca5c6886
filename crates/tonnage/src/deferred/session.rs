//! Sessions: the values of a graph's variables, and the plans of what is fetched of it.
//!
//! The invariant: what a session holds (values of variables, traces, plans) is gone when it is closed or
//! dropped, and nothing else holds it.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tonnage_core::{Bytes, Error, ErrorKind, Kind, Result, Source};
use tonnage_plan::Plan;
use tonnage_runtime::Owner;
use tonnage_runtime::execute::Measured;

use super::Graph;
use super::fetch::FetchProgram;
use crate::function::lock;
use crate::function::{TraceCache, give_up};
use crate::tensor::Tensor;
use crate::tree::Tree;
use crate::variable::Variable;

/// Runs a [`Graph`], and owns what it takes: the values of its variables, and what was planned. Closing it,
/// or dropping it, frees all of that.
///
/// ```
/// use tonnage::{DType, Dim, Graph, Session, Variable, ones, zeros};
/// let graph = Graph::new();
/// let x = graph.placeholder("x", DType::F32, [Dim::open("n"), Dim::from(2)])?;
/// let (total, sum) = graph.build(|| {
///     let total = Variable::new("total", zeros([2])?)?;
///     total.assign_add(&x.sum(0)?)?;
///     Ok((total.read()?, x.sum_all()?))
/// })?;
/// let session = Session::new(&graph);
/// session.initialize()?;
/// for n in 1..4 {
///     session.run(&total, [("x", ones([n, 2])?)])?;
/// }
/// // What is not fetched does not run: `sum` leaves the variable alone.
/// assert_eq!(session.run(&sum, [("x", ones([5, 2])?)])?.to_vec::<f32>()?, [10.0]);
/// assert_eq!(session.run(&total, [("x", ones([1, 2])?)])?.to_vec::<f32>()?, [7.0, 7.0]);
/// session.close()?;
/// session.close()?; // closing twice is harmless
/// assert!(session.run(&sum, [("x", ones([1, 2])?)]).is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
pub struct Session {
    pub(super) graph: Graph,
    made: Source,
    /// None once it is closed.
    pub(super) open: Mutex<Option<OpenSession>>,
}

pub(super) struct OpenSession {
    pub(super) cache: Arc<Mutex<TraceCache<FetchProgram>>>,
    /// Its own variables, by the numbers of those that the graph declares.
    variables: HashMap<u64, Variable>,
}

impl Session {
    /// A session in which no variable has a value yet.
    #[track_caller]
    pub fn new(graph: &Graph) -> Session {
        let made = Source::here();
        let owner = Owner { kind: Kind::Graph, what: "session", name: None, source: made };
        let cache = Arc::new(Mutex::new(TraceCache::new(owner)));
        let open = Some(OpenSession { cache, variables: HashMap::new() });
        Session { graph: graph.clone(), made, open: Mutex::new(open) }
    }

    /// Gives every variable of the graph its first value, in the order in which they were made.
    #[track_caller]
    pub fn initialize(&self) -> Result<()> {
        let source = Source::here();
        for declared in self.graph.variables() {
            self.start(&declared).map_err(|e| e.at(source))?;
        }
        Ok(())
    }

    /// The same for one of them alone.
    #[track_caller]
    pub fn initialize_variable(&self, declared: &Variable) -> Result<()> {
        self.start(declared).map_err(|e| e.at(Source::here()))
    }

    fn start(&self, declared: &Variable) -> Result<()> {
        let own = self.own(declared)?;
        match declared.declared() {
            Some(Some(first)) => {
                own.start(first.value(declared.made(), |variable| self.own(variable))?)
            }
            _ => Ok(()),
        }
    }

    /// The session's own variable for one of the graph's: to look at, or to assign to.
    #[track_caller]
    pub fn variable(&self, declared: &Variable) -> Result<Variable> {
        self.own(declared).map_err(|e| e.at(Source::here()))
    }

    /// Computes what is asked for, nested as you like, with placeholders fed by name. What none of it needs
    /// is not run, and need not be fed.
    ///
    /// A feed that is moved in, and that nobody else holds, may be overwritten.
    #[track_caller]
    pub fn run<'a, T: Tree>(
        &self,
        fetches: &T,
        feeds: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<T> {
        let source = Source::here();
        let made = self.go(fetches, &[], feeds.into_iter().collect(), source);
        made.map(|(result, _)| result).map_err(|e| e.at(source))
    }

    /// The same, and runs what leads to `updates` too, without returning it: a variable that was read after
    /// it was assigned to stands for the assignment.
    ///
    /// ```
    /// use tonnage::{Graph, Session, Variable, ones, zeros};
    /// let graph = Graph::new();
    /// let (before, after) = graph.build(|| {
    ///     let v = Variable::new("v", zeros([1])?)?;
    ///     let before = v.read()?;
    ///     v.assign_add(&ones([1])?)?;
    ///     Ok((before, v.read()?))
    /// })?;
    /// let session = Session::new(&graph);
    /// session.initialize()?;
    /// assert_eq!(session.run_with(&before, &[&after], [])?.to_vec::<f32>()?, [0.0]);
    /// assert_eq!(session.run(&before, [])?.to_vec::<f32>()?, [1.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn run_with<'a, T: Tree>(
        &self,
        fetches: &T,
        updates: &[&Tensor],
        feeds: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<T> {
        let source = Source::here();
        let made = self.go(fetches, updates, feeds.into_iter().collect(), source);
        made.map(|(result, _)| result).map_err(|e| e.at(source))
    }

    /// The same, with what the executor measured.
    #[track_caller]
    pub fn run_measured<'a, T: Tree>(
        &self,
        fetches: &T,
        updates: &[&Tensor],
        feeds: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<(T, Measured)> {
        let source = Source::here();
        self.go(fetches, updates, feeds.into_iter().collect(), source).map_err(|e| e.at(source))
    }

    /// What such a run would take: the order, an address for every buffer, and the peak. Runs nothing; pass
    /// [`Tensor::spec`] for feeds that do not exist yet.
    #[track_caller]
    pub fn plan<'a, T: Tree>(
        &self,
        fetches: &T,
        updates: &[&Tensor],
        feeds: impl IntoIterator<Item = (&'a str, Tensor)>,
    ) -> Result<Arc<Plan>> {
        let source = Source::here();
        let planned = || {
            let (fetch, cache) = self.fetch(fetches, updates)?;
            let feeds = self.feeds(&fetch, feeds.into_iter().collect())?;
            fetch.program.foresee(&cache, &feeds, false)
        };
        planned().map_err(|e| e.at(source))
    }

    /// What its traces and plans take themselves.
    pub fn graph_bytes(&self) -> Bytes {
        let open = lock(&self.open);
        open.as_ref().map_or(Bytes::ZERO, |open| Bytes::of(lock(&open.cache).bytes()))
    }

    /// What its traces and plans may take, instead of 64 MiB; what was used longest ago gives way.
    #[must_use]
    pub fn graph_limit(self, bytes: Bytes) -> Session {
        if let Some(open) = &*lock(&self.open) {
            lock(&open.cache).set_limit(bytes);
        }
        self
    }

    /// Frees everything that it holds. Closing twice is harmless; to use it then is an error.
    ///
    /// # Errors
    /// In a callback, where the run that it belongs to writes one of the variables: then nothing is closed.
    #[track_caller]
    pub fn close(&self) -> Result<()> {
        // Not locked while it waits for calls, whose callbacks may ask the session something.
        let open = lock(&self.open).take();
        let Some(open) = open else { return Ok(()) };
        if let Err(error) = Variable::close_all(open.variables.values().collect()) {
            *lock(&self.open) = Some(open);
            return Err(error.at(Source::here()));
        }
        lock(&open.cache).clear();
        Ok(())
    }

    pub(super) fn closed(&self) -> Error {
        let what = format!("the session made at {}", self.made);
        ErrorKind::Closed { what, help: "make another one".into() }.into()
    }

    /// The session's variable for one of the graph's; any other is itself.
    pub(super) fn own(&self, variable: &Variable) -> Result<Variable> {
        let mut open = lock(&self.open);
        let open = open.as_mut().ok_or_else(|| self.closed())?;
        match variable.declared() {
            None => Ok(variable.clone()),
            Some(_) => {
                let own = || Variable::of_session(variable);
                Ok(open.variables.entry(variable.number()).or_insert_with(own).clone())
            }
        }
    }

    fn go<T: Tree>(
        &self,
        fetches: &T,
        updates: &[&Tensor],
        feeds: Vec<(&str, Tensor)>,
        source: Source,
    ) -> Result<(T, Measured)> {
        let (fetch, cache) = self.fetch(fetches, updates)?;
        let feeds = self.feeds(&fetch, feeds)?;
        let arrays = give_up(feeds, "session")?;
        let rows = self.graph.0.trace.summed_rows(|rows| rows.clone());
        rows.check().map_err(|e| e.at(source))?;
        let (made, measured) = fetch.program.run(&cache, arrays, source)?;
        let mut made = made.into_iter();
        let result = fetches.share().map(&mut |tensor| match tensor.is_symbolic() {
            false => Ok(tensor),
            true => made
                .next()
                .map(Tensor::from_array)
                .ok_or_else(|| ErrorKind::BadGraph { what: "a result is missing".into() }.into()),
        })?;
        Ok((result, measured))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // In a callback of a run that writes its variables they go with that run.
        let _ = self.close();
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session(made at {})", self.made)
    }
}
