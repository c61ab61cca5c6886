//! Attributes with other lengths in them.
//!
//! Every variant is taken apart to its last field: a new one, or a new field, has to say here what becomes of it.

use super::{Attrs, AxisSlice};
use crate::dim::{Dim, Symbol};
use crate::shape::TensorType;
use crate::window::{Average, Conv, Resize};

impl Attrs {
    /// The attributes with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Attrs {
        let mut attrs = self.clone();
        match &mut attrs {
            Attrs::Shape(shape)
            | Attrs::Fill { shape, value: _, dtype: _ }
            | Attrs::Random { shape, key: _, distribution: _, dtype: _ }
            | Attrs::Seeded { shape, distribution: _, dtype: _ }
            | Attrs::Blocks { shape, world: _ }
            | Attrs::Lengths { of: shape, dtype: _ } => *shape = shape.substitute(find),
            Attrs::Slices(slices) => substitute_slices(slices, find),
            Attrs::Place { slices, shape } => {
                substitute_slices(slices, find);
                *shape = shape.substitute(find);
            }
            Attrs::Range { len, start: _, step: _, dtype: _ }
            | Attrs::Linspace { len, start: _, stop: _, dtype: _ }
            | Attrs::OneHot { depth: len, on: _, off: _, dtype: _ } => *len = len.substitute(find),
            Attrs::Eye { rows, columns, diagonal: _, dtype: _ }
            | Attrs::Diag { rows, columns, diagonal: _ } => {
                *rows = rows.substitute(find);
                *columns = columns.substitute(find);
            }
            Attrs::Split { lengths, axis: _ } => {
                lengths.iter_mut().for_each(|len| *len = len.substitute(find));
            }
            Attrs::Conv(conv) => {
                let Conv { image, window: _, groups: _ } = &mut **conv;
                *image = image.substitute(find);
            }
            Attrs::Average(average) => {
                let Average { image, window: _, counts_padding: _ } = &mut **average;
                *image = image.substitute(find);
            }
            Attrs::Resize(resize) => {
                let Resize { to, image, between: _ } = &mut **resize;
                *to = to.substitute(find);
                *image = image.substitute(find);
            }
            Attrs::Loop(spec) => **spec = spec.substitute(find),
            Attrs::LoopGrad(spec) => **spec = spec.substitute(find),
            Attrs::Host { results, call: _ } => {
                results.iter_mut().for_each(|ty| *ty = ty.substitute(find));
            }
            // No lengths that could be symbolic.
            Attrs::None
            | Attrs::World(_)
            | Attrs::Root { world: _, root: _ }
            | Attrs::Reduce { axes: _, keep_dims: _ }
            | Attrs::Norm { axes: _, keep_dims: _, power: _ }
            | Attrs::Axis(_)
            | Attrs::Axes(_)
            | Attrs::Squeeze { axes: _, all: _ }
            | Attrs::Scan { axis: _, exclusive: _, reverse: _ }
            | Attrs::Join { axis: _, parts: _ }
            | Attrs::Pad { widths: _, padding: _ }
            | Attrs::Repeats(_)
            | Attrs::Repeat { axis: _, count: _ }
            | Attrs::Roll { axis: _, shift: _ }
            | Attrs::Order(_)
            | Attrs::DType(_)
            | Attrs::Diagonal(_)
            | Attrs::Number(_)
            | Attrs::Matmul { transpose_a: _, transpose_b: _ }
            | Attrs::Count(_)
            | Attrs::Descending(_)
            | Attrs::Right(_)
            | Attrs::Histogram { low: _, high: _, bins: _ }
            | Attrs::Window(_)
            | Attrs::Rotary { base: _, neighbours: _, back: _ }
            | Attrs::Smoothing(_)
            | Attrs::Normalize { epsilon: _, centered: _, groups: _ }
            | Attrs::Attention { scale: _, causal: _, masked: _ }
            | Attrs::Tile(_)
            | Attrs::Branch { key: _, updates: _ }
            | Attrs::Custom { args: _, results: _, saved: _, returns: _, exact: _ } => {}
        }
        attrs
    }

    /// The attributes of a call on a piece of its inputs, so that the result, which was `of` for the whole, has
    /// that length along an axis that runs along theirs: where they say the result's shape they say that length.
    #[must_use]
    pub fn of_piece(&self, of: &TensorType, axis: usize, len: &Dim) -> Attrs {
        let mut attrs = self.clone();
        match &mut attrs {
            Attrs::Shape(shape) => {
                if *shape == of.shape {
                    shape[axis] = len.clone();
                }
            }
            Attrs::Fill { shape, value: _, dtype: _ } => shape[axis] = len.clone(),
            Attrs::Slices(slices) => slices[axis].len = len.clone(),
            // A piece may have the length 1 where the whole has another.
            Attrs::Squeeze { all, axes: _ } => *all = false,
            Attrs::Place { slices, shape } => {
                slices[axis].len = len.clone();
                shape[axis] = len.clone();
            }
            // They say nothing of an axis that runs along the inputs' axes, or their ops have none that does.
            Attrs::None
            | Attrs::World(_)
            | Attrs::Blocks { world: _, shape: _ }
            | Attrs::Root { world: _, root: _ }
            | Attrs::Reduce { axes: _, keep_dims: _ }
            | Attrs::Norm { axes: _, keep_dims: _, power: _ }
            | Attrs::Axis(_)
            | Attrs::Axes(_)
            | Attrs::Scan { axis: _, exclusive: _, reverse: _ }
            | Attrs::Join { axis: _, parts: _ }
            | Attrs::Split { axis: _, lengths: _ }
            | Attrs::Pad { widths: _, padding: _ }
            | Attrs::Repeats(_)
            | Attrs::Repeat { axis: _, count: _ }
            | Attrs::Roll { axis: _, shift: _ }
            | Attrs::Order(_)
            | Attrs::DType(_)
            | Attrs::Range { start: _, step: _, len: _, dtype: _ }
            | Attrs::Random { key: _, distribution: _, dtype: _, shape: _ }
            | Attrs::Seeded { distribution: _, dtype: _, shape: _ }
            | Attrs::OneHot { depth: _, on: _, off: _, dtype: _ }
            | Attrs::Linspace { start: _, stop: _, len: _, dtype: _ }
            | Attrs::Eye { rows: _, columns: _, diagonal: _, dtype: _ }
            | Attrs::Diagonal(_)
            | Attrs::Diag { rows: _, columns: _, diagonal: _ }
            | Attrs::Lengths { of: _, dtype: _ }
            | Attrs::Number(_)
            | Attrs::Matmul { transpose_a: _, transpose_b: _ }
            | Attrs::Count(_)
            | Attrs::Descending(_)
            | Attrs::Right(_)
            | Attrs::Histogram { low: _, high: _, bins: _ }
            | Attrs::Window(_)
            | Attrs::Average(_)
            | Attrs::Conv(_)
            | Attrs::Resize(_)
            | Attrs::Rotary { base: _, neighbours: _, back: _ }
            | Attrs::Smoothing(_)
            | Attrs::Normalize { epsilon: _, centered: _, groups: _ }
            | Attrs::Attention { scale: _, causal: _, masked: _ }
            | Attrs::Tile(_)
            | Attrs::Branch { key: _, updates: _ }
            | Attrs::Loop(_)
            | Attrs::Custom { args: _, results: _, saved: _, returns: _, exact: _ }
            | Attrs::LoopGrad(_)
            | Attrs::Host { call: _, results: _ } => {}
        }
        attrs
    }
}

fn substitute_slices(slices: &mut [AxisSlice], find: &dyn Fn(&Symbol) -> Option<Dim>) {
    for AxisSlice { start, len, step: _ } in slices {
        *start = start.substitute(find);
        *len = len.substitute(find);
    }
}
