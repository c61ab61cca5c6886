//! Writes models, as other programs would: protocol buffers, field by field.
#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};

/// A message in the making.
#[derive(Debug, Clone, Default)]
pub struct Message(pub Vec<u8>);

fn varint(mut n: u64, into: &mut Vec<u8>) {
    while n >= 0x80 {
        into.push(n as u8 | 0x80);
        n >>= 7;
    }
    into.push(n as u8);
}

impl Message {
    pub fn int(mut self, field: u64, n: i64) -> Message {
        varint(field << 3, &mut self.0);
        varint(n as u64, &mut self.0);
        self
    }

    pub fn bytes(mut self, field: u64, bytes: &[u8]) -> Message {
        varint(field << 3 | 2, &mut self.0);
        varint(bytes.len() as u64, &mut self.0);
        self.0.extend(bytes);
        self
    }

    pub fn text(self, field: u64, text: &str) -> Message {
        self.bytes(field, text.as_bytes())
    }

    pub fn message(self, field: u64, inner: &Message) -> Message {
        self.bytes(field, &inner.0)
    }
}

/// A tensor of floats as raw data.
pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let tensor = dims.iter().fold(Message::default(), |m, n| m.int(1, *n));
    tensor.int(2, 1).text(8, name).bytes(9, &raw)
}

/// A tensor of whole numbers.
pub fn ints(name: &str, dims: &[i64], values: &[i64]) -> Message {
    let raw: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    let tensor = dims.iter().fold(Message::default(), |m, n| m.int(1, *n));
    tensor.int(2, 7).text(8, name).bytes(9, &raw)
}

/// A tensor of bytes, signed or not.
pub fn bytes(name: &str, signed: bool, dims: &[i64], values: &[u8]) -> Message {
    let tensor = dims.iter().fold(Message::default(), |m, n| m.int(1, *n));
    tensor.int(2, if signed { 3 } else { 2 }).text(8, name).bytes(9, values)
}

/// Whole numbers as an attribute.
pub fn int_list(name: &str, values: &[i64]) -> Message {
    let list = values.iter().fold(Message::default().text(1, name), |m, n| m.int(8, *n));
    list.int(20, 7)
}

/// A node; attributes are messages of their own.
pub fn node(op: &str, inputs: &[&str], outputs: &[&str], attributes: &[Message]) -> Message {
    let node = inputs.iter().fold(Message::default(), |m, name| m.text(1, name));
    let node = outputs.iter().fold(node, |m, name| m.text(2, name));
    let node = node.text(3, &format!("the {op}")).text(4, op);
    attributes.iter().fold(node, |m, attribute| m.message(5, attribute))
}

/// A whole number as an attribute.
pub fn int(name: &str, n: i64) -> Message {
    Message::default().text(1, name).int(3, n).int(20, 2)
}

/// A graph as an attribute.
pub fn graph_attribute(name: &str, graph: &Message) -> Message {
    Message::default().text(1, name).message(6, graph).int(20, 5)
}

/// An input or output: dims are numbers or names.
pub fn value(name: &str, dtype: i64, dims: &[&str]) -> Message {
    let mut shape = Message::default();
    for dim in dims {
        let one = match dim.parse::<i64>() {
            Ok(n) => Message::default().int(1, n),
            Err(_) => Message::default().text(2, dim),
        };
        shape = shape.message(1, &one);
    }
    let tensor = Message::default().int(1, dtype).message(2, &shape);
    Message::default().text(1, name).message(2, &Message::default().message(1, &tensor))
}

/// A graph.
pub fn graph(
    nodes: &[Message],
    weights: &[Message],
    inputs: &[Message],
    outputs: &[Message],
) -> Message {
    let graph = nodes.iter().fold(Message::default(), |m, node| m.message(1, node));
    let graph = weights.iter().fold(graph.text(2, "graph"), |m, weight| m.message(5, weight));
    let graph = inputs.iter().fold(graph, |m, input| m.message(11, input));
    outputs.iter().fold(graph, |m, output| m.message(12, output))
}

/// A model of the standard ops.
pub fn model(graph: &Message) -> Message {
    let opset = Message::default().text(1, "").int(2, 17);
    Message::default().int(1, 8).text(2, "tests").message(7, graph).message(8, &opset)
}

/// A folder that is removed with what is in it.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// A file in it.
    pub fn put(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}

/// `relu(x @ w + b)`, with 4 inputs and 3 outputs a row.
pub fn layer() -> Message {
    let weights: Vec<f32> = (0..12).map(|n| n as f32 / 4.0 - 1.5).collect();
    model(&graph(
        &[node("Gemm", &["x", "w", "b"], &["sum"], &[]), node("Relu", &["sum"], &["y"], &[])],
        &[floats("w", &[4, 3], &weights), floats("b", &[3], &[0.5, 0.0, -0.5])],
        &[value("x", 1, &["batch", "4"])],
        &[value("y", 1, &["batch", "3"])],
    ))
}
