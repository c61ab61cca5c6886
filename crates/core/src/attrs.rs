//! What an op is told besides its inputs: a typed, serializable enum.
//!
//! Variants are named by what they say, not by who reads them; several ops share one.

use serde::Serialize;

use crate::dim::{Dim, Symbol};
use crate::dtype::DType;
use crate::layout::Slice;
use crate::looping::{Loop, LoopGrad};
use crate::recipe::{Distribution, Key};
use crate::scalar::Scalar;
use crate::shape::{Shape, Sizes};
use crate::tile::TileProgram;
use crate::window::{Conv, Window};

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
    /// A length, or a number of elements, as a number.
    Size {
        /// Which.
        size: Dim,
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
    /// Filters under the windows of an image.
    Conv(Box<Conv>),
    /// An elementwise chain.
    Tile(Box<TileProgram>),
    /// Branches.
    Branch {
        /// What random ops in them are made of, so that a branch that is run again draws the same; `None`: the
        /// numbers of what is around it, as if there were no branch.
        key: Option<Key>,
        /// Inputs that are variables, each with the output that is written into its bytes. The planner's
        /// word: in a graph as it is traced there are none.
        updates: Vec<(usize, usize)>,
    },
    /// A loop.
    Loop(Box<Loop>),
    /// The gradient of a loop.
    LoopGrad(Box<LoopGrad>),
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
            Attrs::Size { size, .. } => *size = size.substitute(find),
            Attrs::Conv(conv) => conv.image = conv.image.substitute(find),
            Attrs::Loop(spec) => **spec = spec.substitute(find),
            Attrs::LoopGrad(spec) => **spec = spec.substitute(find),
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
