//! Control flow: ops whose bodies and branches are graphs. The executor runs them.
//!
//! `cond` and `switch` are branches, `while_loop` is every loop there is, and `while_grad` goes back through
//! one, with `second` for second derivatives. What they share is here and in `branch`, `flow` (which values a
//! gradient flows through) and `trips` (loops whose number of iterations can be read off).

mod branch;
pub mod call;
pub mod cond;
pub mod custom;
mod flow;
mod samples;
mod second_order;
pub mod switch;
pub mod trips;
pub mod while_grad;
mod while_jvp;
pub mod while_loop;

use std::sync::Arc;

use tonnage_core::TensorType;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::row::{AxisMap, Call, Cost, Types};

use crate::rules;

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

/// Leaves out what is done for its effect alone: a gradient that recomputes something does not print it again.
///
/// # Errors
/// Where the gradient needs what a callback with an effect returned: it would be called a second time.
fn without_effects(graph: &mut Graph) -> Result<()> {
    let mut read = vec![false; graph.value_count()];
    graph.outputs.iter().for_each(|id| read[id.index()] = true);
    // From the last to the first, so that what only such a node reads is not read.
    let mut keep = vec![false; graph.nodes.len()];
    let deciders = graph.size_deciders();
    let decided: Vec<Vec<ValueId>> = graph.nodes.iter().map(|node| node.outputs.clone()).collect();
    for (at, node) in graph.nodes.iter_mut().enumerate().rev() {
        if !node.outputs.iter().any(|id| read[id.index()]) {
            continue;
        }
        keep[at] = true;
        let by = deciders.get(at).into_iter().flatten().flat_map(|by| &decided[*by]);
        node.inputs.iter().chain(by).for_each(|id| read[id.index()] = true);
        if node.op == &crate::host::callback::HOST_CALLBACK {
            let what = "the backward pass through a loop, a branch or a checkpoint recomputes it, but what is read \
                        here from outside of the program, such as the next element of an iterator or what a callback \
                        returns, cannot be read a second time";
            let help = "read it before the loop, or take the gradient of each iteration inside of the loop";
            return Err(bad_argument("gradient", what, help).at(node.source));
        }
        for region in &mut node.regions {
            if region.nodes.iter().any(Node::calls_host) {
                let mut inner = (**region).clone();
                without_effects(&mut inner)?;
                *region = Arc::new(inner);
            }
        }
    }
    let mut kept = keep.into_iter();
    graph.nodes.retain(|_| kept.next() != Some(false));
    graph.prune();
    Ok(())
}

/// Nothing can be cut.
fn mixed_axes(infer: fn(&Call) -> Result<Types>, call: &Call) -> AxisMap {
    let ranks: Vec<usize> =
        infer(call).map_or(Vec::new(), |types| types.iter().map(|ty| ty.shape.rank()).collect());
    rules::axes::mixed(&ranks)
}

/// What one run of a region takes.
fn region_cost(graph: &Graph) -> Cost {
    graph
        .nodes
        .iter()
        .fold(Cost::default(), |sum, node| plus(sum, graph.with_call(node, node.op.cost)))
}

fn plus(a: Cost, b: Cost) -> Cost {
    a.with(b, u64::saturating_add)
}

/// The cost of a number of iterations; of one iteration where only the data know how many there are.
fn all_iterations(spec: &Loop, iteration: Cost) -> Cost {
    let iterations = match &spec.iterations {
        Iterations::Times(dim) => dim.most().map_or(1, |n| n as u64),
        Iterations::While { .. } => 1,
    };
    iteration.times(iterations)
}
