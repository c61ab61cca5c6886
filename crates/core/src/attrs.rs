//! What an op is told besides its inputs: a typed, serializable enum.
//!
//! Variants are named by what they say, not by who reads them; several ops share one.

use serde::Serialize;

use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::layout::Slice;
use crate::recipe::{Distribution, Key};
use crate::scalar::Scalar;
use crate::shape::{Shape, Sizes};
use crate::tile::TileProgram;
use crate::window::{Average, Conv, Window};

/// A part of one axis; the lengths may be symbolic.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct AxisSlice {
    /// Position of the first element.
    pub start: Dim,
    /// How many elements.
    pub len: Dim,
    /// From one to the next; negative walks backwards; not 0.
    pub step: isize,
}

impl AxisSlice {
    /// All of an axis.
    pub fn all(len: Dim) -> AxisSlice {
        AxisSlice { start: Dim::Known(0), len, step: 1 }
    }

    /// As numbers, once they are known.
    pub fn known(&self) -> Option<Slice> {
        Some(Slice { start: self.start.known()?, len: self.len.known()?, step: self.step })
    }
}

/// The attributes of one op call.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub enum Attrs {
    /// Nothing more to say.
    #[default]
    None,
    /// Axes counted from the front, sorted, and whether they stay as lengths of 1.
    Reduce {
        /// Which axes.
        axes: Sizes,
        /// Kept as lengths of 1.
        keep_dims: bool,
    },
    /// One axis, counted from the front.
    Axis(usize),
    /// All axes, in their new order.
    Order(Sizes),
    /// A part of every axis.
    Slices(Vec<AxisSlice>),
    /// Where a part goes, one entry an axis, in a whole of that shape.
    Place {
        /// The part.
        slices: Vec<AxisSlice>,
        /// The whole.
        shape: Shape,
    },
    /// A shape to take on.
    Shape(Shape),
    /// A dtype to take on.
    DType(DType),
    /// A value everywhere.
    Fill {
        /// The value.
        value: Scalar,
        /// Of the result.
        dtype: DType,
        /// Of the result.
        shape: Shape,
    },
    /// Counting up or down.
    Range {
        /// The first.
        start: Scalar,
        /// From one to the next.
        step: Scalar,
        /// How many.
        len: Dim,
        /// Of the result.
        dtype: DType,
    },
    /// Random numbers.
    Random {
        /// Which ones.
        key: Key,
        /// How they are spread.
        distribution: Distribution,
        /// Of the result.
        dtype: DType,
        /// Of the result.
        shape: Shape,
    },
    /// Which operands of a matrix product are transposed.
    Matmul {
        /// The left one.
        transpose_a: bool,
        /// The right one.
        transpose_b: bool,
    },
    /// How many.
    Count(usize),
    /// Windows of an image.
    Window(Box<Window>),
    /// Means of the windows of an image.
    Average(Box<Average>),
    /// Filters under the windows of an image.
    Conv(Box<Conv>),
    /// How much of a label is spread evenly over all classes.
    Smoothing(Scalar),
    /// Numbers brought to a mean of 0 and a deviation of 1.
    Normalize {
        /// Added to the variance, so that nothing is divided by 0.
        epsilon: Scalar,
        /// The mean is taken away first.
        centered: bool,
        /// Into so many groups the channels are cut, each of which has a mean of its own.
        groups: usize,
    },
    /// Attention of queries to keys.
    Attention {
        /// What products of queries and keys are multiplied by.
        scale: Scalar,
        /// The last query sees all keys, and each one before it one fewer.
        causal: bool,
        /// A mask is the last input.
        masked: bool,
    },
    /// An elementwise chain.
    Tile(Box<TileProgram>),
    /// A loop.
    Loop {
        /// Inputs that the body changes; the rest it only reads.
        carried: usize,
        /// Stop after so many rounds, whatever the condition says.
        most: Option<u64>,
    },
    /// The gradient of a loop.
    LoopGrad {
        /// Inputs that the body changes.
        carried: usize,
        /// Carried states that are kept at once; `None`: the planner decides.
        slots: Option<usize>,
        /// Which carried inputs have a gradient.
        active: Vec<bool>,
        /// Which inputs that the body only reads have a gradient.
        wanted: Vec<bool>,
        /// As of the loop itself.
        most: Option<u64>,
    },
}

impl Attrs {
    /// The attributes with symbols replaced where `find` knows better.
    #[must_use]
    pub fn substitute(&self, find: &dyn Fn(&Symbol) -> Option<Dim>) -> Attrs {
        let mut attrs = self.clone();
        match &mut attrs {
            Attrs::Shape(shape) | Attrs::Fill { shape, .. } | Attrs::Random { shape, .. } => {
                *shape = shape.substitute(find);
            }
            Attrs::Slices(slices) => substitute_slices(slices, find),
            Attrs::Place { slices, shape } => {
                substitute_slices(slices, find);
                *shape = shape.substitute(find);
            }
            Attrs::Range { len, .. } => *len = len.substitute(find),
            Attrs::Conv(conv) => conv.image = conv.image.substitute(find),
            Attrs::Average(average) => average.image = average.image.substitute(find),
            _ => {}
        }
        attrs
    }
}

fn substitute_slices(slices: &mut [AxisSlice], find: &dyn Fn(&Symbol) -> Option<Dim>) {
    for slice in slices {
        slice.start = slice.start.substitute(find);
        slice.len = slice.len.substitute(find);
    }
}
