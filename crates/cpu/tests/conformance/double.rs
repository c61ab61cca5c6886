//! Samples in f64, for tests against differences.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::row::Sample;
use tonnage_core::tile::{Form, Prim, TileProgram};
use tonnage_core::{DType, TensorType};

fn wide(dtype: DType) -> DType {
    if dtype.is_float() { DType::F64 } else { dtype }
}

fn ty(ty: &TensorType) -> TensorType {
    TensorType { dtype: wide(ty.dtype), shape: ty.shape.clone() }
}

fn attrs(attrs: &Attrs) -> Attrs {
    let mut attrs = attrs.clone();
    match &mut attrs {
        Attrs::DType(dtype)
        | Attrs::Fill { dtype, .. }
        | Attrs::Range { dtype, .. }
        | Attrs::OneHot { dtype, .. }
        | Attrs::Linspace { dtype, .. }
        | Attrs::Eye { dtype, .. }
        | Attrs::Lengths { dtype, .. }
        | Attrs::Random { dtype, .. }
        | Attrs::Seeded { dtype, .. } => *dtype = wide(*dtype),
        Attrs::Tile(program) => widen(program),
        _ => {}
    }
    attrs
}

/// A program that loads, computes and stores floats as f64.
fn widen(program: &mut TileProgram) {
    let form = |form: &mut Form| {
        if let Form::Elements(dtype) = form {
            *dtype = wide(*dtype);
        }
    };
    program.loads.iter_mut().for_each(form);
    program.stores.iter_mut().for_each(|(_, stored)| form(stored));
    for instr in &mut program.code {
        instr.dtype = wide(instr.dtype);
        if let Prim::Cast(to) = &mut instr.prim {
            *to = wide(*to);
        }
    }
}

fn graph(graph: &Graph) -> Graph {
    let mut made = graph.clone();
    let inputs = made.inputs.clone();
    let nodes: Vec<_> = made.nodes.iter().flat_map(|n| n.outputs.clone()).collect();
    for id in inputs.into_iter().chain(nodes) {
        let info = made.value_mut(id);
        info.ty = ty(&info.ty);
    }
    for node in &mut made.nodes {
        node.attrs = attrs(&node.attrs);
        node.regions = node.regions.iter().map(|g| Arc::new(self::graph(g))).collect();
    }
    made.verify().expect("a graph in f64");
    made
}

/// The sample with every float as f64.
pub fn in_f64(sample: &Sample) -> Sample {
    let mut sample = sample.clone();
    for input in &mut sample.inputs {
        input.ty = ty(&input.ty);
    }
    sample.attrs = attrs(&sample.attrs);
    sample.regions = sample.regions.iter().map(|g| Arc::new(graph(g))).collect();
    sample
}
