//! Tiles for attention by products of groups of four warps: of 16-bit floats, in heads of 64 and 128, on compute capability 9.0.

use std::fmt::Write as _;

use tonnage_core::DType;

use crate::emit::Block;

/// The compute capability that has these products; later ones have others.
pub const CAPABILITY: (u32, u32) = (9, 0);

/// Rows that a group keeps.
const ROWS: usize = 64;

/// Tiles of the other side in shared memory, and rows of each, as the kernels' text says it.
const STAGES: usize = 3;
const COMING: usize = 64;

/// Bytes of a query's numbers in shared memory.
const NUMBERS: usize = 12;

/// What matrices in shared memory begin at a multiple of.
const UNIT: usize = 1024;

/// Tiles of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Tiles {
    /// Groups of a block of threads.
    groups: usize,
    /// Blocks that a multiprocessor is to hold: registers are shared among them.
    blocks: usize,
    /// Bytes of shared memory.
    shared: usize,
}

/// Tiles of each of the three kernels.
#[derive(Debug, Clone, Copy)]
pub struct AllTiles {
    pub forward: Tiles,
    pub of_queries: Tiles,
    pub of_keys: Tiles,
}

impl Tiles {
    /// Rows that a block of threads keeps.
    pub fn rows(&self) -> usize {
        ROWS * self.groups
    }

    /// With the shared memory that rows take which stay and which come, and `numbers` bytes for each of the latter.
    fn sized(self, (stays, comes): (usize, usize), numbers: usize) -> Tiles {
        let coming = STAGES * COMING * (comes * 2 + numbers);
        Tiles { shared: UNIT + self.rows() * stays * 2 + coming, ..self }
    }
}

/// The tiles for heads of these widths; nothing for floats or widths that have none.
pub fn tiles(dtype: DType, (d, e): (usize, usize), masked: bool) -> Option<AllTiles> {
    let is_16_bits = matches!(dtype, DType::F16 | DType::BF16);
    if !is_16_bits || ![d, e].iter().all(|width| [64, 128].contains(width)) {
        return None;
    }
    // Beside the sums of wide heads, or a mask's addresses, registers are for one block alone.
    let is_light = d.max(e) == 64 && !masked;
    let of = |groups, blocks| Tiles { groups, blocks, shared: 0 };
    let (forward, of_grads) = if is_light { (of(2, 2), of(1, 3)) } else { (of(2, 1), of(2, 1)) };
    Some(AllTiles {
        forward: forward.sized((d, d + e), 0),
        of_queries: of_grads.sized((d + e, d + e), 0),
        of_keys: of_grads.sized((d + e, d + e), NUMBERS),
    })
}

impl AllTiles {
    /// The block of threads of a kernel.
    pub fn block(&self, function: &str) -> Block {
        let tiles = match function {
            "of_queries" => self.of_queries,
            "of_keys" => self.of_keys,
            _ => self.forward,
        };
        Block { threads: 128 * tiles.groups as u32, shared: tiles.shared as u32 }
    }

    /// What the kernels' text takes as constants: those of the two gradients are the same.
    pub fn constants(&self, grad: bool, text: &mut String) {
        let Tiles { groups, blocks, .. } = if grad { self.of_queries } else { self.forward };
        let _ = writeln!(text, "constexpr int GROUPS = {groups}, BLOCKS = {blocks};");
    }
}
