//! The gradient of a tile program, as another one: backwards through its instructions.
//!
//! A primitive's slope (`slopes`) is made of primitives, so a gradient can be differentiated again, as
//! often as there are slopes. Kinks and jumps are where the rows of the same ops have them: a maximum of equals goes to
//! the left one, rounding is flat.
//!
//! Decision: `docs/decisions/gradients-of-elementwise-ops.md`.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::tile::{Form, Instr, Prim, Reg, TileProgram};
use tonnage_core::{DType, Scalar};

/// The gradient of one load.
pub struct Derived {
    /// Loads what `reads` names; the only store is the gradient.
    pub program: TileProgram,
    /// For each load: a load of the original program, or, counted on from those, the gradient of a store.
    pub reads: Vec<usize>,
}

/// The gradient of load `wanted` of a program, from those of its stores that are `graded`, each over the
/// whole domain; `None` where none of these depends on it.
pub fn derive(program: &TileProgram, graded: &[bool], wanted: usize) -> Result<Option<Derived>> {
    let loads = program.loads.len();
    let mut back = GradientBuilder {
        made: TileProgram::loading(&[]),
        shift: program.stores.len() as Reg,
        loads: loads as Reg,
        adjoints: vec![None; loads + program.code.len()],
    };
    back.made.loads = program.loads.clone();
    back.made.loads.extend(program.stores.iter().map(|(_, form)| *form));
    for instr in &program.code {
        let args: SmallVec<[Reg; 3]> = instr.args.iter().map(|r| back.moved(*r)).collect();
        back.made.push_as(instr.prim, instr.dtype, &args);
    }
    for (k, (reg, form)) in program.stores.iter().enumerate() {
        if graded[k] && form.register().is_float() {
            let grad = (loads + k) as Reg;
            let grad = back.cast(grad, program.register(*reg));
            back.give(*reg, grad);
        }
    }
    for (i, instr) in program.code.iter().enumerate().rev() {
        if let Some(adjoint) = back.adjoints[loads + i] {
            back.instruction(instr, (loads + i) as Reg, adjoint)?;
        }
    }
    let Some(adjoint) = back.adjoints[wanted] else { return Ok(None) };
    back.made.stores = SmallVec::from_iter([(adjoint, program.loads[wanted])]);
    Ok(Some(compact(&back.made)))
}

/// A gradient in the making.
pub(super) struct GradientBuilder {
    pub made: TileProgram,
    /// By how many registers the original's instructions moved.
    shift: Reg,
    /// Registers of the original that did not move.
    loads: Reg,
    /// The gradient of each register of the original.
    adjoints: Vec<Option<Reg>>,
}

impl GradientBuilder {
    /// Where a register of the original is now.
    fn moved(&self, reg: Reg) -> Reg {
        if reg < self.loads { reg } else { reg + self.shift }
    }

    pub fn one(&mut self, prim: Prim, a: Reg) -> Reg {
        self.made.push(prim, &[a])
    }

    pub fn two(&mut self, prim: Prim, a: Reg, b: Reg) -> Reg {
        self.made.push(prim, &[a, b])
    }

    pub fn number(&mut self, value: impl Into<Scalar>, like: Reg) -> Reg {
        let dtype = self.made.register(like);
        self.made.constant(value, dtype)
    }

    pub fn mul(&mut self, a: Reg, b: Reg) -> Reg {
        self.two(Prim::Mul, a, b)
    }

    pub fn times(&mut self, a: Reg, value: f64) -> Reg {
        let value = self.number(value, a);
        self.mul(a, value)
    }

    pub fn plus(&mut self, a: Reg, value: f64) -> Reg {
        let value = self.number(value, a);
        self.two(Prim::Add, a, value)
    }

    pub fn select(&mut self, choice: Reg, yes: Reg, no: Reg) -> Reg {
        self.made.push(Prim::Select, &[choice, yes, no])
    }

    pub fn cast(&mut self, a: Reg, dtype: DType) -> Reg {
        match self.made.register(a) == dtype {
            true => a,
            false => self.one(Prim::Cast(dtype), a),
        }
    }

    /// Adds to the gradient of a register of the original.
    fn give(&mut self, reg: Reg, grad: Reg) {
        let sum = match self.adjoints[reg as usize] {
            Some(before) => self.two(Prim::Add, before, grad),
            None => grad,
        };
        self.adjoints[reg as usize] = Some(sum);
    }

    fn instruction(&mut self, instr: &Instr, result: Reg, g: Reg) -> Result<()> {
        let args: SmallVec<[Reg; 3]> = instr.args.iter().map(|r| self.moved(*r)).collect();
        let y = self.moved(result);
        match args.as_slice() {
            [x] => {
                if let Some(slope) = self.unary(instr, *x, y, g)? {
                    self.give(instr.args[0], slope);
                }
            }
            [a, b] => {
                let (left, right) = self.binary(instr.prim, *a, *b, y, g);
                if let Some(left) = left {
                    self.give(instr.args[0], left);
                }
                if let Some(right) = right {
                    self.give(instr.args[1], right);
                }
            }
            [a, b, _] => match instr.prim {
                Prim::Select => {
                    let zero = self.number(0, g);
                    let yes = self.select(*a, g, zero);
                    let no = self.select(*a, zero, g);
                    self.give(instr.args[1], yes);
                    self.give(instr.args[2], no);
                }
                _ => {
                    let (of_a, of_b) = (self.mul(g, *b), self.mul(g, *a));
                    self.give(instr.args[0], of_a);
                    self.give(instr.args[1], of_b);
                    self.give(instr.args[2], g);
                }
            },
            _ => {}
        }
        Ok(())
    }
}

/// The program without dead instructions, and which loads are left.
fn compact(program: &TileProgram) -> Derived {
    let loads = program.loads.len();
    let mut used = vec![false; loads + program.code.len()];
    program.stores.iter().for_each(|(reg, _)| used[*reg as usize] = true);
    for (i, instr) in program.code.iter().enumerate().rev() {
        if used[loads + i] {
            instr.args.iter().for_each(|arg| used[*arg as usize] = true);
        }
    }
    let reads: Vec<usize> = (0..loads).filter(|i| used[*i]).collect();
    let mut made = TileProgram::loading(&[]);
    made.loads = reads.iter().map(|i| program.loads[*i]).collect::<SmallVec<[Form; 2]>>();
    let mut map: Vec<Reg> = vec![0; used.len()];
    reads.iter().enumerate().for_each(|(new, old)| map[*old] = new as Reg);
    for (i, instr) in program.code.iter().enumerate() {
        if used[loads + i] {
            let args: SmallVec<[Reg; 3]> = instr.args.iter().map(|r| map[*r as usize]).collect();
            map[loads + i] = made.push_as(instr.prim, instr.dtype, &args);
        }
    }
    made.stores = program.stores.iter().map(|(reg, form)| (map[*reg as usize], *form)).collect();
    Derived { program: made, reads }
}
