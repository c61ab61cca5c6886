//! What is read of a model's file, shared with the functions that it becomes: its graph, and its tensors as those that stay in the file.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, OnceLock, PoisonError};

use tonnage::{Result, Tensor, bind};

use crate::data::ModelFile;
use crate::message::{
    AttributeValue, FunctionMessage, GraphMessage, ModelMessage, NodeMessage, StoredTensor,
};
use crate::weights::trained;

/// What is read of a model's file, shared with the functions that it becomes.
pub struct ModelData {
    /// The file.
    pub file: ModelFile,
    /// What it says.
    pub message: ModelMessage,
    /// Initializers by name: where they are in the list.
    places: HashMap<String, usize>,
    /// Those that were used.
    weights: Mutex<UsedWeights>,
    /// Names of those that are trained where any are.
    trained: OnceLock<HashSet<String>>,
    /// Who is told of each node that is imported.
    listener: OnceLock<Listener>,
    /// The last node that reads a value, by name; outputs are read behind the last. Whoever only looks at a model does not need it.
    last_use: OnceLock<HashMap<String, usize>>,
    /// How often nodes read a name.
    readers: OnceLock<HashMap<String, usize>>,
}

/// See [`Model::on_node`](crate::Model::on_node).
type Listener = Box<dyn Fn(usize) + Send + Sync>;

/// Weights as tensors of the file.
#[derive(Default)]
struct UsedWeights {
    /// By the address of what the file says of them.
    tensors: HashMap<usize, Tensor>,
    /// Their names, by the identity of the tensor.
    names: HashMap<u64, String>,
}

/// Which node reads a value last.
fn last_uses(graph: &GraphMessage) -> HashMap<String, usize> {
    fn visit(node: &NodeMessage, at: usize, last: &mut HashMap<String, usize>) {
        for name in &node.inputs {
            last.insert(name.clone(), at);
        }
        for attribute in &node.attributes {
            if let AttributeValue::Graph(graph) = &attribute.value {
                graph.nodes.iter().for_each(|node| visit(node, at, last));
                graph.outputs.iter().for_each(|output| {
                    last.insert(output.name.clone(), at);
                });
            }
        }
    }
    let mut last = HashMap::new();
    graph.nodes.iter().enumerate().for_each(|(at, node)| visit(node, at, &mut last));
    last.extend(graph.outputs.iter().map(|output| (output.name.clone(), usize::MAX)));
    last
}

/// How often nodes read each name, those of inner graphs too; that a graph gives it counts, and that its size is asked for does not.
fn readers(graph: &GraphMessage) -> HashMap<String, usize> {
    fn visit(graph: &GraphMessage, counts: &mut HashMap<String, usize>) {
        let outputs = graph.outputs.iter().map(|output| &output.name);
        let reading = graph.nodes.iter().filter(|node| !matches!(&*node.op, "Shape" | "Size"));
        for name in reading.flat_map(|node| &node.inputs).chain(outputs) {
            *counts.entry(name.clone()).or_default() += 1;
        }
        for node in &graph.nodes {
            let mut inner: HashMap<String, usize> = HashMap::new();
            for attribute in &node.attributes {
                let AttributeValue::Graph(graph) = &attribute.value else { continue };
                let mut own = HashMap::new();
                visit(graph, &mut own);
                for (name, count) in own {
                    let all = inner.entry(name).or_default();
                    // Of branches one runs.
                    *all = if node.op == "If" { count.max(*all) } else { count + *all };
                }
            }
            inner.into_iter().for_each(|(name, n)| *counts.entry(name).or_default() += n);
        }
    }
    let mut counts = HashMap::new();
    visit(graph, &mut counts);
    counts
}

impl ModelData {
    /// Of a file, with the places of initializers in the list, by name.
    pub fn new(
        file: ModelFile,
        message: ModelMessage,
        places: HashMap<String, usize>,
    ) -> ModelData {
        ModelData {
            file,
            message,
            places,
            weights: Mutex::default(),
            trained: OnceLock::new(),
            listener: OnceLock::new(),
            last_use: OnceLock::new(),
            readers: OnceLock::new(),
        }
    }

    /// Who is told of each node that is imported, where nobody is yet.
    pub fn listen(&self, listener: impl Fn(usize) + Send + Sync + 'static) {
        self.listener.get_or_init(|| Box::new(listener));
    }

    /// An initializer of the graph.
    pub fn weight(&self, name: &str) -> Result<Option<Tensor>> {
        let Some(at) = self.places.get(name) else { return Ok(None) };
        self.stored(&self.message.graph.initializers[*at]).map(Some)
    }

    /// A tensor of the file, wherever in the model it is: each is one, with one identity.
    pub fn stored(&self, stored: &StoredTensor) -> Result<Tensor> {
        let address = std::ptr::from_ref(stored).addr();
        let mut weights = self.weights.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tensor) = weights.tensors.get(&address) {
            return Ok(tensor.clone());
        }
        let tensor = self.file.tensor(stored)?;
        weights.names.insert(bind::identity(&tensor), stored.name.clone());
        weights.tensors.insert(address, tensor.clone());
        Ok(tensor)
    }

    /// The name of the tensor of the file that a tensor is.
    pub fn name_of(&self, tensor: &Tensor) -> Option<String> {
        let weights = self.weights.lock().unwrap_or_else(PoisonError::into_inner);
        weights.names.get(&bind::identity(tensor)).cloned()
    }

    /// Whether a tensor of the file is trained where any are: one of the graph itself.
    pub fn is_trained(&self, tensor: &Tensor) -> Result<bool> {
        let all = || trained(&self.message.graph).into_iter().collect();
        let Some(name) = self.name_of(tensor) else { return Ok(false) };
        if !self.trained.get_or_init(all).contains(&name) {
            return Ok(false);
        }
        let own = self.weight(&name)?;
        Ok(own.is_some_and(|own| bind::identity(&own) == bind::identity(tensor)))
    }

    /// Tells who wants to know that so many nodes of the graph are imported.
    pub fn imported(&self, nodes: usize) {
        if let Some(listener) = self.listener.get() {
            listener(nodes);
        }
    }

    /// The function of the model that an op is.
    pub fn function(&self, domain: &str, op: &str) -> Option<&FunctionMessage> {
        let all = self.message.functions.iter();
        all.map(|function| &**function)
            .find(|function| function.name == op && function.domain == domain)
    }

    /// How often nodes read a name, anywhere in the graph.
    pub fn readers(&self, name: &str) -> usize {
        let readers = self.readers.get_or_init(|| readers(&self.message.graph));
        readers.get(name).copied().unwrap_or(0)
    }

    /// Whether a node from there on, or the outputs, read a value.
    pub fn is_live(&self, name: &str, from: usize) -> bool {
        let last_use = self.last_use.get_or_init(|| last_uses(&self.message.graph));
        last_use.get(name).is_some_and(|last| *last >= from)
    }
}
