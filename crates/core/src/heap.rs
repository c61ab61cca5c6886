//! What a value takes on the heap: how graphs and plans count their own bytes.
//!
//! Figures are bytes asked of the allocator, to the byte where the standard library tells its capacities
//! and never less where it does not. What several share (an `Arc`) is counted once, by whoever is asked
//! first with the same [`Seen`].
//!
//! Decision: `docs/decisions/graphs-are-counted-apart.md`.

use std::collections::HashSet;
use std::sync::Arc;

use smallvec::{Array, SmallVec};

use crate::attrs::{Attrs, AxisSlice};
use crate::dtype::DType;
use crate::graph::{Graph, Node, ValueId, ValueInfo};
use crate::layout::Layout;
use crate::looping::{Iterations, Loop};
use crate::recipe::{Generator, Recipe};
use crate::shape::TensorType;
use crate::tile::{Close, Form, Instr, Reg, TileProgram};
use crate::window::Window;

/// What was counted already.
#[derive(Debug, Default)]
pub struct Seen(HashSet<usize>);

impl Seen {
    /// Whether something shared is new here; from now on it is not.
    pub fn is_new<T: ?Sized>(&mut self, shared: &Arc<T>) -> bool {
        self.0.insert(Arc::as_ptr(shared) as *const () as usize)
    }
}

/// The counts in front of what is shared.
const COUNTS: usize = 2 * size_of::<usize>();

/// Something that may own memory on the heap.
pub trait Heap {
    /// Bytes on the heap that it owns; its own size is its holder's.
    fn heap(&self, seen: &mut Seen) -> usize;
}

impl<T: Heap> Heap for Vec<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(|item| item.heap(seen)).sum::<usize>()
    }
}

impl<A: Array> Heap for SmallVec<A>
where
    A::Item: Heap,
{
    fn heap(&self, seen: &mut Seen) -> usize {
        let own = if self.spilled() { self.capacity() * size_of::<A::Item>() } else { 0 };
        own + self.iter().map(|item| item.heap(seen)).sum::<usize>()
    }
}

impl<T: Heap> Heap for Box<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        size_of::<T>() + (**self).heap(seen)
    }
}

impl<T: Heap> Heap for Arc<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        match seen.is_new(self) {
            true => COUNTS + size_of::<T>() + (**self).heap(seen),
            false => 0,
        }
    }
}

impl Heap for Arc<str> {
    fn heap(&self, seen: &mut Seen) -> usize {
        match seen.is_new(self) {
            true => (COUNTS + self.len()).next_multiple_of(size_of::<usize>()),
            false => 0,
        }
    }
}

impl<T: Heap> Heap for Option<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.as_ref().map_or(0, |inner| inner.heap(seen))
    }
}

impl<A: Heap, B: Heap> Heap for (A, B) {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.0.heap(seen) + self.1.heap(seen)
    }
}

macro_rules! nothing {
    ($($T:ty),*) => {$(
        impl Heap for $T {
            fn heap(&self, _: &mut Seen) -> usize {
                0
            }
        }
    )*};
}

nothing!(bool, u64, usize, isize, Reg, DType, Form, Generator, ValueId, crate::Bytes);

impl Heap for TensorType {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.shape.heap(seen)
    }
}

impl Heap for Layout {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.sizes.heap(seen) + self.strides.heap(seen)
    }
}

impl Heap for Instr {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.args.heap(seen)
    }
}

impl Heap for TileProgram {
    fn heap(&self, seen: &mut Seen) -> usize {
        let close = match &self.close {
            Close::Store => 0,
            Close::Reduce { axes, .. } => axes.heap(seen),
        };
        self.loads.heap(seen) + self.code.heap(seen) + self.stores.heap(seen) + close
    }
}

impl Heap for Recipe {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.program.heap(seen) + self.sources.heap(seen) + self.sizes.heap(seen)
    }
}

impl Heap for AxisSlice {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.start.heap(seen) + self.len.heap(seen)
    }
}

impl Heap for Attrs {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Attrs::Reduce { axes, .. } | Attrs::Order(axes) => axes.heap(seen),
            Attrs::Slices(slices) => slices.heap(seen),
            Attrs::Place { slices, shape } => slices.heap(seen) + shape.heap(seen),
            Attrs::Shape(shape) | Attrs::Fill { shape, .. } | Attrs::Random { shape, .. } => {
                shape.heap(seen)
            }
            Attrs::Range { len, .. } => len.heap(seen),
            Attrs::Lengths { of, .. } => of.heap(seen),
            Attrs::Tile(program) => program.heap(seen),
            Attrs::Branch { updates, .. } => updates.capacity() * size_of::<(usize, usize)>(),
            Attrs::Window(window) => size_of_val(&**window) + window.heap(seen),
            Attrs::Conv(conv) => {
                size_of_val(&**conv) + conv.window.heap(seen) + conv.image.heap(seen)
            }
            Attrs::Average(average) => {
                size_of_val(&**average) + average.window.heap(seen) + average.image.heap(seen)
            }
            Attrs::Resize(resize) => {
                size_of_val(&**resize) + resize.to.heap(seen) + resize.image.heap(seen)
            }
            Attrs::Loop(spec) => size_of_val(&**spec) + spec.heap(seen),
            Attrs::LoopGrad(spec) => size_of_val(&**spec) + spec.of.heap(seen),
            Attrs::Host { call, results } => {
                let own = COUNTS + size_of_val(&**call) + call.heap_bytes();
                results.heap(seen) + if seen.is_new(call) { own } else { 0 }
            }
            // Numbers and flags.
            _ => 0,
        }
    }
}

impl Heap for Loop {
    fn heap(&self, seen: &mut Seen) -> usize {
        let iterations = match &self.iterations {
            Iterations::Times(dim) => dim.heap(seen),
            Iterations::While { .. } => 0,
        };
        iterations + self.updates.heap(seen)
    }
}

impl Heap for Window {
    fn heap(&self, seen: &mut Seen) -> usize {
        let padding = &self.padding;
        let own = if padding.spilled() { size_of_val(&**padding) } else { 0 };
        own + self.size.heap(seen) + self.stride.heap(seen) + self.dilation.heap(seen)
    }
}

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
