//! The gradient of an op that has a kernel of its own, from the same in other ops: for second derivatives, where what counts
//! is that they are right.

use tonnage_core::emit::{Emit, Value};
use tonnage_core::grad::{Cotangent, GradCall, VjpGraph, vjp_graph};
use tonnage_core::graph::replay;
use tonnage_core::{Attrs, Builder, Kind, Result};

/// An op in terms of others: its inputs in, its outputs out.
pub type Formula = fn(&mut dyn Emit, &Attrs, Vec<Value>) -> Result<Vec<Value>>;

/// A backward rule that differentiates a formula. Its row saves all inputs.
pub fn by_formula(
    e: &mut dyn Emit,
    call: &GradCall,
    formula: Formula,
) -> Result<Vec<Option<Cotangent>>> {
    let mut builder = Builder::new();
    let types = call.inputs.iter();
    let inputs =
        types.map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect::<Vec<_>>();
    let outputs = formula(&mut builder, call.attrs, inputs)?;
    let graph = builder.finish(&outputs)?;
    let seeded: Vec<bool> = call.grads.iter().map(Option::is_some).collect();
    let what =
        VjpGraph { seeded: &seeded, outputs: &[], wanted: call.needs, known: &[], sums: &[] };
    let back = vjp_graph(&graph, what, call.ops)?;
    let mut values =
        (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<Value>>>()?;
    values.extend(call.grads.iter().flatten().cloned());
    let mut made = replay(&back, values, e)?.into_iter();
    let wanted = |needed: &bool| if *needed { made.next().map(Cotangent::Dense) } else { None };
    Ok(call.needs.iter().map(wanted).collect())
}
