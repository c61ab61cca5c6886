//! The messages of a model's file, as far as they are needed: graphs, nodes, attributes, types. Tensors are places in the file.

mod order;
mod tensor;

pub use tensor::{Location, StoredTensor, dtype_name, dtype_of};

use std::path::Path;
use std::sync::Arc;

use tonnage_core::Result;

use crate::wire::{Field, Seen, Span, Wire};

/// A whole model.
#[derive(Debug, Default)]
pub struct ModelMessage {
    /// The version of each domain's ops, the standard ones under no name.
    pub opsets: Vec<(String, i64)>,
    /// The program that wrote it.
    pub producer: String,
    /// The graph.
    pub graph: GraphMessage,
    /// Functions that nodes may call.
    pub functions: Vec<Arc<FunctionMessage>>,
}

/// A graph: of a model, or in an attribute.
#[derive(Debug, Default)]
pub struct GraphMessage {
    /// The nodes, each behind those that it needs.
    pub nodes: Vec<NodeMessage>,
    /// Tensors by name.
    pub initializers: Vec<StoredTensor>,
    /// What it takes.
    pub inputs: Vec<ValueMessage>,
    /// What it gives.
    pub outputs: Vec<ValueMessage>,
    /// How many sparse initializers it has.
    pub sparse: usize,
}

/// One op.
#[derive(Debug, Default, Clone)]
pub struct NodeMessage {
    /// What it reads, by name; an empty name is left out.
    pub inputs: Vec<String>,
    /// What it makes, by name.
    pub outputs: Vec<String>,
    /// Its own name, which may be empty.
    pub name: String,
    /// The op.
    pub op: String,
    /// The domain of the op; none is the standard one.
    pub domain: String,
    /// Its attributes.
    pub attributes: Vec<AttributeMessage>,
}

/// An attribute of a node.
#[derive(Debug, Default, Clone)]
pub struct AttributeMessage {
    /// Its name.
    pub name: String,
    /// What it is.
    pub value: AttributeValue,
    /// The attribute of the function around it that it stands for, where it does.
    pub refers: Option<String>,
}

/// What an attribute holds.
#[derive(Debug, Default, Clone)]
#[allow(missing_docs, reason = "the names say it all")]
pub enum AttributeValue {
    /// Nothing that is known.
    #[default]
    Other,
    Float(f32),
    Int(i64),
    Text(Vec<u8>),
    Tensor(Box<StoredTensor>),
    Graph(Arc<GraphMessage>),
    Floats(Vec<f32>),
    Ints(Vec<i64>),
    Texts(Vec<Vec<u8>>),
}

/// A function: nodes under a name.
#[derive(Debug, Default)]
pub struct FunctionMessage {
    /// The op that it is.
    pub name: String,
    /// Its domain.
    pub domain: String,
    /// What it takes, by name.
    pub inputs: Vec<String>,
    /// What it gives.
    pub outputs: Vec<String>,
    /// Attributes with default values.
    pub defaults: Vec<AttributeMessage>,
    /// Its nodes.
    pub nodes: Vec<NodeMessage>,
    /// The version of each domain's ops inside of it.
    pub opsets: Vec<(String, i64)>,
}

/// An input or an output of a graph.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ValueMessage {
    /// Its name.
    pub name: String,
    /// What it is.
    pub ty: ValueType,
}

/// The type of a value.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ValueType {
    /// Not said.
    #[default]
    Unknown,
    /// A tensor: the number of its dtype, and its dims where the file says so.
    Tensor(i64, Option<Vec<DimMessage>>),
    /// A sequence of tensors.
    Sequence,
    /// Anything else: an optional, a map.
    Other,
}

/// The length of an axis, as a file says it.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum DimMessage {
    /// Any.
    #[default]
    Open,
    /// Any, but the same wherever the name stands.
    Named(String),
    /// That number.
    Known(i64),
}

/// What becomes of a node of the model's own graph: it is kept, or looked at alone.
pub type OnNode<'a> = &'a mut dyn FnMut(NodeMessage) -> Option<NodeMessage>;

/// Reads a file.
///
/// # Errors
/// Where it is no model.
pub fn read_model(path: &Path, on_node: OnNode) -> Result<ModelMessage> {
    let mut wire = Wire::open(path)?;
    let mut model = ModelMessage::default();
    let mut graphs = 0;
    wire.message(wire.whole(), |wire, number, field| match (number, field) {
        (2, Field::Bytes(span)) => {
            model.producer = wire.text(span)?;
            Ok(Seen::Read)
        }
        (7, Field::Bytes(span)) => {
            model.graph = graph(wire, span, on_node)?;
            graphs += 1;
            Ok(Seen::Read)
        }
        (8, Field::Bytes(span)) => {
            model.opsets.push(opset(wire, span)?);
            Ok(Seen::Read)
        }
        (25, Field::Bytes(span)) => {
            model.functions.push(Arc::new(function(wire, span)?));
            Ok(Seen::Read)
        }
        _ => Ok(Seen::Not),
    })?;
    match graphs {
        1 => Ok(model),
        _ => Err(wire.bad(format!("{graphs} graphs, and a model has one"))),
    }
}

fn opset(wire: &mut Wire, span: Span) -> Result<(String, i64)> {
    let mut opset = (String::new(), 0);
    wire.message(span, |wire, number, field| match (number, field) {
        (1, Field::Bytes(span)) => {
            opset.0 = domain(wire.text(span)?);
            Ok(Seen::Read)
        }
        (2, Field::Varint(version, _)) => {
            opset.1 = version as i64;
            Ok(Seen::Read)
        }
        _ => Ok(Seen::Not),
    })?;
    Ok(opset)
}

/// The standard domain has two names.
fn domain(name: String) -> String {
    if name == "ai.onnx" { String::new() } else { name }
}

fn graph(wire: &mut Wire, span: Span, on_node: OnNode) -> Result<GraphMessage> {
    let mut graph = GraphMessage::default();
    wire.message(span, |wire, number, field| {
        let Field::Bytes(span) = field else { return Ok(Seen::Not) };
        match number {
            1 => graph.nodes.extend(on_node(node(wire, span)?)),
            5 => graph.initializers.push(tensor::read(wire, span)?),
            11 => graph.inputs.push(value(wire, span)?),
            12 => graph.outputs.push(value(wire, span)?),
            15 => {
                graph.sparse += 1;
                return Ok(Seen::Not);
            }
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    graph.nodes = order::sorted(graph.nodes);
    graph.nodes.shrink_to_fit();
    Ok(graph)
}

fn node(wire: &mut Wire, span: Span) -> Result<NodeMessage> {
    let mut node = NodeMessage::default();
    wire.message(span, |wire, number, field| {
        let Field::Bytes(span) = field else { return Ok(Seen::Not) };
        match number {
            1 => node.inputs.push(wire.text(span)?),
            2 => node.outputs.push(wire.text(span)?),
            3 => node.name = wire.text(span)?,
            4 => node.op = wire.text(span)?,
            5 => node.attributes.push(attribute(wire, span)?),
            7 => node.domain = domain(wire.text(span)?),
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    // There are thousands of them, and they stay.
    node.inputs.shrink_to_fit();
    node.outputs.shrink_to_fit();
    node.attributes.shrink_to_fit();
    Ok(node)
}

/// What was read of an attribute, before its type is known: files of old leave the type out.
#[derive(Default)]
struct Parts {
    kind: u64,
    float: Option<f32>,
    int: Option<i64>,
    text: Option<Vec<u8>>,
    tensor: Option<StoredTensor>,
    graph: Option<GraphMessage>,
    floats: Vec<f32>,
    ints: Vec<i64>,
    texts: Vec<Vec<u8>>,
}

impl Parts {
    fn value(self) -> AttributeValue {
        let Parts { kind, float, int, text, tensor, graph, floats, ints, texts } = self;
        let value = match kind {
            1 => Some(AttributeValue::Float(float.unwrap_or_default())),
            2 => Some(AttributeValue::Int(int.unwrap_or_default())),
            3 => Some(AttributeValue::Text(text.clone().unwrap_or_default())),
            6 => Some(AttributeValue::Floats(floats.clone())),
            7 => Some(AttributeValue::Ints(ints.clone())),
            8 => Some(AttributeValue::Texts(texts.clone())),
            _ => None,
        };
        value
            .or_else(|| tensor.map(|tensor| AttributeValue::Tensor(Box::new(tensor))))
            .or_else(|| graph.map(|graph| AttributeValue::Graph(Arc::new(graph))))
            .or_else(|| float.map(AttributeValue::Float))
            .or_else(|| int.map(AttributeValue::Int))
            .or_else(|| text.map(AttributeValue::Text))
            .or_else(|| (!floats.is_empty()).then_some(AttributeValue::Floats(floats)))
            .or_else(|| (!ints.is_empty()).then_some(AttributeValue::Ints(ints)))
            .or_else(|| (!texts.is_empty()).then_some(AttributeValue::Texts(texts)))
            .unwrap_or_default()
    }
}

fn attribute(wire: &mut Wire, span: Span) -> Result<AttributeMessage> {
    let (mut name, mut refers, mut parts) = (String::new(), None, Parts::default());
    wire.message(span, |wire, number, field| {
        match (number, field) {
            (1, Field::Bytes(span)) => name = wire.text(span)?,
            (2, Field::Fixed(bits, _)) => parts.float = Some(f32::from_bits(bits as u32)),
            (3, Field::Varint(value, _)) => parts.int = Some(value as i64),
            (4, Field::Bytes(span)) => parts.text = Some(wire.bytes(span)?),
            (5, Field::Bytes(span)) => parts.tensor = Some(tensor::read(wire, span)?),
            (6, Field::Bytes(span)) => parts.graph = Some(graph(wire, span, &mut Some)?),
            (7, Field::Fixed(bits, _)) => parts.floats.push(f32::from_bits(bits as u32)),
            (7, Field::Bytes(span)) => parts.floats.extend(floats_of(&wire.bytes(span)?)),
            (8, Field::Varint(value, _)) => parts.ints.push(value as i64),
            (8, Field::Bytes(span)) => parts.ints.extend(ints(wire, span)?),
            (9, Field::Bytes(span)) => parts.texts.push(wire.bytes(span)?),
            (20, Field::Varint(kind, _)) => parts.kind = kind,
            (21, Field::Bytes(span)) => refers = Some(wire.text(span)?),
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    let refers = refers.filter(|name| !name.is_empty());
    Ok(AttributeMessage { name, value: parts.value(), refers })
}

/// Numbers of a packed field.
fn ints(wire: &mut Wire, span: Span) -> Result<Vec<i64>> {
    let bytes = wire.bytes(span)?;
    let numbers =
        crate::wire::varints(&bytes).ok_or_else(|| wire.bad("numbers that do not end"))?;
    Ok(numbers.into_iter().map(|n| n as i64).collect())
}

fn floats_of(bytes: &[u8]) -> Vec<f32> {
    let each = bytes.chunks_exact(4);
    each.map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn value(wire: &mut Wire, span: Span) -> Result<ValueMessage> {
    let mut value = ValueMessage::default();
    wire.message(span, |wire, number, field| {
        match (number, field) {
            (1, Field::Bytes(span)) => value.name = wire.text(span)?,
            (2, Field::Bytes(span)) => value.ty = value_type(wire, span)?,
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    Ok(value)
}

fn value_type(wire: &mut Wire, span: Span) -> Result<ValueType> {
    let mut ty = ValueType::Unknown;
    wire.message(span, |wire, number, field| {
        match (number, field) {
            (1, Field::Bytes(span)) => {
                let (mut dtype, mut dims) = (0, None);
                wire.message(span, |wire, number, field| {
                    match (number, field) {
                        (1, Field::Varint(number, _)) => dtype = number as i64,
                        (2, Field::Bytes(span)) => dims = Some(shape(wire, span)?),
                        _ => return Ok(Seen::Not),
                    }
                    Ok(Seen::Read)
                })?;
                ty = ValueType::Tensor(dtype, dims);
                return Ok(Seen::Read);
            }
            (4, Field::Bytes(_)) => ty = ValueType::Sequence,
            (5 | 8 | 9, Field::Bytes(_)) => ty = ValueType::Other,
            _ => {}
        }
        Ok(Seen::Not)
    })?;
    Ok(ty)
}

fn shape(wire: &mut Wire, span: Span) -> Result<Vec<DimMessage>> {
    let mut dims = Vec::new();
    wire.message(span, |wire, number, field| {
        let (1, Field::Bytes(span)) = (number, field) else { return Ok(Seen::Not) };
        let mut dim = DimMessage::Open;
        wire.message(span, |wire, number, field| {
            match (number, field) {
                (1, Field::Varint(n, _)) => dim = DimMessage::Known(n as i64),
                (2, Field::Bytes(span)) => {
                    let name = wire.text(span)?;
                    if !name.is_empty() {
                        dim = DimMessage::Named(name);
                    }
                }
                _ => return Ok(Seen::Not),
            }
            Ok(Seen::Read)
        })?;
        dims.push(dim);
        Ok(Seen::Read)
    })?;
    Ok(dims)
}

fn function(wire: &mut Wire, span: Span) -> Result<FunctionMessage> {
    let mut made = FunctionMessage::default();
    wire.message(span, |wire, number, field| {
        let Field::Bytes(span) = field else { return Ok(Seen::Not) };
        match number {
            1 => made.name = wire.text(span)?,
            4 => made.inputs.push(wire.text(span)?),
            5 => made.outputs.push(wire.text(span)?),
            7 => made.nodes.push(node(wire, span)?),
            9 => made.opsets.push(opset(wire, span)?),
            10 => made.domain = domain(wire.text(span)?),
            11 => made.defaults.push(attribute(wire, span)?),
            _ => return Ok(Seen::Not),
        }
        Ok(Seen::Read)
    })?;
    Ok(made)
}
