//! Tile programs put together: loads and instructions in the order in which they are asked for, each once.

use smallvec::SmallVec;
use tonnage_core::DType;
use tonnage_core::tile::{Close, Form, Instr, Prim, Reg, TileProgram};

/// What an instruction reads or a program stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramOperand {
    /// What a load brings.
    Load(u16),
    /// What an instruction makes.
    Code(u16),
}

/// An instruction.
type Code = (Prim, DType, SmallVec<[ProgramOperand; 3]>);

/// A program in the making, with what each load is of.
#[derive(Debug, Clone)]
pub(crate) struct ProgramBuilder<T> {
    loads: Vec<(T, Form)>,
    code: Vec<Code>,
}

impl<T> Default for ProgramBuilder<T> {
    fn default() -> ProgramBuilder<T> {
        ProgramBuilder { loads: Vec::new(), code: Vec::new() }
    }
}

impl<T: PartialEq> ProgramBuilder<T> {
    /// A load, which may be there already.
    pub fn load(&mut self, of: T, form: Form) -> ProgramOperand {
        let load = (of, form);
        let found = self.loads.iter().position(|known| *known == load);
        ProgramOperand::Load(found.unwrap_or_else(|| {
            self.loads.push(load);
            self.loads.len() - 1
        }) as u16)
    }

    /// An instruction, which may be there already.
    pub fn code(
        &mut self,
        prim: Prim,
        dtype: DType,
        args: SmallVec<[ProgramOperand; 3]>,
    ) -> ProgramOperand {
        let found = self.code.iter().position(|(p, d, a)| (*p, *d) == (prim, dtype) && *a == args);
        ProgramOperand::Code(found.unwrap_or_else(|| {
            self.code.push((prim, dtype, args));
            self.code.len() - 1
        }) as u16)
    }

    /// What is loaded.
    pub fn loads(&self) -> impl Iterator<Item = &(T, Form)> {
        self.loads.iter()
    }

    /// Loads and instructions so far.
    pub fn len(&self) -> usize {
        self.loads.len() + self.code.len()
    }

    /// The program that stores these, and what it loads.
    pub fn finish(self, stores: &[(ProgramOperand, Form)], close: Close) -> (TileProgram, Vec<T>) {
        let loads = self.loads.len() as Reg;
        let reg = |operand: &ProgramOperand| match operand {
            ProgramOperand::Load(i) => *i,
            ProgramOperand::Code(i) => loads + *i,
        };
        let code = self.code.iter().map(|(prim, dtype, args)| Instr {
            prim: *prim,
            dtype: *dtype,
            args: args.iter().map(reg).collect(),
        });
        let program = TileProgram {
            loads: self.loads.iter().map(|(_, form)| *form).collect(),
            code: code.collect(),
            stores: stores.iter().map(|(operand, form)| (reg(operand), *form)).collect(),
            close,
        };
        (program, self.loads.into_iter().map(|(of, _)| of).collect())
    }
}
