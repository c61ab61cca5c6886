//! What a graph takes on the heap.

use super::{Graph, Node, ValueId, ValueInfo};
use crate::heap::{Heap, Seen, nothing};

nothing!(ValueId);

impl Heap for ValueInfo {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.ty.heap(seen) + self.name.heap(seen)
    }
}

impl Heap for Node {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.attrs.heap(seen)
            + self.inputs.heap(seen)
            + self.outputs.heap(seen)
            + self.regions.heap(seen)
    }
}

impl Heap for Graph {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.values().heap(seen)
            + self.inputs.heap(seen)
            + self.nodes.heap(seen)
            + self.outputs.heap(seen)
    }
}
