//! Tile programs as data: a list over a closed set of scalar primitives.
//!
//! A program runs once for every element of its domain. It loads values, computes on registers, and
//! either stores one value an element or reduces them over some axes. Nothing here runs: the CPU
//! interprets the list over tiles (`ops::tile`), another device would compile the same list.
//!
//! Registers are numbered: first one for each load, then one for each instruction. 16-bit floats are
//! widened to f32 as they are loaded and rounded as they are stored.

use std::fmt;

use serde::{Deserialize, Serialize};
use smallvec::SmallVec;

use crate::dtype::DType;
use crate::heap::{Heap, Seen, nothing};
use crate::scalar::Scalar;
use crate::shape::Sizes;

/// A register: the value of a load or of an instruction.
pub type Reg = u16;

/// How the elements of a tensor stand in its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Form {
    /// One after the other.
    Elements(DType),
    /// Booleans, eight to a byte, lowest bit first, in logical order over the whole domain.
    Bits,
}

impl Form {
    /// The dtype of a register that holds it.
    pub fn register(self) -> DType {
        match self {
            Form::Elements(dtype) => dtype.compute(),
            Form::Bits => DType::Bool,
        }
    }
}

/// One scalar operation. Operands and result have the instruction's dtype unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(missing_docs, reason = "named as the ops that users call; what is special is said")]
pub enum Prim {
    /// The same number for every element.
    Const(Scalar),
    // One operand.
    Neg,
    Abs,
    Sign,
    Floor,
    Ceil,
    /// To the nearest, halves to even.
    Round,
    Sqrt,
    Rsqrt,
    Square,
    Reciprocal,
    Exp,
    Expm1,
    Log,
    Log1p,
    Sin,
    Cos,
    Tan,
    Asin,
    Acos,
    Atan,
    Sinh,
    Cosh,
    Tanh,
    Asinh,
    Acosh,
    Atanh,
    Sigmoid,
    Softplus,
    /// `x * sigmoid(x)`
    Silu,
    /// `x * (1 + erf(x / sqrt(2))) / 2`
    Gelu,
    /// [`Prim::Gelu`] by a hyperbolic tangent: `x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x^3))`.
    GeluTanh,
    Erf,
    Erfc,
    /// The logarithm of the absolute value of the gamma function.
    Lgamma,
    /// The slope of [`Prim::Lgamma`].
    Digamma,
    /// Bitwise for integers, logical for booleans.
    Not,
    /// Gives a boolean.
    IsNan,
    /// Gives a boolean.
    IsInf,
    /// Gives a boolean.
    IsFinite,
    /// To another dtype, as Rust's `as`: cut off towards zero, kept within the range; to a 16-bit float:
    /// rounded once, and held as the f32 that it then is.
    Cast(DType),
    /// Rounded to a 16-bit float and back, so that a fused chain gives the bits of the single ops.
    RoundTo(DType),
    // Two operands.
    Add,
    Sub,
    Mul,
    /// Integers: cut off towards zero, and 0 where the divisor is 0.
    Div,
    FloorDiv,
    Mod,
    Pow,
    /// NaN wins.
    Max,
    /// NaN wins.
    Min,
    Atan2,
    Hypot,
    /// The slope of [`Prim::Digamma`], as many slopes of slopes as the left operand says: 1 for the first.
    Polygamma,
    And,
    Or,
    Xor,
    Shl,
    Shr,
    /// These six give a boolean.
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    // Three operands.
    /// A boolean chooses between two values.
    Select,
    /// `a * b + c`, rounded once where the machine can.
    Fma,
}

impl Prim {
    /// How many operands it takes.
    pub fn arity(self) -> usize {
        use Prim::*;
        match self {
            Const(_) => 0,
            Select | Fma => 3,
            Add | Sub | Mul | Div | FloorDiv | Mod | Pow | Max | Min | Atan2 | Hypot
            | Polygamma | And | Or | Xor | Shl | Shr | Eq | Ne | Lt | Le | Gt | Ge => 2,
            _ => 1,
        }
    }

    /// The dtype of the result, for operands of that dtype.
    pub fn result(self, dtype: DType) -> DType {
        use Prim::*;
        match self {
            Eq | Ne | Lt | Le | Gt | Ge | IsNan | IsInf | IsFinite => DType::Bool,
            Cast(to) => to.compute(),
            _ => dtype,
        }
    }

    /// Rough cost in floating-point operations an element.
    pub fn flops(self) -> u64 {
        use Prim::*;
        match self {
            Const(_) | Cast(_) | RoundTo(_) => 0,
            Exp | Expm1 | Log | Log1p | Sin | Cos | Tanh | Sigmoid | Silu => 10,
            Tan | Asin | Acos | Atan | Sinh | Cosh | Asinh | Acosh | Atanh | Softplus | Gelu
            | GeluTanh | Erf | Erfc | Pow | Atan2 | Hypot => 30,
            Lgamma | Digamma => 100,
            Polygamma => 300,
            Div | FloorDiv | Mod | Sqrt | Rsqrt | Reciprocal => 4,
            Fma => 2,
            _ => 1,
        }
    }
}

/// A primitive, the dtype that it computes in (never a 16-bit float), and its operands.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Instr {
    /// What to do.
    pub prim: Prim,
    /// Dtype of the operands (for `Select`: of the two values; for `Const`: of the result).
    pub dtype: DType,
    /// As many as the primitive takes.
    pub args: SmallVec<[Reg; 3]>,
}

impl Instr {
    /// Dtype of the register that it defines.
    pub fn result(&self) -> DType {
        self.prim.result(self.dtype)
    }
}

/// How many values become one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduction {
    /// Added up: floats by a fixed tree with partial sums of at least f64's precision above blocks,
    /// integers wrapping.
    Sum,
    /// Added up as [`Reduction::Sum`] and divided by how many there are before it is rounded to the dtype, a
    /// float; of nothing: NaN.
    Mean,
    /// Multiplied.
    Prod,
    /// The largest; NaN wins; of nothing: the least value of the dtype.
    Max,
    /// The least; NaN wins; of nothing: the largest value of the dtype.
    Min,
    /// True where one is.
    Any,
    /// True where all are.
    All,
}

/// What becomes of a register at the end.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Close {
    /// Each store takes the domain's shape.
    Store,
    /// The only store is reduced over these axes of the domain (sorted).
    #[serde(rename = "Fold")]
    Reduce {
        /// How.
        #[serde(rename = "fold")]
        reduction: Reduction,
        /// Over which axes.
        axes: Sizes,
    },
}

/// A whole program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TileProgram {
    /// The form of each input; input `i` becomes register `i`.
    pub loads: SmallVec<[Form; 2]>,
    /// Instruction `i` defines register `loads.len() + i` and reads lower ones.
    pub code: SmallVec<[Instr; 2]>,
    /// Registers that leave, and the form that they leave in.
    pub stores: SmallVec<[(Reg, Form); 1]>,
    /// Stored or reduced.
    pub close: Close,
}

impl TileProgram {
    /// A program that loads inputs of these dtypes and does nothing yet.
    #[inline]
    pub fn loading(dtypes: &[DType]) -> TileProgram {
        let mut loads = SmallVec::new();
        for dtype in dtypes {
            loads.push(Form::Elements(*dtype));
        }
        TileProgram { loads, code: SmallVec::new(), stores: SmallVec::new(), close: Close::Store }
    }

    /// Dtype of a register.
    #[inline]
    pub fn register(&self, reg: Reg) -> DType {
        let reg = reg as usize;
        match self.loads.get(reg) {
            Some(form) => form.register(),
            None => self.code[reg - self.loads.len()].result(),
        }
    }

    /// Adds an instruction that computes in the dtype of its last operand.
    pub fn push(&mut self, prim: Prim, args: &[Reg]) -> Reg {
        let dtype = args.last().map_or(DType::F32, |r| self.register(*r));
        self.push_as(prim, dtype, args)
    }

    /// Adds an instruction that computes in that dtype.
    #[inline]
    pub fn push_as(&mut self, prim: Prim, dtype: DType, args: &[Reg]) -> Reg {
        debug_assert_eq!(prim.arity(), args.len(), "{prim:?}");
        self.code.push(Instr { prim, dtype: dtype.compute(), args: args.into() });
        (self.loads.len() + self.code.len() - 1) as Reg
    }

    /// Adds a constant of that dtype.
    pub fn constant(&mut self, value: impl Into<Scalar>, dtype: DType) -> Reg {
        self.push_as(Prim::Const(value.into()), dtype, &[])
    }

    /// Lets a register leave as a tensor of that dtype.
    pub fn store(&mut self, reg: Reg, dtype: DType) {
        self.stores.push((reg, Form::Elements(dtype)));
    }

    /// Lets a boolean register leave as bits.
    pub fn store_bits(&mut self, reg: Reg) {
        self.stores.push((reg, Form::Bits));
    }

    /// Reduces the only store over axes of the domain.
    pub fn reduce(&mut self, reduction: Reduction, axes: &[usize]) {
        self.close = Close::Reduce { reduction, axes: axes.into() };
    }

    /// A program of one instruction over inputs that are first converted to `compute`.
    #[inline]
    pub fn single(prim: Prim, inputs: &[DType], compute: DType, out: DType) -> TileProgram {
        let mut program = TileProgram::loading(inputs);
        let to = compute.compute();
        let mut args: SmallVec<[Reg; 3]> = SmallVec::new();
        for reg in 0..inputs.len() as Reg {
            let held = program.register(reg) == to;
            args.push(if held { reg } else { program.push(Prim::Cast(to), &[reg]) });
        }
        let result = program.push_as(prim, compute, &args);
        program.store(result, out);
        program
    }

    /// Rough cost in floating-point operations an element.
    pub fn flops(&self) -> u64 {
        let reduction = matches!(self.close, Close::Reduce { .. }) as u64;
        self.code.iter().map(|i| i.prim.flops()).sum::<u64>() + reduction
    }
}

impl fmt::Display for TileProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, instr) in self.code.iter().enumerate() {
            if i > 0 {
                f.write_str("; ")?;
            }
            write!(f, "r{} = {:?}", self.loads.len() + i, instr.prim)?;
            for (j, arg) in instr.args.iter().enumerate() {
                write!(f, "{}r{arg}", if j == 0 { " " } else { ", " })?;
            }
        }
        if let Close::Reduce { reduction, axes } = &self.close {
            write!(f, "; {reduction:?} over {axes:?}")?;
        }
        Ok(())
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

nothing!(Form);
