//! Small elementwise programs, as gradient rules and composites write them: one pass over their inputs, in
//! eager mode too, and nothing in between. They run as [`FUSED`], whose own gradient is derived from its
//! program, so what is written here can be differentiated again.
//!
//! Decision: `docs/decisions/gradients-of-elementwise-ops.md`.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::tile::{Form, Prim, Reduction, Reg, TileProgram};
use tonnage_core::{DType, Scalar, Shape, Sizes, TensorType};

use super::fused::FUSED;
use crate::emit;

/// A program in the making.
pub struct Chain {
    program: TileProgram,
}

impl Chain {
    /// A whole program: loads of these dtypes, one store, and bits where `build` gives a boolean for them.
    pub fn program<const N: usize>(
        loads: [DType; N],
        store: DType,
        build: impl FnOnce(&mut Chain, [Reg; N]) -> (Reg, Option<Reg>),
    ) -> TileProgram {
        let mut chain = Chain { program: TileProgram::loading(&loads) };
        let (made, bits) = build(&mut chain, std::array::from_fn(|i| i as Reg));
        chain.program.store(made, store);
        if let Some(truth) = bits {
            chain.program.store_bits(truth);
        }
        chain.program
    }

    /// What a register holds.
    pub fn dtype(&self, reg: Reg) -> DType {
        self.program.register(reg)
    }

    /// A primitive of one operand.
    pub fn one(&mut self, prim: Prim, a: Reg) -> Reg {
        self.program.push(prim, &[a])
    }

    /// A primitive of two operands of one dtype.
    pub fn two(&mut self, prim: Prim, a: Reg, b: Reg) -> Reg {
        self.program.push(prim, &[a, b])
    }

    /// A number, in the dtype of a value beside it.
    pub fn number(&mut self, value: impl Into<Scalar>, like: Reg) -> Reg {
        let dtype = self.program.register(like);
        self.program.constant(value, dtype)
    }

    /// A number of that dtype.
    pub fn constant(&mut self, value: impl Into<Scalar>, dtype: DType) -> Reg {
        self.program.constant(value, dtype)
    }

    /// `a + b`
    pub fn add(&mut self, a: Reg, b: Reg) -> Reg {
        self.two(Prim::Add, a, b)
    }

    /// `a - b`
    pub fn sub(&mut self, a: Reg, b: Reg) -> Reg {
        self.two(Prim::Sub, a, b)
    }

    /// `a * b`
    pub fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.two(Prim::Mul, a, b)
    }

    /// `a / b`
    pub fn div(&mut self, a: Reg, b: Reg) -> Reg {
        self.two(Prim::Div, a, b)
    }

    /// `-a`
    pub fn neg(&mut self, a: Reg) -> Reg {
        self.one(Prim::Neg, a)
    }

    /// `a * value`
    pub fn times(&mut self, a: Reg, value: impl Into<Scalar>) -> Reg {
        let value = self.number(value, a);
        self.mul(a, value)
    }

    /// `a + value`
    pub fn plus(&mut self, a: Reg, value: impl Into<Scalar>) -> Reg {
        let value = self.number(value, a);
        self.add(a, value)
    }

    /// `a * b + c`
    pub fn fma(&mut self, a: Reg, b: Reg, c: Reg) -> Reg {
        self.program.push(Prim::Fma, &[a, b, c])
    }

    /// A comparison, or another primitive, with a number on the right.
    pub fn with(&mut self, prim: Prim, a: Reg, value: impl Into<Scalar>) -> Reg {
        let value = self.number(value, a);
        self.two(prim, a, value)
    }

    /// `yes` where the boolean is true, `no` elsewhere.
    pub fn select(&mut self, choice: Reg, yes: Reg, no: Reg) -> Reg {
        self.program.push(Prim::Select, &[choice, yes, no])
    }

    /// `yes` where the boolean is true, 0 elsewhere.
    pub fn or_zero(&mut self, choice: Reg, yes: Reg) -> Reg {
        let zero = self.number(0, yes);
        self.select(choice, yes, zero)
    }

    /// 0 where the boolean is true, `no` elsewhere.
    pub fn zero_or(&mut self, choice: Reg, no: Reg) -> Reg {
        let zero = self.number(0, no);
        self.select(choice, zero, no)
    }

    /// A gradient times a slope, made as `product`, and 0 where the gradient is 0 and the slope is infinite or NaN.
    pub fn zero_if_unused(&mut self, grad: Reg, product: Reg) -> Reg {
        zero_if_unused(&mut self.program, grad, product)
    }

    /// In another dtype, if it is not already.
    pub fn cast(&mut self, a: Reg, dtype: DType) -> Reg {
        match self.program.register(a) == dtype.compute() {
            true => a,
            false => self.one(Prim::Cast(dtype.compute()), a),
        }
    }
}

/// A gradient times a slope, made as `product`: 0 where the gradient is 0 and the slope is infinite or NaN, as what nothing depends on has no part in the
/// result. Elsewhere it stays as it is: where the gradient is 0 and the slope is finite, a second gradient still sees the slope.
pub(super) fn zero_if_unused(program: &mut TileProgram, grad: Reg, product: Reg) -> Reg {
    let zero = program.constant(0.0, program.register(grad));
    let unused = program.push(Prim::Eq, &[grad, zero]);
    let undefined = program.push(Prim::IsNan, &[product]);
    let both = program.push(Prim::And, &[unused, undefined]);
    let zero = program.constant(0.0, program.register(product));
    program.push(Prim::Select, &[both, zero, product])
}

/// How a pass ends.
pub enum Ending<'a> {
    /// In that dtype, of the shape that all inputs broadcast to.
    Store(DType),
    /// Added up to, and in the dtype of, a type that broadcasts to that shape.
    SumTo(&'a TensorType),
    /// Reduced over axes.
    Reduce {
        /// How.
        reduction: Reduction,
        /// Which axes of the shape that all inputs broadcast to.
        axes: &'a [usize],
        /// Kept as lengths of 1.
        keep_dims: bool,
        /// Of the result.
        dtype: DType,
    },
}

/// One pass over values as they are: 16-bit floats come as f32, everything else in its own dtype.
pub fn pass<const N: usize>(
    e: &mut dyn Emit,
    inputs: [Value; N],
    ending: Ending,
    build: impl Fn(&mut Chain, [Reg; N]) -> Reg,
) -> Result<Value> {
    let forms = inputs.each_ref().map(|value| Form::Elements(value.ty().dtype));
    run(e, &inputs, &forms, ending, &|chain, regs| build(chain, std::array::from_fn(|i| regs[i])))
}

/// Not generic: every rule would compile all of this once more.
fn run(
    e: &mut dyn Emit,
    inputs: &[Value],
    forms: &[Form],
    ending: Ending,
    build: &dyn Fn(&mut Chain, &[Reg]) -> Reg,
) -> Result<Value> {
    let mut chain = Chain { program: TileProgram::loading(&[]) };
    chain.program.loads = SmallVec::from_slice(forms);
    let regs: SmallVec<[Reg; 8]> = (0..inputs.len() as Reg).collect();
    let made = build(&mut chain, &regs);
    let mut program = chain.program;
    let mut domain = Shape::scalar();
    for (value, form) in inputs.iter().zip(forms) {
        if matches!(form, Form::Elements(_)) {
            domain = domain.broadcast(&value.ty().shape, "fused")?;
        }
    }
    let mut shape = None;
    match &ending {
        Ending::Store(dtype) => program.store(made, *dtype),
        Ending::SumTo(ty) => {
            program.store(made, ty.dtype);
            sum_to(&mut program, &domain, &ty.shape);
            shape = Some(ty.shape.clone());
        }
        Ending::Reduce { reduction, axes, keep_dims, dtype } => {
            program.store(made, *dtype);
            program.reduce(*reduction, axes);
            if *keep_dims {
                let kept = |(i, d): (usize, &tonnage_core::Dim)| match axes.contains(&i) {
                    true => 1.into(),
                    false => d.clone(),
                };
                shape = Some(domain.iter().enumerate().map(kept).collect());
            }
        }
    }
    // Nothing to do where what is read is what is asked for.
    let asked = match &ending {
        Ending::SumTo(ty) => Some((*ty).clone()),
        Ending::Store(dtype) => Some(TensorType { dtype: *dtype, shape: domain }),
        Ending::Reduce { .. } => None,
    };
    if let Some(value) = inputs.get(made as usize).filter(|v| Some(v.ty()) == asked.as_ref()) {
        return Ok(value.clone());
    }
    let made = e.apply(&FUSED, inputs.to_vec(), Attrs::Tile(Box::new(program)))?;
    match shape {
        Some(shape) => emit::reshape(e, made, &shape),
        None => Ok(made),
    }
}

/// Closes a program over a domain with the sum over what was broadcast to it.
pub(super) fn sum_to(program: &mut TileProgram, domain: &Shape, to: &Shape) {
    if domain != to {
        let new = domain.rank() - to.rank();
        let broadcast: Sizes =
            (0..domain.rank()).filter(|i| *i < new || to[*i - new] != domain[*i]).collect();
        program.reduce(Reduction::Sum, &broadcast);
    }
}

/// What a rule reads.
#[derive(Debug, Clone, Copy)]
pub enum RuleInput {
    /// The gradient of the only output.
    Grad,
    /// An input that the row saves.
    Input(usize),
    /// An output that the row saves.
    Output(usize),
    /// An aux output that the row saves, of bits that stand in the order of the output's elements.
    Bits(usize),
}

/// The gradient of an input as one pass over what the row saves, where it is wanted: computed in the dtype of
/// the first value (the gradient, mostly), added up to the input's shape and cast to its dtype.
pub fn slope<const N: usize>(
    e: &mut dyn Emit,
    call: &GradCall,
    input: usize,
    reads: [RuleInput; N],
    build: impl Fn(&mut Chain, [Reg; N]) -> Reg,
) -> Result<Option<Cotangent>> {
    let build = |chain: &mut Chain, regs: &[Reg]| build(chain, std::array::from_fn(|i| regs[i]));
    slope_of(e, call, input, &reads, &build)
}

/// [`slope`], of any number of values.
fn slope_of(
    e: &mut dyn Emit,
    call: &GradCall,
    input: usize,
    reads: &[RuleInput],
    build: &dyn Fn(&mut Chain, &[Reg]) -> Reg,
) -> Result<Option<Cotangent>> {
    if !call.needs[input] {
        return Ok(None);
    }
    let mut values = Vec::with_capacity(reads.len());
    let mut forms = SmallVec::<[Form; 8]>::new();
    for read in reads {
        let value = match *read {
            RuleInput::Grad => call.grad()?,
            RuleInput::Input(i) => call.input(i)?,
            RuleInput::Output(i) => call.output(i)?,
            RuleInput::Bits(i) => call.aux(i)?,
        };
        forms.push(match read {
            RuleInput::Bits(_) => Form::Bits,
            _ => Form::Elements(value.ty().dtype),
        });
        values.push(value);
    }
    let dtype = forms.first().map_or(DType::F32, |f| f.register());
    let to = Ending::SumTo(&call.inputs[input]);
    let made = run(e, &values, &forms, to, &|chain, regs| {
        let same = |&reg: &Reg| match chain.program.register(reg) {
            DType::Bool => reg,
            _ => chain.cast(reg, dtype),
        };
        let same: SmallVec<[Reg; 8]> = regs.iter().map(same).collect();
        build(chain, &same)
    })?;
    Ok(emit::dense(made))
}
