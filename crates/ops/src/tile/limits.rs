//! How large a tile program a device can run: as data, so that programs for a device are fused where there is none.

use smallvec::SmallVec;
use tonnage_core::tile::{Reg, TileProgram};

/// The largest tile programs that a device runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TileLimits {
    /// Loads and instructions.
    pub registers: usize,
    /// Stores.
    pub stores: usize,
    /// Registers that are alive at once.
    pub live: usize,
}

impl TileLimits {
    /// Whether a program is within the limits, whatever its sources are.
    ///
    /// ```
    /// use tonnage_core::DType;
    /// use tonnage_core::tile::{Prim, TileProgram};
    /// use tonnage_ops::tile::TileLimits;
    /// let mut program = TileProgram::loading(&[DType::F32, DType::F32]);
    /// let sum = program.push(Prim::Add, &[0, 1]);
    /// program.store(sum, DType::F32);
    /// assert!(TileLimits { registers: 3, stores: 1, live: 3 }.fit(&program));
    /// assert!(!TileLimits { registers: 2, stores: 1, live: 3 }.fit(&program));
    /// ```
    pub fn fit(&self, program: &TileProgram) -> bool {
        registers(program) <= self.registers
            && program.stores.len() <= self.stores
            && most_live(program) <= self.live
    }
}

/// Loads and instructions of a program.
pub fn registers(program: &TileProgram) -> usize {
    program.loads.len() + program.code.len()
}

/// For each register, one more than the instruction that reads it last; past the end where it is
/// stored; 0 where it has no readers.
pub fn last_uses(program: &TileProgram) -> SmallVec<[u16; 128]> {
    let loads = program.loads.len();
    let mut last: SmallVec<[u16; 128]> = SmallVec::from_elem(0, registers(program));
    for (reg, _) in &program.stores {
        last[*reg as usize] = program.code.len() as u16 + 1;
    }
    for (i, instr) in program.code.iter().enumerate().rev() {
        if last[loads + i] != 0 {
            for arg in &instr.args {
                last[*arg as usize] = last[*arg as usize].max(i as u16 + 1);
            }
        }
    }
    last
}

/// The most registers that are alive at once.
fn most_live(program: &TileProgram) -> usize {
    let last = last_uses(program);
    let loads = program.loads.len();
    let mut live = last[..loads].iter().filter(|l| **l != 0).count();
    let mut most = live;
    for (i, instr) in program.code.iter().enumerate() {
        if last[loads + i] != 0 {
            live += 1;
            most = most.max(live);
        }
        let dies = |(n, arg): &(usize, &Reg)| {
            let repeated = instr.args[..*n].contains(arg);
            usize::from(last[**arg as usize]) == i + 1 && !repeated
        };
        live -= instr.args.iter().enumerate().filter(dies).count();
    }
    most
}
