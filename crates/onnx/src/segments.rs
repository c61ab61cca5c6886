//! A model as planned functions: one where no number decides a size, otherwise several, each planned when the numbers that it needs are known.
//!
//! A segment is traced from a node on, with everything that is alive there as arguments. Where a rule needs the numbers of an argument, the trace is made
//! anew for those numbers, and so it is where it needs those of a value that small whole arguments alone decide, such as a rate or a flag, as long as few of them are
//! seen; where it needs those of another value in between, the segment ends before that node. A node that needs numbers of its own
//! making (a loop until something holds) is run op by op.
//!
//! Decision: `docs/decisions/onnx-import-is-a-trace.md`.

mod body;
mod bounds;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage::{
    Budget, Bytes, DType, Elementwise, Function, Plan, Price, Ran, Result, Tensor, TensorType,
    Variable, bind, function,
};

use crate::contents::ModelData;
use crate::import::{Importer, Scope};
use crate::value::Value;
use crate::weights::{Place, Weights};
use crate::wire::bad_file;
use body::Body;

type Traced = Function<
    Vec<Tensor>,
    Vec<Tensor>,
    Box<dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>> + Send + Sync>,
>;

/// Segments that are kept for each node that they may start at.
const KEPT: usize = 8;

/// Whole numbers of an argument of at most that many elements may be what a trace is made for where they decide a value that it needs.
const FEW: usize = 8;

/// Traces of a segment from which on its arguments are too many to make one for each.
const MANY: usize = 3;

/// Values by name; how many tensors each is, where it is a sequence.
type Names = Vec<(String, Option<usize>)>;

/// Nodes that are planned together.
struct Segment {
    /// Names of what is alive where it starts.
    names: Names,
    /// Types of the arguments, in order.
    types: Vec<TensorType>,
    /// Arguments whose numbers it was made for.
    known: Vec<(String, Vec<u64>)>,
    function: Traced,
    end: Ending,
}

/// How a segment ends.
#[derive(Clone, Default)]
struct Ending {
    /// The node that comes next.
    next: usize,
    /// What the function gives.
    results: Names,
    /// Of which types.
    types: Vec<TensorType>,
    /// What was known when it was traced.
    constants: Vec<(String, Value)>,
    /// Argument whose numbers it cannot be traced without.
    needs: Option<String>,
}

/// The functions of a model.
pub struct Segments {
    data: Arc<ModelData>,
    weights: Arc<Weights>,
    budget: Option<Budget>,
    made: Mutex<HashMap<usize, Vec<Arc<Segment>>>>,
    /// What the segments of the last call took.
    ran: Mutex<Vec<Ran>>,
}

/// What follows at a node.
enum Next {
    Planned(Arc<Segment>),
    /// The node by itself, op by op.
    Alone,
}

/// What is alive between two segments.
type Alive = Vec<(String, Value)>;

impl Segments {
    /// None yet: with weights there, and a budget for each.
    pub fn new(data: Arc<ModelData>, place: Place, budget: Option<Budget>) -> Segments {
        let weights = Arc::new(Weights::new(place));
        Segments { data, weights, budget, made: Mutex::default(), ran: Mutex::default() }
    }

    /// Where weights are.
    pub fn place(&self) -> Place {
        self.weights.place()
    }

    /// The weights that are trained.
    pub fn variables(&self) -> Result<Vec<Variable>> {
        match self.place() {
            Place::Trained => self.weights.trained(&self.data),
            Place::File | Place::Memory => Ok(Vec::new()),
        }
    }

    /// Forgets all of them, and what they have in memory.
    pub fn clear(&self) {
        self.made.lock().unwrap_or_else(PoisonError::into_inner).clear();
        self.weights.clear();
    }

    /// Forgets what the last call took.
    pub fn forget_run(&self) {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Runs all of them.
    pub fn call(&self, inputs: Alive, outputs: &[&str]) -> Result<Vec<Value>> {
        if bind::is_tracing() {
            return self.inline(inputs, outputs);
        }
        let (mut alive, mut at) = (inputs, 0);
        let mut ran = Vec::new();
        while at < self.data.message.graph.nodes.len() {
            match self.next(at, &alive)? {
                Next::Planned(segment) => {
                    at = segment.end.next;
                    alive = self.run(&segment, alive)?;
                    ran.extend(segment.function.last_run());
                }
                Next::Alone => {
                    alive = self.alone(at, alive)?;
                    at += 1;
                }
            }
            alive.retain(|(name, _)| self.data.is_live(name, at));
        }
        *self.ran.lock().unwrap_or_else(PoisonError::into_inner) = ran;
        outputs.iter().map(|name| self.output(name, &alive)).collect()
    }

    /// All nodes, as a part of the function around.
    fn inline(&self, inputs: Alive, outputs: &[&str]) -> Result<Vec<Value>> {
        let importer = Importer::new(&self.data, &self.weights);
        let scope = Scope::new(None);
        inputs.into_iter().for_each(|(name, value)| scope.set(&name, value));
        let message = &self.data.message;
        for node in message.graph.nodes.iter().enumerate() {
            importer.node(node, &scope, &message.opsets, &Vec::new())?;
        }
        let made = self.settled(scope)?;
        outputs.iter().map(|name| self.output(name, &made)).collect()
    }

    /// What each segment of the last call took.
    pub fn last_run(&self) -> Vec<Ran> {
        self.ran.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn output(&self, name: &str, alive: &Alive) -> Result<Value> {
        if let Some((_, value)) = alive.iter().find(|(found, _)| found == name) {
            return Ok(value.clone());
        }
        match self.data.weight(name)? {
            Some(weight) => Ok(Value::Tensor(weight)),
            None => {
                let what = format!("the output `{name}` is made by no node");
                Err(bad_file(&self.data.file.path, what, "the file is damaged"))
            }
        }
    }

    fn run(&self, segment: &Segment, mut alive: Alive) -> Result<Alive> {
        let end = &segment.end;
        if !end.results.is_empty() {
            let arguments = arguments(&alive);
            let lives = |name: &str| self.data.is_live(name, end.next);
            // What nobody reads any more is given up to the call.
            alive.retain(|(name, _)| lives(name));
            let mut made = segment.function.call(arguments)?.into_iter();
            for (name, count) in &end.results {
                let value = match count {
                    None => made.next().map_or(Value::Absent, Value::Tensor),
                    Some(n) => Value::Sequence(made.by_ref().take(*n).collect()),
                };
                alive.push((name.clone(), value));
            }
        }
        alive.extend(end.constants.iter().cloned());
        Ok(alive)
    }

    /// The values of a scope, all of them with numbers or traced.
    fn settled(&self, scope: Scope) -> Result<Alive> {
        let all = scope.into_values().into_iter();
        all.map(|(name, value)| Ok((name, self.weights.settled(value)?))).collect()
    }

    /// Runs one node op by op.
    fn alone(&self, at: usize, alive: Alive) -> Result<Alive> {
        let importer = Importer::new(&self.data, &self.weights);
        let scope = Scope::new(None);
        alive.into_iter().for_each(|(name, value)| scope.set(&name, value));
        let message = &self.data.message;
        importer.node((at, &message.graph.nodes[at]), &scope, &message.opsets, &Vec::new())?;
        self.settled(scope)
    }

    /// The plan of the only segment.
    pub fn plan(&self, inputs: Alive) -> Result<Arc<Plan>> {
        let segment = self.only(&inputs)?;
        segment.function.plan(&arguments(&inputs))
    }

    /// What less memory costs.
    pub fn prices(&self, inputs: Alive) -> Result<Vec<Price>> {
        let segment = self.only(&inputs)?;
        segment.function.prices(&arguments(&inputs))
    }

    /// Whether a call fits into a budget, by whatever makes it smaller.
    pub fn fits(&self, inputs: &Alive, budget: Bytes) -> Result<bool> {
        self.only(inputs)?.function.fits(&arguments(inputs), budget)
    }

    /// What a call takes; none where the data decide sizes.
    pub fn peak(&self, inputs: &[(String, Value)]) -> Result<Option<Bytes>> {
        let inputs = inputs.to_vec();
        match self.next(0, &inputs)? {
            Next::Planned(segment) if segment.end.next >= self.data.message.graph.nodes.len() => {
                Ok(Some(segment.function.plan(&arguments(&inputs))?.peak()))
            }
            _ => Ok(None),
        }
    }

    /// The segment that is all of the model, without looking at a number that does not exist yet.
    fn only(&self, inputs: &Alive) -> Result<Arc<Segment>> {
        let (nodes, path) = (&self.data.message.graph.nodes, &self.data.file.path);
        let stopped = |at: usize| {
            let node = &nodes[at];
            let what = format!(
                "node `{}` ({}): numbers that are only known when it runs decide sizes",
                node.name, node.op
            );
            bad_file(path, what, "call it with data, or plan it with bounds: --bound NAME=NUMBER")
        };
        match self.next(0, inputs)? {
            Next::Planned(segment) if segment.end.next >= nodes.len() => Ok(segment),
            Next::Planned(segment) => Err(stopped(segment.end.next)),
            Next::Alone => Err(stopped(0)),
        }
    }

    /// What follows at a node, made now where it was not yet.
    fn next(&self, at: usize, alive: &Alive) -> Result<Next> {
        let types: Vec<TensorType> = arguments(alive).iter().map(Tensor::ty).collect();
        let names = names(alive);
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = made.entry(at).or_default();
        for segment in kept.iter() {
            if segment.names == names && segment.types == types && segment.is_for(alive)? {
                return Ok(Next::Planned(segment.clone()));
            }
        }
        let mut known: Vec<String> = Vec::new();
        let alike = kept.iter().filter(|segment| segment.names == names && segment.types == types);
        let few = alike.count() < MANY;
        loop {
            match self.trace(at, alive, (&known, few), &types)? {
                None => return Ok(Next::Alone),
                Some(segment) => match &segment.end.needs {
                    Some(name) => known.push(name.clone()),
                    None => {
                        let segment = Arc::new(segment);
                        if kept.len() >= KEPT {
                            kept.remove(0);
                        }
                        kept.push(segment.clone());
                        return Ok(Next::Planned(segment));
                    }
                },
            }
        }
    }

    /// Traces from a node on. None where that node has to run by itself.
    fn trace(
        &self,
        at: usize,
        alive: &Alive,
        (known, few): (&[String], bool),
        types: &[TensorType],
    ) -> Result<Option<Segment>> {
        let ending: Arc<Mutex<Option<Ending>>> = Arc::default();
        let mut numbers = Vec::new();
        let mut fixed: Vec<(String, Value)> = Vec::new();
        let absent = alive.iter().filter(|(_, value)| matches!(value, Value::Absent));
        fixed.extend(absent.cloned());
        for (name, value) in alive.iter().filter(|(name, _)| known.contains(name)) {
            numbers.push((name.clone(), bits(value)?));
            fixed.push((name.clone(), value.clone()));
        }
        let (data, weights) = (self.data.clone(), self.weights.clone());
        let may = alive.iter().filter(|(_, value)| few && is_small(value) && !has_no_values(value));
        let small = may.map(|(name, _)| name.clone()).collect();
        let body = Body { data, weights, start: at, names: names(alive), fixed, small };
        let told = ending.clone();
        let body: Box<dyn Fn(Vec<Tensor>) -> Result<Vec<Tensor>> + Send + Sync> =
            Box::new(move |given| {
                let (results, ending) = body.run(given)?;
                *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(ending);
                Ok(results)
            });
        let mut function: Traced = function(body);
        if let Some(budget) = self.budget {
            function = function.budget(budget)?;
        }
        let arguments = arguments(alive);
        function.concrete(&arguments)?;
        let ending =
            ending.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
        if ending.needs.is_none() && ending.next == at && at < self.data.message.graph.nodes.len() {
            return Ok(None);
        }
        // What was given for its numbers, and has none, decides sizes.
        if let Some(name) = &ending.needs
            && alive.iter().any(|(found, value)| found == name && has_no_values(value))
        {
            let node = &self.data.message.graph.nodes[ending.next];
            let what =
                format!("node `{}` ({}): the numbers of `{name}` decide sizes", node.name, node.op);
            return Err(bad_file(
                &self.data.file.path,
                what,
                &format!("give a tensor for it, or bind it: --bound {name}=NUMBER"),
            ));
        }
        let (names, types) = (names(alive), types.to_vec());
        Ok(Some(Segment { names, types, known: numbers, function, end: ending }))
    }
}

impl Segment {
    /// Whether it was made for such numbers.
    fn is_for(&self, alive: &Alive) -> Result<bool> {
        for (name, numbers) in &self.known {
            let Some((_, value)) = alive.iter().find(|(found, _)| found == name) else {
                return Ok(false);
            };
            if has_no_values(value) || bits(value)? != *numbers {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Whether it is few whole numbers.
fn is_small(value: &Value) -> bool {
    let Value::Tensor(tensor) = value else { return false };
    !tensor.dtype().is_float() && tensor.shape().count().is_some_and(|count| count <= FEW)
}

fn has_no_values(value: &Value) -> bool {
    value.tensors().iter().any(|tensor| bind::array(tensor, "onnx").is_err())
}

fn names(alive: &Alive) -> Names {
    let count =
        |value: &Value| matches!(value, Value::Sequence(_)).then_some(value.tensors().len());
    let all = alive.iter().filter(|(_, value)| !matches!(value, Value::Absent));
    all.map(|(name, value)| (name.clone(), count(value))).collect()
}

fn arguments(alive: &Alive) -> Vec<Tensor> {
    alive.iter().flat_map(|(_, value)| value.tensors().iter().cloned()).collect()
}

/// The numbers of a value, to be compared.
fn bits(value: &Value) -> Result<Vec<u64>> {
    let mut all = Vec::new();
    for tensor in value.tensors() {
        match tensor.dtype() {
            DType::U64 => all.extend(tensor.to_vec::<u64>()?),
            dtype if dtype.is_float() => {
                all.extend(tensor.cast(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits));
            }
            _ => {
                all.extend(tensor.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(|n| n as u64))
            }
        }
    }
    Ok(all)
}
