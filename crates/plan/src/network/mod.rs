//! The network lane beside the kernels: when transfers between ranks begin, and when they are awaited.
//!
//! `order` moves nodes apart: a transfer begins where its input is complete, and what reads its result comes later, as far as memory allows. Blocks
//! that ranks hold are gathered before the layer that reads them. `flight` is over steps: which of them run on the lane, and which step awaits
//! each.
//!
//! Where nodes go depends on the graph and on bytes, never on how fast this machine is: ranks differ in that, and their transfers have to stand in one order.
//! A plan without a budget has room for the largest transfer beside its peak. Of a budget's points each is there with that room and without.
//!
//! Decision: `docs/decisions/network-lane.md`.

mod flight;
mod order;

pub(crate) use flight::find as find_flights;
pub(crate) use order::{ordered, room_ahead};

use tonnage_core::graph::{Graph, Node};
use tonnage_ops::world::buckets::world;

use crate::target::Target;

/// Whether a node moves bytes to other ranks, or from them.
fn is_transfer(graph: &Graph, node: &Node) -> bool {
    node.regions.is_empty()
        && world(&node.attrs).is_some()
        && graph.with_call(node, |call| (node.op.cost)(call)).messages > 0
}

/// Whether a graph has nodes that move bytes between ranks, and a device runs them beside others.
pub(crate) fn has_lane(graph: &Graph, target: &dyn Target) -> bool {
    target.has_network_lane() && graph.nodes.iter().any(|node| is_transfer(graph, node))
}

/// Whether a graph, or a body in it, moves bytes between ranks: these have to do the same in one order, however fast each is.
pub(crate) fn is_between_ranks(graph: &Graph) -> bool {
    let moves = |node: &Node| world(&node.attrs).is_some_and(|world| world.size() > 1);
    graph.nodes.iter().any(|node| moves(node) || node.regions.iter().any(|g| is_between_ranks(g)))
}

/// Whether everything that is on its way has to arrive before a node: it moves bytes itself where no plan sees them, or may.
fn is_barrier(node: &Node) -> bool {
    let moves = |node: &Node| world(&node.attrs).is_some_and(|world| world.size() > 1);
    let inside =
        |node: &Node| -> bool { node.regions.iter().any(|g| g.nodes.iter().any(is_barrier)) };
    let in_region = node.regions.iter().any(|g| g.nodes.iter().any(moves));
    node.calls_host() || in_region || inside(node)
}
