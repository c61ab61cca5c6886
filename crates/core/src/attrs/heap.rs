//! What attributes take on the heap.

use super::{Attrs, AxisSlice};
use crate::grad::returned::Returned;
use crate::heap::{COUNTS, Heap, Seen};
use crate::save::Save;

impl Heap for AxisSlice {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.start.heap(seen) + self.len.heap(seen)
    }
}

impl Heap for Attrs {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Attrs::Reduce { axes, keep_dims: _ }
            | Attrs::Norm { axes, keep_dims: _, power: _ }
            | Attrs::Squeeze { axes, all: _ }
            | Attrs::Axes(axes)
            | Attrs::Repeats(axes)
            | Attrs::Order(axes) => axes.heap(seen),
            Attrs::Slices(slices) => slices.heap(seen),
            Attrs::Place { slices, shape } => slices.heap(seen) + shape.heap(seen),
            Attrs::Split { lengths, axis: _ } => lengths.heap(seen),
            Attrs::Pad { widths, padding: _ } => widths.capacity() * size_of::<[usize; 2]>(),
            Attrs::Shape(shape)
            | Attrs::Fill { shape, value: _, dtype: _ }
            | Attrs::Random { shape, key: _, distribution: _, dtype: _ }
            | Attrs::Seeded { shape, distribution: _, dtype: _ }
            | Attrs::Blocks { shape, world: _ }
            | Attrs::Lengths { of: shape, dtype: _ } => shape.heap(seen),
            Attrs::Range { len, start: _, step: _, dtype: _ }
            | Attrs::Linspace { len, start: _, stop: _, dtype: _ }
            | Attrs::OneHot { depth: len, on: _, off: _, dtype: _ } => len.heap(seen),
            Attrs::Eye { rows, columns, diagonal: _, dtype: _ }
            | Attrs::Diag { rows, columns, diagonal: _ } => rows.heap(seen) + columns.heap(seen),
            Attrs::Tile(program) => program.heap(seen),
            Attrs::Branch { updates, key: _ } => updates.capacity() * size_of::<(usize, usize)>(),
            Attrs::Window(window) => window.heap(seen),
            Attrs::Conv(conv) => {
                size_of_val(&**conv) + conv.window.heap(seen) + conv.image.heap(seen)
            }
            Attrs::Average(average) => {
                size_of_val(&**average) + average.window.heap(seen) + average.image.heap(seen)
            }
            Attrs::Resize(resize) => {
                size_of_val(&**resize) + resize.to.heap(seen) + resize.image.heap(seen)
            }
            Attrs::Loop(spec) => spec.heap(seen),
            Attrs::LoopGrad(spec) => size_of_val(&**spec) + spec.of.heap(seen),
            Attrs::Custom { saved, returns, args: _, results: _, exact: _ } => {
                saved.capacity() * size_of::<Save>() + returns.capacity() * size_of::<Returned>()
            }
            Attrs::Host { call, results } => {
                let own = COUNTS + size_of_val(&**call) + call.heap_bytes();
                results.heap(seen) + if seen.is_new(call) { own } else { 0 }
            }
            // Numbers and flags; and worlds, which are their engine's.
            Attrs::None
            | Attrs::World(_)
            | Attrs::Root { world: _, root: _ }
            | Attrs::Axis(_)
            | Attrs::Scan { axis: _, exclusive: _, reverse: _ }
            | Attrs::Join { axis: _, parts: _ }
            | Attrs::Repeat { axis: _, count: _ }
            | Attrs::Roll { axis: _, shift: _ }
            | Attrs::DType(_)
            | Attrs::Diagonal(_)
            | Attrs::Number(_)
            | Attrs::Matmul { transpose_a: _, transpose_b: _ }
            | Attrs::Count(_)
            | Attrs::Descending(_)
            | Attrs::Right(_)
            | Attrs::Histogram { low: _, high: _, bins: _ }
            | Attrs::Rotary { base: _, neighbours: _, back: _ }
            | Attrs::Smoothing(_)
            | Attrs::Normalize { epsilon: _, centered: _, groups: _ }
            | Attrs::Attention { scale: _, causal: _, masked: _ } => 0,
        }
    }
}
