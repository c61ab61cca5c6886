//! What is in a model's file, without keeping its nodes: a large model has more text in them than anything else that a look at it needs.

use std::collections::HashMap;
use std::path::Path;

use tonnage::{Bytes, Result};

use crate::data::ModelFile;
use crate::message::read_model;
use crate::model::{check_message, ports, weight_bytes};
use crate::port::Port;

/// What is in a model's file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// What it takes, in order.
    pub inputs: Vec<Port>,
    /// What it gives, in order.
    pub outputs: Vec<Port>,
    /// How many nodes its graph has.
    pub nodes: usize,
    /// Ops of the graph, and how often each stands in it, the most frequent first.
    pub ops: Vec<(String, usize)>,
    /// How many weights it has.
    pub weights: usize,
    /// Their bytes; weights of types that are not supported count for none. `None` for more than any machine addresses.
    pub bytes: Option<Bytes>,
    /// The version of each domain's ops; that of the standard ones has no name.
    pub opsets: Vec<(String, i64)>,
    /// The program that wrote it.
    pub producer: String,
}

/// Looks at a model: its nodes are read one by one, its weights are not.
///
/// # Errors
/// As [`load`](crate::load).
pub fn outline(path: impl AsRef<Path>) -> Result<Outline> {
    let path = path.as_ref();
    let (mut nodes, mut counts) = (0, HashMap::<String, usize>::new());
    let message = read_model(path, &mut |node| {
        nodes += 1;
        let dot = if node.domain.is_empty() { "" } else { "." };
        *counts.entry(format!("{}{dot}{}", node.domain, node.op)).or_default() += 1;
        None
    })?;
    check_message(path, &message)?;
    let mut ops: Vec<(String, usize)> = counts.into_iter().collect();
    ops.sort_by(|a, b| (b.1, &a.0).cmp(&(a.1, &b.0)));
    let bytes = weight_bytes(&ModelFile { path: path.into() }, &message.graph);
    let weights = message.graph.initializers.len();
    let (inputs, outputs) = ports(&message.graph);
    let (opsets, producer) = (message.opsets, message.producer);
    Ok(Outline { inputs, outputs, nodes, ops, weights, bytes, opsets, producer })
}
