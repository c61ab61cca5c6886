//! Open dims, for every row: a graph that was made with open dims, written out for known sizes, is the graph of
//! those sizes, forwards and backwards. So a trace with open dims is planned as one that knows its sizes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage_core::attrs::Attrs;
use tonnage_core::grad::{VjpGraph, vjp_graph};
use tonnage_core::row::{AxisOf, Call, Grad, OpDef, Sample};
use tonnage_core::{Builder, Dim, Emit, Graph, Kind, Result, Symbol, TensorType};
use tonnage_cpu::CpuTarget;
use tonnage_ops::{GRAD_OPS, TABLE};
use tonnage_plan::{Machine, lower};

/// A graph of one node.
fn graph(
    op: &'static OpDef,
    types: &[TensorType],
    attrs: &Attrs,
    sample: &Sample,
) -> Result<Graph> {
    let mut builder = Builder::new();
    let inputs = types.iter().map(|ty| builder.input(ty.clone(), Kind::Input, None)).collect();
    let made = builder.emit(op, inputs, attrs.clone(), sample.regions.clone(), false)?;
    builder.finish(&made)
}

/// The gradient of a graph of one node, for all of its float inputs.
fn gradient(graph: &Graph) -> Result<Graph> {
    let floats = |types: Vec<TensorType>| -> Vec<bool> {
        types.iter().map(|ty| ty.dtype.is_float()).collect()
    };
    let (seeded, wanted) = (floats(graph.output_types()), floats(graph.input_types()));
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    vjp_graph(graph, what, &GRAD_OPS)
}

/// Compares the open graph, closed again, with the one that knew its sizes.
fn same(
    open: &Graph,
    known: &Graph,
    symbol: &Symbol,
    size: usize,
) -> std::result::Result<(), String> {
    let closed = open.substitute(&|s| (s == symbol).then_some(Dim::Known(size)));
    closed.verify().map_err(|e| e.to_string())?;
    let text = |graph: &Graph| {
        lower(graph, &CpuTarget::new(1, Machine::DEFAULT))
            .map(|g| g.to_string())
            .map_err(|e| e.to_string())
    };
    let (got, expected) = (text(&closed)?, text(known)?);
    if got == expected { Ok(()) } else { Err(format!("{got}\nis not\n{expected}")) }
}

fn check(op: &'static OpDef, sample: &Sample) -> std::result::Result<usize, String> {
    let types: Vec<TensorType> = sample.inputs.iter().map(|i| i.ty.clone()).collect();
    let call = Call { op: op.name, inputs: &types, attrs: &sample.attrs, regions: &sample.regions };
    let (made, map) = ((op.infer)(&call).map_err(|e| e.to_string())?, (op.axes)(&call));
    let mut checked = 0;
    for (of, axes) in made.iter().zip(&map.outputs) {
        for (axis, along) in axes.iter().enumerate() {
            let AxisOf::Along(group) = along else { continue };
            let Some((input, at)) = group.first() else { continue };
            // Of no elements, all that a rule could keep weighs nothing, and it may keep something else.
            let Some(size) = types[*input].shape[*at].known().filter(|n| *n > 0) else { continue };
            let symbol = Symbol::new("n");
            let dim = Dim::symbol(symbol.clone());
            let mut open = types.clone();
            for (input, at) in group {
                open[*input].shape[*at] = dim.clone();
            }
            let attrs = sample.attrs.of_piece(of, axis, &dim);
            let place = |e: String| format!("axis {axis}: {e}");
            let opened = graph(op, &open, &attrs, sample).map_err(|e| place(e.to_string()))?;
            let known = graph(op, &types, &sample.attrs, sample).map_err(|e| e.to_string())?;
            same(&opened, &known, &symbol, size).map_err(place)?;
            if matches!(op.grad, Grad::Rule(_)) {
                let known = gradient(&known).map_err(|e| e.to_string())?;
                let opened = gradient(&opened).map_err(|e| place(format!("backwards: {e}")))?;
                same(&opened, &known, &symbol, size)
                    .map_err(|e| place(format!("backwards: {e}")))?;
            }
            checked += 1;
        }
    }
    Ok(checked)
}

#[test]
fn an_open_graph_closed_again_is_the_graph_of_its_sizes() {
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for op in TABLE {
        for sample in (op.samples)() {
            match check(op, &sample) {
                Ok(n) => checked += n,
                Err(problem) => {
                    let types: Vec<_> = sample.inputs.iter().map(|i| &i.ty).collect();
                    wrong.push(format!("{} {types:?} {:?}: {problem}", op.name, sample.attrs));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(checked > 500, "{checked}");
}
