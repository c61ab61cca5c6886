//! The row: everything that the project knows about one op, in one struct without default values.
//!
//! Eager mode, tracing, the planner, the tape, the docs and the conformance tests all read it. A field
//! that is missing is a compile error, and "no gradient" has to be said, with its reason.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::attrs::Attrs;
use crate::emit::{Emit, Value};
use crate::error::Result;
use crate::grad::{Cotangent, GradCall, JvpCall};
use crate::graph::Graph;
use crate::layout::Layout;
use crate::recipe::Recipe;
pub use crate::save::{Save, Saved};
use crate::shape::TensorType;
use crate::tile::TileProgram;

/// The types of an op's outputs.
pub type Types = SmallVec<[TensorType; 1]>;

/// A call as far as types know it.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// The op's name, for errors.
    pub op: &'static str,
    /// Types of the inputs.
    pub inputs: &'a [TensorType],
    /// What the op is told besides.
    pub attrs: &'a Attrs,
    /// Bodies and branches, of an op that has them.
    pub regions: &'a [Arc<Graph>],
}

impl<'a> Call<'a> {
    /// A call without regions.
    pub fn new(op: &OpDef, inputs: &'a [TensorType], attrs: &'a Attrs) -> Call<'a> {
        Call { op: op.name, inputs, attrs, regions: &[] }
    }
}

/// One op.
pub struct OpDef {
    /// Its number in the table of ops, which the tables of kernels share.
    pub id: u16,
    /// In snake_case, the user's word.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Types of the outputs, or an error that names the op and both sides.
    pub infer: fn(&Call) -> Result<Types>,
    /// How axes of the outputs run along axes of the inputs.
    pub axes: fn(&Call) -> AxisMap,
    /// What it does to memory.
    pub mem: Mem,
    /// What its gradient saves.
    pub saves: Saves,
    /// May the planner recompute it.
    pub remat: Remat,
    /// What one run costs, from types.
    pub cost: fn(&Call) -> Cost,
    /// Backward mode.
    pub grad: Grad,
    /// Forward mode.
    pub jvp: Jvp,
    /// How it can fail once its types are right.
    pub fails: Fails,
    /// How it runs.
    pub lower: Lower,
    /// Types and attributes that drive the conformance tests.
    pub samples: fn() -> Vec<Sample>,
}

impl std::fmt::Debug for OpDef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

// A row is the op: two rows are the same where they are the same static.
impl PartialEq for OpDef {
    fn eq(&self, other: &OpDef) -> bool {
        std::ptr::eq(self, other)
    }
}
impl Eq for OpDef {}

/// What an op does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mem {
    /// Fresh bytes for every output.
    Alloc,
    /// May take over the bytes of one of these inputs, if it dies here and has the output's type.
    Reuse(&'static [usize]),
    /// No bytes: another layout over that input's.
    View(usize),
    /// No bytes until it is read.
    Recipe,
    /// Writes into that input, a variable, which the output then is.
    Update(usize),
    /// No bytes but a few to work in: the output goes to a file as it is made, and is read from there.
    File,
    /// Decided by what its regions do.
    Regions,
}

/// What a gradient saves.
#[derive(Clone, Copy)]
pub struct Saves {
    /// Sets of values, any one of which is enough; the cheapest is saved. One empty set: types only.
    pub alternatives: &'static [&'static [Saved]],
    /// Types of the extra outputs.
    pub aux: fn(&Call) -> Result<Types>,
}

impl Saves {
    /// Types only.
    pub const NOTHING: Saves = Saves { alternatives: &[&[]], aux: no_aux };

    /// One of these sets; no extra outputs.
    pub const fn one_of(alternatives: &'static [&'static [Saved]]) -> Saves {
        Saves { alternatives, aux: no_aux }
    }
}

/// What one alternative saves of a call where the gradients of these inputs are wanted, one by one; `twice`:
/// where the gradient may be differentiated itself.
pub fn saved_values(
    op: &OpDef,
    alternative: &[Saved],
    needs: &[bool],
    call: &Call,
    twice: bool,
) -> Result<SmallVec<[Save; 2]>> {
    let mut all: SmallVec<[Save; 2]> = SmallVec::new();
    for saved in alternative.iter().filter(|s| s.is_for(needs)) {
        match (saved.save, call.attrs) {
            (Save::Inputs, _) => all.extend((0..needs.len()).map(Save::Input)),
            (Save::Ends, Attrs::Loop(spec)) => all.extend((0..spec.carried).map(Save::Output)),
            (Save::Auxes, _) => all.extend((0..(op.saves.aux)(call)?.len()).map(Save::Aux)),
            (Save::Declared, Attrs::Custom { args, saved, .. }) => {
                all.extend(saved.iter().copied());
                // What its user's rule does not speak of is differentiated from the inputs.
                if twice || needs.get(*args..).is_some_and(|rest| rest.contains(&true)) {
                    let inputs = (0..needs.len()).map(Save::Input);
                    all.extend(inputs.filter(|input| !saved.contains(input)));
                }
            }
            (Save::Ends | Save::Declared, _) => {}
            (save, _) => all.push(save),
        }
    }
    Ok(all)
}

/// For rows without extra outputs.
pub fn no_aux(_: &Call) -> Result<Types> {
    Ok(Types::new())
}

/// May the planner recompute it rather than hold it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remat {
    /// Gladly: about as cheap as reading it.
    Cheap,
    /// If it must.
    Costly,
    /// No: it has an effect.
    Never,
}

/// What one run of an op takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Floating-point operations.
    pub flops: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// Bytes that a rank sends to others; of ranks that send different amounts, the most.
    pub sent: u64,
    /// The messages that they are sent in.
    pub messages: u64,
}

impl Cost {
    /// Work of which nothing is sent.
    pub const fn local(flops: u64, bytes: u64) -> Cost {
        Cost { flops, bytes, sent: 0, messages: 0 }
    }

    /// Two costs, field by field.
    #[must_use]
    pub fn with(self, other: Cost, join: fn(u64, u64) -> u64) -> Cost {
        Cost {
            flops: join(self.flops, other.flops),
            bytes: join(self.bytes, other.bytes),
            sent: join(self.sent, other.sent),
            messages: join(self.messages, other.messages),
        }
    }

    /// That of so many runs.
    #[must_use]
    pub fn times(self, runs: u64) -> Cost {
        let all = Cost { flops: runs, bytes: runs, sent: runs, messages: runs };
        self.with(all, u64::saturating_mul)
    }
}

/// A backward rule: gradients of the outputs in, gradients of the inputs out; `None` is zero.
pub type GradRule = fn(&mut dyn Emit, &GradCall) -> Result<Vec<Option<Cotangent>>>;

/// A forward rule: tangents of the inputs in, tangents of the outputs out; `None` is zero.
pub type JvpRule = fn(&mut dyn Emit, &JvpCall) -> Result<Vec<Option<Value>>>;

/// A forward rule that makes the results too: outputs, then their tangents; `None` is zero.
pub type PairRule = fn(&mut dyn Emit, &JvpCall) -> Result<(Vec<Value>, Vec<Option<Value>>)>;

/// Backward mode of an op.
#[derive(Clone, Copy)]
pub enum Grad {
    /// It has one.
    Rule(GradRule),
    /// It has none, and why.
    Stop(&'static str),
}

/// Forward mode of an op.
#[derive(Clone, Copy)]
pub enum Jvp {
    /// It has one of its own.
    Rule(JvpRule),
    /// It is linear in each of these groups of inputs while the others stand still: its tangent is the
    /// op itself on the tangents of a group, added up over the groups. A sum is linear in both inputs
    /// together (one group), a product in each alone (two groups). No groups at all: in all inputs together,
    /// of an op that takes any number.
    Linear(&'static [&'static [usize]]),
    /// Its Jacobian is symmetric, as that of every elementwise function of one input is: the backward
    /// rule, given the tangent, makes the tangent.
    Symmetric,
    /// Results and tangents come of one run, in place of the op: bodies and branches.
    Together(PairRule),
    /// It is the transpose of the transpose: derived from the backward rule.
    FromGrad,
    /// It has none, and why.
    Stop(&'static str),
}

/// How an op can fail once its types are right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fails {
    /// It can't.
    Never,
    /// On values: an index out of range, a singular matrix, an assertion.
    OnData,
    /// On files.
    OnIo,
}

/// Which control flow an op is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Region {
    /// One of several branches.
    Branch,
    /// A condition and a body.
    Loop,
    /// The gradient of a loop.
    LoopGrad,
}

/// How a value goes to a file and back, on the disk lane: each way is begun by one step and waited for by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transfer {
    /// Its bytes begin to be written.
    Write,
    /// They are in the file: its memory may serve others.
    Written,
    /// They begin to be read back, into memory of their own.
    Read,
    /// They are there.
    Arrived,
}

/// A composite op in terms of others.
pub type Expand = fn(&mut dyn Emit, &Call, Vec<Value>) -> Result<Vec<Value>>;

/// How an op runs.
#[derive(Clone, Copy)]
pub enum Lower {
    /// As a tile program; with the aux outputs as further stores where `true` is passed.
    Tile(fn(&Call, bool) -> Result<TileProgram>),
    /// By a kernel of the device that it runs on.
    Kernel,
    /// As other ops.
    Composite(Expand),
    /// By the executor, which runs its regions.
    Region(Region),
    /// By the executor, between memory and a file. The planner alone makes such nodes.
    Transfer(Transfer),
    /// Not at all: another layout of its first input, or `None` where that takes a copy.
    View(fn(&Call, &Layout) -> Option<Layout>),
    /// Not until it is read.
    Recipe(fn(&Call) -> Result<Recipe>),
}

/// What an output axis runs along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisOf {
    /// These input axes, as `(input, axis)`: running the op on pieces along all of them and joining
    /// the results along this axis gives the whole. Inputs that are not named go in whole.
    Along(SmallVec<[(usize, usize); 2]>),
    /// Nothing that could be cut.
    Mixed,
}

/// How the axes of an op's outputs run along those of its inputs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AxisMap {
    /// For each output, for each of its axes.
    pub outputs: Vec<Vec<AxisOf>>,
    /// Groups of input axes, as `(input, axis)`: running the op on pieces along all axes of a group
    /// and adding up the results gives the whole.
    pub summed: Vec<SmallVec<[(usize, usize); 2]>>,
}

/// An input of a sample.
#[derive(Debug, Clone)]
pub struct SampleInput {
    /// Its type.
    pub ty: TensorType,
    /// What values to draw.
    pub values: Values,
}

/// What values a sample draws.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// Around zero, with both signs.
    Normal,
    /// Between these.
    Between(f64, f64),
    /// Whole numbers from 0 up to, without, this.
    Below(usize),
    /// A batch of symmetric positive definite matrices.
    PositiveDefinite,
    /// A batch of square matrices far from having no inverse, whose largest elements are not on the diagonal.
    Invertible,
}

/// Types and attributes to test an op with.
#[derive(Debug, Clone)]
pub struct Sample {
    /// The inputs.
    pub inputs: Vec<SampleInput>,
    /// What it is told besides.
    pub attrs: Attrs,
    /// Bodies and branches.
    pub regions: Vec<Arc<Graph>>,
}

impl Sample {
    /// Inputs of these types with values around zero.
    pub fn of(types: &[TensorType], attrs: Attrs) -> Sample {
        let inputs =
            types.iter().map(|ty| SampleInput { ty: ty.clone(), values: Values::Normal }).collect();
        Sample { inputs, attrs, regions: Vec::new() }
    }

    /// The same with other values for one input.
    #[must_use]
    pub fn with(mut self, input: usize, values: Values) -> Sample {
        self.inputs[input].values = values;
        self
    }
}
