//! Tiles for attention by products of small matrices: of 16-bit floats, in heads of up to 256.

use std::fmt::Write as _;

use tonnage_core::DType;

use crate::emit::{Block, LEAST_SHARED};

/// Warps of a block of threads.
const WARPS: usize = 4;

/// The widest heads.
const WIDEST: usize = 256;

/// Rows of a tile that comes, and how many tiles there are: one is copied while the one before is computed with.
const COMING: [(usize, usize); 4] = [(64, 2), (32, 2), (16, 2), (16, 1)];

/// Bytes of a query's numbers in shared memory.
const NUMBERS: usize = 12;

/// Tiles of a kernel.
#[derive(Debug, Clone, Copy)]
pub struct Tiles {
    /// Tiles of 16 rows that a warp keeps.
    pub each: usize,
    /// Rows of a tile of the other side.
    pub coming: usize,
    /// How many of these there are.
    pub stages: usize,
    /// Bytes of shared memory.
    shared: usize,
}

/// Tiles of each of the three kernels.
#[derive(Debug, Clone, Copy)]
pub struct AllTiles {
    pub forward: Tiles,
    pub of_queries: Tiles,
    pub of_keys: Tiles,
    /// Blocks of threads of the gradients' kernels that a multiprocessor is to hold: of narrow heads three have registers enough.
    pub blocks: usize,
    /// Blocks that a tile of keys is shared among: one for keys and one for values, where the sums of both are too many for one.
    pub parts: usize,
}

impl Tiles {
    /// Those that fit, of at most `most` rows that come, where the rows that stay and those that come are that wide, and `numbers` bytes
    /// belong to each that comes.
    fn new(
        each: usize,
        most: usize,
        (stays, comes): (usize, usize),
        numbers: usize,
    ) -> Option<Tiles> {
        let coming = COMING.into_iter().filter(|(coming, _)| *coming <= most);
        let mut all = coming.map(|(coming, stages)| {
            let shared = WARPS * 16 * each * stays * 2 + coming * stages * (comes * 2 + numbers);
            Tiles { each, coming, stages, shared }
        });
        all.find(|tiles| tiles.shared <= LEAST_SHARED)
    }

    /// Rows that a block of threads keeps.
    pub fn rows(&self) -> usize {
        WARPS * 16 * self.each
    }
}

/// The tiles for heads of these widths; nothing for floats or widths that have none. Beside the sums of wide heads a mask's addresses have no
/// registers.
pub fn tiles(dtype: DType, (d, e): (usize, usize), masked: bool) -> Option<AllTiles> {
    let is_16_bits = matches!(dtype, DType::F16 | DType::BF16);
    let widest = if masked { WIDEST / 2 } else { WIDEST };
    if !is_16_bits || d.max(e) > widest || d.min(e) == 0 {
        return None;
    }
    // As the kernels' text says it.
    let filled = |width: usize| width.next_multiple_of(16);
    let (pd, pe) = (filled(d) + 8, filled(e) + 8);
    // Means of 32 rows of a warp stay in registers as long as heads are narrow and no mask is read.
    let is_light = filled(d.max(e)) <= 64 && !masked;
    // Scores beside a mask's addresses.
    let most = if masked && filled(d.max(e)) > 64 { 32 } else { 64 };
    Some(AllTiles {
        forward: Tiles::new(if is_light { 2 } else { 1 }, most, (pd, pd + pe), 0)?,
        of_queries: Tiles::new(1, 64, (pd + pe, pd + pe), 0)?,
        of_keys: Tiles::new(1, 64, (pd + pe, pd + pe), NUMBERS)?,
        blocks: if is_light { 3 } else { 1 },
        parts: if filled(d) + filled(e) > 256 { 2 } else { 1 },
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
        Block { threads: 32 * WARPS as u32, shared: tiles.shared as u32 }
    }

    /// What the kernels' text takes as constants.
    pub fn constants(&self, grad: bool, text: &mut String) {
        let AllTiles { forward, of_queries, of_keys, blocks, parts } = self;
        let _ = writeln!(text, "constexpr int WARPS = {WARPS};");
        let _ = match grad {
            false => writeln!(
                text,
                "constexpr int M = {}, BK = {}, STAGES = {};",
                forward.each, forward.coming, forward.stages
            ),
            true => writeln!(
                text,
                "constexpr int QUERY_M = {}, QUERY_KEYS = {}, QUERY_STAGES = {};\n\
                 constexpr int KEY_QUERIES = {}, KEY_STAGES = {}, PARTS = {parts}, BLOCKS = {blocks};",
                of_queries.each,
                of_queries.coming,
                of_queries.stages,
                of_keys.coming,
                of_keys.stages
            ),
        };
    }
}
