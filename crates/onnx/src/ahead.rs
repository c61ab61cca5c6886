//! What nodes make of weights alone: computed once and kept instead of on every call, where weights are in memory.
//!
//! Such a value is a *stand-in*, a type without numbers, until a node reads it that has other inputs as well. Then it is a variable, whose first value is
//! computed of the file's weights when it is first needed: a plan knows its bytes, and reads nothing. Two things bound what is kept, and what is not is
//! traced where it is read:
//!
//! * It takes no more bytes than the weights that it is made of and that nothing else reads, which are not in memory then. So bytes that are widened to
//!   floats stay bytes, and are widened on every call.
//! * Nodes that only look at a value otherwise, such as transposes, keep nothing: they are views of what they look at.
//!
//! Decision: `docs/decisions/onnx-weights-are-variables.md`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use tonnage::{Bytes, DType, Elementwise, Result, Tensor, TensorType, bind};

use crate::call::Call;
use crate::contents::ModelData;
use crate::data::SMALL;
use crate::import::{FOLDED, Importer, Scope};
use crate::message::{AttributeValue, NodeMessage};
use crate::rules::{self, Rule};
use crate::value::Value;
use crate::weights::{Place, Weights};

/// Longer chains of nodes are computed in parts: each part is computed on every call.
const LONGEST: usize = 64;

/// Ops whose result is a view of their first input.
const VIEWS: &[&str] =
    &["Flatten", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"];

/// One value of a node that reads weights alone.
pub struct Ahead {
    data: Arc<ModelData>,
    node: NodeMessage,
    version: i64,
    rule: Rule,
    inputs: Vec<Value>,
    /// Which of the node's results.
    at: usize,
    /// Whether it is kept where it is read.
    is_kept: bool,
    /// What of its weights nothing else reads, by the identity of a weight and the node that reads it: of what several nodes read, each has its share.
    own: BTreeMap<(u64, usize), Bytes>,
    /// Nodes that it is made by, one after the other.
    length: usize,
}

/// A node with what it reads.
type NodeKey = (usize, Vec<InputKey>);

/// The values of a model's nodes that read weights alone.
#[derive(Default)]
pub struct AllAhead {
    /// By the identity of the stand-in.
    values: Mutex<HashMap<u64, Arc<Ahead>>>,
    /// Stand-ins of a node, or that it has to be computed on every call.
    nodes: Mutex<HashMap<NodeKey, Option<Vec<Tensor>>>>,
}

/// What was traced for one read, by the identity of the stand-in: values may be made of one another in many ways.
pub type Traced = Rc<RefCell<HashMap<u64, Tensor>>>;

/// What a node reads: a weight or a stand-in by identity, a small tensor by its numbers.
#[derive(PartialEq, Eq, Hash)]
enum InputKey {
    Absent,
    Weight(u64),
    Known(DType, Vec<usize>, Vec<u64>),
}

impl AllAhead {
    /// What a stand-in stands for.
    pub fn find(&self, tensor: &Tensor) -> Option<Arc<Ahead>> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values.get(&bind::identity(tensor)).cloned()
    }

    /// What an input is to a node that reads weights alone; none where it is anything else.
    fn key(&self, data: &ModelData, value: &Value) -> Result<Option<InputKey>> {
        let tensor = match value {
            Value::Absent => return Ok(Some(InputKey::Absent)),
            Value::Tensor(tensor) => tensor,
            Value::Sequence(_) => return Ok(None),
        };
        let is_weight = tensor.is_recipe() && data.name_of(tensor).is_some();
        if is_weight || self.find(tensor).is_some() {
            return Ok(Some(InputKey::Weight(bind::identity(tensor))));
        }
        match tensor.shape().sizes() {
            Some(sizes) if !tensor.is_symbolic() && sizes.iter().product::<usize>() <= FOLDED => {
                let bits = bind::outside_of_traces(|| bits(tensor))?;
                Ok(Some(InputKey::Known(tensor.dtype(), sizes.to_vec(), bits)))
            }
            _ => Ok(None),
        }
    }

    /// Stand-ins for what a node makes, where it reads weights alone and what it makes may be kept.
    pub fn stand_ins(&self, call: &Call, rule: Rule) -> Result<Option<Vec<Value>>> {
        let Importer { model, weights, .. } = *call.importer;
        if weights.place() != Place::Memory || !can_wait(call) {
            return Ok(None);
        }
        let mut keys = Vec::with_capacity(call.inputs.len());
        for value in &call.inputs {
            match self.key(model, value)? {
                Some(key) => keys.push(key),
                None => return Ok(None),
            }
        }
        if !keys.iter().any(|key| matches!(key, InputKey::Weight(_))) {
            return Ok(None);
        }
        let key = (std::ptr::from_ref(call.node).addr(), keys);
        let known = |nodes: &HashMap<_, Option<Vec<Tensor>>>| nodes.get(&key).cloned();
        let found = known(&self.nodes.lock().unwrap_or_else(PoisonError::into_inner));
        let made = match found {
            Some(made) => made,
            None => {
                let made = self.make(call, rule)?;
                let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
                nodes.insert(key, made.clone());
                made
            }
        };
        Ok(made.map(|all| all.into_iter().map(Value::Tensor).collect()))
    }

    fn make(&self, call: &Call, rule: Rule) -> Result<Option<Vec<Tensor>>> {
        let model = call.importer.model;
        let (mut own, mut length) = (BTreeMap::new(), 1);
        for (name, value) in call.node.inputs.iter().zip(&call.inputs) {
            let Value::Tensor(tensor) = value else { continue };
            let share =
                |bytes: Bytes, readers: usize| Bytes::new(bytes.get() / readers.max(1) as u64);
            let readers = model.readers(name);
            match self.find(tensor) {
                Some(ahead) => {
                    length = length.max(ahead.length + 1);
                    own.extend(ahead.own.iter().map(|(key, bytes)| (*key, share(*bytes, readers))));
                }
                None if tensor.is_recipe() => {
                    let all = model.name_of(tensor).map_or(0, |name| model.readers(&name));
                    let bytes = share(tensor.ty().bytes("onnx")?, readers.max(all));
                    let reader = std::ptr::from_ref(call.node).addr();
                    own.insert((bind::identity(tensor), reader), bytes);
                }
                None => {}
            }
        }
        if length > LONGEST {
            return Ok(None);
        }
        let most = own.values().fold(Bytes::of(SMALL as usize), |sum, bytes| sum + *bytes);
        let is_view = VIEWS.contains(&call.node.op.as_str());
        let one = |at: usize, is_kept: bool| Ahead {
            data: model.clone(),
            node: call.node.clone(),
            version: call.version,
            rule,
            inputs: call.inputs.clone(),
            at,
            is_kept,
            own: own.clone(),
            length,
        };
        // Where the numbers decide what a node makes, it runs as others do.
        let Some(types) = one(0, false).types(self)?.into_iter().collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        let stand_in = |(at, ty): (usize, TensorType)| {
            let is_kept = !is_view && ty.bytes("onnx")? <= most;
            let tensor = Tensor::spec(ty.dtype, ty.shape);
            values.insert(bind::identity(&tensor), Arc::new(one(at, is_kept)));
            Ok(tensor)
        };
        types.into_iter().enumerate().map(stand_in).collect::<Result<_>>().map(Some)
    }
}

/// Whether a node may be computed at another time, and is described by itself: it is the same on every call, and part of no function.
fn can_wait(call: &Call) -> bool {
    let Call { node, importer, .. } = call;
    let is_plain = |value: &AttributeValue| {
        !matches!(value, AttributeValue::Graph(_) | AttributeValue::Tensor(_))
    };
    !matches!(node.op.as_str(), "Identity" | "Constant")
        && !rules::is_random(&node.op)
        && std::ptr::eq(call.opsets, importer.model.message.opsets.as_slice())
        && node.attributes.iter().all(|a| a.refers.is_none() && is_plain(&a.value))
}

fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    Ok(match tensor.dtype() {
        DType::U64 => tensor.to_vec::<u64>()?,
        dtype if dtype.is_float() => {
            tensor.cast(DType::F64)?.to_vec::<f64>()?.into_iter().map(f64::to_bits).collect()
        }
        _ => tensor.cast(DType::I64)?.to_vec::<i64>()?.into_iter().map(|n| n as u64).collect(),
    })
}

impl Ahead {
    /// For messages.
    pub fn name(&self) -> &str {
        self.node.outputs.get(self.at).map_or("", String::as_str)
    }

    /// Whether it is kept where it is read.
    pub fn is_kept(&self) -> bool {
        self.is_kept
    }

    /// The node, with such inputs.
    fn run(&self, weights: &Weights, inputs: Vec<Value>, traced: Traced) -> Result<Vec<Value>> {
        let importer = Importer::new(&self.data, weights).within(traced);
        let scope = Scope::new(None);
        let attributes = self.node.attributes.iter().map(|a| (a.name.as_str(), &a.value));
        let call = Call {
            node: &self.node,
            inputs,
            attributes: attributes.collect(),
            version: self.version,
            opsets: &self.data.message.opsets,
            scope: &scope,
            importer: &importer,
        };
        (self.rule)(&call)
    }

    /// It, as a part of what is traced now.
    pub fn traced(&self, weights: &Weights, traced: Traced) -> Result<Tensor> {
        self.result(self.run(weights, self.inputs.clone(), traced)?)
    }

    fn result(&self, made: Vec<Value>) -> Result<Tensor> {
        made.into_iter().nth(self.at).unwrap_or(Value::Absent).tensor()
    }

    /// Types of the node's results; none for one that is no tensor of a known size.
    fn types(&self, all: &AllAhead) -> Result<Vec<Option<TensorType>>> {
        let is_stand_in = |tensor: &Tensor| all.find(tensor).is_some();
        let given = self.inputs.iter().flat_map(Value::tensors).filter(|x| is_stand_in(x));
        let given: Vec<TensorType> = given.map(Tensor::ty).collect();
        let file = Weights::new(Place::File);
        let mut types = Vec::new();
        bind::traced_apart(given, |arguments| {
            let mut arguments = arguments.into_iter();
            let each = self.inputs.iter().map(|value| match value {
                Value::Tensor(tensor) if is_stand_in(tensor) => {
                    arguments.next().map_or(Value::Absent, Value::Tensor)
                }
                other => other.clone(),
            });
            let made = self.run(&file, each.collect(), Traced::default())?;
            types.extend(made.into_iter().map(|value| match value {
                Value::Tensor(tensor) if tensor.shape().sizes().is_some() => Some(tensor.ty()),
                _ => None,
            }));
            Ok(())
        })?;
        Ok(types)
    }

    /// Its numbers, of the weights in the file.
    pub fn computed(&self, all: &AllAhead) -> Result<Tensor> {
        bind::outside_of_traces(|| self.computed_with(all, &mut HashMap::new()))
    }

    fn computed_with(&self, all: &AllAhead, before: &mut HashMap<u64, Tensor>) -> Result<Tensor> {
        let mut inputs = Vec::new();
        for value in &self.inputs {
            inputs.push(match value {
                Value::Tensor(tensor) => match all.find(tensor) {
                    Some(ahead) => {
                        let id = bind::identity(tensor);
                        let made = match before.get(&id) {
                            Some(made) => made.clone(),
                            None => ahead.computed_with(all, before)?,
                        };
                        before.insert(id, made.clone());
                        Value::Tensor(made)
                    }
                    None => value.clone(),
                },
                other => other.clone(),
            });
        }
        self.result(self.run(&Weights::new(Place::File), inputs, Traced::default())?)
    }
}
