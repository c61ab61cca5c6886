//! A model: what it takes and gives, what it would take to run it, and running it.
//!
//! Decision: `docs/decisions/onnx-weights-are-variables.md`.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use tonnage::{
    Budget, Bytes, Error, Plan, Price, Ran, Result, Tensor, TensorType, Variable, bind,
    largest_that_fits, memory,
};
use tonnage_core::Source;

use crate::contents::ModelData;
use crate::data::ModelFile;
use crate::message::{GraphMessage, ModelMessage, ValueType, dtype_name, dtype_of, read_model};
use crate::port::{Port, PortDim};
use crate::segments::Segments;
use crate::value::Value;
use crate::weights::Place;
use crate::wire::bad_file;

/// The newest version of the standard ops that rules were written for.
const NEWEST: i64 = 28;

/// An ONNX model.
///
/// Its weights are brought into memory when they are first needed, where a call fits with them; otherwise, under a tight budget, they stay in the file, and
/// are read by the ops that use them. The plan says which: weights in memory are variables of it, and others are read.
///
/// Lengths that the file leaves open are bound when it is planned or called; each binding is a plan of its own. Where the numbers of a
/// value decide sizes, or which branch is taken, the model runs in segments, each of which is planned when those numbers are known.
pub struct Model {
    data: Arc<ModelData>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    budget: Option<Budget>,
    /// Whether weights are in memory where nothing bounds it.
    has_room: OnceLock<bool>,
    /// With weights in memory.
    resident: Segments,
    /// With weights in the file.
    in_file: Segments,
}

/// Opens a model: its nodes are read, its weights are not.
///
/// # Errors
/// Where it is no ONNX model, damaged, or newer than the ops that are known.
pub fn load(path: impl AsRef<Path>) -> Result<Model> {
    let path = path.as_ref();
    let message = read_model(path, &mut Some)?;
    check_message(path, &message)?;
    let file = ModelFile { path: path.into() };
    let graph = &message.graph;
    let places: HashMap<String, usize> =
        graph.initializers.iter().enumerate().map(|(at, t)| (t.name.clone(), at)).collect();
    let (inputs, outputs) = ports(graph);
    let data = Arc::new(ModelData::new(file, message, places));
    let resident = Segments::new(data.clone(), Place::Memory, None);
    let in_file = Segments::new(data.clone(), Place::File, None);
    Ok(Model { data, inputs, outputs, budget: None, has_room: OnceLock::new(), resident, in_file })
}

/// Refuses what no rule can read.
pub(crate) fn check_message(path: &Path, message: &ModelMessage) -> Result<()> {
    let too_new = |opset: &&(String, i64)| opset.0.is_empty() && opset.1 > NEWEST;
    if let Some((_, version)) = message.opsets.iter().find(too_new) {
        let what = format!("is of opset {version}, and {NEWEST} is the newest that is known");
        return Err(bad_file(path, what, "save it for an older opset"));
    }
    match message.graph.sparse {
        0 => Ok(()),
        _ => Err(bad_file(path, "has sparse initializers", "save them as dense ones")),
    }
}

/// What a graph takes and gives. Weights may stand among its inputs, in files of old.
pub(crate) fn ports(graph: &GraphMessage) -> (Vec<Port>, Vec<Port>) {
    let weights: HashSet<&str> = graph.initializers.iter().map(|t| t.name.as_str()).collect();
    let given = graph.inputs.iter().filter(|input| !weights.contains(input.name.as_str()));
    let inputs = given.map(|value| Port::of(&value.name, &value.ty)).collect();
    (inputs, graph.outputs.iter().map(|value| Port::of(&value.name, &value.ty)).collect())
}

/// Bytes of the weights of a graph; those of types that are not supported count for none. `None` for more than any machine
/// addresses.
pub(crate) fn weight_bytes(file: &ModelFile, graph: &GraphMessage) -> Option<Bytes> {
    let own = |stored| file.ty(stored).and_then(|ty| ty.bytes("onnx")).unwrap_or(Bytes::ZERO);
    let mut all = graph.initializers.iter().map(own);
    all.try_fold(Bytes::ZERO, Bytes::checked_add)
}

impl Model {
    /// What it takes, in order.
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// What it gives, in order.
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// How many nodes its graph has.
    pub fn nodes(&self) -> usize {
        self.data.message.graph.nodes.len()
    }

    /// Calls a closure for each node that is imported, with the number of nodes up to it: a large model is planned, and called for the first time, in
    /// seconds. The first closure that is given stays.
    #[must_use]
    pub fn on_node(self, listener: impl Fn(usize) + Send + Sync + 'static) -> Model {
        self.data.listen(listener);
        self
    }

    /// Bytes that a call may hold, its inputs and results among them, or `"least"`. A call that does not fit is refused before it
    /// starts.
    ///
    /// # Errors
    /// Where that is no number of bytes, or 0.
    pub fn budget<B>(mut self, budget: B) -> Result<Model>
    where
        B: TryInto<Budget>,
        Error: From<B::Error>,
    {
        let budget = budget.try_into()?.checked("budget")?;
        self.budget = Some(budget);
        if self.resident.place() == Place::Trained {
            self = self.trainable();
        }
        self.in_file = Segments::new(self.data.clone(), Place::File, Some(budget));
        Ok(self)
    }

    /// The same with weights that are trained: [`Model::variables`] are what tapes watch and optimizers update, and a call inside of a
    /// function is part of it. Statistics of batch normalization stay as they are.
    ///
    /// ```no_run
    /// use tonnage::{Elementwise, GradientTape, Tensor, Variable, function};
    /// let model = tonnage_onnx::load("model.onnx")?.trainable();
    /// let variables = model.variables()?;
    /// let step = function(move |x: Tensor| {
    ///     let mut tape = GradientTape::new();
    ///     let loss = model.call([x])?.remove(0).tensor()?.square()?.mean_all()?;
    ///     let sources: Vec<&Variable> = variables.iter().collect();
    ///     for (variable, gradient) in sources.iter().zip(tape.gradient(&loss, &sources)?) {
    ///         variable.assign_sub(&(gradient.tensor()? * 0.01)?)?;
    ///     }
    ///     Ok(loss)
    /// })
    /// .budget("256MiB")?;
    /// # let _ = step;
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[must_use]
    pub fn trainable(mut self) -> Model {
        self.resident = Segments::new(self.data.clone(), Place::Trained, self.budget);
        self
    }

    /// The weights that are trained, in the order of the file; none before [`Model::trainable`].
    ///
    /// # Errors
    /// Where a weight is damaged or of a dtype that is not supported.
    pub fn variables(&self) -> Result<Vec<Variable>> {
        self.resident.variables()
    }

    /// Where weights are for a call with such inputs: in memory where it fits with them.
    fn segments(&self, inputs: &[(String, Value)]) -> Result<&Segments> {
        let limit = || Ok::<_, Error>(memory::limit("cpu:0")?.map(Budget::Bytes));
        let most = if self.budget.is_some() { self.budget } else { limit()? };
        let fits = match (self.resident.place(), most) {
            (Place::Trained, _) => true,
            (_, Some(Budget::Least)) => false,
            (_, Some(Budget::Bytes(most))) => {
                bind::is_tracing() || self.resident.peak(inputs)?.is_some_and(|peak| peak <= most)
            }
            (_, None) => *self.has_room.get_or_init(|| self.has_room()),
        };
        Ok(if fits { &self.resident } else { &self.in_file })
    }

    /// Whether the machine has memory for all of the weights, and as much again for what is computed with them.
    fn has_room(&self) -> bool {
        let weights = weight_bytes(&self.data.file, &self.data.message.graph);
        let wanted = weights.and_then(|bytes| bytes.checked_mul(2));
        match memory::available_memory() {
            Some(available) => wanted.is_some_and(|bytes| bytes <= available),
            None => true,
        }
    }

    /// Types of the inputs, with open lengths bound by name, to plan with.
    ///
    /// # Errors
    /// Where a length stays open, a name is none of the model's, or an input's type is not known.
    pub fn specs(&self, lengths: &[(&str, usize)]) -> Result<Vec<Tensor>> {
        let path = &self.data.file.path;
        let open = self.open();
        if let Some((name, _)) = lengths.iter().find(|(name, _)| !open.iter().any(|o| o == name)) {
            let what = format!("has no open length `{name}`");
            let help = match open.is_empty() {
                true => "all of its lengths are known".to_string(),
                false => format!("it has {}", open.join(", ")),
            };
            return Err(bad_file(path, what, &help));
        }
        let mut specs = Vec::new();
        for port in &self.inputs {
            let (Some(dtype), Some(dims)) = (port.dtype, &port.dims) else {
                let what =
                    format!("input `{}`: the file does not say its dtype and lengths", port.name);
                return Err(bad_file(path, what, "call it with data"));
            };
            let mut sizes = Vec::new();
            for dim in dims {
                sizes.push(match dim {
                    PortDim::Known(n) => *n,
                    PortDim::Open(name) => match lengths.iter().find(|(bound, _)| bound == name) {
                        Some((_, n)) => *n,
                        None => {
                            let what =
                                format!("input `{}` is {port}, and `{name}` is open", port.name);
                            return Err(bad_file(path, what, "say how long it is"));
                        }
                    },
                });
            }
            specs.push(Tensor::spec(dtype, sizes.as_slice()));
        }
        Ok(specs)
    }

    /// Names of open lengths, in the order of the inputs.
    pub fn open(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for dim in self.inputs.iter().filter_map(|port| port.dims.as_ref()).flatten() {
            if let PortDim::Open(name) = dim
                && !names.contains(name)
            {
                names.push(name.clone());
            }
        }
        names
    }

    /// What a call with such inputs would take: see [`tonnage::Function::plan`]. Values of inputs do not matter unless they decide sizes: then
    /// give a tensor for a spec.
    ///
    /// # Errors
    /// Where an op is not supported, or data decide sizes; the error names the node.
    #[track_caller]
    pub fn plan(&self, inputs: &[Tensor]) -> Result<Arc<Plan>> {
        Source::here().stand_for(|| {
            let inputs = self.named(inputs.iter().map(Value::from).collect())?;
            self.segments(&inputs)?.plan(inputs)
        })
    }

    /// The same of a model that runs in segments, since the data decide sizes: the plan of each, one after the other. What is only known when it runs is taken from
    /// bounds: by the name of a value the number that all of its elements have, or its length, where that is what is not known.
    ///
    /// # Errors
    /// As [`Model::plan`]; where something that is needed is not bound, the error names the node and the value.
    #[track_caller]
    pub fn plans(&self, inputs: &[Tensor], bounds: &[(&str, usize)]) -> Result<Vec<Arc<Plan>>> {
        Source::here().stand_for(|| {
            let inputs = self.named(inputs.iter().map(Value::from).collect())?;
            self.segments(&inputs)?.plans(inputs, bounds)
        })
    }

    /// What less memory costs for a call with such inputs.
    ///
    /// # Errors
    /// As [`Model::plan`].
    #[track_caller]
    pub fn prices(&self, inputs: &[Tensor]) -> Result<Vec<Price>> {
        Source::here().stand_for(|| {
            let inputs = self.named(inputs.iter().map(Value::from).collect())?;
            self.segments(&inputs)?.prices(inputs)
        })
    }

    /// The largest length of a name with which a call fits into a budget, the others bound; 0 where not even 1 does.
    ///
    /// # Errors
    /// As [`Model::specs`] and [`Model::plan`].
    pub fn max_batch(&self, name: &str, lengths: &[(&str, usize)], budget: Bytes) -> Result<usize> {
        let fits = |n: usize| -> Result<bool> {
            let mut bound = lengths.to_vec();
            bound.push((name, n));
            let inputs = self.named(self.specs(&bound)?.iter().map(Value::from).collect())?;
            self.in_file.fits(&inputs, budget)
        };
        largest_that_fits(fits)
    }

    /// Runs it on inputs, in order.
    ///
    /// # Errors
    /// Where an input is of another type, an op is not supported, or it does not fit into the budget.
    #[track_caller]
    pub fn call<V: Into<Value>>(&self, inputs: impl IntoIterator<Item = V>) -> Result<Vec<Value>> {
        let inputs = inputs.into_iter().map(Into::into).collect();
        Source::here().stand_for(|| self.run(inputs))
    }

    fn run(&self, inputs: Vec<Value>) -> Result<Vec<Value>> {
        let inputs = self.named(inputs)?;
        let outputs: Vec<&str> = self.outputs.iter().map(|port| port.name.as_str()).collect();
        let segments = self.segments(&inputs)?;
        // What other calls had in memory is no part of this one's plan.
        if segments.place() == Place::File {
            self.resident.clear();
        }
        self.resident.forget_run();
        self.in_file.forget_run();
        segments.call(inputs, &outputs)
    }

    /// What each planned segment of the last call took, beside what was predicted; nodes that ran op by op are not among them.
    pub fn last_run(&self) -> Vec<Ran> {
        self.resident.last_run().into_iter().chain(self.in_file.last_run()).collect()
    }

    /// Whether all inputs are of dtypes that tensors have.
    ///
    /// # Errors
    /// Names the first input that is not, and its dtype.
    pub fn check(&self) -> Result<()> {
        for value in &self.data.message.graph.inputs {
            if let ValueType::Tensor(number, _) = value.ty
                && number != 0
                && dtype_of(number).is_none()
            {
                let what = format!("input `{}` is of dtype {}", value.name, dtype_name(number));
                return Err(bad_file(&self.data.file.path, what, "such tensors are not supported"));
            }
        }
        Ok(())
    }

    /// Inputs by name, of the types that the file says.
    fn named(&self, inputs: Vec<Value>) -> Result<Vec<(String, Value)>> {
        self.check()?;
        let path = &self.data.file.path;
        if inputs.len() != self.inputs.len() {
            let what = format!("takes {} inputs, and got {}", self.inputs.len(), inputs.len());
            let names: Vec<&str> = self.inputs.iter().map(|port| port.name.as_str()).collect();
            return Err(bad_file(path, what, &format!("give {}", names.join(", "))));
        }
        let mut bound: Vec<(&str, usize)> = Vec::new();
        for (port, value) in self.inputs.iter().zip(&inputs) {
            let Value::Tensor(tensor) = value else { continue };
            check(port, &tensor.ty(), &mut bound).map_err(|what| {
                let what =
                    format!("input `{}` is {port}, and got {}{what}", port.name, tensor.ty());
                bad_file(path, what, "give a tensor of that type")
            })?;
        }
        let names = self.inputs.iter().map(|port| port.name.clone());
        Ok(names.zip(inputs).collect())
    }
}

/// Whether a tensor is of a port's type, and of the lengths that others have bound.
fn check<'p>(
    port: &'p Port,
    ty: &TensorType,
    bound: &mut Vec<(&'p str, usize)>,
) -> std::result::Result<(), String> {
    if port.dtype.is_some_and(|dtype| dtype != ty.dtype) {
        return Err(String::new());
    }
    let (Some(dims), Some(sizes)) = (&port.dims, ty.shape.sizes()) else { return Ok(()) };
    if dims.len() != sizes.len() {
        return Err(String::new());
    }
    for (dim, size) in dims.iter().zip(sizes) {
        match dim {
            PortDim::Known(n) if *n != size => return Err(String::new()),
            PortDim::Known(_) => {}
            PortDim::Open(name) => match bound.iter().find(|(known, _)| known == name) {
                Some((_, n)) if *n != size => {
                    return Err(format!(", where `{name}` is {n} elsewhere"));
                }
                Some(_) => {}
                None => bound.push((name, size)),
            },
        }
    }
    Ok(())
}

impl std::fmt::Debug for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Model({}, {} nodes)", self.data.file.path.display(), self.nodes())
    }
}
