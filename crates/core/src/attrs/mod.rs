//! What an op is told besides its inputs: a typed, serializable enum.
//!
//! Variants are named by what they say, not by who reads them; several ops share one.

mod heap;
mod substitute;

use std::sync::Arc;

use serde::Serialize;

use crate::dim::Dim;
use crate::dtype::DType;
use crate::grad::returned::Returned;
use crate::host::HostCall;
use crate::layout::Slice;
use crate::looping::{Loop, LoopGrad};
use crate::recipe::{Distribution, Key};
use crate::save::Save;
use crate::scalar::Scalar;
use crate::shape::{Shape, Sizes, TensorType};
use crate::tile::TileProgram;
use crate::window::{Average, Conv, Resize, Window};
use crate::world::World;

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

/// What stands around a tensor that is padded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum PadMode {
    /// The same number everywhere.
    Constant(Scalar),
    /// The tensor as in a mirror that stands on its outermost elements: `c b | a b c | b a`.
    Reflect,
    /// The tensor as in a mirror that stands beside its outermost elements: `b a | a b c | c b`.
    Symmetric,
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
    /// As `Reduce`, and the power that lengths are measured in.
    Norm {
        /// Which axes.
        axes: Sizes,
        /// Kept as lengths of 1.
        keep_dims: bool,
        /// 1 or more; 2 is Euclid's.
        power: Scalar,
    },
    /// One axis, counted from the front.
    Axis(usize),
    /// Several axes, counted from the front, sorted.
    Axes(Sizes),
    /// Axes of length 1 that go, counted from the front and sorted.
    Squeeze {
        /// Which.
        axes: Sizes,
        /// Whether they are all there are: an axis whose length was open while tracing must then have another.
        all: bool,
    },
    /// Along one axis, with or without the element itself, from either end.
    Scan {
        /// Which axis.
        axis: usize,
        /// Each result leaves its own element out.
        exclusive: bool,
        /// From the last element to the first.
        reverse: bool,
    },
    /// This many tensors along one axis of the result.
    Join {
        /// Which axis.
        axis: usize,
        /// How many.
        parts: usize,
    },
    /// Cut along one axis into pieces of these lengths.
    Split {
        /// Which axis.
        axis: usize,
        /// Of the pieces, in order.
        lengths: Vec<Dim>,
    },
    /// Elements around a tensor.
    Pad {
        /// How many before and behind, for each axis.
        widths: Vec<[usize; 2]>,
        /// What they are.
        padding: PadMode,
    },
    /// How often each axis is repeated as a whole.
    Repeats(Sizes),
    /// How often each element along an axis is repeated.
    Repeat {
        /// Which axis.
        axis: usize,
        /// How often.
        count: usize,
    },
    /// Moved along an axis, with what falls off one end coming in at the other.
    Roll {
        /// Which axis.
        axis: usize,
        /// By how many, towards the end; negative towards the front.
        shift: i64,
    },
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
    /// Random numbers of a seed that is an input.
    Seeded {
        /// How they are spread.
        distribution: Distribution,
        /// Of the result.
        dtype: DType,
        /// Of the result.
        shape: Shape,
    },
    /// A number at the positions that indices name, another one elsewhere.
    OneHot {
        /// How many positions.
        depth: Dim,
        /// At the position.
        on: Scalar,
        /// Elsewhere.
        off: Scalar,
        /// Of the result.
        dtype: DType,
    },
    /// Numbers at even distances, both ends included.
    Linspace {
        /// The first.
        start: Scalar,
        /// The last.
        stop: Scalar,
        /// How many.
        len: Dim,
        /// Of the result.
        dtype: DType,
    },
    /// A matrix with ones on a diagonal.
    Eye {
        /// Its rows.
        rows: Dim,
        /// Its columns.
        columns: Dim,
        /// Which diagonal: 0 is the main one, 1 the one above it, -1 the one below.
        diagonal: i64,
        /// Of the result.
        dtype: DType,
    },
    /// A diagonal of matrices: 0 is the main one, 1 the one above it, -1 the one below.
    Diagonal(i64),
    /// A diagonal in matrices of that size.
    Diag {
        /// Their rows.
        rows: Dim,
        /// Their columns.
        columns: Dim,
        /// Which diagonal.
        diagonal: i64,
    },
    /// Lengths as numbers.
    Lengths {
        /// Which ones.
        of: Shape,
        /// Of the numbers.
        dtype: DType,
    },
    /// One number.
    Number(Scalar),
    /// Which operands of a matrix product are transposed.
    Matmul {
        /// The left one.
        transpose_a: bool,
        /// The right one.
        transpose_b: bool,
    },
    /// How many.
    Count(usize),
    /// Whether the largest comes first.
    Descending(bool),
    /// Whether behind elements that are equal, not before them.
    Right(bool),
    /// Even parts of a range.
    Histogram {
        /// The lower end.
        low: Scalar,
        /// The upper end.
        high: Scalar,
        /// How many parts.
        bins: usize,
    },
    /// Windows of an image.
    Window(Box<Window>),
    /// Means of the windows of an image.
    Average(Box<Average>),
    /// Filters under the windows of an image.
    Conv(Box<Conv>),
    /// An image of another size.
    Resize(Box<Resize>),
    /// Pairs of elements rotated by angles that grow with their position.
    Rotary {
        /// The angle of pair `i` of `n` at position `p` is `p / base^(i / n)`.
        base: Scalar,
        /// Pairs are neighbours, rather than one of each half.
        neighbours: bool,
        /// Rotated back.
        back: bool,
    },
    /// How much of a label is spread evenly over all classes.
    Smoothing(Scalar),
    /// Numbers brought to a mean of 0 and a deviation of 1.
    Normalize {
        /// Added to the variance, so that nothing is divided by 0.
        epsilon: Scalar,
        /// The mean is taken away first.
        centered: bool,
        /// How many groups the channels are cut into, each with a mean of its own.
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
    /// Branches.
    Branch {
        /// What random ops in them are made of, so that a branch that is recomputed draws the same; `None`: the
        /// numbers of what is around it, as if there were no branch.
        key: Option<Key>,
        /// Inputs that are variables, each with the output that is written into its bytes. The planner's
        /// word: in a graph as it is traced there are none.
        updates: Vec<(usize, usize)>,
    },
    /// A loop.
    Loop(Box<Loop>),
    /// A graph with a gradient that its user wrote.
    Custom {
        /// Inputs that the user's gradient speaks of; the rest it only captured.
        args: usize,
        /// Outputs that are results; the rest is saved for the backward pass.
        results: usize,
        /// What the user's gradient reads.
        saved: Vec<Save>,
        /// What it returns for each of the inputs that it speaks of.
        returns: Vec<Returned>,
        /// Whether it is the derivative of the graph, and not another one that its user prefers.
        exact: bool,
    },
    /// The gradient of a loop.
    LoopGrad(Box<LoopGrad>),
    /// A closure of the program around.
    Host {
        /// The closure.
        call: Arc<HostCall>,
        /// Types of what it returns.
        results: Vec<TensorType>,
    },
    /// The ranks that work together.
    World(World),
    /// The ranks that hold the blocks of a tensor.
    Blocks {
        /// All of them.
        world: World,
        /// The shape of the whole.
        shape: Shape,
    },
    /// One of them.
    Root {
        /// All of them.
        world: World,
        /// That one.
        root: usize,
    },
}
