//! Control flow: ops whose bodies and branches are graphs. The executor runs them.

pub mod call;
pub mod cond;
pub mod custom;
pub mod while_grad;
mod while_jvp;
pub mod while_loop;

use tonnage_core::TensorType;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::Graph;
use tonnage_core::row::{Call, Cost};

/// Refuses a region whose inputs are not what the op feeds it.
fn check_inputs(
    call: &Call,
    region: &str,
    expected: &[TensorType],
    got: &[TensorType],
) -> Result<()> {
    if expected == got {
        return Ok(());
    }
    let what = format!("{}'s {region} takes {got:?}, but is given {expected:?}", call.op);
    Err(ErrorKind::BadGraph { what }.into())
}

/// What one run of a region takes.
fn region_cost(graph: &Graph) -> Cost {
    graph.nodes.iter().fold(Cost::default(), |sum, node| {
        let cost = graph.with_call(node, node.op.cost);
        Cost {
            flops: sum.flops.saturating_add(cost.flops),
            bytes: sum.bytes.saturating_add(cost.bytes),
        }
    })
}
