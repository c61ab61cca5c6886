//! Deferred graphs: ops are written down first, with placeholders for what comes later, and run in a session.
//!
//! A [`Graph`] is a trace that goes on: nothing in it runs, and nothing is obtained. A [`Session`] owns the
//! values of its variables, and the plans of what was fetched. Both are made of what functions are made of:
//! a fetch is a program, planned and cached like a call.

mod fetch;
mod session;

use std::fmt;
use std::sync::{Arc, Mutex};

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, DType, Dim, ErrorKind, Kind, Result, Shape, Source, Symbol, TensorType};
use tonnage_runtime::{Owner, Tally, host_ledger};

use crate::function::home::{self, Home};
use crate::function::lock;
use crate::function::program::text;
use crate::tensor::Tensor;
use crate::trace::{self, Trace};
use crate::variable::Variable;

pub use session::Session;

/// A graph with placeholders that is built first and run later, in a [`Session`]. Clones are the same graph.
///
/// ```
/// use tonnage::{DType, Graph, Session, tensor};
/// let graph = Graph::new();
/// let a = graph.placeholder("a", DType::I64, [3])?; // nothing is obtained
/// let b = graph.placeholder("b", DType::I64, [3])?;
/// let c = graph.build(|| a + b)?;
///
/// let session = Session::new(&graph);
/// let feeds = [("a", tensor([1i64, 2, 3])?), ("b", tensor([4i64, 5, 6])?)];
/// assert_eq!(session.run(&c, feeds)?.to_vec::<i64>()?, [5, 7, 9]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Clone)]
pub struct Graph(Arc<DeferredGraph>);

struct DeferredGraph {
    made: Source,
    trace: Trace,
    home: Arc<Home>,
    inputs: Mutex<GraphInputs>,
    /// What its nodes take, in the ledger.
    tally: Tally,
}

#[derive(Default)]
struct GraphInputs {
    placeholders: Vec<Placeholder>,
    /// Open dims by name: the same name is the same size in all of the graph.
    symbols: Vec<Symbol>,
}

/// A value that is fed.
#[derive(Clone)]
struct Placeholder {
    name: Arc<str>,
    ty: TensorType,
    made: Source,
}

impl Graph {
    /// An empty graph. Where it is made inside of a function, what is built may use values of that trace, to find the shapes of
    /// results; a session cannot run that.
    #[allow(clippy::new_without_default, reason = "its line is part of it")]
    #[track_caller]
    pub fn new() -> Graph {
        let made = Source::here();
        let (trace, home) = (Trace::begin_graph(made), Home::of_graph(made));
        let owner = Owner { kind: Kind::Graph, what: "graph", name: None, source: made };
        let tally = host_ledger().tally(owner);
        Graph(Arc::new(DeferredGraph { made, trace, home, inputs: Mutex::default(), tally }))
    }

    /// Runs `f`, whose ops become part of the graph. Variables that it makes are the graph's: each session
    /// has values of its own for them.
    ///
    /// What is fetched after an update of a variable comes after the update: see [`Session::run_with`].
    #[track_caller]
    pub fn build<R>(&self, f: impl FnOnce() -> Result<R>) -> Result<R> {
        let source = Source::here();
        if trace::current().is_some_and(|current| !current.is(&self.0.trace)) {
            let help = "build it outside of functions, loops and other graphs";
            return Err(bad_argument("graph", "built inside of another trace", help).at(source));
        }
        let entered = home::enter(&self.0.home)?;
        let made = self.0.trace.within(f);
        self.0.tally.set(self.graph_bytes()); // what failed may have left nodes
        let made = made?;
        entered.commit();
        Ok(made)
    }

    /// Lets a variable be read as `value` from here on, without an update of it: what is built then comes after what leads to
    /// `value`, and no other update. So updates can be built apart from each other, as other frameworks have it.
    ///
    /// ```
    /// use tonnage::{Graph, Session, Variable, ones, zeros};
    /// let graph = Graph::new();
    /// let (v, before) = graph.build(|| {
    ///     let v = Variable::new("v", zeros([1])?)?;
    ///     let before = v.read()?;
    ///     Ok((v, before))
    /// })?;
    /// graph.build(|| v.assign_add(&ones([1])?))?;
    /// graph.show(&v, &before)?;
    /// let more = graph.build(|| v.read()? + 10.0)?;
    /// let session = Session::new(&graph);
    /// session.initialize()?;
    /// assert_eq!(session.run(&more, [])?.to_vec::<f32>()?, [10.0]); // without the update
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn show(&self, variable: &Variable, value: &Tensor) -> Result<()> {
        self.0.trace.show(variable, value).map_err(|e| e.at(Source::here()))
    }

    /// Lets all that is built from here on wait for these values, besides what it reads: fetching it runs what leads to
    /// them. Returns what was waited for before.
    #[track_caller]
    pub fn wait_for(&self, values: &[Tensor]) -> Result<Vec<Tensor>> {
        self.0.trace.wait_for(values).map_err(|e| e.at(Source::here()))
    }

    /// What its nodes take themselves. The ledger has it as held by the graph's line.
    pub fn graph_bytes(&self) -> Bytes {
        self.0.trace.state().builder.graph().bytes()
    }

    /// A value that is fed by that name when the graph runs. Dims may be open; the same name is the same size
    /// in all of the graph.
    #[track_caller]
    pub fn placeholder(&self, name: &str, dtype: DType, shape: impl Into<Shape>) -> Result<Tensor> {
        let made = Source::here();
        let mut inputs = lock(&self.0.inputs);
        if let Some(first) = inputs.placeholders.iter().find(|p| *p.name == *name) {
            let (name, first) = (name.to_string(), first.made);
            let help = "give each placeholder a name of its own".into();
            let kind = ErrorKind::NameTaken { name, first, second: made, help };
            return Err(tonnage_core::Error::from(kind).at(made));
        }
        let shape: Shape = shape.into();
        for dim in shape.iter() {
            dim.symbols(&mut |symbol| {
                if !inputs.symbols.iter().any(|s| s.name() == symbol.name()) {
                    inputs.symbols.push(symbol.clone());
                }
            });
        }
        let one = |symbol: &Symbol| {
            let known = inputs.symbols.iter().find(|s| s.name() == symbol.name());
            known.map(|s| Dim::symbol(s.clone()))
        };
        let ty = TensorType { dtype, shape: shape.substitute(&one) };
        let name: Arc<str> = name.into();
        inputs.placeholders.push(Placeholder { name: name.clone(), ty: ty.clone(), made });
        Ok(self.0.trace.named_argument(ty, Some(name)))
    }

    /// The names and types of its placeholders.
    pub fn placeholders(&self) -> Vec<(String, TensorType)> {
        let inputs = lock(&self.0.inputs);
        inputs.placeholders.iter().map(|p| (p.name.to_string(), p.ty.clone())).collect()
    }

    /// The variables that were made in it, in the order of their making.
    pub fn variables(&self) -> Vec<Variable> {
        self.0.home.variables()
    }
}

impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.0.trace.state().builder.graph()))
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph(made at {})", self.0.made)
    }
}
